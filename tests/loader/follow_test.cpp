// Masks, boxes and points that follow a picture through the loader: whose they are, what is refused, and that a picture is what it is
// without them.
#include "base/text.hpp"
#include "tests/datasets/archive.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/coded_forms.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/open_boxes.hpp>
#include <leat/open_tables.hpp>
#include <leat/own_samples.hpp>
#include <leat/photo_pack.hpp>
#include <leat/targets.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using testing::fake_sample;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::seen_run;
using testing::small_options;
using testing::watchdog;

constexpr int width = 40;
constexpr int height = 30;

// Its number in each quarter: 4 * sample + quarter, modulo 200.
std::vector<std::uint16_t> classes_of(std::size_t sample) {
  std::vector<std::uint16_t> numbers;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      numbers.push_back(
          static_cast<std::uint16_t>((4 * sample + (y >= height / 2 ? 2 : 0) + (x >= width / 2 ? 1 : 0)) % 200));
    }
  }
  return numbers;
}

// Sample i has i % 4 boxes, of label 10 * i + number; and a point in its middle.
std::string json_of(std::size_t sample) {
  std::string boxes;
  std::string labels;
  for (std::size_t i = 0; i < sample % 4; ++i) {
    const char* const comma = i == 0 ? "" : ", ";
    boxes += str_cat(comma, "[", 2 + i, ", ", 3 + i, ", ", 20 + i, ", ", 25.5, "]");
    labels += str_cat(comma, 10 * sample + i);
  }
  return str_cat("{\"id\": \"a [b] \\\"c\\\"\", \"boxes\": [", boxes, "], \"classes\": [", labels,
                 "], \"keypoints\": [20, 15, 2, 0, 0, 0]}");
}

std::vector<fake_sample> make_scenes(std::size_t count) {
  std::vector<fake_sample> samples(count);
  for (std::size_t i = 0; i < count; ++i) {
    samples[i].members = {
        {"jpg", testing::make_jpeg(testing::make_texture(i, width, height), {.orientation = static_cast<int>(i % 9)})},
        {"seg.png", testing::make_mask_png(width, height, classes_of(i), 8, i % 2 == 0)},
        {"json", testing::to_bytes(json_of(i))},
        {"cls", testing::to_bytes(std::to_string(1000 + i))}};
  }
  return samples;
}

image photo() {
  return image("jpg").random_resized_crop(24).random_flip().rotate(-20, 20).exif_orientation().normalize(imagenet);
}
std::vector<field> followers() {
  return {mask("seg.png").follows("jpg"), boxes("json").follows("jpg").key("boxes").labels("classes").min_area(2),
          points("keypoints").from("json").follows("jpg").key("keypoints").visibility()};
}
// The picture in the middle of what follows it: order does not matter.
std::vector<field> all_of_them() {
  std::vector<field> all = followers();
  all.insert(all.begin() + 1, photo());
  all.emplace_back(label("cls"));
  return all;
}

std::vector<std::vector<std::byte>> rows_of(const dataset& set, loader_options options, const std::string& output,
                                            std::vector<field> fields) {
  std::vector<std::vector<std::byte>> rows;
  options.digests = false;
  loader all(set, options, std::move(fields));
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    while (const std::optional<batch> got = all.next_blocking()) {
      for (std::uint32_t row = 0; row < got->valid_rows(); ++row) rows.push_back(testing::row_of(*got, output, row));
    }
  }
  return rows;
}

TEST(following, leaves_the_picture_as_it_is) {
  const watchdog dog("followers beside a picture");
  const fake_dataset set(make_scenes(19));
  EXPECT_EQ(rows_of(set, small_options(), "jpg", all_of_them()), rows_of(set, small_options(), "jpg", {photo()}));
}

// All of a sample may be in its row, or kept there, when its blocks are expanded: what follows, looks or has several members waits all the
// same. Digests make every row wait, so they are off.
TEST(following, is_the_same_out_of_blocks_where_nobody_looks_at_rows) {
  const watchdog dog("followers of compressed shards");
  const testing::temporary_directory directory;
  testing::archive shard;
  const std::vector<fake_sample> scenes = make_scenes(19);
  for (std::size_t i = 0; i < scenes.size(); ++i) {
    for (const auto& member : scenes[i].members) {
      const std::string_view bytes(reinterpret_cast<const char*>(member.bytes.data()), member.bytes.size());
      shard.file(str_cat(100 + i, ".", member.field), std::string(bytes));
    }
  }
  const std::string plain = (directory.path() / "s.tar").string();
  const std::string packed = (directory.path() / "p.tar.gz").string();
  testing::put(plain, shard.end().bytes());
  testing::put(packed, testing::coded(datasets::packing::gzip, shard.end().bytes()));
  const custom lengths =
      custom({{.name = "lengths", .type = dtype::i32, .row_shape = {2}}},
             [](custom_sample& sample, std::span<custom_row> rows) -> std::string {
               const std::array<std::int32_t, 2> made{static_cast<std::int32_t>(sample.members[0].size()),
                                                      static_cast<std::int32_t>(sample.members[1].size())};
               std::memcpy(rows[0].bytes.data(), made.data(), sizeof made);
               return {};
             })
          .from({"json", "seg.png"});
  loader_options options = small_options();
  options.host_bytes_max = std::size_t{200} << 20;
  std::vector<field> all = followers();
  all.push_back(photo());
  all.push_back(lengths);
  for (const char* const output : {"jpg", "seg.png", "json", "json.kept", "json.labels", "keypoints", "lengths"}) {
    const auto expected = rows_of(open(plain), options, output, all);
    EXPECT_EQ(rows_of(open(packed), options, output, all), expected) << output;
    const bool is_empty = std::all_of(expected.begin(), expected.end(), [](const std::vector<std::byte>& row) {
      return std::all_of(row.begin(), row.end(), [](std::byte each) { return each == std::byte{0}; });
    });
    EXPECT_FALSE(is_empty) << output;
  }
  const std::vector<field> looking = {image("jpg").random_iou_crop().resize(24, 24),
                                      boxes("json").follows("jpg").key("boxes")};
  EXPECT_EQ(rows_of(open(packed), options, "jpg", looking), rows_of(open(plain), options, "jpg", looking));
}

TEST(following, gives_the_same_batches_with_any_threads_and_where_a_device_finishes_pictures) {
  const watchdog dog("followers in any order");
  const std::vector<fake_sample> samples = make_scenes(21);
  const fake_dataset set(samples);
  const seen_run expected = testing::run_all(set, small_options(), all_of_them());
  ASSERT_FALSE(expected.failed) << expected.message;
  ASSERT_EQ(expected.batches.size(), 6U);
  for (const std::uint32_t threads : {1U, 5U}) {
    for (const bool on_device : {true, false}) {
      loader_options options = small_options();
      options.decode_threads = threads;
      options.finish_on_device = on_device;
      const fake_dataset again(samples, {.layout = testing::fake_layout::columns});
      const seen_run got = testing::run_all(again, options, all_of_them());
      ASSERT_FALSE(got.failed) << got.message;
      EXPECT_EQ(got.batches, expected.batches);
    }
  }
  // Bytes that a call makes.
  const dataset made = from_function(samples.size(),
                                     [&](std::uint64_t i) {
                                       return std::vector<std::vector<std::byte>>{
                                           samples[i].members[0].bytes, samples[i].members[1].bytes,
                                           samples[i].members[2].bytes, samples[i].members[3].bytes};
                                     },
                                     {{"jpg", 1 << 16}, {"seg.png", 1 << 16}, {"json", 1 << 12}, {"cls", 8}});
  const seen_run got = testing::run_all(made, small_options(), all_of_them());
  ASSERT_FALSE(got.failed) << got.message;
  EXPECT_EQ(got.batches, expected.batches);
}

// A device may decode them: what follows is made of their heads.
TEST(following, goes_by_the_heads_of_photo_packs) {
  const watchdog dog("followers of packs");
  std::vector<fake_sample> samples = make_scenes(19);
  const fake_dataset jpegs(samples);
  for (fake_sample& each : samples) each.members[0].bytes = pack_photo(each.members[0].bytes);
  const fake_dataset packs(samples);
  const std::vector<field> fields{image("jpg").random_resized_crop(24).random_flip().exif_orientation(),
                                  mask("seg.png").follows("jpg")};
  EXPECT_EQ(rows_of(packs, small_options(), "seg.png", fields), rows_of(jpegs, small_options(), "seg.png", fields));
}

TEST(following, is_replayed_and_resumed) {
  const watchdog dog("followers, replayed");
  const fake_dataset set(make_scenes(21));
  const loader_options options = small_options();
  loader train(set, options, all_of_them());
  const auto run = testing::run_epochs(train, 2);
  const loader other(set, options, all_of_them());
  for (const testing::seen_batch& each : run) {
    EXPECT_EQ(other.batch_at(each.epoch, each.index).content_digest()->hex(), each.content);
  }
  loader begun(set, options, all_of_them());
  static_cast<void>(begun.next_blocking());
  loader_options resumed = options;
  resumed.resume = begun.state();
  loader rest(set, resumed, all_of_them());
  const auto seen = testing::run_epochs(rest, 2);
  EXPECT_EQ(seen, std::vector(run.begin() + 1, run.end()));
}

// In batches of a picture whose colours are the mask's: each row says whose it is, in each of its outputs.
TEST(following, keeps_rows_together_where_others_are_skipped_or_substituted) {
  const watchdog dog("corrupt masks");
  std::vector<fake_sample> samples = make_scenes(24);
  samples[3].find("seg.png")->bytes.resize(60);
  samples[9].find("seg.png")->bytes = testing::make_mask_png(20, 20, std::vector<std::uint16_t>(400), 8, false);
  samples[14].find("json")->bytes =
      testing::to_bytes("{\"boxes\": [[1, 2, 3, NaN]], \"classes\": [1], \"keypoints\": []}");
  samples[17].remove("seg.png");
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    loader_options options = testing::one_epoch_in_order();
    options.on_corrupt = policy;
    const testing::temporary_directory directory;
    options.journal = directory.path() / "journal";
    const fake_dataset set(samples);
    loader all(set, options, image("jpg").center_crop(20), mask("seg.png").follows("jpg"),
               boxes("json").follows("jpg").key("boxes").labels("classes"), label("cls"));
    std::size_t rows = 0;
    while (const std::optional<batch> got = all.next_blocking()) {
      const auto labels = testing::values_of<std::int64_t>(*got, "cls");
      const auto masks = testing::values_of<std::uint8_t>(*got, "seg.png");
      const auto offsets = testing::values_of<std::int64_t>(*got, "json.offsets");
      const auto things = testing::values_of<std::int64_t>(*got, "json.labels");
      for (std::uint32_t row = 0; row < got->valid_rows(); ++row, ++rows) {
        const std::int64_t sample = labels[row] - 1000;
        EXPECT_EQ(masks[row * 400], 4 * sample % 200);
        EXPECT_EQ(masks[row * 400 + 399], (4 * sample + 3) % 200);
        EXPECT_EQ(offsets[row + 1] - offsets[row], sample % 4);
        for (std::int64_t i = offsets[row]; i < offsets[row + 1]; ++i)
          EXPECT_EQ(things[static_cast<std::size_t>(i)] / 10, sample);
        EXPECT_EQ(got->placement("jpg", row).picture_width, width);
        EXPECT_EQ(got->placement("jpg", row).matrix, (std::array<double, 9>{1, 0, 10, 0, 1, 5, 0, 0, 1}));
      }
    }
    EXPECT_EQ(rows, policy == corrupt_policy::skip ? 20U : 24U);
    const std::string journal = testing::whole_file(options.journal);
    EXPECT_THAT(journal, HasSubstr("seg.png: PNG: premature end of file"));
    EXPECT_THAT(journal, HasSubstr("seg.png: a mask of 20 x 20 pixels, and its picture has 40 x 30"));
    EXPECT_THAT(journal, HasSubstr("json: box 0 (1, 2, 3, nan) has a number that is not finite"));
  }
}

// numpy: the crop of (10, 5, 30, 25), as it is; [x - 10, y - 5] and clamped.
TEST(following, moves_boxes_and_points_into_the_row) {
  const watchdog dog("boxes and points");
  const std::vector<fake_sample> samples = make_scenes(4);
  const fake_dataset set(samples);
  loader all(set, testing::one_epoch_in_order(), image("jpg").center_crop(20),
             boxes("json").follows("jpg").key("boxes").labels("classes").min_visible(0.5),
             points("keypoints").from("json").follows("jpg").key("keypoints").visibility());
  const std::optional<batch> got = all.next_blocking();
  // Of 18 x 22.5 there are 10 x 20 left, of 18 x 21.5 11 x 20, of 18 x 20.5 12 x 20: 0.494, 0.568, 0.650.
  EXPECT_EQ(testing::values_of<std::int64_t>(*got, "json.offsets"), (std::vector<std::int64_t>{0, 0, 0, 1, 3}));
  EXPECT_EQ(testing::values_of<float>(*got, "json"), (std::vector<float>{0, 0, 11, 20, 0, 0, 11, 20, 0, 0, 12, 20}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*got, "json.kept"), (std::vector<std::int64_t>{1, 1, 2}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*got, "json.labels"), (std::vector<std::int64_t>{21, 31, 32}));
  EXPECT_EQ((*got)["json"].shape, (dimensions{3, 4}));
  EXPECT_EQ((*got)["keypoints"].shape, (dimensions{8, 3}));
  const auto places = testing::values_of<float>(*got, "keypoints");
  EXPECT_EQ(std::vector(places.begin(), places.begin() + 6), (std::vector<float>{10, 10, 2, 0, 0, 0}));
}

// One box in four notations.
TEST(following, reads_boxes_in_any_notation) {
  const watchdog dog("notations");
  std::vector<fake_sample> samples(1);
  samples[0].members = {{"jpg", testing::make_jpeg(testing::make_texture(1, width, height), {})},
                        {"xyxy", testing::to_bytes("[8, 6, 24, 12]")},
                        {"xywh", testing::to_bytes("[[8, 6, 16, 6]]")},
                        {"cxcywh", testing::to_bytes(" [16, 9,16,6] ")},
                        {"yolo", testing::to_bytes("7 0.4 0.3 0.4 0.2\r\n\n3 0.5 0.5 1 1")}};
  const fake_dataset set(samples);
  const auto of = [](const char* name, box_format how) { return boxes(name).follows("jpg").in(how); };
  loader_options options = testing::one_epoch_in_order();
  options.batch_size = 1;
  loader all(set, options, image("jpg").resize(height, width), of("xyxy", box_format::xyxy),
             of("xywh", box_format::xywh), of("cxcywh", box_format::cxcywh), of("yolo", box_format::yolo));
  const std::optional<batch> got = all.next_blocking();
  const std::vector<float> expected{8, 6, 24, 12};
  for (const char* const name : {"xyxy", "xywh", "cxcywh"}) EXPECT_EQ(testing::values_of<float>(*got, name), expected);
  EXPECT_THAT(testing::values_of<float>(*got, "yolo"),
              ::testing::Pointwise(::testing::FloatEq(), {8, 6, 24, 12, 0, 0, 40, 30}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*got, "yolo.labels"), (std::vector<std::int64_t>{7, 3}));
}

// What a list is refused for.
TEST(following, says_what_is_wrong_with_a_target) {
  const watchdog dog("bad targets");
  const std::vector<std::byte> jpeg = testing::make_jpeg(testing::make_texture(1, width, height), {});
  const auto reason = [&](const std::string& json, const field& target) {
    std::vector<fake_sample> samples(1);
    samples[0].members = {{"jpg", jpeg}, {"json", testing::to_bytes(json)}};
    loader_options options = testing::one_epoch_in_order();
    options.batch_size = 1;
    const seen_run run = testing::run_all(fake_dataset(samples), options, {image("jpg").center_crop(8), target});
    return run.failed == errc::corrupt ? run.message : "no such error: " + run.message;
  };
  const boxes plain = boxes("json").follows("jpg").key("b");
  EXPECT_THAT(reason("{\"b\": [[1, 2, 3", plain), HasSubstr("json: no JSON: "));
  EXPECT_THAT(reason("", plain), HasSubstr("json: no JSON: no object begins here, at byte 0"));
  EXPECT_THAT(reason("{\"a\": 1}", plain), HasSubstr("json: the JSON has no member 'b'"));
  EXPECT_THAT(reason("{\"b\": 1}", plain), HasSubstr("json: member 'b' is no list of numbers"));
  EXPECT_THAT(reason("{\"b\": [\"x\"]}", plain), HasSubstr("json: member 'b': element 0 is '\"x\"]', no number"));
  EXPECT_THAT(reason("{\"b\": [[1, 2, 3]]}", plain), HasSubstr("json: has boxes of 3 numbers; a box has 4"));
  EXPECT_THAT(reason("{\"b\": [1, 2, 3, 4, 5]}", plain), HasSubstr("json: has 5 numbers; a box has 4"));
  EXPECT_THAT(reason("{\"b\": [[1, 2, 3, 4], [9, 1, 5, 2]]}", plain),
              HasSubstr("json: box 1 (9, 1, 5, 2) has its right edge left of its left one"));
  EXPECT_THAT(reason("{\"b\": [[1, 5, 3, 4]]}", plain), HasSubstr("has its lower edge above its upper one"));
  EXPECT_THAT(reason("{\"b\": [[1, 2, -3, 4]]}", plain.in(box_format::xywh)), HasSubstr("has a negative size"));
  EXPECT_THAT(reason("{\"b\": [1, 2, 1e999, 4]}", plain), HasSubstr("element 2 is"));
  const boxes turned = plain.in(box_format::cxcywhr);
  EXPECT_THAT(reason("{\"b\": [[1, 2, 3, 4]]}", turned), HasSubstr("has boxes of 4 numbers; a box has 5"));
  EXPECT_THAT(reason("{\"b\": [1, 2, 3, 4, 5, 6]}", turned), HasSubstr("has 6 numbers; a box has 5"));
  EXPECT_THAT(reason("{\"b\": [1, 2, -3, 4, 5]}", turned), HasSubstr("box 0 (1, 2, -3, 4, 5) has a negative size"));
  EXPECT_THAT(reason("{\"b\": [1, 2, 3, 4, NaN]}", turned), HasSubstr("has a number that is not finite"));
  EXPECT_THAT(reason("{\"b\": [0, 0, 4, 4, 4, 0, 0, 4]}", plain.in(box_format::xyxyxyxy)),
              HasSubstr("box 0 (0, 0, 4, 4, 4, 0, 0, 4) has sides that cross"));
  EXPECT_THAT(reason("{\"b\": [1, 2, 3, 4], \"l\": [1, 2]}", plain.labels("l")),
              HasSubstr("has 1 boxes, and 2 labels in 'l'"));
  EXPECT_THAT(reason("{\"b\": [1, 2, 3, 4], \"l\": [1.5]}", plain.labels("l")),
              HasSubstr("member 'l': element 0 is '1.5]'"));
  EXPECT_THAT(reason("{\"b\": [1, 2, 3, 4]}", plain.bytes_max(10)), HasSubstr("bytes_max() says at most 10"));
  EXPECT_THAT(reason("1 12 9 8 4", boxes("json").follows("jpg").in(box_format::yolo)),
              HasSubstr("is not in shares of the picture's sides"));
  EXPECT_THAT(reason("1 0.5 0.5 1", boxes("json").follows("jpg").in(box_format::yolo)),
              HasSubstr("json: line 1 has 4 numbers; a box has a class and 4"));
  const points dots = points("json").follows("jpg").key("p");
  EXPECT_THAT(reason("{\"p\": [1, 2, 3]}", dots), HasSubstr("has 3 numbers; a point has 2, and 3 with visibility()"));
  EXPECT_THAT(reason("{\"p\": [1, 2]}", dots.flip_pairs(2, {{0, 1}})),
              HasSubstr("has 1 points; objects of flip_pairs() have 2"));
}

TEST(following, exchanges_points_of_pairs_where_a_picture_is_mirrored) {
  const watchdog dog("pairs of points");
  std::vector<fake_sample> samples(1);
  samples[0].members = {{"jpg", testing::make_jpeg(testing::make_texture(1, width, height), {})},
                        {"json", testing::to_bytes("[[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]")}};
  const fake_dataset set(samples);
  loader_options options = testing::one_epoch_in_order();
  options.batch_size = 1;
  loader all(set, options, image("jpg").resize(height, width).random_flip(1),
             points("json").follows("jpg").flip_pairs(3, {{0, 2}}));
  const std::optional<batch> got = all.next_blocking();
  EXPECT_EQ(testing::values_of<float>(*got, "json"), (std::vector<float>{35, 6, 37, 4, 39, 2, 29, 12, 31, 10, 33, 8}));
  EXPECT_TRUE(got->placement("jpg", 0).mirrored);
}

// A detector's fields, with the boxes in front of the picture, or behind it.
std::vector<field> detection(bool boxes_first) {
  const image picture =
      image("jpg").random_zoom_out().random_iou_crop().random_flip().resize(24, 20).exif_orientation();
  const boxes things = boxes("json").follows("jpg").key("boxes").labels("classes").center_inside();
  std::vector<field> all{picture, mask("seg.png").follows("jpg"), label("cls")};
  all.insert(boxes_first ? all.begin() : all.end(), things);
  return all;
}

TEST(crops_by_boxes, are_the_same_for_any_threads_layouts_and_order_of_fields) {
  const watchdog dog("crops by boxes");
  const std::vector<fake_sample> samples = make_scenes(41);
  const dataset made = from_function(samples.size(),
                                     [&](std::uint64_t i) {
                                       return std::vector<std::vector<std::byte>>{
                                           samples[i].members[0].bytes, samples[i].members[1].bytes,
                                           samples[i].members[2].bytes, samples[i].members[3].bytes};
                                     },
                                     {{"jpg", 1 << 16}, {"seg.png", 1 << 16}, {"json", 1 << 12}, {"cls", 8}});
  for (const bool boxes_first : {false, true}) {
    const seen_run expected = testing::run_all(fake_dataset(samples), small_options(), detection(boxes_first));
    ASSERT_FALSE(expected.failed) << expected.message;
    for (const std::uint32_t threads : {1U, 3U}) {
      for (const bool on_device : {true, false}) {
        loader_options options = small_options();
        options.decode_threads = threads;
        options.finish_on_device = on_device;
        const fake_dataset again(samples, {.layout = testing::fake_layout::columns});
        const seen_run got = testing::run_all(again, options, detection(boxes_first));
        ASSERT_FALSE(got.failed) << got.message;
        EXPECT_EQ(got.batches, expected.batches);
      }
    }
    const seen_run got = testing::run_all(made, small_options(), detection(boxes_first));
    ASSERT_FALSE(got.failed) << got.message;
    EXPECT_EQ(got.batches, expected.batches);
  }
  EXPECT_EQ(rows_of(made, small_options(), "jpg", detection(false)),
            rows_of(made, small_options(), "jpg", detection(true)));
}

// That of the row is the picture's, so that a box whose middle is inside is left.
TEST(crops_by_boxes, keep_a_box_where_there_are_any) {
  const watchdog dog("boxes of crops");
  const fake_dataset set(make_scenes(40));
  loader_options options = testing::one_epoch_in_order();
  std::size_t cropped = 0;
  std::size_t dropped = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    options.seed = seed;
    loader all(set, options, image("jpg").random_iou_crop().resize(24, 20),
               boxes("json").follows("jpg").key("boxes").labels("classes").center_inside(), label("cls"));
    for (const batch& each : all.blocking()) {
      const auto labels = testing::values_of<std::int64_t>(each, "cls");
      const auto offsets = testing::values_of<std::int64_t>(each, "json.offsets");
      for (std::uint32_t row = 0; row < each.valid_rows(); ++row) {
        const auto there = (labels[row] - 1000) % 4;
        const std::int64_t left = offsets[row + 1] - offsets[row];
        EXPECT_EQ(left == 0, there == 0);
        dropped += static_cast<std::size_t>(there - left);
        const std::array<double, 9> whole{width / 20.0, 0, 0, 0, height / 24.0, 0, 0, 0, 1};
        const bool is_whole = each.placement("jpg", row).matrix == whole;
        if (there == 0) EXPECT_TRUE(is_whole);
        cropped += is_whole ? 0 : 1;
      }
    }
  }
  // Three of four have boxes, and one option of seven leaves them whole.
  EXPECT_GT(cropped, 90U);
  EXPECT_GT(dropped, 0U);
}

// Where pictures lie in blocks they wait for their boxes, which may lie in others.
TEST(crops_by_boxes, are_the_same_of_pictures_in_compressed_blocks) {
  const watchdog dog("crops of parquet");
  const testing::temporary_directory directory;
  const std::string folder = std::string(LEAT_TEST_DATA) + "/parquet/";
  const auto run = [&](const std::string& name, std::uint32_t threads) {
    const dataset pictures = open_parquet(folder + name);
    const std::string table = (directory.path() / "boxes.jsonl").string();
    std::ofstream lines(table);
    for (std::uint64_t i = 0; i < pictures.size(); ++i)
      lines << "{\"things\": [1, 2, 9, 11, 5, " << i % 4 << ", 14, 9]}\n";
    lines.close();
    loader_options options = small_options();
    options.decode_threads = threads;
    const image picture = image("image").random_iou_crop().resize(12, 12);
    return testing::run_all(
        zip({pictures, open(table)}), options,
        {picture, boxes("things").follows("image"), image("other").from("image").random_resized_crop(9),
         image("again").from("image").random_iou_crop({.boxes = "things"}).resize(12, 12).together("again")});
  };
  const seen_run expected = run("pictures-bare.parquet", 1);
  ASSERT_FALSE(expected.failed) << expected.message;
  const dataset packed = open_parquet(folder + "pictures-packed.parquet");
  const image picture = image("image").random_iou_crop({.boxes = "things"}).resize(12, 12);
  EXPECT_EQ(testing::message_of(errc::usage, [&] { loader(packed, small_options(), views(picture, 2, "v")); }),
            "'v': random_iou_crop in views() needs shards that are not compressed, and the pictures of 'image' lie in "
            "compressed blocks; give the loader an image field for each view");
  for (const std::uint32_t threads : {1U, 3U}) {
    const seen_run got = run("pictures-packed.parquet", threads);
    ASSERT_FALSE(got.failed) << got.message;
    EXPECT_EQ(got.batches, expected.batches);
  }
}

// Which rows of a pack a crop needs is not known before its boxes are read.
TEST(crops_by_boxes, are_the_same_of_photo_packs) {
  const watchdog dog("crops of packs");
  std::vector<fake_sample> samples = make_scenes(19);
  const fake_dataset jpegs(samples);
  for (fake_sample& each : samples) each.members[0].bytes = pack_photo(each.members[0].bytes);
  const fake_dataset packs(samples);
  for (const char* const output : {"jpg", "json", "seg.png"}) {
    EXPECT_EQ(rows_of(packs, small_options(), output, detection(false)),
              rows_of(jpegs, small_options(), output, detection(false)))
        << output;
  }
}

// Each view draws for itself, those of a group alike; a picture of the same member may name the boxes of the other.
TEST(crops_by_boxes, are_drawn_by_view_and_by_group) {
  const watchdog dog("views with boxes");
  const auto view = [](const char* name) {
    return image(name).from("jpg").random_iou_crop({.boxes = "things"}).resize(24, 20);
  };
  loader all(fake_dataset(make_scenes(24)), testing::one_epoch_in_order(), view("a"), view("b"),
             view("c").together("same"), view("d").together("same"), views(view("jpg"), 2, "slots"),
             boxes("things").from("json").follows("a").key("boxes"));
  std::size_t different = 0;
  std::size_t different_slots = 0;
  for (const batch& each : all.blocking()) {
    for (std::uint32_t row = 0; row < each.valid_rows(); ++row) {
      const std::vector<std::byte> slots = testing::row_of(each, "slots", row);
      const auto second = slots.begin() + static_cast<std::ptrdiff_t>(slots.size() / 2);
      different_slots += std::equal(slots.begin(), second, second) ? 0 : 1;
      different += each.placement("a", row).matrix != each.placement("b", row).matrix ? 1 : 0;
      EXPECT_EQ(each.placement("c", row).matrix, each.placement("d", row).matrix);
    }
  }
  EXPECT_GT(different, 10U);
  EXPECT_GT(different_slots, 10U);
}

TEST(crops_by_boxes, are_replayed_and_resumed) {
  const watchdog dog("crops by boxes, replayed");
  const fake_dataset set(make_scenes(21));
  const loader_options options = small_options();
  loader train(set, options, detection(false));
  const auto run = testing::run_epochs(train, 2);
  const loader other(set, options, detection(false));
  for (const testing::seen_batch& each : run) {
    EXPECT_EQ(other.batch_at(each.epoch, each.index).content_digest()->hex(), each.content);
  }
  loader begun(set, options, detection(false));
  static_cast<void>(begun.next_blocking());
  loader_options resumed = options;
  resumed.resume = begun.state();
  loader rest(set, resumed, detection(false));
  EXPECT_EQ(testing::run_epochs(rest, 2), std::vector(run.begin() + 1, run.end()));
}

TEST(crops_by_boxes, of_damaged_boxes_are_a_corrupt_sample) {
  const watchdog dog("crops by damaged boxes");
  std::vector<fake_sample> samples = make_scenes(3);
  samples[1].find("json")->bytes = testing::to_bytes("{\"boxes\": [[1, 2, 3");
  for (const bool boxes_first : {false, true}) {
    const seen_run run = testing::run_all(fake_dataset(samples), testing::one_epoch_in_order(), detection(boxes_first));
    EXPECT_EQ(run.failed, errc::corrupt);
    EXPECT_THAT(run.message, HasSubstr("json: no JSON: "));
    loader_options options = testing::one_epoch_in_order();
    options.on_corrupt = corrupt_policy::skip;
    EXPECT_EQ(rows_of(fake_dataset(samples), options, "jpg", detection(boxes_first)).size(), 2U);
  }
}

// As many as their memory has been counted for.
TEST(crops_by_boxes, look_at_no_more_boxes_than_are_planned_for) {
  const watchdog dog("crops by many boxes");
  std::vector<fake_sample> samples = make_scenes(1);
  const auto with_boxes = [&](std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += i == 0 ? "[1, 2, 3, 4]" : ",[1, 2, 3, 4]";
    samples[0].find("json")->bytes = testing::to_bytes("{\"boxes\": [" + all + "]}");
    return fake_dataset(samples);
  };
  const std::vector<field> fields{image("jpg").random_iou_crop().resize(8, 8),
                                  boxes("json").follows("jpg").key("boxes")};
  const std::vector<field> plain{image("jpg").resize(8, 8), fields[1]};
  loader_options options = testing::one_epoch_in_order();
  options.decode_threads = 1;
  EXPECT_FALSE(testing::run_all(with_boxes(16'384), options, fields).failed);
  const seen_run run = testing::run_all(with_boxes(16'385), options, fields);
  EXPECT_EQ(run.failed, errc::corrupt);
  EXPECT_THAT(run.message, HasSubstr("json: has 16385 boxes in 'boxes', and random_iou_crop looks at 16384 at most; "
                                     "leave out those that are too small to see, or leave out the crop"));
  EXPECT_FALSE(testing::run_all(with_boxes(16'385), options, plain).failed);
  const auto planned = [&](const std::vector<field>& of) {
    return loader(with_boxes(1), options, of).plan().host_bytes_least;
  };
  EXPECT_GE(planned(fields), planned(plain) + 16'384 * sizeof(double) * 4);
}

TEST(crops_by_boxes, are_refused_where_it_is_not_clear_whose_boxes_they_look_at) {
  std::vector<fake_sample> samples = make_scenes(2);
  for (fake_sample& each : samples) each.members.push_back({"png", each.find("seg.png")->bytes});
  const fake_dataset set(samples);
  const auto said = [&](std::vector<field> fields) {
    return testing::message_of(errc::usage, [&] { loader(set, small_options(), std::move(fields)); });
  };
  const image picture = image("jpg").random_iou_crop().resize(8, 8);
  const boxes things = boxes("json").follows("jpg").key("boxes");
  EXPECT_EQ(said({picture}),
            "image 'jpg': random_iou_crop looks at boxes first, and none follow it; give the loader "
            "boxes{...}.follows(\"jpg\"), or take random_resized_crop");
  EXPECT_EQ(
      said({picture, things, boxes("more").from("json").follows("jpg").key("boxes")}),
      "image 'jpg': random_iou_crop looks at boxes, and 'json' and 'more' follow it; say which: {.boxes = \"more\"}");
  EXPECT_EQ(
      said({views(picture, 2, "slots"), things.follows("slots")}),
      "image 'slots[1]': random_iou_crop looks at boxes, and none follow this one of several pictures; name boxes "
      "for all of them: {.boxes = \"json\"}");
  EXPECT_NO_THROW(loader(set, small_options(),
                         views(image("jpg").random_iou_crop({.boxes = "json"}).resize(8, 8), 2, "slots"),
                         things.follows("slots")));
  EXPECT_EQ(said({image("jpg").random_iou_crop({.boxes = "jsn"}).resize(8, 8), things}),
            "image 'jpg': random_iou_crop looks at the boxes 'jsn', and the loader has no such field of boxes; did you "
            "mean 'json'?");
  EXPECT_EQ(
      said({image("jpg").center_crop(8), things, image("png").random_iou_crop({.boxes = "json"}).resize(8, 8)}),
      "image 'png': random_iou_crop looks at the boxes 'json', which follow 'jpg', a picture of another member; name "
      "boxes of this one");
  EXPECT_THAT(said({image("jpg").resize(8, 8).random_iou_crop().center_crop(4), things}),
              HasSubstr("random_iou_crop: stands after a scaling"));
}

// Arrays of pixels and of numbers; and lists of a table, which lie in blocks that samples share.
TEST(following, takes_arrays_and_lists_of_tables) {
  const watchdog dog("tensors and tables");
  const testing::temporary_directory directory;
  constexpr std::int64_t rows = 5;
  std::vector<std::uint8_t> pixels(rows * 6 * 4 * 3);
  std::vector<std::int32_t> numbers(rows * 6 * 4);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<std::int32_t>(i) - 7;
    for (std::size_t c = 0; c < 3; ++c) pixels[3 * i + c] = static_cast<std::uint8_t>(i);
  }
  const auto of = [](dtype type, const dimensions& shape, void* data) {
    return tensor{type, shape, dense_strides(shape), data, host};
  };
  const dataset tensors = from_tensors({{"image", of(dtype::u8, {rows, 6, 4, 3}, pixels.data())},
                                        {"mask", of(dtype::i32, {rows, 6, 4}, numbers.data())}},
                                       nullptr);
  std::ofstream table(directory.path() / "boxes.jsonl");
  for (int i = 0; i < rows; ++i) table << "{\"things\": [" << i % 2 << ", 1, 3, 5, 0, 0, " << 1 + i % 2 << ", 1]}\n";
  table.close();
  const dataset both = zip({tensors, open((directory.path() / "boxes.jsonl").string())});
  loader_options options = testing::one_epoch_in_order();
  options.batch_size = rows;
  loader all(both, options, image("image").random_flip(1), mask("mask").follows("image"),
             boxes("things").follows("image"));
  const std::optional<batch> got = all.next_blocking();
  const auto masks = testing::values_of<std::int32_t>(*got, "mask");
  for (std::size_t line = 0; line < numbers.size(); line += 4) {
    for (std::size_t x = 0; x < 4; ++x) ASSERT_EQ(masks[line + x], numbers[line + 3 - x]) << line;
  }
  const auto things = testing::values_of<float>(*got, "things");
  ASSERT_EQ(things.size(), std::size_t{rows} * 8);
  EXPECT_EQ(std::vector(things.begin() + 8, things.begin() + 16), (std::vector<float>{1, 1, 3, 5, 2, 0, 4, 1}));
}

// Three objects, as COCO has them: two outlines; runs; text of runs, of a crowd.
constexpr const char* segmentation =
    "{\"categories\": [3, 90, 5], \"iscrowd\": [0, 0, 1], \"segmentation\": [[[2.5, 3, 30, 4.25, 11, 28.5], [31, 1, "
    "39, 1, "
    "35, 9.5]], {\"size\": [30, 40], \"counts\": [600, 300, 300]}, {\"size\": [30, 40], \"counts\": \"b1Tl0j7\"}]}";

std::vector<std::uint8_t> whole_mask(const std::vector<std::byte>& stored) {
  std::vector<fake_sample> samples(1);
  samples[0].members = {{"jpg", testing::make_jpeg(testing::make_texture(1, width, height), {})}, {"seg", stored}};
  loader_options options = testing::one_epoch_in_order();
  options.batch_size = 1;
  loader all(fake_dataset(samples), options, image("jpg").resize(height, width), mask("seg").follows("jpg"));
  return testing::values_of<std::uint8_t>(*all.next_blocking(), "seg");
}

// pycocotools: numpy.unique(map, return_counts=True) of the categories in their order, on the crowd's 255.
TEST(following, paints_segmentations_of_coco_as_pycocotools_does) {
  const watchdog dog("a segmentation");
  const std::vector<std::uint8_t> map = whole_mask(testing::to_bytes(segmentation));
  std::map<int, int> counts;
  for (const std::uint8_t number : map) ++counts[number];
  EXPECT_EQ(counts, (std::map<int, int>{{0, 269}, {3, 312}, {90, 300}, {255, 319}}));
}

TEST(following, moves_segmentations_as_it_moves_the_mask_that_they_are) {
  const watchdog dog("segmentations beside masks");
  const std::vector<std::byte> json = testing::to_bytes(segmentation);
  const std::vector<std::uint8_t> map = whole_mask(json);
  std::vector<fake_sample> samples = make_scenes(12);
  for (fake_sample& each : samples) {
    each.find("seg.png")->bytes =
        testing::make_mask_png(width, height, std::vector<std::uint16_t>(map.begin(), map.end()), 8, false);
    each.members.push_back({"seg", json});
  }
  loader train(fake_dataset(samples), small_options(), photo(), mask("seg.png").follows("jpg"),
               mask("seg").follows("jpg"));
  for (const batch& each : train.blocking()) {
    EXPECT_EQ(testing::values_of<std::uint8_t>(each, "seg"), testing::values_of<std::uint8_t>(each, "seg.png"));
  }
}

TEST(following, reads_what_open_coco_gives) {
  const watchdog dog("a mask of open_coco");
  const testing::temporary_directory root;
  std::filesystem::create_directory(root.path() / "images");
  const std::vector<std::byte> jpeg = testing::make_jpeg(testing::make_texture(1, width, height), {});
  for (const char* const name : {"a.jpg", "b.jpg"}) {
    std::ofstream(root.path() / "images" / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(jpeg.data()), static_cast<std::streamsize>(jpeg.size()));
  }
  std::ofstream(root.path() / "instances.json")
      << R"({"images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}],
    "categories": [{"id": 17, "name": "cat"}, {"id": 64, "name": "plant"}], "annotations": [
    {"image_id": 1, "bbox": [0, 0, 20, 30], "category_id": 17, "iscrowd": 0, "segmentation": [[0, 0, 20, 0, 20, 30, 0, 30]]},
    {"image_id": 1, "bbox": [10, 0, 30, 30], "category_id": 64, "iscrowd": 0, "segmentation": [[10, 0, 40, 0, 40, 30, 10, 30]]}]})";
  const dataset coco = open_coco((root.path() / "instances.json").string(), (root.path() / "images").string());
  loader_options options = testing::one_epoch_in_order();
  options.batch_size = 2;
  loader all(coco, options, image("jpg").resize(height, width), mask("segmentation").follows("jpg"),
             boxes("json").follows("jpg").key("boxes").with("classes").with("iscrowd"));
  const std::optional<batch> got = all.next_blocking();
  const auto map = testing::values_of<std::uint8_t>(*got, "segmentation");
  for (std::size_t i = 0; i < map.size(); ++i) {
    const bool is_first = i < std::size_t{width} * height;
    ASSERT_EQ(map[i], !is_first ? 0 : i % width < 10 ? 17 : 64) << i;
  }
  EXPECT_EQ(testing::values_of<std::int64_t>(*got, "json.classes"), (std::vector<std::int64_t>{0, 1}));
}

// The picture's file is whole.
TEST(following, says_where_the_annotations_of_coco_are_damaged) {
  const watchdog dog("a bad segmentation of open_coco");
  const testing::temporary_directory root;
  std::filesystem::create_directory(root.path() / "images");
  const std::vector<std::byte> jpeg = testing::make_jpeg(testing::make_texture(1, width, height), {});
  std::ofstream(root.path() / "images" / "a.jpg", std::ios::binary)
      .write(reinterpret_cast<const char*>(jpeg.data()), static_cast<std::streamsize>(jpeg.size()));
  const std::string text =
      R"({"images": [{"id": 1, "file_name": "a.jpg"}], "categories": [{"id": 17, "name": "cat"}], "annotations": [
    {"image_id": 1, "bbox": [0, 0, 20, 30], "category_id": 17, "iscrowd": 0, "segmentation": [[0, 0, 20, 0, 20, 30]]},
    {"image_id": 1, "bbox": [10, 0, 30, 30], "category_id": 17, "iscrowd": 0, "segmentation": [[10, 0, 40]]}]})";
  std::ofstream(root.path() / "instances.json") << text;
  const dataset coco = open_coco((root.path() / "instances.json").string(), (root.path() / "images").string());
  loader_options options = testing::one_epoch_in_order();
  options.batch_size = 1;
  options.on_corrupt = corrupt_policy::skip;
  options.journal = root.path() / "journal";
  static_cast<void>(
      testing::run_all(coco, options, {image("jpg").center_crop(8), mask("segmentation").follows("jpg")}));
  const std::string journal = testing::whole_file(options.journal);
  EXPECT_THAT(journal, HasSubstr(str_cat("segmentation: object 1, at byte ", text.find("[[10, 0, 40]]"),
                                         " of the annotations: an outline of 3 numbers")));
  EXPECT_THAT(journal, ::testing::Not(HasSubstr("images/a.jpg")));
}

TEST(following, says_what_is_wrong_with_a_segmentation) {
  const watchdog dog("bad segmentations");
  const std::vector<std::byte> jpeg = testing::make_jpeg(testing::make_texture(1, width, height), {});
  const auto reason = [&](const std::string& categories, const std::string& objects) {
    std::vector<fake_sample> samples(1);
    const std::string json = str_cat("{\"categories\": [", categories, "], \"segmentation\": ", objects, "}");
    samples[0].members = {{"jpg", jpeg}, {"seg", testing::to_bytes(json)}};
    loader_options options = testing::one_epoch_in_order();
    options.batch_size = 1;
    const seen_run run =
        testing::run_all(fake_dataset(samples), options, {image("jpg").center_crop(8), mask("seg").follows("jpg")});
    return run.failed == errc::corrupt ? run.message : "no such error: " + run.message;
  };
  const auto of = [](const std::string& counts) { return "[{\"size\": [30, 40], \"counts\": " + counts + "}]"; };
  EXPECT_THAT(reason("1", "[[[1, 2, 3]]]"), HasSubstr("seg: object 0: an outline of 3 numbers; a corner has 2"));
  EXPECT_THAT(reason("1", "[[[1, 1e9]]]"), HasSubstr("seg: object 0: a corner at 1e+09"));
  EXPECT_THAT(reason("1", "[[[1, nan]]]"), HasSubstr("seg: object 0: a corner at nan"));
  EXPECT_THAT(reason("1", "[[[1, 2, 5, 6], [1, 1, 8, 1, 8, 8]]]"),
              HasSubstr("seg: object 0: an outline of 4 numbers, which pycocotools refuses; one of 3 corners has 6"));
  EXPECT_THAT(reason("1, 2", "[null, [[], [1, 2]]]"), HasSubstr("seg: object 1: an outline of 2 numbers"));
  EXPECT_THAT(reason("1", of("[1.5, 1198.5]")), HasSubstr("a run of 1.5 pixels"));
  EXPECT_THAT(reason("1", "[{\"size\": [30, 40, 1], \"counts\": [1200]}]"), HasSubstr("a size of 3 numbers"));
  EXPECT_THAT(reason("1, 2", "[null, [[1, \"2\"]]]"), HasSubstr("seg: object 1: '\"2\"]]]' is no number"));
  EXPECT_THAT(reason("1", "[[1, 2]]"), HasSubstr("seg: object 0: '1, 2]]' stands where '[' is expected"));
  // A list of places that is damaged too hides nothing.
  EXPECT_THAT(reason("1], \"at\": [\"x\"", "[[[1, 2, 3]]]"), HasSubstr("seg: object 0: an outline of 3 numbers"));
  EXPECT_THAT(reason("1", "[]"), HasSubstr("seg: has 0 segmentations, 1 categories and 1 of iscrowd"));
  EXPECT_THAT(reason("1", "[null, null]"), HasSubstr("seg: has 2 segmentations, 1 categories"));
  EXPECT_THAT(reason("1", "3"), HasSubstr("seg: member 'segmentation' is no list"));
  EXPECT_THAT(reason("1", "[{\"size\": [40, 30], \"counts\": [1200]}]"),
              HasSubstr("seg: object 0: runs of 40, 30 pixels (height, width), and the picture has 30, 40"));
  EXPECT_THAT(reason("1", of("[1199]")), HasSubstr("its runs have 1199 pixels, and the picture has 1200"));
  EXPECT_THAT(reason("1", of("[9223372036854775807, 5]")), HasSubstr("its runs have more than 1200 pixels"));
  EXPECT_THAT(reason("1", of("[1201, -1]")), HasSubstr("more than 1200 pixels"));
  EXPECT_THAT(reason("1", of("[-1, 1201]")), HasSubstr("a run of -1 pixels"));
  EXPECT_THAT(reason("1", of("\"`U\"")), HasSubstr("the text of its runs ends within one"));
  EXPECT_THAT(reason("1", of("\"0~\"")), HasSubstr("the text of its runs is none of pycocotools'"));
  EXPECT_THAT(reason("1", of("\"oooooooooooo\"")), HasSubstr("the text of its runs is none of pycocotools'"));
  EXPECT_THAT(reason("1", of("\"@\"")), HasSubstr("a run of -16 pixels"));
  EXPECT_THAT(reason("300", "[[[0, 0, 40, 0, 40, 30, 0, 30]]]"),
              HasSubstr("seg: category 300 is none of u8; mask::as() says another type"));
}

// pycocotools: annToMask() of each object: its pixels, whatever covers it. 300 and 319 of these are seen in the map as well.
TEST(following, has_a_plane_for_each_object_of_coco) {
  const watchdog dog("planes of a segmentation");
  std::vector<fake_sample> samples(1);
  samples[0].members = {{"jpg", testing::make_jpeg(testing::make_texture(1, width, height), {})},
                        {"seg", testing::to_bytes(segmentation)}};
  loader_options options = testing::one_epoch_in_order();
  options.batch_size = 1;
  const mask map = mask("map").from("seg").follows("jpg");
  const image whole = image("jpg").resize(height, width);
  loader all(fake_dataset(samples), options, whole, mask("seg").follows("jpg").instances(5), map);
  const std::optional<batch> got = all.next_blocking();
  EXPECT_EQ((*got)["seg"].shape, (dimensions{1, 5, height, width}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*got, "seg.count"), (std::vector<std::int64_t>{3}));
  const auto planes = testing::values_of<std::uint8_t>(*got, "seg");
  const auto numbers = testing::values_of<std::uint8_t>(*got, "map");
  constexpr std::size_t pixels = std::size_t{width} * height;
  for (std::size_t i = 0; i < pixels; ++i) {
    const int expected = planes[pixels + i] == 1 ? 90 : planes[i] == 1 ? 3 : planes[2 * pixels + i] == 1 ? 255 : 0;
    ASSERT_EQ(numbers[i], expected) << i;
    ASSERT_EQ(planes[3 * pixels + i] + planes[4 * pixels + i], 0);
  }
  loader two(fake_dataset(samples), options, whole, mask("seg").follows("jpg").instances(2));
  const std::optional<batch> some = two.next_blocking();
  EXPECT_EQ(testing::values_of<std::int64_t>(*some, "seg.count"), (std::vector<std::int64_t>{2}));
  const auto first = testing::values_of<std::uint8_t>(*some, "seg");
  EXPECT_TRUE(std::equal(first.begin(), first.end(), planes.begin()));
}

// Numbers 1 to n of a PNG and of an array, through all that a picture goes through.
TEST(following, has_a_plane_for_each_number_of_a_mask) {
  const watchdog dog("planes of numbers");
  std::vector<fake_sample> samples = make_scenes(12);
  for (fake_sample& each : samples) {
    // Numbers 1, 2, 3 and 255 in the quarters; 3 is number 2 of another mask, so that it has a gap.
    std::vector<std::uint16_t> numbers;
    for (const std::uint16_t number : classes_of(0)) numbers.push_back(number == 3 ? 255 : number + 1);
    each.find("seg.png")->bytes = testing::make_mask_png(width, height, numbers, 8, false);
    std::vector<std::int32_t> wide(numbers.begin(), numbers.end());
    std::replace(wide.begin(), wide.end(), 2, 5);
    each.members.push_back({"seg.npy", testing::to_bytes(testing::npy_text(
                                           testing::npy_dict("<i4", str_cat(height, ", ", width)),
                                           {reinterpret_cast<const char*>(wide.data()), wide.size() * 4}))});
  }
  loader train(fake_dataset(samples), small_options(), photo(), mask("seg.png").follows("jpg").instances(4),
               mask("map").from("seg.png").follows("jpg").ignore(0), mask("seg.npy").follows("jpg").instances(3));
  for (const batch& each : train.blocking()) {
    const auto planes = testing::values_of<std::uint8_t>(each, "seg.png");
    const auto wide = testing::values_of<std::uint8_t>(each, "seg.npy");
    const auto map = testing::values_of<std::uint8_t>(each, "map");
    constexpr std::size_t pixels = std::size_t{24} * 24;
    for (std::uint32_t row = 0; row < each.valid_rows(); ++row) {
      EXPECT_EQ(testing::values_of<std::int64_t>(each, "seg.png.count")[row], 3);
      EXPECT_EQ(testing::values_of<std::int64_t>(each, "seg.npy.count")[row], 3);  // 5, of which three have planes
      for (std::size_t i = 0; i < pixels; ++i) {
        const std::uint8_t number = map[row * pixels + i];
        for (std::size_t plane = 0; plane < 4; ++plane) {
          ASSERT_EQ(planes[(row * 4 + plane) * pixels + i], number == plane + 1 && number != 255 ? 1 : 0) << i;
        }
        for (std::size_t plane = 0; plane < 3; ++plane) {
          ASSERT_EQ(wide[(row * 3 + plane) * pixels + i], number == plane + 1 && number != 2 ? 1 : 0) << i;
        }
      }
    }
  }
}

// Which number is ignored goes by the sample that has it: 255 may be an object.
TEST(following, has_a_plane_for_number_255_where_it_is_an_object) {
  const watchdog dog("object 254");
  const auto numbers_to = [](std::size_t most) {
    std::vector<std::uint16_t> numbers;
    for (std::size_t i = 0; i < std::size_t{width} * height; ++i) {
      numbers.push_back(static_cast<std::uint16_t>(i % (most + 1)));
    }
    return numbers;
  };
  const std::vector<std::int32_t> wide = [&] {
    const std::vector<std::uint16_t> numbers = numbers_to(300);
    return std::vector<std::int32_t>(numbers.begin(), numbers.end());
  }();
  std::string things;
  for (int i = 0; i < 255; ++i) things += str_cat(i == 0 ? "" : ",", "[0, 0, ", width, ", ", height, "]");
  std::vector<fake_sample> samples = make_scenes(2);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i].find("json")->bytes = testing::to_bytes(str_cat("{\"boxes\": [", things, "]}"));
    samples[i].find("seg.png")->bytes =
        testing::make_mask_png(width, height, numbers_to(i == 0 ? 255 : 300), i == 0 ? 8 : 16, false);
    samples[i].members.push_back({"of_boxes.png", testing::make_mask_png(width, height, numbers_to(255), 8, false)});
    samples[i].members.push_back({"seg.npy", testing::to_bytes(testing::npy_text(
                                                 testing::npy_dict("<i4", str_cat(height, ", ", width)),
                                                 {reinterpret_cast<const char*>(wide.data()), wide.size() * 4}))});
  }
  loader all(fake_dataset(samples), testing::one_epoch_in_order(), image("jpg").resize(height, width),
             mask("seg.png").follows("jpg").instances(300), mask("seg.npy").follows("jpg").instances(300),
             boxes("json").follows("jpg").key("boxes").padded(255).masks("of_boxes.png"));
  const std::optional<batch> got = all.next_blocking();
  ASSERT_TRUE(got);
  constexpr std::size_t pixels = std::size_t{width} * height;
  // How often a number is there.
  const auto expected = [](std::size_t number, std::size_t most) {
    return static_cast<std::int64_t>((pixels - number - 1) / (most + 1) + 1);
  };
  const auto shown = [&](const char* output, std::size_t planes, std::size_t row, std::size_t object) {
    const auto bytes = testing::values_of<std::uint8_t>(*got, output);
    const auto* const plane = bytes.data() + (row * planes + object) * pixels;
    return static_cast<std::int64_t>(std::count(plane, plane + pixels, 1));
  };
  for (const std::size_t object : {0U, 253U, 254U}) {
    EXPECT_EQ(shown("seg.png", 300, 0, object), object == 254 ? 0 : expected(object + 1, 255)) << object;
    EXPECT_EQ(shown("seg.png", 300, 1, object), expected(object + 1, 300)) << object;
    for (const std::size_t row : {0U, 1U}) {
      EXPECT_EQ(shown("seg.npy", 300, row, object), expected(object + 1, 300)) << object;
      EXPECT_EQ(shown("json.masks", 255, row, object), expected(object + 1, 255)) << object;
    }
  }
  EXPECT_EQ(shown("seg.npy", 300, 0, 299), expected(300, 300));
  EXPECT_EQ(testing::values_of<std::int64_t>(*got, "seg.png.count"), (std::vector<std::int64_t>{254, 300}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*got, "seg.npy.count"), (std::vector<std::int64_t>{300, 300}));
}

// Sample i has i % 4 objects: boxes, and outlines of the same corners.
std::vector<fake_sample> make_objects(std::size_t count) {
  std::vector<fake_sample> samples = make_scenes(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::string shapes;
    std::string zeros;
    std::vector<std::uint16_t> numbers(std::size_t{width} * height);
    for (std::size_t k = 0; k < i % 4; ++k) {
      const std::size_t left = 2 + 9 * k;
      const std::size_t top = 3 + 7 * k;
      const std::size_t right = left + 8;
      const std::size_t bottom = top + 6;
      str_append(shapes, k == 0 ? "" : ", ", "[[", left, ",", top, ",", right, ",", top, ",", right, ",", bottom, ",",
                 left, ",", bottom, "]]");
      str_append(zeros, k == 0 ? "" : ",", k);
      for (std::size_t y = top; y < bottom; ++y) {
        for (std::size_t x = left; x < right; ++x) numbers[y * width + x] = static_cast<std::uint16_t>(k + 1);
      }
    }
    std::string boxes;
    for (std::size_t k = 0; k < i % 4; ++k) {
      str_append(boxes, k == 0 ? "" : ", ", "[", 2 + 9 * k, ", ", 3 + 7 * k, ", ", 10 + 9 * k, ", ", 9 + 7 * k, "]");
    }
    samples[i].find("json")->bytes = testing::to_bytes(str_cat("{\"boxes\": [", boxes, "]}"));
    samples[i].find("seg.png")->bytes = testing::make_mask_png(width, height, numbers, 8, false);
    samples[i].members.push_back(
        {"seg", testing::to_bytes(str_cat("{\"categories\": [", zeros, "], \"segmentation\": [", shapes, "]}"))});
  }
  return samples;
}

TEST(following, keeps_masks_of_boxes_in_step_with_them) {
  const watchdog dog("masks of boxes");
  const std::vector<fake_sample> samples = make_objects(21);
  const auto fields = [](const char* member) {
    return std::vector<field>{image("jpg").random_resized_crop(24).random_flip(),
                              boxes("json").follows("jpg").key("boxes").min_area(6).padded(2).masks(member),
                              mask("all").from("seg").follows("jpg").instances(4)};
  };
  const fake_dataset set(samples);
  std::size_t dropped = 0;
  loader train(set, small_options(), fields("seg"));
  for (const batch& each : train.blocking()) {
    const auto count = testing::values_of<std::int64_t>(each, "json.count");
    const auto kept = testing::values_of<std::int64_t>(each, "json.kept");
    const auto objects = testing::values_of<std::int64_t>(each, "all.count");
    const auto planes = testing::values_of<std::uint8_t>(each, "json.masks");
    const auto all = testing::values_of<std::uint8_t>(each, "all");
    EXPECT_EQ(each["json.masks"].shape, (dimensions{each["jpg"].shape[0], 2, 24, 24}));
    constexpr std::size_t pixels = std::size_t{24} * 24;
    for (std::uint32_t row = 0; row < each.valid_rows(); ++row) {
      dropped += objects[row] != count[row] ? 1 : 0;
      for (std::int64_t i = 0; i < 2; ++i) {
        const auto* const plane = planes.data() + (row * 2 + static_cast<std::size_t>(i)) * pixels;
        const std::vector<std::uint8_t> made(plane, plane + pixels);
        std::vector<std::uint8_t> expected(pixels, 0);
        if (i < count[row]) {
          const auto object = static_cast<std::size_t>(kept[row * 2 + static_cast<std::size_t>(i)]);
          const auto* const of = all.data() + (row * 4 + object) * pixels;
          expected.assign(of, of + pixels);
          EXPECT_NE(expected, std::vector<std::uint8_t>(pixels, 0));
        }
        ASSERT_EQ(made, expected);
      }
    }
  }
  EXPECT_GT(dropped, 3U);
  // Boxes are what they are without masks; and numbers of a PNG are the same objects.
  std::vector<field> plain{fields("seg")[0], boxes("json").follows("jpg").key("boxes").min_area(6).padded(2)};
  EXPECT_EQ(rows_of(set, small_options(), "json", fields("seg")), rows_of(set, small_options(), "json", plain));
  EXPECT_EQ(rows_of(set, small_options(), "json.masks", fields("seg")),
            rows_of(set, small_options(), "json.masks", fields("seg.png")));
}

TEST(following, gives_the_same_masks_of_boxes_with_any_threads_and_the_least_budget) {
  const watchdog dog("masks of boxes, with threads");
  const std::vector<fake_sample> samples = make_objects(21);
  const auto fields = [] {
    return std::vector<field>{boxes("json").follows("jpg").key("boxes").padded(3).masks("seg"), photo(),
                              mask("seg.png").follows("jpg").instances(3)};
  };
  const seen_run expected = testing::run_all(fake_dataset(samples), small_options(), fields());
  ASSERT_FALSE(expected.failed) << expected.message;
  for (const auto layout : {testing::fake_layout::columns, testing::fake_layout::file_per_member}) {
    loader_options options = small_options();
    options.decode_threads = 5;
    options.finish_on_device = layout == testing::fake_layout::columns;
    const fake_dataset again(samples, {.layout = layout});
    options.host_bytes_max = std::size_t{256} << 20;
    options.host_bytes_max = loader(again, options, fields()).plan().host_bytes_least;
    const seen_run got = testing::run_all(again, options, fields());
    ASSERT_FALSE(got.failed) << got.message;
    EXPECT_EQ(got.batches, expected.batches);
  }
}

TEST(following, says_what_is_wrong_with_masks_of_boxes) {
  const watchdog dog("bad masks of boxes");
  const auto reason = [&](std::size_t sample, const char* member, const std::function<void(fake_sample&)>& change,
                          std::optional<std::size_t> bytes_max = std::nullopt) {
    std::vector<fake_sample> samples{make_objects(4)[sample]};
    change(samples[0]);
    loader_options options = testing::one_epoch_in_order();
    options.batch_size = 1;
    field target = boxes("json").follows("jpg").key("boxes").padded(3).masks(member);
    if (bytes_max) target = mask(member).follows("jpg").instances(3).bytes_max(*bytes_max);
    const seen_run run = testing::run_all(fake_dataset(samples), options, {image("jpg").center_crop(8), target});
    return run.failed == errc::corrupt ? run.message : "no such error: " + run.message;
  };
  const auto boxes_of = [](const char* json) {
    return [=](fake_sample& each) { each.find("json")->bytes = testing::to_bytes(json); };
  };
  EXPECT_THAT(reason(3, "seg", boxes_of("{\"boxes\": [[1, 2, 3, 4]]}")),
              HasSubstr("json.masks of 'seg': has 3 segmentations, and there are 1 boxes"));
  EXPECT_THAT(reason(3, "seg.png", boxes_of("{\"boxes\": [[1, 2, 3, 4]]}")),
              HasSubstr("json.masks of 'seg.png': number 3 is of no box, of which there are 1"));
  EXPECT_THAT(reason(3, "seg", [](fake_sample& each) { each.find("seg")->bytes = testing::to_bytes("{}"); }),
              HasSubstr("json.masks of 'seg': the JSON has no member 'categories'"));
  EXPECT_THAT(reason(3, "seg", [](fake_sample&) {}, 20), HasSubstr("bytes_max() says at most 20"));
  EXPECT_THAT(reason(3, "seg.png",
                     [](fake_sample& each) {
                       testing::rgb_picture seen;
                       each.find("seg.png")->bytes =
                           testing::make_png(testing::make_texture(1, width, height), {}, seen);
                     }),
              HasSubstr("json.masks of 'seg.png': RGB, and objects are numbers: a PNG of grey, or of a palette"));
  EXPECT_THAT(
      reason(1, "seg.png",
             [](fake_sample& each) {
               each.find("seg.png")->bytes = testing::make_mask_png(2, 2, {0, 1, 0, 1}, 8, false);
             }),
      HasSubstr("json.masks of 'seg.png': a mask of 2 x 2 pixels, and its picture has 40 x 30; masks of boxes are "
                "of its size: scale the file to it, by the nearest pixel"));
}

// Corners that numpy gives: of the crop of (10, 5, 30, 25), as it is.
TEST(following, moves_rotated_boxes_into_the_row) {
  const watchdog dog("rotated boxes");
  std::vector<fake_sample> samples(1);
  samples[0].members = {
      {"jpg", testing::make_jpeg(testing::make_texture(1, width, height), {})},
      {"json",
       testing::to_bytes("{\"b\": [[20, 15, 8, 4, 90], [3, 3, 4, 2, 10], [10, 15, 6, 6, 45]], \"c\": [4, 5, 6]}")},
      {"dota", testing::to_bytes("[[18, 19, 18, 11, 22, 11, 22, 19]]")}};
  const fake_dataset set(samples);
  loader_options options = testing::one_epoch_in_order();
  options.batch_size = 1;
  const boxes turned = boxes("json").follows("jpg").key("b").labels("c").in(box_format::cxcywhr);
  const auto near = [](std::vector<float> values) { return ::testing::Pointwise(::testing::FloatNear(1e-5F), values); };
  loader all(set, options, image("jpg").center_crop(20), turned, boxes("dota").follows("jpg").in(box_format::xyxyxyxy));
  const std::optional<batch> got = all.next_blocking();
  EXPECT_EQ((*got)["json"].shape, (dimensions{2, 8}));
  constexpr float half = 4.2426407F;  // of a diagonal
  EXPECT_THAT(testing::values_of<float>(*got, "json"),
              near({8, 14, 8, 6, 12, 6, 12, 14, -half, 10, 0, 10 - half, half, 10, 0, 10 + half}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*got, "json.labels"), (std::vector<std::int64_t>{4, 6}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*got, "json.kept"), (std::vector<std::int64_t>{0, 2}));
  EXPECT_THAT(testing::values_of<float>(*got, "dota"), near({8, 14, 8, 6, 12, 6, 12, 14}));

  // Half of the last one is left.
  loader some(set, options, image("jpg").center_crop(20), turned.min_visible(0.51).padded(2, -1));
  const std::optional<batch> rows = some.next_blocking();
  EXPECT_EQ((*rows)["json"].shape, (dimensions{1, 2, 8}));
  EXPECT_THAT(testing::values_of<float>(*rows, "json"),
              near({8, 14, 8, 6, 12, 6, 12, 14, -1, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*rows, "json.count"), (std::vector<std::int64_t>{1}));
  loader large(set, options, image("jpg").center_crop(20), turned.min_area(18.1));
  EXPECT_EQ(testing::values_of<std::int64_t>(*large.next_blocking(), "json.labels"), (std::vector<std::int64_t>{4}));
}

TEST(following, takes_lists_beside_the_boxes_along) {
  const watchdog dog("lists beside boxes");
  std::vector<fake_sample> samples(2);
  const std::vector<std::byte> jpeg = testing::make_jpeg(testing::make_texture(1, width, height), {});
  samples[0].members = {
      {"jpg", jpeg},
      {"json", testing::to_bytes("{\"b\": [[0, 0, 5, 5], [10, 5, 30, 25], [12, 6, 14, 8]], \"crowd\": [1, 0, "
                                 "1], \"area\": [20.5, 399.25, 3], \"c\": [7, 8, 9]}")}};
  samples[1].members = {{"jpg", jpeg},
                        {"json", testing::to_bytes("{\"b\": [], \"crowd\": [], \"area\": [], \"c\": []}")}};
  const fake_dataset set(samples);
  loader_options options = testing::one_epoch_in_order();
  options.batch_size = 2;
  const boxes plain = boxes("json").follows("jpg").key("b").labels("c").with("crowd").with("area", dtype::f32);
  loader ragged(set, options, image("jpg").center_crop(20), plain);
  const std::optional<batch> got = ragged.next_blocking();
  EXPECT_EQ(testing::values_of<std::int64_t>(*got, "json.kept"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*got, "json.labels"), (std::vector<std::int64_t>{8, 9}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*got, "json.crowd"), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(testing::values_of<float>(*got, "json.area"), (std::vector<float>{399.25, 3}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*got, "json.crowd.offsets"), (std::vector<std::int64_t>{0, 2, 2}));

  loader rows(set, options, image("jpg").center_crop(20), plain.padded(3, -1));
  const std::optional<batch> padded = rows.next_blocking();
  EXPECT_EQ((*padded)["json"].shape, (dimensions{2, 3, 4}));
  EXPECT_EQ((*padded)["json.labels"].shape, (dimensions{2, 3}));
  EXPECT_EQ((*padded)["json.count"].shape, (dimensions{2}));
  EXPECT_EQ(
      testing::values_of<float>(*padded, "json"),
      (std::vector<float>{0, 0, 20, 20, 2, 1, 4, 3, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*padded, "json.kept"), (std::vector<std::int64_t>{1, 2, -1, -1, -1, -1}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*padded, "json.labels"),
            (std::vector<std::int64_t>{8, 9, -1, -1, -1, -1}));
  EXPECT_EQ(testing::values_of<float>(*padded, "json.area"), (std::vector<float>{399.25, 3, -1, -1, -1, -1}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*padded, "json.count"), (std::vector<std::int64_t>{2, 0}));

  loader one(set, options, image("jpg").center_crop(20), plain.padded(1));
  const std::optional<batch> first = one.next_blocking();
  EXPECT_EQ(testing::values_of<float>(*first, "json"), (std::vector<float>{0, 0, 20, 20, 0, 0, 0, 0}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*first, "json.labels"), (std::vector<std::int64_t>{8, 0}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*first, "json.count"), (std::vector<std::int64_t>{1, 0}));
}

TEST(following, takes_no_measure_that_f32_has_not) {
  const watchdog dog("measures beside boxes");
  for (const char* const area : {"NaN", "Infinity", "1e39"}) {
    std::vector<fake_sample> samples(1);
    samples[0].members = {{"jpg", testing::make_jpeg(testing::make_texture(1, width, height), {})},
                          {"json", testing::to_bytes(str_cat("{\"b\": [[0, 0, 5, 5]], \"area\": [", area, "]}"))}};
    loader_options options = testing::one_epoch_in_order();
    options.batch_size = 1;
    const seen_run run = testing::run_all(
        fake_dataset(samples), options,
        {image("jpg").center_crop(20), boxes("json").follows("jpg").key("b").with("area", dtype::f32)});
    EXPECT_EQ(run.failed, errc::corrupt) << area;
    EXPECT_THAT(run.message, HasSubstr("member 'area': element 0 is ")) << area;
  }
}

TEST(following, pads_boxes_and_gives_the_same_batches_with_any_threads) {
  const watchdog dog("padded boxes");
  const std::vector<fake_sample> samples = make_scenes(21);
  const auto fields = [] {
    return std::vector<field>{photo(), boxes("json").follows("jpg").key("boxes").with("classes").padded(2, -1)};
  };
  const seen_run expected = testing::run_all(fake_dataset(samples), small_options(), fields());
  ASSERT_FALSE(expected.failed) << expected.message;
  for (const auto layout : {testing::fake_layout::columns, testing::fake_layout::file_per_member}) {
    loader_options options = small_options();
    options.decode_threads = 5;
    const seen_run got = testing::run_all(fake_dataset(samples, {.layout = layout}), options, fields());
    ASSERT_FALSE(got.failed) << got.message;
    EXPECT_EQ(got.batches, expected.batches);
  }
}

// Of what is outside there is no measure.
TEST(following, gives_depths_as_they_are_stored) {
  const watchdog dog("depths");
  std::vector<std::uint16_t> millimetres(std::size_t{width} * height);
  std::vector<float> metres(millimetres.size());
  for (std::size_t i = 0; i < millimetres.size(); ++i) {
    millimetres[i] = static_cast<std::uint16_t>(60'000 - 7 * i);
    metres[i] = static_cast<float>(millimetres[i]) / 1000 + 0.25F;
  }
  std::vector<fake_sample> samples(1);
  samples[0].members = {
      {"jpg", testing::make_jpeg(testing::make_texture(1, width, height), {})},
      {"depth.png", testing::make_mask_png(width, height, millimetres, 16, false)},
      {"depth.npy", testing::to_bytes(testing::npy_text(
                        testing::npy_dict("<f4", str_cat(height, ", ", width)),
                        {reinterpret_cast<const char*>(metres.data()), metres.size() * sizeof(float)}))}};
  loader_options options = testing::one_epoch_in_order();
  options.batch_size = 1;
  loader all(fake_dataset(samples), options, image("jpg").center_crop(width + 2).random_flip(1),
             depth("depth.png").follows("jpg"), depth("metres").from("depth.npy").follows("jpg"));
  const std::optional<batch> got = all.next_blocking();
  constexpr int side = width + 2;
  constexpr int above = (side - height) / 2;
  EXPECT_EQ((*got)["depth.png"].shape, (dimensions{1, side, side}));
  const auto whole = testing::values_of<std::uint16_t>(*got, "depth.png");
  const auto real = testing::values_of<float>(*got, "metres");
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const auto at = static_cast<std::size_t>(y * side + x);
      const bool is_outside = y < above || y >= above + height || x < 1 || x > width;
      const auto from = static_cast<std::size_t>(is_outside ? 0 : (y - above) * width + width - x);
      ASSERT_EQ(whole[at], is_outside ? 0 : millimetres[from]) << y << ", " << x;
      ASSERT_EQ(real[at], is_outside ? 0 : metres[from]) << y << ", " << x;
    }
  }
}

TEST(following, takes_no_colours_for_a_depth) {
  const watchdog dog("colours of a depth");
  const std::vector<std::byte> jpeg = testing::make_jpeg(testing::make_texture(1, width, height), {});
  const auto reason = [&](const std::vector<std::byte>& stored) {
    std::vector<fake_sample> samples(1);
    samples[0].members = {{"jpg", jpeg}, {"depth.png", stored}};
    loader_options options = testing::one_epoch_in_order();
    options.batch_size = 1;
    return testing::run_all(fake_dataset(samples), options,
                            {image("jpg").center_crop(8), depth("depth.png").follows("jpg")})
        .message;
  };
  EXPECT_THAT(reason(testing::make_mask_png(width, height, classes_of(1), 8, true)),
              HasSubstr("depth.png: a depth is grey, and this PNG is of a palette"));
  EXPECT_THAT(reason(jpeg), HasSubstr("depth.png: a depth is a PNG or an array"));
  EXPECT_THAT(reason(testing::make_mask_png(height, width, classes_of(1), 8, false)),
              HasSubstr("a depth of 30 x 40 pixels, and its picture has 40 x 30; depth::scaled() lays it"));
}

// A user's target: the middle of the row, in the stored picture; and the bytes of two members.
custom places_of_rows() {
  return custom({{.name = "matrix", .type = dtype::f64, .row_shape = {9}},
                 {.name = "bytes", .type = dtype::i64, .row_shape = {}}},
                [](custom_sample& sample, std::span<custom_row> rows) -> std::string {
                  if (sample.picture == nullptr) return "no picture";
                  std::memcpy(rows[0].bytes.data(), sample.picture->matrix.data(), sizeof sample.picture->matrix);
                  std::int64_t bytes = 0;
                  for (const auto& each : sample.members) bytes += static_cast<std::int64_t>(each.size());
                  std::memcpy(rows[1].bytes.data(), &bytes, sizeof bytes);
                  return "";
                })
      .described_as("places");
}

TEST(following, tells_a_function_of_the_users_where_the_picture_lies) {
  const watchdog dog("functions that follow");
  const std::vector<fake_sample> samples = make_scenes(19);
  for (const bool has_two : {false, true}) {
    const custom places =
        (has_two ? places_of_rows().from({"json", "cls"}) : places_of_rows().from("json")).follows("jpg");
    loader_options options = small_options();
    std::uint32_t rows = 0;
    loader all(fake_dataset(samples), options, places, photo(), label("cls"));
    for (const batch& each : all.blocking()) {
      const auto matrices = testing::values_of<double>(each, "matrix");
      const auto bytes = testing::values_of<std::int64_t>(each, "bytes");
      const auto labels = testing::values_of<std::int64_t>(each, "cls");
      for (std::uint32_t row = 0; row < each.valid_rows(); ++row, ++rows) {
        const auto expected = each.placement("jpg", row).matrix;
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), matrices.begin() + 9 * row));
        const std::size_t json = json_of(static_cast<std::size_t>(labels[row] - 1000)).size();
        EXPECT_EQ(bytes[row], static_cast<std::int64_t>(json + (has_two ? 4 : 0)));
      }
    }
    EXPECT_EQ(rows, 19U);
  }
}

TEST(following, of_a_function_needs_the_one_that_is_told) {
  const fake_dataset set(make_scenes(2));
  const auto said = [&](const custom& how) {
    return testing::message_of(errc::usage, [&] { loader(set, small_options(), image("jpg").center_crop(8), how); });
  };
  const custom plain(
      "json", dtype::u8, {},
      [](std::span<const std::byte>, const sample_context&, std::span<std::byte>) { return std::string(); });
  EXPECT_THAT(said(plain.follows("jpg")), HasSubstr("field 'json' follows 'jpg', and its function takes one member"));
  EXPECT_THAT(said(places_of_rows().from("json").follows("png")),
              HasSubstr("field 'matrix' follows 'png', and the loader has no such field"));
}

TEST(following, loads_with_the_least_budget_that_is_named) {
  const watchdog dog("the least budget of followers");
  const fake_dataset set(make_scenes(21));
  loader_options options = small_options();
  const seen_run expected = testing::run_all(set, options, all_of_them());
  options.host_bytes_max = loader(set, options, all_of_them()).plan().host_bytes_least;
  const seen_run got = testing::run_all(set, options, all_of_them());
  ASSERT_FALSE(got.failed) << got.message;
  EXPECT_EQ(got.batches, expected.batches);
}

// Numbers out of JSON lie in scratch memory: what a sample takes of it is bounded, and named.
TEST(following, counts_the_numbers_of_targets_as_scratch_memory) {
  const watchdog dog("numbers in scratch memory");
  std::vector<fake_sample> samples = make_scenes(3);
  loader_options options = testing::one_epoch_in_order();
  options.batch_size = 1;
  options.decode_threads = 1;
  EXPECT_THAT(loader(fake_dataset(samples), options, all_of_them()).plan().to_string(),
              HasSubstr(" for masks, boxes and points and the numbers in them"));
  // Each number takes 8 bytes, of boxes and of what stands in the room for labels: 24 MiB of 4 MiB of text.
  std::string zeros = "0";
  for (std::size_t i = 1; i < 1'500'000; ++i) zeros += ",0";
  samples[1].find("json")->bytes =
      testing::to_bytes(str_cat("{\"boxes\": [], \"classes\": [], \"keypoints\": [", zeros, "]}"));
  samples[1].find("seg.png")->bytes = testing::to_bytes(
      str_cat("{\"categories\": [1], \"segmentation\": [{\"size\": [30, 40], \"counts\": [1200,", zeros, "]}]}"));
  const auto run = [&](const field& target, std::size_t budget) {
    options.host_bytes_max = budget;
    return testing::run_all(fake_dataset(samples), options, {image("jpg").center_crop(8), target});
  };
  for (const field& target : {field(boxes("json").follows("jpg").key("boxes").labels("classes").bytes_max(1 << 23)),
                              field(mask("seg.png").follows("jpg").as(dtype::u8))}) {
    const seen_run tight = run(target, std::size_t{80} << 20);
    EXPECT_EQ(tight.failed, errc::limit) << tight.message;
    EXPECT_THAT(tight.message, HasSubstr("of scratch memory and the budget can give 20 MiB; "));
    const seen_run wide = run(target, std::size_t{512} << 20);
    EXPECT_FALSE(wide.failed) << wide.message;
  }
}

TEST(following, is_what_a_plan_advises_for_a_picture_of_numbers) {
  const fake_dataset set(make_scenes(2));
  const auto warned = [&](const image& of) { return loader(set, small_options(), of.center_crop(8)).plan().warnings; };
  EXPECT_THAT(warned(image("seg.png")),
              ::testing::Contains(HasSubstr("image 'seg.png' of 'seg.png': indexes of a palette "
                                            "become its colours; leat::mask{\"seg.png\"}")));
  EXPECT_THAT(warned(image("jpg")), ::testing::Not(::testing::Contains(HasSubstr("leat::mask"))));
}

TEST(following, has_a_place_for_pictures_alone) {
  const watchdog dog("placement");
  const fake_dataset set(make_scenes(2));
  loader all(set, testing::one_epoch_in_order(), image("jpg").center_crop(8), label("cls"));
  const std::optional<batch> got = all.next_blocking();
  EXPECT_EQ(got->placement("jpg", 1).row_width, 8);
  EXPECT_EQ(testing::message_of(errc::not_found, [&] { static_cast<void>(got->placement("cls", 0)); }),
            "no picture 'cls' in this batch; it holds jpg");
}

TEST(following, is_refused_where_there_is_no_such_picture) {
  const fake_dataset set(make_scenes(2));
  const auto said = [&](std::vector<field> fields, const std::function<void(loader_options&)>& change = {}) {
    loader_options options = small_options();
    if (change) change(options);
    return testing::message_of(errc::usage, [&] { loader(set, options, std::move(fields)); });
  };
  const image picture = image("jpg").center_crop(8);
  EXPECT_EQ(said({picture, mask("seg.png")}),
            "field 'seg.png' follows no picture; say which field it belongs to: .follows(\"jpg\")");
  EXPECT_EQ(said({picture, mask("seg.png").follows("jpeg")}),
            "field 'seg.png' follows 'jpeg', and the loader has no such field; pictures are jpg; did you mean 'jpg'?");
  EXPECT_EQ(said({picture, mask("seg.png").follows("seg.png")}),
            "field 'seg.png' follows itself; name the picture's field");
  EXPECT_EQ(said({picture, label("cls"), mask("seg.png").follows("cls")}),
            "field 'seg.png' follows 'cls', which makes no pictures; pictures are jpg");
  EXPECT_EQ(said({mask("seg.png").follows("json"), boxes("json").follows("seg.png")}),
            "field 'seg.png' follows 'json', which makes no pictures; the loader has no picture");
  EXPECT_THAT(said({picture, mask("seg.png").follows("jpg")}, [](loader_options& o) { o.mix = cutmix(); }),
              HasSubstr("field 'seg.png' follows the picture 'jpg', whose rows are mixed"));
  EXPECT_THAT(
      said({picture, places_of_rows().from("json").follows("jpg")}, [](loader_options& o) { o.mix = cutmix(); }),
      HasSubstr("field 'matrix' follows the picture 'jpg', whose rows are mixed"));
  EXPECT_THAT(said({picture, stack("s", {mask("seg.png").follows("jpg")})}), HasSubstr("follows a picture"));
  EXPECT_THAT(said({picture, mask("seg.png").follows("jpg").as(dtype::f32)}), HasSubstr("it has u8, u16, i32 or i64"));
  EXPECT_THAT(said({picture, mask("seg.png").follows("jpg").ignore(-1)}), HasSubstr("ignore(-1) is none of u8"));
  EXPECT_THAT(said({picture, mask("json").follows("jpg").from("cls")}), HasSubstr("holds numbers"));
  const boxes plain = boxes("json").follows("jpg");
  EXPECT_THAT(said({picture, plain.labels("c")}), HasSubstr("say their key() too"));
  EXPECT_THAT(said({picture, plain.with("c")}), HasSubstr("with(\"c\") is a key of the object that has the boxes"));
  EXPECT_THAT(said({picture, plain.in(box_format::yolo).with("c")}), HasSubstr("yolo's lines"));
  EXPECT_THAT(said({picture, plain.key("b").with("c", dtype::u8)}), HasSubstr("with(\"c\") of u8; it has i64 or f32"));
  EXPECT_THAT(said({picture, plain.key("b").with("")}), HasSubstr("give it the key of a list"));
  EXPECT_THAT(said({picture, plain.key("b").with("kept")}), HasSubstr("two outputs of a batch are called 'json.kept'"));
  EXPECT_THAT(said({picture, plain.key("b").padded(0)}), HasSubstr("padded(0): from 1 to 1000000 boxes"));
  EXPECT_THAT(said({picture, plain.key("b").masks("seg.png")}), HasSubstr("say padded() too"));
  EXPECT_THAT(said({picture, plain.key("b").padded(2).masks("seg")}), HasSubstr("'seg'"));
  const mask planes = mask("seg.png").follows("jpg").instances(2);
  EXPECT_THAT(said({picture, planes.instances(0)}), HasSubstr("instances(0): from 1 to 65535 planes"));
  EXPECT_THAT(said({picture, planes.as(dtype::u16)}), HasSubstr("leave as() out"));
  EXPECT_THAT(said({picture, planes.colors({{0, 0, 0}})}), HasSubstr("leave one out"));
  EXPECT_THAT(said({picture, planes.bytes_max(0)}), HasSubstr("bytes_max"));
}

}  // namespace
}  // namespace leat

// Mosaics of four pictures of a batch, and the masks and boxes that go along: pictures whose colours are the numbers of the masks.
#include "base/text.hpp"
#include "tests/datasets/archive.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/coded_forms.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/clip.hpp>
#include <leat/loading.hpp>
#include <leat/mosaic.hpp>
#include <leat/open.hpp>
#include <leat/targets.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
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

constexpr int side = 48;            // of rows
constexpr std::int64_t fill = 255;  // of pictures and masks
constexpr std::int64_t blobs_from = 100;

// Sample i is all i + 1, with a blob of 100 + i, which has a box; but each third sample has none. The longer side is 40.
fake_sample blob_scene(std::size_t i) {
  const int width = i % 2 == 0 ? 40 : 16 + static_cast<int>(i % 24);
  const int height = i % 2 == 0 ? 20 + static_cast<int>(i % 21) : 40;
  const int left = 2 + static_cast<int>(i * 7 % 10);
  const int top = 3 + static_cast<int>(i * 5 % 12);
  const int right = left + 3 + static_cast<int>(i % 2);
  const int bottom = top + 2 + static_cast<int>(i % 3);
  testing::rgb_picture picture{width, height, {}};
  std::vector<std::uint16_t> numbers;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool is_blob = i % 3 != 0 && x >= left && x < right && y >= top && y < bottom;
      const auto number = static_cast<std::uint8_t>(is_blob ? static_cast<std::size_t>(blobs_from) + i : i + 1);
      numbers.push_back(number);
      picture.pixels.insert(picture.pixels.end(), {number, number, number});
    }
  }
  const std::string json =
      i % 3 == 0 ? R"({"boxes": [], "classes": [], "iscrowd": []})"
                 : str_cat("{\"boxes\": [[", left, ", ", top, ", ", right, ", ", bottom, "]], \"classes\": [",
                           blobs_from + static_cast<std::int64_t>(i), "], \"iscrowd\": [", i % 2, "]}");
  testing::rgb_picture seen;
  fake_sample made;
  made.members = {{"png", testing::make_png(picture, {}, seen)},
                  {"seg.png", testing::make_mask_png(width, height, numbers, 8, false)},
                  {"json", testing::to_bytes(json)},
                  {"cls", testing::to_bytes(std::to_string(i))}};
  return made;
}

std::vector<fake_sample> blob_scenes(std::size_t count) {
  std::vector<fake_sample> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(blob_scene(i));
  return all;
}

// Every fourth sample has 20 things in a grid, in an order of its own; the others have none.
std::vector<fake_sample> crowded_scenes(std::size_t count) {
  std::vector<fake_sample> all;
  for (std::size_t i = 0; i < count; ++i) {
    std::string places;
    std::string classes;
    std::string areas;
    for (std::size_t b = 0; b < (i % 4 == 0 ? 20U : 0U); ++b) {
      const std::size_t cell = (b * 7 + i) % 20;
      const std::size_t left = 2 + cell % 5 * 9;
      const std::size_t top = 2 + cell / 5 * 11;
      const std::string comma = b == 0 ? "" : ", ";
      str_append(places, comma, "[", left, ", ", top, ", ", left + 7, ", ", top + 8, "]");
      str_append(classes, comma, 100 * i + cell);
      str_append(areas, comma, cell, ".5");
    }
    testing::rgb_picture seen;
    fake_sample made;
    made.members = {{"png", testing::make_png(testing::make_texture(i, side, side), {}, seen)},
                    {"json", testing::to_bytes(str_cat("{\"boxes\": [", places, "], \"classes\": [", classes,
                                                       "], \"area\": [", areas, "]}"))}};
    all.push_back(std::move(made));
  }
  return all;
}

// Their members come out of blocks. Returns the shard's path.
std::string gzipped(const std::vector<fake_sample>& samples, const testing::temporary_directory& directory) {
  testing::archive shard;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (const auto& member : samples[i].members) {
      const std::string_view bytes(reinterpret_cast<const char*>(member.bytes.data()), member.bytes.size());
      shard.file(str_cat(100 + i, ".", member.field), std::string(bytes));
    }
  }
  std::string packed = (directory.path() / "p.tar.gz").string();
  testing::put(packed, testing::coded(datasets::packing::gzip, shard.end().bytes()));
  return packed;
}

image tile_picture() {
  return image("png")
      .longest_side(40)
      .pad_to({.height = side, .width = side, .fill = {fill, fill, fill}})
      .random_flip()
      .as(dtype::u8);
}
boxes tile_boxes() { return boxes("json").follows("png").key("boxes").labels("classes").with("iscrowd"); }
std::vector<field> tiled_fields() {
  return {mask("seg.png").follows("png"), tile_picture(), tile_boxes(), label("cls")};
}

loader_options mosaic_options(double probability = 1.0) {
  loader_options options = small_options();
  options.mix = mosaic(probability);
  return options;
}

struct tile_rectangle {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
};
tile_rectangle tile_of(std::size_t k, std::int32_t x, std::int32_t y) {
  return {k % 2 == 1 ? x : 0, k / 2 == 1 ? y : 0, k % 2 == 1 ? side : x, k / 2 == 1 ? side : y};
}

// Returns its mosaics.
std::size_t expect_in_step(const batch& got) {
  const auto pixels = testing::values_of<std::uint8_t>(got, "png");
  const auto masks = testing::values_of<std::uint8_t>(got, "seg.png");
  const auto places = testing::values_of<float>(got, "json");
  const auto labels = testing::values_of<std::int64_t>(got, "json.labels");
  const auto crowds = testing::values_of<std::int64_t>(got, "json.iscrowd");
  const auto kept = testing::values_of<std::int64_t>(got, "json.kept");
  const auto offsets = testing::values_of<std::int64_t>(got, "json.offsets");
  const auto numbers = testing::values_of<std::int64_t>(got, "cls");
  const auto tiles = testing::values_of<std::int32_t>(got, "mix.tiles");
  const auto centers = testing::values_of<std::int32_t>(got, "mix.center");
  EXPECT_EQ(testing::values_of<std::int64_t>(got, "json.labels.offsets"), offsets);
  EXPECT_EQ(offsets.back() * 4, static_cast<std::int64_t>(places.size()));
  constexpr std::size_t area = side * side;
  std::size_t mosaics = 0;
  for (std::size_t r = 0; r < got.valid_rows(); ++r) {
    const std::int32_t cx = centers[2 * r];
    const std::int32_t cy = centers[2 * r + 1];
    const bool is_one = cx != side;
    mosaics += is_one ? 1 : 0;
    EXPECT_EQ(tiles[4 * r], static_cast<std::int32_t>(r)) << "the first tile is the row's own";
    const auto at = [&](int x, int y) -> std::int64_t {
      return masks[r * area + static_cast<std::size_t>(y * side + x)];
    };
    for (std::size_t i = 0; i < area; ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        if (pixels[(r * 3 + c) * area + i] == masks[r * area + i]) continue;
        ADD_FAILURE() << "row " << r << ", pixel " << i << ": " << int{pixels[(r * 3 + c) * area + i]} << " and "
                      << int{masks[r * area + i]};
        return mosaics;
      }
    }
    auto box = static_cast<std::size_t>(offsets[r]);
    for (std::size_t k = 0; k < (is_one ? 4 : 1); ++k) {
      const std::int64_t sample = numbers[static_cast<std::size_t>(tiles[4 * r + k])];
      const tile_rectangle tile = tile_of(k, cx, cy);
      tile_rectangle blob{side, side, 0, 0};
      for (int y = tile.top; y < tile.bottom; ++y) {
        for (int x = tile.left; x < tile.right; ++x) {
          const std::int64_t number = at(x, y);
          EXPECT_TRUE(number == fill || number == sample + 1 || number == blobs_from + sample) << number;
          if (number != blobs_from + sample) continue;
          blob = {std::min(blob.left, x), std::min(blob.top, y), std::max(blob.right, x + 1),
                  std::max(blob.bottom, y + 1)};
        }
      }
      if (is_one)
        EXPECT_NE(at(k % 2 == 1 ? cx : cx - 1, k / 2 == 1 ? cy : cy - 1), fill) << "pictures meet in the centre";
      if (blob.right == 0) continue;  // without a box
      if (box >= labels.size()) {
        ADD_FAILURE() << "a blob without a box";
        return mosaics;
      }
      EXPECT_EQ(labels[box], blobs_from + sample);
      EXPECT_EQ(crowds[box], sample % 2);
      EXPECT_EQ(kept[box], 0);
      const std::array<float, 4> found{places[4 * box], places[4 * box + 1], places[4 * box + 2], places[4 * box + 3]};
      EXPECT_EQ(found, (std::array<float, 4>{static_cast<float>(blob.left), static_cast<float>(blob.top),
                                             static_cast<float>(blob.right), static_cast<float>(blob.bottom)}));
      ++box;
    }
    EXPECT_EQ(static_cast<std::int64_t>(box), offsets[r + 1]) << "boxes without a blob";
  }
  return mosaics;
}

std::size_t expect_run_in_step(const dataset& set, const loader_options& options) {
  std::size_t mosaics = 0;
  loader all(set, options, tiled_fields());
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    while (const std::optional<batch> got = all.next_blocking()) {
      static_cast<void>(testing::look_at(*got));  // the bytes that lie there have the digest that is stated
      if (got->valid_rows() != 0) mosaics += expect_in_step(*got);
    }
  }
  return mosaics;
}

TEST(mosaics, keep_masks_and_boxes_in_step_with_their_pictures) {
  const watchdog dog("a thousand mosaics");
  loader_options options = mosaic_options();
  options.epochs = 20;
  EXPECT_EQ(expect_run_in_step(fake_dataset(blob_scenes(50)), options), 1000U);
}

// Some batches have one row, which is all of its tiles.
TEST(mosaics, are_made_of_what_is_left_of_a_batch) {
  const watchdog dog("mosaics with holes");
  std::vector<fake_sample> samples = blob_scenes(49);
  for (std::size_t i = 3; i < samples.size(); i += 5) samples[i].find("seg.png")->bytes.resize(60);
  for (const std::uint32_t rows : {1U, 2U, 3U, 8U}) {
    for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
      loader_options options = mosaic_options();
      options.batch_size = rows;
      options.epochs = 1;
      options.on_corrupt = policy;
      EXPECT_EQ(expect_run_in_step(fake_dataset(samples), options), policy == corrupt_policy::skip ? 39U : 49U);
    }
  }
}

TEST(mosaics, are_the_same_with_any_threads_and_out_of_blocks) {
  const watchdog dog("mosaics in any order");
  const std::vector<fake_sample> samples = blob_scenes(43);
  const seen_run expected = testing::run_all(fake_dataset(samples), mosaic_options(0.7), tiled_fields());
  ASSERT_FALSE(expected.failed) << expected.message;
  for (const std::uint32_t threads : {1U, 5U}) {
    loader_options options = mosaic_options(0.7);
    options.decode_threads = threads;
    options.prefetch_batches = threads;
    const seen_run got =
        testing::run_all(fake_dataset(samples, {.layout = testing::fake_layout::columns}), options, tiled_fields());
    ASSERT_FALSE(got.failed) << got.message;
    EXPECT_EQ(got.batches, expected.batches);
  }
  loader_options plain = mosaic_options(0.7);
  plain.mix = {};
  EXPECT_NE(testing::run_all(fake_dataset(samples), plain, tiled_fields()).batches, expected.batches);

  const testing::temporary_directory directory;
  loader_options options = mosaic_options(0.7);
  options.host_bytes_max = std::size_t{200} << 20;
  const seen_run out_of_blocks = testing::run_all(open(gzipped(samples, directory)), options, tiled_fields());
  ASSERT_FALSE(out_of_blocks.failed) << out_of_blocks.message;
  EXPECT_EQ(out_of_blocks.batches, expected.batches);
}

TEST(mosaics, fit_into_the_smallest_budget) {
  const watchdog dog("mosaics in little memory");
  const fake_dataset set(blob_scenes(43));
  for (const corrupt_policy policy : {corrupt_policy::raise, corrupt_policy::substitute}) {
    std::vector<field> padded = tiled_fields();
    padded[2] = tile_boxes().padded(1);
    for (const std::vector<field>& fields : {tiled_fields(), padded}) {
      loader_options options = mosaic_options();
      options.on_corrupt = policy;
      const seen_run expected = testing::run_all(set, options, fields);
      options.host_bytes_max = loader(set, options, fields).plan().host_bytes_least;
      const seen_run got = testing::run_all(set, options, fields);
      EXPECT_FALSE(got.failed) << got.message;
      EXPECT_EQ(got.batches, expected.batches);
    }
  }
}

TEST(mosaics, say_what_bounds_the_boxes_where_memory_is_wanting) {
  const fake_dataset set(crowded_scenes(8));
  loader_options options = mosaic_options();
  options.host_bytes_max = 4096;
  const image picture = image("png").resize(side, side);
  const boxes things = boxes("json").follows("png").key("boxes");
  const auto said = [&](const std::vector<field>& fields) {
    return testing::message_of(errc::limit, [&] { loader(set, options, fields); });
  };
  EXPECT_THAT(said({picture, things}), HasSubstr("for boxes of mosaics, which boxes::bytes_max() bounds)"));
  EXPECT_THAT(said({picture}), ::testing::Not(HasSubstr("mosaic")));
  options.mix = {};
  EXPECT_THAT(said({picture, things}), ::testing::Not(HasSubstr("mosaic")));
}

TEST(mosaics, are_replayed_and_resumed) {
  const watchdog dog("mosaics, replayed");
  const fake_dataset set(blob_scenes(43));
  const loader_options options = mosaic_options(0.6);
  loader train(set, options, tiled_fields());
  const auto run = testing::run_epochs(train, 2);
  const loader other(set, options, tiled_fields());
  for (const testing::seen_batch& each : run) {
    EXPECT_EQ(other.batch_at(each.epoch, each.index).content_digest()->hex(), each.content);
  }
  loader begun(set, options, tiled_fields());
  static_cast<void>(begun.next_blocking());
  static_cast<void>(begun.next_blocking());
  loader_options resumed = options;
  resumed.resume = begun.state();
  loader rest(set, resumed, tiled_fields());
  EXPECT_EQ(testing::run_epochs(rest, 2), std::vector(run.begin() + 2, run.end()));
  resumed.mix = mosaic(0.5);
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(set, resumed, tiled_fields()); }),
              HasSubstr("mix.probability is 0.5, and was 0.6"));
}

std::vector<std::byte> ragged_row_of(const batch& from, const std::string& output, std::size_t row) {
  const auto bytes = testing::values_of<std::byte>(from, output);
  const auto offsets = testing::values_of<std::int64_t>(from, output + ".offsets");
  const std::int64_t element = offsets.back() == 0 ? 0 : static_cast<std::int64_t>(bytes.size()) / offsets.back();
  return {bytes.begin() + offsets[row] * element, bytes.begin() + offsets[row + 1] * element};
}

TEST(mosaics, leave_other_rows_as_they_are) {
  const watchdog dog("some mosaics");
  const fake_dataset set(blob_scenes(40));
  loader_options options = mosaic_options(0.5);
  options.epochs = 1;
  loader mixed(set, options, tiled_fields());
  options.mix = {};
  loader plain(set, options, tiled_fields());
  std::size_t mosaics = 0;
  while (const std::optional<batch> got = mixed.next_blocking()) {
    const std::optional<batch> before = plain.next_blocking();
    ASSERT_TRUE(before);
    EXPECT_TRUE(std::equal(got->row_digests().begin(), got->row_digests().end(), before->row_digests().begin()));
    const auto centers = testing::values_of<std::int32_t>(*got, "mix.center");
    for (std::uint32_t r = 0; r < got->valid_rows(); ++r) {
      if (centers[2 * r] == side) {
        EXPECT_EQ(got->placement("png", r), before->placement("png", r));
        for (const char* const output : {"png", "seg.png"}) {
          EXPECT_EQ(testing::row_of(*got, output, r), testing::row_of(*before, output, r)) << output;
        }
        for (const char* const output : {"json", "json.labels", "json.kept", "json.iscrowd"}) {
          EXPECT_EQ(ragged_row_of(*got, output, r), ragged_row_of(*before, output, r)) << output;
        }
        continue;
      }
      ++mosaics;
      EXPECT_NE(testing::row_of(*got, "png", r), testing::row_of(*before, "png", r));
      EXPECT_THAT(testing::message_of(errc::usage, [&] { static_cast<void>(got->placement("png", r)); }),
                  HasSubstr("the row is a mosaic of four pictures"));
    }
  }
  EXPECT_GT(mosaics, 10U);
  EXPECT_LT(mosaics, 30U);
}

// By what was there before, the tiles and the centres: pictures fill their rows, so that tiles are moved by whole sides.
TEST(mosaics, drop_boxes_by_their_rules) {
  const watchdog dog("boxes that are cut");
  constexpr int size = 24;
  std::vector<fake_sample> samples;
  for (std::size_t i = 0; i < 24; ++i) {
    std::string list;
    for (std::size_t b = 0; b < i % 6; ++b) {
      str_append(list, b == 0 ? "" : ", ", "[", b + i % 3, ".5, ", 2 * b, ", ", 8 + 3 * b, ", ", 14 + b, ".25]");
    }
    fake_sample made;
    made.members = {{"jpg", testing::make_jpeg(testing::make_texture(i, size, size), {})},
                    {"json", testing::to_bytes(str_cat("[", list, "]"))}};
    samples.push_back(std::move(made));
  }
  const fake_dataset set(samples);
  using rules =
      std::function<bool(const std::array<float, 4>& whole, const std::array<float, 4>& left, tile_rectangle)>;
  const auto area = [](const std::array<float, 4>& of) {
    return of[2] > of[0] && of[3] > of[1] ? (double{of[2]} - of[0]) * (double{of[3]} - of[1]) : 0.0;
  };
  const boxes base = boxes("json").follows("jpg");
  const std::vector<std::pair<boxes, rules>> all{
      {base, [](const auto&, const auto&, auto) { return true; }},
      {base.min_area(40), [&](const auto&, const auto& left, auto) { return area(left) >= 40; }},
      {base.min_visible(0.6),
       [&](const auto& whole, const auto& left, auto) { return area(left) >= 0.6 * area(whole); }},
      {base.center_inside(), [](const auto& whole, const auto&, tile_rectangle tile) {
         const float x = (whole[0] + whole[2]) / 2;
         const float y = (whole[1] + whole[3]) / 2;
         return x > static_cast<float>(tile.left) && x < static_cast<float>(tile.right) &&
                y > static_cast<float>(tile.top) && y < static_cast<float>(tile.bottom);
       }}};
  for (const auto& [things, is_kept] : all) {
    loader_options options = mosaic_options();
    options.epochs = 1;
    const image whole_row = image("jpg").resize(size, size);
    loader mixed(set, options, whole_row, things);
    options.mix = {};
    loader plain(set, options, whole_row, things);
    std::size_t kept = 0;
    std::size_t dropped = 0;
    while (const std::optional<batch> got = mixed.next_blocking()) {
      const std::optional<batch> before = plain.next_blocking();
      ASSERT_TRUE(before);
      const auto from = testing::values_of<float>(*before, "json");
      const auto from_offsets = testing::values_of<std::int64_t>(*before, "json.offsets");
      const auto tiles = testing::values_of<std::int32_t>(*got, "mix.tiles");
      const auto centers = testing::values_of<std::int32_t>(*got, "mix.center");
      std::vector<float> expected;
      std::vector<std::int64_t> expected_offsets{0};
      for (std::size_t r = 0; r < got->valid_rows(); ++r) {
        const int cx = centers[2 * r];
        const int cy = centers[2 * r + 1];
        for (std::size_t k = 0; k < 4; ++k) {
          const tile_rectangle tile{k % 2 == 1 ? cx : 0, k / 2 == 1 ? cy : 0, k % 2 == 1 ? size : cx,
                                    k / 2 == 1 ? size : cy};
          const auto dx = static_cast<float>(k % 2 == 1 ? cx : cx - size);
          const auto dy = static_cast<float>(k / 2 == 1 ? cy : cy - size);
          const auto row = static_cast<std::size_t>(tiles[4 * r + k]);
          for (auto b = static_cast<std::size_t>(from_offsets[row]);
               b < static_cast<std::size_t>(from_offsets[row + 1]); ++b) {
            const std::array<float, 4> whole{from[4 * b] + dx, from[4 * b + 1] + dy, from[4 * b + 2] + dx,
                                             from[4 * b + 3] + dy};
            const std::array<float, 4> left{std::max(whole[0], static_cast<float>(tile.left)),
                                            std::max(whole[1], static_cast<float>(tile.top)),
                                            std::min(whole[2], static_cast<float>(tile.right)),
                                            std::min(whole[3], static_cast<float>(tile.bottom))};
            const bool stays = area(left) > 0 && is_kept(whole, left, tile);
            (stays ? kept : dropped) += 1;
            if (stays) expected.insert(expected.end(), left.begin(), left.end());
          }
        }
        expected_offsets.push_back(static_cast<std::int64_t>(expected.size() / 4));
      }
      EXPECT_EQ(testing::values_of<float>(*got, "json"), expected);
      EXPECT_EQ(testing::values_of<std::int64_t>(*got, "json.offsets"), expected_offsets);
    }
    EXPECT_GT(kept, 10U);
    EXPECT_GT(dropped, 10U);
  }
}

// Of four boxes the first three.
TEST(mosaics, fill_up_padded_boxes) {
  const watchdog dog("padded boxes of mosaics");
  std::vector<fake_sample> samples = blob_scenes(30);
  samples[4].find("json")->bytes.resize(9);
  const fake_dataset set(samples);
  loader_options options = mosaic_options(0.8);
  options.epochs = 1;
  options.on_corrupt = corrupt_policy::skip;
  loader ragged(set, options, tile_picture(), tile_boxes());
  loader padded(set, options, tile_picture(), tile_boxes().padded(3, -7));
  std::size_t whole = 0;
  while (const std::optional<batch> got = padded.next_blocking()) {
    static_cast<void>(testing::look_at(*got));
    const std::optional<batch> beside = ragged.next_blocking();
    ASSERT_TRUE(beside);
    const auto offsets = testing::values_of<std::int64_t>(*beside, "json.offsets");
    const auto boxes_there = testing::values_of<float>(*beside, "json");
    const auto labels_there = testing::values_of<std::int64_t>(*beside, "json.labels");
    std::vector<float> all_boxes;
    std::vector<std::int64_t> all_labels;
    std::vector<std::int64_t> counts;
    for (std::size_t r = 0; r < got->valid_rows(); ++r) {
      const auto first = static_cast<std::size_t>(offsets[r]);
      const auto count = std::min<std::size_t>(static_cast<std::size_t>(offsets[r + 1]) - first, 3);
      whole += count == 3 ? 1 : 0;
      counts.push_back(static_cast<std::int64_t>(count));
      for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t c = 0; c < 4; ++c) all_boxes.push_back(i < count ? boxes_there[4 * (first + i) + c] : -7);
        all_labels.push_back(i < count ? labels_there[first + i] : -7);
      }
    }
    EXPECT_EQ(testing::values_of<float>(*got, "json"), all_boxes);
    EXPECT_EQ(testing::values_of<std::int64_t>(*got, "json.labels"), all_labels);
    EXPECT_EQ(testing::values_of<std::int64_t>(*got, "json.count"), counts);
  }
  EXPECT_GT(whole, 0U);
}

// The first ones of what ragged rows have, though they are not the first ones of their samples.
TEST(mosaics, leave_no_room_in_padded_rows_that_things_could_have) {
  const watchdog dog("many boxes in few rows");
  constexpr std::size_t most = 5;
  const testing::temporary_directory directory;
  const std::vector<fake_sample> samples = crowded_scenes(40);
  for (const dataset& set : {dataset(fake_dataset(samples)), open(gzipped(samples, directory))}) {
    loader_options options = mosaic_options(0.8);
    options.host_bytes_max = std::size_t{200} << 20;
    options.epochs = 1;
    options.batch_size = 8;
    const image picture = image("png").resize(side, side);
    const boxes things =
        boxes("json").follows("png").key("boxes").labels("classes").with("area", dtype::f32).min_visible(0.3);
    loader ragged(set, options, picture, things);
    loader padded(set, options, picture, things.padded(most, -7));
    std::size_t beyond = 0;  // boxes that a row shows and that are not among the first ones of their sample
    while (const std::optional<batch> got = padded.next_blocking()) {
      static_cast<void>(testing::look_at(*got));
      const std::optional<batch> beside = ragged.next_blocking();
      ASSERT_TRUE(beside);
      const auto offsets = testing::values_of<std::int64_t>(*beside, "json.offsets");
      std::vector<std::int64_t> counts;
      const auto expect_first = [&](const std::string& output, auto number, std::size_t each) {
        using number_type = decltype(number);
        const auto there = testing::values_of<number_type>(*beside, output);
        std::vector<number_type> expected;
        for (std::size_t r = 0; r < got->valid_rows(); ++r) {
          const auto first = there.begin() + offsets[r] * static_cast<std::int64_t>(each);
          const auto count = std::min<std::int64_t>(offsets[r + 1] - offsets[r], most);
          expected.insert(expected.end(), first, first + count * static_cast<std::int64_t>(each));
          expected.resize((r + 1) * most * each, number);
        }
        EXPECT_EQ(testing::values_of<number_type>(*got, output), expected) << output;
      };
      expect_first("json", -7.0F, 4);
      expect_first("json.kept", std::int64_t{-7}, 1);
      expect_first("json.labels", std::int64_t{-7}, 1);
      expect_first("json.area", -7.0F, 1);
      for (std::size_t r = 0; r < got->valid_rows(); ++r) {
        counts.push_back(std::min<std::int64_t>(offsets[r + 1] - offsets[r], most));
      }
      EXPECT_EQ(testing::values_of<std::int64_t>(*got, "json.count"), counts);
      for (const std::int64_t kept : testing::values_of<std::int64_t>(*got, "json.kept")) {
        beyond += kept >= static_cast<std::int64_t>(most) ? 1 : 0;
      }
    }
    EXPECT_GT(beyond, 10U);
  }
}

// What a crop has cut off does not come back where a warp moves the row away.
TEST(mosaics, meet_in_the_centre_behind_a_crop_and_a_warp) {
  const watchdog dog("crops before warps");
  const fake_dataset set(blob_scenes(40));
  const std::vector<image> pictures{
      image("png").random_resized_crop(side).affine({.translate = {0.3, 0.3}}),
      image("png").resize(60, 60).random_crop(side).random_flip().affine({.translate = {0.2, 0.2}, .scale = {0.5, 1}}),
      image("png").resize(side, side).affine({.translate = {0.2, 0.2}}).affine({.translate = {0.2, 0.2}})};
  for (const image& picture : pictures) {
    loader_options options = mosaic_options();
    options.epochs = 2;
    loader all(set, options, picture, mask("seg.png").follows("png"));
    std::size_t corners = 0;
    for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
      while (const std::optional<batch> got = all.next_blocking()) {
        const auto masks = testing::values_of<std::uint8_t>(*got, "seg.png");
        const auto centers = testing::values_of<std::int32_t>(*got, "mix.center");
        for (std::size_t r = 0; r < got->valid_rows(); ++r) {
          for (const int k : {0, 1, 2, 3}) {
            const int x = centers[2 * r] - 1 + k % 2;
            const int y = centers[2 * r + 1] - 1 + k / 2;
            const std::size_t at = r * side * side + static_cast<std::size_t>(y * side + x);
            EXPECT_NE(masks[at], fill) << "row " << r << ", tile " << k;
            ++corners;
          }
        }
      }
    }
    EXPECT_EQ(corners, 320U);
  }
}

TEST(mosaics, are_what_ragged_bytes_are_counted_of) {
  const watchdog dog("ragged bytes of mosaics");
  loader_options options = mosaic_options();
  options.epochs = 1;
  loader all(fake_dataset(crowded_scenes(40)), options, image("png").resize(side, side),
             boxes("json").follows("png").key("boxes").labels("classes"));
  std::uint64_t bytes = 0;
  std::uint64_t padding = 0;
  while (const std::optional<batch> got = all.next_blocking()) {
    for (const char* const output : {"json", "json.kept", "json.labels"}) {
      std::uint64_t own = 0;
      std::uint64_t longest = 0;
      for (std::uint32_t r = 0; r < got->valid_rows(); ++r) {
        const std::uint64_t row = ragged_row_of(*got, output, r).size();
        own += row;
        longest = std::max(longest, row);
      }
      bytes += own;
      padding += got->valid_rows() * longest - own;
    }
  }
  EXPECT_GT(bytes, 0U);
  EXPECT_EQ(all.stats().ragged_bytes, bytes);
  EXPECT_EQ(all.stats().ragged_padding_bytes, padding);
}

// Whatever an element is, it is the one of the picture; two pictures of a sample go the same way.
TEST(mosaics, are_of_any_elements) {
  const watchdog dog("mosaics of floats");
  const fake_dataset set(blob_scenes(16));
  const auto run = [&](const image& of) {
    loader_options options = mosaic_options();
    options.epochs = 1;
    loader all(set, options, of, tile_picture().together("both"), mask("seg.png").follows("png"));
    return all.next_blocking();
  };
  const image floats = image("other")
                           .from("png")
                           .longest_side(40)
                           .pad_to({.height = side, .width = side, .fill = {fill, fill, fill}})
                           .random_flip()
                           .together("both")
                           .as(dtype::f32);
  const std::optional<batch> grey = run(floats.channels(1).as(dtype::u8));
  EXPECT_EQ(testing::values_of<std::uint8_t>(*grey, "other"), testing::values_of<std::uint8_t>(*grey, "seg.png"));
  const std::optional<batch> planes = run(floats);
  const std::optional<batch> lines = run(floats.as(layout::nhwc));
  const auto masks = testing::values_of<std::uint8_t>(*planes, "seg.png");
  const auto planar = testing::values_of<float>(*planes, "other");
  const auto interleaved = testing::values_of<float>(*lines, "other");
  ASSERT_EQ(planar.size(), 3 * masks.size());
  ASSERT_EQ(interleaved.size(), planar.size());
  constexpr std::size_t area = side * side;
  for (std::size_t i = 0; i < planar.size(); ++i) {
    ASSERT_FLOAT_EQ(255 * planar[i], masks[i / (3 * area) * area + i % area]) << i;
    ASSERT_FLOAT_EQ(255 * interleaved[i], masks[i / 3]) << i;
  }
}

TEST(mosaics, are_refused_where_they_cannot_be_true) {
  const fake_dataset set(blob_scenes(8));
  const auto said = [&](std::vector<field> fields, const std::function<void(loader_options&)>& change = {}) {
    loader_options options = mosaic_options();
    if (change) change(options);
    return testing::message_of(errc::usage, [&] { loader(set, options, std::move(fields)); });
  };
  const image picture = tile_picture();
  EXPECT_EQ(said({picture}, [](loader_options& o) { o.mix = mosaic(0); }),
            "mosaic with a probability of 0; give more than 0 and at most 1");
  EXPECT_EQ(said({picture}, [](loader_options& o) { o.mix = mosaic(1.5); }),
            "mosaic with a probability of 1.5; give more than 0 and at most 1");
  EXPECT_EQ(said({label("cls")}), "mosaic without a picture among the fields");
  EXPECT_EQ(said({picture, image("small").from("png").center_crop(24)}),
            "mosaic needs pictures of one size; 'png' has 48 x 48 and 'small' 24 x 24");
  EXPECT_EQ(said({views(picture, 2, "two")}),
            "mosaic of 'two': several pictures in one output are no tiles; give each a field of its own, or leave "
            "mosaic out");
  EXPECT_EQ(said({picture, tile_boxes().padded(9).masks("seg.png")}),
            "field 'json.masks' follows the picture 'png', whose rows become mosaics: planes of instances are of one "
            "picture; "
            "leave .masks() out, or leave mosaic out");
  EXPECT_THAT(said({picture, boxes("json").follows("png").key("boxes").in(box_format::cxcywhr)}),
              HasSubstr("the corners of rotated boxes are not cut"));
  EXPECT_THAT(said({picture, mask("seg.png").follows("png").instances(3)}), HasSubstr("planes of instances"));
  EXPECT_EQ(
      said({picture, points("json").follows("png").key("boxes")}),
      "field 'json' follows the picture 'png', whose rows become mosaics: only masks, depths and boxes go along with "
      "tiles; leave 'json' out, or leave mosaic out");
}

}  // namespace
}  // namespace leat

// clip(): frames of a sample in one output.
#include "tests/loader/running.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/clip.hpp>
#include <leat/loading.hpp>
#include <leat/open_tar.hpp>
#include <leat/own_samples.hpp>
#include <leat/targets.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
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

constexpr std::uint64_t count = 12;

// Frame 0 is "0.jpg", frame 10 is "10.jpg".
std::string frame_name(int number) { return std::to_string(number) + ".jpg"; }

std::vector<std::byte> picture_of(std::uint64_t seed) {
  return testing::make_jpeg(testing::make_texture(seed, 40, 28), {});
}

//   lengths   how many frames each sample has, one after the other; of sample i number i modulo their count
std::vector<fake_sample> videos(const std::vector<int>& lengths = {12}) {
  std::vector<fake_sample> made(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    for (int frame = 0; frame < lengths[i % lengths.size()]; ++frame) {
      made[i].members.push_back({frame_name(frame), picture_of(100 * i + static_cast<std::uint64_t>(frame))});
    }
    made[i].members.push_back({"cls", testing::to_bytes(std::to_string(1000 + i))});
  }
  return made;
}

image train_picture() {
  return image("clip")
      .from("*.jpg")
      .random_resized_crop(12)
      .random_flip()
      .color_jitter(0.4, 0.4, 0.4, 0.1)
      .normalize(imagenet);
}

loader_options one_epoch() {
  loader_options options = small_options();
  options.epochs = 1;
  return options;
}

using rows_by_sample = std::map<std::uint64_t, std::vector<std::byte>>;

std::map<std::string, rows_by_sample> rows_of(const dataset& from, const std::vector<field>& fields,
                                              const loader_options& options = one_epoch()) {
  std::map<std::string, rows_by_sample> rows;
  loader train(from, options, fields);
  for (const batch& got : train.blocking()) {
    static_cast<void>(testing::look_at(got));
    for (const field& each : fields) {
      for (std::size_t r = 0; r < got.valid_rows(); ++r) {
        rows[each.name()][got.ids()[r]] = testing::row_of(got, each.name(), r);
      }
    }
  }
  return rows;
}

// Slot k of a row of `slots`.
std::vector<std::byte> slot_of(const std::vector<std::byte>& row, std::size_t k, std::size_t slots) {
  const auto bytes = static_cast<std::ptrdiff_t>(row.size() / slots);
  const auto begin = row.begin() + static_cast<std::ptrdiff_t>(k) * bytes;
  return {begin, begin + bytes};
}

// Of the frame alone, drawn as that of a clip.
rows_by_sample alone(const dataset& from, const image& of, int frame, const std::string& group = "clip") {
  return rows_of(from, {of.from(frame_name(frame)).together(group)}).at("clip");
}

// Each frame of all samples that have it.
std::vector<rows_by_sample> all_alone(const dataset& from, const image& of) {
  std::vector<rows_by_sample> frames;
  loader_options options = one_epoch();
  options.on_corrupt = corrupt_policy::skip;
  for (int frame = 0; frame < 12; ++frame) {
    frames.push_back(rows_of(from, {of.from(frame_name(frame))}, options).at("clip"));
  }
  return frames;
}

std::string refusal(const dataset& from, const std::vector<field>& fields, const batch_mix& mix = {}) {
  loader_options options = one_epoch();
  options.mix = mix;
  return testing::message_of(errc::usage, [&] { loader(from, options, fields); });
}

TEST(clip, holds_the_bytes_of_pictures_that_are_loaded_one_by_one) {
  const watchdog dog("frames one by one");
  const fake_dataset set(videos());
  const std::vector<image> kinds{train_picture(),
                                 train_picture().as(layout::nhwc),
                                 train_picture().as(dtype::bf16),
                                 image("clip").from("*.jpg").random_resized_crop(9).as(dtype::u8),
                                 train_picture().channels(1),
                                 train_picture().rotate(-20, 20).rounding(pixel_rounding::fused)};
  for (const image& kind : kinds) {
    const auto together = rows_of(set, {clip(kind, {.frames = 4, .stride = 3, .first = 1})}).at("clip");
    ASSERT_EQ(together.size(), count);
    for (int k = 0; k < 4; ++k) {
      const auto single = alone(set, kind, 1 + 3 * k);
      for (const auto& [sample, row] : together) {
        ASSERT_EQ(slot_of(row, static_cast<std::size_t>(k), 4), single.at(sample)) << k;
      }
    }
  }
}

TEST(clip, draws_for_each_frame_where_that_is_asked_for) {
  const watchdog dog("frames that draw");
  const fake_dataset set(videos());
  const auto apart = rows_of(set, {clip(train_picture(), {.frames = 3, .per_frame = true})}).at("clip");
  for (int k = 0; k < 3; ++k) {
    const auto single = alone(set, train_picture(), k, "clip/" + std::to_string(k));
    for (const auto& [sample, row] : apart) EXPECT_EQ(slot_of(row, static_cast<std::size_t>(k), 3), single.at(sample));
  }
  EXPECT_NE(apart, rows_of(set, {clip(train_picture(), {.frames = 3})}).at("clip"));
}

TEST(clip, has_axes_of_frames_and_of_cameras_in_the_order_in_which_they_are_written) {
  const watchdog dog("cameras");
  std::vector<fake_sample> rigs(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    for (const auto& [camera, seed] : {std::pair<std::string, std::uint64_t>{"left", 1}, {"right", 50}}) {
      for (int frame = 0; frame < 4; ++frame) {
        rigs[i].members.push_back(
            {camera + "." + frame_name(frame), picture_of(100 * i + seed + static_cast<std::uint64_t>(frame))});
      }
    }
  }
  const fake_dataset set(rigs);
  const image of = image("clip").from("{right,left}.*.jpg").random_resized_crop(8);
  loader train(set, one_epoch(), clip(of, {.frames = 3}));
  for (const batch& got : train.blocking()) {
    const auto rows = static_cast<std::int64_t>(got["clip"].shape[0]);
    EXPECT_EQ(got["clip"].shape, (dimensions{rows, 2, 3, 3, 8, 8}));
    EXPECT_THAT(got.outputs(), ::testing::ElementsAre("clip"));
    EXPECT_EQ(got.placement("clip[5]", 0).row_width, 8);
  }
  const auto rows = rows_of(set, {clip(of, {.frames = 3})}).at("clip");
  for (int k = 0; k < 6; ++k) {
    const std::string member = (k < 3 ? "right." : "left.") + frame_name(k % 3);
    const auto single = rows_of(set, {of.from(member).together("clip")}).at("clip");
    for (const auto& [sample, row] : rows) {
      ASSERT_EQ(slot_of(row, static_cast<std::size_t>(k), 6), single.at(sample)) << k;
    }
  }
  loader one(set, one_epoch(), clip(of.from("left.*.jpg").as(layout::nhwc), {.frames = 3}));
  const std::optional<batch> got = one.next_blocking();
  EXPECT_EQ((*got)["clip"].shape, (dimensions{8, 3, 8, 8, 3}));
}

TEST(clip, of_eight_cameras_in_a_shard_is_the_pictures_of_each) {
  const watchdog dog("a rig in a shard");
  const testing::temporary_directory directory;
  testing::tar_writer tar;
  const auto member = [](int camera, int frame) {
    return "cam" + std::to_string(camera) + "." + std::to_string(frame) + ".jpg";
  };
  for (std::uint64_t sample = 0; sample < 3; ++sample) {
    for (int camera = 0; camera < 8; ++camera) {
      for (int frame = 8; frame < 12; ++frame) {
        const std::uint64_t seed = 1000 * sample + 100 * static_cast<std::uint64_t>(camera);
        tar.add_file("drive/" + std::to_string(sample) + "." + member(camera, frame),
                     picture_of(seed + static_cast<std::uint64_t>(frame)));
      }
    }
  }
  const std::vector<std::byte> bytes = tar.finish();
  const std::string path = (directory.path() / "rigs.tar").string();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const dataset set = open_tar(path);
  const image of = image("clip").from("cam{0..7}.*.jpg").random_resized_crop(8);
  std::vector<field> fields{clip(of, {.frames = 4})};
  for (int camera = 0; camera < 8; ++camera) {
    for (int frame = 8; frame < 12; ++frame) {
      fields.emplace_back(image(member(camera, frame)).random_resized_crop(8).together("clip"));
    }
  }
  loader train(set, testing::one_epoch_in_order(), fields);
  const std::optional<batch> got = train.next_blocking();
  ASSERT_EQ((*got)["clip"].shape, (dimensions{3, 8, 4, 3, 8, 8}));
  for (std::size_t row = 0; row < 3; ++row) {
    const std::vector<std::byte> whole = testing::row_of(*got, "clip", row);
    for (std::size_t slot = 0; slot < 32; ++slot) {
      const std::string name = member(static_cast<int>(slot / 4), 8 + static_cast<int>(slot % 4));
      ASSERT_EQ(slot_of(whole, slot, 32), testing::row_of(*got, name, row)) << name;
    }
  }
}

TEST(clip, has_letters_beyond_ascii_behind_all_others) {
  const watchdog dog("names of frames");
  std::vector<fake_sample> some(2);
  for (std::uint64_t i = 0; i < some.size(); ++i) {
    some[i].members = {{"\xC3\xA9.x.jpg", picture_of(10 * i)}, {"z.x.jpg", picture_of(10 * i + 1)}};
  }
  const fake_dataset set(some);
  const image of = image("clip").from("*.x.jpg").center_crop(8);
  const auto rows = rows_of(set, {clip(of, {.frames = 2})}).at("clip");
  const auto first = rows_of(set, {of.from("z.x.jpg").together("clip")}).at("clip");
  for (const auto& [sample, row] : rows) EXPECT_EQ(slot_of(row, 0, 2), first.at(sample));
}

TEST(clip, begins_at_a_drawn_frame_of_those_that_a_sample_has) {
  const watchdog dog("a drawn start");
  const std::vector<int> lengths{12, 7, 5};
  const fake_dataset set(videos(lengths));
  const clip_options how{.frames = 3, .stride = 2, .random_start = true};
  const image of = image("clip").from("*.jpg").center_crop(16).as(dtype::u8);
  const std::vector<rows_by_sample> single = all_alone(set, of);
  std::set<std::size_t> starts;
  const auto rows = rows_of(set, {clip(of, how)}).at("clip");
  ASSERT_EQ(rows.size(), count);
  for (const auto& [sample, row] : rows) {
    const auto last_start = static_cast<std::size_t>(lengths[sample % lengths.size()] - 5);
    std::size_t start = 0;
    while (start < last_start && single[start].at(sample) != slot_of(row, 0, 3)) ++start;
    for (std::size_t k = 0; k < 3; ++k) {
      ASSERT_EQ(slot_of(row, k, 3), single[start + 2 * k].at(sample)) << start;
    }
    starts.insert(start);
  }
  EXPECT_GT(starts.size(), 2U);
  EXPECT_EQ(rows_of(set, {clip(of, how)}).at("clip"), rows);
}

TEST(clip, starts_together_with_another_of_its_group) {
  const watchdog dog("clips of one group");
  const fake_dataset set(videos());
  const clip_options how{.frames = 2, .random_start = true};
  const image of = image("clip").from("*.jpg").random_resized_crop(9).together("video");
  const image grey = image("grey").from("*.jpg").random_resized_crop(9).channels(1).together("video");
  const auto both = rows_of(set, {clip(of, how), clip(grey, how)});
  const image named = image("clip").from("*.jpg").random_resized_crop(9).channels(1).together("video");
  EXPECT_EQ(both.at("grey"), rows_of(set, {clip(named, how)}).at("clip"));
  EXPECT_NE(both.at("clip"), rows_of(set, {clip(of.together("another"), how)}).at("clip"));
}

TEST(clip, reads_no_frame_that_it_does_not_have) {
  const watchdog dog("reads of a clip");
  // A read is of one frame.
  const fake_dataset set(videos(), {.layout = testing::fake_layout::file_per_member});
  const auto reads_of = [&](const clip_options& how) {
    const std::uint64_t before = set.disk().count().reads;
    static_cast<void>(rows_of(set, {clip(image("clip").from("*.jpg").center_crop(8), how)}));
    return set.disk().count().reads - before;
  };
  EXPECT_EQ(reads_of({.frames = 3, .stride = 2}), 3 * count);
  EXPECT_EQ(reads_of({.frames = 3, .stride = 2, .random_start = true}), 3 * count);
  EXPECT_EQ(reads_of({.frames = 3, .missing = missing_frame::repeat_last}), 3 * count);
}

TEST(clip, of_a_sample_with_too_few_frames_is_corrupt) {
  const watchdog dog("missing frames");
  const fake_dataset set(videos({12, 7}));
  const std::vector<field> fields{clip(train_picture(), {.frames = 4, .stride = 3}), label("cls")};
  const seen_run raised = testing::run_all(set, one_epoch(), fields);
  EXPECT_EQ(raised.failed, errc::corrupt);
  EXPECT_THAT(raised.message, HasSubstr("no field '9.jpg' in this sample; it has 0.jpg, 1.jpg"));
  loader_options options = one_epoch();
  options.on_corrupt = corrupt_policy::skip;
  const auto left = rows_of(set, fields, options);
  EXPECT_EQ(left.at("clip").size(), count / 2);
  options.on_corrupt = corrupt_policy::substitute;
  const seen_run replaced = testing::run_all(set, options, fields);
  ASSERT_FALSE(replaced.failed) << replaced.message;
  EXPECT_EQ(replaced.stats.quarantined, count / 2);
}

TEST(clip, repeats_the_last_frame_where_that_is_asked_for) {
  const watchdog dog("repeated frames");
  const std::vector<int> lengths{12, 7};
  std::vector<fake_sample> some = videos(lengths);
  some[4].remove("8.jpg");
  const fake_dataset set(some);
  const image of = image("clip").from("*.jpg").center_crop(16).as(dtype::u8);
  const std::vector<rows_by_sample> single = all_alone(set, of);
  for (const bool random : {false, true}) {
    const clip_options how{.frames = 5, .stride = 4, .random_start = random, .missing = missing_frame::repeat_last};
    const auto rows = rows_of(set, {clip(of, how)}).at("clip");
    ASSERT_EQ(rows.size(), count);
    for (const auto& [sample, row] : rows) {
      for (std::size_t k = 0; k < 5; ++k) {
        std::size_t frame = std::min<std::size_t>(4 * k, 11);
        while (!single[frame].contains(sample)) --frame;
        ASSERT_EQ(slot_of(row, k, 5), single[frame].at(sample)) << sample << " " << k;
      }
    }
  }
}

TEST(clip, of_a_damaged_frame_is_corrupt_and_names_the_member) {
  const watchdog dog("a damaged frame");
  std::vector<fake_sample> some = videos();
  some[5].find("2.jpg")->bytes.resize(40);
  for (const bool random : {false, true}) {
    const std::vector<field> fields{clip(train_picture(), {.frames = 12, .random_start = random}), label("cls")};
    const seen_run raised = testing::run_all(fake_dataset(some), one_epoch(), fields);
    EXPECT_EQ(raised.failed, errc::corrupt);
    EXPECT_THAT(raised.message, HasSubstr("clip[2] of '2.jpg': "));
    loader_options options = one_epoch();
    options.on_corrupt = corrupt_policy::skip;
    EXPECT_EQ(rows_of(fake_dataset(some), fields, options).at("clip").size(), count - 1);
    options.on_corrupt = corrupt_policy::substitute;
    const seen_run replaced = testing::run_all(fake_dataset(some), options, fields);
    ASSERT_FALSE(replaced.failed) << replaced.message;
    EXPECT_EQ(replaced.stats.quarantined, 1U);
  }
}

TEST(clip, loads_with_the_least_budget_that_is_named) {
  const watchdog dog("the least budget of a clip");
  const fake_dataset set(videos());
  for (const bool random : {false, true}) {
    const std::vector<field> fields{clip(train_picture(), {.frames = 6, .random_start = random}),
                                    image("first").from("0.jpg").center_crop(8)};
    loader_options options = small_options();
    const seen_run expected = testing::run_all(set, options, fields);
    options.host_bytes_max = loader(set, options, fields).plan().host_bytes_least;
    const seen_run got = testing::run_all(set, options, fields);
    ASSERT_FALSE(got.failed) << got.message;
    EXPECT_EQ(got.batches, expected.batches);
  }
}

TEST(clip, decodes_with_the_scratch_of_one_picture) {
  const fake_dataset set(videos());
  const auto least = [&](const std::vector<field>& fields) {
    return loader(set, small_options(), fields).plan().host_bytes_least;
  };
  const std::size_t rows = std::size_t{2} * small_options().batch_size * 11 * 3 * 12 * 12 * sizeof(float);
  EXPECT_LT(least({clip(train_picture(), {.frames = 12})}),
            least({train_picture().from("0.jpg")}) + 2 * rows + (1 << 20));
}

TEST(clip, and_another_of_the_same_frames_decode_with_the_scratch_of_two_pictures) {
  const fake_dataset set(videos());
  const auto least = [&](const std::vector<field>& fields) {
    return loader(set, small_options(), fields).plan().host_bytes_least;
  };
  const auto picture = [](const char* name) { return image(name).center_crop(4).together("video"); };
  const std::size_t two = least({picture("a").from("0.jpg"), picture("b").from("0.jpg")});
  const clip_options how{.frames = 12};
  EXPECT_LT(least({clip(picture("a").from("*.jpg"), how), clip(picture("b").from("*.jpg"), how)}), two + (1 << 20));
}

TEST(clip, is_followed_by_what_follows_its_frames) {
  const watchdog dog("a mask of a frame");
  std::vector<fake_sample> some = videos({3});
  for (fake_sample& each : some) {
    each.members.push_back(
        {"seg.png", testing::make_mask_png(40, 28, std::vector<std::uint16_t>(40 * 28, 7), 8, false)});
  }
  const fake_dataset set(some);
  const mask of("seg.png");
  const auto followed = rows_of(set, {clip(train_picture(), {.frames = 3}), of.follows("clip[1]")});
  const auto single = rows_of(set, {train_picture().from("1.jpg").together("clip"), of.follows("clip")});
  EXPECT_EQ(followed.at("seg.png"), single.at("seg.png"));
  EXPECT_EQ(refusal(set, {clip(train_picture(), {.frames = 3}), of.follows("film")}),
            "field 'seg.png' follows 'film', and the loader has no such field; pictures are clip, clip[1] to clip[2]");
}

TEST(clip, goes_on_where_a_saved_run_ended_and_with_the_same_frames_only) {
  const watchdog dog("a clip resumed");
  const fake_dataset set(videos());
  const auto fields = [](const clip_options& how) -> std::vector<field> { return {clip(train_picture(), how)}; };
  const clip_options how{.frames = 3, .random_start = true};
  const seen_run whole = testing::run_all(set, small_options(), fields(how));
  ASSERT_FALSE(whole.failed) << whole.message;
  loader_options options = small_options();
  options.resume = loader(set, options, fields(how)).state().at(1, 1);
  const seen_run rest = testing::run_all(set, options, fields(how));
  ASSERT_FALSE(rest.failed) << rest.message;
  EXPECT_EQ(rest.batches.back(), whole.batches.back());
  const auto refused = [&](const clip_options& other) {
    return testing::message_of(errc::usage, [&] { loader(set, options, fields(other)); });
  };
  EXPECT_THAT(refused({.frames = 4, .random_start = true}), HasSubstr("frames"));
  EXPECT_THAT(refused({.frames = 3, .stride = 2, .random_start = true}), HasSubstr("stride"));
  EXPECT_THAT(refused({.frames = 3, .first = 1, .random_start = true}), HasSubstr("first"));
  EXPECT_THAT(refused({.frames = 3}), HasSubstr("random_start"));
  EXPECT_THAT(refused({.frames = 3, .random_start = true, .per_frame = true}), HasSubstr("per_frame"));
  EXPECT_THAT(refused({.frames = 3, .random_start = true, .missing = missing_frame::repeat_last}),
              HasSubstr("repeat_last"));
}

// 8 x 4 pixels and 4 x 8 are as many bytes.
TEST(clip, refuses_to_draw_of_arrays_that_differ_in_shape) {
  std::vector<std::uint8_t> pixels(std::size_t{2} * 8 * 4 * 3);
  const auto frame = [&](const std::string& name, std::int64_t height, std::int64_t width) {
    return named_tensor{
        name, tensor{dtype::u8, {2, height, width, 3}, {height * width * 3, width * 3, 3, 1}, pixels.data(), host}};
  };
  const dataset set = from_tensors({frame("0.x", 8, 4), frame("1.x", 4, 8), frame("2.x", 8, 4)}, nullptr);
  const image of = image("clip").from("*.x").center_crop(4);
  EXPECT_THAT(refusal(set, {clip(of, {.frames = 2, .random_start = true})}),
              HasSubstr("clip 'clip' may read '1.x' in the place of '0.x', and their arrays differ in type or shape"));
  loader_options options = one_epoch();
  options.batch_size = 2;
  EXPECT_EQ(rows_of(set, {clip(of, {.frames = 3})}, options).at("clip").size(), 2U);
}

TEST(clip, refuses_what_it_cannot_be) {
  const fake_dataset set(videos());
  const auto at_once = [](const clip_options& how, const std::string& member = "*.jpg") {
    return testing::message_of(errc::usage, [&] { static_cast<void>(field(clip(train_picture().from(member), how))); });
  };
  EXPECT_EQ(at_once({.frames = 0}), "clip 'clip': frames 0; give 1 to 1024");
  EXPECT_EQ(at_once({.frames = 1025}), "clip 'clip': frames 1025; give 1 to 1024");
  EXPECT_EQ(at_once({.stride = 0}), "clip 'clip': stride 0; give 1 or more");
  EXPECT_EQ(at_once({.first = -1}), "clip 'clip': first -1; give 0 or more");
  EXPECT_EQ(at_once({.frames = 200}, "cam{0..7}.*.jpg"),
            "clip 'clip': frames of all cameras together 1600; give at most 1024");
  EXPECT_EQ(
      refusal(set, {clip(train_picture(), {.frames = 7, .stride = 2})}),
      "clip 'clip' wants frame 12 of '*.jpg', counted from 0, and 12 members are called so; take fewer; a program "
      "can have missing_frame::repeat_last");
  EXPECT_THAT(refusal(set, {clip(train_picture().from("*.png"), {.frames = 2})}),
              HasSubstr("the dataset has no field '*.png'; it has 0.jpg"));
  EXPECT_THAT(refusal(set, {clip(train_picture().decoder(jpeg_decoder::nvjpeg), {.frames = 2})}),
              HasSubstr("decodes one picture for a row, and clips have several"));
  EXPECT_THAT(refusal(set, {clip(train_picture(), {.frames = 2}), label("cls")}, mixup(0.4)),
              HasSubstr("several pictures in one output are not mixed"));
}

}  // namespace
}  // namespace leat

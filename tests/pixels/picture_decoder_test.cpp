#include "stages/pixels/picture_decoder.hpp"

#include "base/half.hpp"
#include "tests/pixels/decode_one.hpp"
#include "tests/support/reference_resample.hpp"
#include "tests/support/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace leat {
namespace {

using pixels::decode_options;
using pixels::geometry;
using stages::outcome_kind;
using ::testing::HasSubstr;
using testing::jpeg_colours;
using testing::jpeg_options;
using testing::one_decoder;
using testing::plain_box;
using testing::rgb_picture;
namespace tr = transforms;

std::vector<std::byte> cut(const std::vector<std::byte>& whole, std::size_t size) {
  return {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)};
}

// The first byte after the header of the last scan.
std::size_t scan_begin(const std::vector<std::byte>& jpeg) {
  std::size_t at = 0;
  for (std::size_t i = 0; i + 3 < jpeg.size(); ++i) {
    if (jpeg[i] == std::byte{0xFF} && jpeg[i + 1] == std::byte{0xDA}) at = i;
  }
  return at + 2 + (std::to_integer<std::size_t>(jpeg[at + 2]) << 8 | std::to_integer<std::size_t>(jpeg[at + 3]));
}

TEST(picture_decoder, makes_rows_within_one_level_of_the_reference) {
  one_decoder one;
  const pixels::pipeline train({tr::random_resized_crop{.height = 40, .width = 56}, tr::random_flip{}});
  const pixels::pipeline eval({tr::resize{.shorter_side = 48, .how = filter::bicubic}, tr::center_crop{40, 44}});
  testing::for_each_seed(12, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    const rgb_picture texture = testing::make_texture(random(), between(30, 200), between(30, 200));
    const auto encoded = testing::make_jpeg(texture, {.h = between(1, 2), .v = between(1, 2)});
    for (const pixels::pipeline* steps : {&train, &eval}) {
      for (const bool decimate : {false, true}) {
        const geometry drawn = steps->compile(texture.width, texture.height, {seed, 0, 0});
        const rgb_picture got = one.decode(encoded, drawn, {.decimate = decimate});
        ASSERT_EQ(one.reason, "");
        const rgb_picture picture = testing::decode_whole_jpeg(encoded, one.decimation);
        EXPECT_LE(testing::largest_difference(got, testing::reference_resample(picture, drawn, one.decimation)), 1);
      }
    }
  });
}

TEST(picture_decoder, agrees_with_itself_in_every_dtype_and_layout) {
  one_decoder one;
  const auto encoded = testing::make_jpeg(testing::make_texture(3, 90, 70), {});
  const pixels::pipeline steps({tr::random_resized_crop{.height = 17, .width = 23}, tr::random_flip{}});
  constexpr int height = 17;
  constexpr int width = 23;
  for (std::uint64_t sample = 0; sample < 6; ++sample) {
    const pixels::draw_key key{1, 2, sample};
    const rgb_picture u8 = one.decode(encoded, steps.compile(90, 70, key));
    for (const dtype type : {dtype::u8, dtype::f16, dtype::bf16, dtype::f32}) {
      for (const layout order : {layout::nchw, layout::nhwc}) {
        const auto statistics = type == dtype::u8 ? std::nullopt : std::optional(imagenet);
        const auto how = pixels::store::from(type, order, statistics);
        std::vector<std::byte> row(how.row_bytes(height, width));
        const auto result = one.decoder.decode(encoded, steps, key, how, {}, row.data(), nullptr);
        ASSERT_TRUE(result);
        EXPECT_EQ(result->drawn, steps.compile(90, 70, key));
        EXPECT_EQ(result->info.width, 90);
        for (int y = 0; y < height; ++y) {
          for (int x = 0; x < width; ++x) {
            for (int c = 0; c < 3; ++c) {
              const int at = order == layout::nchw ? (c * height + y) * width + x : (y * width + x) * 3 + c;
              const std::byte* const got = row.data() + static_cast<std::size_t>(at) * size_bytes(type);
              const std::uint8_t value = u8.at(x, y)[c];
              const float scaled = static_cast<float>(value) * how.scale[static_cast<std::size_t>(c)];
              const float full = scaled + how.bias[static_cast<std::size_t>(c)];
              std::uint16_t half = 0;
              float single = 0;
              std::memcpy(&half, got, type == dtype::f16 || type == dtype::bf16 ? 2 : 0);
              std::memcpy(&single, got, type == dtype::f32 ? 4 : 0);
              if (type == dtype::u8) ASSERT_EQ(std::to_integer<std::uint8_t>(*got), value);
              if (type == dtype::f16) ASSERT_EQ(half, f16_bits(full));
              if (type == dtype::bf16) ASSERT_EQ(half, bf16_bits(full));
              if (type == dtype::f32) ASSERT_EQ(single, full);
            }
          }
        }
      }
    }
  }
}

// What several rows of one picture are together with: sizes, filters, decimation, padding, flips, dtypes.
class rows_beside_one_another {
 public:
  explicit rows_beside_one_another(std::uint64_t seed) : random_(seed) {
    const std::size_t count = static_cast<std::size_t>(between(1, 5));
    for (std::size_t i = 0; i < count; ++i) {
      const int height = between(1, 50);
      const int width = between(1, 50);
      const auto how = static_cast<filter>(between(0, 2));
      std::vector<transform> steps;
      switch (between(0, 3)) {
        case 0:
          steps = {tr::random_resized_crop{.height = height, .width = width, .scale = {0.02, 1.0}, .how = how}};
          break;
        case 1:
          steps = {tr::resize{.shorter_side = between(1, 60), .how = how}, tr::center_crop{height, width}};
          break;
        case 2:  // at times nothing of the picture is in it
          steps = {tr::random_crop{.height = height, .width = width, .padding = between(0, 300)}};
          break;
        default:
          steps = {tr::resize{.height = height, .width = width, .how = how}};
      }
      steps.push_back(tr::random_flip{});
      pipelines_.push_back(pixels::pipeline(std::move(steps)).as_view(static_cast<std::uint32_t>(i + 1)));
      static constexpr dtype types[] = {dtype::u8, dtype::f16, dtype::f32};
      stores_.push_back(pixels::store::from(types[between(0, 2)], static_cast<layout>(between(0, 1)), std::nullopt));
      options_.push_back(
          {.exif_orientation = seed % 2 == 0, .decimate = between(0, 3) != 0, .leave_flip = between(0, 1) == 1});
    }
  }

  /// Rows with what was drawn, or no rows where that failed.
  using made_rows = std::vector<std::pair<std::vector<std::byte>, geometry>>;

  made_rows together(const std::vector<std::byte>& encoded) {
    made_rows made = blank();
    std::vector<pixels::picture_row> rows;
    for (std::size_t i = 0; i < pipelines_.size(); ++i) {
      rows.push_back({.steps = &pipelines_[i],
                      .key = key_,
                      .how = &stores_[i],
                      .options = options_[i],
                      .row = made[i].first.data()});
    }
    if (!one_.decoder.decode_rows(encoded, rows, nullptr)) return {};
    for (std::size_t i = 0; i < rows.size(); ++i) made[i].second = rows[i].drawn;
    return made;
  }

  made_rows alone(const std::vector<std::byte>& encoded) {
    made_rows made = blank();
    for (std::size_t i = 0; i < pipelines_.size(); ++i) {
      const auto result =
          one_.decoder.decode(encoded, pipelines_[i], key_, stores_[i], options_[i], made[i].first.data(), nullptr);
      if (!result) return {};
      made[i].second = result->drawn;
    }
    return made;
  }

  int between(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }

 private:
  made_rows blank() const {
    made_rows made;
    for (std::size_t i = 0; i < pipelines_.size(); ++i) {
      made.emplace_back(
          std::vector<std::byte>(stores_[i].row_bytes(pipelines_[i].out_height(), pipelines_[i].out_width()),
                                 std::byte{0xEE}),
          geometry());
    }
    return made;
  }

  std::mt19937_64 random_;
  one_decoder one_;
  pixels::draw_key key_{3, 1, 4};
  std::vector<pixels::pipeline> pipelines_;
  std::vector<pixels::store> stores_;
  std::vector<decode_options> options_;
};

TEST(picture_decoder, makes_several_rows_at_once_as_it_makes_each_alone) {
  testing::for_each_seed(60, [](std::uint64_t seed) {
    rows_beside_one_another rows(seed);
    const rgb_picture texture = testing::make_texture(seed, rows.between(1, 260), rows.between(1, 200));
    const int orientation = rows.between(0, 8);
    std::vector<std::byte> encoded;
    if (seed % 4 == 0) {
      rgb_picture seen;
      encoded = testing::make_png(texture, {.interlaced = rows.between(0, 1) == 1, .orientation = orientation}, seen);
    } else {
      encoded = testing::make_jpeg(texture, {.h = rows.between(1, 2),
                                             .v = rows.between(1, 2),
                                             .progressive = rows.between(0, 2) == 0,
                                             .restart_interval = rows.between(0, 1) == 0 ? 0U : 3U,
                                             .orientation = orientation});
    }
    const auto expected = rows.alone(encoded);
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(rows.together(encoded), expected);
  });
}

// Damage that no row would have met alone may be met between them: then nothing is made, and never anything else.
TEST(picture_decoder, makes_no_other_rows_at_once_where_a_picture_is_damaged) {
  testing::for_each_seed(60, [](std::uint64_t seed) {
    rows_beside_one_another rows(seed);
    std::vector<std::byte> encoded = testing::make_jpeg(testing::make_texture(seed, 200, 150), {.restart_interval = 4});
    for (int flips = rows.between(1, 3); flips != 0; --flips) {
      const auto begin = static_cast<int>(scan_begin(encoded));
      encoded[static_cast<std::size_t>(rows.between(begin, static_cast<int>(encoded.size()) - 1))] ^= std::byte{0x40};
    }
    const auto expected = rows.alone(encoded);
    const auto got = rows.together(encoded);
    if (expected.empty()) EXPECT_TRUE(got.empty()) << "what is corrupt for one row is corrupt for all";
    if (!got.empty()) EXPECT_EQ(got, expected);
  });
}

TEST(picture_decoder, turns_pictures_upright_only_when_asked) {
  one_decoder one;
  const rgb_picture texture = testing::make_texture(8, 61, 45);
  for (int exif = 1; exif <= 8; ++exif) {
    SCOPED_TRACE("orientation " + std::to_string(exif));
    for (const bool png : {false, true}) {
      rgb_picture stored;
      const auto encoded = png ? testing::make_png(texture, {.orientation = exif}, stored)
                               : testing::make_jpeg(texture, {.orientation = exif});
      if (!png) stored = testing::decode_whole_jpeg(encoded, 1);
      const rgb_picture upright = testing::turn_upright(stored, exif);

      EXPECT_EQ(one.decode(encoded, plain_box(0, 0, 61, 45)), stored);
      for (const auto& part :
           {pixels::rectangle{0, 0, upright.width, upright.height}, {5, 9, 31, 20}, {44, 0, 1, 45}}) {
        if (part.x + part.width > upright.width || part.y + part.height > upright.height) continue;
        const rgb_picture got =
            one.decode(encoded, plain_box(part.x, part.y, part.width, part.height), {.exif_orientation = true});
        ASSERT_EQ(one.reason, "");
        EXPECT_EQ(got, testing::crop(upright, part.x, part.y, part.width, part.height));
      }
      const auto whole = one.decoder.decode_whole(encoded, {.exif_orientation = true});
      ASSERT_TRUE(whole);
      EXPECT_EQ(whole->width, upright.width);
      EXPECT_EQ(whole->height, upright.height);
      ASSERT_EQ(whole->rgb.size(), upright.pixels.size());
      EXPECT_EQ(std::memcmp(whole->rgb.data(), upright.pixels.data(), upright.pixels.size()), 0);
    }
  }
}

// Sizes that are no multiple of the decimation: the rounding stands at the stored picture's far edges, wherever those are
// in the upright one. A box that is turned with the picture is decimated to the same pixels, turned.
TEST(picture_decoder, decimates_turned_pictures_where_they_are) {
  one_decoder one;
  const rgb_picture texture = testing::make_texture(21, 203, 147);
  const auto straight = testing::make_jpeg(texture, {.h = 1, .v = 1, .quality = 100});
  geometry drawn = plain_box(0, 0, 20, 14);
  drawn.box = {0, 0, 203, 147};
  const rgb_picture expected = one.decode(straight, drawn, {.decimate = true});
  ASSERT_EQ(one.decimation, 8);
  for (int exif = 1; exif <= 8; ++exif) {
    SCOPED_TRACE("orientation " + std::to_string(exif));
    const auto encoded = testing::make_jpeg(texture, {.h = 1, .v = 1, .quality = 100, .orientation = exif});
    geometry turned = drawn;
    if (exif >= 5) {
      turned = plain_box(0, 0, 14, 20);
      turned.box = {0, 0, 147, 203};
    }
    const rgb_picture got = one.decode(encoded, turned, {.exif_orientation = true, .decimate = true});
    ASSERT_EQ(one.decimation, 8);
    // The passes change places and ties round the other way, so not always to the last level.
    EXPECT_LE(testing::largest_difference(got, testing::turn_upright(expected, exif)), 1);
  }
}

TEST(picture_decoder, decimates_by_sizes_alone_and_never_below_the_output) {
  one_decoder one;
  const auto encoded = testing::make_jpeg(testing::make_texture(2, 160, 120), {});
  const auto decimation = [&](pixels::rectangle box, int width, int height, filter how = filter::bilinear) {
    geometry drawn = plain_box(0, 0, width, height);
    drawn.box = box;
    drawn.how = how;
    one.decode(encoded, drawn, {.decimate = true});
    EXPECT_EQ(one.reason, "");
    return one.decimation;
  };
  EXPECT_EQ(decimation({0, 0, 160, 120}, 80, 60), 2);
  EXPECT_EQ(decimation({0, 0, 160, 120}, 81, 60), 1);
  EXPECT_EQ(decimation({0, 0, 160, 120}, 20, 15), 8);
  EXPECT_EQ(decimation({3, 5, 39, 41}, 10, 10), 2);
  EXPECT_EQ(decimation({3, 5, 40, 41}, 10, 10), 4);
  EXPECT_EQ(decimation({0, 0, 160, 120}, 20, 15, filter::nearest), 1);
}

TEST(picture_decoder, calls_truncated_pictures_corrupt_and_damage_below_the_crop_nothing) {
  one_decoder one;
  const rgb_picture texture = testing::make_texture(6, 160, 160);
  const auto encoded = testing::make_jpeg(texture, {});
  const rgb_picture whole = testing::decode_whole_jpeg(encoded, 1);
  const std::size_t begin = scan_begin(encoded);
  const std::size_t half = begin + (encoded.size() - begin) / 2;

  one.decode(cut(encoded, half), plain_box(0, 0, 160, 160));
  EXPECT_EQ(one.kind, outcome_kind::corrupt);
  EXPECT_THAT(one.reason, HasSubstr("premature end"));
  one.decode(cut(encoded, half), plain_box(20, 10, 100, 40));
  EXPECT_EQ(one.kind, outcome_kind::corrupt) << "above the cut";
  auto damaged = encoded;
  damaged[half] ^= std::byte{0x55};
  EXPECT_EQ(one.decode(damaged, plain_box(20, 10, 100, 40)), testing::crop(whole, 20, 10, 100, 40));
  EXPECT_EQ(one.reason, "");

  // Headers cut anywhere are corrupt; so is a scan without data.
  for (std::size_t size = 2; size < begin + 1; ++size) {
    one.decode(cut(encoded, size), plain_box(0, 0, 160, 160));
    ASSERT_EQ(one.kind, outcome_kind::corrupt) << size;
  }
  // Behind complete data nothing is missed: the end marker alone, or bytes after it.
  EXPECT_EQ(one.decode(cut(encoded, encoded.size() - 2), plain_box(0, 0, 160, 160)), whole);
  EXPECT_EQ(one.reason, "");
  auto longer = encoded;
  longer.resize(longer.size() + 500, std::byte{0x5A});
  EXPECT_EQ(one.decode(longer, plain_box(0, 0, 160, 160)), whole);
  EXPECT_EQ(one.reason, "");

  for (const jpeg_options& options :
       {jpeg_options{.progressive = true}, jpeg_options{.separate_scans = true}, jpeg_options{.arithmetic = true}}) {
    const auto other = testing::make_jpeg(texture, options);
    one.decode(cut(other, other.size() * 2 / 3), plain_box(0, 0, 160, 160));
    if (options.arithmetic && one.kind == outcome_kind::unsupported) continue;
    EXPECT_EQ(one.kind, outcome_kind::corrupt);
  }
}

// Otherwise a picture would be good in one epoch and corrupt in the next, by its crop.
// As Pillow's LOAD_TRUNCATED_IMAGES, which gives libjpeg an end marker where the file ends.
TEST(picture_decoder, fills_what_a_cut_jpeg_lacks_where_that_is_accepted_the_same_in_every_crop) {
  one_decoder one;
  const decode_options accept{.accept_cut = true};
  testing::for_each_seed(6, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    const rgb_picture texture = testing::make_texture(random(), between(60, 200), between(60, 200));
    for (const jpeg_options& options :
         {jpeg_options{}, jpeg_options{.h = 1, .v = 1}, jpeg_options{.restart_interval = 3},
          jpeg_options{.colours = jpeg_colours::grey, .h = 1, .v = 1}, jpeg_options{.progressive = true},
          jpeg_options{.separate_scans = true}}) {
      const auto encoded = testing::make_jpeg(texture, options);
      std::size_t first_scan = scan_begin(encoded);
      if (options.progressive || options.separate_scans) first_scan = encoded.size() / 4;
      const auto size =
          static_cast<std::size_t>(between(static_cast<int>(first_scan), static_cast<int>(encoded.size()) - 1));
      const auto file = cut(encoded, size);
      auto ended = file;
      ended.insert(ended.end(), {std::byte{0xFF}, std::byte{0xD9}});
      const rgb_picture whole = testing::decode_whole_jpeg(ended, 1);
      for (int i = 0; i < 8; ++i) {
        const int w = i == 0 ? texture.width : between(1, texture.width);
        const int h = i == 0 ? texture.height : between(1, texture.height);
        const int x = between(0, texture.width - w);
        const int y = between(0, texture.height - h);
        ASSERT_EQ(one.decode(file, plain_box(x, y, w, h), accept), testing::crop(whole, x, y, w, h))
            << size << " of " << encoded.size() << ": " << one.reason;
        ASSERT_EQ(one.reason, "");
      }
      // Nothing else is accepted.
      auto damaged = file;
      std::fill(damaged.begin() + static_cast<std::ptrdiff_t>(first_scan), damaged.end(), std::byte{0xFF});
      damaged.push_back(std::byte{0xD9});
      if (size > first_scan + 40) one.decode(damaged, plain_box(0, 0, texture.width, texture.height), accept);
      if (size > first_scan + 40 && !options.progressive && !options.separate_scans) {
        EXPECT_EQ(one.kind, outcome_kind::corrupt) << "an end marker in the middle of the data";
      }
    }
  });
  // A file that has no picture yet is no picture.
  const auto encoded = testing::make_jpeg(testing::make_texture(1, 64, 64), {});
  one.decode(cut(encoded, scan_begin(encoded) - 20), plain_box(0, 0, 64, 64), accept);
  EXPECT_EQ(one.kind, outcome_kind::corrupt);
}

TEST(picture_decoder, says_of_a_jpeg_that_was_cut_the_same_whatever_the_crop) {
  one_decoder one;
  const rgb_picture texture = testing::make_texture(6, 64, 80);
  const jpeg_options kinds[] = {{},
                                {.h = 1, .v = 1},
                                {.colours = testing::jpeg_colours::grey, .h = 1, .v = 1},
                                {.restart_interval = 3},
                                {.progressive = true},
                                {.colours = testing::jpeg_colours::ycck}};
  for (const jpeg_options& options : kinds) {
    const auto encoded = testing::make_jpeg(texture, options);
    const std::size_t begin = scan_begin(encoded);
    int good = 0;
    for (std::size_t size = begin; size <= encoded.size(); size += size + 12 < encoded.size() ? 7 : 1) {
      const auto file = cut(encoded, size);
      for (const bool own_huffman : {true, false}) {
        one.decode(file, plain_box(0, 0, 64, 80), {.own_huffman = own_huffman});
        const outcome_kind whole = one.kind;
        good += whole == outcome_kind::ok ? 1 : 0;
        for (const geometry& crop : {plain_box(0, 0, 8, 1), plain_box(40, 30, 20, 20), plain_box(3, 70, 40, 10),
                                     testing::scaled_box({0, 0, 64, 16}, 16, 4, filter::bilinear)}) {
          one.decode(file, crop, {.decimate = true, .own_huffman = own_huffman});
          ASSERT_EQ(one.kind, whole) << size << " of " << encoded.size() << ", line " << crop.box.y << ": "
                                     << one.reason;
        }
      }
    }
    EXPECT_GE(good, options.progressive ? 2 : 6) << "all, and without one or both bytes of the end marker";
  }
}

TEST(picture_decoder, overlooks_extraneous_bytes_before_a_marker) {
  one_decoder one;
  const auto encoded = testing::make_jpeg(testing::make_texture(6, 64, 64), {.restart_interval = 4});
  const rgb_picture whole = testing::decode_whole_jpeg(encoded, 1);
  // Before the first table, and before the second restart marker.
  for (const std::byte after : {std::byte{0xDB}, std::byte{0xD1}}) {
    auto dirty = encoded;
    for (std::size_t i = 2; i + 1 < dirty.size(); ++i) {
      if (dirty[i] != std::byte{0xFF} || dirty[i + 1] != after) continue;
      dirty.insert(dirty.begin() + static_cast<std::ptrdiff_t>(i), 3, std::byte{0x00});
      break;
    }
    ASSERT_GT(dirty.size(), encoded.size());
    EXPECT_EQ(one.decode(dirty, plain_box(0, 0, 64, 64)), whole);
    EXPECT_EQ(one.reason, "");
  }
}

// A restart marker heals what was broken before it; without one, damage above the crop is damage in it.
TEST(picture_decoder, trusts_rows_behind_a_restart_marker) {
  one_decoder one;
  const rgb_picture texture = testing::make_texture(6, 160, 160);
  const rgb_picture whole = testing::decode_whole_jpeg(testing::make_jpeg(texture, {.h = 1, .v = 1}), 1);
  const auto break_data = [&](std::vector<std::byte> jpeg) {
    // 0xFF 0xBF: a marker that ends the segment early, in the picture's first rows.
    const std::size_t at = scan_begin(jpeg) + 60;
    jpeg[at] = std::byte{0xFF};
    jpeg[at + 1] = std::byte{0xD9};
    return jpeg;
  };
  const geometry below = plain_box(30, 90, 80, 60);
  one.decode(break_data(testing::make_jpeg(texture, {.h = 1, .v = 1})), below);
  EXPECT_EQ(one.kind, outcome_kind::corrupt);

  // Each restart interval a row of MCUs. libjpeg finds the end marker where a restart marker should be: it was told the
  // picture is over, and that is nothing we would guess about.
  one.decode(break_data(testing::make_jpeg(texture, {.h = 1, .v = 1, .restart_interval = 20})), below);
  EXPECT_EQ(one.kind, outcome_kind::corrupt);

  // Entropy-coded data that merely ends too soon in the first row.
  auto jpeg = testing::make_jpeg(texture, {.h = 1, .v = 1, .restart_interval = 20});
  std::size_t marker = scan_begin(jpeg);
  while (jpeg[marker] != std::byte{0xFF} || jpeg[marker + 1] != std::byte{0xD0}) ++marker;
  jpeg.erase(jpeg.begin() + static_cast<std::ptrdiff_t>(marker - 40),
             jpeg.begin() + static_cast<std::ptrdiff_t>(marker));
  EXPECT_EQ(one.decode(jpeg, below), testing::crop(whole, 30, 90, 80, 60));
  EXPECT_EQ(one.reason, "");
  one.decode(jpeg, plain_box(30, 4, 80, 60));
  EXPECT_EQ(one.kind, outcome_kind::corrupt);
}

// Hostile input: an answer every time, the same one again, and the sanitizers silent.
TEST(picture_decoder, survives_damaged_pictures_and_answers_the_same_again) {
  std::vector<std::vector<std::byte>> pictures;
  const rgb_picture texture = testing::make_texture(6, 83, 67);
  rgb_picture seen;
  for (const jpeg_options& options :
       {jpeg_options{}, jpeg_options{.progressive = true}, jpeg_options{.restart_interval = 3},
        jpeg_options{.separate_scans = true}, jpeg_options{.arithmetic = true},
        jpeg_options{.colours = jpeg_colours::ycck}, jpeg_options{.orientation = 6}}) {
    pictures.push_back(testing::make_jpeg(texture, options));
  }
  pictures.push_back(testing::make_png(texture, {}, seen));
  pictures.push_back(testing::make_png(texture, {.interlaced = true}, seen));
  pictures.push_back(
      testing::make_png(texture, {.colours = testing::png_colours::palette, .transparency = true}, seen));

  one_decoder one;
  int good = 0;
  int bad = 0;
  testing::for_each_seed(150, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (const auto& whole : pictures) {
      std::vector<std::byte> damaged = whole;
      const std::size_t reach = random() % 2 == 0 ? damaged.size() : std::min<std::size_t>(damaged.size(), 700);
      for (std::uint64_t i = random() % 6; i > 0; --i)
        damaged[random() % reach] ^= static_cast<std::byte>(1U << random() % 8);
      if (random() % 4 == 0) damaged.resize(random() % damaged.size());
      const pixels::pipeline steps({tr::random_resized_crop{.height = 16, .width = 16}, tr::random_flip{}});
      const auto how = pixels::store::from(dtype::f32, layout::nchw, imagenet);
      const decode_options options{
          .exif_orientation = random() % 2 == 0, .pixels_max = 1'000'000, .decimate = random() % 2 == 0};
      const pixels::draw_key key{seed, 0, 0};
      std::vector<std::byte> row(how.row_bytes(16, 16));
      std::vector<std::byte> again(row.size());
      const auto first = one.decoder.decode(damaged, steps, key, how, options, row.data(), nullptr);
      one_decoder fresh;
      const auto second = fresh.decoder.decode(damaged, steps, key, how, options, again.data(), nullptr);
      ASSERT_EQ(first.kind(), second.kind());
      if (first) {
        ++good;
        ASSERT_EQ(row, again);
      } else {
        ++bad;
        ASSERT_NE(first.reason(), "");
        ASSERT_EQ(first.reason(), second.reason());
      }
    }
  });
  EXPECT_GT(good, 0);
  EXPECT_GT(bad, 0);
}

TEST(picture_decoder, refuses_too_many_pixels_before_taking_memory) {
  one_decoder one;
  auto encoded = testing::make_jpeg(testing::make_texture(6, 64, 64), {});
  for (std::size_t i = 0; i + 8 < encoded.size(); ++i) {
    if (encoded[i] != std::byte{0xFF} || encoded[i + 1] != std::byte{0xC0}) continue;
    encoded[i + 5] = encoded[i + 7] = std::byte{0x3F};  // 16,192 x 16,192
    break;
  }
  encoded.resize(2'000'000);  // These bytes could hold it, at two bits a block.
  const std::size_t before = one.budget.used();
  one.decode(encoded, plain_box(0, 0, 8, 8));
  EXPECT_EQ(one.kind, outcome_kind::unsupported);
  EXPECT_EQ(one.reason, "16192 x 16192 pixels are more than pixels_max = 178956970");
  EXPECT_EQ(one.budget.used(), before);
  one.decode(encoded, plain_box(0, 0, 8, 8), {.pixels_max = std::int64_t{1} << 40});
  EXPECT_NE(one.kind, outcome_kind::ok);
}

TEST(picture_decoder, refuses_a_progressive_picture_that_the_budget_cannot_hold) {
  pixels::scratch_budget budget(std::size_t{1} << 20, std::size_t{64} << 20);
  pixels::picture_decoder decoder(budget);
  const rgb_picture texture = testing::make_texture(6, 800, 600);
  const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  const geometry drawn = plain_box(0, 0, 30, 30);
  std::vector<std::byte> row(how.row_bytes(30, 30));
  EXPECT_TRUE(decoder.decode(testing::make_jpeg(texture, {}), drawn, how, {}, row.data(), nullptr));
  // Its coefficients are many and large: packed they take as much.
  const auto refused =
      decoder.decode(testing::make_jpeg(testing::make_noise(6, 800, 600), {.quality = 100, .progressive = true}), drawn,
                     how, {}, row.data(), nullptr);
  EXPECT_EQ(refused.kind(), outcome_kind::over_budget);
  EXPECT_THAT(refused.reason(), HasSubstr("needs 2 MiB of scratch memory and the budget can give 1 MiB"));
  EXPECT_THAT(refused.reason(), HasSubstr("host_bytes_max of 65 MiB would do"));
  EXPECT_THAT(refused.reason(), HasSubstr("written anew as baseline it needs little: `leat pack --transcode`"));
  EXPECT_LE(budget.peak(), budget.bytes_max());
  EXPECT_TRUE(decoder.decode(testing::make_jpeg(texture, {}), drawn, how, {}, row.data(), nullptr)) << "and goes on";
}

// Several scans and not enough memory for all coefficients: the same pixels, out of less.
TEST(picture_decoder, makes_the_same_pixels_of_packed_coefficients) {
  const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  testing::for_each_seed(4, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    const rgb_picture texture = testing::make_texture(random(), between(900, 1300), between(900, 1100));
    for (jpeg_options options :
         {jpeg_options{.progressive = true}, jpeg_options{.h = 1, .v = 1, .progressive = true},
          jpeg_options{.separate_scans = true}, jpeg_options{.h = 1, .progressive = true, .band_scans = 9},
          jpeg_options{.colours = jpeg_colours::ycck, .h = 1, .v = 1, .progressive = true},
          jpeg_options{.colours = jpeg_colours::grey, .h = 1, .v = 1, .progressive = true},
          jpeg_options{.progressive = true, .arithmetic = true}}) {
      options.quality = between(5, 50);
      const auto encoded = testing::make_jpeg(texture, options);
      const int w = between(1, texture.width);
      const int h = between(1, texture.height);
      const geometry drawn = plain_box(between(0, texture.width - w), between(0, texture.height - h), w, h);
      const auto decode = [&](std::size_t budget_bytes, std::vector<std::byte>& row) {
        pixels::scratch_budget budget(budget_bytes);
        pixels::picture_decoder decoder(budget);
        row.assign(how.row_bytes(h, w), std::byte{0xEE});
        const auto result = decoder.decode(encoded, drawn, how, {}, row.data(), nullptr);
        EXPECT_LE(budget.peak(), budget_bytes);
        return result.kind();
      };
      std::vector<std::byte> whole;
      if (decode(std::size_t{64} << 20, whole) == outcome_kind::unsupported && options.arithmetic) continue;
      const std::size_t coefficients =
          static_cast<std::size_t>(texture.width * texture.height) * 2;  // of one component
      std::vector<std::byte> packed;
      ASSERT_EQ(decode(coefficients, packed), outcome_kind::ok) << encoded.size();
      EXPECT_EQ(packed, whole);
      ASSERT_EQ(decode(std::size_t{300} << 10, packed), outcome_kind::over_budget);
    }
  });
}

TEST(picture_decoder, stops_when_told_to) {
  one_decoder one;
  std::atomic<bool> stop{true};
  const rgb_picture texture = testing::make_texture(6, 64, 64);
  const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  std::vector<std::byte> row(how.row_bytes(64, 64));
  rgb_picture seen;
  for (const auto& encoded :
       {testing::make_jpeg(texture, {}), testing::make_jpeg(texture, {.progressive = true}),
        testing::make_png(texture, {}, seen), testing::make_png(texture, {.interlaced = true}, seen)}) {
    const auto result = one.decoder.decode(encoded, plain_box(0, 0, 64, 64), how, {}, row.data(), &stop);
    EXPECT_EQ(result.kind(), outcome_kind::cancelled);
  }
}

TEST(picture_decoder, refuses_a_crop_outside_the_picture) {
  one_decoder one;
  const auto encoded = testing::make_jpeg(testing::make_texture(6, 64, 64), {});
  one.decode(encoded, plain_box(60, 0, 5, 5));
  EXPECT_EQ(one.kind, outcome_kind::unsupported);
  geometry negative = plain_box(0, 0, 5, 5);
  negative.box.x = -1;
  one.decode(encoded, negative);
  EXPECT_EQ(one.kind, outcome_kind::unsupported);
}

TEST(picture_decoder, fills_a_crop_outside_the_picture_with_zeros) {
  one_decoder one;
  const auto encoded = testing::make_jpeg(testing::make_texture(6, 20, 20), {});
  geometry drawn = plain_box(0, 0, 20, 20);
  drawn.crop_x = 100;
  const rgb_picture got = one.decode(encoded, drawn);
  EXPECT_EQ(one.reason, "");
  EXPECT_EQ(got.pixels, std::vector<std::uint8_t>(20 * 20 * 3, 0));
}

// Two threads, each with its decoder, one budget: the same rows as one thread makes.
TEST(picture_decoder, gives_the_same_rows_on_every_thread) {
  const rgb_picture texture = testing::make_texture(6, 300, 200);
  const std::vector<std::vector<std::byte>> pictures = {
      testing::make_jpeg(texture, {}), testing::make_jpeg(texture, {.progressive = true}),
      testing::make_jpeg(texture, {.colours = jpeg_colours::grey, .h = 1, .v = 1})};
  const pixels::pipeline steps({tr::random_resized_crop{.height = 32, .width = 32}, tr::random_flip{}});
  const auto how = pixels::store::from(dtype::f32, layout::nchw, imagenet);
  const auto rows = [&](pixels::scratch_budget& budget) {
    std::vector<std::vector<std::byte>> out;
    pixels::picture_decoder decoder(budget);
    for (std::uint64_t sample = 0; sample < 60; ++sample) {
      out.emplace_back(how.row_bytes(32, 32));
      const auto result = decoder.decode(pictures[sample % 3], steps, {1, 1, sample}, how, {.decimate = true},
                                         out.back().data(), nullptr);
      EXPECT_TRUE(result);
    }
    return out;
  };
  pixels::scratch_budget roomy(std::size_t{64} << 20);
  const auto expected = rows(roomy);
  pixels::scratch_budget tight(std::size_t{1} << 20);
  std::vector<std::vector<std::byte>> got[3];
  std::vector<std::thread> threads;
  for (auto& to : got) threads.emplace_back([&] { to = rows(tight); });
  for (std::thread& t : threads) t.join();
  for (const auto& from : got) EXPECT_EQ(from, expected);
}

}  // namespace
}  // namespace leat

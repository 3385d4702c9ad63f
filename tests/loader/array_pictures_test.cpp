// Pictures that are arrays: whatever a chain makes of a PNG it makes of the same pixels in an array, wherever that is stored.
#include "base/text.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_tar.hpp>
#include <leat/own_samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::rgb_picture;

constexpr int height = 21;
constexpr int width = 26;
constexpr std::size_t count = 11;
constexpr auto pixel_count = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);

std::vector<rgb_picture> pictures(bool grey) {
  std::vector<rgb_picture> made;
  for (std::size_t i = 0; i < count; ++i) {
    rgb_picture each = testing::make_texture(50 + i, width, height);
    for (std::size_t at = 0; grey && at < each.pixels.size(); at += 3) {
      each.pixels[at + 1] = each.pixels[at + 2] = each.pixels[at];
    }
    made.push_back(std::move(each));
  }
  return made;
}

/// What to_bytes() gives a pixel's channel, of all pictures one after the other.
std::string pixels_of(const std::vector<rgb_picture>& of, std::size_t channels, bool planar,
                      const std::function<std::string(std::uint8_t)>& to_bytes) {
  std::string bytes;
  for (const rgb_picture& each : of) {
    for (std::size_t i = 0; i < pixel_count * channels; ++i) {
      const std::size_t pixel = planar ? i % pixel_count : i / channels;
      bytes += to_bytes(each.pixels[pixel * 3 + (planar ? i / pixel_count : i % channels)]);
    }
  }
  return bytes;
}
std::string as_u8(std::uint8_t value) { return testing::little(value); }
std::string as_u16(std::uint8_t value) { return testing::little(static_cast<std::uint16_t>(257 * value)); }
std::string as_f32(std::uint8_t value) { return testing::little(static_cast<float>(value) / 255.0F); }

dataset tensors(dtype type, const dimensions& row, std::string bytes) {
  const auto owner = std::make_shared<std::string>(std::move(bytes));
  dimensions shape{static_cast<std::int64_t>(count)};
  for (const std::int64_t extent : row) shape.push_back(extent);
  return from_tensors({{"x", {type, shape, dense_strides(shape), owner->data(), host}}}, owner);
}

dataset png_files(const std::vector<rgb_picture>& of, testing::png_colours colours) {
  auto files = std::make_shared<std::vector<std::vector<std::byte>>>();
  for (const rgb_picture& each : of) {
    rgb_picture seen;
    files->push_back(testing::make_png(each, {.colours = colours}, seen));
  }
  return from_function(count, [files](std::uint64_t sample) { return (*files)[sample]; },
                       {.field = "x", .bytes_max = 10'000});
}

/// A store of Zarr's second version: a chunk is two rows, and half of their width.
dataset zarr(const std::filesystem::path& root, const std::vector<rgb_picture>& of) {
  const std::string all = pixels_of(of, 3, false, as_u8);
  constexpr std::size_t chunk_width = 13;
  constexpr auto rows = static_cast<std::size_t>(height);
  testing::write_file(root / ".zgroup", R"({"zarr_format": 2})");
  testing::write_file(
      root / "x" / ".zarray",
      str_cat(R"({"zarr_format": 2, "shape": [)", count, ",", height, ",", width, R"(,3], "chunks": [2,)", height, ",",
              chunk_width,
              R"(,3], "dtype": "|u1", "compressor": null, "fill_value": 0, "order": "C", "filters": null})"));
  for (std::size_t first = 0; first < count; first += 2) {
    for (const std::size_t half : {std::size_t{0}, std::size_t{1}}) {
      std::string chunk;
      for (std::size_t sample = first; sample < first + 2; ++sample) {
        for (std::size_t y = 0; y < rows; ++y) {
          const std::size_t at = ((sample * rows + y) * width + half * chunk_width) * 3;
          chunk += sample < count ? all.substr(at, chunk_width * 3) : std::string(chunk_width * 3, '\0');
        }
      }
      testing::write_file(root / "x" / str_cat(first / 2, ".0.", half, ".0"), chunk);
    }
  }
  return open_zarr(root.string());
}

dataset npy_in_tar(const std::filesystem::path& file, const std::vector<rgb_picture>& of) {
  testing::tar_writer tar;
  std::size_t number = 0;
  for (const rgb_picture& each : of) {
    tar.add_file(str_cat(1000 + number++, ".x.npy"),
                 testing::npy_text(testing::npy_dict("|u1", str_cat(height, ", ", width, ", 3")),
                                   pixels_of({each}, 3, false, as_u8)));
  }
  const std::vector<std::byte> bytes = tar.finish();
  testing::write_file(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return open_tar(file.string());
}

/// A chain of each kind: what is drawn, what a device may finish and what it may not, floats and u8.
std::vector<image> chains(const image& from) {
  const auto scratch = [](draws& d, planes p) {
    p.line(0, 0)[d.below(static_cast<std::uint64_t>(p.width))] = 255;
    return std::string();
  };
  return {from.random_resized_crop(12).random_flip().normalize(imagenet),
          from.center_crop(16).color_jitter(0.4, 0.4, 0.4, 0.1).random_erasing(1).as(dtype::f16),
          from.random_crop(24, 4).random_flip().as(dtype::u8).as(layout::nhwc),
          from.resize(40, 30, filter::bicubic).rotate(-20, 20).edit("scratch", scratch),
          from.resize(9).center_crop(9).gaussian_blur(3).equalize().as(dtype::bf16),
          from.apply(transforms::center_crop{height, width}).as(dtype::u8).as(layout::nhwc)};
}

std::vector<std::vector<std::byte>> rows_of(const dataset& samples, const std::vector<field>& fields, bool on_device) {
  loader_options options = testing::small_options();
  options.finish_on_device = on_device;
  loader train(samples, options, fields);
  std::vector<std::vector<std::byte>> rows;
  for (const batch& got : train.blocking()) {
    for (const field& each : fields) {
      for (std::size_t row = 0; row < got.ids().size(); ++row) rows.push_back(testing::row_of(got, each.name(), row));
    }
  }
  return rows;
}

TEST(pictures_in_arrays, become_the_rows_that_their_png_files_become_through_any_chain) {
  const testing::watchdog dog("arrays and PNG files");
  const testing::temporary_directory root;
  const std::vector<rgb_picture> colour = pictures(false);
  const std::vector<rgb_picture> grey = pictures(true);
  const std::string npy =
      testing::write_file(root.path() / "x.npy",
                          testing::npy_text(testing::npy_dict("|u1", str_cat(count, ", ", height, ", ", width, ", 3")),
                                            pixels_of(colour, 3, false, as_u8)));
  struct stored {
    std::string name;
    bool grey;
    dataset samples;
    image how;
  };
  const image plain = image("x");
  const std::vector<stored> all = {
      {"HWC", false, tensors(dtype::u8, {height, width, 3}, pixels_of(colour, 3, false, as_u8)), plain},
      {"CHW", false, tensors(dtype::u8, {3, height, width}, pixels_of(colour, 3, true, as_u8)), plain},
      {"CHW of floats", false, tensors(dtype::f32, {3, height, width}, pixels_of(colour, 3, true, as_f32)), plain},
      {"HWC of u16", false, tensors(dtype::u16, {height, width, 3}, pixels_of(colour, 3, false, as_u16)),
       plain.white(65535)},
      {"HW", true, tensors(dtype::u8, {height, width}, pixels_of(grey, 1, false, as_u8)), plain},
      {"HW1", true, tensors(dtype::u8, {height, width, 1}, pixels_of(grey, 1, false, as_u8)), plain},
      {"1HW", true, tensors(dtype::u8, {1, height, width}, pixels_of(grey, 1, false, as_u8)), plain},
      {".npy", false, open_npy(npy), image("x").from("npy")},
      {"chunks of a Zarr", false, zarr(root.path() / "x.zarr", colour), plain},
      {".npy members of a tar", false, npy_in_tar(root.path() / "x.tar", colour), image("x").from("x.npy")},
  };
  const dataset colour_files = png_files(colour, testing::png_colours::rgb);
  const dataset grey_files = png_files(grey, testing::png_colours::grey);
  const std::size_t chain_count = chains(plain).size();
  for (std::size_t chain = 0; chain < chain_count; ++chain) {
    const auto wanted = rows_of(colour_files, {chains(plain)[chain]}, false);
    const auto wanted_grey = rows_of(grey_files, {chains(plain)[chain]}, false);
    for (const stored& each : all) {
      for (const bool on_device : {true, false}) {
        SCOPED_TRACE(str_cat(each.name, ", chain ", chain, on_device ? ", on a device" : ""));
        ASSERT_EQ(rows_of(each.samples, {chains(each.how)[chain]}, on_device), each.grey ? wanted_grey : wanted);
      }
    }
  }
}

TEST(pictures_in_arrays, of_several_views_are_decoded_together_as_alone) {
  const testing::watchdog dog("views of arrays");
  const testing::temporary_directory root;
  const std::vector<rgb_picture> of = pictures(false);
  const auto views = [](const char* member) {
    return std::vector<field>{image("a").from(member).random_resized_crop(12).normalize(imagenet),
                              image("b").from(member).random_resized_crop(9).as(dtype::u8)};
  };
  const auto wanted = rows_of(png_files(of, testing::png_colours::rgb), views("x"), false);
  EXPECT_EQ(rows_of(tensors(dtype::u8, {3, height, width}, pixels_of(of, 3, true, as_u8)), views("x"), false), wanted);
  EXPECT_EQ(rows_of(npy_in_tar(root.path() / "x.tar", of), views("x.npy"), false), wanted);
}

TEST(pictures_in_arrays, keep_their_size_where_no_step_says_another) {
  const testing::watchdog dog("arrays as large as they are");
  const std::vector<rgb_picture> of = pictures(false);
  const dataset samples = tensors(dtype::u8, {height, width, 3}, pixels_of(of, 3, false, as_u8));
  EXPECT_EQ(
      rows_of(samples, {image("x").random_flip().normalize(imagenet)}, false),
      rows_of(samples, {image("x").apply(transforms::center_crop{height, width}).random_flip().normalize(imagenet)},
              false));
}

TEST(pictures_in_arrays, are_refused_when_the_loader_is_built) {
  const testing::watchdog dog("arrays that are no pictures");
  const auto refused = [](const dataset& samples, const image& how) -> std::string {
    try {
      loader train(samples, testing::small_options(), how);
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::usage);
      return failure.what();
    }
    return "";
  };
  const auto zeros = [](std::size_t bytes) { return std::string(count * bytes, '\0'); };
  const image plain = image("x").center_crop(2);
  EXPECT_THAT(refused(tensors(dtype::i64, {4, 4}, zeros(128)), plain),
              AllOf(HasSubstr("'x'"), HasSubstr("numbers of i64"), HasSubstr("leat::array")));
  EXPECT_THAT(refused(tensors(dtype::u8, {48}, zeros(48)), plain), HasSubstr("[48] has 1 axis"));
  EXPECT_THAT(refused(tensors(dtype::u8, {3, 4, 3}, zeros(36)), plain), HasSubstr(".stored(leat::layout::nchw)"));
  EXPECT_THAT(refused(tensors(dtype::u16, {4, 4}, zeros(32)), plain), HasSubstr(".white(65535)"));
  EXPECT_EQ(refused(tensors(dtype::u8, {3, 4, 3}, zeros(36)), plain.stored(layout::nchw)), "");
  EXPECT_EQ(refused(tensors(dtype::u16, {4, 4}, zeros(32)), plain.white(4095)), "");
  EXPECT_THAT(refused(tensors(dtype::u8, {4, 4}, zeros(16)), image("x").resize(8)), HasSubstr("leave its size open"));
  EXPECT_THROW(static_cast<void>(plain.white(0)), error);
}

TEST(pictures_in_arrays, with_a_number_that_is_no_pixel_are_corrupt_and_say_so) {
  const testing::watchdog dog("floats of 255");
  loader_options options = testing::small_options();
  std::string bytes;
  for (std::size_t i = 0; i < count * 16; ++i) bytes += testing::little(200.0F);
  loader train(tensors(dtype::f32, {4, 4}, bytes), options, image("x"));
  try {
    static_cast<void>(train.next_blocking());
    FAIL() << "a batch of it";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::corrupt);
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("the number 200"), HasSubstr("0 to 1"), HasSubstr("white")));
  }
}

}  // namespace
}  // namespace leat

// The pixel rule on the device: the kernel's own source run by an emulation, its host twin, and the path of host batches,
// bit by bit.
#include "stages/device/finish_pictures.hpp"

#include "stages/pixels/picture_decoder.hpp"
#include "stages/pixels/store.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"

#include <leat/transforms.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

// What the test is about: the kernel as nvcc gets it.
#include "stages/device/finish_pictures_cuda.cu"  // NOLINT

namespace leat::stages {
namespace {

constexpr std::size_t guard_bytes = 64;
constexpr std::byte untouched{0xA5};

/// Memory aligned as a tensor is, with guards around it.
struct aligned_bytes {
  explicit aligned_bytes(std::size_t size) : bytes(size), storage(size + 2 * guard_bytes + 256, untouched) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data()) + guard_bytes;
    data = storage.data() + guard_bytes + (256 - address % 256) % 256;
  }
  [[nodiscard]] bool guards_hold() const {
    const auto is_untouched = [](std::byte each) { return each == untouched; };
    return std::all_of(storage.data(), static_cast<const std::byte*>(data), is_untouched) &&
           std::all_of(static_cast<const std::byte*>(data) + bytes, storage.data() + storage.size(), is_untouched);
  }
  [[nodiscard]] std::vector<std::byte> copy() const { return {data, data + bytes}; }

  std::size_t bytes;
  std::vector<std::byte> storage;
  std::byte* data;
};

/// A batch with everything that is needed to finish it three times.
struct some_pictures {
  some_pictures(std::uint64_t seed, std::uint32_t rows, std::uint32_t height, std::uint32_t width, dtype type,
                layout order, const normalization& statistics)
      : how(pixels::store::from(type, order, statistics)), from(std::size_t{rows} * height * width * 3), flips(rows) {
    testing::fill_seeded(seed, 0, {from.data, from.bytes});
    testing::seeded_random random(seed);
    for (std::uint8_t& flip : flips) flip = static_cast<std::uint8_t>(random.below(3));  // any but 0 is yes
    batch = stages::pictures_of(how, height, width);
    batch.rows = rows;
    batch.from = reinterpret_cast<const std::uint8_t*>(from.data);
    batch.flips = flips.data();
  }

  [[nodiscard]] std::size_t bytes() const { return from.bytes * size_bytes(batch.type); }

  // As the decoder stores them on the host: line by line, mirrored before.
  [[nodiscard]] std::vector<std::byte> by_the_host_path() const {
    std::vector<std::byte> made(bytes());
    const std::size_t pixels_of_line = batch.width;
    std::vector<std::uint8_t> line(pixels_of_line * 3);
    for (std::size_t row = 0; row < batch.rows; ++row) {
      for (std::size_t y = 0; y < batch.height; ++y) {
        const std::uint8_t* const source = batch.from + (row * batch.height + y) * pixels_of_line * 3;
        for (std::size_t x = 0; x < pixels_of_line; ++x) {
          const std::size_t from_x = batch.flips != nullptr && batch.flips[row] != 0 ? pixels_of_line - 1 - x : x;
          for (std::size_t c = 0; c < 3; ++c) {
            line[batch.order == layout::nchw ? c * pixels_of_line + x : x * 3 + c] = source[from_x * 3 + c];
          }
        }
        pixels::store_line(
            how, how.order, line.data(), static_cast<int>(y), static_cast<int>(batch.height),
            static_cast<int>(batch.width),
            made.data() + row * how.row_bytes(static_cast<int>(batch.height), static_cast<int>(batch.width)));
      }
    }
    return made;
  }

  pixels::store how;
  // The rows by themselves, then by the rule one with the next: what mix_picture() promises is tested where it lives.
  [[nodiscard]] std::vector<std::byte> mixed_after_the_host_path() const {
    const std::vector<std::byte> before = by_the_host_path();
    std::vector<std::byte> made = before;
    const std::size_t row_bytes = made.size() / batch.rows;
    for (std::size_t row = 0; row < batch.rows; ++row) {
      const std::size_t partner = row + 1 == batch.rows ? 0 : row + 1;
      mix_picture(batch, mixed[row], made.data() + row * row_bytes, before.data() + partner * row_bytes);
    }
    return made;
  }

  /// Some rows mixed in every element, some by a box, some not at all.
  void mix(std::uint64_t seed) {
    testing::seeded_random random(seed);
    for (std::uint32_t row = 0; row < batch.rows; ++row) {
      mix_row& row_mix = mixed.emplace_back();
      const std::uint64_t kind = random.below(3);
      if (kind == 0) {
        row_mix.own = static_cast<float>(random.below(1001)) / 1000.0F;
        row_mix.other = 1.0F - row_mix.own;
      } else if (kind == 1) {
        row_mix.left = static_cast<std::uint16_t>(random.below(batch.width + 1));
        row_mix.right = static_cast<std::uint16_t>(row_mix.left + random.below(batch.width + 1 - row_mix.left));
        row_mix.top = static_cast<std::uint16_t>(random.below(batch.height + 1));
        row_mix.bottom = static_cast<std::uint16_t>(row_mix.top + random.below(batch.height + 1 - row_mix.top));
      }
    }
    batch.mixed = mixed.data();
  }

  aligned_bytes from;
  std::vector<std::uint8_t> flips;
  std::vector<mix_row> mixed;
  picture_batch batch;
};

// By the host's twin and by the kernel.
void expect_finished(some_pictures& pictures, const std::vector<std::byte>& expected) {
  aligned_bytes twin(pictures.bytes());
  pictures.batch.to = twin.data;
  finish_pictures(pictures.batch);
  EXPECT_TRUE(twin.copy() == expected);
  EXPECT_TRUE(twin.guards_hold());

  aligned_bytes kernel(pictures.bytes());
  pictures.batch.to = kernel.data;
  const std::size_t before = emulated_launches;
  EXPECT_EQ(launch_finish_pictures(pictures.batch, {}), 0);
  EXPECT_EQ(emulated_launches - before, 1U) << "the whole batch in one launch";
  EXPECT_TRUE(kernel.copy() == expected);
  EXPECT_TRUE(kernel.guards_hold());
}

void expect_all_agree(some_pictures& pictures) {
  SCOPED_TRACE(std::string(name(pictures.batch.type)) + (pictures.batch.order == layout::nchw ? " nchw " : " nhwc ") +
               std::to_string(pictures.batch.rows) + " x " + std::to_string(pictures.batch.height) + " x " +
               std::to_string(pictures.batch.width) + (pictures.batch.flips != nullptr ? " flipped" : "") +
               (pictures.batch.mixed != nullptr ? " mixed" : ""));
  expect_finished(pictures,
                  pictures.batch.mixed != nullptr ? pictures.mixed_after_the_host_path() : pictures.by_the_host_path());
}

TEST(finish_pictures, gives_the_bits_of_the_host_path_in_every_type_layout_and_size) {
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      // Widths that are multiples of a store and that are not; one pixel; more than one block of threads.
      for (const auto& [height, width] : {std::pair<std::uint32_t, std::uint32_t>{1, 1},
                                          {3, 5},
                                          {5, 4},
                                          {4, 8},
                                          {7, 12},
                                          {2, 16},
                                          {33, 40},
                                          {9, 31}}) {
        for (const bool flipped : {false, true}) {
          some_pictures pictures(height * 100 + width, 3, height, width, type, order, imagenet);
          if (!flipped) pictures.batch.flips = nullptr;
          expect_all_agree(pictures);
          pictures.mix(height);
          expect_all_agree(pictures);
        }
      }
    }
  }
}

// Every width of a few stores: where a store's run of pixels or of elements begins in a line, and what of a line is left.
TEST(finish_pictures, gives_the_bits_of_the_host_path_at_every_width_mirrored_or_not) {
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      for (std::uint32_t width = 1; width <= 50; ++width) {
        some_pictures pictures(width, 3, 3, width, type, order, imagenet);
        for (const bool mirrored : {true, false}) {
          std::fill(pictures.flips.begin(), pictures.flips.end(), mirrored ? 1 : 0);
          expect_all_agree(pictures);
        }
        pictures.flips = {1, 0, 1};  // A mirrored row mixed with one that is not, and the other way round.
        pictures.mix(width);
        pictures.mixed[0].own = pictures.mixed[1].own = 0.25F;
        pictures.mixed[0].other = pictures.mixed[1].other = 0.75F;
        expect_all_agree(pictures);
      }
    }
  }
}

// Else a thread would read and write one pixel by 3 bytes and 3 elements.
TEST(finish_pictures, takes_as_many_elements_a_thread_as_a_store_of_8_or_16_bytes_has) {
  constexpr std::uint32_t height = 64;
  constexpr std::size_t threads = 256;
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      for (const std::uint32_t width : {16U, 20U, 28U, 36U, 18U}) {
        some_pictures pictures(width, 2, height, width, type, order, imagenet);
        expect_all_agree(pictures);
        const std::size_t widest = type == dtype::f32 ? 4 : 8;
        const std::size_t run = width % widest == 0 ? widest : width % 4 == 0 ? 4 : 1;
        // By planes and one by one a thread has pixels, by pixels it has elements.
        const std::size_t all = std::size_t{height} * width * (order == layout::nhwc && run != 1 ? 3 : 1);
        EXPECT_EQ(emulated_blocks, (all / run + threads - 1) / threads)
            << name(type) << (order == layout::nchw ? " nchw " : " nhwc ") << width;
      }
    }
  }
}

// A thread finishes several rows in turn where there are many: numbers of rows that are no multiple of that, and more than a grid has.
TEST(finish_pictures, gives_the_bits_of_the_host_path_for_any_number_of_rows) {
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      for (const std::uint32_t rows : {1U, 2049U, 3074U, 4099U, 65537U}) {
        some_pictures pictures(rows, rows, 1, rows > 5000 ? 4 : 8, type, order, imagenet);
        expect_all_agree(pictures);
        pictures.mix(rows);
        expect_all_agree(pictures);
      }
    }
  }
}

// Words are loaded where the pixels wanted begin and end within them: AddressSanitizer sees one that is not of the batch.
TEST(finish_pictures, reads_nothing_before_the_first_picture_or_behind_the_last) {
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      for (const std::uint32_t width : {1U, 4U, 8U, 12U, 16U, 17U, 20U, 24U, 28U}) {
        some_pictures pictures(width, 2, 1, width, type, order, imagenet);
        const std::size_t bytes = pictures.from.bytes;
        const auto free_aligned = [](std::uint8_t* memory) { ::operator delete[](memory, std::align_val_t{16}); };
        const std::unique_ptr<std::uint8_t[], decltype(free_aligned)> exact(
            static_cast<std::uint8_t*>(::operator new[](bytes, std::align_val_t{16})), free_aligned);
        std::copy_n(pictures.batch.from, bytes, exact.get());
        pictures.batch.from = exact.get();
        std::fill(pictures.flips.begin(), pictures.flips.end(), 1);
        expect_all_agree(pictures);
      }
    }
  }
}

TEST(finish_pictures, gives_the_bits_of_the_host_path_for_any_statistics) {
  testing::for_each_seed(30, [](std::uint64_t seed) {
    testing::seeded_random random(seed);
    const auto size = [&] { return static_cast<std::uint32_t>(1 + random.below(40)); };
    normalization statistics;
    for (std::size_t c = 0; c < 3; ++c) {
      statistics.mean[c] = static_cast<double>(random.below(2001)) / 1000.0 - 1.0;
      statistics.deviation[c] = std::exp(static_cast<double>(random.below(2001)) / 100.0 - 10.0);
    }
    const dtype types[] = {dtype::f32, dtype::f16, dtype::bf16};
    some_pictures pictures(seed, size() % 5 + 1, size(), size(), types[random.below(3)],
                           random.below(2) == 0 ? layout::nchw : layout::nhwc, statistics);
    expect_all_agree(pictures);
    pictures.mix(seed);
    expect_all_agree(pictures);
  });
}

// Colour before the mirror on one side, after it on the other; what an edit has seen comes mirrored.
TEST(finish_pictures, gives_the_bits_of_the_host_path_for_augmented_pictures) {
  namespace tr = transforms;
  constexpr std::uint32_t rows = 20, height = 20, width = 24;
  std::vector<transform> steps = {tr::random_resized_crop{.height = height, .width = width}, tr::random_flip{}};
  for (const transform& each : parse_transforms(
           "random_apply(0.8, color_jitter(0.4, 0.4, 0.4, 0.1)) random_apply(0.2, grayscale) one_of(gaussian_blur(5), "
           "sharpness(0..3), equalize, autocontrast, solarize(90)) channel_permutation")) {
    steps.push_back(each);
  }
  steps.push_back(tr::random_apply{0.6, {tr::edit{"mark", [](draws& d, planes p) {
                                                    p.line(1, 3)[d.below(static_cast<std::uint64_t>(p.width) / 2)] ^=
                                                        255;
                                                    return std::string();
                                                  }}}});
  const pixels::pipeline chain(steps);
  const std::vector<std::byte> encoded = testing::make_jpeg(testing::make_texture(13, 90, 70), {});
  pixels::scratch_budget budget(std::size_t{64} << 20);
  pixels::picture_decoder decoder(budget);
  const auto left = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    for (const layout order : {layout::nchw, layout::nhwc}) {
      SCOPED_TRACE(std::string(name(type)) + (order == layout::nchw ? " nchw" : " nhwc"));
      some_pictures pictures(1, rows, height, width, type, order, imagenet);
      std::vector<std::byte> expected(pictures.bytes());
      int left_to_the_kernel = 0, edited_and_mirrored = 0;
      for (std::uint32_t row = 0; row < rows; ++row) {
        const pixels::draw_key key{.seed = 5, .epoch = 1, .draw = row};
        const auto decode = [&](const pixels::store& how, bool leave_flip, std::byte* first) {
          const auto done = decoder.decode(encoded, chain, key, how, {.leave_flip = leave_flip},
                                           first + row * how.row_bytes(height, width), nullptr);
          EXPECT_TRUE(done) << done.reason();
          return done && done->to_mirror;
        };
        EXPECT_FALSE(decode(pictures.how, false, expected.data()));
        const bool to_mirror = decode(left, true, pictures.from.data);
        pictures.flips[row] = to_mirror ? 1 : 0;
        pixels::recipe passes;
        chain.draw_colour(key, passes);
        const bool edited = passes.passes[passes.count - 1].what == pixels::pass_kind::edit;
        const bool drawn = chain.compile(90, 70, key).flip;
        EXPECT_EQ(to_mirror, drawn && !edited) << row;
        left_to_the_kernel += to_mirror ? 1 : 0;
        edited_and_mirrored += drawn && edited ? 1 : 0;
      }
      EXPECT_GT(left_to_the_kernel, 1);
      EXPECT_GT(edited_and_mirrored, 1);
      expect_finished(pictures, expected);
    }
  }
}

TEST(finish_pictures, launches_nothing_for_no_rows) {
  some_pictures none(1, 0, 224, 224, dtype::f32, layout::nchw, imagenet);
  const std::size_t before = emulated_launches;
  EXPECT_EQ(launch_finish_pictures(none.batch, {}), 0);
  EXPECT_EQ(emulated_launches, before);
  finish_pictures(none.batch);
}

TEST(finish_pictures, loads_all_its_kernels_before_the_first_launch) {
  EXPECT_EQ(load_finish_pictures(), 0);
  EXPECT_EQ(emulated_loads, (3U + 5 + 5) * 2 + 3 * 2 * 3 + 3)
      << "for each type: planes, pixels, one by one; of 2 bytes planes and pixels by stores of 8 bytes too; mixed and "
         "not. With programs: planes, pixels, one by one; mixed and not, u8 not";
}

// Before any memory is looked at: where numbers of 32 bits would have begun anew, rows of pixels would stay unwritten.
TEST(finish_pictures, refuses_a_picture_of_more_pixels_than_its_numbers_count) {
  for (const auto& [height, width] : {std::pair<std::uint32_t, std::uint32_t>{65'536, 65'536},
                                      {1, 1'431'655'766},
                                      {715'827'883, 1},
                                      {4'294'967'295, 4'294'967'295}}) {
    EXPECT_FALSE(fits_a_picture(height, width));
    const picture_batch giant{.rows = 1, .height = height, .width = width};
    const std::size_t before = emulated_launches;
    EXPECT_NE(launch_finish_pictures(giant, {}), 0) << height << " x " << width;
    EXPECT_EQ(emulated_launches, before);
  }
  EXPECT_TRUE(fits_a_picture(26'754, 26'754));
  EXPECT_TRUE(fits_a_picture(0, 5));
}

TEST(finish_pictures, refuses_what_is_no_float) {
  some_pictures pictures(1, 1, 4, 4, dtype::f32, layout::nchw, imagenet);
  pictures.batch.type = dtype::i64;
  EXPECT_NE(launch_finish_pictures(pictures.batch, {}), 0);
}

}  // namespace
}  // namespace leat::stages

// Steps of colour and warps on the device: drawn chains, cut at every place between the host and the device, give the bits that the host alone gives, by
// the twin on the host and by the kernels' own source.
#include "stages/device/finish_pictures.hpp"
#include "stages/device/picture_work.hpp"
#include "stages/device/prepare_pictures.hpp"
#include "stages/device/write_program.hpp"
#include "stages/pixels/recipe.hpp"
#include "stages/pixels/row_writer.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/pixels/store.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"

#include <leat/transforms.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

// What the test is about: the kernel as nvcc gets it.
#include "stages/device/finish_programs_cuda.cu"  // NOLINT

namespace leat::stages {
namespace {

namespace tr = leat::transforms;

/// Memory that begins at a multiple of 16, with nothing behind it: AddressSanitizer sees who reads there.
class aligned_memory {
 public:
  explicit aligned_memory(std::size_t bytes) : bytes_(bytes), storage_(new(std::align_val_t(64)) std::byte[bytes]) {
    std::fill_n(storage_.get(), bytes, std::byte{0xA5});
  }
  [[nodiscard]] std::byte* data() const { return storage_.get(); }
  [[nodiscard]] std::uint8_t* values() const { return reinterpret_cast<std::uint8_t*>(storage_.get()); }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  [[nodiscard]] std::vector<std::byte> copy() const { return {data(), data() + bytes_}; }

 private:
  struct release {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t(64)); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte[], release> storage_;
};

/// A block of threads that run one after the other, from the first or from the last, up to each barrier.
template <std::uint32_t count, bool backwards>
class emulated_team {
 public:
  template <class F>
  void run(const F& f) {
    for (std::uint32_t i = 0; i < count; ++i) f(backwards ? count - 1 - i : i, count);
  }
  void barrier() {}
  template <class Number>
  static void add(Number* to, Number what) {
    *to += what;
  }
};

struct picture_size {
  std::uint32_t height;
  std::uint32_t width;
};

/// Rows of noise with runs of one value, so that counts and ranges differ.
std::vector<std::uint8_t> some_pixels(std::uint64_t seed, std::size_t count) {
  std::vector<std::uint8_t> made(count);
  testing::seeded_random random(seed);
  const std::uint64_t least = random.below(120);
  const std::uint64_t span = 1 + random.below(256 - least);
  for (std::uint8_t& each : made) each = static_cast<std::uint8_t>(least + random.below(span));
  return made;
}

/// A chain with the draws of several rows.
struct drawn_rows {
  drawn_rows(std::vector<transform> steps, picture_size size, std::uint32_t rows, std::uint64_t seed)
      : chain(with_size(std::move(steps), size)), size(size), pixels(some_pixels(seed, rows * elements())) {
    recipes.resize(rows);
    for (std::uint32_t row = 0; row < rows; ++row) {
      chain.draw_colour({.seed = seed, .epoch = 1, .draw = row}, recipes[row]);
      flips.push_back(row % 2 != 0);
    }
  }

  static std::vector<transform> with_size(std::vector<transform> steps, picture_size size) {
    steps.insert(steps.begin(),
                 tr::resize{.height = static_cast<int>(size.height), .width = static_cast<int>(size.width)});
    return steps;
  }
  [[nodiscard]] std::size_t elements() const { return std::size_t{size.height} * size.width * 3; }
  [[nodiscard]] std::uint32_t rows() const { return static_cast<std::uint32_t>(recipes.size()); }

  /// A picture's row as the host makes it.
  [[nodiscard]] std::vector<std::byte> on_host(const pixels::store& how, const pixels::recipe& passes,
                                               const std::uint8_t* from, bool flip) const {
    const auto height = static_cast<int>(size.height);
    const auto width = static_cast<int>(size.width);
    std::vector<std::byte> row(how.row_bytes(height, width));
    pixels::row_writer writer(how, &passes, height, width, row.data());
    pixels::scratch_budget budget(std::size_t{64} << 20);
    pixels::scratch_arena arena(budget);
    arena.begin();
    EXPECT_TRUE(arena.reserve(writer.scratch_bytes()));
    EXPECT_TRUE(writer.start(arena));
    std::vector<std::uint8_t> line(size.width * std::size_t{3});
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const int from_x = flip ? width - 1 - x : x;
        for (int c = 0; c < 3; ++c) {
          line[static_cast<std::size_t>(writer.line_order() == layout::nchw ? c * width + x : x * 3 + c)] =
              from[(y * width + from_x) * 3 + c];
        }
      }
      writer.take(line.data(), y);
    }
    EXPECT_TRUE(writer.finish());
    arena.end();
    return row;
  }

  pixels::pipeline chain;
  picture_size size;
  std::vector<std::uint8_t> pixels;
  std::vector<pixels::recipe> recipes;
  std::vector<bool> flips;
};

/// What a device makes of rows of which the host has done the first `done` passes (or all, where there are fewer). Rows with a pass that sees
/// their sides the host has mirrored before.
class on_device {
 public:
  on_device(const drawn_rows& of, const pixels::store& how, std::size_t done)
      : of_(of),
        how_(how),
        layout_(layout_of(of.chain)),
        from_(of.rows() * of.elements()),
        programs_(std::size_t{of.rows()} * layout_.record_bytes),
        records_(std::size_t{of.rows()} * (layout_.record_bytes + layout_.tables * program_tables_bytes)),
        made_(from_.size()),
        between_(2 * from_.size()),
        noise_(std::size_t{of.rows()} * layout_.noise_values * sizeof(float)) {
    const pixels::store plain = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
    for (std::uint32_t row = 0; row < of.rows(); ++row) {
      pixels::recipe here = of.recipes[row];
      here.count = std::min(done, here.count);
      here.erased.reset();
      const bool to_mirror = of.flips[row] && !of.recipes[row].sees_sides();
      const std::vector<std::byte> pixels =
          of.on_host(plain, here, of.pixels.data() + row * of.elements(), of.flips[row] && !to_mirror);
      std::copy(pixels.begin(), pixels.end(), from_.data() + row * of.elements());
      write_program(layout_, of.recipes[row], here.count, to_mirror,
                    {programs_.data() + std::size_t{row} * layout_.record_bytes, layout_.record_bytes});
    }
  }

  [[nodiscard]] picture_preparation preparation() const {
    return {.from = from_.values(),
            .programs = programs_.values(),
            .records = records_.values(),
            .made = layout_.looks_at_neighbours ? made_.values() : nullptr,
            .between = layout_.looks_at_neighbours ? reinterpret_cast<std::uint16_t*>(between_.data()) : nullptr,
            .noise = layout_.noise_values != 0 ? reinterpret_cast<float*>(noise_.data()) : nullptr,
            .program_bytes = layout_.record_bytes,
            .record_bytes = layout_.record_bytes + layout_.tables * program_tables_bytes,
            .rows = of_.rows(),
            .height = of_.size.height,
            .width = of_.size.width,
            .noise_values = layout_.noise_values};
  }
  template <class Team>
  void prepare_by() {
    picture_threads::picture_memory memory;
    for (std::uint32_t row = 0; row < of_.rows(); ++row) {
      Team team;
      picture_threads::prepare_row(team, &memory, preparation(), row);
    }
  }
  void prepare() { prepare_pictures(preparation()); }

  [[nodiscard]] picture_batch batch() const {
    picture_batch pictures = pictures_of(how_, of_.size.height, of_.size.width);
    pictures.from = from_.values();
    pictures.rows = of_.rows();
    pictures.programs = layout_.looks_at_picture ? records_.values() : programs_.values();
    pictures.program_bytes =
        layout_.record_bytes + (layout_.looks_at_picture ? layout_.tables * program_tables_bytes : 0);
    pictures.moved = made_.values();
    pictures.noise = reinterpret_cast<const float*>(noise_.data());
    pictures.noise_values = layout_.noise_values;
    std::copy(layout_.erased.begin(), layout_.erased.end(), pictures.erased);
    return pictures;
  }
  [[nodiscard]] std::size_t bytes() const { return from_.size() * size_bytes(how_.type); }

 private:
  const drawn_rows& of_;
  const pixels::store& how_;
  program_layout layout_;
  aligned_memory from_;
  aligned_memory programs_;
  aligned_memory records_;
  aligned_memory made_;
  aligned_memory between_;
  aligned_memory noise_;
};

std::vector<std::byte> expected_of(const drawn_rows& rows, const pixels::store& how) {
  std::vector<std::byte> all;
  for (std::uint32_t row = 0; row < rows.rows(); ++row) {
    const std::vector<std::byte> made =
        rows.on_host(how, rows.recipes[row], rows.pixels.data() + row * rows.elements(), rows.flips[row]);
    all.insert(all.end(), made.begin(), made.end());
  }
  return all;
}

// Each at every place where it can be cut.
void expect_the_hosts_bits(const drawn_rows& rows, dtype type, layout order, std::uint64_t seed) {
  const pixels::store how =
      type == dtype::u8 ? pixels::store::from(type, order, std::nullopt) : pixels::store::from(type, order, imagenet);
  const std::vector<std::byte> expected = expected_of(rows, how);
  std::size_t most = 0;
  for (const pixels::recipe& each : rows.recipes) most = std::max(most, each.count);
  testing::seeded_random random(seed);
  for (std::size_t done = 0; done <= most; ++done) {
    SCOPED_TRACE(std::string(name(type)) + (order == layout::nchw ? " nchw " : " nhwc ") +
                 std::to_string(rows.size.height) + " x " + std::to_string(rows.size.width) + ", " +
                 std::to_string(done) + " passes on the host");
    on_device device(rows, how, done);
    switch (random.below(3)) {
      case 0:
        device.prepare();
        break;
      case 1:
        device.prepare_by<emulated_team<64, false>>();
        break;
      default:
        device.prepare_by<emulated_team<37, true>>();
    }
    picture_batch pictures = device.batch();
    const aligned_memory twin(device.bytes());
    pictures.to = twin.data();
    finish_pictures(pictures);
    EXPECT_TRUE(twin.copy() == expected) << "the twin";
    const aligned_memory kernel(device.bytes());
    pictures.to = kernel.data();
    EXPECT_EQ(launch_finish_programs(pictures, {}), 0);
    EXPECT_TRUE(kernel.copy() == expected) << "the kernel";
  }
}

std::vector<transform> every_step() {
  return {tr::brightness{{0.3, 1.9}},
          tr::contrast{{0.2, 1.8}},
          tr::saturation{{0, 2}},
          tr::hue{{-0.5, 0.5}},
          tr::gamma{{0.4, 2.5}},
          tr::color_jitter{0.4, 0.4, 0.4, 0.1},
          tr::grayscale{},
          tr::invert{},
          tr::posterize{3},
          tr::solarize{100},
          tr::autocontrast{},
          tr::equalize{},
          tr::sharpness{{0, 2.5}},
          tr::gaussian_blur{3, {0.1, 2}},
          tr::channel_permutation{},
          tr::lookup{"swap", [](draws& numbers) {
                       const auto by = static_cast<int>(numbers.uniform() * 50);
                       return table::of_channels([by](int c, int v) { return v + by * c; });
                     }}};
}

std::vector<transform> every_warp() {
  return {tr::rotate{.degrees = {-180, 180}, .fill = {7, 250, 40}},
          tr::rotate{.degrees = {-40, 40}, .how = filter::bilinear, .fill = {255, 0, 9}, .center = {0, 1.5}},
          tr::affine{.degrees = {-90, 90},
                     .translate = {0.3, 0.4},
                     .scale = {0.3, 3},
                     .shear_x = {-30, 30},
                     .shear_y = {-30, 30},
                     .how = filter::bilinear},
          tr::shear{.x = {-60, 60}, .y = {-20, 60}},
          tr::translate{.x = {-1, 1}, .y = {-0.5, 0.5}, .fill = {1, 2, 3}},
          tr::perspective{.distortion = 0.9, .how = filter::bilinear, .fill = {90, 0, 255}},
          tr::perspective{.distortion = 0.6, .how = filter::nearest},
          tr::vertical_flip{},
          tr::rand_augment{.ops = 3, .magnitude = 20, .how = filter::bilinear},
          tr::trivial_augment{},
          tr::auto_augment{},
          tr::timm_rand_augment{.ops = 2, .probability = 0.9}};
}

constexpr dtype types[] = {dtype::f32, dtype::f16, dtype::bf16, dtype::u8};
constexpr layout orders[] = {layout::nchw, layout::nhwc};

TEST(picture_programs, give_the_hosts_bits_for_each_step_by_itself) {
  std::uint64_t seed = 1;
  std::vector<transform> all = every_step();
  for (const transform& each : every_warp()) all.push_back(each);
  for (const transform& step : all) {
    SCOPED_TRACE(std::string(step.name()));
    for (const picture_size size : {picture_size{9, 12}, {7, 5}, {8, 16}}) {
      const drawn_rows rows({step}, size, 3, ++seed);
      expect_the_hosts_bits(rows, types[seed % 4], orders[seed / 4 % 2], seed);
    }
  }
}

// Several steps of each kind: tables that meet, statistics of what other statistics have made, neighbours of neighbours, warps of warps.
TEST(picture_programs, give_the_hosts_bits_for_chains_of_any_steps) {
  testing::for_each_seed(60, [](std::uint64_t seed) {
    testing::seeded_random random(seed);
    std::vector<transform> all = every_step();
    if (seed % 2 == 0) {
      const std::vector<transform> warps = every_warp();
      all.insert(all.end(), warps.begin(), warps.begin() + 8);
    }
    std::vector<transform> steps;
    const std::uint64_t count = 1 + random.below(6);
    for (std::uint64_t i = 0; i < count; ++i) {
      transform step = all[random.below(all.size())];
      if (random.below(3) == 0) step = tr::random_apply{0.5, {step, all[random.below(all.size())]}};
      steps.push_back(std::move(step));
    }
    const dtype type = types[random.below(4)];
    if (random.below(2) == 0) {
      steps.emplace_back(tr::random_erasing{.probability = 0.7,
                                            .scale = {0.02, random.below(2) == 0 ? 0.33 : 1.0},
                                            .value = {0, type == dtype::u8 ? 7.0 : 0.25, 255},
                                            .noise = type != dtype::u8 && random.below(2) == 0});
    }
    const picture_size size{static_cast<std::uint32_t>(4 + random.below(20)),
                            static_cast<std::uint32_t>(4 + random.below(36))};
    const drawn_rows rows(steps, size, 3, seed);
    expect_the_hosts_bits(rows, type, orders[random.below(2)], seed);
  });
}

// Of every width: words of a row begin anywhere, and a bilinear rim is one pixel or all there is.
TEST(picture_programs, warp_pictures_of_any_width_with_the_hosts_bits) {
  const std::vector<transform> warps = every_warp();
  testing::seeded_random random(7);
  const auto some_warp = [&] { return warps[random.below(8)]; };
  for (std::uint32_t width = 1; width <= 41; ++width) {
    const picture_size size{width == 41 ? 56U : static_cast<std::uint32_t>(1 + random.below(12)),
                            width == 41 ? 224U : width};
    std::vector<transform> steps = {some_warp(), tr::brightness{{0.5, 1.5}}, some_warp(), some_warp()};
    if (width % 3 == 0) steps.emplace_back(tr::saturation{{0, 2}});
    if (width % 4 == 0) steps.emplace_back(tr::random_erasing{.probability = 0.8, .value = {1, 2, 3}});
    const drawn_rows rows(steps, size, 2, width);
    expect_the_hosts_bits(rows, types[width % 4], orders[width / 4 % 2], width);
  }
}

// What no step draws: horizons, all black, places far outside, numbers too large for integers.
TEST(picture_programs, warp_by_any_matrix_with_the_hosts_bits) {
  std::uint64_t horizons = 0;
  testing::for_each_seed(40, [&](std::uint64_t seed) {
    testing::seeded_random random(seed);
    const auto uniform = [&](double from, double to) {
      return from + (to - from) * static_cast<double>(random.next() >> 11) * 0x1p-53;
    };
    const picture_size size{static_cast<std::uint32_t>(1 + random.below(30)),
                            static_cast<std::uint32_t>(1 + random.below(40))};
    const filter how = seed % 2 == 0 ? filter::bilinear : filter::nearest;
    drawn_rows rows({tr::perspective{.how = how, .fill = {200, 3, 77}}}, size, 8, seed);
    for (std::uint32_t row = 0; row < rows.rows(); ++row) {
      pixels::warp_matrix& from = rows.recipes[row].passes[0].from;
      for (double& each : from) each = uniform(-2, 2);
      from[2] = uniform(-1, 1) * size.width;
      from[5] = uniform(-1, 1) * size.height;
      switch (row) {
        case 0:  // by halves: places and weights at exact bounds
          for (double& each : from) each = std::nearbyint(2 * each) / 2;
          from[6] = from[7] = 0;
          from[8] = 1;
          break;
        case 1:  // the horizon crosses it
          from[6] = uniform(-1, 1) / size.width;
          from[7] = uniform(-1, 1) / size.height;
          from[8] = uniform(0, 1);
          break;
        case 2:
          from = {};
          break;
        case 3:
          from = {1e9, 0, 0, 0, -1e9, 5, 0, 0, 1};
          break;
        case 4:  // about the first pixel, from below 0
          from = {1, 0, -1e-20, 0, 1, -1e-17, 1e-20, 0, 1};
          break;
        case 5:
          from = {1e300, 1e300, 0, -1e300, 1, 0, 1e-300, 0, 1e-308};
          break;
        default:
          from[6] = 0;
          from[7] = row == 6 ? 0 : uniform(0, 0.1);
          from[8] = 1;
      }
      horizons += from[6] != 0 && from[8] + from[6] * size.width < 0 ? 1 : 0;
    }
    expect_the_hosts_bits(rows, types[seed % 4], orders[seed / 4 % 2], seed);
  });
  EXPECT_GT(horizons, 0U);
}

// Erased rows are mixed as they are.
TEST(picture_programs, are_done_before_rows_are_mixed) {
  std::uint64_t seed = 100;
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    for (const layout order : orders) {
      for (const picture_size size : {picture_size{9, 12}, {7, 5}}) {
        ++seed;
        const tr::random_erasing erasing{.probability = 0.9, .noise = seed % 2 == 0};
        const tr::random_apply turned{0.5, {tr::rotate{.degrees = {-30, 30}, .how = filter::bilinear}}};
        const drawn_rows rows({tr::color_jitter{0.4, 0.4, 0.4, 0.1}, turned, erasing}, size, 5, seed);
        const pixels::store how = pixels::store::from(type, order, imagenet);
        on_device device(rows, how, 0);
        device.prepare();
        picture_batch pictures = device.batch();
        std::vector<mix_row> mixed(rows.rows());
        mixed[0] = {.own = 0.25F, .other = 0.75F};
        mixed[2] = {.left = 1, .top = 2, .right = 4, .bottom = 7};
        mixed[4] = {.own = 0.5F, .other = 0.5F};
        std::vector<std::byte> expected = expected_of(rows, how);
        const std::vector<std::byte> before = expected;
        const std::size_t row_bytes = expected.size() / rows.rows();
        for (std::uint32_t row = 0; row < rows.rows(); ++row) {
          mix_picture(pictures, mixed[row], expected.data() + row * row_bytes,
                      before.data() + partner_of(row, rows.rows()) * row_bytes);
        }
        pictures.mixed = mixed.data();
        for (const bool by_kernel : {false, true}) {
          const aligned_memory made(device.bytes());
          pictures.to = made.data();
          if (by_kernel) {
            EXPECT_EQ(launch_finish_programs(pictures, {}), 0);
          } else {
            finish_pictures(pictures);
          }
          EXPECT_TRUE(made.copy() == expected) << by_kernel;
        }
      }
    }
  }
}

TEST(picture_programs, take_a_fiftieth_of_the_bytes_of_the_pixels_at_most) {
  const std::vector<transform> steps = parse_transforms(
      "resize(224x224) random_apply(0.8, color_jitter(0.4, 0.4, 0.4, 0.1)) random_apply(0.2, grayscale) "
      "random_apply(0.5, "
      "gaussian_blur(23, 0.1..2)) random_apply(0.2, solarize(128)) random_erasing(0.25)");
  EXPECT_LE(layout_of(pixels::pipeline(steps)).record_bytes, 224U * 224 * 3 / 50);
}

// Numbers that no host writes: whatever a record holds, nothing beside it and the picture is touched.
TEST(picture_programs, stay_within_their_record_whatever_it_says) {
  testing::for_each_seed(300, [](std::uint64_t seed) {
    testing::seeded_random random(seed);
    const picture_size size{6, 8};
    std::vector<transform> steps = {tr::equalize{},
                                    tr::lookup{"t", [](draws&) { return table::of([](int v) { return 255 - v; }); }},
                                    tr::gaussian_blur{5, {1, 1}}, tr::autocontrast{}};
    // Head, steps and the numbers of both: 64, 2 * 16 and 2 * 80 bytes.
    if (seed % 3 == 0) steps = {tr::rotate{{20, 20}, filter::bilinear}, tr::perspective{0.9}};
    const drawn_rows rows(steps, size, 1, seed);
    const pixels::store how = pixels::store::from(dtype::f32, layout::nchw, imagenet);
    on_device device(rows, how, 0);
    auto* const record = const_cast<std::uint8_t*>(device.preparation().programs);
    const std::uint32_t bytes = device.preparation().program_bytes;
    for (int i = 0; i < 4; ++i)
      record[random.below(std::min(bytes, seed % 3 == 0 ? 256U : 160U))] = static_cast<std::uint8_t>(random.below(256));
    auto& head = *reinterpret_cast<picture_program*>(record);
    head.first = head.moved = 0;
    device.prepare();
    picture_batch pictures = device.batch();
    const aligned_memory twin(device.bytes());
    pictures.to = twin.data();
    finish_pictures(pictures);
    const aligned_memory kernel(device.bytes());
    pictures.to = kernel.data();
    EXPECT_EQ(launch_finish_programs(pictures, {}), 0);
    EXPECT_TRUE(kernel.copy() == twin.copy());
  });
}

}  // namespace
}  // namespace leat::stages

// What does each operation of colour cost on a 224 x 224 picture of u8, beside a plain loop of the same formula? And what do policies cost the
// host where a device does the rest?
//
//     augment_benchmark [--pictures=FILE] [--rounds=N] [--json] [--plain=off] [--toy]
//     augment_benchmark --device [--pictures=FILE] [--rounds=N] [--toy]
//
// FILE holds pictures of 224 x 224 x 3 bytes, interleaved (benchmarks/peers/augment.py writes it); without it 64 textures
// are made. One thread; CPU time of a picture, medians of N rounds over all pictures with the lowest and the highest. A
// picture is taken line by line, as the resampler gives it, and the row is u8; "nothing" is that without a step, and is in every other
// figure. Before anything is measured, each operation is compared with its plain loop: within one level.
//
// --device: passes of 640 draws, to a row of u8 and, for a device, its record. In turns: all by the host; the host up to the last warp, as it
// was before devices did them; and as it is. A view of DINO's is 96 x 96. No device is there, and none is needed.
#include "stages/device/write_program.hpp"
#include "stages/pixels/row_writer.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/reference_colour.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace leat::benchmarks {
namespace {

constexpr int side = 224;
constexpr std::size_t picture_bytes = std::size_t{side} * side * 3;

struct operation {
  const char* name;
  const char* text;
};

constexpr operation operations[] = {
    {"nothing", ""},
    {"brightness", "brightness(1.3)"},
    {"contrast", "contrast(0.8)"},
    {"saturation", "saturation(1.25)"},
    {"hue", "hue(0.07)"},
    {"color_jitter", "brightness(1.3) contrast(0.8) saturation(1.25) hue(0.07)"},
    {"grayscale", "grayscale"},
    {"gamma", "gamma(0.8)"},
    {"invert", "invert"},
    {"posterize", "posterize(5)"},
    {"solarize", "solarize(200)"},
    {"autocontrast", "autocontrast"},
    {"equalize", "equalize"},
    {"sharpness", "sharpness(2)"},
    {"gaussian_blur", "gaussian_blur(23, 1.3)"},
    {"four_tables", "brightness(1.3) posterize(5) autocontrast solarize(200)"},
    {"channel_permutation", "channel_permutation"},
    {"random_erasing", "random_erasing(1, 0.1, 1)"},
    {"rotate", "rotate(13, bilinear)"},
    {"perspective", "perspective(0.3)"},
    {"gaussian_noise", "gaussian_noise(0, 0.3)"},
    {"downscale", "downscale(0.25)"},
    {"jpeg_quality", "jpeg_quality(80)"},
    {"median_blur", "median_blur(5)"},
    {"motion_blur", "motion_blur(5, 30, 0, 0)"},
};

double cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

using picture_values = std::vector<std::uint8_t>;

std::vector<picture_values> read_pictures(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> all{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (all.empty() || all.size() % picture_bytes != 0) {
    std::fprintf(stderr, "%s holds no pictures of 224 x 224 x 3 bytes\n", path.c_str());
    std::exit(1);
  }
  std::vector<picture_values> pictures;
  for (std::size_t at = 0; at < all.size(); at += picture_bytes) {
    pictures.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                          all.begin() + static_cast<std::ptrdiff_t>(at + picture_bytes));
  }
  return pictures;
}

std::vector<picture_values> make_pictures(std::size_t count) {
  std::vector<picture_values> pictures;
  for (std::size_t i = 0; i < count; ++i) {
    const testing::rgb_picture made = testing::make_texture(i + 1, side, side);
    pictures.push_back(made.pixels);
  }
  return pictures;
}

/// One operation on planar lines, as the row's.
class measured {
 public:
  explicit measured(const operation& what)
      : chain_([&] {
          std::vector<transform> steps = {transforms::center_crop{side, side}};
          for (transform& each : parse_transforms(what.text)) steps.push_back(std::move(each));
          return steps;
        }()) {
    chain_.draw_colour({7, 0, 3}, passes_);
    arena_.begin();
    row_.resize(picture_bytes);
  }

  const std::vector<std::byte>& operator()(const std::vector<std::uint8_t>& planar) {
    arena_.end();
    arena_.begin();
    pixels::row_writer writer(how_, &passes_, side, side, row_.data());
    if (!arena_.reserve(writer.scratch_bytes()) || !writer.start(arena_)) std::exit(1);
    for (int y = 0; y < side; ++y) writer.take(planar.data() + static_cast<std::size_t>(y) * side * 3, y);
    if (!writer.finish()) std::exit(1);
    return row_;
  }

  [[nodiscard]] const pixels::recipe& passes() const noexcept { return passes_; }

 private:
  pixels::pipeline chain_;
  pixels::recipe passes_;
  const pixels::store how_ = pixels::store::from(dtype::u8, layout::nchw, std::nullopt);
  pixels::scratch_budget budget_{std::size_t{16} << 20};
  pixels::scratch_arena arena_{budget_};
  std::vector<std::byte> row_;
};

// Lines of three planes, as the resampler gives them: of a corner of the picture.
std::vector<std::uint8_t> lines_of(const picture_values& interleaved, std::size_t of_side = side) {
  std::vector<std::uint8_t> planar(of_side * of_side * 3);
  for (std::size_t y = 0; y < of_side; ++y) {
    for (std::size_t x = 0; x < of_side; ++x) {
      for (std::size_t c = 0; c < 3; ++c) planar[(y * 3 + c) * of_side + x] = interleaved[(y * side + x) * 3 + c];
    }
  }
  return planar;
}

testing::rgb_picture plain(const picture_values& values, const pixels::recipe& passes) {
  testing::rgb_picture made{side, side, values};
  for (const pixels::colour_pass& pass : passes.drawn()) made = testing::reference_colour(made, pass);
  return made;
}

// Noise and damage have none: operations_test has their definitions.
bool has_plain(const pixels::recipe& passes) {
  return std::none_of(passes.drawn().begin(), passes.drawn().end(),
                      [](const pixels::colour_pass& pass) { return pass.what == pixels::pass_kind::operation; });
}

// Of one pass only: differences of a level grow in the passes behind.
void compare(const operation& what, measured& ours, const picture_values& values) {
  if (ours.passes().count != 1 || !has_plain(ours.passes())) return;
  const testing::rgb_picture expected = plain(values, ours.passes());
  const std::vector<std::byte>& row = ours(lines_of(values));
  for (std::size_t i = 0; i < std::size_t{side} * side; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      const int got = std::to_integer<int>(row[c * side * side + i]);
      if (std::abs(got - expected.pixels[3 * i + c]) <= 1) continue;
      std::fprintf(stderr, "%s: value %zu of channel %zu is %d, and by the plain loop %d\n", what.name, i, c, got,
                   expected.pixels[3 * i + c]);
      std::exit(1);
    }
  }
}

struct figure {
  double median = 0;
  double lowest = 0;
  double highest = 0;
};

figure figure_of(std::vector<double> rounds) {
  std::sort(rounds.begin(), rounds.end());
  return {rounds[rounds.size() / 2], rounds.front(), rounds.back()};
}

int run(const std::string& file, std::size_t rounds, bool json, bool with_plain, bool toy) {
  std::vector<picture_values> pictures = file.empty() ? make_pictures(toy ? 2 : 64) : read_pictures(file);
  std::vector<std::vector<std::uint8_t>> planar;
  for (const picture_values& each : pictures) planar.push_back(lines_of(each));
  std::string out = "{";
  for (const operation& what : operations) {
    measured ours(what);
    compare(what, ours, pictures.front());
    std::vector<double> us;
    for (std::size_t round = 0; round <= rounds; ++round) {
      const double begin = cpu_s();
      for (const auto& each : planar) ours(each);
      const double took = (cpu_s() - begin) * 1e6 / static_cast<double>(planar.size());
      if (round > 0) us.push_back(took);  // The first one warms up.
    }
    const figure mine = figure_of(us);
    double plain_us = 0;
    if (with_plain && has_plain(ours.passes())) {
      const double begin = cpu_s();
      static_cast<void>(plain(pictures.front(), ours.passes()));
      plain_us = (cpu_s() - begin) * 1e6;
    }
    if (json) {
      out += std::string(out.size() > 1 ? ", " : "") + "\"" + what.name + "\": " + std::to_string(mine.median);
    } else {
      std::printf("%-22s %8.1f us  (%.1f to %.1f)   plain loop %10.0f us\n", what.name, mine.median, mine.lowest,
                  mine.highest, plain_us);
    }
  }
  if (json) std::printf("%s}\n", out.c_str());
  return 0;
}

/// A chain's rows, of which a device does some passes.
class shared_rows {
 public:
  shared_rows(const char* steps, int of_side)
      : side_(of_side),
        chain_(parse_transforms("center_crop(" + std::to_string(of_side) + ") " + steps)),
        layout_(stages::layout_of(chain_)),
        record_(layout_.record_bytes) {
    row_.resize(static_cast<std::size_t>(of_side) * static_cast<std::size_t>(of_side) * 3);
  }

  [[nodiscard]] pixels::recipe draw(std::uint64_t number) const {
    pixels::recipe drawn;
    chain_.draw_colour({7, 0, number}, drawn);
    return drawn;
  }
  /// The first `here` of its passes, and a record of the others where there is a device.
  void make(const picture_values& planar, const pixels::recipe& drawn, std::size_t here, bool has_device) {
    pixels::recipe own = drawn;
    own.count = here;
    arena_.end();
    arena_.begin();
    pixels::row_writer writer(how_, &own, side_, side_, row_.data());
    if (!arena_.reserve(writer.scratch_bytes()) || !writer.start(arena_)) std::exit(1);
    const std::size_t line = row_.size() / static_cast<std::size_t>(side_);
    for (int y = 0; y < side_; ++y) writer.take(planar.data() + static_cast<std::size_t>(y) * line, y);
    if (!writer.finish()) std::exit(1);
    if (has_device) stages::write_program(layout_, drawn, here, false, record_);
  }

 private:
  const int side_;
  const pixels::pipeline chain_;
  const stages::program_layout layout_;
  const pixels::store how_ = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  pixels::scratch_budget budget_{std::size_t{16} << 20};
  pixels::scratch_arena arena_{budget_};
  std::vector<std::byte> row_;
  std::vector<std::byte> record_;
};

std::size_t up_to_last_warp(const pixels::recipe& drawn) {
  std::size_t count = drawn.count;
  while (count > drawn.host_count() && drawn.passes[count - 1].what != pixels::pass_kind::warp) --count;
  return count;
}

struct shared_chain {
  const char* name;
  const char* steps;
  int of_side = side;
};

// Of DINO (Caron et al., ICCV 2021) the two global views and a local one.
constexpr shared_chain shared_chains[] = {
    {"rand_augment(2, 9)", "rand_augment(2, 9)"},
    {"trivial_augment", "trivial_augment"},
    {"auto_augment", "auto_augment"},
    {"timm_rand_augment(9, 2, 0.5)", "timm_rand_augment(9, 2, 0.5)"},
    {"rotate(-30..30, bilinear)", "rotate(-30..30, bilinear)"},
    {"perspective(0.5)", "perspective(0.5)"},
    {"DINO, first view of 224",
     "random_apply(0.8, color_jitter(0.4, 0.4, 0.2, 0.1)) random_apply(0.2, grayscale) gaussian_blur(23, 0.1..2)"},
    {"DINO, second view of 224",
     "random_apply(0.8, color_jitter(0.4, 0.4, 0.2, 0.1)) random_apply(0.2, grayscale) "
     "random_apply(0.1, gaussian_blur(23, 0.1..2)) random_apply(0.2, solarize(128))"},
    {"DINO, a view of 96",
     "random_apply(0.8, color_jitter(0.4, 0.4, 0.2, 0.1)) random_apply(0.2, grayscale) "
     "random_apply(0.5, gaussian_blur(23, 0.1..2))",
     96}};

int run_beside_device(const std::string& file, std::size_t rounds, bool toy) {
  const std::vector<picture_values> pictures = file.empty() ? make_pictures(toy ? 2 : 64) : read_pictures(file);
  for (const shared_chain& chain : shared_chains) {
    std::vector<picture_values> planar;
    for (const picture_values& each : pictures) {
      planar.push_back(lines_of(each, static_cast<std::size_t>(chain.of_side)));
    }
    shared_rows rows(chain.steps, chain.of_side);
    const std::size_t draws = toy ? 20 : 640;
    std::size_t passes = 0;
    std::size_t on_device[2] = {};
    std::vector<double> us[3];
    for (std::size_t round = 0; round <= rounds; ++round) {
      for (std::size_t way = 0; way < 3; ++way) {
        const double begin = cpu_s();
        for (std::size_t i = 0; i < draws; ++i) {
          const pixels::recipe drawn = rows.draw(i);
          const std::size_t here = way == 0 ? drawn.count : way == 1 ? up_to_last_warp(drawn) : drawn.host_count();
          rows.make(planar[i % planar.size()], drawn, here, way != 0);
          if (round != 0) continue;  // The first one warms up, and counts.
          (way == 0 ? passes : on_device[way - 1]) += way == 0 ? drawn.count : drawn.count - here;
        }
        if (round > 0) us[way].push_back((cpu_s() - begin) * 1e6 / static_cast<double>(draws));
      }
    }
    std::printf("%-28s", chain.name);
    for (std::size_t way = 0; way < 3; ++way) {
      const figure told = figure_of(us[way]);
      std::printf("  %7.1f us (%.1f to %.1f)", told.median, told.lowest, told.highest);
      if (way > 0) {
        std::printf(", %.0f%% of the passes on a device",
                    100.0 * static_cast<double>(on_device[way - 1]) / static_cast<double>(passes));
      }
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace
}  // namespace leat::benchmarks

int main(int count, char** given) {
  std::string file;
  std::size_t rounds = 15;
  bool json = false;
  bool with_plain = true;
  bool toy = false;
  bool beside_device = false;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = given[i];
    if (argument.starts_with("--pictures=")) {
      file = argument.substr(11);
    } else if (argument.starts_with("--rounds=")) {
      rounds = std::max<std::size_t>(1, std::strtoul(given[i] + 9, nullptr, 10));
    } else if (argument == "--json") {
      json = true;
    } else if (argument == "--device") {
      beside_device = true;
    } else if (argument == "--plain=off") {
      with_plain = false;
    } else if (argument == "--toy") {
      toy = true;
      rounds = 1;
      with_plain = false;
    } else {
      std::fprintf(stderr,
                   "augment_benchmark: what is '%s'? --pictures=FILE --rounds=N --json --plain=off --device --toy\n",
                   given[i]);
      return 2;
    }
  }
  if (beside_device) return leat::benchmarks::run_beside_device(file, rounds, toy);
  const int failed = leat::benchmarks::run(file, rounds, json, with_plain, toy);
  return failed != 0 || !toy ? failed : leat::benchmarks::run_beside_device(file, rounds, toy);
}

// The table: a line for each operation of this folder.
#include "base/text.hpp"
#include "stages/pixels/operations/operation.hpp"

#include <leat/error.hpp>

namespace leat::pixels {

#define LEAT_OPERATIONS(each)                                                                                        \
  each(gaussian_noise) each(iso_noise) each(salt_and_pepper) each(coarse_dropout) each(jpeg_quality) each(downscale) \
      each(median_blur) each(motion_blur) each(clahe)

#define LEAT_DECLARE(name) operation name##_operation();
LEAT_OPERATIONS(LEAT_DECLARE)
#undef LEAT_DECLARE

const operation* operation_of(const transform& what) noexcept {
#define LEAT_LIST(name) name##_operation(),
  static const std::array all = {LEAT_OPERATIONS(LEAT_LIST)};
#undef LEAT_LIST
  for (const operation& each : all) {
    if (each.index == what.what().index()) return &each;
  }
  return nullptr;
}

void number_check::refuse(std::string_view why) const { throw error(errc::usage, str_cat(name_, ": ", why)); }

void number_check::range(std::string_view of, const std::array<double, 2>& given, double least, double most) {
  if (!(given[0] >= least && given[0] <= given[1] && given[1] <= most)) {
    refuse(str_cat(of, " from ", given[0], " to ", given[1], ": must be ascending, and lie in ", least, "..", most));
  }
  random_ = random_ || given[0] != given[1];
  varies_ = varies_ || given[0] != given[1];
}

void number_check::range(std::string_view of, const std::array<int, 2>& given, int least, int most) {
  range(of, std::array<double, 2>{double(given[0]), double(given[1])}, least, most);
}

void number_check::kernel(const std::array<int, 2>& given, int most) {
  range("kernel", given, 1, most);
  if (given[0] % 2 == 0 || given[1] % 2 == 0) {
    refuse(str_cat("kernel from ", given[0], " to ", given[1], ": both must be odd"));
  }
}

void number_check::colour(const std::array<int, 3>& fill) const {
  for (const int value : fill) {
    if (value < 0 || value > 255) refuse(str_cat("fill ", value, ": must be 0..255"));
  }
}

double drawn_kernel(const std::array<int, 2>& range, random_draws& draws) noexcept {
  return range[0] + 2 * static_cast<double>(draws.below(static_cast<std::uint64_t>((range[1] - range[0]) / 2 + 1)));
}

random_draws operation_run::draws_of_line(int channel, int y) const noexcept {
  const std::array<char, 6> bytes = {'/',
                                     static_cast<char>(channel),
                                     static_cast<char>(y & 0xFF),
                                     static_cast<char>(y >> 8 & 0xFF),
                                     static_cast<char>(y >> 16 & 0xFF),
                                     'y'};
  return {seed, epoch, draw, operation_key(std::string_view(bytes.data(), bytes.size()), operation)};
}

}  // namespace leat::pixels

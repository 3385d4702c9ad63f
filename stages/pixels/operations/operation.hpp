// An operation of the host on a whole picture: what a file of this folder says of one struct of leat::transforms.
#pragma once

#include "base/random.hpp"
#include "stages/pixels/colour/neighbours.hpp"

#include <leat/transforms.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leat::pixels {

/// What is drawn of an operation once for a picture, in an order that is its own.
using drawn_numbers = std::array<double, 9>;

/// Refuses numbers in the name of an operation. Each throws error{errc::usage}.
class number_check {
 public:
  explicit number_check(std::string_view name) noexcept : name_(name) {}

  [[noreturn]] void refuse(std::string_view why) const;
  void range(std::string_view of, const std::array<double, 2>& given, double least, double most);
  void range(std::string_view of, const std::array<int, 2>& given, int least, int most);
  /// Sides of a filter: odd, from 1 to `most`.
  void kernel(const std::array<int, 2>& given, int most);
  void colour(const std::array<int, 3>& fill) const;
  /// It draws for each pixel.
  ///   something   some draw changes one
  void draws(bool something) noexcept {
    random_ = true;
    varies_ = varies_ || something;
  }
  [[nodiscard]] bool random() const noexcept { return random_; }
  /// Whether two draws of one picture can differ.
  [[nodiscard]] bool varies() const noexcept { return varies_; }

 private:
  std::string_view name_;
  bool random_ = false;
  bool varies_ = false;
};

/// Odd numbers of a range are as likely as one another.
[[nodiscard]] double drawn_kernel(const std::array<int, 2>& range, random_draws& draws) noexcept;
[[nodiscard]] inline double drawn_of(const std::array<double, 2>& range, random_draws& draws) noexcept {
  return range[0] == range[1] ? range[0] : draws.uniform(range[0], range[1]);
}

/// One picture.
///   to        the new picture; of an operation in place the old one itself
///   scratch   as many bytes as scratch_bytes() says, aligned for vectors
struct operation_run {
  picture from;
  picture to;
  const drawn_numbers& numbers;
  void* scratch;
  std::uint64_t seed;
  std::uint32_t epoch;
  std::uint64_t draw;
  std::uint32_t operation;

  /// What line y of the channel draws by; of all channels together the first's.
  [[nodiscard]] random_draws draws_of_line(int channel, int y) const noexcept;
};

/// Bits do not depend on the instruction set: sums of integers, or f32 and f64 rounded operation by operation.
struct operation {
  std::size_t index;  // of its struct
  bool in_place;
  void (*check)(const transform&, number_check&);
  drawn_numbers (*draw)(const transform&, random_draws&);
  std::size_t (*scratch_bytes)(const transform&, int height, int width);
  void (*apply)(const transform&, const operation_run&);
  std::string (*text)(const transform&, const drawn_numbers&);
};

/// Of Rules, which has
///     using step = transforms::...;  static constexpr bool in_place;
///     static void check(const step&, number_check&);
///     static drawn_numbers draw(const step&, random_draws&);
///     static std::size_t scratch_bytes(const step&, int height, int width);
///     static void apply(const step&, const operation_run&);
///     static transform drawn(const step&, const drawn_numbers&);    // with what was drawn in place of ranges
template <class Rules>
[[nodiscard]] operation make_operation() {
  using step = typename Rules::step;
  return {.index = transform(step{}).what().index(),
          .in_place = Rules::in_place,
          .check = [](const transform& what, number_check& to) { Rules::check(*what.get_if<step>(), to); },
          .draw = [](const transform& what, random_draws& draws) { return Rules::draw(*what.get_if<step>(), draws); },
          .scratch_bytes = [](const transform& what, int height,
                              int width) { return Rules::scratch_bytes(*what.get_if<step>(), height, width); },
          .apply = [](const transform& what, const operation_run& run) { Rules::apply(*what.get_if<step>(), run); },
          .text = [](const transform& what,
                     const drawn_numbers& numbers) { return to_string(Rules::drawn(*what.get_if<step>(), numbers)); }};
}

/// What the table has for a step, or null.
[[nodiscard]] const operation* operation_of(const transform& what) noexcept;

/// A value of 0 to 255, to the nearest.
[[nodiscard]] inline std::uint8_t to_value(float v) noexcept {
  return static_cast<std::uint8_t>(std::min(std::max(v, 0.0F), 255.0F) + 0.5F);
}

/// Beyond the rim a picture continues as its mirror image, whose outermost pixels come once (OpenCV's BORDER_REFLECT_101).
[[nodiscard]] inline int mirrored(int i, int size) noexcept {
  if (size == 1) return 0;
  while (i < 0 || i >= size) i = i < 0 ? -i : 2 * (size - 1) - i;
  return i;
}

}  // namespace leat::pixels

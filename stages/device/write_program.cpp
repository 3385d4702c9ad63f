#include "stages/device/write_program.hpp"

#include "stages/device/alignment.hpp"
#include "stages/pixels/colour/neighbours.hpp"
#include "stages/pixels/colour/tables.hpp"
#include "stages/pixels/pass_table.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>

namespace leat::stages {
namespace {

using pixels::colour_pass;
using pixels::pass_kind;
using pixels::pass_reach;

static_assert(std::is_trivially_copyable_v<picture_program> && sizeof(picture_program) == 64 &&
                  sizeof(program_step) == 16 && sizeof(program_warp) == 80 &&
                  blur_radius_max == pixels::blur_weights::radius_max,
              "they are copied to a device by bytes, and read there 16 at a time");

constexpr std::size_t table_bytes = 256;
constexpr std::size_t weight_bytes = 2 * sizeof(std::int32_t);

// One behind the other; what they refer to behind all of them.
class record_writer {
 public:
  record_writer(std::span<std::byte> to, std::size_t steps_max) noexcept
      : to_(to), data_(program_head_bytes + steps_max * sizeof(program_step)) {}

  void add(const program_step& step) noexcept {
    std::memcpy(to_.data() + program_head_bytes + count_ * sizeof step, &step, sizeof step);
    ++count_;
  }
  /// Room for `bytes`, and where it begins.
  std::byte* take(std::size_t bytes, std::uint32_t& at) noexcept {
    assert(data_ + bytes <= to_.size());
    at = static_cast<std::uint32_t>(data_);
    data_ += bytes;
    return to_.data() + at;
  }
  [[nodiscard]] std::uint8_t count() const noexcept { return static_cast<std::uint8_t>(count_); }

 private:
  const std::span<std::byte> to_;
  std::size_t data_;
  std::size_t count_ = 0;
};

// Tables beside one another are one. Where it is of one brightness, numbers say it as well.
std::size_t add_tables(const pixels::recipe& drawn, std::size_t first, record_writer& to) {
  const std::span<const colour_pass> passes = drawn.drawn();
  std::size_t end = first;
  while (end < passes.size() && passes[end].reach() == pass_reach::table) ++end;
  if (end == first + 1 && passes[first].what == pass_kind::brightness) {
    to.add({.what = step_kind::scale,
            .number = 0,
            .apart = 0,
            .at = 0,
            .a = static_cast<float>(passes[first].value),
            .b = 0});
    return end;
  }
  table made = pixels::identity_table();
  for (std::size_t i = first; i < end; ++i) pixels::append_pass(made, passes[i], drawn.key);
  const bool differ = made.values[1] != made.values[0] || made.values[2] != made.values[0];
  program_step step{.what = step_kind::map,
                    .number = 0,
                    .apart = static_cast<std::uint16_t>(differ ? table_bytes : 0),
                    .at = 0,
                    .a = 0,
                    .b = 0};
  std::byte* const tables = to.take(differ ? program_tables_bytes : table_bytes, step.at);
  for (std::size_t c = 0; c < (differ ? 3 : 1); ++c) {
    std::memcpy(tables + c * table_bytes, made.values[c].data(), table_bytes);
  }
  to.add(step);
  return end;
}

// A filter whose middle is all of it changes nothing.
void add_blur(const colour_pass& pass, record_writer& to) noexcept {
  const pixels::blur_weights weights(pass.number, pass.value);
  if (weights.radius == 0) return;
  program_step step{.what = step_kind::blur,
                    .number = static_cast<std::uint8_t>(weights.radius),
                    .apart = 0,
                    .at = 0,
                    .a = 0,
                    .b = 0};
  std::byte* at = to.take((static_cast<std::size_t>(weights.radius) + 1) * weight_bytes, step.at);
  for (std::size_t j = 0; j <= static_cast<std::size_t>(weights.radius); ++j) {
    const std::int32_t both[] = {static_cast<std::int32_t>(weights.across[j]), weights.down[j]};
    std::memcpy(at, both, sizeof both);
    at += weight_bytes;
  }
  to.add(step);
}

void add_warp(const program_layout& rows, const colour_pass& pass, record_writer& to) noexcept {
  const pixels::warp how = pixels::warp_of(pass);
  const auto fixed = pixels::fixed_numbers(how, rows.height, rows.width);
  program_warp made{.matrix = {},
                    .fill = {how.fill[0], how.fill[1], how.fill[2]},
                    .bilinear = how.how == filter::bilinear,
                    .is_affine = fixed.has_value(),
                    .padding = {}};
  if (fixed) {
    std::memcpy(made.fixed, fixed->data(), sizeof made.fixed);
  } else {
    std::memcpy(made.matrix, how.from.data(), sizeof made.matrix);
  }
  program_step step{.what = step_kind::warp, .number = 0, .apart = 0, .at = 0, .a = 0, .b = 0};
  std::memcpy(to.take(sizeof made, step.at), &made, sizeof made);
  to.add(step);
}

void add_step(const program_layout& rows, const colour_pass& pass, record_writer& to) noexcept {
  // As the host's kernels take them.
  const auto factor = static_cast<float>(pass.value);
  const auto rest = static_cast<float>(1.0 - pass.value);
  const auto plain = [&](step_kind what, float a, float b) {
    to.add({.what = what, .number = static_cast<std::uint8_t>(pass.number), .apart = 0, .at = 0, .a = a, .b = b});
  };
  switch (pass.what) {
    case pass_kind::contrast:
      return plain(step_kind::contrast, factor, rest);
    case pass_kind::saturation:
      return plain(step_kind::saturate, factor, rest);
    case pass_kind::hue:
      return plain(step_kind::turn_hue, static_cast<float>(pass.value * 6), 0);
    case pass_kind::grayscale:
      return plain(step_kind::grey, 0, 0);
    case pass_kind::channel_permutation:
      return plain(step_kind::permute, 0, 0);
    case pass_kind::autocontrast:
      return plain(step_kind::autocontrast, 0, 0);
    case pass_kind::equalize:
      return plain(step_kind::equalize, 0, 0);
    case pass_kind::sharpness:
      return plain(step_kind::sharpen, 0, rest);
    case pass_kind::gaussian_blur:
      return add_blur(pass, to);
    case pass_kind::warp:
      return add_warp(rows, pass, to);
    case pass_kind::brightness:
    case pass_kind::gamma:
    case pass_kind::invert:
    case pass_kind::posterize:
    case pass_kind::solarize:
    case pass_kind::solarize_add:
    case pass_kind::lookup:
    case pass_kind::edit:
    case pass_kind::mix_begin:
    case pass_kind::mix_add:
    case pass_kind::operation:
      assert(false && "a table is no step by itself, and an edit is the host's");
  }
}

}  // namespace

program_layout layout_of(const pixels::pipeline& steps) {
  program_layout layout{.height = steps.out_height(), .width = steps.out_width()};
  const pixels::recipe all = steps.all_passes();
  std::size_t bytes = program_head_bytes + all.count * sizeof(program_step);
  for (const colour_pass& pass : all.drawn()) {
    switch (pass.what) {
      case pass_kind::lookup:
        bytes += program_tables_bytes;
        break;
      case pass_kind::gaussian_blur:
        bytes += (static_cast<std::size_t>(pass.number) / 2 + 1) * weight_bytes;
        layout.looks_at_neighbours = true;
        break;
      case pass_kind::warp:
        bytes += sizeof(program_warp);
        layout.looks_at_neighbours = true;
        break;
      case pass_kind::sharpness:
        layout.looks_at_neighbours = true;
        break;
      case pass_kind::autocontrast:
      case pass_kind::equalize:
        ++layout.tables;
        layout.looks_at_picture = true;
        break;
      case pass_kind::contrast:
        layout.looks_at_picture = true;
        break;
      default:
        if (pass.reach() == pass_reach::table) bytes += table_bytes;
    }
  }
  layout.looks_at_picture = layout.looks_at_picture || layout.looks_at_neighbours;
  layout.record_bytes = static_cast<std::uint32_t>(device_aligned(bytes));
  if (const transforms::random_erasing* const erasing = steps.erasing()) {
    for (std::size_t c = 0; c < 3; ++c) layout.erased[c] = static_cast<float>(erasing->value[c]);
    if (erasing->noise) {
      // Sides are rounded to whole pixels, and a box is not as large as the picture.
      const double area = static_cast<double>(steps.out_height()) * steps.out_width();
      const double box = std::min(area, erasing->scale[1] * area + 0.5 * (steps.out_height() + steps.out_width()) + 1);
      layout.noise_values = static_cast<std::uint32_t>(3 * (box + 1));
      layout.looks_at_picture = true;
    }
  }
  return layout;
}

void write_program(const program_layout& rows, const pixels::recipe& drawn, std::size_t first, bool flip,
                   std::span<std::byte> to) {
  const std::span<const colour_pass> passes = drawn.drawn();
  assert(first <= passes.size());
  record_writer writer(to, passes.size() - first);
  for (std::size_t i = first; i < passes.size();) {
    if (passes[i].reach() == pass_reach::table) {
      i = add_tables(drawn, i, writer);
    } else {
      add_step(rows, passes[i++], writer);
    }
  }
  picture_program head{};
  head.step_count = writer.count();
  head.flip = flip ? 1 : 0;
  if (drawn.erased) {
    const pixels::rectangle& box = drawn.erased->box;
    const pixels::chain_step& step = *drawn.erased->of;
    head.erases = step.what.get_if<transforms::random_erasing>()->noise ? 2 : 1;
    head.noise = {
        .seed = drawn.key.seed, .draw = drawn.key.draw, .epoch = drawn.key.epoch, .operation = step.operation};
    head.erased = {.left = static_cast<std::uint32_t>(box.x),
                   .top = static_cast<std::uint32_t>(box.y),
                   .right = static_cast<std::uint32_t>(box.x + box.width),
                   .bottom = static_cast<std::uint32_t>(box.y + box.height)};
  }
  std::memcpy(to.data(), &head, sizeof head);
}

}  // namespace leat::stages

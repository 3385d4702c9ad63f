#include "stages/device/picture_operation.hpp"

#include "stages/device/alignment.hpp"
#include "stages/device/device.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace leat::stages {
namespace {

std::uint32_t record_bytes_of(const program_layout& programs) noexcept {
  return programs.record_bytes + programs.tables * program_tables_bytes;
}

}  // namespace

picture_operation::picture_operation(const picture_batch& how, const std::optional<program_layout>& programs)
    : how_(how), programs_(programs) {
  if (!programs_) return;
  how_.program_bytes = programs_->record_bytes;
  std::copy(programs_->erased.begin(), programs_->erased.end(), how_.erased);
}

std::size_t picture_operation::decoded_row_bytes() const noexcept { return std::size_t{how_.height} * how_.width * 3; }

std::size_t picture_operation::scratch_bytes(std::uint32_t rows) const noexcept {
  if (!programs_ || !programs_->looks_at_picture) return 0;
  const std::size_t records = device_aligned(std::size_t{rows} * record_bytes_of(*programs_)) + noise_bytes(rows);
  if (!programs_->looks_at_neighbours) return records;
  const std::size_t pixels = rows * decoded_row_bytes();
  return records + device_aligned(pixels) + device_aligned(2 * pixels);
}

std::size_t picture_operation::noise_bytes(std::uint32_t rows) const noexcept {
  return device_aligned(std::size_t{rows} * programs_->noise_values * sizeof(float));
}

picture_preparation picture_operation::preparation(const picture_batch& pictures, std::byte* scratch) const noexcept {
  picture_preparation made{.from = pictures.from,
                           .programs = pictures.programs,
                           .records = reinterpret_cast<std::uint8_t*>(scratch),
                           .program_bytes = programs_->record_bytes,
                           .record_bytes = record_bytes_of(*programs_),
                           .rows = pictures.rows,
                           .height = pictures.height,
                           .width = pictures.width,
                           .noise_values = programs_->noise_values};
  std::byte* const behind = scratch + device_aligned(std::size_t{pictures.rows} * made.record_bytes);
  if (made.noise_values != 0) made.noise = reinterpret_cast<float*>(behind);
  if (programs_->looks_at_neighbours) {
    std::byte* const pixels = behind + noise_bytes(pictures.rows);
    made.made = reinterpret_cast<std::uint8_t*>(pixels);
    made.between = reinterpret_cast<std::uint16_t*>(pixels + device_aligned(pictures.rows * decoded_row_bytes()));
  }
  return made;
}

void picture_operation::take_prepared(const picture_preparation& made, picture_batch& pictures) const noexcept {
  pictures.programs = made.records;
  pictures.program_bytes = made.record_bytes;
  pictures.moved = made.made;
  pictures.noise = made.noise;
  pictures.noise_values = made.noise_values;
}

picture_batch picture_operation::with_operands(std::span<const std::byte* const> from) const noexcept {
  picture_batch pictures = how_;
  pictures.from = reinterpret_cast<const std::uint8_t*>(from[0]);
  (programs_ ? pictures.programs : pictures.flips) = reinterpret_cast<const std::uint8_t*>(from[1]);
  if (from.size() > 2) pictures.mixed = reinterpret_cast<const mix_row*>(from[2]);
  return pictures;
}

failed_call picture_operation::launch(device_calls& calls, const operands& of, stream in) const noexcept {
  assert(of.from.size() >= 2);
  picture_batch pictures = with_operands(of.from);
  pictures.to = of.to;
  pictures.rows = of.rows;
  if (programs_ && programs_->looks_at_picture) {
    const picture_preparation prepared = preparation(pictures, of.scratch);
    const failed_call launched{calls.launch(prepare_pictures_kernel, &prepared, in), prepare_pictures_kernel.name, {}};
    if (launched.status != device_ok) return launched;
    take_prepared(prepared, pictures);
  }
  return {calls.launch(finish_pictures_kernel, &pictures, in), finish_pictures_kernel.name, {}};
}

void picture_operation::make_row(std::span<const std::byte* const> from, std::uint32_t row, std::byte* to,
                                 std::byte* scratch) const noexcept {
  picture_batch pictures = with_operands(from);
  if (!programs_ || !programs_->looks_at_picture) return finish_picture(pictures, row, to);
  pictures.from += row * decoded_row_bytes();
  pictures.programs += std::size_t{row} * pictures.program_bytes;
  pictures.rows = 1;
  const picture_preparation prepared = preparation(pictures, scratch);
  prepare_pictures(prepared);
  take_prepared(prepared, pictures);
  finish_picture(pictures, 0, to);
}

bool picture_operation::is_like(const device_operation& other) const noexcept {
  const auto* const by = dynamic_cast<const picture_operation*>(&other);
  if (by == nullptr) return false;
  const picture_batch& its = by->how_;
  return how_.height == its.height && how_.width == its.width && how_.type == its.type && how_.order == its.order &&
         std::equal(std::begin(how_.scale), std::end(how_.scale), its.scale) &&
         std::equal(std::begin(how_.bias), std::end(how_.bias), its.bias) && programs_ == by->programs_;
}

}  // namespace leat::stages

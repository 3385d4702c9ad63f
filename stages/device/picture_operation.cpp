#include "stages/device/picture_operation.hpp"

#include "stages/device/device.hpp"

#include <cassert>

namespace leat::stages {
namespace {

picture_batch with_operands(picture_batch how, std::span<const std::byte* const> from) noexcept {
  how.from = reinterpret_cast<const std::uint8_t*>(from[0]);
  how.flips = reinterpret_cast<const std::uint8_t*>(from[1]);
  if (from.size() > 2) how.mixed = reinterpret_cast<const mix_row*>(from[2]);
  return how;
}

}  // namespace

std::size_t picture_operation::decoded_row_bytes() const noexcept { return std::size_t{how_.height} * how_.width * 3; }

failed_call picture_operation::launch(device_calls& calls, const operands& of, stream in) const noexcept {
  assert(of.from.size() >= 2);
  picture_batch pictures = with_operands(how_, of.from);
  pictures.to = of.to;
  pictures.rows = of.rows;
  return {calls.launch(finish_pictures_kernel, &pictures, in), finish_pictures_kernel.name, {}};
}

void picture_operation::make_row(std::span<const std::byte* const> from, std::uint32_t row, std::byte* to,
                                 std::byte* /*scratch*/) const noexcept {
  finish_picture(with_operands(how_, from), row, to);
}

}  // namespace leat::stages

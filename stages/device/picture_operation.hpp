// Finishing pictures as an operation on the device: of u8 pixels, flags that say which are to be mirrored, and, where the batch is
// mixed, of how each row is mixed with the next, the tensor that the trainer asked for.
#pragma once

#include "stages/device/device_operation.hpp"
#include "stages/device/finish_pictures.hpp"

#include <span>

namespace leat::stages {

/// Operands: u8 [rows, height, width, 3]; u8 [rows], not 0 where a row is to be mirrored; mix_row [rows], if there is a third.
class picture_operation final : public device_operation {
 public:
  /// `how`: all but rows and memory.
  explicit picture_operation(const picture_batch& how) : how_(how) {}

  [[nodiscard]] std::size_t decoded_row_bytes() const noexcept override;
  [[nodiscard]] failed_call launch(device_calls& calls, const operands& of, stream in) const noexcept override;
  void make_row(std::span<const std::byte* const> from, std::uint32_t row, std::byte* to,
                std::byte* scratch) const noexcept override;

 private:
  const picture_batch how_;
};

}  // namespace leat::stages

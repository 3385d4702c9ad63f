// Finishing pictures as an operation on the device: of u8 pixels and of what says what is to be done to each row, the tensor that the trainer
// asked for.
#pragma once

#include "stages/batch/device_operation.hpp"
#include "stages/device/finish_pictures.hpp"
#include "stages/device/prepare_pictures.hpp"
#include "stages/device/write_program.hpp"

#include <optional>
#include <span>

namespace leat::stages {

/// Operands: u8 [rows, height, width, 3]; u8 [rows], not 0 where a row is to be mirrored, or, where there are programs, the records
/// [rows, record_bytes]; mix_row [rows], if there is a third.
class picture_operation final : public device_operation {
 public:
  /// `how`: all but rows, memory and programs.
  explicit picture_operation(const picture_batch& how, const std::optional<program_layout>& programs = std::nullopt);

  [[nodiscard]] std::size_t decoded_row_bytes() const noexcept override;
  /// Of the second operand.
  [[nodiscard]] std::size_t operand_row_bytes() const noexcept { return programs_ ? programs_->record_bytes : 1; }
  [[nodiscard]] std::size_t scratch_bytes(std::uint32_t rows) const noexcept override;
  [[nodiscard]] failed_call launch(device_calls& calls, const operands& of, stream in) const noexcept override;
  [[nodiscard]] std::size_t make_row_bytes() const noexcept override { return scratch_bytes(1); }
  void make_row(std::span<const std::byte* const> from, std::uint32_t row, std::byte* to,
                std::byte* scratch) const noexcept override;
  [[nodiscard]] bool is_like(const device_operation& other) const noexcept override;

 private:
  [[nodiscard]] std::size_t noise_bytes(std::uint32_t rows) const noexcept;
  [[nodiscard]] picture_preparation preparation(const picture_batch& pictures, std::byte* scratch) const noexcept;
  [[nodiscard]] picture_batch with_operands(std::span<const std::byte* const> from) const noexcept;
  void take_prepared(const picture_preparation& made, picture_batch& pictures) const noexcept;

  picture_batch how_;
  const std::optional<program_layout> programs_;
};

}  // namespace leat::stages

// Decoding photo packs as an operation on the device: of slots, each a pack or pixels, the u8 pixels that the host's decoder makes; and of
// those what the trainer asked for. Where nvJPEG was asked for, slots may be JPEG files, too, whose pixels are nvJPEG's own.
#pragma once

#include "stages/batch/device_operation.hpp"
#include "stages/batch/kept_pack.hpp"
#include "stages/device/device.hpp"
#include "stages/device/picture_operation.hpp"

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace leat::stages {

/// Operands: slots [rows] (photo_batch.hpp), and behind it those of picture_operation, where pictures are finished.
class photo_operation final : public device_operation, keeping_operation {
 public:
  /// Rows of u8.
  ///   jpegs   slots may be JPEG files: device_calls::prepare_jpegs() comes before the first launch, and make_row() knows none of them
  photo_operation(std::uint32_t height, std::uint32_t width, layout order, bool jpegs = false);
  /// Rows that are finished: `how` as for picture_operation.
  explicit photo_operation(const picture_batch& how, const std::optional<program_layout>& programs = std::nullopt,
                           bool jpegs = false);

  /// A slot: room for twice the bytes of the pixels, and 4 KiB. Of photographs of 110 KB one in 80 needs more: it is
  /// decoded on the host.
  [[nodiscard]] std::size_t decoded_row_bytes() const noexcept override { return slot_bytes_; }
  [[nodiscard]] bool has_full_rows() const noexcept override { return false; }
  /// Of a JPEG file its tables: nvJPEG reads the file in the host's memory.
  [[nodiscard]] std::size_t used_row_bytes(const std::byte* row) const noexcept override;
  [[nodiscard]] const keeping_operation* keeping() const noexcept override { return this; }
  [[nodiscard]] kept kept_of(const std::byte* row) const noexcept override;
  [[nodiscard]] lacking lacking_of(const std::byte* row) const noexcept override;
  [[nodiscard]] std::size_t scratch_bytes(std::uint32_t rows) const noexcept override;
  /// The most that a photo's decoding may take of it: photo_plan::scratch_bytes.
  [[nodiscard]] std::uint64_t photo_scratch_bytes() const noexcept { return photo_scratch_bytes_; }
  [[nodiscard]] bool reads_host() const noexcept override { return jpegs_; }
  [[nodiscard]] failed_call launch(device_calls& calls, const operands& of, stream in) const noexcept override;
  [[nodiscard]] std::size_t make_row_bytes() const noexcept override;
  void make_row(std::span<const std::byte* const> from, std::uint32_t row, std::byte* to,
                std::byte* scratch) const noexcept override;
  [[nodiscard]] bool is_like(const device_operation& other) const noexcept override;

 private:
  [[nodiscard]] failed_call decode_jpegs(device_calls& calls, const std::byte* slots, std::byte* scratch,
                                         std::uint32_t first, std::uint32_t count, stream in) const noexcept;

  [[nodiscard]] std::uint32_t at_once() const noexcept;
  [[nodiscard]] std::size_t pixels_behind(std::uint32_t rows) const noexcept;

  const bool jpegs_;
  const std::uint32_t height_;
  const std::uint32_t width_;
  const layout order_;  // of u8 rows
  const std::optional<picture_operation> finish_;
  const std::size_t pixel_bytes_;  // of a row
  const std::size_t slot_bytes_;
  const std::uint64_t photo_scratch_bytes_;
};

}  // namespace leat::stages

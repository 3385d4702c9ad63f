// Mosaics as an operation on the device: of the rows that another operation makes.
#pragma once

#include "stages/batch/device_operation.hpp"
#include "stages/device/alignment.hpp"
#include "stages/device/device.hpp"
#include "stages/device/tile_pictures.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace leat::stages {

/// Operands: those of the other, and behind them picture_tiles [rows].
class mosaic_operation final : public device_operation {
 public:
  ///   made        makes the rows of which tiles are shown
  ///   operands    that it has
  ///   row_bytes   of its rows
  ///   how         they lie
  mosaic_operation(std::shared_ptr<const device_operation> made, std::size_t operands, std::size_t row_bytes,
                   const tiled_batch& how)
      : made_(std::move(made)), operands_(operands), row_bytes_(row_bytes), how_(how) {}

  [[nodiscard]] std::size_t decoded_row_bytes() const noexcept override { return made_->decoded_row_bytes(); }
  [[nodiscard]] bool has_full_rows() const noexcept override { return made_->has_full_rows(); }
  [[nodiscard]] std::size_t used_row_bytes(const std::byte* row) const noexcept override {
    return made_->used_row_bytes(row);
  }
  [[nodiscard]] bool reads_host() const noexcept override { return made_->reads_host(); }
  [[nodiscard]] std::size_t scratch_bytes(std::uint32_t rows) const noexcept override {
    return device_aligned(rows * row_bytes_) + made_->scratch_bytes(rows);
  }
  [[nodiscard]] failed_call launch(device_calls& calls, const operands& of, stream in) const noexcept override {
    assert(of.from.size() == operands_ + 1);
    operands rows = of;
    rows.from = of.from.first(operands_);
    rows.to = of.scratch;
    rows.scratch = of.scratch + device_aligned(of.rows * row_bytes_);
    const failed_call launched = made_->launch(calls, rows, in);
    if (launched.status != device_ok) return launched;
    tiled_batch pictures = how_;
    pictures.from = of.scratch;
    pictures.to = of.to;
    pictures.tiles = reinterpret_cast<const picture_tiles*>(of.from.back());
    pictures.rows = of.rows;
    return {calls.launch(tile_pictures_kernel, &pictures, in), tile_pictures_kernel.name, {}};
  }
  [[nodiscard]] std::size_t make_row_bytes() const noexcept override {
    return device_aligned(row_bytes_) + made_->make_row_bytes();
  }
  void make_row(std::span<const std::byte* const> from, std::uint32_t row, std::byte* to,
                std::byte* scratch) const noexcept override {
    if (from.size() == operands_) return made_->make_row(from, row, to, scratch);  // before its tiles are drawn
    const picture_tiles& tiles = reinterpret_cast<const picture_tiles*>(from.back())[row];
    const bool is_mosaic = tiles.x < static_cast<std::int32_t>(how_.width);
    for (std::uint32_t tile = 0; tile < (is_mosaic ? 4U : 1U); ++tile) {
      made_->make_row(from.first(operands_), tiles.row[tile], scratch, scratch + device_aligned(row_bytes_));
      tile_picture(how_, tiles, tile, to, scratch);
    }
  }

 private:
  const std::shared_ptr<const device_operation> made_;
  const std::size_t operands_;
  const std::size_t row_bytes_;
  const tiled_batch how_;
};

}  // namespace leat::stages

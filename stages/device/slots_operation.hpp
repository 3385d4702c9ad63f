// Rows of several slots as an operation on the device: to each slot what another operation does to a row.
#pragma once

#include "stages/batch/device_operation.hpp"
#include "stages/device/device.hpp"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>

namespace leat::stages {

/// Operands: the slots as decode() writes them, and as many rows of what is said of each, where that has a second operand.
class slots_operation final : public device_operation {
 public:
  /// Of one slot.
  ///   by           does not read the host's memory
  ///   said_bytes   of its second operand; 0: it has one
  ///   made_bytes   of its row on the device
  struct slot {
    std::shared_ptr<const device_operation> by;
    std::size_t said_bytes = 0;
    std::size_t made_bytes = 0;
  };

  slots_operation(slot one, std::uint32_t count) : one_(std::move(one)), count_(count) {
    assert(count_ != 0 && !one_.by->reads_host());
  }

  [[nodiscard]] std::uint32_t pieces_in_row() const noexcept override { return count_; }
  [[nodiscard]] std::size_t used_piece_bytes(const std::byte* slot) const noexcept override {
    return one_.by->used_row_bytes(slot);
  }
  [[nodiscard]] std::size_t decoded_row_bytes() const noexcept override {
    return count_ * one_.by->decoded_row_bytes();
  }
  [[nodiscard]] bool has_full_rows() const noexcept override { return one_.by->has_full_rows(); }
  [[nodiscard]] std::size_t scratch_bytes(std::uint32_t rows) const noexcept override {
    return one_.by->scratch_bytes(std::min(rows, rows_at_once()) * count_);
  }
  [[nodiscard]] failed_call launch(device_calls& calls, const operands& of, stream in) const noexcept override {
    for (std::uint64_t first = 0; first < of.rows; first += rows_at_once()) {
      const std::size_t before = first * count_;
      const operands_of_slots from = behind(of.from, before);
      const auto rows = static_cast<std::uint32_t>(std::min<std::uint64_t>(of.rows - first, rows_at_once()));
      const failed_call launched = one_.by->launch(calls,
                                                   {.from = {from.data(), from.size()},
                                                    .rows = rows * count_,
                                                    .to = of.to + before * one_.made_bytes,
                                                    .scratch = of.scratch},
                                                   in);
      if (launched.status != device_ok) return launched;
    }
    return {};
  }
  [[nodiscard]] std::size_t make_row_bytes() const noexcept override { return one_.by->make_row_bytes(); }
  void make_row(std::span<const std::byte* const> from, std::uint32_t row, std::byte* to,
                std::byte* scratch) const noexcept override {
    // From the row on: so that a slot's number stays within 32 bits.
    const operands_of_slots slots = behind(from, std::size_t{row} * count_);
    for (std::uint32_t k = 0; k < count_; ++k)
      one_.by->make_row({slots.data(), slots.size()}, k, to + k * one_.made_bytes, scratch);
  }

 private:
  using operands_of_slots = absl::InlinedVector<const std::byte*, 2>;
  /// Those of the slots behind so many.
  [[nodiscard]] operands_of_slots behind(std::span<const std::byte* const> from, std::size_t slots) const noexcept {
    assert(from.size() == (one_.said_bytes == 0 ? 1 : 2));
    operands_of_slots all{from[0] + slots * one_.by->decoded_row_bytes()};
    if (one_.said_bytes != 0) all.push_back(from[1] + slots * one_.said_bytes);
    return all;
  }
  /// Whose slots are counted in 32 bits.
  [[nodiscard]] std::uint32_t rows_at_once() const noexcept {
    return std::numeric_limits<std::uint32_t>::max() / count_;
  }

  slot one_;
  std::uint32_t count_;
};

}  // namespace leat::stages

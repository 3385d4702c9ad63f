// Which bytes of rows that are not full are copied to a device: few calls against few bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::stages {

/// Neighbouring rows that one call copies: of each as many bytes, from its beginning.
struct copied_rows {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::size_t row_bytes = 0;

  friend bool operator==(const copied_rows&, const copied_rows&) = default;
};

/// What a bus of 55 GB/s (benchmarks/results/gpu-nvidia-h200-2026-11-26.md) copies while the CPU makes one more call, which is taken for 2.4 us:
/// that was not measured.
inline constexpr std::size_t bytes_of_a_call = 128 * 1024;

/// Rows as groups of 64 at the most, so that the sum of what is copied, and of bytes_of_a_call for each group, is the least.
///   used     of each row, its bytes from the beginning that are needed
///   groups   replaced. Keeps its memory, as the scratch does
void plan_copies(std::span<const std::size_t> used, std::vector<copied_rows>& groups,
                 std::vector<std::size_t>& scratch);

}  // namespace leat::stages

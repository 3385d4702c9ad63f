// What becomes of a block that was read: it is expanded once, and its boxes are copied to the rows of the batch.
#pragma once

#include "datasets/model/model.hpp"
#include "stages/batch/batch_layout.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/run/batch_in_flight.hpp"

#include <leat/stats.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace leat::stages {

class decoder;

/// Refers to its arguments, which the loader keeps.
class expander {
 public:
  ///   seed   of the loader: it keys crops
  expander(const datasets::dataset_model& dataset, std::span<const std::unique_ptr<field_program>> programs,
           const batch_layout& layout, std::uint64_t seed);

  /// Fills the rows' boxes, or has the rows made of their values, out of a block that is expanded first unless a batch before has done
  /// that. A block that cannot be expanded is marked with the reason, and a value that cannot be decoded is one of its faults.
  /// Thread: decode thread `thread`.
  void run(block_in_flight& block, decoder& values, std::uint32_t thread, const std::atomic<bool>& stop) noexcept;

  [[nodiscard]] expand_stats count() const noexcept;

 private:
  [[nodiscard]] std::span<std::byte> row_of(const block_in_flight& block, const block_in_flight::use& use) const;
  void expand(block_in_flight& block, decoder& values, std::uint32_t thread, const std::atomic<bool>& stop);
  void fill(const block_in_flight& block, const block_in_flight::use& use, const datasets::part& part,
            std::span<const std::byte> expanded) const;

  const datasets::dataset_model& dataset_;
  std::span<const std::unique_ptr<field_program>> programs_;
  const batch_layout& layout_;
  const std::uint64_t seed_;
  std::vector<std::size_t> first_output_;  // of each program
  std::atomic<std::uint64_t> blocks_{0};
  std::atomic<std::uint64_t> uses_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> busy_ns_{0};
  std::atomic<std::uint64_t> wait_ns_{0};
};

}  // namespace leat::stages

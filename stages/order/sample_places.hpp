// Where a sample stands in an epoch: the inverse of an order.
#pragma once

#include <leat/sampler.hpp>

#include <cstdint>
#include <vector>

namespace leat::stages {

/// What an order has that finds a sample's places without looking at the others. No part of what a user's own sampler may be.
/// Thread: const calls from any number of threads.
class invertible {
 public:
  /// Appends the places of an epoch at which the sample stands, those that no batch has among them.
  virtual void places_of(std::uint32_t epoch, std::uint64_t sample, std::vector<std::uint64_t>& places) const = 0;

 protected:
  ~invertible() = default;
};

/// A row that has the sample.
///   row      of the global batch; of a packed order the packed row
///   padded   it only fills the batch
struct sample_place {
  std::uint64_t batch = 0;
  std::uint32_t row = 0;
  bool padded = false;
  pick of;

  friend bool operator==(const sample_place&, const sample_place&) = default;
};

/// Whether places_of() finds them at once: of global_sampler, and of what is invertible. Of others it walks the epoch.
[[nodiscard]] bool finds_places(const sampler& order) noexcept;

/// Every row of an epoch that has the sample, in the order of the epoch.
///   samples   of the dataset
///   seed      the order's
///   batches   of the epoch that count, from the first on
[[nodiscard]] std::vector<sample_place> places_of(const sampler& order, std::uint64_t samples, std::uint64_t seed,
                                                  std::uint32_t epoch, std::uint64_t batches, std::uint64_t sample);

/// The rank of a world of so many that has this row of a global batch.
[[nodiscard]] std::uint32_t rank_of_row(std::uint32_t row, std::uint32_t rows, std::uint32_t world_size) noexcept;

}  // namespace leat::stages

// Which rows of a global batch go to which rank, by what they cost. The bytes of a rank's rows are those that they have anywhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace leat::stages {

/// Rank r has the places from leat::world::row_begin() to row_end() of the result, each the number of a row, in ascending order. As even as
/// swaps of two rows make it, where each rank keeps its number of rows. The same for all who ask.
///   costs   of the rows
[[nodiscard]] std::vector<std::uint32_t> deal_rows(std::span<const double> costs, std::uint32_t ranks);

/// The most of any rank over the mean; 1 where nothing costs anything.
///   order   of rows, as deal_rows() gives it
[[nodiscard]] double slowest_share(std::span<const double> costs, std::span<const std::uint32_t> order,
                                   std::uint32_t ranks);

/// An order that deals rows. Thread: const calls from any number of threads.
class dealing {
 public:
  /// slowest_share() of one global batch.
  [[nodiscard]] virtual double slowest(std::uint32_t epoch, std::uint64_t batch) const = 0;
  /// What it would be, were its rows not dealt.
  [[nodiscard]] virtual double slowest_as_they_come(std::uint32_t epoch, std::uint64_t batch) const = 0;

 protected:
  ~dealing() = default;
};

}  // namespace leat::stages

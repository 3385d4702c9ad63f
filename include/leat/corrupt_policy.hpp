// What a loader does with corrupt samples, and how many of them it accepts.
#pragma once

#include <cstdint>
#include <limits>

namespace leat {

/// What happens to a corrupt sample: one whose bytes are damaged, or one of a few that cannot be read. Under every policy the
/// sample is counted and written to the journal.
/// A failure of the environment is no corrupt sample, and ends the run under every policy: a dead mount (ESTALE, ENOTCONN,
/// ETIMEDOUT), a missing permission (EACCES), more missing files than loader_options::unreadable_max. The same holds for a
/// sample that the memory budget cannot hold: next() throws error{errc::limit} when it comes to that batch.
enum class corrupt_policy : std::uint8_t {
  raise,      ///< next() throws error{errc::corrupt} when it comes to that batch
  skip,       ///< its row is left out: the batch is shorter by it, and no other batch changes
  substitute  ///< another sample, drawn from the counter-based generator, takes its row
};

/// The most corrupt samples that an epoch may have: `count`, or `share` of its samples, whichever is less.
///   share   of the samples planned for an epoch, from 0 to 1; the product is rounded down
struct corrupt_bound {
  std::uint64_t count = std::numeric_limits<std::uint64_t>::max();
  double share = 1;

  friend constexpr bool operator==(const corrupt_bound&, const corrupt_bound&) noexcept = default;
};

}  // namespace leat

// What becomes of samples that cannot be had, and of how many.
#pragma once

#include <cstdint>
#include <limits>

namespace leat {

/// What happens to a corrupt sample: one whose bytes are damaged, or one of a few that cannot be read. Whatever it is, the
/// sample is counted and written to the journal. What concerns the environment is no corrupt sample, and ends the run under any
/// policy: a dead mount (ESTALE, ENOTCONN, ETIMEDOUT), a file that may not be read (EACCES), files that are gone by the dozen
/// (loader_options::unreadable_max). Nor is a sample that the memory budget cannot hold: next() throws error{errc::limit} in the
/// batch's turn.
enum class corrupt_policy : std::uint8_t {
  raise,      ///< next() throws error{errc::corrupt} in the batch's turn
  skip,       ///< its row is left out: the batch is shorter by it, and no other batch changes
  substitute  ///< another sample, drawn from the counter-based generator, takes its row
};

/// So many samples of an epoch, and of a share of them no more, whichever is less.
///   share   of the samples planned for an epoch, from 0 to 1; rounded down
struct corrupt_bound {
  std::uint64_t count = std::numeric_limits<std::uint64_t>::max();
  double share = 1;

  friend constexpr bool operator==(const corrupt_bound&, const corrupt_bound&) noexcept = default;
};

}  // namespace leat

// What a loader does with corrupt samples, and how many of them it accepts.
#pragma once

#include <leat/compiler.hpp>

#include <cstdint>
#include <limits>

#pragma GCC visibility push(default)
namespace leat {

/// What happens to a corrupt sample: its bytes are damaged, or it is one of a few that cannot be read. With every
/// policy it is counted and written to the journal. A failure of the environment ends the run with every policy: a dead
/// mount (ESTALE, ENOTCONN, ETIMEDOUT), a missing permission (EACCES), more missing files than
/// loader_options::unreadable_max. So does a sample that the memory budget cannot hold: next() throws
/// error{errc::limit} when it comes to that batch.
enum class corrupt_policy : std::uint8_t {
  raise,      ///< next() throws error{errc::corrupt} when it comes to that batch
  skip,       ///< its row is left out: the batch is one row shorter, and no other batch changes
  substitute  ///< another sample, drawn from the seed, takes its row
};

/// The most corrupt samples that an epoch may have: `count`, or `share` of its samples, the smaller one.
///   share   of the samples planned for an epoch, from 0 to 1; the product is rounded down
struct corrupt_bound {
  std::uint64_t count = std::numeric_limits<std::uint64_t>::max();
  double share = 1;

  friend constexpr bool operator==(const corrupt_bound&, const corrupt_bound&) noexcept = default;
};

}  // namespace leat
#pragma GCC visibility pop

// How much CPU time the control groups of this process give it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace leat {

/// The tightest quota of its control groups, in cores; nothing where there is none.
///   root   where /proc and /sys are looked for; another one in tests
[[nodiscard]] std::optional<double> find_cores_quota(const std::string& root = "");

/// Of so many usable cores those that a quota leaves: whole ones, at least one. More threads are stopped in the middle of each
/// period of the quota, all at once.
[[nodiscard]] std::uint32_t cores_within(std::optional<double> quota, std::uint32_t usable) noexcept;

/// How many threads of this process can run all the time: usable_cores(), and no more than the quota.
[[nodiscard]] std::uint32_t working_cores();

/// Of a process that shares its machine with others of its kind, local_ranks in all: its own cores, where its launcher has bound it
/// to some (it has fewer than who started it); else its part of them. A quota is of all of them together.
[[nodiscard]] std::uint32_t cores_of_local_rank(std::uint32_t local_ranks);

}  // namespace leat

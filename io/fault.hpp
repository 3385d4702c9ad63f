// Why an operation of a source failed: what the loader does about it depends on whose fault it is.
#pragma once

#include <leat/error.hpp>

#include <cstdint>
#include <memory>

namespace leat::io {

enum class fault : std::uint8_t {
  sample,  ///< the bytes: the file is shorter or longer than it was, or damaged. The sample is corrupt
  unreadable,  ///< one file: it is missing, or has a bad sector. The sample is corrupt, up to loader_options::unreadable_max of them
  environment  ///< the machine, the mount, the network, permissions: ends the run, since retrying or skipping would hide it
};

/// For an errno, which is not 0. One that is not listed is the environment's.
[[nodiscard]] fault fault_of(int failure) noexcept;

/// What a source says of a failure that an errno cannot express: "403 Forbidden: the profile 'train' may not read s3://b/k".
///   why   with the file, the reason, and what to do
struct source_failure {
  fault whose = fault::environment;
  error why;
};

/// A failed operation of a source: what it said, else by its errno.
template <class Operation>
[[nodiscard]] fault fault_of(const Operation& failed) noexcept {
  return failed.said != nullptr ? failed.said->whose : fault_of(failed.failure);
}

}  // namespace leat::io

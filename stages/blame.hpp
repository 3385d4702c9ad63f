// Who is to blame for a read that failed: the sample, or the environment.
#pragma once

#include <cstdint>

namespace leat::stages {

enum class blame : std::uint8_t {
  sample,  ///< its bytes: the file is shorter than it was, or the file system found it damaged. The corrupt policy's
  unreadable,  ///< a file that is gone, or a bad sector: a sample's, while there are few of them (loader_options::unreadable_max)
  environment  ///< the machine, the mount, permissions: ends the run, since a retry would hide it, and skipping hide it worse
};

/// Of an errno of a read, 0 excepted. What is not known here is the environment's.
[[nodiscard]] blame blame_of(int failure) noexcept;

}  // namespace leat::stages

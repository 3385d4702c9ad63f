// Whether a failed read is the fault of the sample or of the environment.
#pragma once

#include <cstdint>

namespace leat::stages {

enum class blame : std::uint8_t {
  sample,      ///< the file is shorter or longer than it was, or damaged: the sample is corrupt
  unreadable,  ///< a missing file or a bad sector: the sample is corrupt, up to loader_options::unreadable_max of them
  environment  ///< the machine, the mount, permissions: ends the run, since retrying or skipping would hide it
};

/// For the errno of a failed read, which is not 0. An errno that is not listed is the environment's.
[[nodiscard]] blame blame_of(int failure) noexcept;

}  // namespace leat::stages

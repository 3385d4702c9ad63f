// How much memory this process may still use: the machine's, and that of the control groups it lives in.
#pragma once

#include <cstdint>
#include <string>

namespace leat {

struct memory_available {
  std::uint64_t bytes = 0;
  std::string said_by;  ///< "MemAvailable", or the control group that is tighter
};

/// Page cache that can be given up counts as available, in control groups too.
///   root   where /proc and /sys are looked for; another one in tests
[[nodiscard]] memory_available find_memory_available(const std::string& root = "");

}  // namespace leat

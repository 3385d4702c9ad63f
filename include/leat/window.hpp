// A part of a run.
#pragma once

#include <leat/compiler.hpp>
#include <leat/verdict.hpp>

#include <cstdint>

#pragma GCC visibility push(default)
namespace leat {

/// What was handed out in a window of time, and the bottleneck. In each, samples + quarantined = planned.
struct loader_window {
  double begin_s = 0;  ///< since the loader began
  double seconds = 0;
  std::uint64_t batches = 0;
  std::uint64_t planned = 0;
  std::uint64_t samples = 0;
  std::uint64_t quarantined = 0;
  leat::verdict verdict;
};

}  // namespace leat
#pragma GCC visibility pop

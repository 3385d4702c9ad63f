#pragma once

// Some kernels are compiled for it, too.
#define HWY_WANT_AVX3_DL 1

#include "stages/pixels/vectors/instruction_sets.hpp"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <cstdint>
#include <vector>

namespace leat::testing {

/// The instruction sets that kernels are compiled for and that this processor has, the best first.
inline std::vector<std::int64_t> targets_here() {
  std::vector<std::int64_t> made;
  for (std::int64_t left = pixels::instruction_sets() & HWY_TARGETS; left != 0; left &= left - 1) {
    made.push_back(left & -left);
  }
  return made;
}

/// Runs `body` with each of them, named.
template <class Body>
void for_each_target(const Body& body) {
  for (const std::int64_t target : targets_here()) {
    SCOPED_TRACE(hwy::TargetName(target));
    pixels::use_instruction_sets(target);
    body();
    pixels::use_instruction_sets(0);
  }
}

}  // namespace leat::testing

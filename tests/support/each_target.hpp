#pragma once

// Some kernels are compiled for it, too.
#define HWY_WANT_AVX3_DL 1

#include <gtest/gtest.h>
#include <hwy/highway.h>

namespace leat::testing {

/// Runs `body` with each instruction set that was compiled and that this processor has, named.
template <class Body>
void for_each_target(const Body& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    body();
    hwy::SetSupportedTargetsForTest(0);
  }
}

}  // namespace leat::testing

// Linked by tests that were written for any device and run on CUDA's here: without one they all skip, and say why.
#include "stages/device/open_device.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace leat {
namespace {

class a_gpu final : public ::testing::Environment {
  void SetUp() override {
    const stages::opened_device opened = stages::open_device(cuda(0));
    if (opened.calls != nullptr) return;
    std::puts("[  SKIPPED ] all of them");  // What ctest looks for: GoogleTest itself calls them passed.
    GTEST_SKIP() << opened.why_not;
  }
};

[[maybe_unused]] const ::testing::Environment* const wanted = ::testing::AddGlobalTestEnvironment(new a_gpu);

}  // namespace
}  // namespace leat

#ifndef LEAT_NO_NVTX
#define LEAT_NO_NVTX  // as LEAT_NVTX=OFF has it
#endif
#include "tests/device/ranges_off.hpp"

#include "stages/batch/range.hpp"

#include <type_traits>

namespace leat::testing {

static_assert(LEAT_HAS_NVTX == 0);
static_assert(std::is_empty_v<stages::range> && std::is_empty_v<stages::long_range>);

std::uint64_t ranges_off_sum(std::uint64_t count) {
  std::uint64_t sum = 0;
  stages::long_range whole;
  whole.begin(stages::work_of::next);
  for (std::uint64_t i = 0; i < count; ++i) {
    const stages::range each(stages::work_of::decode);
    sum += i;
  }
  whole.end();
  return sum;
}

}  // namespace leat::testing

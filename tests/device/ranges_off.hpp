// What is compiled with ranges off, whatever the rest of the program has.
#pragma once

#include <cstdint>

namespace leat::testing {

/// 0 + 1 + ... + (count - 1), each in a range.
std::uint64_t ranges_off_sum(std::uint64_t count);

}  // namespace leat::testing

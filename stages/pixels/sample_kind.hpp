// What the samples of a picture are.
#pragma once

#include <cstdint>

namespace leat::pixels {

enum class sample_kind : std::uint8_t { whole, signed_whole, real };

}  // namespace leat::pixels

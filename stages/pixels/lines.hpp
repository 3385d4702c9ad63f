// What a reader of pictures hands on: a few decoded lines at a time.
#pragma once

#include "base/outcome.hpp"

#include <cstddef>
#include <cstdint>

namespace leat::pixels {

/// Consecutive lines of interleaved RGB, valid until the reader is asked for more, and readable to line_slack_bytes after
/// the last pixel (resample_kernels.hpp).
struct lines {
  const std::uint8_t* first = nullptr;
  std::size_t stride = 0;
  int count = 0;
};

}  // namespace leat::pixels

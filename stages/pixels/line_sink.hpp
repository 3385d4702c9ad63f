// Where the lines of a resampled picture go.
#pragma once

#include <cstdint>

namespace leat::pixels {

class line_sink {
 public:
  /// Each line comes once; in order, but for padding at an edge or by a mirror.
  ///   line   3 * width values; read before this returns
  virtual void take(const std::uint8_t* line, int y) noexcept = 0;

 protected:
  ~line_sink() = default;
};

}  // namespace leat::pixels

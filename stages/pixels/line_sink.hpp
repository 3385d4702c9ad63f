// Where the lines of a resampled picture go.
#pragma once

#include <cstdint>

namespace leat::pixels {

class line_sink {
 public:
  /// Lines come in order, each once.
  ///   line   3 * width values; read before this returns
  virtual void take(const std::uint8_t* line, int y) noexcept = 0;

 protected:
  ~line_sink() = default;
};

}  // namespace leat::pixels

// Samples that are windows of tokens (datasets/views/token_windows.hpp).
#pragma once

#include <cstdint>

namespace leat::datasets {

class token_windows;

/// A window of tokens: the view that cut it, and its number there. Null where a sample is no window.
struct window_number {
  const token_windows* of = nullptr;
  std::uint64_t number = 0;
};

class windows_facet {
 public:
  [[nodiscard]] virtual window_number window_of(std::uint64_t sample) const = 0;

 protected:
  ~windows_facet() = default;
};

}  // namespace leat::datasets

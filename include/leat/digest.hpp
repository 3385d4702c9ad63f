// A 128-bit digest: of a row, a batch, a run, a description.
#pragma once

#include <leat/compiler.hpp>

#include <array>
#include <cstdint>
#include <string>

#pragma GCC visibility push(default)
namespace leat {

/// A 128-bit digest (XXH3), canonical byte order.
struct digest {
  std::array<std::uint8_t, 16> bytes{};

  /// 32 lower-case hex digits.
  [[nodiscard]] std::string hex() const;
  friend bool operator==(const digest&, const digest&) = default;
};

}  // namespace leat
#pragma GCC visibility pop

// Where a value lies in its file, as it is.
#pragma once

#include <cstdint>

namespace leat::datasets {

struct value_place {
  static constexpr std::uint64_t missing = ~std::uint64_t{0};  ///< as an offset: the sample has no such value

  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] bool is_there() const noexcept { return offset != missing; }
};

}  // namespace leat::datasets

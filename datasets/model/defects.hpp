// Samples that are known to be damaged before they are read.
#pragma once

#include "base/corrupt_kind.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace leat::datasets {

/// A sample known to be damaged before anything was read: what goes to the corrupt policy and the journal.
struct defect {
  std::uint32_t source = 0;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::string reason;
  corrupt_kind kind = corrupt_kinds::damaged;
};

class defects_facet {
 public:
  /// How many samples have one.
  [[nodiscard]] virtual std::uint64_t defects() const noexcept = 0;
  [[nodiscard]] virtual std::optional<defect> defect_of(std::uint64_t sample) const = 0;

 protected:
  ~defects_facet() = default;
};

}  // namespace leat::datasets

// Whether two operations do the same: rows of both can then be those of one.
#pragma once

#include "stages/batch/device_operation.hpp"

namespace leat::stages {

/// A device_operation may be one.
class alike_operation {
 public:
  /// It makes of any operands what the other does.
  [[nodiscard]] virtual bool is_like(const device_operation& other) const noexcept = 0;

 protected:
  ~alike_operation() = default;
};

}  // namespace leat::stages

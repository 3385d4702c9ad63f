// What programs of a group (image::together()) are beside drawing_facet, which they have whether they draw or not: it compares them.
#pragma once

#include "stages/batch/field_program.hpp"

namespace leat::stages {

/// A drawing_facet may be one.
class grouped_drawing : public drawing_facet {
 public:
  /// Whether its rows depend on draws.
  [[nodiscard]] virtual bool draws() const noexcept = 0;

 protected:
  ~grouped_drawing() = default;
};

}  // namespace leat::stages

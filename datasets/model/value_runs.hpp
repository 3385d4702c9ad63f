// Values that lie at equal distances in a file: of neighbouring windows of tokens, and of rows of one size.
#pragma once

#include "datasets/model/part.hpp"

#include <leat/extent.hpp>

#include <cstdint>

namespace leat::datasets {

/// Where the values of one field lie, of so many samples one behind the other: each is one stored part, as parts() says.
///   first   of the first sample; the others are as long
///   step_bytes   from the begin of a value to that of the next sample's
struct value_run {
  extent first = {};
  std::uint64_t step_bytes = 0;
  std::uint64_t samples = 0;
};

/// A dataset_model may be one: whoever reads samples in order asks it once for many, where each by itself would take as long as a
/// short one's copy.
class value_runs {
 public:
  /// As far as its run goes.
  ///   wanted    its seed and epoch hold for all of them, whatever their draws
  ///   returns   no samples where these values do not lie so
  [[nodiscard]] virtual value_run run_from(std::uint64_t sample, const need& wanted) const = 0;

 protected:
  ~value_runs() = default;
};

}  // namespace leat::datasets

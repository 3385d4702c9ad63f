// Some elements of an array: a range along each of its axes.
#pragma once

#include <leat/tensor.hpp>

namespace leat::datasets {

/// It has as many axes as its array, the slowest first.
///   first   element along each axis
///   count   elements along each axis, at least 1
struct box {
  dimensions first;
  dimensions count;

  friend bool operator==(const box&, const box&) = default;
};

}  // namespace leat::datasets

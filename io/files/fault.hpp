// Why an operation of a source failed: what the loader does about it depends on whose fault it is.
#pragma once

#include "base/errno_table.hpp"

#include <leat/error.hpp>

#include <memory>

namespace leat::io {

using fault = errno_fault;

/// For an errno, which is not 0.
[[nodiscard]] inline fault fault_of(int failure) noexcept { return meaning_of(failure).whose; }

/// What a source says of a failure that an errno cannot express: "403 Forbidden: the profile 'train' may not read s3://b/k".
///   why   with the file, the reason, and what to do
struct source_failure {
  fault whose = fault::environment;
  error why;
};

/// A failed operation of a source: what it said, else by its errno.
template <class Operation>
[[nodiscard]] fault fault_of(const Operation& failed) noexcept {
  return failed.said != nullptr ? failed.said->whose : fault_of(failed.failure);
}

}  // namespace leat::io

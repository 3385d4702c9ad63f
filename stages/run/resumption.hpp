// Where in its run a loader begins, and the states between its batches.
#pragma once

#include "stages/observe/run_progress.hpp"
#include "stages/plan/run_spec.hpp"
#include "stages/run/loader_parts.hpp"
#include "stages/state/receipts.hpp"

#include <leat/field.hpp>
#include <leat/loader_state.hpp>
#include <leat/loading.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace leat::stages {

/// Which part of a run a loader delivers.
///   batches   at most; 0 is all that are left
struct span_of_run {
  run_progress from = {};
  std::uint64_t batches = 0;
};

/// Owns the description of what decides bytes, by name; it is found out when it is first asked for. Refers to its arguments.
/// Thread: const calls from any number of threads.
class resumption {
 public:
  resumption(const run_spec& run, const loader_options& options, const std::vector<field>& fields)
      : run_(run), options_(options), fields_(fields) {}

  /// Where the run goes on (loader_options::resume), or its beginning.
  ///   throws   error{errc::usage}: the state is of another run, or of a place that there is not
  [[nodiscard]] span_of_run resumed() const;
  /// One batch, by itself.
  ///   throws   error{errc::usage} where there is no such batch
  [[nodiscard]] span_of_run one_batch(const batch_place& at) const;
  /// Batches of `span` that are to be delivered; 0 where nobody knows.
  [[nodiscard]] std::uint64_t batches_of(const span_of_run& span) const;

  /// The file of loader_options::receipts, behind the rows that were handed out before `from`.
  ///   throws   as its constructor
  [[nodiscard]] receipts receipts_from(const run_progress& from) const;

  ///   throws   error{errc::usage} where something that decides bytes has no name
  [[nodiscard]] loader_state at(const run_progress& place) const;

 private:
  [[nodiscard]] const state_descriptions& descriptions() const;

  const run_spec& run_;
  const loader_options& options_;
  const std::vector<field>& fields_;
  mutable std::once_flag described_;
  mutable std::shared_ptr<const state_descriptions> descriptions_;
};

}  // namespace leat::stages

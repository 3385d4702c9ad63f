// How deep a line works: what may change while it runs, within the memory that was planned, and without touching a byte of any batch.
#pragma once

#include "base/mutex.hpp"
#include "io/arena/lease_pool.hpp"
#include "io/ring/io_threads.hpp"
#include "stages/plan/memory_plan.hpp"
#include "stages/run/loader_parts.hpp"
#include "stages/run/row_maker.hpp"

#include <cstddef>

namespace leat::stages {

/// Owns the depths in use. Refers to its arguments, which the loader keeps. Thread: any.
class depth_control {
 public:
  depth_control(const memory_plan& memory, std::uint32_t queue_depth, io::lease_pool& batch_pool, io::io_threads& loops,
                row_maker& rows);

  [[nodiscard]] line_depths most() const noexcept;
  [[nodiscard]] line_depths now() const;
  ///   throws   error{errc::usage} where one is out of range, and changes none
  void set(const line_depths& wanted);

 private:
  const memory_plan& memory_;
  io::lease_pool& batch_pool_;
  io::io_threads& loops_;
  row_maker& rows_;
  mutable mutex mutex_;
  line_depths now_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace leat::stages

// How deep a line works: what may change while it runs, within the memory that was planned, and without touching a byte of any batch.
#pragma once

#include "base/mutex.hpp"
#include "io/arena/lease_pool.hpp"
#include "io/ring/io_threads.hpp"
#include "stages/plan/memory_plan.hpp"
#include "stages/run/decode_stage.hpp"
#include "stages/run/loader_parts.hpp"
#include "stages/run/read.hpp"

#include <cstddef>

namespace leat::stages {

/// What a tuner begins with: as many as clients do.
inline constexpr std::uint32_t connections_at_first = 32;

/// Owns the depths in use. Refers to its arguments, which the loader keeps. Thread: any.
class depth_control {
 public:
  /// What it begins with, where that is not all that there may be.
  struct first {
    std::uint32_t queue_depth = 0;
    std::uint32_t io_threads = 1;  ///< at most; fewer where fewer can take part
    /// At most, as before; 0: what the clients find out by themselves, up to the most.
    std::uint32_t connections = 0;
  };
  depth_control(const memory_plan& memory, const first& begin, io::lease_pool& batch_pool, io::io_threads& loops,
                reader_stage& reads, decode_stage& rows);

  [[nodiscard]] concurrency_limits most() const noexcept;
  [[nodiscard]] concurrency_limits now() const;
  ///   throws   error{errc::usage} where one is out of range, and changes none
  void set(const concurrency_limits& wanted);

 private:
  const memory_plan& memory_;
  io::lease_pool& batch_pool_;
  io::io_threads& loops_;
  reader_stage& reads_;
  decode_stage& rows_;
  mutable mutex mutex_;
  concurrency_limits now_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace leat::stages

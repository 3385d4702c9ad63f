// A file of the timeline for each stall of the trainer, as timeline_options::on_stall asks for.
#pragma once

#include "base/mutex.hpp"
#include "stages/observe/stall_trigger.hpp"
#include "stages/observe/timeline.hpp"
#include "stages/run/delivery.hpp"

#include <leat/loading.hpp>
#include <leat/stats.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

namespace leat::stages {

/// Owns the thread that looks and writes: neither the trainer nor the line waits for a disk. Refers to its arguments, which the loader
/// keeps.
class stall_files {
 public:
  /// How long the thread sleeps between two looks: a file comes so much later than its stall ended, at most.
  static constexpr std::chrono::milliseconds look_every_max{100};

  /// Makes the folder, and starts the thread; does nothing where no file is asked for.
  ///   rank     of the process, in the names of files and in the files
  ///   throws   error: not_found, permission, limit, io: a folder that cannot be made or written to; limit: no thread
  stall_files(const timeline_options& options, std::uint32_t rank, const timeline& seen, const delivery& line);
  stall_files(const stall_files&) = delete;
  stall_files& operator=(const stall_files&) = delete;
  ~stall_files() { stop(); }

  /// Looks once more, and joins the thread. Thread: one.
  void stop() noexcept;
  /// Thread: any.
  [[nodiscard]] stall_stats count() const;

 private:
  void watch();
  void look();
  void write();

  const timeline_options options_;
  const std::uint32_t rank_;
  const timeline& seen_;
  const delivery& line_;
  stall_trigger trigger_;
  std::uint32_t number_ = 0;  // of the last file
  mutable mutex mutex_;
  condition_variable changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  stall_stats counted_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it looks at all of the above
};

}  // namespace leat::stages

// What others may see of a run while it goes on: its metrics in a file and on a port, and a line for each second.
#pragma once

#include <leat/loading.hpp>
#include <leat/metrics.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat::stages {
class gpu_activity;
}

namespace leat::tools {

/// Whoever reads the file finds it whole. 0 or the errno.
[[nodiscard]] int write_beside_and_rename(const std::string& path, std::string_view bytes);

///   metrics           a file that is rewritten every 5 s, written beside and renamed; empty: none
///   metrics_port      GET /metrics; 0: any that is free
///   metrics_address   of this machine, in numbers: where it listens on that port; 0.0.0.0 and :: are all of them
///   windows           a file of a JSON line each second; empty: none
///   about             a member "run" of the first of these lines: what was run
///   labels            of all metrics
///   gpu               what looks at the GPU that batches go to, for these lines; null: none is looked at, and `why_no_gpu` says so
///   write             puts these bytes in the place of a file: 0 or the errno. Tests have disks of their own
struct run_watch_options {
  std::string metrics = {};
  std::optional<std::uint16_t> metrics_port = {};
  std::string metrics_address = "127.0.0.1";
  std::string windows = {};
  nlohmann::ordered_json about = {};
  std::vector<metric_label> labels = {};
  std::shared_ptr<stages::gpu_activity> gpu = {};
  std::string why_no_gpu = "batches stay on the host";
  std::function<int(const std::string& path, std::string_view bytes)> write = write_beside_and_rename;
};

/// Whether a run can be watched so: before anything is written.
///   throws   as run_watch; error{errc::usage}: another file would be replaced
void check_watch(const run_watch_options& options);

/// Sets `gpu`, or why there is none.
void watch_gpu_of(const loader& train, run_watch_options& options);

/// Watches a loader from threads of its own until it ends, and then writes what has come since. A file that cannot be written later, and
/// a disk that is full at any time, are told once on standard error; the run goes on.
class run_watch {
 public:
  ///   train    outlives it
  ///   throws   error{errc::io}: a file that cannot be written, a port that is taken; error{errc::usage}: an address that is none
  run_watch(const loader& train, const run_watch_options& options);
  run_watch(const run_watch&) = delete;
  run_watch& operator=(const run_watch&) = delete;
  ~run_watch();

  /// How long the trainer waited for a batch, for the next line. Thread: one.
  void waited(std::uint32_t epoch, std::uint64_t batch, double seconds);

  /// Of --metrics-port; 0 where there is none.
  [[nodiscard]] std::uint16_t port() const noexcept;
  /// "http://127.0.0.1:9464/metrics"; empty where there is none.
  [[nodiscard]] std::string url() const;

 private:
  class files;
  class server;
  std::unique_ptr<files> files_;
  std::unique_ptr<server> server_;
};

}  // namespace leat::tools

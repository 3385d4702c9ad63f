// A loader some of whose parts its maker brings along: tests and benchmarks, which watch how batches get to the trainer, or need
// no GPU for it; and one batch without a loader. Not installed.
#pragma once

#include "stages/observe/windows.hpp"

#include <leat/field.hpp>
#include <leat/loader_state.hpp>
#include <leat/loading.hpp>
#include <leat/samples.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leat::stages {

class transfer;      // stages/batch/transfer.hpp
class device_calls;  // stages/device/device.hpp

/// A batch's place in its run, from 0.
struct batch_place {
  std::uint32_t epoch = 0;
  std::uint64_t index = 0;
};

/// What stands in the place of what loader_options::device asks for; null is that itself.
///   transfer       how batches get to the trainer
///   device_calls   the device's table of calls; where there is a transfer it is not looked at
///   windows        how long windows are
///   sysfs_root     where /sys is looked for, for NUMA nodes
///   only           the one batch that is delivered, by itself; with names it has its picks, too
///   limits         of a line that makes a batch of another one's run: which samples that leaves out
struct loader_parts {
  std::shared_ptr<stages::transfer> transfer = {};
  std::shared_ptr<stages::device_calls> device_calls = {};
  std::optional<batch_place> only = {};
  std::optional<sample_limits> limits = {};
  window_options windows = {};
  std::string sysfs_root = {};
};

/// How deep a line works.
///   batches          that there may be at once: with the consumer, under way and ready. A consumer that holds so many gets no other
///                    before it lets one go
///   queue_depth      reads that each ring gives the kernel at a time; 0: by bytes. Without io_uring it says nothing
///   decode_threads   that take part
///   io_threads       that batches are given to from now on, in turn
///   connections      of each I/O thread to the stores of a source over a network; 0: no source is one
struct concurrency_limits {
  std::uint32_t batches = 1;
  std::uint32_t queue_depth = 0;
  std::uint32_t decode_threads = 1;
  std::uint32_t io_threads = 1;
  std::uint32_t connections = 0;

  friend bool operator==(const concurrency_limits&, const concurrency_limits&) = default;
};

/// What a loader works with now, and the most that it has planned for. Thread: any.
[[nodiscard]] concurrency_limits depths_of(const loader& line);
[[nodiscard]] concurrency_limits depths_max(const loader& line);
/// Changes them while the loader runs: for tests, and for whoever tunes it. What is under way goes on, and no byte of any batch depends on
/// it. Thread: any.
///   throws   error{errc::usage} for none, or more than depths_max()
void set_depths(loader& line, const concurrency_limits& depths);

/// Why loader_options::record did not become a file, once the loader is stopped: an errno; 0: it did, or none was asked for. Thread: any.
[[nodiscard]] int record_failure(const loader& line);

/// As the loader's constructor.
///   throws   as that; error{errc::usage} where there is no such batch as `only`, with how many there are
[[nodiscard]] loader make_loader(dataset samples, loader_options options, std::vector<field> fields,
                                 loader_parts parts);

}  // namespace leat::stages

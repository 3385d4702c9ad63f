// What copies and steps take on the device itself, of one batch in timed_every: events that have a time.
//
//     side stream            record(begun) ─ copy ─ write(word) ─ record(copied or, without operations, arrived)
//     working stream                                                record(working) ─ operations ─ record(arrived)
//     consumer's stream      ... step of the batch before ─ record(before) ......... step ─ record(consumed)
//
//   copy    arrived - begun; with operations, which go on beside the next copy, the longer of copied - begun and arrived - working
//   stall   arrived - before: the stream had nothing to do meanwhile. None where the batch was there already
//   step    consumed - arrived, or - before where that is later
#pragma once

#include "stages/batch/transfer.hpp"
#include "stages/device/device.hpp"
#include "stages/device/device_failure.hpp"
#include "stages/observe/timeline_track.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace leat::stages {

/// Where a batch's work on the device ends: an event with a time, recorded once when the batch ends.
struct timed_end {
  enum class state : std::uint8_t { idle, pending, recorded, lost };
  device_event event = device_event::none;
  std::atomic<state> is = state::idle;  ///< lost: no stream of a consumer could be recorded
};

/// Refers to its arguments. Thread: the one that queues batches, but for times() and for what is done to a timed_end.
class device_timing {
 public:
  device_timing(device_calls& calls, device_failure& failure) : calls_(calls), failure_(failure) {}
  device_timing(const device_timing&) = delete;
  device_timing& operator=(const device_timing&) = delete;

  ///   seen     where the timed batches are noted; may be null
  ///   throws   error
  void prepare(std::shared_ptr<timeline_track> seen = {});
  /// No batch is left.
  void free_all() noexcept;

  /// The next batch is about to be queued. What has passed by now is counted; nobody waits for it.
  /// Returns what to record when the batch ends; null where nothing is.
  [[nodiscard]] timed_end* begin(const transfer_operation& batch) noexcept;
  /// Around the copy and the operations of that batch.
  [[nodiscard]] failed_call record_begun(stream side) noexcept;
  [[nodiscard]] failed_call record_copied(stream side) noexcept;
  [[nodiscard]] failed_call record_working(stream working) noexcept;
  [[nodiscard]] failed_call record_arrived(stream side) noexcept;

  /// Thread: any.
  [[nodiscard]] device_times times() const noexcept;

 private:
  struct sample {
    timed_end before;
    timed_end consumed;
    device_event begun = device_event::none;
    device_event copied = device_event::none;
    device_event working = device_event::none;
    device_event arrived = device_event::none;
    std::uint64_t number = 0;  ///< of the timed batch
    std::uint32_t rows = 0;
    std::uint32_t epoch = 0;
    std::uint64_t index = 0;
    std::uint64_t queued_ns = 0;  ///< of the host's clock
    bool used = false;
    bool operates = false;
    bool queued = false;  ///< the timed batch; before that only the one before it
  };

  void collect(std::uint64_t next_number) noexcept;
  [[nodiscard]] bool count(const sample& ended) noexcept;

  void note(const sample& ended, std::int64_t copy_ns, std::int64_t working_ns) noexcept;

  device_calls& calls_;
  device_failure& failure_;
  std::shared_ptr<timeline_track> seen_;
  std::array<sample, 2> samples_;
  sample* current_ = nullptr;  // of the batch that is being queued

  std::atomic<std::uint64_t> batches_ = 0;
  std::atomic<std::uint64_t> rows_ = 0;
  std::atomic<std::uint64_t> copy_ns_ = 0;
  std::atomic<std::uint64_t> step_ns_ = 0;
  std::atomic<std::uint64_t> stall_ns_ = 0;
};

}  // namespace leat::stages

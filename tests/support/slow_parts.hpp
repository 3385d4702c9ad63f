// A line one of whose parts is slow: a disk, a field, a transfer and a consumer's step that take the time that a test says, asleep or
// spinning.
#pragma once

#include "tests/support/delayed_transfer.hpp"

#include <leat/field.hpp>
#include <leat/samples.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

namespace leat::testing {

enum class passing : std::uint8_t { asleep, spinning };

/// Lets so much time pass on this thread.
void pass(std::chrono::microseconds time, passing how);

/// Samples of one label, "cls", on a disk that serves one read after the other on a thread of its own.
[[nodiscard]] dataset on_slow_disk(std::uint64_t samples, std::chrono::microseconds per_read, passing how);

/// Reads overlap on it: each waits for its latency, and then its bytes pass one read after the other.
struct timed_drive {
  std::chrono::microseconds latency{0};
  double bytes_per_s = 0;  ///< 0: without limit
};
/// Samples of one label, "cls", of so many bytes each.
[[nodiscard]] dataset on_timed_drive(std::uint64_t samples, std::uint32_t sample_bytes, const timed_drive& drive);

/// Makes a byte of each sample.
[[nodiscard]] field slow_field(std::chrono::microseconds per_sample, passing how);

/// A transfer of which each batch takes so long, one after the other.
class slow_transfer {
 public:
  slow_transfer(std::chrono::microseconds per_batch, passing how);
  slow_transfer(const slow_transfer&) = delete;
  slow_transfer& operator=(const slow_transfer&) = delete;
  ~slow_transfer();

  [[nodiscard]] std::shared_ptr<stages::transfer> events() const { return events_; }

 private:
  const std::shared_ptr<delayed_transfer> events_ = std::make_shared<delayed_transfer>();
  std::atomic<bool> ended_{false};
  std::thread device_;
};

}  // namespace leat::testing

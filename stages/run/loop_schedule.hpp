// Which of a line's I/O threads reads a batch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace leat::stages {

/// Batches go to the threads in turn. How many take part may change at any time: from the first batch on that nobody has asked about,
/// so that a batch is read by the thread which was told before what it will read.
class loop_schedule {
 public:
  ///   loops   that there are, of which all take part
  explicit loop_schedule(std::size_t loops) : loops_(loops), spans_{{0, loops}} {}

  [[nodiscard]] std::size_t loops() const noexcept { return loops_; }
  /// Thread: any, as of in_use().
  ///   loops   1 to loops()
  void set_in_use(std::size_t loops) noexcept { in_use_.store(loops, std::memory_order_relaxed); }
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }

  /// The same answer every time. Thread: one at a time, as of take().
  ///   sequence   of a batch that was not taken
  [[nodiscard]] std::size_t loop_of(std::uint64_t sequence) {
    if (sequence >= asked_) {
      asked_ = sequence + 1;
      if (const std::size_t now = in_use(); now != spans_.back().loops) spans_.push_back({sequence, now});
    }
    std::size_t at = spans_.size() - 1;
    while (at != 0 && spans_[at].first > sequence) --at;
    return static_cast<std::size_t>(sequence % spans_[at].loops);
  }
  /// Of the batch that comes next: nobody will ask about it again, nor about those before it.
  [[nodiscard]] std::size_t take(std::uint64_t sequence) {
    const std::size_t loop = loop_of(sequence);
    while (spans_.size() > 1 && spans_[1].first <= sequence) spans_.pop_front();
    return loop;
  }

 private:
  struct span {
    std::uint64_t first;
    std::size_t loops;
  };

  const std::size_t loops_;
  std::atomic<std::size_t> in_use_{loops_};
  std::deque<span> spans_;
  std::uint64_t asked_ = 0;  // about all batches before it
};

}  // namespace leat::stages

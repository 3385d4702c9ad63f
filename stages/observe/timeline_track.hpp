// Spans of time in a ring of fixed size, of which the latest are kept: written by one thread, and read by any.
#pragma once

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "io/remote/networked.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::stages {

/// What a span is of. The first four are a batch's way, one after the other.
///   rows       of a batch: from its plan until all of its rows are there
///   collate    of a batch, on the first I/O thread
///   finish     of a batch, on a decode thread
///   transfer   of a batch: from hand-over until the trainer may have it
///   plan       picking the rows of a batch, on the first I/O thread
///   write      rows that an I/O thread makes
///   decode     a row
///   expand     a block
///   wait       the trainer in next()
///   step       the trainer between two calls of it
///   mark       a part of the trainer's own, whose name is the number that `row` is
///   read       from a file; `row` is how many reads it stands for
///   fetch      from a source that is no file: objects over the network or from a cache, a store of the program's; as `read`
///   copy       of a batch to the device
///   compute    of a batch there: decoding and finishing
///   request    over the network, that served a read: from when the bytes were wanted. `row` is how many it stands for. Its parts follow it:
///              connect, answer (from its question to the answer's header), receive
///   block      that was fetched into a cache on a drive, over the network: `row` is its number in its object, `batch` its bytes. Its parts
///              follow it: those of a request, and store, its writing
///   hit        as `fetch`, of bytes that were on that drive already
///   sample     that a decode thread has made: from the begin of its reads. Its parts follow it: sample_read, sample_wait (for a thread);
///              the rest is its decoding
///   queue      no span: at its begin the queue that `row` is was as long as `batch` says
enum class activity : std::uint8_t {
  rows,
  collate,
  finish,
  transfer,
  plan,
  write,
  decode,
  expand,
  wait,
  step,
  mark,
  read,
  fetch,
  copy,
  compute,
  queue,
  hit,
  block,
  request,
  connect,
  answer,
  receive,
  store,
  sample,
  sample_read,
  sample_wait
};

[[nodiscard]] std::string_view name(activity of) noexcept;
/// Of the span before it in its ring.
[[nodiscard]] constexpr bool is_part(activity of) noexcept {
  return (of >= activity::connect && of <= activity::store) || of > activity::sample;
}

struct timeline_span {
  static constexpr std::uint64_t no_batch = ~std::uint64_t{0};
  static constexpr std::uint32_t no_row = (1U << 24) - 1;

  activity of = activity::rows;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint32_t epoch = 0;
  std::uint64_t batch = no_batch;
  std::uint32_t row = no_row;  ///< larger numbers are not told

  friend bool operator==(const timeline_span&, const timeline_span&) = default;
};

/// A ring of spans. Writing takes no lock and never waits; who reads gets whole spans only.
class timeline_track {
 public:
  static constexpr std::size_t span_bytes = 32;

  timeline_track(std::string name, std::size_t spans);

  /// Thread: one at a time.
  void add(const timeline_span& span) noexcept;
  /// The latest spans, in the order in which they were added. Thread: any.
  [[nodiscard]] std::vector<timeline_span> spans() const;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  static constexpr std::size_t words = span_bytes / sizeof(std::uint64_t);

  const std::string name_;
  const std::size_t capacity_;
  const std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
  std::atomic<std::uint64_t> begun_{0};  // spans whose place is being written, or was
  std::atomic<std::uint64_t> added_{0};
};

/// The time, where there is a track to note it on.
[[nodiscard]] inline std::uint64_t noted_now(const timeline_track* where) noexcept {
  return where != nullptr ? now_ns() : 0;
}

/// What is counted beside the spans.
enum class line_queue : std::uint8_t { reads, decode, ready, out };

/// Which rows of a thread get a span: all where they take 12 us or more, else as many as cost 0.5 % of its time.
/// Thread: one.
class span_sampler {
 public:
  [[nodiscard]] bool is_due() noexcept { return skipped_++ >= between_; }
  /// How long the one that was due took.
  void took(std::uint64_t ns) noexcept {
    skipped_ = 0;
    between_ = static_cast<std::uint32_t>(each_ns / (ns + 1));
  }

 private:
  // A span takes 60 ns: two looks at the clock, and four words.
  static constexpr std::uint64_t each_ns = 12'000;

  std::uint32_t skipped_ = 0;
  std::uint32_t between_ = 0;
};

/// Of the rows that get a span, every eighth has its reads, too: a fifth of a span more. Thread: one.
class sample_sampler {
 public:
  [[nodiscard]] bool is_due() noexcept { return noted_++ % 8 == 0; }

 private:
  std::uint32_t noted_ = 0;
};

/// The reads that a loop ended. Where they come faster than one in 12 us a span stands for several; one that took 10 ms or more has its
/// own all the same. Thread: one.
class read_track {
 public:
  explicit read_track(std::string name, std::size_t spans) : track_(std::move(name), spans) {}

  /// A read has ended.
  ///   served   by this request; null: by none that has times
  void ended(activity of, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint32_t epoch, std::uint64_t batch,
             const io::request_times* served = nullptr) noexcept {
    ++reads_;
    // With its request it is five spans: 60 ns.
    const std::uint64_t between = served != nullptr ? 2 * between_ns : between_ns;
    if (end_ns < noted_ns_ + between && end_ns < begin_ns + long_ns) return;
    track_.add({.of = of, .begin_ns = begin_ns, .end_ns = end_ns, .epoch = epoch, .batch = batch, .row = reads_});
    if (served != nullptr) add(*served, epoch, batch);
    noted_ns_ = end_ns;
    reads_ = 0;
  }
  [[nodiscard]] const timeline_track& track() const noexcept { return track_; }

 private:
  static constexpr std::uint64_t between_ns = 12'000;  // as span_sampler
  static constexpr std::uint64_t long_ns = 10'000'000;

  void add(const io::request_times& served, std::uint32_t epoch, std::uint64_t batch) noexcept;

  timeline_track track_;
  std::uint64_t noted_ns_ = 0;
  std::uint32_t reads_ = 0;  // since then
};

/// The blocks that were fetched into a cache. They are few, and of any thread.
class block_track final : public io::cached_block_observer {
 public:
  explicit block_track(std::size_t spans) : track_("cache", spans) {}
  void have_fetched(const io::cached_block_times& of) noexcept override ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] const timeline_track& track() const noexcept { return track_; }

 private:
  mutex mutex_;           // of who adds
  timeline_track track_;  // read by any thread
};

}  // namespace leat::stages

// Sources on loops: who reads keeps its sources here, each connected to each loop, and knows of the operations that are under way. The
// order in which it ends stands here once: operations are cancelled, then awaited, then each source ends on its loop's thread.
#pragma once

#include "async/posted_functions.hpp"
#include "base/mutex.hpp"
#include "io/files/source.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::io {

struct set_loop;
class source_set;

/// A read from a source of a source_set.
struct set_read : read_operation {
  std::uint32_t source = 0;  ///< in the set
  /// In the place of done(), which is the set's. It may start the read again.
  void (*ended)(set_read&) noexcept = nullptr;

  /// Thread: the loop's.
  [[nodiscard]] bool in_flight() const noexcept { return place != not_in_flight; }

  // The set's own, from start() to ended().
  static constexpr std::uint32_t not_in_flight = 0xFFFFFFFFU;
  std::uint32_t place = not_in_flight;
  set_loop* loop = nullptr;
};

/// Opens a file of a source of a source_set.
struct set_open : open_operation {
  std::uint32_t source = 0;
  void (*ended)(set_open&) noexcept = nullptr;  ///< as in set_read

  set_loop* loop = nullptr;  // The set's own.
};

/// The part of a source_set that belongs to one loop. Thread: the loop's, except for `operations`.
struct alignas(64) set_loop {
  source_set* owner = nullptr;
  connector* at = nullptr;
  std::vector<std::unique_ptr<source>> sources;  ///< by number; null where none was needed yet
  std::vector<set_read*> reads;                  ///< in flight, unordered
  bool cancelled = false;                        ///< reads started from now on are cancelled at once
  std::atomic<std::size_t> operations{0};        ///< started and not ended; loop threads and callers
};

/// Refers to descriptions and loops, which outlive it.
class source_set {
 public:
  explicit source_set(std::span<connector* const> loops);
  source_set(const source_set&) = delete;
  source_set& operator=(const source_set&) = delete;
  /// Ends each source on its loop's thread. Nothing is under way. Thread: any but the loops'.
  ~source_set();

  [[nodiscard]] std::size_t loops() const noexcept { return loops_.size(); }

  /// Connects a source to each loop, and returns its number: 0, 1, 2 ... Thread: any, while nothing is under way. Throws as
  /// source_description::connect().
  ///   terms   of each one; nothing where it takes what memory it wants
  std::uint32_t add(const source_description& from, std::optional<source_terms> terms = std::nullopt)
      ABSL_LOCKS_EXCLUDED(mutex_);
  /// The same, but each loop connects it when it first needs it. Thread: any, at any time.
  std::uint32_t add_later(const source_description& from, std::optional<source_terms> terms = std::nullopt)
      ABSL_LOCKS_EXCLUDED(mutex_);
  /// For who starts operations of its own. Thread: the loop's.
  [[nodiscard]] source& source_of(std::size_t loop, std::uint32_t number) { return source_of(loops_[loop], number); }

  /// Starts reads, each a set_read, on a loop, in this order: before this returns where it is called on the loop's thread. Neighbours
  /// of one source go to it together. Thread: any.
  void start(std::size_t loop, std::span<read_operation* const> reads);
  void start(std::size_t loop, set_open& file);
  /// As source::hint(), of one source. Thread: any.
  void hint(std::size_t loop, std::uint32_t source, std::span<const extent> ahead);

  /// Cancels all reads in flight. Reads that the calling thread started before are among them. Thread: any.
  void cancel_reads();
  /// The same, and all reads that are started later: each still ends. Thread: any.
  void cancel();
  /// Cancels one read that is in flight. Thread: its loop's.
  static void cancel(set_read& read);
  /// Waits until each operation has ended, ended() has returned, and it has started nothing. Thread: any but the loops'.
  void drain() const noexcept;

  /// Thread: the loop's, once the operation has ended.
  template <class Operation>
  [[nodiscard]] error explain(const Operation& failed) const {
    return failed.said != nullptr ? failed.said->why : failed.loop->sources[failed.source]->explain(failed);
  }

  [[nodiscard]] std::size_t in_flight() const noexcept;
  /// The reads in flight, the oldest first, each as "file at offset n". Asks each loop. Thread: any but the loops'.
  [[nodiscard]] std::vector<std::string> under_way();

 private:
  [[nodiscard]] static source& source_of(set_loop& loop, std::uint32_t number) {
    if (number < loop.sources.size() && loop.sources[number] != nullptr) return *loop.sources[number];
    return loop.owner->connect(loop, number);
  }
  [[nodiscard]] source& connect(set_loop& loop, std::uint32_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  static void begin(set_loop& loop, std::span<read_operation* const> reads);
  static void end_read(read_operation& ended) noexcept;
  static void count_down(set_loop& loop) noexcept;
  void cancel_on_each(void (*cancel)(set_loop&));
  void on_each(const std::function<void(set_loop&)>& visit);

  std::deque<set_loop> loops_;  // they never move
  async::posted_functions posted_;
  mutex mutex_;
  struct described {
    const source_description* from = nullptr;
    std::optional<source_terms> terms;
  };
  std::vector<described> descriptions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace leat::io

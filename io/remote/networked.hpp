// What a source over a network lets others change and see while it is read.
#pragma once

#include <cstdint>

namespace leat::io {

/// What became of one request when. Times are of the steady clock; 0: it did not come to that.
///   wanted_ns    the bytes were asked for by a read
///   opened_ns    a connection was begun for it; 0: it took one that was there
///   asked_ns     the request was sent
///   answered_ns  the header of its answer was there
///   ended_ns     all of its bytes were, or it had failed
struct request_times {
  std::uint64_t wanted_ns = 0;
  std::uint64_t opened_ns = 0;
  std::uint64_t asked_ns = 0;
  std::uint64_t answered_ns = 0;
  std::uint64_t ended_ns = 0;
};

/// A block that was fetched into a cache: what became of its request, and of its bytes.
///   write_ns, written_ns   they were written; 0: they did not come, or had to be left out
struct cached_block_times {
  request_times request;
  std::uint64_t write_ns = 0;
  std::uint64_t written_ns = 0;
  std::uint64_t bytes = 0;
  std::uint32_t block = 0;
};

/// Who is told of such blocks. Thread: any, several at a time.
class cached_block_observer {
 public:
  cached_block_observer(const cached_block_observer&) = delete;
  cached_block_observer& operator=(const cached_block_observer&) = delete;
  virtual void have_fetched(const cached_block_times& of) noexcept = 0;

 protected:
  cached_block_observer() = default;
  ~cached_block_observer() = default;
};

/// A connected source may be one, too.
class networked {
 public:
  networked(const networked&) = delete;
  networked& operator=(const networked&) = delete;

  /// Connections that it has memory for.
  [[nodiscard]] virtual std::uint32_t connections_max() const noexcept = 0;
  /// It works with so many from now on, 1 to connections_max(), however near the store is; with fewer where the store refuses requests. What
  /// is under way goes on. Thread: any.
  virtual void set_connections(std::uint32_t connections) = 0;
  /// In the done() of a read: of the last request that served it. Null: none did, as of a cache. Thread: the loop's.
  [[nodiscard]] virtual const request_times* request_of_read() const noexcept = 0;
  /// In the done() of a read: whether its bytes were on the drive already. Thread: the loop's.
  [[nodiscard]] virtual bool is_read_from_cache() const noexcept = 0;
  /// Of each block that it fetches into its cache, be it for a read or ahead of all. Once, before the first read.
  ///   told   outlives this
  virtual void observe_blocks(cached_block_observer& told) = 0;

 protected:
  networked() = default;
  ~networked() = default;
};

}  // namespace leat::io

// A queue of reads without a completion handler for each: requests are pushed, and completions come back in groups.
#pragma once

#include <leat/awaitable_operation.hpp>
#include <leat/compiler.hpp>
#include <leat/completion.hpp>
#include <leat/error.hpp>
#include <leat/reader.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <utility>

namespace leat::io {
class read_queue_state;
}

#pragma GCC visibility push(default)
namespace leat {

/// One read.
///   offset, bytes   of any alignment
///   into            begins on a multiple of 4096; size() >= reader::lease_bytes(offset, bytes). Part of a lease of the
///                   queue's reader is registered memory; other memory works as well
///   tag             a number of yours, which comes back with the completion
struct read_request {
  reader::file file;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::span<std::byte> into;
  std::uint64_t tag = 0;
};

/// How a read ended.
///   data      the bytes asked for, somewhere in `into`; if the file ends before (ENODATA), the bytes up to its end
///   failure   0 or an errno; ECANCELED if it was cancelled. read_queue::explain() says it in words
struct read_completion {
  std::uint64_t tag = 0;
  std::span<const std::byte> data;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint32_t file = 0;  ///< reader::file::number
  int failure = 0;
};

/// Keeps a drive busy for the least CPU. Reads are pushed without a handler. completed() gives all reads that have
/// ended since the last call, in the order in which they ended.
///
///     leat::read_queue queue = disk.queue({.reads_max = 64});
///     leat::lease memory = co_await disk.lease(64_MiB);
///     for (k = 0; k < 64; ++k) queue.push({weights, k * 1_MiB, 1_MiB, memory.bytes().subspan(k * 1_MiB, 1_MiB), k});
///     for (;;) {
///       const std::span<const leat::read_completion> ended = co_await queue.completed();
///       if (ended.empty()) break;
///       for (const leat::read_completion& each : ended) use(each);   // and push the next one into the same memory
///     }
///
/// A read allocates nothing. A coroutine on the queue's executor (asio::co_spawn(queue.get_executor(), ...)) needs no
/// change of thread. Reads that it pushes in one turn go to the kernel in one call, and one resumption gives all reads
/// that have ended. On another thread, reads that are pushed together cost one change of thread, and completions
/// another.
///
///   memory        `into` belongs to the kernel from push() until completed() gives the read back. Until then do not
///                 write to it, use it for another read, or end its lease
///   depth         at most reader_options::queue_depth reads of an I/O thread are in the kernel, of all its queues
///                 together; others wait
///   errors        a failed read is a value (read_completion::failure). push() throws only for requests that can never
///                 be read, and completed() does not throw for failed reads
///   cancellation  cancel() asks for it; every read is still given back once, when the kernel has released its memory
///   destruction   cancels, and waits until the kernel has released all memory, also on the queue's own executor, whose
///                 thread does nothing else meanwhile. Completions that were not taken are lost
///   lifetime      the reader outlives the queue; a moved-from queue may be destroyed or assigned to
///   fork          as reader
///
/// Thread: any; completed() one at a time.
class read_queue {
 public:
  using options = read_queue_options;

  read_queue(read_queue&&) noexcept = default;
  read_queue& operator=(read_queue&& other) noexcept;
  ~read_queue();

  /// Pushes all of these reads, or throws and pushes none. The requests are copied.
  ///   throws   error: usage (a file of another reader, memory that is too small or not aligned), limit (more than
  ///            room()); after reader::stop() it throws nothing, and the reads end with ECANCELED
  void push(std::span<const read_request> reads);
  void push(const read_request& one) { push(std::span(&one, 1)); }

  /// Waits until a read has ended: void(std::exception_ptr, std::span<const read_completion>).
  ///   completes with all reads that have ended since the last call; the span is valid until the next call. If no read
  ///                  is in flight, with none at once
  ///   errors         error: usage (another call waits already), cancelled (the queue was destroyed)
  ///   cancellation   total: ends only the wait; the reads go on, and none is lost
  template <class Token = asio::deferred_t>
  auto completed(Token&& token = Token()) {
    check();
    return asio::async_initiate<Token, signature>(initiate_wait{this}, token);
  }

  /// Cancels all reads that were pushed: each ends with ECANCELED, or as usual if it ends first.
  void cancel();

  /// The reads that were pushed and not given back, and how many more may be pushed.
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t room() const noexcept;

  /// The executor of the I/O thread that reads for this queue: a function that runs there must not block.
  [[nodiscard]] asio::any_io_executor get_executor() const noexcept;

  /// A failed read in words: path, offset, the name of the errno, and what may help.
  [[nodiscard]] error explain(const read_completion& failed) const;

 private:
  friend class reader;
  using signature = void(std::exception_ptr, std::span<const read_completion>);
  // Has a name, since Asio keeps the names of operations as text, and that of a lambda holds the path of its file.
  struct initiate_wait {
    read_queue* self;
    template <class Handler>
    void operator()(Handler handler) const {
      self->start_wait(completion<signature>(std::move(handler)));
    }
  };
  explicit read_queue(std::shared_ptr<io::read_queue_state> state) noexcept : state_(std::move(state)) {}
  void check() const;
  void start_wait(completion<signature> done);

  std::shared_ptr<io::read_queue_state> state_;  // shared with functions that were posted to the I/O thread
};

template <>
inline constexpr bool detail::is_delivered<std::span<const read_completion>> = true;

}  // namespace leat
#pragma GCC visibility pop

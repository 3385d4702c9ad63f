// Reads by the thousand: pushed as they come to mind, given back as they end, many at a time.
#pragma once

#include <leat/awaitable_operation.hpp>
#include <leat/completion.hpp>
#include <leat/error.hpp>
#include <leat/reader.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <utility>

namespace leat {

namespace io {
class read_queue_state;
}

/// One read.
///   offset, bytes   any
///   into            begins on a multiple of 4096; size() >= reader::lease_bytes(offset, bytes). Of a lease of the queue's
///                   reader, any part of it, it is memory that the kernel knows; of anybody's else, plain memory
///   tag             the caller's own; comes back with the completion
struct read_request {
  reader::file file;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::span<std::byte> into;
  std::uint64_t tag = 0;
};

/// How a read ended.
///   data      the bytes asked for, somewhere in `into`; where the file ends before them (ENODATA), those that it has
///   failure   0 or an errno, ECANCELED among them; read_queue::explain() has it in words
struct read_completion {
  std::uint64_t tag = 0;
  std::span<const std::byte> data;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint32_t file = 0;  ///< reader::file::number
  int failure = 0;
};

/// Keeps a drive busy for the least CPU there is: reads are pushed without a handler, and completions come back in the order
/// in which they end, as many at a time as there are.
///
///     leat::read_queue queue = disk.queue({.reads_max = 64});
///     leat::lease memory = co_await disk.lease(64_MiB, asio::deferred);
///     for (k = 0; k < 64; ++k) queue.push({weights, k * 1_MiB, 1_MiB, memory.bytes().subspan(k * 1_MiB, 1_MiB), k});
///     for (;;) {
///       const std::span<const leat::read_completion> ended = co_await queue.completed(asio::deferred);
///       if (ended.empty()) break;
///       for (const leat::read_completion& each : ended) use(each);   // and push the next one into the same memory
///     }
///
/// Nothing is allocated for a read. Where its user runs on the queue's executor (asio::co_spawn(queue.get_executor(), ...)),
/// no thread hops: what is pushed in a turn goes to the kernel in one call, and one resumption serves all that have ended. From
/// elsewhere it is one hop there for what is pushed together, and one back for what has ended together.
///
///   memory        `into` is the kernel's from push() until the read is given back: nobody writes to it, nor gives it to
///                 another read; nor does its lease end
///   depth         pushed reads beyond the reader's queue_depth wait here; those of all queues of an I/O thread share it
///   errors        of a read are values: push() throws for what can never be read only, completed() never for a read's sake
///   cancellation  cancel() asks; every read is still given back, once, when the kernel has let go of its memory
///   destruction   asks, and waits until the kernel has let go of everything, also on the queue's own executor, whose
///                 thread does nothing else meanwhile. What has ended and was not given back is lost
///   lifetime      the reader outlives it; a moved-from queue may be destroyed or assigned to
///   fork          as reader
///
/// Thread: any, but for completed(): one at a time.
class read_queue {
 public:
  using options = read_queue_options;

  read_queue(read_queue&&) noexcept = default;
  read_queue& operator=(read_queue&& other) noexcept;
  ~read_queue();

  /// Takes reads, all or none of them. They are copied.
  ///   throws   error: usage (a file of another reader, memory that is too small or not aligned), limit (more than room());
  ///            after reader::stop() it throws nothing, and they end with ECANCELED
  void push(std::span<const read_request> reads);
  void push(const read_request& one) { push(std::span(&one, 1)); }

  /// Waits until a read has ended: void(std::exception_ptr, std::span<const read_completion>).
  ///   completes with all that have ended and were not given back, good until the next call; empty, at once, where no read
  ///                  is under way
  ///   errors         error: usage (somebody waits already), cancelled (the queue was destroyed)
  ///   cancellation   total, of waiting: nothing is lost, and the reads go on
  template <class Token>
  auto completed(Token&& token) {
    using signature = void(std::exception_ptr, std::span<const read_completion>);
    check();
    return asio::async_initiate<Token, signature>(
        [](auto handler, read_queue* self) { self->start_wait(completion<signature>(std::move(handler))); }, token,
        this);
  }

  /// Has all reads that were pushed end early: with ECANCELED, or as they would have where that was faster.
  void cancel();

  /// Reads that are pushed and not given back, and how many more may be.
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] std::size_t room() const noexcept;

  /// Of the I/O thread that reads for this queue: what runs there must not block.
  [[nodiscard]] asio::any_io_executor get_executor() const noexcept;

  /// A failed read in words: path, offset, errno by name, and a likely remedy.
  [[nodiscard]] error explain(const read_completion& failed) const;

 private:
  friend class reader;
  explicit read_queue(std::shared_ptr<io::read_queue_state> state) noexcept : state_(std::move(state)) {}
  void check() const;
  void start_wait(completion<void(std::exception_ptr, std::span<const read_completion>)> done);

  std::shared_ptr<io::read_queue_state> state_;  // what is on its way to the I/O thread shares it
};

template <>
inline constexpr bool detail::is_delivered<std::span<const read_completion>> = true;

}  // namespace leat

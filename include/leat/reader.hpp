// Reads files asynchronously, in batches, into registered memory.
#pragma once

#include <leat/awaitable_operation.hpp>
#include <leat/compiler.hpp>
#include <leat/completion.hpp>
#include <leat/error.hpp>
#include <leat/lease.hpp>
#include <leat/reader_options.hpp>
#include <leat/stats.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>

#pragma GCC visibility push(default)
namespace leat {

class read_queue;

/// Options of a read_queue (<leat/read_queue.hpp>).
///   reads_max   the most reads that are pushed and not yet returned. Default: 256
struct read_queue_options {
  std::uint32_t reads_max = 256;
};

/// Reads files: by io_uring, or by threads where the kernel forbids it; with O_DIRECT, registered buffers and huge
/// pages where each can be used. report() says what is in use.
///
///     leat::reader disk(256_MiB);
///     leat::reader::file weights = co_await disk.open("/data/weights.bin", asio::use_awaitable);
///     leat::lease memory = co_await disk.lease(disk.lease_bytes(0, 1_MiB), asio::use_awaitable);
///     std::span<const std::byte> bytes = co_await disk.read(weights, 0, 1_MiB, memory, asio::use_awaitable);
///
/// Takes any completion token. A handler runs on its associated executor, or on the reader's own if it has none
/// (use_future). Spawn a coroutine that only reads on the reader's executor: a change of thread costs 7 us when idle.
///
/// In a child of fork() every call throws error{errc::usage} at once: the threads stayed in the parent.
///
/// Thread: any, except for the destructor. A batch of requests costs one change to the I/O thread and one back, however
/// many reads it has. A read allocates nothing. For thousands of reads use queue(), which needs no handler for each.
///
/// If a ring fails (io_uring_enter(2) is refused, or says EAGAIN for two seconds), reads in flight and all later ones
/// fail with errc::io. Leases stay valid, with the bytes of reads that had completed. If the kernel does not confirm
/// that it has released the memory of a failed read, it may still write to it. That memory then stays mapped until the
/// process ends, and is never leased again. When its lease has ended, lease() fails with errc::io.
class reader {
 public:
  /// A file by number. There is no close(): the reader opens and closes descriptors as reads need them, and any number
  /// of files may be open.
  ///   size_bytes   its size when it was opened
  ///   version      changes when the content does: made from mtime, size and inode
  ///   alignment    in bytes: reads on multiples of it read nothing that was not asked for
  struct file {
    std::uint32_t number = 0xFFFFFFFFU;
    std::uint64_t size_bytes = 0;
    std::uint64_t version = 0;
    std::uint32_t alignment = 1;
  };

  /// One read of a batch. The reader writes `data` and `failure`.
  ///   offset, bytes   of any alignment
  ///   into            size() >= lease_bytes(offset, bytes)
  ///   data            the bytes asked for, somewhere in `into`
  ///   failure         0 or an errno; explain() says it in words
  struct request {
    reader::file file;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    leat::lease* into = nullptr;
    std::span<const std::byte> data;
    int failure = 0;
  };

  /// The size of a lease for [offset, offset + bytes): the range, widened to multiples of 4096.
  [[nodiscard]] static constexpr std::size_t lease_bytes(std::uint64_t offset, std::uint64_t bytes) noexcept {
    const std::uint64_t begin = offset / 4096 * 4096;
    return static_cast<std::size_t>((offset + bytes + 4095) / 4096 * 4096 - begin);
  }

  /// Starts the I/O threads.
  ///   lease_bytes_max   the most bytes of all leases together; memory is mapped when it is first leased
  ///   throws            error: limit (threads, descriptors, address space), unsupported (an option that is on and
  ///                     cannot be used, with what to do)
  explicit reader(std::size_t lease_bytes_max, reader_options options = {});
  reader(const reader&) = delete;
  reader& operator=(const reader&) = delete;
  /// stop(), then joins the threads. Leases may outlive it. Must not be called on its own executor.
  ~reader();

  /// Looks a file up: void(std::exception_ptr, file).
  ///   errors         error: not_found, permission, io, unsupported (direct = on, and no O_DIRECT); the message has
  ///                  path, errno and a remedy
  ///   cancellation   total
  ///   source         statx(2)
  template <class Token = asio::deferred_t>
  auto open(std::string path, Token&& token = Token()) {
    check_process();
    return asio::async_initiate<Token, void(std::exception_ptr, file)>(
        [](auto handler, reader* self, std::string where) {
          self->start_open(std::move(where),
                           completion<void(std::exception_ptr, file)>(std::move(handler), self->get_executor()));
        },
        token, this, std::move(path));
  }

  /// Memory to read into, aligned to 4096, in the order of the calls: void(std::exception_ptr, lease). A lease of more
  /// than 4 MiB whose memory was never leased before becomes one registered buffer (1 GiB at most). A read of up to 16
  /// MiB into any part of it is then one read for the kernel.
  ///   errors         error: limit (more than lease_bytes_max), cancelled (after stop()), io (after a ring has failed,
  ///                  as above)
  ///   cancellation   total
  template <class Token = asio::deferred_t>
  auto lease(std::size_t bytes, Token&& token = Token()) {
    check_process();
    return asio::async_initiate<Token, void(std::exception_ptr, leat::lease)>(
        [](auto handler, reader* self, std::size_t wanted) {
          self->start_lease(
              wanted, completion<void(std::exception_ptr, leat::lease)>(std::move(handler), self->get_executor()));
        },
        token, this, bytes);
  }

  /// Reads [offset, offset + bytes) of `from`: void(std::exception_ptr, std::span<const std::byte>).
  ///   into           size() >= lease_bytes(offset, bytes); do not move or release it before this completes
  ///   completes with all bytes that were asked for, somewhere in `into`
  ///   errors         error: io (the file ends before offset + bytes; EIO; ETIMEDOUT ...), not_found, permission,
  ///                  limit, with path, offset and a remedy
  ///   cancellation   total: the kernel has released the memory before this completes
  ///   source         io_uring_prep_read_fixed(3), preadv2(2)
  template <class Token = asio::deferred_t>
  auto read(const file& from, std::uint64_t offset, std::uint64_t bytes, leat::lease& into, Token&& token = Token()) {
    check_process();
    using signature = void(std::exception_ptr, std::span<const std::byte>);
    return asio::async_initiate<Token, signature>(
        [](auto handler, reader* self, request what) {
          self->start_read(what, completion<signature>(std::move(handler), self->get_executor()));
        },
        token, this, request{from, offset, bytes, &into, {}, 0});
  }

  /// Reads a batch: void(std::exception_ptr). All reads are under way at once, as far as queue_depth allows.
  ///   requests       must stay where they are, with their leases, until this completes
  ///   completes      when all reads have ended, with the error of the first that failed; each has its own `failure`
  ///   cancellation   total, as above; reads that had ended keep their data
  template <class Token = asio::deferred_t>
  auto read(std::span<request> requests, Token&& token = Token()) {
    check_process();
    return asio::async_initiate<Token, void(std::exception_ptr)>(
        [](auto handler, reader* self, std::span<request> what) {
          self->start_batch(what, completion<void(std::exception_ptr)>(std::move(handler), self->get_executor()));
        },
        token, this, requests);
  }

  /// A queue for reads without a handler for each; include <leat/read_queue.hpp>. Each queue reads on one I/O thread;
  /// queues take the threads in turn.
  ///   throws   error{errc::usage}: reads_max is 0
  [[nodiscard]] read_queue queue(read_queue_options options = {});

  /// A failed request in words: path, offset, the name of the errno, and what may help.
  [[nodiscard]] error explain(const request& failed) const;

  /// Which techniques are in use, and why others are not.
  [[nodiscard]] reader_report report() const;

  /// The executor of the (first) I/O thread: what runs there must not block.
  [[nodiscard]] asio::any_io_executor get_executor() const noexcept;

  /// Cancels what is under way, and waits until the kernel has released all memory. Later calls fail with
  /// errc::cancelled. May be called several times, from any thread but the reader's own.
  void stop() noexcept;

  class [[gnu::visibility("hidden")]] impl;  // io/reader/reader.cpp

 private:
  void check_process() const;
  void start_open(std::string path, completion<void(std::exception_ptr, file)> done);
  void start_lease(std::size_t bytes, completion<void(std::exception_ptr, leat::lease)> done);
  void start_read(const request& what, completion<void(std::exception_ptr, std::span<const std::byte>)> done);
  void start_batch(std::span<request> what, completion<void(std::exception_ptr)> done);

  std::unique_ptr<impl> impl_;
};

template <>
inline constexpr bool detail::is_delivered<reader::file> = true;
template <>
inline constexpr bool detail::is_delivered<lease> = true;
template <>
inline constexpr bool detail::is_delivered<std::span<const std::byte>> = true;

}  // namespace leat
#pragma GCC visibility pop

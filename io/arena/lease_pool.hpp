// Memory by the lease: of the size asked for, counted in bytes, granted in the order asked.
#pragma once

#include "io/arena/arena.hpp"
#include "io/files/source.hpp"

#include <leat/completion.hpp>
#include <leat/lease.hpp>

#include <boost/asio/async_result.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace leat::io {

using leat::lease;

/// The whole of a lease as a place to read into.
[[nodiscard]] inline read_target target_of(const lease& memory) noexcept { return {memory.bytes(), memory.piece()}; }

struct lease_pool_options {
  std::size_t bytes_max = 0;
  std::string name = "memory";  ///< for messages: "read buffers", "batches"
  /// Pages come with the first write to them, on the thread that writes; else with the lease, on the thread that
  /// leases. See arena::populate().
  bool first_touch = false;
  /// A lease comes without its memory, which the owner sees to before anything is read into it, with populate_next(): a
  /// thread that has other things to do puts them between two pieces.
  bool in_pieces = false;
  /// A lease larger than a piece of the arena becomes one buffer for io_uring (1 GiB at most) if its memory was not leased
  /// before: no read into it is cut.
  bool as_one = false;
  /// A device pins each lease before io_uring may: see pinning_done().
  bool pinned_first = false;
};

/// Divides one region of an arena.
///
///   fairness       first come, first served: a large request is not overtaken by small ones, so try_lease() gives
///                  nothing while somebody waits
///   progress       first fit in address order, neighbours joined: when all other leases are back, any request up to
///                  bytes_max fits. Granting counts bytes, and what is free in one place: no fragmentation can block
///                  the oldest request for ever, since everybody else's memory comes home without it
///   pieces         a lease no larger than a piece of the arena lies within one, if there is such a place; with as_one a
///                  larger one begins with a piece
///   threads        any thread may call anything; a waiter resumes on its handler's associated executor, by post
///   cancellation   total: a cancelled wait holds nothing, and those behind it move up
///   given up       a lease whose memory was given up (arena::give_up()) does not come home. The pool then closes, since its
///                  waiters might wait for that memory
///   lifetime       leases may outlive the pool; operations that wait must have ended before it does (close())
class lease_pool {
 public:
  struct counters {
    std::uint64_t leases = 0;   ///< granted since construction
    std::uint64_t waits = 0;    ///< of those, had to wait
    std::uint64_t wait_ns = 0;  ///< together
    std::size_t bytes_used = 0;
    std::size_t bytes_used_peak = 0;
    std::size_t leases_out = 0;
    std::size_t waiting = 0;
  };

  /// Throws error{errc::limit} when the arena has no room for it.
  lease_pool(std::shared_ptr<arena> memory, lease_pool_options options);
  lease_pool(const lease_pool&) = delete;
  lease_pool& operator=(const lease_pool&) = delete;
  ~lease_pool();

  /// A lease of `bytes` if it is there now and nobody waits; nullopt too once closed.
  ///   throws   error{errc::limit} when `bytes` is more than the pool has in all, naming both; errors of
  ///            arena::populate()
  [[nodiscard]] std::optional<lease> try_lease(std::size_t bytes);

  /// Completes with a lease of `bytes`: void(std::exception_ptr, lease).
  ///   errors         as above; error{errc::cancelled} once closed; boost::system::system_error(operation_aborted)
  ///   cancellation   total. Where the grant came first, the lease is the caller's
  template <class Token>
  auto async_lease(std::size_t bytes, Token&& token) {
    return boost::asio::async_initiate<Token, void(std::exception_ptr, lease)>(
        [this](auto handler, std::size_t wanted) { start(wanted, lease_completion(std::move(handler))); }, token,
        bytes);
  }

  using lease_completion = completion<void(std::exception_ptr, lease)>;
  /// async_lease() for who has a completion already. Call it on the handler's executor.
  void start(std::size_t bytes, lease_completion done);

  /// Faults in the next piece of a lease of this pool's that is not there yet, up to 4 MiB: 0.4 ms with huge pages, 2 ms
  /// without. Thread: any.
  ///   returns  false if all of it is there: it can be read into
  ///   throws   as arena::populate()
  [[nodiscard]] bool populate_next(const lease& memory);

  /// A device has pinned what this lease of ours lies on, or never will. Once for each such place. Thread: any.
  void pinning_done(const lease& memory) noexcept;

  /// `memory` as a place to read into. It may be part of a lease of this pool, or any other memory.
  [[nodiscard]] read_target target_at(std::span<std::byte> memory) const noexcept;

  /// Grants nothing from now on that would bring the leases that are out over `bytes`; nothing is taken back. A lease alone is granted
  /// always. bytes_max() is no limit, which it is at first. Thread: any.
  void set_limit(std::size_t bytes) noexcept;

  /// Fails those who wait and all who come, with error{errc::cancelled}. Leases stay good.
  void close() noexcept;

  [[nodiscard]] counters count() const;
  [[nodiscard]] std::size_t bytes_max() const noexcept;

 private:
  class state;

  // Shared with the leases that are out: they may come home after the pool has gone.
  std::shared_ptr<state> state_;
};

}  // namespace leat::io

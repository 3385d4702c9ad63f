// The memory that bytes are read into and batches are built in: anonymous, huge pages where there are any, mapped in as
// it is needed.
#pragma once

#include "base/fork_guard.hpp"
#include "base/mutex.hpp"

#include <leat/stats.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace leat::io {

enum class huge_pages : std::uint8_t {
  automatic,  ///< asked for; what came of it is in the report
  on,         ///< an error where the kernel gives none
  off
};

struct arena_options {
  std::size_t bytes_max = 0;  ///< of all regions together
  huge_pages pages = huge_pages::automatic;
  /// The NUMA node that pages come from first, whoever touches them; others have them where it is full.
  std::optional<std::uint32_t> node = {};
};

/// Anonymous memory in regions (one for each pool), which consist of pieces of 4 MiB: the unit in which memory is
/// faulted in and registered with io_uring, each when it is first needed, so that the first batch waits for its
/// own memory only. Two huge pages: many small buffers cost a read no more than one large one, faulting one in takes
/// 0.4 ms, and io_uring's table of 16,384 covers 64 GiB. A read that is larger than a piece would be cut into several;
/// memory that is leased for such reads is made one buffer instead (populate_as_one()).
///
/// Held by a shared_ptr, since every lease shares in it: a batch may outlive the loader that made it.
/// The memory is not there in a child after fork() (MADV_DONTFORK): a copy on write would move pages the kernel pinned.
/// Without a node, or where the kernel refuses one, a page comes from that of the thread that touches it first.
class arena {
 public:
  static constexpr std::size_t piece_bytes = std::size_t{4} << 20;
  /// The most that io_uring accepts for one buffer, io_uring_registered_buffers(7).
  static constexpr std::size_t buffer_bytes_max = std::size_t{1} << 30;
  /// Entries that a ring's table of registered buffers can have; pieces beyond are read into as plain memory.
  static constexpr std::uint32_t registered_pieces_max = 16384;

  explicit arena(arena_options options);
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;
  ~arena();

  /// Part of the arena that one pool divides. Pieces are numbered through the whole arena; the last one of a region may
  /// be short.
  struct region {
    std::span<std::byte> bytes;
    std::uint32_t first_piece = 0;
  };

  /// Address space for `bytes` (rounded up to 4096). Throws error{errc::limit}: over bytes_max, or out of address space.
  ///   pinned_first   a device pins this memory before io_uring may: see pinning_done()
  [[nodiscard]] region reserve(std::size_t bytes, bool pinned_first = false);

  /// Makes sure that the pieces under `part` of a region are there: faulted in. Waits if another thread is doing it.
  /// Thread: any. Throws error{errc::limit} when the system has no memory.
  ///   first_touch   leave the pages to whoever writes to them first, unless huge pages have to be checked
  void populate(const region& whole, std::span<const std::byte> part, bool first_touch = false);
  /// As populate(), and makes the pieces that were not touched before one buffer for io_uring, of 1 GiB at most.
  void populate_as_one(const region& whole, std::span<const std::byte> part);
  /// The first of these pieces that is not there. False if all are.
  bool populate_next(const region& whole, std::span<const std::byte> part, bool first_touch = false);

  /// A device has pinned this part of a region that is pinned first, or never will. Each byte once. Thread: any.
  void pinning_done(const region& whole, std::span<const std::byte> part) noexcept;
  /// Whether a piece, or a part of it, is still to be pinned: then it is not to be registered with io_uring. Thread: any.
  [[nodiscard]] bool awaits_pinning(std::uint32_t number) const noexcept {
    return number < pieces_max_ && pieces_[number].bytes_to_pin.load(std::memory_order_acquire) != 0;
  }
  /// Whether there is a region that is pinned first.
  [[nodiscard]] bool pins_first() const noexcept { return pins_first_.load(std::memory_order_relaxed); }

  /// Gives up memory that the kernel may still write to at an unknown time: pools do not lease it again, and it stays mapped
  /// until the process ends. Thread: any.
  void give_up(std::span<const std::byte> part);
  /// Whether some of `part` was given up. Thread: any.
  [[nodiscard]] bool is_given_up(std::span<const std::byte> part) const noexcept;

  /// The number of the piece that `address`, in the region whose piece `some_piece` is, lies in.
  ///   known    an address in piece `some_piece`
  [[nodiscard]] static std::uint32_t piece_at(const std::byte* address, const std::byte* known,
                                              std::uint32_t some_piece) noexcept {
    // Regions begin on a multiple of piece_bytes.
    const auto index = [](const std::byte* a) { return reinterpret_cast<std::uintptr_t>(a) / piece_bytes; };
    return some_piece + static_cast<std::uint32_t>(index(address) - index(known));
  }
  /// The memory that io_uring registers as one buffer: a piece, or neighbouring pieces that were populated as one. Empty
  /// before its first lease; it does not change after that. Thread: any.
  ///   first_piece   its number is also the number of the buffer
  struct buffer {
    std::span<std::byte> memory;
    std::uint32_t first_piece = 0;
  };
  [[nodiscard]] buffer buffer_of(std::uint32_t number) const noexcept;

  /// Bytes from `address` to the end of its piece.
  [[nodiscard]] static std::size_t bytes_to_piece_end(const std::byte* address) noexcept {
    return piece_bytes - reinterpret_cast<std::uintptr_t>(address) % piece_bytes;
  }

  /// Pieces there can ever be; their numbers are below.
  [[nodiscard]] std::uint32_t pieces_max() const noexcept { return pieces_max_; }
  /// A piece's memory, empty while nobody has leased from it. Thread: any.
  [[nodiscard]] std::span<std::byte> piece(std::uint32_t number) const noexcept;

  /// The errno with which the kernel refused the node; 0 where it did not. Thread: any.
  [[nodiscard]] int node_failure() const noexcept { return node_failure_.load(std::memory_order_relaxed); }

  [[nodiscard]] std::size_t bytes_max() const noexcept { return options_.bytes_max; }
  /// Of pieces that were leased from.
  [[nodiscard]] std::size_t bytes_populated() const noexcept { return populated_.load(std::memory_order_relaxed); }

  /// What the kernel gave, looked up in /proc/self/smaps (milliseconds: for reports).
  struct page_report {
    std::size_t bytes_resident = 0;
    std::size_t bytes_huge = 0;  ///< of those
    fallback pages;              ///< "on", "partly", "off", and why
  };
  [[nodiscard]] page_report report() const;

 private:
  enum class state : std::uint32_t { untouched, populating, ready };
  struct piece_entry {
    std::span<std::byte> memory;  // these two are written before the state says ready
    buffer in;
    std::atomic<state> now{state::untouched};
    std::atomic<std::uint32_t> bytes_to_pin{0};
  };
  struct mapping {
    std::byte* begin;
    std::size_t bytes;  // with the guard pages on both sides
  };

  void prefer_node(std::span<std::byte> memory) noexcept;
  void fault_in(std::span<std::byte> memory, bool first_touch);
  [[nodiscard]] static bool claim(piece_entry& entry) noexcept;
  static void settle(piece_entry& entry, state now) noexcept;

  const fork_guard forked_;
  const arena_options options_;
  const std::uint32_t pieces_max_;
  const std::unique_ptr<piece_entry[]> pieces_;
  std::atomic<std::size_t> populated_{0};
  std::atomic<bool> pins_first_{false};
  std::atomic<bool> some_given_up_{false};
  std::atomic<int> node_failure_{0};

  mutable mutex mutex_;
  std::vector<mapping> mappings_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::span<const std::byte>> given_up_ ABSL_GUARDED_BY(mutex_);
  std::size_t reserved_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint32_t pieces_reserved_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace leat::io

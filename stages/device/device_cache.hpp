// Rows that stay in a device's memory once they have come: those that are the same bytes in every epoch. A later batch gets them from there,
// and nothing of them is read, decoded or copied from the host. Of rows that are drawn anew the photo packs stay that they are decoded from.
//
//     side stream   ── copy batch 7 ── its new rows to the cache ── ... ── copy the other rows of batch 31 ── held rows out of the cache ──
//
// All of it is put into the one stream of copies, which orders it: no row is found before its copy to the cache is in that stream.
#pragma once

#include "base/hash_map.hpp"
#include "base/mutex.hpp"
#include "stages/batch/batch_layout.hpp"
#include "stages/batch/kept_pack.hpp"
#include "stages/batch/transfer.hpp"
#include "stages/device/device.hpp"

#include <leat/digest.hpp>
#include <leat/picture_geometry.hpp>
#include <leat/sampler.hpp>
#include <leat/stream.hpp>

#include <absl/container/inlined_vector.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::stages {

/// How an output's rows stay.
///   whole   as they are: they are the same bytes in every epoch
///   pack    what they are decoded from does: kept_pack.hpp
///   made    not at all: decode() makes them each time, of nothing that is read
enum class row_stays : std::uint8_t { whole, pack, made };

/// What is asked of a cache.
///   bytes_max     of device memory
///   why_not       not empty: no row can stay
///   rows          that there are
///   bytes_of_all  the most that all of them take
///   outputs       of the layout
///   where         not empty: what a row has to be, in words for a person
struct cache_needs {
  std::size_t bytes_max = 0;
  std::string why_not = {};
  std::uint64_t rows = 0;
  std::uint64_t bytes_of_all = 0;
  std::shared_ptr<const batch_layout> layout = {};
  std::vector<row_stays> outputs = {};
  std::string where = {};
};

/// A row that stays as long as its cache. Immutable once it is found.
///   on_device    of each output that is not short, in the order in which they lie in a block: where in the cache, and how much
///   short_rows   the rows of outputs that are, one behind another: they are written to the batch's block, and copied with it
///   geometries   of its pictures
struct held_row {
  absl::InlinedVector<row_part, 1> on_device;
  std::vector<std::byte> short_rows;
  std::vector<picture_geometry> geometries;
  /// Of each output whose packs stay: the pack's head, and how long the pack is.
  struct pack_head {
    std::size_t output = 0;  ///< in the layout
    std::vector<std::byte> bytes;
    std::size_t value_bytes = 0;
  };
  std::vector<pack_head> packs;
  digest row_digest;
  const device_cache* of = nullptr;
  bool is_there = false;  ///< of the cache alone
};

/// What a cache is told of a batch that is sent: [rows].
///   held      null: the row lies in the block
///   digests   empty: there are none
struct batch_for_cache {
  std::vector<const held_row*> held;
  std::span<const digest> digests;
  std::span<const picture_geometry> geometries;  ///< [row * pictures + picture]
};

/// Rows up to this are short: a call that copies one takes longer than its bytes do behind others.
inline constexpr std::size_t short_row_bytes_max = 256;

/// The most device memory that one row takes. 0: all of its outputs are short.
[[nodiscard]] std::size_t cached_row_bytes(const batch_layout& layout, std::span<const row_stays> outputs);

/// Keeps the rows that come first, as long as they fit: none is replaced, since an epoch that asks for all of them once would replace each
/// before it is asked for again. Has no memory of its own.
class device_cache {
 public:
  /// Of a batch's block: [begin, end).
  struct range {
    std::size_t begin = 0;
    std::size_t end = 0;

    friend bool operator==(const range&, const range&) = default;
  };
  struct counters {
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;
    std::uint64_t rows_given = 0;  ///< to batches
  };

  ///   needs   a layout of fixed rows alone
  device_cache(const cache_needs& needs, std::span<std::byte> memory);
  device_cache(const device_cache&) = delete;
  device_cache& operator=(const device_cache&) = delete;

  /// Of each pick, the row that is held of its sample; null where none is. Thread: any.
  void find(std::span<const pick> picks, std::vector<const held_row*>& held) const ABSL_LOCKS_EXCLUDED(mutex_);
  /// Writes the short rows to where they belong in a batch's block. Thread: any.
  void write_short_rows(const held_row& held, std::uint32_t row, std::byte* block) const noexcept;
  /// Whether a row did not fit: from then on others hardly do. Thread: any.
  [[nodiscard]] bool is_full() const noexcept { return full_.load(std::memory_order_relaxed); }
  /// Thread: any.
  [[nodiscard]] counters count() const ABSL_LOCKS_EXCLUDED(mutex_);

  // --- who queues: one thread -------------------------------------------------------------------------------------------

  /// Before anything of the batch is queued: which rows it gets, and which stay. May throw.
  void plan(const transfer_operation& batch) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Of that batch, whether a row comes out of the cache.
  [[nodiscard]] bool is_held(std::size_t row) const noexcept { return row < held_.size() && held_[row] != nullptr; }
  /// Of such a row of an output whose rows are not full, how much is copied from the host.
  ///   offset   of the output in the block
  [[nodiscard]] std::size_t bytes_of_host(std::size_t offset, const std::byte* row) const noexcept;
  /// Of that batch, what need not be copied from the host, in order: of rows that are full.
  [[nodiscard]] std::span<const range> left_out() const noexcept { return left_out_; }
  /// Behind the copy of that batch. One call where its rows are neighbours, else a launch for every 170 of them.
  ///   block   on the device
  [[nodiscard]] failed_call copy(device_calls& calls, std::byte* block, stream in) const noexcept;
  /// That copy is queued: from here on the batch's rows are found.
  void settle() noexcept ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct piece_copy {
    std::size_t in_block = 0;
    std::size_t in_cache = 0;
    std::size_t bytes = 0;
    bool to_cache = false;
  };

  struct long_output {
    const batch_layout::output_place* place = nullptr;
    const keeping_operation* packs = nullptr;  ///< not null: its packs stay
  };

  void give_rows(const transfer_operation& batch);
  void choose_rows(const transfer_operation& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void keep_rows(const transfer_operation& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void add(const piece_copy& next);
  /// What stays of a row. Nothing: it cannot.
  [[nodiscard]] static row_part kept_part(const long_output& of, const std::byte* row) noexcept;
  [[nodiscard]] static std::size_t offset_of(const long_output& of, std::uint32_t row) noexcept {
    return of.place->offset + row * of.place->row_bytes;
  }

  const std::shared_ptr<const batch_layout> layout_;
  const std::span<std::byte> memory_;
  std::vector<long_output> long_;                         // as they lie in a block
  std::vector<const batch_layout::output_place*> short_;  // the outputs whose rows stay on the host

  // Of the batch that is planned.
  std::span<const held_row* const> held_;
  std::vector<piece_copy> copies_;
  std::vector<range> left_out_;
  std::vector<std::uint32_t> chosen_;  // rows that are to stay
  std::vector<std::size_t> sums_;      // of their bytes, for each of long_
  std::vector<std::size_t> sums_with_;
  std::vector<held_row*> new_;

  mutable mutex mutex_;
  hash_map<std::uint64_t, held_row*> index_ ABSL_GUARDED_BY(mutex_);  // by sample; also rows that are not there yet
  std::deque<held_row> rows_ ABSL_GUARDED_BY(mutex_);                 // they do not move
  std::size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t settled_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> given_{0};
  std::atomic<bool> full_{false};
};

}  // namespace leat::stages

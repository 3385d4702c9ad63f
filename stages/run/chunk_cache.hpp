// Expanded blocks that later batches want as well: each is read and expanded once, as long as there is memory for it.
#pragma once

#include "base/hash_map.hpp"
#include "base/mutex.hpp"
#include "io/arena/lease_pool.hpp"
#include "stages/run/batch_in_flight.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace leat::stages {

/// A block that several batches may use, from when the first of them asks for it.
struct shared_block {
  io::lease memory;
  std::span<std::byte> decoded;           ///< in `memory`
  bool ready = false;                     ///< `decoded` is filled, and nobody writes it any more
  std::vector<block_in_flight*> waiters;  ///< blocks of later batches, until it is ready
};

/// Blocks by what they are. Those whose next use is not known go first, beginning with the one that was used longest ago; then those whose
/// next use is farthest away. Thread: any.
class chunk_cache {
 public:
  enum class state : std::uint8_t {
    absent,   ///< nobody has it: it has to be read
    awaited,  ///< a batch before has asked for it: finish() passes it on
    there     ///< its boxes may be copied
  };

  ///   bytes_max   of all leases that are held for them
  explicit chunk_cache(std::size_t bytes_max) noexcept : bytes_max_(bytes_max) {}

  /// These blocks are asked for next, by find(), in this order; what was said before is forgotten. Rows are planned before they are read,
  /// so this is as far as anybody looks ahead.
  void expect(std::span<const batch_plan::block* const> next);

  /// Where there is one like it, `block` gets it as block_in_flight::shared.
  [[nodiscard]] state find(block_in_flight& block);

  /// `block`, which is about to be read, will be kept if there is room without letting go of blocks that expect() named before it. Then
  /// it gets a place for its memory, as block_in_flight::shared.
  ///   bytes   of its lease
  void begin(block_in_flight& block, std::size_t bytes);

  /// `first`, for which begin() was called, has been expanded, or cannot be.
  ///   returns   blocks that wait for it, for whom nothing has to be read any more
  [[nodiscard]] std::vector<block_in_flight*> finish(block_in_flight& first);

  /// Lets go of one that nobody reads or writes. False where there is none.
  [[nodiscard]] bool let_go_of_one();

  /// As long as there is one of these somebody waits for memory, and nothing is kept.
  class [[nodiscard]] starving {
   public:
    explicit starving(chunk_cache& of) : of_(of) { of_.add_starving(1); }
    starving(const starving&) = delete;
    starving& operator=(const starving&) = delete;
    ~starving() { of_.add_starving(-1); }

   private:
    chunk_cache& of_;
  };

 private:
  void add_starving(int waiters);

  using key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t>;
  struct entry {
    std::shared_ptr<shared_block> block;
    std::size_t bytes = 0;
    std::list<key>::iterator used;  // in by_use_, or in expected_
    bool is_expected = false;
  };

  static key key_of(const batch_plan::block& of) noexcept {
    return {of.codec, of.source, of.file, of.offset, of.number};
  }
  /// Of those that nobody expects, and the last of those that somebody does.
  [[nodiscard]] std::shared_ptr<shared_block> take_oldest(const std::list<key>& from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void move_to_front(entry& used) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] std::shared_ptr<shared_block> take(const key& what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t bytes_max_;
  mutex mutex_;
  hash_map<key, entry> blocks_ ABSL_GUARDED_BY(mutex_);
  std::list<key> by_use_ ABSL_GUARDED_BY(mutex_);    // that nobody expects, the one used last in front
  std::list<key> expected_ ABSL_GUARDED_BY(mutex_);  // the one that is used next in front
  std::size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int starving_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace leat::stages

// Blocks of objects on a local drive, shared by all processes that name the same folder.
//
//     leat-cache       bytes in use, and who is at work: a slot for each process, locked by it as long as it lives
//     NAME.index       of one version of an object: a state for each block, a CRC-32C for each page of 4 KiB
//     NAME.data        its bytes at their own offsets, sparse
//
// A block is fetched once: who claims it, by compare-and-swap in the mapped state, fills it; where the owner has died, the next one takes
// it over. What there is room for lasts. Of an order that goes through its files in windows blocks may also pass: in a part of the room
// those that were wanted longest ago make way for the next ones. What lasts makes way only where it has left no room for that part. Each page is verified when a process first reads it, so that nothing here has to be synced, and what another process or a loss of
// power left behind is at worst fetched anew.
#pragma once

#include "base/mutex.hpp"
#include "io/remote/file_mapping.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::io {

inline constexpr std::uint64_t cache_page_bytes = 4096;

struct block_cache_options {
  std::string directory;
  std::uint64_t bytes_max = 0;
  std::uint32_t block_bytes = 0;  ///< a multiple of cache_page_bytes
  /// Where it is full and all is held, how long until it is looked again for what is not: each object's index is read for that.
  std::chrono::milliseconds full_time = std::chrono::minutes(1);
};

class block_cache;
struct block_room;

/// One version of one object in the cache. As long as it is held, no process evicts it. Thread: any, several at once.
class cached_object {
 public:
  enum class state : std::uint8_t {
    present,
    claimed,  ///< by this call: fill() or give_up() it
    busy,     ///< another one fills it
    refused   ///< there is no room
  };

  cached_object(const cached_object&) = delete;
  cached_object& operator=(const cached_object&) = delete;
  ~cached_object();

  [[nodiscard]] const std::string& data_path() const noexcept { return data_path_; }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  [[nodiscard]] std::uint32_t block_bytes() const noexcept { return block_bytes_; }
  [[nodiscard]] std::uint32_t blocks() const noexcept { return blocks_; }
  /// Bytes of a block: fewer of the last one.
  [[nodiscard]] std::uint64_t bytes_of(std::uint32_t block) const noexcept;

  [[nodiscard]] bool is_present(std::uint32_t block) const noexcept;
  /// May evict objects that nobody holds, and so blocks on the disk.
  ///   passing_bytes   of the cache, which blocks that last leave free: where there is no room for one that does, it passes, and those that
  ///                   pass and were wanted longest ago make way for it
  [[nodiscard]] state claim(std::uint32_t block, std::uint64_t passing_bytes = 0);
  /// Writes a block that was claimed, which others then find.
  ///   bytes         the block's, and behind the object's end zeros up to the page's; aligned to a page
  ///   wants_direct  whether it will be read past the page cache. What passes is else left there: it may be gone before it has to be written
  ///   returns       0 or an errno, and the block is given up
  [[nodiscard]] int fill(std::uint32_t block, std::span<const std::byte> bytes, bool wants_direct = true);
  void give_up(std::uint32_t block) noexcept;
  /// A read of it is under way, or will be soon.
  void want(std::uint32_t block) noexcept;

  /// The number of the next fill of any block.
  [[nodiscard]] std::uint64_t fills() const noexcept;
  enum class read_verdict : std::uint8_t {
    right,
    damaged,  ///< and their blocks were taken out of the cache
    given_up  ///< their blocks were taken out, or filled anew, while they were read: they are to be read once more
  };
  /// Whether pages that were read are what was written. knows() those that are right then.
  ///   offset   of a page
  ///   before   what fills() said before the read
  [[nodiscard]] read_verdict verify(std::uint64_t offset, std::span<const std::byte> read,
                                    std::uint64_t before) noexcept;
  /// Whether this process has found all pages right that have a byte of the range, since their blocks were filled: it may be read as it is.
  /// Asked before the read and, with the same `before`, after it.
  ///   before   what fills() said before the read
  [[nodiscard]] bool knows(std::uint64_t offset, std::uint64_t bytes, std::uint64_t before) const noexcept;

 private:
  friend class block_cache;
  explicit cached_object(std::shared_ptr<block_cache> cache) : cache_(std::move(cache)) {}
  [[nodiscard]] std::atomic_ref<std::uint64_t> word(std::uint32_t block) const noexcept;
  /// fills() when it was last wanted.
  [[nodiscard]] std::atomic_ref<std::uint64_t> wanted_at(std::uint32_t block) const noexcept;
  [[nodiscard]] std::atomic_ref<std::uint32_t> sum(std::uint64_t page) const noexcept;
  [[nodiscard]] std::uint64_t room_of(std::uint32_t block) const noexcept;  // on the disk
  [[nodiscard]] block_room room_of(std::uint32_t block, std::uint64_t word) const noexcept;
  //   returns   whether it has taken out what `seen` says is there
  bool drop(std::uint32_t block, std::uint64_t seen) noexcept;
  void know(std::uint64_t first_page, std::uint64_t end_page, std::uint64_t before) noexcept;

  const std::shared_ptr<block_cache> cache_;
  std::string data_path_;
  int index_ = -1;
  file_mapping index_map_;
  std::uint64_t size_bytes_ = 0;
  std::uint32_t block_bytes_ = 0;
  std::uint32_t blocks_ = 0;

  // Pages that were found right, a bit for each, and of each block the word under which they were. Changed under the mutex.
  mutex knowing_;
  std::vector<std::atomic<std::uint64_t>> known_pages_;
  std::vector<std::atomic<std::uint64_t>> known_words_;
};

/// Whether that error of one object's files is to be expected of the others' too: a drive that is full or read-only, no more descriptors.
///   failure   an errno
[[nodiscard]] bool concerns_all_objects(int failure) noexcept;

/// What the cache holds of one object.
struct cache_entry {
  std::string name;  ///< of the object, as a person would write it
  std::string file;  ///< in the folder, without its ending
  std::uint64_t size_bytes = 0;
  std::uint64_t cached_bytes = 0;  ///< of whole blocks
  std::int64_t opened_unix_s = 0;  ///< last
  bool in_use = false;
};

/// Bytes on the disk, of blocks that last and of those that pass.
struct block_room {
  std::uint64_t lasting = 0;
  std::uint64_t passing = 0;
};

class block_cache : public std::enable_shared_from_this<block_cache> {
 public:
  /// Makes the folder where there is none, for its user alone.
  ///   refusal   where there is no cache to be had (null is returned): why
  [[nodiscard]] static std::shared_ptr<block_cache> open(const block_cache_options& options, std::string& refusal);
  /// As open(), or what share() has opened there in this process by the same options, as long as somebody holds it: blocks of all its
  /// sources make way for one another then. Not one that could not be written to. Thread: any.
  [[nodiscard]] static std::shared_ptr<block_cache> share(const block_cache_options& options, std::string& refusal);
  block_cache(const block_cache&) = delete;
  block_cache& operator=(const block_cache&) = delete;
  ~block_cache();

  /// The object's place, made where there is none.
  ///   file      letters and digits: another one for each version of each object
  ///   refusal   where null is returned: why
  ///   failure   then an errno, or 0
  [[nodiscard]] std::shared_ptr<cached_object> object(const std::string& file, std::string_view name,
                                                      std::uint64_t size_bytes, std::string& refusal, int& failure);
  [[nodiscard]] std::shared_ptr<cached_object> object(const std::string& file, std::string_view name,
                                                      std::uint64_t size_bytes, std::string& refusal) {
    int ignored = 0;
    return object(file, name, size_bytes, refusal, ignored);
  }

  /// Whether an object of that size is not too large for a cache of this one's.
  [[nodiscard]] bool may_hold(std::uint64_t size_bytes) const noexcept;

  /// Changes when any process fills a block or gives one up.
  [[nodiscard]] std::uint32_t changes() const noexcept;
  /// Returns when it has changed since, when raise_mine(mine) was called since (io/remote/futex_waitv.hpp), or after `patience`: the owner of a
  /// block that was killed changes nothing.
  void wait_for_change(std::uint32_t seen, std::atomic<std::uint32_t>& mine, std::uint32_t mine_seen,
                       std::chrono::milliseconds patience) noexcept;

  /// Bytes that all objects take, those that are being filled included.
  [[nodiscard]] std::uint64_t bytes_in_use() const noexcept;
  /// Of them, by blocks that pass.
  [[nodiscard]] std::uint64_t passing_bytes() const noexcept;
  /// Sorted by name.
  [[nodiscard]] std::vector<cache_entry> entries() const;
  /// Removes an object, unless somebody holds it.
  bool evict(const std::string& file);
  /// Reads what it holds of an object, and takes out what is damaged.
  struct verdict {
    std::uint64_t blocks = 0;
    std::uint64_t damaged = 0;  ///< of them
  };
  [[nodiscard]] verdict verify(const cache_entry& entry);

 private:
  friend class cached_object;
  struct shared_header;
  explicit block_cache(const block_cache_options& options) : options_(options) {}

  [[nodiscard]] bool is_of(const block_cache_options& options) const;
  [[nodiscard]] int open_header();
  [[nodiscard]] bool take_slot();
  [[nodiscard]] bool is_alive(std::uint64_t word) const noexcept;
  [[nodiscard]] bool reserve(std::uint64_t bytes, std::uint64_t passing_bytes);
  [[nodiscard]] bool reserve_passing(std::uint64_t bytes, std::uint64_t passing_bytes);
  void release(const block_room& room) noexcept;
  [[nodiscard]] bool make_way(std::uint64_t passing_bytes);
  void find_outgoing(std::uint64_t passing_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(held_mutex_);
  void count_anew();
  [[nodiscard]] std::string path_of(std::string_view file, std::string_view ending) const;

  const block_cache_options options_;
  int header_ = -1;
  file_mapping header_map_;
  shared_header* shared_ = nullptr;
  std::uint64_t mine_ = 0;  // the word of blocks that this fills
  std::atomic<std::uint64_t> full_until_ns_{0};
  std::atomic<bool> is_broken_{false};  // writing has failed
  mutex evicting_;

  // Of a block, and what its word was.
  struct outgoing {
    cached_object* object = nullptr;
    std::uint32_t block = 0;
    std::uint64_t seen = 0;
    std::uint64_t wanted_at = 0;
  };
  mutex held_mutex_;
  std::vector<cached_object*> held_ ABSL_GUARDED_BY(held_mutex_);
  std::vector<outgoing> outgoing_ ABSL_GUARDED_BY(held_mutex_);    // the last one goes first
  std::uint64_t widest_passing_ ABSL_GUARDED_BY(held_mutex_) = 0;  // of its sources
};

}  // namespace leat::io

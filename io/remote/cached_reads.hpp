// Reads by way of the cache, of one connected source. Where all blocks of a read are on the drive, it is an ordinary read of a file, on the
// loop and into the same memory; else a thread of its own claims what is missing, has it fetched, writes it, and waits for what others fill.
// What has no room in the cache, and whatever goes wrong with it, is read over the network as without one.
#pragma once

#include "async/posted_functions.hpp"
#include "base/hash_map.hpp"
#include "base/mutex.hpp"
#include "io/files/file_table.hpp"
#include "io/files/source.hpp"
#include "io/remote/http_client.hpp"
#include "io/remote/networked.hpp"
#include "io/remote/object_cache.hpp"
#include "io/remote/transfer_counts.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace leat::io {

struct remote_object;

/// What a read of objects is on its way by: read_operation::state.
class read_path {
 public:
  virtual void cancel() = 0;

 protected:
  read_path() = default;
  ~read_path() = default;
};

class cached_reads {
 public:
  ///   remotely   starts a read without the cache, on the loop's thread; or ends it, where it was cancelled
  ///   failed     ends a read with the failure of a block that it needs, likewise
  struct surroundings {
    connector* loop = nullptr;
    http_client* client = nullptr;
    object_cache* cache = nullptr;
    const std::vector<remote_object>* objects = nullptr;
    transfer_counts* counts = nullptr;
    std::chrono::milliseconds others_patience = std::chrono::seconds(10);  ///< with a block that another one fills
    void (*remotely)(void* owner, read_operation& read, bool is_cancelled) noexcept = nullptr;
    void (*failed)(void* owner, read_operation& read, const fetch& block) noexcept = nullptr;
    void* owner = nullptr;
  };

  ///   fills_max       blocks that are fetched at a time
  ///   memory_bytes    for them
  ///   passing_bytes   of the cache, for blocks that pass (cached_object::claim())
  struct room {
    std::uint32_t fills_max = 1;
    std::size_t memory_bytes = 0;
    std::uint64_t passing_bytes = 0;
  };

  /// Starts the thread.
  cached_reads(const surroundings& around, const room& allowed);
  cached_reads(const cached_reads&) = delete;
  cached_reads& operator=(const cached_reads&) = delete;
  /// Every read has ended. Ends fetches, gives up their blocks, and joins the thread. Thread: the loop's.
  ~cached_reads();

  /// Thread: the loop's.
  ///   facts     of its object, which outlive this
  ///   returns   whether it has taken the read; else it is to be read over the network
  [[nodiscard]] bool start(read_operation& read, const object_facts& facts);
  /// What reads will ask for: the blocks that are missing are fetched when no read waits for another one. Thread: the loop's.
  ///   facts   as of start()
  void hint(std::uint32_t file, const object_facts& facts, std::uint64_t offset, std::uint64_t bytes);

  /// As networked has it.
  [[nodiscard]] bool is_read_from_cache() const noexcept { return is_local_end_; }
  void observe_blocks(cached_block_observer& told) { observer_.store(&told, std::memory_order_release); }

 private:
  struct cached_read;
  struct fill;
  struct range {
    std::uint32_t file = 0;
    const object_facts* facts = nullptr;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  struct block_ahead {
    std::uint32_t file = 0;
    const object_facts* facts = nullptr;
    cached_object* object = nullptr;
    std::uint32_t block = 0;
  };
  struct local_file {
    file_table table;
    std::unique_ptr<source> files;
  };
  using block_name = std::pair<const cached_object*, std::uint32_t>;
  enum class outcome : std::uint8_t { waits, local, received, remote, failed };

  // The loop's thread.
  /// Whether all blocks of a range that is wanted are there.
  [[nodiscard]] bool is_whole(cached_object& object, std::uint64_t offset, std::uint64_t bytes) const noexcept;
  void start_local(cached_read& read);
  void have_read(cached_read& read) noexcept;
  void read_again(cached_read& read);
  void have_received(cached_read& read) noexcept;
  void end(cached_read& read, bool is_local) noexcept;
  void go_remote(cached_read& read) noexcept;
  void fail(cached_read& read) noexcept;
  void send(cached_read& read);
  void cancel(cached_read& read);
  void settle_home() noexcept;

  // The thread of its own.
  void wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void run();
  void send_home(const std::vector<cached_read*>& settled);
  void hand_on(const fill& ended);
  [[nodiscard]] bool turn(std::vector<std::shared_ptr<fill>> ended, const std::vector<range>& hinted);
  void take_in(const std::vector<range>& hinted);
  void go_ahead();
  [[nodiscard]] outcome settle(cached_read& read, bool& waits_for_others);
  [[nodiscard]] bool has_memory_for(const cached_object& object);
  [[nodiscard]] bool start_fill(const block_ahead& wanted);
  void have_filled(const std::shared_ptr<fill>& ended);
  void tell_of(const fill& ended, std::uint64_t write_ns, std::uint64_t written_ns) const noexcept;

  const surroundings around_;
  const room allowed_;
  std::atomic<cached_block_observer*> observer_{nullptr};
  bool is_local_end_ = false;                                   // of the read that is done now; the loop's
  hash_map<std::uint32_t, std::unique_ptr<local_file>> files_;  // the loop's

  async::posted_functions posted_;
  mutex mutex_;
  condition_variable changed_;
  // While the thread waits for what others fill, it waits for this word and for the cache's. Changed with changed_.
  std::atomic<std::uint32_t> events_{0};
  bool waits_by_word_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<cached_read*> arrived_ ABSL_GUARDED_BY(mutex_);
  std::vector<range> hinted_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<fill>> filled_ ABSL_GUARDED_BY(mutex_);
  std::vector<cached_read*> going_home_ ABSL_GUARDED_BY(mutex_);
  bool is_woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;

  // The thread's own.
  struct memory;
  std::vector<cached_read*> waiting_;
  std::deque<block_ahead> ahead_;  // that no read waits for, in the order in which they were hinted
  hash_set<block_name> ahead_names_;
  hash_map<block_name, std::shared_ptr<fill>> fills_;
  hash_map<block_name, std::shared_ptr<const fetch>> failed_;  // of this turn; null: to be read over the network
  std::vector<std::unique_ptr<memory>> spare_;
  std::size_t memory_bytes_ = 0;  // of fills and spare
  std::thread thread_;
};

}  // namespace leat::io

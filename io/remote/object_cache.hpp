// The objects of one description in the cache: each found when it is first read, under the version that this run has seen.
#pragma once

#include "base/mutex.hpp"
#include "io/remote/block_cache.hpp"

#include <leat/remote.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leat::io {

struct remote_object;
struct object_facts;

/// remote_options::cache and its kin, with what LEAT_CACHE and LEAT_CACHE_BYTES say where these say nothing.
///   returns   an empty directory where no cache was asked for
///   throws    error{errc::usage}: no size for it, or one that is none; blocks that are no multiple of a page
[[nodiscard]] block_cache_options cache_options_of(const remote_options& options);

/// Thread: any.
class object_cache {
 public:
  ///   options   with a directory
  object_cache(const block_cache_options& options, std::size_t objects);
  object_cache(const object_cache&) = delete;
  object_cache& operator=(const object_cache&) = delete;
  ~object_cache();

  /// Why there is none, or why it is not used any more; empty while it is.
  [[nodiscard]] std::string why_off() const;
  [[nodiscard]] bool is_off() const noexcept { return is_off_.load(std::memory_order_relaxed); }
  void turn_off(const std::string& why);

  /// One object's files cannot be read or written: that it has no place there any more; or that none has, where the errno says so.
  void have_failed(std::uint32_t number, const std::string& why, int failure);

  /// Of objects that have no place in it; empty where each has one.
  [[nodiscard]] std::string why_left_out() const;

  /// It has no place there.
  [[nodiscard]] bool is_left_out(std::uint32_t number) const noexcept {
    return left_out_[number].load(std::memory_order_relaxed);
  }
  /// Null where it was not opened yet.
  [[nodiscard]] cached_object* find(std::uint32_t number) const noexcept {
    return objects_[number].load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t bytes_max() const noexcept { return bytes_max_; }
  /// Null where there is none.
  [[nodiscard]] block_cache* blocks() const noexcept { return cache_.get(); }
  /// Blocks on the disk. Null where it has no place in the cache.
  [[nodiscard]] cached_object* open(std::uint32_t number, const remote_object& object, const object_facts& facts);

 private:
  void leave_out(std::uint32_t number, const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::shared_ptr<block_cache> cache_;
  const std::uint64_t bytes_max_;
  const std::size_t objects_max_;
  std::vector<std::atomic<cached_object*>> objects_;
  std::vector<std::atomic<bool>> left_out_;
  std::atomic<bool> is_off_{false};
  mutable mutex mutex_;
  std::string why_ ABSL_GUARDED_BY(mutex_);
  std::size_t left_out_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string why_left_out_ ABSL_GUARDED_BY(mutex_);  // the first one
  std::vector<std::shared_ptr<cached_object>> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace leat::io

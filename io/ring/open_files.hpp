// Ordinary descriptors of files that are being read: opened when asked for, kept while there is room.
#pragma once

#include "base/hash_map.hpp"
#include "base/intrusive_list.hpp"
#include "base/mutex.hpp"
#include "io/files/direct_policy.hpp"
#include "io/ring/file_set.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leat::io {

/// Shared by the threads of a preadv loop. Thread: any. What blocks: open(2), and waiting for somebody to close a file
/// when all there may be are in use.
class open_files {
 public:
  struct entry : list_hook {
    std::uint64_t key = 0;
    int descriptor = -1;
    file_mode mode;
    unsigned users = 0;
    bool opening = true;
    bool leaving = false;
  };

  ///   files_max   open at a time
  explicit open_files(std::size_t files_max) : files_max_(files_max) {}
  ~open_files();
  open_files(const open_files&) = delete;
  open_files& operator=(const open_files&) = delete;

  /// An open file in use; give it back.
  struct use {
    int failure = 0;  ///< an errno, and then the rest is nothing
    int descriptor = -1;
    file_mode mode;
    entry* from = nullptr;
  };
  [[nodiscard]] use take(file_set& set, std::uint32_t file);
  ///   keep   false: it is closed when its last user has given it back, and found by nobody
  void give_back(const use& used, bool keep);

  /// Closes the files of a set; none is in use.
  void forget(const file_set& set);

  [[nodiscard]] std::uint64_t opens() const;

 private:
  [[nodiscard]] use open(file_set& set, std::uint32_t file, std::string& path);
  [[nodiscard]] int close_one_idle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void drop(entry& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t files_max_;
  mutable mutex mutex_;
  condition_variable changed_;
  hash_map<std::uint64_t, std::unique_ptr<entry>> entries_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<entry>> leaving_ ABSL_GUARDED_BY(mutex_);  // in use, and found by nobody
  intrusive_list<entry> idle_ ABSL_GUARDED_BY(mutex_);
  std::size_t open_ ABSL_GUARDED_BY(mutex_) = 0;  // or being opened
  std::uint64_t opens_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace leat::io

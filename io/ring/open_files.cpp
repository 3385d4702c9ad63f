#include "io/ring/open_files.hpp"

#include "base/errno_table.hpp"
#include "io/files/file_status.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <optional>

namespace leat::io {
namespace {

// Descriptors are the whole process's, and nobody tells us when another part of it has closed one.
constexpr auto open_again = std::chrono::milliseconds(10);
constexpr int open_again_max = 500;

}  // namespace

open_files::~open_files() {
  const mutex_lock lock(mutex_);
  assert(leaving_.empty());
  while (!idle_.empty()) ::close(close_one_idle());
  assert(entries_.empty() && "a file is in use");
}

open_files::use open_files::take(file_set& set, std::uint32_t file) {
  const std::uint64_t key = set.key_of(file);
  entry* opened = nullptr;
  int to_close = -1;
  {
    const mutex_lock lock(mutex_);
    for (;;) {
      const auto found = entries_.find(key);
      if (found != entries_.end() && !found->second->opening) {
        entry& present = *found->second;
        if (present.users++ == 0) idle_.remove(present);
        return {0, present.descriptor, present.mode, &present};
      }
      if (found == entries_.end()) {
        if (open_ < files_max_) break;
        if (!idle_.empty()) {
          to_close = close_one_idle();
          break;
        }
      }
      changed_.wait(mutex_);
    }
    ++open_;
    ++opens_;
    auto made = std::make_unique<entry>();
    opened = made.get();
    opened->key = key;
    opened->users = 1;
    entries_.emplace(key, std::move(made));
  }
  if (to_close >= 0) ::close(to_close);  // may block, on a network file system

  std::string path;
  use result = open(set, file, path);
  const mutex_lock lock(mutex_);
  if (result.failure != 0) {
    --open_;
    entries_.erase(key);
  } else {
    opened->descriptor = result.descriptor;
    opened->mode = result.mode;
    opened->opening = false;
    result.from = opened;
  }
  changed_.notify_all();
  return result;
}

open_files::use open_files::open(file_set& set, std::uint32_t file, std::string& path) {
  const std::uint32_t directory = set.files->directory(file);
  set.files->path(file, path);
  std::optional<file_mode> mode = set.modes.known(directory);
  if (!mode) {
    file_status status;
    if (look_at(path.c_str(), status) == 0) {
      if (const int failure = set.modes.learn(directory, path, &status); failure != 0)
        return {failure, -1, {}, nullptr};
      mode = set.modes.known(directory).value_or(set.modes.mode_of(status));
    } else {
      mode = file_mode{true, 4096};  // opening it will say what is wrong
    }
  }
  for (int tries = 0;; ++tries) {
    const int result = open_to_read(path.c_str(), mode->direct ? O_DIRECT : 0);
    if (result >= 0) return {0, result, *mode, nullptr};
    const int failure = -result;
    if (refuses_direct(failure) && mode->direct) {
      if (!set.modes.refused(directory, path, failure)) return {EOPNOTSUPP, -1, {}, nullptr};
      mode = file_mode{};
    } else if (lacks_descriptors(failure) && tries < open_again_max) {
      const mutex_lock lock(mutex_);
      if (!idle_.empty()) {
        ::close(close_one_idle());
      } else {
        changed_.wait_until(mutex_, std::chrono::steady_clock::now() + open_again);
      }
    } else {
      return {failure, -1, {}, nullptr};
    }
  }
}

void open_files::give_back(const use& used, bool keep) {
  int to_close = -1;
  {
    const mutex_lock lock(mutex_);
    entry& returned = *used.from;
    if (!keep && !returned.leaving) {
      returned.leaving = true;
      const auto found = entries_.find(returned.key);
      leaving_.push_back(std::move(found->second));
      entries_.erase(found);
    }
    if (--returned.users == 0) {
      if (returned.leaving) {
        to_close = returned.descriptor;
        drop(returned);
      } else {
        idle_.push_back(returned);
      }
    }
    changed_.notify_one();
  }
  if (to_close >= 0) ::close(to_close);
}

int open_files::close_one_idle() {
  entry& oldest = idle_.pop_front();
  const int descriptor = oldest.descriptor;
  --open_;
  entries_.erase(oldest.key);
  return descriptor;
}

void open_files::drop(entry& dropped) {
  --open_;
  const auto found = std::find_if(leaving_.begin(), leaving_.end(),
                                  [&](const std::unique_ptr<entry>& one) { return one.get() == &dropped; });
  leaving_.erase(found);
}

void open_files::forget(const file_set& set) {
  std::vector<int> to_close;
  {
    const mutex_lock lock(mutex_);
    for (auto it = entries_.begin(); it != entries_.end();) {
      const auto now = it++;
      if (now->first >> 32 != set.id) continue;
      assert(now->second->users == 0);
      idle_.remove(*now->second);
      to_close.push_back(now->second->descriptor);
      --open_;
      entries_.erase(now);
    }
    changed_.notify_all();
  }
  for (const int descriptor : to_close) ::close(descriptor);
}

std::uint64_t open_files::opens() const {
  const mutex_lock lock(mutex_);
  return opens_;
}

}  // namespace leat::io

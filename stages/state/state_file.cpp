#include "stages/state/state_file.hpp"

#include "base/errno_words.hpp"
#include "base/text.hpp"
#include "base/unfinished_file.hpp"

#include <leat/error.hpp>

#include <sys/file.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

namespace leat::stages {

void fail_to_save(const std::string& path, int failure) {
  throw explain_write(str_cat("cannot save the state ", path), failure,
                      {.busy = "another process is writing it: give each run, and each rank, a state of its own"});
}

state_file::state_file(const std::filesystem::path& path) : path_(path.string()) {
  std::error_code failure;
  if (!std::filesystem::is_symlink(path, failure)) return;
  const std::filesystem::path named = std::filesystem::weakly_canonical(path, failure);
  // One that leads nowhere yet is its own canonical form.
  const bool dangling = failure || std::filesystem::is_symlink(named, failure);
  path_ = (dangling ? path.parent_path() / std::filesystem::read_symlink(path, failure) : named).string();
}

state_file::state_file(state_file&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), text_(std::move(other.text_)) {}

state_file::~state_file() { close(); }

void state_file::close() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

bool state_file::is_still_there() const noexcept {
  struct stat ours{};
  struct stat there{};
  return fd_ >= 0 && ::fstat(fd_, &ours) == 0 && ::stat(path_.c_str(), &there) == 0 && ours.st_ino == there.st_ino &&
         ours.st_dev == there.st_dev;
}

void state_file::lock_it() {
  // Where a file system has no locks (Lustre without -o flock: ENOSYS) nobody is kept out.
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  close();
  fail_to_save(path_, EWOULDBLOCK);
}

void state_file::claim() {
  if (is_still_there()) return;
  close();
  text_.clear();
  if (::access(folder_of(path_).c_str(), W_OK | X_OK) != 0) fail_to_save(path_, errno);
  fd_ = ::open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd_ >= 0) return lock_it();
  if (errno != ENOENT) fail_to_save(path_, errno);
}

void state_file::write(const loader_state& state) {
  const std::vector<std::byte> bytes = state.bytes();
  const std::span<const std::byte> core = std::span(bytes).first(loader_state::core_bytes);
  const std::span<const std::byte> text = std::span(bytes).subspan(loader_state::core_bytes);
  if (std::equal(text.begin(), text.end(), text_.begin(), text_.end()) && is_still_there()) {
    ssize_t written = -1;
    do {
      written = ::pwrite(fd_, core.data(), core.size(), 0);
    } while (written < 0 && errno == EINTR);
    if (written == static_cast<ssize_t>(core.size())) return;
    fail_to_save(path_, written < 0 ? errno : ENOSPC);
  }
  claim();
  text_.clear();
  state.save(path_);
  close();
  fd_ = ::open(path_.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd_ < 0) fail_to_save(path_, errno);
  lock_it();
  text_.assign(text.begin(), text.end());
}

void state_file::sync() {
  if (fd_ >= 0 && ::fdatasync(fd_) != 0) fail_to_save(path_, errno);
}

}  // namespace leat::stages

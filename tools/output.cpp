#include "tools/output.hpp"

#include "base/continued_file.hpp"
#include "base/errno_words.hpp"
#include "base/replaced_place.hpp"
#include "base/text.hpp"
#include "base/unfinished_file.hpp"
#include "tools/human.hpp"
#include "tools/terminal.hpp"

#include <leat/error.hpp>

#include <sys/stat.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace leat::tools {
namespace {

// Before anything of it is touched.
std::string checked(std::string path, output_kind kind) {
  check_replaces_own_kind(path, kind);
  return path;
}

// Where it is what this process writes to already, by another name: what has been written stays, and what comes goes behind it.
int descriptor_of_stream(const std::string& path) {
  struct stat there{};
  if (::stat(path.c_str(), &there) != 0 || !S_ISREG(there.st_mode)) return -1;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open{};
    if (::fstat(stream, &open) == 0 && open.st_ino == there.st_ino && open.st_dev == there.st_dev) {
      return ::fcntl(stream, F_DUPFD_CLOEXEC, 0);
    }
  }
  return -1;
}

std::string words(int failure) { return std::generic_category().message(failure); }

}  // namespace

bool is_same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty() || a == "-" || b == "-") return false;
  namespace fs = std::filesystem;
  std::error_code failure;
  if (a == b || fs::equivalent(a, b, failure)) return true;
  // What is not there yet stays relative in weakly_canonical(), unless it begins with a folder that is there.
  const auto whole = [](const std::string& path, std::error_code& wrong) {
    const fs::path absolute = fs::absolute(path, wrong);
    return wrong ? absolute : fs::weakly_canonical(absolute, wrong);
  };
  std::error_code failure_of_b;
  failure.clear();
  const fs::path one = whole(a, failure);
  const fs::path other = whole(b, failure_of_b);
  return !failure && !failure_of_b && one == other;
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written) return;
  const int failure = errno;
  if (failure == EPIPE) throw reader_has_gone();
  const std::string_view remedy = failure == EBADF ? "; it is closed" : "; is its disk full?";
  throw error(errc::io, str_cat("cannot write to standard output: ", words(failure), remedy));
}

void complain(std::string_view command, std::string_view message) noexcept {
  try {
    // A progress line that is still there makes room.
    const std::string line = str_cat(terminal::of(stderr).live ? "\r\x1b[K" : "", "leat", command.empty() ? "" : " ",
                                     command, ": ", one_line(message), "\n");
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (...) {
    std::fputs("leat: out of memory\n", stderr);
  }
  std::fflush(stderr);
}

output_file::output_file(std::string path, output_kind kind, appears when) : path_(checked(std::move(path), kind)) {
  const std::optional<std::string> place = when == appears::when_closed ? replaced_place(path_) : std::nullopt;
  if (!place) {
    open_in_place();
    return;
  }
  partial_ = std::make_unique<unfinished_file>(*place);
  check_partial_is_own(path_, kind);
  if (const int failure = partial_->open(); failure != 0) fail(failure);
  fd_ = partial_->descriptor();
  is_regular_ = true;
}

void output_file::open_in_place() {
  fd_ = descriptor_of_stream(path_);
  if (fd_ < 0) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  } else {
    keep();
  }
  if (fd_ < 0) fail(errno);
  struct stat status{};
  is_regular_ = ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
}

output_file output_file::continued(std::string path, output_kind kind, std::uint64_t bytes) {
  if (bytes == 0) return output_file(std::move(path), kind);
  output_file file;
  file.path_ = std::move(path);
  file.keep();
  file.fd_ = continue_lines(file.path_, bytes, file.path_);
  file.is_regular_ = true;
  file.bytes_ = bytes;
  return file;
}

void output_file::check(const std::string& path, output_kind kind, std::string_view option, appears when) {
  check_replaces_own_kind(path, kind, option);
  if (when == appears::when_closed && replaced_place(path)) {
    const output_file tried(path, kind, when);
    return;
  }
  // Not opened: a pipe would wait for its reader, and closing it would end him.
  output_file in_place;
  in_place.path_ = path;
  if (const int failure = can_write_in_place(path); failure != 0) in_place.fail(failure);
}

output_file output_file::standard_output() {
  output_file file;
  file.path_ = "standard output";
  file.is_standard_output_ = true;
  file.keep();
  file.fd_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (file.fd_ < 0) file.fail(errno);
  return file;
}

output_file::output_file(output_file&& other) noexcept
    : path_(std::move(other.path_)),
      partial_(std::move(other.partial_)),
      fd_(std::exchange(other.fd_, -1)),
      is_regular_(other.is_regular_),
      is_standard_output_(other.is_standard_output_),
      keep_(other.keep_),
      bytes_(other.bytes_) {}

output_file::~output_file() {
  if (fd_ < 0) return;
  if (partial_ == nullptr) ::close(fd_);
  remove_unfinished();
}

void output_file::write(std::string_view text, const std::stop_token& stop) {
  write(std::as_bytes(std::span(text)), stop);
}

void output_file::write(std::span<const std::byte> bytes, const std::stop_token& stop) {
  constexpr std::size_t piece_bytes = std::size_t{1} << 20;
  constexpr int patience_ms = 20;
  while (!bytes.empty()) {
    if (stop.stop_requested()) throw error(errc::cancelled, str_cat("stopped while writing ", path_));
    pollfd ready{fd_, POLLOUT, 0};
    if (!is_regular_ && ::poll(&ready, 1, patience_ms) == 0) continue;  // Who reads it is busy.
    // What has room for anything has room for so much, and does not block.
    const std::size_t most = is_regular_ ? piece_bytes : PIPE_BUF;
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), most));
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      bytes_ += static_cast<std::uint64_t>(written);
    } else if (errno != EINTR && errno != EAGAIN) {
      fail(errno);
    }
  }
}

void output_file::close() {
  // A file system may keep what it refuses until here (quota, NFS).
  const int fd = std::exchange(fd_, -1);
  int failure = 0;
  if (partial_ != nullptr) {
    failure = partial_->take_name(true);
  } else if (::close(fd) != 0) {
    failure = errno;
  }
  if (failure == 0) return;
  remove_unfinished();
  fail(failure);
}

void output_file::remove_unfinished() noexcept {
  if (partial_ != nullptr) return partial_->remove();
  // Not where the user named a device, a pipe or a link.
  struct stat status{};
  const char* const path = path_.c_str();
  if (!keep_ && ::lstat(path, &status) == 0 && S_ISREG(status.st_mode)) static_cast<void>(std::remove(path));
}

void output_file::fail(int failure) const {
  if (failure == EPIPE && is_standard_output_) throw reader_has_gone();
  if (failure == ELOOP && partial_ != nullptr) {
    throw error(errc::usage, str_cat("cannot write ", path_, ": ", partial_->temporary(),
                                     ", which it is called until it is whole, is a link; move that away"));
  }
  throw explain_write(str_cat("cannot write ", path_), failure,
                      {.no_room = "free some space, or name a file on another disk",
                       .no_folder = "make its directory first",
                       .other = failure == EPIPE ? "who was to read it has gone" : "does the disk still answer?"});
}

}  // namespace leat::tools

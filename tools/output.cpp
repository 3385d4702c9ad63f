#include "tools/output.hpp"

#include "io/text.hpp"
#include "tools/human.hpp"
#include "tools/terminal.hpp"

#include <leat/error.hpp>

#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace leat::tools {
namespace {

std::string words(int failure) { return std::generic_category().message(failure); }

}  // namespace

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written) return;
  const int failure = errno;
  const std::string_view remedy = failure == EPIPE   ? "; who was to read it has gone"
                                  : failure == EBADF ? "; it is closed"
                                                     : "; is its disk full?";
  throw error(errc::io, io::str_cat("cannot write to standard output: ", words(failure), remedy));
}

void complain(std::string_view command, std::string_view message) noexcept {
  try {
    // A progress line that is still there makes room.
    const std::string line = io::str_cat(terminal::of(stderr).live ? "\r\x1b[K" : "", "leat",
                                         command.empty() ? "" : " ", command, ": ", one_line(message), "\n");
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (...) {
    std::fputs("leat: out of memory\n", stderr);
  }
  std::fflush(stderr);
}

output_file::output_file(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "we")) {
  if (file_ == nullptr) fail(errno);
}

output_file::~output_file() {
  if (file_ == nullptr || keep_) return;
  file_.reset();
  // Not where the user named a device or a pipe.
  struct stat status{};
  if (::lstat(path_.c_str(), &status) == 0 && S_ISREG(status.st_mode)) static_cast<void>(std::remove(path_.c_str()));
}

void output_file::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void output_file::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail(errno);
}

void output_file::flush() {
  if (std::fflush(file_.get()) != 0) fail(errno);
}

void output_file::close() {
  // A file system may keep what it refuses until here (quota, NFS).
  flush();
  std::FILE* const file = file_.release();
  if (std::fclose(file) == 0) return;
  const int failure = errno;
  if (!keep_) static_cast<void>(std::remove(path_.c_str()));
  fail(failure);
}

void output_file::fail(int failure) const {
  errc code = errc::io;
  std::string_view remedy = "does the disk still answer?";
  switch (failure) {
    case ENOENT:
    case ENOTDIR:
      code = errc::not_found;
      remedy = "make its directory first";
      break;
    case EISDIR:
      code = errc::usage;
      remedy = "it is a directory; name a file";
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = errc::permission;
      remedy = "name a file where you may write";
      break;
    case ENOSPC:
    case EDQUOT:
      code = errc::limit;
      remedy = "free some space, or name a file on another disk";
      break;
    case EPIPE:
      remedy = "who was to read it has gone";
      break;
    default:
      break;
  }
  throw error(code, io::str_cat("cannot write ", path_, ": ", words(failure), "; ", remedy));
}

}  // namespace leat::tools

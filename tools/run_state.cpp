#include "tools/run_state.hpp"

#include "io/text.hpp"

#include <leat/error.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace leat::tools {
namespace {

// What was written to it, by whatever descriptor.
void sync_file(const std::string& path) {
  if (path.empty()) return;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fdatasync(fd) == 0;
  const int failure = errno;
  if (fd >= 0) ::close(fd);
  if (synced || failure == EINVAL) return;  // A pipe or a device has nothing to sync.
  throw error(errc::io, io::str_cat("cannot sync ", path, ": ", std::generic_category().message(failure),
                                    "; does the disk still answer?"));
}

}  // namespace

std::optional<loader_state> state_to_resume(const run_state_options& options) {
  if (options.path.empty()) {
    if (options.resume == resume_when::never) return std::nullopt;
    throw error(errc::usage, "--resume goes on from a state; give --state FILE as well");
  }
  if (options.resume != resume_when::never && options.lines == "-") {
    throw error(errc::usage,
                "--resume goes on with the lines of --batches, and standard output has none of them; give it a FILE");
  }
  std::error_code failure;
  const bool there = std::filesystem::exists(options.path, failure);
  if (there && options.resume == resume_when::never) {
    throw error(errc::usage, io::str_cat(options.path,
                                         " is there already: --resume auto goes on with that run; to begin "
                                         "a new one remove it or give --state another FILE"));
  }
  if (!there && options.resume != resume_when::always) return std::nullopt;
  return loader_state::load(options.path);
}

void state_writer::write(loader_state state, std::uint64_t lines_bytes) {
  state.lines_bytes = lines_bytes;
  const bool due = std::chrono::steady_clock::now() - synced_ >= interval;
  if (due) sync_lines();
  file_.write(state);
  synced_last_ = due;
  if (!due) return;
  file_.sync();
  synced_ = std::chrono::steady_clock::now();
}

void state_writer::finish() {
  if (synced_last_) return;
  sync_lines();
  file_.sync();
  synced_last_ = true;
}

void state_writer::sync_lines() const {
  sync_file(options_.journal);
  sync_file(options_.lines);
}

}  // namespace leat::tools

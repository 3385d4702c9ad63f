#include "stages/run/stall_files.hpp"

#include "base/errno_words.hpp"
#include "base/start_thread.hpp"
#include "base/text.hpp"
#include "base/unfinished_file.hpp"

#include <leat/error.hpp>

#include <sys/stat.h>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <span>
#include <utility>

namespace leat::stages {
namespace {

// Others than this are of another run, and stay.
constexpr std::uint32_t names_tried_max = 100'000;

// A file that is there whole or not at all, and in the place of no other. 0 or the errno.
int write_new(const std::string& path, std::string_view text) {
  unfinished_file begun(path);
  int failure = begun.open();
  if (failure == 0) failure = begun.write(std::as_bytes(std::span(text)));
  if (failure == 0) failure = begun.take_name(false);
  return failure;
}

void check_folder(const std::string& folder) {
  const int failure = ::mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST ? 0 : errno;
  struct stat there{};
  if (failure == 0 && ::stat(folder.c_str(), &there) == 0 && !S_ISDIR(there.st_mode)) {
    throw error(errc::usage, str_cat("timeline_options::directory is ", folder, ", which is no folder"),
                option_id::timeline_bytes);
  }
  if (failure != 0 || ::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw explain_write(str_cat("timeline_options::directory: cannot write into ", folder),
                        failure != 0 ? failure : errno);
  }
}

std::uint64_t in_ns(std::chrono::milliseconds time) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
}

}  // namespace

stall_files::stall_files(const timeline_options& options, std::uint32_t rank, const timeline& seen,
                         const delivery& line)
    : options_(options), rank_(rank), seen_(seen), line_(line), trigger_(in_ns(options.on_stall), options.files_max) {
  if (options_.on_stall.count() == 0) return;
  check_folder(options_.directory);
  thread_ = start_thread({.what = "thread that writes timelines"}, [this] {
    ::pthread_setname_np(::pthread_self(), "leat-stalls");
    watch();
  });
}

void stall_files::stop() noexcept {
  {
    const mutex_lock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

stall_stats stall_files::count() const {
  const mutex_lock lock(mutex_);
  return counted_;
}

void stall_files::watch() {
  const auto between = std::clamp(options_.on_stall / 4, std::chrono::milliseconds(1), look_every_max);
  for (bool ended = false; !ended;) {
    {
      mutex_lock lock(mutex_);
      const auto until = std::chrono::steady_clock::now() + between;
      while (!ended_ && changed_.wait_until(mutex_, until)) continue;
      ended = ended_;
    }
    try {
      look();
    } catch (const std::exception& failure) {  // No memory for the text, say.
      const mutex_lock lock(mutex_);
      counted_.failure = failure.what();
    }
  }
}

void stall_files::look() {
  const delivery::counters now = line_.count();
  {
    const mutex_lock lock(mutex_);
    counted_.waits = now.long_waits;
  }
  // Before its first batch a line fills, however long that takes.
  if (trigger_.is_due(now.long_waits, now.batches != 0 ? now.waiting_ns : 0)) write();
}

void stall_files::write() {
  const std::string text = seen_.to_json(rank_);
  std::string path;
  int failure = EEXIST;
  for (std::uint32_t tried = 0; tried < names_tried_max && (failure == EEXIST || failure == EWOULDBLOCK); ++tried) {
    path = str_cat(options_.directory, "/stall-rank-", rank_, "-", ++number_, ".json");
    // A quick look spares writing all of it for a name that is taken.
    failure = ::access(path.c_str(), F_OK) == 0 ? EEXIST : write_new(path, text);
  }
  const mutex_lock lock(mutex_);
  if (failure == 0) {
    ++counted_.files;
    counted_.last_file = std::move(path);
  } else {
    counted_.failure = explain_write(str_cat(path, ": cannot write the timeline"), failure).what();
  }
}

}  // namespace leat::stages

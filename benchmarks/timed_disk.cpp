#include "benchmarks/timed_disk.hpp"

#include "base/clock.hpp"

#include <sys/prctl.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace leat::benchmarks {
namespace {

class timed_source final : public io::source {
 public:
  timed_source(const timed_disk_options& options, io::connector& loop)
      : options_(options), loop_(loop), device_([this] { run_device(); }) {
    for (const std::string& path : options_.paths) files_.push_back(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  ~timed_source() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_one();
    device_.join();
    for (const int file : files_) ::close(file);
  }

  void start(std::span<io::read_operation* const> operations) override {
    const std::uint64_t now = now_ns();
    for (io::read_operation* const each : operations) {
      each->started_ns = now;
      each->state = nullptr;
      const std::uint64_t sector = options_.sector_bytes;
      const std::uint64_t end = (each->offset + each->bytes + sector - 1) / sector * sector;
      const auto transfer_ns = static_cast<std::uint64_t>(static_cast<double>(end - each->offset / sector * sector) /
                                                          options_.bytes_per_s * 1e9);
      transferred_ns_ = std::max(transferred_ns_, now) + transfer_ns;
      queue_.push_back({transferred_ns_ + options_.latency_ns, each});
    }
    arm();
  }
  void start(io::open_operation& operation) override {
    struct opening {
      static void finish(void* argument) noexcept {
        auto& told = *static_cast<io::open_operation*>(argument);
        told.done(told);
      }
    };
    struct stat status{};
    operation.size_bytes = files_.empty()                                  ? options_.file_bytes
                           : ::fstat(files_[operation.file], &status) == 0 ? static_cast<std::uint64_t>(status.st_size)
                                                                           : 0;
    operation.version = 1;
    operation.failure = 0;
    loop_.post(&opening::finish, &operation);
  }
  void cancel(io::read_operation& operation) override { operation.state = this; }

  [[nodiscard]] error explain(const io::read_operation&) const override { return {errc::cancelled, "cancelled"}; }
  [[nodiscard]] error explain(const io::open_operation&) const override { return {errc::io, "never fails to open"}; }

 private:
  struct waiting {
    std::uint64_t due_ns;
    io::read_operation* operation;
  };

  /// Tells the device of the next read that is due. Thread: the loop's.
  void arm() {
    if (armed_ || queue_.empty()) return;
    armed_ = true;
    {
      const std::lock_guard lock(mutex_);
      next_ns_ = queue_.front().due_ns;
    }
    changed_.notify_one();
  }

  // The interrupt, on the loop's thread: all that is due by now.
  void arrived() {
    armed_ = false;
    const std::uint64_t now = now_ns();
    while (!queue_.empty() && queue_.front().due_ns <= now) {
      io::read_operation& operation = *queue_.front().operation;
      queue_.pop_front();
      operation.failure = std::exchange(operation.state, nullptr) != nullptr ? ECANCELED : 0;
      operation.data = {};
      if (operation.failure == 0) {
        const auto into = operation.into.bytes.subspan(operation.offset % io::alignment_max_bytes, operation.bytes);
        operation.data = into;
        const bool is_there =
            files_.empty() || ::pread(files_[operation.file], into.data(), into.size(),
                                      static_cast<off_t>(operation.offset)) == static_cast<ssize_t>(into.size());
        if (!is_there) operation.failure = EIO;
      }
      operation.done(operation);
    }
    arm();
  }

  void run_device() {
    ::prctl(PR_SET_NAME, "disk");
    ::prctl(PR_SET_TIMERSLACK, 1UL);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ended_ || next_ns_ != 0; });
      if (ended_) return;
      const std::uint64_t due = std::exchange(next_ns_, 0);
      lock.unlock();
      const std::uint64_t now = now_ns();
      if (due > now) {
        const timespec rest{static_cast<time_t>((due - now) / 1'000'000'000),
                            static_cast<long>((due - now) % 1'000'000'000)};
        ::nanosleep(&rest, nullptr);
      }
      loop_.post([](void* self) noexcept { static_cast<timed_source*>(self)->arrived(); }, this);
      lock.lock();
    }
  }

  const timed_disk_options options_;
  io::connector& loop_;
  std::vector<int> files_;
  // The loop's thread.
  std::deque<waiting> queue_;
  std::uint64_t transferred_ns_ = 0;
  bool armed_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_ns_ = 0;  // 0: nothing to wait for
  bool ended_ = false;
  std::thread device_;
};

}  // namespace

std::unique_ptr<io::source> timed_disk::connect(io::connector& loop) const {
  return std::make_unique<timed_source>(options_, loop);
}

std::string timed_disk::file_name(std::uint32_t file) const {
  return options_.paths.empty() ? "a timed disk" : options_.paths[file];
}

}  // namespace leat::benchmarks

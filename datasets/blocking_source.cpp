#include "datasets/blocking_source.hpp"

#include "async/mutex.hpp"
#include "async/simple_loop.hpp"
#include "io/file_table.hpp"
#include "io/text.hpp"

#include <leat/error.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace leat::datasets {
namespace {

namespace asio = boost::asio;

// Until the reader can be built from here: plain preads on the loop's own thread.
class plain_source final : public io::source {
 public:
  plain_source(async::simple_loop& loop, const io::file_table& files) : loop_(loop), files_(files) {}
  ~plain_source() override { close_file(); }

  void start(std::span<io::read_operation* const> operations) override {
    for (io::read_operation* const operation : operations) {
      asio::post(loop_.get_executor(), [this, operation] { perform(*operation); });
    }
  }
  void start(io::open_operation& operation) override {
    asio::post(loop_.get_executor(), [this, &operation] {
      struct stat status{};
      operation.failure = ::stat(files_.path(operation.file).c_str(), &status) == 0 ? 0 : errno;
      operation.size_bytes = static_cast<std::uint64_t>(status.st_size);
      operation.done(operation);
    });
  }
  void cancel(io::read_operation&) override {}
  error explain(const io::read_operation& operation) const override {
    return explain(operation.file, operation.offset, operation.failure);
  }
  error explain(const io::open_operation& operation) const override {
    return explain(operation.file, 0, operation.failure);
  }

 private:
  error explain(std::uint32_t file, std::uint64_t offset, int failure) const {
    const errc code = failure == ENOENT ? errc::not_found : failure == EACCES ? errc::permission : errc::io;
    return error(code,
                 io::str_cat(files_.path(file), ": offset ", offset, ": ", std::generic_category().message(failure)));
  }
  void close_file() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void perform(io::read_operation& operation) {
    operation.failure = 0;
    if (fd_ < 0 || open_file_ != operation.file) {
      close_file();
      fd_ = ::open(files_.path(operation.file).c_str(), O_RDONLY | O_CLOEXEC);
      open_file_ = operation.file;
      if (fd_ < 0) operation.failure = errno;
    }
    std::uint64_t done = 0;
    while (operation.failure == 0 && done < operation.bytes) {
      const ssize_t got = ::pread(fd_, operation.into.bytes.data() + done, operation.bytes - done,
                                  static_cast<off_t>(operation.offset + done));
      if (got < 0) operation.failure = errno;
      if (got == 0) operation.failure = ENODATA;
      if (got > 0) done += static_cast<std::uint64_t>(got);
    }
    operation.data = operation.into.bytes.first(done);
    operation.done(operation);
  }

  async::simple_loop& loop_;
  const io::file_table& files_;
  int fd_ = -1;
  std::uint32_t open_file_ = 0;
};

struct free_memory {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};

}  // namespace

class opening_loop::machine final : public io::connector {
 public:
  machine() : work_(asio::make_work_guard(loop_)), thread_([this] { loop_.run(); }) {}
  ~machine() {
    work_.reset();
    thread_.join();
  }

  std::unique_ptr<io::source> connect_files(const io::file_table& files) override {
    return std::make_unique<plain_source>(loop_, files);
  }
  void post(void (*function)(void*) noexcept, void* argument) override {
    asio::post(loop_.get_executor(), [function, argument] { function(argument); });
  }

 private:
  async::simple_loop loop_;
  asio::executor_work_guard<async::simple_loop::executor_type> work_;
  std::thread thread_;
};

opening_loop::opening_loop() : machine_(std::make_unique<machine>()) {}
opening_loop::~opening_loop() = default;
io::connector& opening_loop::connector() noexcept { return *machine_; }

// What one call waits for: all of its operations, counted down on the loop's thread.
class blocking_source::operations {
 public:
  operations(io::connector& loop, io::source& source) : loop_(loop), source_(source) {}

  void read(std::span<const request> requests) {
    reads_.resize(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      reading& each = reads_[i];
      const std::uint64_t room = io::aligned_bytes(requests[i].offset, requests[i].into.size());
      each.owner = this;
      each.file = requests[i].file;
      each.offset = requests[i].offset;
      each.bytes = requests[i].into.size();
      if (each.bytes == 0) continue;
      each.memory.reset(static_cast<std::byte*>(std::aligned_alloc(io::alignment_max_bytes, room)));
      if (!each.memory) throw std::bad_alloc();
      each.into = {{each.memory.get(), room}, io::space::no_piece};
      each.done = [](io::read_operation& done) noexcept { static_cast<reading&>(done).owner->count_down(); };
      started_.push_back(&each);
    }
    if (started_.empty()) return;
    run(started_.size(), [](operations& self) { self.source_.start(self.started_); });
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (reads_[i].failure != 0) throw source_.explain(reads_[i]);
      std::copy(reads_[i].data.begin(), reads_[i].data.end(), requests[i].into.begin());
    }
  }

  std::uint64_t size_bytes(std::uint32_t file) {
    opening_.owner = this;
    opening_.file = file;
    opening_.done = [](io::open_operation& done) noexcept { static_cast<opening&>(done).owner->count_down(); };
    run(1, [](operations& self) { self.source_.start(self.opening_); });
    if (opening_.failure != 0) throw source_.explain(opening_);
    return opening_.size_bytes;
  }

 private:
  struct reading : io::read_operation {
    operations* owner = nullptr;
    std::unique_ptr<std::byte, free_memory> memory;
  };
  struct opening : io::open_operation {
    operations* owner = nullptr;
  };

  void run(std::size_t count, void (*start)(operations&)) {
    start_ = start;
    {
      async::mutex_lock lock(mutex_);
      pending_ = count;
    }
    loop_.post(
        [](void* self) noexcept {
          auto& all = *static_cast<operations*>(self);
          all.start_(all);
        },
        this);
    async::mutex_lock lock(mutex_);
    while (pending_ > 0) done_condition_.wait(mutex_);
  }

  void count_down() noexcept {
    async::mutex_lock lock(mutex_);
    // Under the lock: the waiter destroys all this as soon as it may go on.
    if (--pending_ == 0) done_condition_.notify_one();
  }

  io::connector& loop_;
  io::source& source_;
  std::vector<reading> reads_;
  std::vector<io::read_operation*> started_;
  opening opening_;
  void (*start_)(operations&) = nullptr;
  async::mutex mutex_;
  async::condition_variable done_condition_;
  std::size_t pending_ ABSL_GUARDED_BY(mutex_) = 0;
};

blocking_source::blocking_source(const io::source_description& description, opening_loop& loop)
    : loop_(loop), source_(description.connect(loop_.connector())) {}

blocking_source::~blocking_source() {
  // A source is let go on its loop's thread, after whatever that thread is still doing with it.
  struct farewell {
    std::unique_ptr<io::source> source;
    async::mutex mutex;
    async::condition_variable condition;
    bool done = false;
  } last{std::move(source_), {}, {}, false};
  loop_.connector().post(
      [](void* argument) noexcept {
        auto& self = *static_cast<farewell*>(argument);
        self.source.reset();
        async::mutex_lock lock(self.mutex);
        self.done = true;
        self.condition.notify_one();
      },
      &last);
  async::mutex_lock lock(last.mutex);
  while (!last.done) last.condition.wait(last.mutex);
}

std::uint64_t blocking_source::size_bytes(std::uint32_t file) {
  return operations(loop_.connector(), *source_).size_bytes(file);
}

void blocking_source::read(std::span<const request> requests) {
  operations(loop_.connector(), *source_).read(requests);
}

blocking_source& blocking_sources::of(const io::source_description& description) {
  for (const auto& [known, source] : connected_) {
    if (known == &description) return *source;
  }
  connected_.emplace_back(&description, std::make_unique<blocking_source>(description, loop_));
  return *connected_.back().second;
}

}  // namespace leat::datasets

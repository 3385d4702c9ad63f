#include "datasets/blocking_source.hpp"

#include "base/mutex.hpp"
#include "io/arena.hpp"
#include "io/io_threads.hpp"

#include <leat/error.hpp>
#include <leat/reader.hpp>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <new>

namespace leat::datasets {
namespace {

struct free_memory {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};

}  // namespace

struct opening_loop::machine {
  explicit machine(const reader_options& options)
      : threads(options, std::make_shared<io::arena>(io::arena_options{.pages = io::huge_pages::off})) {
    // Headers, labels and single pictures are a trickle, and whoever opens a shard once opens it again: buffered.
    threads.set_epoch_bytes(0);
  }
  io::io_threads threads;
};

opening_loop::opening_loop(traffic expected, std::uint32_t loops) {
  reader_options options;
  options.io_threads = loops;
  options.registered_buffers = choice::off;  // What is read into is not the arena's.
  if (expected == traffic::few) {
    options.backend = read_backend::preadv;
    options.preadv_threads = 1;
  }
  machine_ = std::make_unique<machine>(options);
  for (std::uint32_t k = 0; k < loops; ++k) connectors_.push_back(&machine_->threads.loop(k));
}
opening_loop::~opening_loop() = default;

// What one call waits for: all of its operations, counted down on the loop's thread.
class blocking_source::operations {
 public:
  operations(io::connector& loop, io::source& source) : loop_(loop), source_(source) {}

  void read(std::span<const request> requests, const std::stop_token& stop) {
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
      each.done = [](io::read_operation& done) noexcept {
        auto& self = static_cast<reading&>(done);
        self.finished = true;
        self.owner->count_down();
      };
      started_.push_back(&each);
    }
    if (started_.empty()) return;
    run(stop);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (reads_[i].failure != 0) throw source_.explain(reads_[i]);
      std::copy(reads_[i].data.begin(), reads_[i].data.end(), requests[i].into.begin());
    }
  }

 private:
  struct reading : io::read_operation {
    operations* owner = nullptr;
    std::unique_ptr<std::byte, free_memory> memory;
    bool finished = false;  // Loop thread.
  };

  void run(const std::stop_token& stop) {
    {
      mutex_lock lock(mutex_);
      pending_ = started_.size();
    }
    loop_.post(
        [](void* self) noexcept {
          auto& all = *static_cast<operations*>(self);
          all.source_.start(all.started_);
        },
        this);
    // Posted after the start, so that it runs after it.
    const std::stop_callback cancelling(stop, [this] { ask_to_end(); });
    mutex_lock lock(mutex_);
    while (pending_ > 0) done_condition_.wait(mutex_);
  }

  // Whoever stops us; the loop does it, and counts as one more to wait for.
  void ask_to_end() {
    {
      mutex_lock lock(mutex_);
      if (pending_ == 0) return;
      ++pending_;
    }
    loop_.post(
        [](void* self) noexcept {
          auto& all = *static_cast<operations*>(self);
          for (reading& each : all.reads_) {
            if (each.bytes > 0 && !each.finished) all.source_.cancel(each);
          }
          all.count_down();
        },
        this);
  }

  void count_down() noexcept {
    mutex_lock lock(mutex_);
    // Under the lock: the waiter destroys all this as soon as it may go on.
    if (--pending_ == 0) done_condition_.notify_one();
  }

  io::connector& loop_;
  io::source& source_;
  std::vector<reading> reads_;
  std::vector<io::read_operation*> started_;
  mutex mutex_;
  condition_variable done_condition_;
  std::size_t pending_ ABSL_GUARDED_BY(mutex_) = 0;
};

blocking_source::blocking_source(const io::source_description& description, opening_loop& loop)
    : loop_(loop), source_(description.connect(loop_.connector())) {}

blocking_source::~blocking_source() {
  // A source is let go on its loop's thread, after whatever that thread is still doing with it.
  struct farewell {
    std::unique_ptr<io::source> source;
    leat::mutex mutex;
    condition_variable condition;
    bool done = false;
  } last{std::move(source_), {}, {}, false};
  loop_.connector().post(
      [](void* argument) noexcept {
        auto& self = *static_cast<farewell*>(argument);
        self.source.reset();
        mutex_lock lock(self.mutex);
        self.done = true;
        self.condition.notify_one();
      },
      &last);
  mutex_lock lock(last.mutex);
  while (!last.done) last.condition.wait(last.mutex);
}

void blocking_source::read(std::span<const request> requests, const std::stop_token& stop) {
  operations(loop_.connector(), *source_).read(requests, stop);
}

std::span<const std::byte> blocking_source::view(std::uint32_t file, std::uint64_t offset, std::uint64_t bytes,
                                                 std::uint64_t file_bytes) {
  // The bytes behind a header are read next, or lie in the page cache by then: it costs little to take them along.
  constexpr std::uint64_t window_bytes = 64 << 10;
  assert(bytes <= file_bytes && offset <= file_bytes - bytes);
  const bool seen = file == window_file_ && offset >= window_offset_ && offset - window_offset_ <= window_.size() &&
                    bytes <= window_.size() - (offset - window_offset_);
  if (!seen) {
    window_.resize(std::min(std::max(bytes, window_bytes), file_bytes - offset));
    window_file_ = file;
    window_offset_ = offset;
    const request all{file, offset, window_};
    try {
      read({&all, 1});
    } catch (...) {
      window_.clear();
      throw;
    }
  }
  return std::span(window_).subspan(offset - window_offset_, bytes);
}

blocking_source& blocking_sources::of(const io::source_description& description) {
  for (const auto& [known, source] : connected_) {
    if (known == &description) return *source;
  }
  connected_.emplace_back(&description, std::make_unique<blocking_source>(description, loop_));
  return *connected_.back().second;
}

}  // namespace leat::datasets

// A program in which another Asio lives: foreign.cpp has functions of its names. leat must go on with the one that is inside it.
#include <leat/loader.hpp>

#include <condition_variable>
#include <coroutine>
#include <cstdio>
#include <exception>
#include <mutex>

namespace {

std::mutex mutex;
std::condition_variable changed;
bool ended = false;

// A coroutine that nobody waits for but by `ended`.
struct task {
  struct promise_type {
    task get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {
      const std::lock_guard lock(mutex);
      ended = true;
      changed.notify_one();
    }
    void unhandled_exception() { std::terminate(); }
  };
};

// It goes on where the loader takes it: on a thread that runs Asio's scheduler.
task count(leat::loader& train, std::uint64_t& rows) {
  while (const auto batch = co_await train.next()) rows += batch->valid_rows();
}

}  // namespace

int main() {
  const auto make = [](std::uint64_t sample) { return std::vector<std::byte>(1 + sample % 3); };
  leat::loader train(leat::from_function(1000, make, {.field = "x", .bytes_max = 3}),
                     {.batch_size = 4, .epochs = 1, .host_bytes_max = std::size_t{16} << 20, .prefetch_batches = 1},
                     leat::bytes("x"));
  std::uint64_t rows = 0;
  count(train, rows);
  std::unique_lock lock(mutex);
  changed.wait(lock, [] { return ended; });
  std::printf("%llu rows beside another Asio\n", static_cast<unsigned long long>(rows));
  return rows == 1000 ? 0 : 1;
}

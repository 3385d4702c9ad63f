// A trainer whose coroutines are not Asio's: a task and a run loop of its own, two loaders, and nothing between them and leat.
#include <leat/loader.hpp>

#include <condition_variable>
#include <coroutine>
#include <deque>
#include <exception>
#include <iostream>
#include <mutex>

// --- the runtime: coroutines that one thread runs ---------------------------------------------------------------------

class run_loop {
 public:
  void post(std::coroutine_handle<> ready) {
    const std::lock_guard lock(mutex_);
    ready_.push_back(ready);
    changed_.notify_one();
  }
  void run_one() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty(); });
    const std::coroutine_handle<> first = ready_.front();
    ready_.pop_front();
    lock.unlock();
    first.resume();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::coroutine_handle<>> ready_;
};

class task {
 public:
  struct promise_type {
    task get_return_object() { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { failure = std::current_exception(); }
    std::exception_ptr failure;
  };

  explicit task(std::coroutine_handle<promise_type> of) : of_(of) {}
  task(const task&) = delete;
  task& operator=(const task&) = delete;
  ~task() { of_.destroy(); }

  void run_on(run_loop& loop) {
    while (!of_.done()) loop.run_one();
    if (of_.promise().failure) std::rethrow_exception(of_.promise().failure);
  }

 private:
  std::coroutine_handle<promise_type> of_;
};

// --- the trainer --------------------------------------------------------------------------------------------------------

task train(run_loop& here, leat::loader& photos, leat::loader& sounds) {
  const auto on_this_loop = [&](std::coroutine_handle<> ready) { here.post(ready); };
  std::uint64_t rows = 0;
  while (auto batch = co_await photos.next().resume_on(on_this_loop)) rows += batch->valid_rows();
  std::cout << rows << " photographs\n";

  std::vector<leat::loader*> both = {&photos, &sounds};  // whichever has a batch first
  std::uint64_t of_each[] = {0, 0};
  while (!both.empty()) {
    const leat::next_of_result next = co_await leat::loader::next_of(both).resume_on(on_this_loop);
    if (next.got) {
      of_each[both[next.index] == &photos ? 0 : 1] += next.got->valid_rows();
    } else {
      both.erase(both.begin() + static_cast<std::ptrdiff_t>(next.index));  // the end of its epoch
    }
  }
  std::cout << of_each[0] << " photographs and " << of_each[1] << " sounds\n";
}

int main(int argc, char** argv) try {
  leat::loader photos{leat::open(argc > 1 ? argv[1] : "build/photos"),
                      {.batch_size = 64, .epochs = 2, .host_bytes_max = 128 << 20},
                      leat::image{"jpg"}.random_resized_crop(64)};
  const auto sound = [](std::uint64_t sample) { return std::vector<std::byte>(1 + sample % 8); };
  leat::loader sounds{leat::from_function(1'000, sound, {.field = "wav", .bytes_max = 8}),
                      {.batch_size = 50, .epochs = 1, .host_bytes_max = 64 << 20},
                      leat::bytes{"wav"}};
  run_loop loop;
  train(loop, photos, sounds).run_on(loop);
} catch (const std::exception& problem) {
  std::cerr << problem.what() << '\n';
  return 1;
}

// A loop for sources that bring no loop of their own: fakes run on it without the rest of io/.
#pragma once

#include "async/simple_loop.hpp"
#include "io/files/source.hpp"

#include <leat/error.hpp>

#include <boost/asio/post.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace leat::testing {

/// A connector over a simple_loop. It has no files: connect_files() throws.
class test_loop final : public io::connector {
 public:
  [[nodiscard]] std::unique_ptr<io::source> connect_files(const io::file_table&) override {
    throw error(errc::unsupported, "a test loop reads no files; connect a fake disk to it");
  }
  [[nodiscard]] async::loop::executor_type executor() noexcept override { return loop_.get_executor(); }
  [[nodiscard]] bool wants_direct() const override { return false; }
  void post(void (*function)(void*) noexcept, void* argument) override {
    boost::asio::post(loop_.get_executor(), [function, argument] { function(argument); });
  }

  /// Fakes tell one at a time: what is to follow them is posted.
  void after_completions(void (*function)(void*) noexcept, void* argument) override { post(function, argument); }
  void turn_until(bool (*over)(const void*) noexcept, const void* argument) override {
    // Their time is what is posted, which does not run within itself.
    if (over(argument)) return;
    std::fputs("a test loop does not turn inside of a call\n", stderr);
    std::abort();
  }

  /// Runs until nothing is queued, and nothing outstanding will queue anything. The time of the fakes passes only here.
  std::size_t run() { return loop_.run(); }
  /// One turn: what is queued now and not what that queues.
  std::size_t run_turn() {
    const auto bound = loop_.bind_to_this_thread();
    return loop_.run_posted();
  }

  [[nodiscard]] async::simple_loop& loop() noexcept { return loop_; }

 private:
  async::simple_loop loop_;
};

}  // namespace leat::testing

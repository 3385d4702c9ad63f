// Several test loops, each with a thread of its own: for code that blocks its caller.
#pragma once

#include "tests/support/test_loop.hpp"

#include <boost/asio/executor_work_guard.hpp>

#include <cstddef>
#include <deque>
#include <span>
#include <thread>
#include <vector>

namespace leat::testing {

class running_test_loops {
 public:
  explicit running_test_loops(std::size_t count) : loops_(count) {
    for (one& each : loops_) connectors_.push_back(&each.loop);
  }
  [[nodiscard]] std::span<io::connector* const> get() const noexcept { return connectors_; }

 private:
  struct one {
    one() : guard(boost::asio::make_work_guard(loop.loop())), thread([this] { loop.run(); }) {}
    ~one() {
      guard.reset();
      thread.join();
    }
    test_loop loop;
    boost::asio::executor_work_guard<async::simple_loop::executor_type> guard;
    std::thread thread;
  };
  std::deque<one> loops_;
  std::vector<io::connector*> connectors_;
};

}  // namespace leat::testing

// The run of a line: its prefetch, as a coroutine on the first I/O thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <future>

namespace leat::stages {

class line_events;
class prefetch;
class run_flags;

/// Refers to its arguments, which outlive what start() starts.
class line_run {
 public:
  line_run(prefetch& what, line_events& events, const run_flags& flags) noexcept
      : what_(what), events_(events), flags_(flags) {}

  /// What breaks it is told to the events.
  void start(const boost::asio::any_io_executor& on);
  /// On the thread that it runs on.
  void cancel() { stop_signal_.emit(boost::asio::cancellation_type::all); }
  /// Until it has ended. Thread: any other.
  void wait() const { finished_.wait(); }

 private:
  prefetch& what_;
  line_events& events_;
  const run_flags& flags_;
  boost::asio::cancellation_signal stop_signal_;  // first I/O thread
  std::future<void> finished_;
};

}  // namespace leat::stages

#include "stages/run/line_run.hpp"

#include "stages/run/prefetch.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include <exception>

namespace leat::stages {
namespace {

namespace asio = boost::asio;

asio::awaitable<void> run(prefetch& what, line_events& events, const run_flags& flags) {
  try {
    co_await what.run();
  } catch (const boost::system::system_error&) {
    if (!flags.stopping()) events.broken(std::current_exception());
  } catch (...) {
    events.broken(std::current_exception());
  }
}

}  // namespace

void line_run::start(const asio::any_io_executor& on) {
  finished_ = asio::co_spawn(on, run(what_, events_, flags_),
                             asio::bind_cancellation_slot(stop_signal_.slot(), asio::use_future));
}

}  // namespace leat::stages

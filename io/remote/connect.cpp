#include "io/remote/connect.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <utility>

namespace leat::io {

namespace asio = boost::asio;
using boost::system::error_code;

// What handlers of tries that have lost refer to after run() has ended.
struct connecting::race {
  explicit race(asio::io_context& context) : timer(context) {}
  asio::steady_timer timer;
  std::vector<socket_type> sockets;
  std::optional<std::size_t> winner;
  std::vector<bool> has_failed;
  std::size_t failed = 0;
  error_code last;
  bool is_stopped = false;
};

connecting::connecting(asio::io_context& context) : context_(context), race_(std::make_shared<race>(context)) {}

void connecting::stop() {
  race_->is_stopped = true;
  race_->timer.cancel();
}

asio::awaitable<error_code> connecting::run(std::vector<endpoint> to, socket_type& into,
                                            const std::function<void(const endpoint&)>& was_silent) {
  const std::shared_ptr<race> all = race_;
  all->sockets.reserve(to.size());
  all->has_failed.assign(to.size(), false);
  while (!all->winner && !all->is_stopped && all->failed < to.size()) {
    const std::size_t next = all->sockets.size();
    if (next < to.size()) {
      all->sockets.emplace_back(context_);
      all->sockets.back().async_connect(to[next], [all, next](const error_code& failure) {
        if (!failure && !all->winner) all->winner = next;
        if (failure) {
          ++all->failed;
          all->has_failed[next] = true;
          all->last = failure;
        }
        all->timer.cancel();
      });
      all->timer.expires_after(stagger);
    } else {
      all->timer.expires_at(asio::steady_timer::time_point::max());
    }
    co_await all->timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  error_code outcome = all->last;
  if (all->is_stopped) outcome = asio::error::operation_aborted;
  if (all->winner && !all->is_stopped) {
    for (std::size_t i = 0; i < *all->winner; ++i) {
      if (!all->has_failed[i]) was_silent(to[i]);
    }
    into = std::move(all->sockets[*all->winner]);
    outcome = {};
  }
  for (socket_type& each : all->sockets) {
    error_code ignored;
    each.close(ignored);
  }
  co_return outcome;
}

}  // namespace leat::io

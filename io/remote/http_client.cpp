#include "io/remote/http_client.hpp"

#include "base/clock.hpp"
#include "base/hash_map.hpp"
#include "base/start_thread.hpp"
#include "base/text.hpp"
#include "io/remote/answers.hpp"
#include "io/remote/connection_limit.hpp"
#include "io/remote/connection_pool.hpp"
#include "io/remote/fetch_progress.hpp"
#include "io/remote/http_head.hpp"
#include "io/remote/http_verdict.hpp"
#include "io/remote/name_answers.hpp"
#include "io/remote/object_sum.hpp"
#include "io/remote/open_connection.hpp"
#include "io/remote/parked_fetches.hpp"
#include "io/remote/posted_calls.hpp"
#include "io/remote/proxies.hpp"
#include "io/remote/ran_clock.hpp"
#include "io/remote/receive_body.hpp"
#include "io/remote/redirects.hpp"
#include "io/remote/renewed_credentials.hpp"
#include "io/remote/request_writer.hpp"
#include "io/remote/retry_rules.hpp"
#include "io/remote/shared_store.hpp"
#include "io/remote/slow_answers.hpp"

#include <leat/error.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <pthread.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <ctime>
#include <exception>
#include <future>
#include <thread>
#include <utility>

namespace leat::io {

/// A server, as one client has it.
struct known_server {
  std::shared_ptr<shared_store> store;
  parked_fetches parked = {};
  bool is_looked_after = false;
  std::string last_why = {};
  bool has_no_such_name = false;  // by its last connection
  bool was_reached = false;
  std::uint64_t silent_since_ns = 0;  // of one that was not
  std::uint64_t knocked_ns = 0;       // when that was last
  std::uint32_t knocks_lost = 0;      // in a row
  bool is_knocked = false;
};

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr auto connect_time_max = std::chrono::seconds(10);
constexpr auto watch_interval = std::chrono::milliseconds(20);
constexpr auto keys_interval = std::chrono::milliseconds(20);
// That a server which is silent, or away, has for letting a connection in.
constexpr std::chrono::milliseconds knock_time_max(1500);
// Fetches, at the most.
constexpr std::size_t told_at_once = 16;
// Of an object's bytes and its checksum.
constexpr std::uint32_t mismatches_max = 3;
// Of one request, that the store is to blame for. Then it is asked for what the store does not answer.
constexpr std::uint32_t slow_tries_max = 8;
constexpr double patience_bytes_per_s = 64 << 10;
// How often it is looked whether a store that requests wait for lets them go.
constexpr auto look_interval_max = std::chrono::milliseconds(50);

std::int64_t unix_now() { return static_cast<std::int64_t>(std::time(nullptr)); }

std::string ca_file_of(const remote_options& options, const s3_access* store) {
  return !options.ca_file.empty() || store == nullptr ? options.ca_file : store->ca_file;
}

// Bytes of two objects are never one range.
const object_facts* expected_of(const fetch& wanted) {
  if (wanted.expected != nullptr) return wanted.expected;
  return wanted.bytes_received > 0 ? &*wanted.seen : nullptr;
}

}  // namespace

class http_client::impl {
 public:
  impl(const remote_options& options, const retry_options& retries, const s3_access* store, transfer_counts* counts)
      : options_(options),
        retries_(retries),
        rules_(retries, options.patience, ran_ns()),
        counts_(counts != nullptr ? *counts : own_counts_),
        ways_(options.allow_http),
        requests_(options, store, unix_now),
        opener_(ca_file_of(options, store), proxies::of_environment(),
                retries.names != nullptr ? *retries.names : names_of_process(), ways_, counts_),
        silence_max_(std::min(options.silence_max, options.patience)),
        limit_(options.connections_max),
        pool_(options.connections_max) {
    make_context();
    spawn(calls_->run());
    thread_ = start_thread({.what = "network thread"}, [this] {
      ::pthread_setname_np(::pthread_self(), "leat-net");
      context_->run();
    });
  }
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;
  ~impl() {
    calls_->post([this] { context_->stop(); });
    thread_.join();
    pool_.close_idle();
    watching_.reset();
    calls_.reset();
    // Coroutines end here, whose objects still refer to this.
    context_.reset();
  }

  void start(std::vector<std::shared_ptr<fetch>> wanted) {
    calls_->post([this, wanted = std::move(wanted)]() mutable {
      for (std::shared_ptr<fetch>& each : wanted) begin(std::move(each));
    });
  }
  void cancel(std::shared_ptr<fetch> wanted) {
    calls_->post([this, wanted = std::move(wanted)] {
      if (wanted->end != fetch_end::pending) return;
      fetch::progress& at = *wanted->state;
      at.is_cancelled = true;
      if (at.in_use != nullptr) at.in_use->close();
      if (at.second != nullptr) at.second->close();
      if (!at.writes) finish(*wanted, fetch_end::cancelled);
    });
  }
  void set_connections(std::uint32_t connections) {
    calls_->post([this, connections] {
      limit_.set_most(connections);
      employ();
    });
  }

 private:
  // Who uses a connection is known to the watch and to its fetch.
  class use {
   public:
    use(impl& all, fetch& by, http_connection& used) : by_(*by.state), used_(used), place_(all.pool_, used) {
      by_.in_use = &used_;
      used_.serves = &by;
      all.watch_connections();
    }
    ~use() {
      by_.in_use = nullptr;
      used_.serves = nullptr;
    }
    use(const use&) = delete;
    use& operator=(const use&) = delete;

   private:
    fetch::progress& by_;
    http_connection& used_;
    const connection_pool::place place_;
  };
  // As above, of a second one.
  class second_use {
   public:
    second_use(impl& all, fetch::progress& by, http_connection& used) : by_(by), place_(all.pool_, used) {
      by_.second = &used;
    }
    ~second_use() { by_.second = nullptr; }
    second_use(const second_use&) = delete;
    second_use& operator=(const second_use&) = delete;

   private:
    fetch::progress& by_;
    const connection_pool::place place_;
  };

  template <class Coroutine>
  void spawn(Coroutine coroutine) {
    // None of them throws: what goes wrong is an outcome of a fetch.
    asio::co_spawn(*context_, std::move(coroutine), [](const std::exception_ptr& failure) {
      if (failure) std::terminate();
    });
  }

  void begin(std::shared_ptr<fetch> wanted) {
    wanted->state = std::make_shared<fetch::progress>();
    wanted->state->way = {.from = wanted->where, .at = *wanted->where};
    wanted->state->wanted_ns = ran_ns();
    wanted->state->patience = request_patience(as_ns(options_.patience));
    queue(std::move(wanted));
  }
  void queue(std::shared_ptr<fetch> wanted) {
    add_by_age(waiting_, std::move(wanted));
    employ();
  }
  void employ() {
    for (std::size_t left = waiting_.size(); left != 0 && workers_ < limit_.now(); --left) {
      ++workers_;
      spawn(work());
    }
  }
  asio::awaitable<void> work(std::shared_ptr<fetch> first = nullptr) {
    if (first) co_await serve(std::move(first));
    while (workers_ <= limit_.now()) {
      std::shared_ptr<fetch> next = take_next();
      if (!next) break;
      co_await serve(std::move(next));
    }
    --workers_;
  }
  // Those whose store does not let them go wait for it.
  std::shared_ptr<fetch> take_next() {
    while (!waiting_.empty()) {
      std::shared_ptr<fetch> next = std::move(waiting_.front());
      waiting_.pop_front();
      if (next->end != fetch_end::pending) continue;
      fetch::progress& at = *next->state;
      known_server& server = server_of(at.way.at);
      find_lane(server, at);
      if (!server.parked.are_in(at.lane) && admit(server, at) == 0) return next;
      park(server, std::move(next));
    }
    return nullptr;
  }

  known_server& server_of(const address& where) {
    const std::string name = server_name(where);
    std::unique_ptr<known_server>& known = servers_[name];
    if (!known) known = std::make_unique<known_server>(known_server{.store = store_at(name)});
    return *known;
  }
  static std::uint64_t admit(const known_server& server, fetch::progress& at) {
    return at.admitted.ask(server.store, ran_ns(), at.lane);
  }
  static void find_lane(const known_server& server, fetch::progress& at) {
    at.lane = server.store->with([&](store_state& state) { return state.lane_of(throttled_prefix(at.way.at.target)); });
  }
  // What a try has told of the store, which is told it.
  void tell_store(fetch::progress& at) {
    switch (at.told) {
      case told_by_try::nothing:
        return at.admitted.end(&store_state::dropped);
      case told_by_try::answers:
        ++answers_;
        return at.admitted.end(&store_state::answered, ran_ns());
      case told_by_try::refuses:
        return at.admitted.end(&store_state::refused, ran_ns(), at.wait_at_least_ns, rules_.pauses());
      case told_by_try::fails:
        return at.admitted.end(&store_state::failed, ran_ns(), rules_.pauses());
    }
  }

  void park(known_server& server, std::shared_ptr<fetch> waits) {
    transfer_counts::add(counts_.waiting, 1);
    find_lane(server, *waits->state);
    const std::uint32_t lane = waits->state->lane;
    server.parked.add(lane, std::move(waits));
    if (!std::exchange(server.is_looked_after, true)) spawn(look_after(server));
  }
  void unparked(std::size_t count) { counts_.waiting.fetch_sub(count, std::memory_order_relaxed); }
  // Lets those go that the store lets go, and gives all up when it has been silent for too long.
  asio::awaitable<void> look_after(known_server& server) {
    asio::steady_timer timer(*context_);
    while (server.parked.size() != 0) {
      const shared_store::view store = server.store->look(ran_ns());
      const bool is_away = store.now == store_state::condition::away;
      std::uint64_t wait = as_ns(look_interval_max) / 10;
      if (is_away || workers_ < limit_.now()) {
        auto [next, least] = server.parked.take(
            [&](fetch& each) { return each.end != fetch_end::pending ? 0 : admit(server, *each.state); });
        if (next != nullptr) {
          unparked(1);
          if (next->end != fetch_end::pending) continue;
          ++workers_;
          spawn(work(std::move(next)));
          continue;
        }
        wait = least;
      }
      if (is_away) give_up_late(server, store);
      timer.expires_after(std::min<std::chrono::nanoseconds>(std::chrono::nanoseconds(wait), look_interval_max));
      co_await timer.async_wait(answers);
    }
    server.is_looked_after = false;
  }
  [[nodiscard]] bool is_patience_over(const fetch& of, const known_server& server,
                                      const shared_store::view& store) const {
    return rules_.is_patience_over(ran_ns() - of.state->wanted_ns, store, server.has_no_such_name);
  }
  void give_up_late(known_server& server, const shared_store::view& store) {
    const auto late = server.parked.take_all(
        [&](const fetch& each) { return each.end != fetch_end::pending || is_patience_over(each, server, store); });
    unparked(late.size());
    for (const std::shared_ptr<fetch>& each : late) {
      if (each->end != fetch_end::pending) continue;
      each->why = str_cat(server.last_why.empty() ? "the server does not answer" : server.last_why,
                          " (nothing of use for ", store.silent_ns / 1'000'000'000, " s, and patience is at its end)");
      finish(*each, fetch_end::failed);
    }
  }

  void finish(fetch& ended, fetch_end how) {
    assert(ended.end == fetch_end::pending);
    ended.end = how;
    if (ended.whole_bytes_max == 0) {
      const std::uint64_t now = ran_ns();
      transfer_counts::add(counts_.wait_ns, now - ended.state->wanted_ns);
      tell_times(ended, now);
    }
    ended_.push_back(ended.shared_from_this());
    if (ended_.size() == 1) asio::post(*context_, [this] { tell_ended(); });
    if (ended_.size() >= told_at_once) tell_ended();
  }
  // By the clock that others go by: its time of now is that of this one, and what was stopped since then is not noticed.
  static void tell_times(fetch& ended, std::uint64_t now) {
    const fetch::progress& at = *ended.state;
    const std::uint64_t now_there = now_ns();
    const auto there = [&](std::uint64_t ran) { return ran == 0 ? 0 : now_there - (now - std::min(ran, now)); };
    ended.times = {.wanted_ns = there(at.wanted_ns),
                   .opened_ns = there(at.opened_ns),
                   .asked_ns = there(at.asked_ns),
                   .answered_ns = there(at.answered_ns),
                   .ended_ns = now_there};
  }
  // Those that have ended in one turn of the loop are told one after the other: who waits for them is woken once.
  void tell_ended() {
    for (const std::shared_ptr<fetch>& each : std::exchange(ended_, {})) each->ended(*each);
  }

  // In which bytes may come before they are late: all connections together have a rate that is little for one.
  [[nodiscard]] std::uint64_t time_of_bytes(std::size_t bytes) const {
    const double all = static_cast<double>(bytes) * static_cast<double>(std::max(pool_.active(), std::size_t{1}));
    return static_cast<std::uint64_t>(all / patience_bytes_per_s * 1e9);
  }

  asio::awaitable<void> serve(std::shared_ptr<fetch> served) {
    fetch::progress& at = *served->state;
    if (served->end != fetch_end::pending) co_return at.admitted.end(&store_state::dropped);
    if (at.began_ns == 0) at.began_ns = ran_ns();
    known_server& server = server_of(at.way.at);
    for (;;) {
      const std::size_t before = served->bytes_received;
      const std::uint64_t asked_ns = ran_ns();
      next_step next = next_step::give_up;
      at.told = told_by_try::fails;
      try {
        next = co_await attempt(*served);
      } catch (const std::exception& failure) {
        served->why = failure.what();
      }
      if (served->bytes_received > before) at.told = told_by_try::answers;
      const bool is_of_store = next != next_step::give_up && !at.is_cancelled && served->end != fetch_end::cancelled;
      if (at.told == told_by_try::fails && !is_of_store) at.told = told_by_try::nothing;
      const bool is_over = served->end != fetch_end::pending || at.is_cancelled;
      if (next == next_step::again_now && !is_over && &server_of(at.way.at) == &server) continue;
      if (next == next_step::give_up && !is_over && at.way.is_remembered && ways_.begins_anew(at.way)) {
        if (&server_of(at.way.at) == &server) continue;
        next = next_step::again_now;
      }
      tell_store(at);
      if (served->end != fetch_end::pending) co_return;
      if (at.is_cancelled) co_return finish(*served, fetch_end::cancelled);
      assert(next != next_step::over);
      if (next == next_step::again_now) co_return queue(std::move(served));
      if (next == next_step::give_up) co_return finish(*served, fetch_end::failed);
      if (next == next_step::await_keys) co_return await_keys(std::move(served));
      at.keys_since_ns = 0;
      ++at.tries_all;
      at.tries = served->bytes_received > before ? 1 : at.tries + 1;
      server.last_why = served->why;
      const shared_store::view store = server.store->look(ran_ns());
      const bool is_away = store.now == store_state::condition::away;
      const std::chrono::nanoseconds wait =
          rules_.pause(at.tries, at.told == told_by_try::refuses, std::exchange(at.wait_at_least_ns, 0));
      // A store that is away, refuses or is slow is to blame for the try.
      if (!is_away && at.told != told_by_try::refuses && !at.was_slow_store) {
        const std::uint64_t took_ns = ran_ns() - asked_ns;
        at.patience.use(took_ns - std::min(took_ns, time_of_bytes(std::max(served->bytes_received, before) - before)));
        if (!at.patience.is_over()) at.patience.use(as_ns(wait));
      }
      if (const char* const limit = no_more_tries(*served, server, store)) {
        const double seconds = static_cast<double>(ran_ns() - at.began_ns) / 1e9;
        served->why = str_cat(served->why, " (", at.tries_all, at.tries_all == 1 ? " try" : " tries", " in ",
                              std::floor(seconds * 10) / 10, " s", limit, ")");
        co_return finish(*served, fetch_end::failed);
      }
      ways_.from_the_start(at.way);
      at.way.was_begun_anew = false;
      transfer_counts::add(counts_.retries, 1);
      if (is_away) {
        park(server_of(at.way.at), std::move(served));
      } else {
        spawn(queue_later(served, wait));
      }
      co_return;
    }
  }
  [[nodiscard]] const char* no_more_tries(const fetch& served, const known_server& server,
                                          const shared_store::view& store) const {
    constexpr const char* patience = ", and patience is at its end";
    if (served.state->tries >= retries_.tries_max) return "";
    if (is_patience_over(served, server, store)) return patience;
    return served.state->patience.is_over() ? patience : nullptr;
  }
  asio::awaitable<void> queue_later(std::shared_ptr<fetch> wanted, std::chrono::nanoseconds wait) {
    asio::steady_timer timer(*context_, wait);
    co_await timer.async_wait(answers);
    if (wanted->end == fetch_end::pending) queue(std::move(wanted));
  }

  // That is no failure of the store's: it takes no try.
  void await_keys(std::shared_ptr<fetch> wanted) {
    if (wanted->state->keys_since_ns == 0) wanted->state->keys_since_ns = ran_ns();
    awaiting_keys_.push_back(std::move(wanted));
    if (!std::exchange(is_watching_keys_, true)) spawn(watch_keys());
  }
  asio::awaitable<void> watch_keys() {
    asio::steady_timer timer(*context_);
    while (!awaiting_keys_.empty()) {
      timer.expires_after(keys_interval);
      co_await timer.async_wait(answers);
      std::shared_ptr<const access_keys> newest;
      try {
        newest = requests_.renewed()->now();
      } catch (const std::exception&) {
        // Patience ends.
      }
      for (std::shared_ptr<fetch>& each : std::exchange(awaiting_keys_, {})) {
        if (each->end != fetch_end::pending) continue;
        const fetch::progress& at = *each->state;
        const std::uint64_t now = ran_ns();
        if (now - at.keys_since_ns >= std::min(as_ns(retries_.keys_patience), at.patience.left_ns())) {
          each->why = str_cat(each->why, " after ", std::floor(static_cast<double>(now - at.keys_since_ns) / 1e8) / 10,
                              " s; see whether who provides them does so");
          finish(*each, fetch_end::failed);
        } else if (newest != nullptr && newest != at.signature.keys) {
          transfer_counts::add(counts_.retries, 1);
          queue(std::move(each));
        } else {
          awaiting_keys_.push_back(std::move(each));
        }
      }
    }
    is_watching_keys_ = false;
  }

  // Asio does not look at what epoll_ctl() says when it begins. Without its timers nothing here would ever end.
  void make_context() {
    constexpr auto look = std::chrono::milliseconds(50);
    constexpr int looks = 5;
    bool is_fired = false;
    try {
      context_ = std::make_unique<asio::io_context>(1);
      calls_ = std::make_unique<posted_calls>(*context_);
      watching_ = std::make_unique<asio::steady_timer>(*context_, std::chrono::seconds(0));
      watching_->async_wait([&is_fired](const error_code&) { is_fired = true; });
      for (int i = 0; i < looks && !is_fired; ++i) context_->run_for(look);
    } catch (const boost::system::system_error& refused) {
      throw error(errc::limit, str_cat("the network cannot be waited for: ", refused.what(),
                                       is_for_want_of_descriptors(refused.code()) ? more_descriptors : ""));
    }
    context_->restart();
    if (is_fired) return;
    throw error(errc::limit,
                "the system has no memory for epoll (epoll_ctl), which waits for the network; see "
                "/proc/sys/fs/epoll/max_user_watches, and what else runs here");
  }

  void watch_connections() {
    if (!std::exchange(is_watching_, true)) return spawn(watch());
    if (pool_.active() == 1) watching_->cancel();  // it may sleep for as long as connections are kept
  }
  asio::awaitable<void> watch() {
    unsigned ticks = 0;
    while (!pool_.is_empty()) {
      watching_->expires_after(pool_.active() == 0 && knocking_.empty() ? connection_pool::idle_time_max
                                                                        : watch_interval);
      co_await watching_->async_wait(answers);
      const std::uint64_t now = ran_ns();
      for (http_connection* const each : knocking_) {
        if (now - each->silent_since_ns >= each->silence_max_ns) each->close_late();
      }
      pool_.watch(
          now, [this](const http_connection& late) { opener_.is_silent(late); },
          [this, now](http_connection& other) {
            if (other.serves != nullptr) ask_twice_if_slow(other, now);
          });
      if (++ticks % 8 == 0) knock_at_silent_servers(now);
      pool_.close_old(now_ns());
    }
    is_watching_ = false;
  }

  // A connection whose packets were lost for a while is repeated by the kernel ever more seldom: when a server that was silent on all of them
  // lets a new one in, those are given up.
  void knock_at_silent_servers(std::uint64_t now) {
    for (const auto& [name, server] : servers_) {
      if (server->is_knocked || now - server->knocked_ns < as_ns(retries_.server_silence) / 2) continue;
      const connection_pool::silence heard = pool_.of(*server);
      if (heard.asked == nullptr || now - heard.heard_ns < as_ns(retries_.server_silence)) {
        server->knocks_lost = 0;
        continue;
      }
      server->is_knocked = true;
      server->knocked_ns = now;
      spawn(knock(*server, heard.asked->to));
    }
  }
  asio::awaitable<void> knock(known_server& server, address to) {
    const auto line = std::make_unique<http_connection>(*context_, to);
    line->silent_since_ns = ran_ns();
    line->silence_max_ns = as_ns(std::min(knock_time_max, retries_.server_silence));
    line->give_up_ns = ~std::uint64_t{0};
    knocking_.push_back(line.get());
    std::string why;
    bool is_open = false;
    try {
      is_open = co_await open(*line, why) == next_step::over;
    } catch (const std::exception&) {
      // As one that was not opened.
    }
    std::erase(knocking_, line.get());
    server.is_knocked = false;
    if (!is_open) {
      ++server.knocks_lost;
      server.last_why = why;
      co_return;
    }
    if (std::exchange(server.knocks_lost, 0) == 0) co_return;  // it is slow
    pool_.close_silent(server, ran_ns(), as_ns(retries_.server_silence) / 2);
  }

  // What is later than 99 of 100 is asked for once more, what is missing of it, on a new connection. Whose answer has begun by the time
  // that the first one's is not over has the rest.
  void ask_twice_if_slow(http_connection& first, std::uint64_t now) {
    fetch& wanted = *first.serves;
    fetch::progress& at = *wanted.state;
    if (first.asked_ns == 0 || first.asked_bytes == 0 || at.is_asked_twice || at.is_cancelled ||
        wanted.end != fetch_end::pending || now - first.asked_ns <= slow_.late_ns(first.asked_bytes)) {
      return;
    }
    // They are beyond those that there is memory for: one for 16 of them.
    const std::size_t connections_max = limit_.now() + limit_.now() / 16 + 1;
    if (pool_.active() >= connections_max) return;
    if (!slow_.may_ask_again_for(wanted.into.size() - wanted.bytes_received)) return;
    at.is_asked_twice = true;
    spawn(ask_twice(wanted.shared_from_this(), &first));
  }
  asio::awaitable<void> ask_twice(std::shared_ptr<fetch> wanted, const http_connection* first) try {
    fetch::progress& at = *wanted->state;
    const auto is_over = [&] { return wanted->end != fetch_end::pending || at.is_cancelled || at.in_use != first; };
    if (is_over()) co_return;
    auto line = std::make_unique<http_connection>(*context_, at.way.at);
    line->may_be_near = ways_.may_be_near(at.way);
    line->silent_since_ns = ran_ns();
    line->give_up_ns = first->give_up_ns;
    line->silence_max_ns = as_ns(std::min<std::chrono::milliseconds>(silence_max_, connect_time_max));
    transfer_counts::add(counts_.hedges, 1);
    std::optional<std::size_t> end;
    std::size_t from = 0;
    {
      const second_use used(*this, at, *line);
      std::string why;
      if (co_await open(*line, why) != next_step::over || is_over()) co_return;
      line->silence_max_ns = as_ns(silence_max_);
      from = wanted->bytes_received;
      const std::string request = request_of(*wanted, expected_of(*wanted));
      transfer_counts::add(counts_.requests, 1);
      end = (co_await line->ask(request, wanted->into.size() - from)).second;
    }
    const bool is_answer = line->received.starts_with("HTTP/1.1 206") ||
                           (from == 0 && wanted->offset == 0 && line->received.starts_with("HTTP/1.1 200"));
    if (!end || is_over() || !is_answer) co_return;
    at.took_over = std::move(line);
    at.took_over_head = *end;
    at.took_over_from = from;
    at.in_use->close();  // who reads from it goes on with the other one
  } catch (const std::exception&) {
    // The first one goes on.
  }

  // Of descriptors: connections that are idle have theirs closed; else fewer are used from now on, as if the store had refused some. Where no other
  // one will give its own back, nothing is to be waited for.
  //   began_ns   when it was asked for
  next_step make_room(std::uint64_t began_ns) {
    if (pool_.close_idle()) return next_step::again_now;
    limit_.refused(began_ns, ran_ns());
    return pool_.has_open() ? next_step::lacks_room : next_step::give_up;
  }

  // A server that has said nothing since the client began is hardly there: it is not tried as long as one that was reached before.
  [[nodiscard]] next_step judge_opening(const http_connection& opened, next_step how, std::string& why) {
    known_server& known = server_of(opened.to);
    if (how == next_step::over) known.was_reached = true;
    if (how != next_step::again_later || !opened.is_late || known.was_reached) return how;
    const std::uint64_t now = ran_ns();
    const std::uint64_t silence_max_ns = as_ns(std::min<std::chrono::milliseconds>(silence_max_, connect_time_max));
    if (known.silent_since_ns == 0) known.silent_since_ns = now - opened.silence_max_ns;
    if (now - known.silent_since_ns < 2 * silence_max_ns) return how;
    str_append(why, ", and no other connection to it has come about", opened.to.tls ? without_tls() : "");
    return next_step::give_up;
  }

  // One request and its answer.
  asio::awaitable<next_step> attempt(fetch& wanted) {
    fetch::progress& at = *wanted.state;
    ways_.set_out(at.way);
    std::unique_ptr<http_connection> line = pool_.take_idle(at.way.at);
    const bool was_idle = line != nullptr;
    if (!was_idle) line = std::make_unique<http_connection>(*context_, at.way.at);
    line->may_be_near = ways_.may_be_near(at.way);
    line->server = &server_of(at.way.at);
    line->place = {.answers_before = answers_, .beside = pool_.active()};
    line->asked_ns = 0;
    line->silent_since_ns = ran_ns();
    at.opened_ns = was_idle ? 0 : line->silent_since_ns;
    at.asked_ns = at.answered_ns = 0;
    line->give_up_ns =
        line->silent_since_ns + at.patience.left_ns() + time_of_bytes(wanted.into.size() - wanted.bytes_received);
    line->silence_max_ns =
        as_ns(was_idle                 ? silence_max_
              : at.admitted.is_probe() ? std::min<std::chrono::milliseconds>(silence_max_, knock_time_max)
                                       : std::min<std::chrono::milliseconds>(silence_max_, connect_time_max));
    bool is_reusable = false;
    const std::size_t bytes_before = wanted.bytes_received;
    next_step next = next_step::over;
    {
      const use used(*this, wanted, *line);
      if (!was_idle) next = co_await open_for(wanted, *line);
      if (wanted.end != fetch_end::pending) co_return next_step::over;
      if (next == next_step::over) next = co_await exchange(wanted, *line, was_idle, is_reusable);
      at.was_slow_store =
          line->is_late && at.tries < slow_tries_max && !line->place.is_overtaken(answers_, pool_.active());
      if (wanted.bytes_received != bytes_before) at.was_slow_store = false;
    }
    if (at.took_over != nullptr && wanted.end == fetch_end::pending && !at.is_cancelled) {
      line = std::move(at.took_over);
      is_reusable = false;
      wanted.bytes_received = at.took_over_from;
      const use used(*this, wanted, *line);
      next = co_await take_answer(wanted, *line, at.took_over_head, expected_of(wanted), is_reusable);
    }
    at.took_over.reset();
    if (is_reusable && line->socket.is_open()) pool_.keep(std::move(line), now_ns());
    co_return next;
  }
  asio::awaitable<next_step> open(http_connection& line, std::string& why) {
    const std::uint64_t began_ns = ran_ns();
    const next_step next = co_await opener_.open(*context_, line, why);
    co_return next == next_step::lacks_room ? make_room(began_ns) : next;
  }
  asio::awaitable<next_step> open_for(fetch& wanted, http_connection& line) {
    const next_step next = judge_opening(line, co_await open(line, wanted.why), wanted.why);
    line.silence_max_ns = as_ns(silence_max_);
    if (next == next_step::lacks_room) wanted.state->told = told_by_try::nothing;
    server_of(wanted.state->way.at).has_no_such_name = line.has_no_such_name;
    co_return next;
  }

  [[nodiscard]] std::string request_of(const fetch& wanted, const object_facts* expected) {
    fetch::progress& at = *wanted.state;
    return requests_.write(wanted, at.way, opener_.all_proxies(), expected, at.signature);
  }

  asio::awaitable<next_step> exchange(fetch& wanted, http_connection& line, bool was_idle, bool& is_reusable) {
    const object_facts* const expected = expected_of(wanted);
    const std::string request = request_of(wanted, expected);
    const bool is_range = wanted.whole_bytes_max == 0;
    transfer_counts::add(counts_.requests, 1);
    const auto [failure, end] = co_await line.ask(request, is_range ? wanted.into.size() - wanted.bytes_received : 0);
    wanted.state->asked_ns = line.asked_ns;
    if (end) wanted.state->answered_ns = ran_ns();
    if (wanted.end != fetch_end::pending) co_return next_step::over;
    if (!end && line.received.size() >= http_head_bytes_max) {
      wanted.why = str_cat("its header is longer than ", http_head_bytes_max, " bytes");
      co_return next_step::give_up;
    }
    if (!end) {
      // Servers close connections that are idle, and may do so while a request is on its way.
      if (was_idle && line.received.empty() && !line.is_late) co_return next_step::again_now;
      wanted.why = line.words_of(failure, "before it had answered");
      co_return next_step::again_later;
    }
    co_return co_await take_answer(wanted, line, *end, expected, is_reusable);
  }

  //   end   of the header, in what was received
  asio::awaitable<next_step> take_answer(fetch& wanted, http_connection& line, std::size_t end,
                                         const object_facts* expected, bool& is_reusable) {
    const std::optional<http_head> head = parse_http_head(std::string_view(line.received).substr(0, end), wanted.why);
    if (!head) co_return next_step::give_up;
    wanted.state->told = told_by_status(head->status);
    if (wanted.whole_bytes_max > 0 && head->status == 200)
      co_return co_await take_text(wanted, line, *head, is_reusable);
    if (head->status == 206 || head->status == 200)
      co_return co_await take_bytes(wanted, line, *head, end, expected, is_reusable);
    co_return co_await take_error(wanted, line, *head, end, expected, is_reusable);
  }

  asio::awaitable<next_step> take_error(fetch& wanted, http_connection& line, const http_head& head, std::size_t end,
                                        const object_facts* expected, bool& is_reusable) {
    fetch::progress& at = *wanted.state;
    if (at.told == told_by_try::refuses) transfer_counts::add(counts_.refusals, 1);
    // A store's code is in its error's words. Where they are too many, or do not come, the status alone is judged.
    const received_text words = co_await receive_words(wanted, line, head, end);
    is_reusable = words.is_reusable;
    if (wanted.end != fetch_end::pending) co_return next_step::over;
    const std::string code = s3_error_code(words.text);
    if (code.starts_with("ExpiredToken") && at.signature.keys && requests_.renewed()->have_expired(at.signature.keys)) {
      wanted.why = "the store says that its keys have expired, and no others that it takes have come";
      co_return next_step::await_keys;
    }
    if (head.status == 403 && requests_.correct_clock(at.signature, head.date_unix_s)) co_return next_step::again_now;
    if (head.status >= 400 && head.status < 500 && head.status != 408 && head.status != 429 &&
        ways_.begins_anew(at.way)) {
      co_return next_step::again_now;
    }
    http_verdict judged = judge_error(wanted, head, code, at.way.at, expected);
    if (judged.is_redirect) {
      std::string why = ways_.follow(at.way, head.location, judged.why);
      if (why.empty()) co_return next_step::again_now;
      judged = {.end = fetch_end::refused, .why = std::move(why)};
    }
    if (judged.is_refusal) at.told = told_by_try::refuses;
    if (judged.next == next_step::give_up && head.status == 400)
      judged.why += words_of_store(words.text, request_of(wanted, expected));
    if (judged.next == next_step::again_later) at.wait_at_least_ns = judged.wait_at_least_ns;
    co_return take(wanted, std::move(judged));
  }
  next_step take(fetch& wanted, http_verdict judged) {
    if (judged.seen) wanted.seen = std::move(judged.seen);
    wanted.why = std::move(judged.why);
    if (judged.end != fetch_end::pending) finish(wanted, judged.end);
    return judged.next;
  }

  asio::awaitable<next_step> take_text(fetch& wanted, http_connection& line, const http_head& head, bool& is_reusable) {
    received_text came = co_await receive_text(wanted, line, head);
    if (wanted.end != fetch_end::pending) co_return next_step::over;
    if (came.broken) {
      wanted.why = line.words_of(came.broken, "before its answer's end");
      co_return next_step::again_later;
    }
    if (!came.refusal.empty()) {
      wanted.why = std::move(came.refusal);
      co_return next_step::give_up;
    }
    wanted.whole = std::move(came.text);
    is_reusable = came.is_reusable;
    finish(wanted, fetch_end::whole);
    co_return next_step::over;
  }

  // A body, straight to where it is wanted, and never a byte beyond.
  asio::awaitable<next_step> take_bytes(fetch& wanted, http_connection& line, const http_head& head, std::size_t end,
                                        const object_facts* expected, bool& is_reusable) {
    fetch::progress& at = *wanted.state;
    const std::string_view rest = std::string_view(line.received).substr(end);
    http_verdict judged = judge_body(wanted, head, rest.size(), expected);
    if (judged.next != next_step::over || judged.end != fetch_end::pending) co_return take(wanted, std::move(judged));
    wanted.seen = std::move(judged.seen);
    // Of a part of it the sum says nothing.
    if (wanted.offset == 0 && wanted.bytes_received == 0)
      at.sum = wanted.seen->size_bytes == wanted.into.size() ? object_sum_of(head) : std::nullopt;
    const std::size_t received_before = wanted.bytes_received;
    std::memcpy(wanted.into.data() + wanted.bytes_received, rest.data(), rest.size());
    wanted.bytes_received += rest.size();
    at.writes = true;
    const error_code failure = co_await receive_bytes(wanted, line, *head.content_bytes - rest.size());
    at.writes = false;
    transfer_counts::add(counts_.bytes, wanted.bytes_received - received_before);
    const std::uint64_t missing = *head.content_bytes - (wanted.bytes_received - received_before);
    if (missing > 0) {
      wanted.why = line.words_of(failure, str_cat(missing, " bytes before its answer's end"));
      co_return next_step::again_later;
    }
    if (at.sum && !at.sum->is_of(wanted.into)) co_return take_damaged(wanted);
    const std::uint64_t took_ns = ran_ns() - line.asked_ns;
    slow_.add(line.asked_bytes, took_ns);
    limit_.answered(took_ns);
    employ();
    is_reusable = head.keeps_alive;
    ways_.remember(at.way);
    finish(wanted, wanted.bytes_received == wanted.into.size() ? fetch_end::whole : fetch_end::short_of);
    co_return next_step::over;
  }
  next_step take_damaged(fetch& wanted) {
    fetch::progress& at = *wanted.state;
    wanted.why = str_cat("its bytes are not those that the store's ", at.sum->name(), " is of");
    wanted.bytes_received = 0;
    if (++at.mismatches < mismatches_max) return next_step::again_later;
    str_append(wanted.why, ", ", at.mismatches, " times; see whether the object is damaged, and put it anew");
    finish(wanted, fetch_end::damaged);
    return next_step::over;
  }

  const remote_options options_;
  const retry_options retries_;
  retry_rules rules_;
  transfer_counts own_counts_;
  transfer_counts& counts_;
  redirects ways_;
  request_writer requests_;
  connection_opener opener_;
  const std::chrono::milliseconds silence_max_;
  connection_limit limit_;
  slow_answers slow_;
  fetch_queue waiting_;
  std::vector<std::shared_ptr<fetch>> awaiting_keys_;
  std::vector<std::shared_ptr<fetch>> ended_;  // and not told
  bool is_watching_keys_ = false;
  std::uint32_t workers_ = 0;
  std::uint64_t answers_ = 0;  // of use
  std::vector<http_connection*> knocking_;
  hash_map<std::string, std::unique_ptr<known_server>> servers_;  // by scheme, name and port
  bool is_watching_ = false;
  std::unique_ptr<asio::io_context> context_;
  std::unique_ptr<posted_calls> calls_;
  std::unique_ptr<asio::steady_timer> watching_;
  connection_pool pool_;
  std::thread thread_;
};

http_client::http_client(const remote_options& options, const retry_options& retries, const s3_access* store,
                         transfer_counts* counts)
    : impl_(std::make_unique<impl>(options, retries, store, counts)) {}
http_client::~http_client() = default;
void http_client::start(std::vector<std::shared_ptr<fetch>> wanted) { impl_->start(std::move(wanted)); }
void http_client::fetch_now(const std::shared_ptr<fetch>& wanted) {
  std::promise<void> ended;
  wanted->owner = &ended;
  wanted->ended = [](fetch& done) noexcept { static_cast<std::promise<void>*>(done.owner)->set_value(); };
  start({wanted});
  ended.get_future().wait();
}
void http_client::cancel(std::shared_ptr<fetch> wanted) { impl_->cancel(std::move(wanted)); }
void http_client::set_connections(std::uint32_t connections) { impl_->set_connections(connections); }

}  // namespace leat::io

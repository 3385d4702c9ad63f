#include "io/remote/http_client.hpp"

#include "base/clock.hpp"
#include "base/hasher.hpp"
#include "base/option_words.hpp"
#include "base/start_thread.hpp"
#include "base/text.hpp"
#include "io/remote/connect.hpp"
#include "io/remote/connection_limit.hpp"
#include "io/remote/http_head.hpp"
#include "io/remote/name_answers.hpp"
#include "io/remote/near_address.hpp"
#include "io/remote/object_sum.hpp"
#include "io/remote/posted_calls.hpp"
#include "io/remote/proxies.hpp"
#include "io/remote/ran_clock.hpp"
#include "io/remote/renewed_keys.hpp"
#include "io/remote/request_headers.hpp"
#include "io/remote/request_patience.hpp"
#include "io/remote/shared_store.hpp"
#include "io/remote/slow_answers.hpp"
#include "io/remote/tls_session.hpp"

#include <leat/error.hpp>
#include <leat/version.hpp>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <sys/socket.h>

#include <pthread.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <exception>
#include <future>
#include <random>
#include <thread>
#include <utility>

namespace leat::io {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto answers = asio::as_tuple(asio::use_awaitable);

constexpr unsigned redirects_max = 5;
constexpr auto connect_time_max = std::chrono::seconds(10);
constexpr std::string_view more_descriptors = "; the process may open no more: raise `ulimit -n`";
constexpr std::string_view words_of_user = "; give the proxy's user, as http://user:password@host:port";
constexpr std::chrono::milliseconds look_up_interval_max(16);
constexpr auto watch_interval = std::chrono::milliseconds(20);

std::string without_tls() {
  return str_cat("; a server without TLS has an address of http://, which takes ", spelled(option_id::allow_http));
}
constexpr auto keys_interval = std::chrono::milliseconds(20);
// That a server which is silent, or away, has for letting a connection in.
constexpr std::chrono::milliseconds knock_time_max(1500);
constexpr auto idle_time_max = std::chrono::seconds(20);
// Of an answer that is an error: read, so that the connection can be used again.
constexpr std::uint64_t error_body_bytes_max = std::uint64_t{16} << 10;
// Fetches, at the most.
constexpr std::size_t told_at_once = 16;
// Of an object's bytes and its checksum.
constexpr std::uint32_t mismatches_max = 3;
constexpr std::size_t head_read_bytes = std::size_t{4} << 10;
// Bytes of a body that are waited for before they are read: the system's calls cost as much as the bytes do.
constexpr std::size_t low_water_max = std::size_t{256} << 10;
// How long they are waited for.
constexpr auto low_water_time_max = std::chrono::milliseconds(100);
// Of one request, that the store is to blame for. Then it is asked for what the store does not answer.
constexpr std::uint32_t slow_tries_max = 8;
constexpr double patience_bytes_per_s = 64 << 10;
// Of what one request waits for alone, where others are answered.
constexpr auto refused_wait_max = std::chrono::milliseconds(250);
constexpr auto retry_after_max = std::chrono::seconds(20);
// How often it is looked whether a store that requests wait for lets them go.
constexpr auto look_interval_max = std::chrono::milliseconds(50);

error_code last_error() { return {errno, boost::system::system_category()}; }

std::uint64_t as_ns(std::chrono::nanoseconds time) { return static_cast<std::uint64_t>(time.count()); }

// As RFC 9110 13.1.1 has it: only a strong tag ever matches.
bool is_strong(const std::string& etag) { return etag.starts_with('"'); }

bool is_the_same(const object_facts& seen, const object_facts& expected) {
  if (seen.size_bytes != expected.size_bytes) return false;
  if (!seen.etag.empty() && !expected.etag.empty()) return seen.etag == expected.etag;
  return seen.last_modified.empty() || expected.last_modified.empty() || seen.last_modified == expected.last_modified;
}

struct known_server;

/// A connection to a server, idle or used for one request at a time.
struct connection {
  connection(asio::io_context& context, const address& server) : socket(context), to(server) {}

  using outcome = std::pair<error_code, std::size_t>;

  /// Some of what comes. Without TLS by calls of our own: Asio tries to read before there is anything, and wakes for each segment.
  ///   is_answered   there may be bytes already
  asio::awaitable<outcome> read_some(asio::mutable_buffer into, bool is_answered) {
    if (tls) co_return co_await tls->read_some(into, is_answered);
    for (bool waits = !is_answered;; waits = true) {
      if (waits) {
        const auto [failure] = co_await socket.async_wait(tcp::socket::wait_read, answers);
        if (failure) co_return outcome(failure, 0);
      }
      const ssize_t bytes = ::recv(socket.native_handle(), into.data(), into.size(), MSG_DONTWAIT);
      if (bytes > 0) co_return outcome(error_code(), static_cast<std::size_t>(bytes));
      if (bytes == 0) co_return outcome(asio::error::eof, 0);
      if (errno != EAGAIN && errno != EINTR) co_return outcome(last_error(), 0);
    }
  }
  /// Of `all`, as much as can be sent without waiting. With TLS nothing.
  std::size_t send_now(std::string_view all, error_code& failure) {
    if (tls) return 0;
    const ssize_t bytes = ::send(socket.native_handle(), all.data(), all.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (bytes >= 0) return static_cast<std::size_t>(bytes);
    if (errno != EAGAIN && errno != EINTR) failure = last_error();
    return 0;
  }
  asio::awaitable<error_code> write(std::string_view all) {
    if (tls) co_return co_await tls->write(all);
    const auto [failure, bytes] = co_await asio::async_write(socket, asio::buffer(all), answers);
    co_return failure;
  }
  /// Wakes who reads when so many bytes are there, or the connection has ended. watch() sets it to one where the server is slow. Of what is
  /// still to come by TLS, some may have been received, and the rest is more than its bytes are.
  void wake_at(std::size_t bytes) {
    if (tls) bytes -= std::min(bytes, tls_session::read_ahead_bytes);
    const int wanted = static_cast<int>(std::clamp(bytes, std::size_t{1}, low_water_max));
    if (wanted == low_water) return;
    low_water = wanted;
    static_cast<void>(::setsockopt(socket.native_handle(), SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof wanted));
  }
  /// Silent for too long, or so slow that what it sends is late.
  [[nodiscard]] bool is_too_late(std::uint64_t now) const {
    const bool has_begun = asked_ns != 0 && silent_since_ns > asked_ns;
    return now - silent_since_ns >= silence_max_ns || (has_begun && now >= give_up_ns);
  }
  /// What it is waiting for ends.
  void close() {
    error_code ignored;
    socket.close(ignored);
    if (opening != nullptr) opening->stop();
    is_closed = true;
  }

  tcp::socket socket;
  std::optional<tls_session> tls;
  const address to;
  bool may_be_near = true;  // an address that is_near()
  std::string received;     // of an answer: its head, and what came with it
  int low_water = 1;
  std::uint64_t silent_since_ns = 0;
  std::uint64_t give_up_ns = 0;
  std::uint64_t silence_max_ns = 0;
  place_in_line place;
  std::uint64_t idle_since_ns = 0;  // of now_ns(): a server counts what this process was stopped for
  std::uint64_t asked_ns = 0;       // when its request was sent
  std::uint64_t asked_bytes = 0;    // of an object
  fetch* serves = nullptr;          // null: nobody, or it is a second one
  bool is_late = false;
  const known_server* server = nullptr;
  bool is_closed = false;
  bool has_no_such_name = false;
  connecting* opening = nullptr;
};

// What the last try of a fetch says of its store.
enum class told_by_try : std::uint8_t { nothing, answers, refuses, fails };

/// A server, as one client has it.
struct known_server {
  std::shared_ptr<shared_store> store;
  std::deque<std::shared_ptr<fetch>> parked = {};  // wait for the store
  bool is_looked_after = false;
  std::string last_why = {};
  bool has_no_such_name = false;  // by its last connection
  bool was_reached = false;
  std::uint64_t silent_since_ns = 0;  // of one that was not
  std::uint64_t knocked_ns = 0;       // when that was last
  std::uint32_t knocks_lost = 0;      // in a row
  bool is_knocked = false;
};

enum class step : std::uint8_t {
  over,         // the fetch has its outcome
  again_now,    // elsewhere, or since an idle connection was closed meanwhile
  again_later,  // `why` says it
  lacks_room,   // likewise, and the store has no part in it: the process has no descriptor left
  await_keys,   // likewise
  give_up       // likewise
};

}  // namespace

std::uint64_t object_facts::version(const address& where) const {
  hasher all;
  all.add(unsigned_target(where.target));
  all.add(size_bytes);
  if (is_strong(etag)) {
    all.add("tag");
    all.add(etag);
  } else {
    // RFC 9110 8.8.2.2: times are told by the second, and one object may follow another within it.
    const std::optional<std::int64_t> changed = parse_http_date(last_modified);
    if (!changed || !told_unix_s || *told_unix_s - *changed < 2) return 0;
    all.add("time");
    all.add(last_modified);
  }
  const digest mixed = all.finish();
  std::uint64_t number = 0;
  std::memcpy(&number, mixed.bytes.data(), sizeof number);
  return number == 0 ? 1 : number;
}

struct fetch::progress {
  address at;                   // where it is asked for now
  bool is_remembered = false;   // `at` is what a redirect said before
  bool came_from_near = false;  // by a redirect
  unsigned redirects = 0;
  bool was_begun_anew = false;                     // after a refusal where redirects had led, since the last wait
  std::shared_ptr<const access_keys> signed_with;  // of keys that are lent
  std::optional<std::int64_t> signed_s;  // the skew its last request was signed with; nothing where it was not signed
  bool is_clock_corrected = false;
  connection* in_use = nullptr;
  bool is_asked_twice = false;
  connection* second = nullptr;
  std::unique_ptr<connection> took_over;  // the second one, whose answer has begun before the first one's has ended
  std::size_t took_over_head = 0;         // of it: where the header ends
  std::size_t took_over_from = 0;         // bytes_received when it was asked
  bool writes = false;                    // the memory may be written to
  std::optional<object_sum> sum;          // of the whole object, which is wanted
  std::uint32_t mismatches = 0;           // with it
  bool is_cancelled = false;
  std::uint32_t tries = 0;  // without a byte between them
  std::uint32_t tries_all = 0;
  std::uint64_t wanted_ns = 0;
  std::uint64_t began_ns = 0;
  request_patience patience{0};
  bool was_slow_store = false;  // of the last try: it was silent, as the store was with others
  std::uint64_t wait_at_least_ns = 0;
  admission admitted;
  told_by_try told = told_by_try::nothing;
  std::uint64_t keys_since_ns = 0;  // since when its keys are refused as expired; 0: they are not
};

class http_client::impl {
 public:
  impl(const remote_options& options, const retry_options& retries, const s3_access* store, transfer_counts* counts)
      : options_(options),
        retries_(retries),
        counts_(counts != nullptr ? *counts : own_counts_),
        names_(retries.names != nullptr ? *retries.names : names_of_process()),
        silence_max_(std::min(options.silence_max, options.patience)),
        limit_(options.connections_max) {
    if (store != nullptr && store->lent) {
      lent_ = store->lent;
      region_ = store->region;
    } else if (store != nullptr && !store->keys.empty()) {
      signer_.emplace(store->keys, store->region, store->service);
    }
    headers_ = parse_request_headers(options.headers, options.allow_http);
    ca_file_ = !options.ca_file.empty() || store == nullptr ? options.ca_file : store->ca_file;
    // What is wrong with that is said at once.
    if (!ca_file_.empty()) static_cast<void>(tls());
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
    idle_.clear();
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

 private:
  // Who uses a connection is known to the watch and to its fetch.
  class use {
   public:
    use(impl& all, fetch& by, connection& used) : all_(all), by_(*by.state), used_(used) {
      by_.in_use = &used_;
      used_.serves = &by;
      all_.active_.push_back(&used_);
      all_.watch_connections();
    }
    ~use() {
      by_.in_use = nullptr;
      used_.serves = nullptr;
      std::erase(all_.active_, &used_);
    }
    use(const use&) = delete;
    use& operator=(const use&) = delete;

   private:
    impl& all_;
    fetch::progress& by_;
    connection& used_;
  };
  // As above, of a second one.
  class second_use {
   public:
    second_use(impl& all, fetch::progress& by, connection& used) : all_(all), by_(by), used_(used) {
      by_.second = &used_;
      all_.active_.push_back(&used_);
    }
    ~second_use() {
      by_.second = nullptr;
      std::erase(all_.active_, &used_);
    }
    second_use(const second_use&) = delete;
    second_use& operator=(const second_use&) = delete;

   private:
    impl& all_;
    fetch::progress& by_;
    connection& used_;
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
    wanted->state->at = *wanted->where;
    wanted->state->wanted_ns = ran_ns();
    wanted->state->patience = request_patience(as_ns(options_.patience));
    queue(std::move(wanted));
  }
  void queue(std::shared_ptr<fetch> wanted) {
    add_by_age(waiting_, std::move(wanted));
    employ();
  }
  // What was wanted first goes first: none of those that are asked for again waits for all others.
  static void add_by_age(std::deque<std::shared_ptr<fetch>>& to, std::shared_ptr<fetch> one) {
    const auto later = std::upper_bound(to.begin(), to.end(), one->state->wanted_ns,
                                        [](std::uint64_t ns, const auto& each) { return ns < each->state->wanted_ns; });
    to.insert(later, std::move(one));
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
      known_server& server = server_of(at.at);
      if (server.parked.empty() && admit(server, at) == 0) return next;
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
    return at.admitted.ask(server.store, ran_ns());
  }
  // What a try has told of the store, which is told it.
  void tell_store(fetch::progress& at) {
    const auto pause_max = std::min<std::chrono::nanoseconds>(retries_.wait_max, std::chrono::seconds(1));
    const store_state::pauses between{as_ns(retries_.wait_first), as_ns(pause_max)};
    switch (at.told) {
      case told_by_try::nothing:
        return at.admitted.end(&store_state::dropped);
      case told_by_try::answers:
        ++answers_;
        return at.admitted.end(&store_state::answered, ran_ns());
      case told_by_try::refuses:
        return at.admitted.end(&store_state::refused, ran_ns(), at.wait_at_least_ns, between);
      case told_by_try::fails:
        return at.admitted.end(&store_state::failed, ran_ns(), between);
    }
  }
  [[nodiscard]] std::uint64_t patience_ns(const known_server& server, const shared_store::view& store) const {
    const std::uint64_t all = as_ns(options_.patience);
    if (store.has_answered) return all;
    return std::min(all, as_ns(server.has_no_such_name ? retries_.unknown_patience : retries_.unreached_patience));
  }

  void park(known_server& server, std::shared_ptr<fetch> waits) {
    transfer_counts::add(counts_.waiting, 1);
    add_by_age(server.parked, std::move(waits));
    if (!std::exchange(server.is_looked_after, true)) spawn(look_after(server));
  }
  std::shared_ptr<fetch> unpark(known_server& server) {
    std::shared_ptr<fetch> next = std::move(server.parked.front());
    server.parked.pop_front();
    transfer_counts::add(counts_.waiting, ~std::uint64_t{0});
    return next;
  }
  // Lets those go that the store lets go, and gives all up when it has been silent for too long.
  asio::awaitable<void> look_after(known_server& server) {
    asio::steady_timer timer(*context_);
    while (!server.parked.empty()) {
      if (server.parked.front()->end != fetch_end::pending) {
        static_cast<void>(unpark(server));
        continue;
      }
      const shared_store::view store = server.store->look(ran_ns());
      const bool is_away = store.now == store_state::condition::away;
      std::uint64_t wait = as_ns(look_interval_max) / 10;
      if (is_away || workers_ < limit_.now()) wait = admit(server, *server.parked.front()->state);
      if (wait == 0) {
        ++workers_;
        spawn(work(unpark(server)));
        continue;
      }
      if (is_away) give_up_late(server, store);
      timer.expires_after(std::min<std::chrono::nanoseconds>(std::chrono::nanoseconds(wait), look_interval_max));
      co_await timer.async_wait(answers);
    }
    server.is_looked_after = false;
  }
  // Each request has its patience, also where the store was silent before it came: what follows an optional one is asked for.
  [[nodiscard]] bool is_patience_over(const fetch& of, const known_server& server,
                                      const shared_store::view& store) const {
    return std::min(store.silent_ns, ran_ns() - of.state->wanted_ns) >= patience_ns(server, store);
  }
  void give_up_late(known_server& server, const shared_store::view& store) {
    for (std::size_t left = server.parked.size(); left > 0; --left) {
      const std::shared_ptr<fetch> each = unpark(server);
      if (each->end != fetch_end::pending) continue;
      if (!is_patience_over(*each, server, store)) {
        transfer_counts::add(counts_.waiting, 1);
        server.parked.push_back(each);
        continue;
      }
      each->why = str_cat(server.last_why.empty() ? "the server does not answer" : server.last_why,
                          " (nothing of use for ", store.silent_ns / 1'000'000'000, " s, and patience is at its end)");
      finish(*each, fetch_end::failed);
    }
  }

  void finish(fetch& ended, fetch_end how) {
    assert(ended.end == fetch_end::pending);
    ended.end = how;
    if (ended.whole_bytes_max == 0) transfer_counts::add(counts_.wait_ns, ran_ns() - ended.state->wanted_ns);
    ended_.push_back(ended.shared_from_this());
    if (ended_.size() == 1) asio::post(*context_, [this] { tell_ended(); });
    if (ended_.size() >= told_at_once) tell_ended();
  }
  // Those that have ended in one turn of the loop are told one after the other: who waits for them is woken once.
  void tell_ended() {
    for (const std::shared_ptr<fetch>& each : std::exchange(ended_, {})) each->ended(*each);
  }

  // In which bytes may come before they are late: all connections together have a rate that is little for one.
  [[nodiscard]] std::uint64_t time_of_bytes(std::size_t bytes) const {
    const double all = static_cast<double>(bytes) * static_cast<double>(std::max(active_.size(), std::size_t{1}));
    return static_cast<std::uint64_t>(all / patience_bytes_per_s * 1e9);
  }

  asio::awaitable<void> serve(std::shared_ptr<fetch> served) {
    fetch::progress& at = *served->state;
    if (served->end != fetch_end::pending) co_return at.admitted.end(&store_state::dropped);
    if (at.began_ns == 0) at.began_ns = ran_ns();
    known_server& server = server_of(at.at);
    for (;;) {
      const std::size_t before = served->bytes_received;
      const std::uint64_t asked_ns = ran_ns();
      step next = step::give_up;
      at.told = told_by_try::fails;
      try {
        next = co_await attempt(*served);
      } catch (const std::exception& failure) {
        served->why = failure.what();
      }
      if (served->bytes_received > before) at.told = told_by_try::answers;
      const bool is_of_store = next != step::give_up && !at.is_cancelled && served->end != fetch_end::cancelled;
      if (at.told == told_by_try::fails && !is_of_store) at.told = told_by_try::nothing;
      const bool is_over = served->end != fetch_end::pending || at.is_cancelled;
      if (next == step::again_now && !is_over && &server_of(at.at) == &server) continue;
      if (next == step::give_up && !is_over && at.is_remembered && begins_anew(*served)) {
        if (&server_of(at.at) == &server) continue;
        next = step::again_now;
      }
      tell_store(at);
      if (served->end != fetch_end::pending) co_return;
      if (at.is_cancelled) co_return finish(*served, fetch_end::cancelled);
      assert(next != step::over);
      if (next == step::again_now) co_return queue(std::move(served));
      if (next == step::give_up) co_return finish(*served, fetch_end::failed);
      if (next == step::await_keys) co_return await_keys(std::move(served));
      at.keys_since_ns = 0;
      ++at.tries_all;
      at.tries = served->bytes_received > before ? 1 : at.tries + 1;
      server.last_why = served->why;
      const shared_store::view store = server.store->look(ran_ns());
      const bool is_away = store.now == store_state::condition::away;
      const std::chrono::nanoseconds wait = wait_before(at);
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
      from_the_start(*served);
      at.was_begun_anew = false;
      transfer_counts::add(counts_.retries, 1);
      if (is_away) {
        park(server_of(at.at), std::move(served));
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
  // Full jitter: who failed together does not come back together.
  std::chrono::nanoseconds wait_before(fetch::progress& at) {
    const bool was_refused = at.told == told_by_try::refuses;
    const auto most = std::min<std::chrono::nanoseconds>(
        was_refused ? std::min<std::chrono::milliseconds>(retries_.wait_max, refused_wait_max) : retries_.wait_max,
        retries_.wait_first * (1U << std::min(at.tries - 1, 12U)));
    std::uniform_int_distribution<std::int64_t> some(0, most.count());
    const auto asked = std::chrono::nanoseconds(std::exchange(at.wait_at_least_ns, 0));
    return std::max(std::chrono::nanoseconds(some(random_)),
                    std::min<std::chrono::nanoseconds>(asked, retry_after_max));
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
        newest = lent_->now();
      } catch (const std::exception&) {
        // Patience ends.
      }
      for (std::shared_ptr<fetch>& each : std::exchange(awaiting_keys_, {})) {
        if (each->end != fetch_end::pending) continue;
        const fetch::progress& at = *each->state;
        const std::uint64_t now = ran_ns();
        if (now - at.keys_since_ns >= std::min(as_ns(retries_.keys_patience), at.patience.left_ns())) {
          each->why = str_cat(each->why, " after ", std::floor(static_cast<double>(now - at.keys_since_ns) / 1e8) / 10,
                              " s; see whether who lends them does so");
          finish(*each, fetch_end::failed);
        } else if (newest != nullptr && newest != at.signed_with) {
          transfer_counts::add(counts_.retries, 1);
          queue(std::move(each));
        } else {
          awaiting_keys_.push_back(std::move(each));
        }
      }
    }
    is_watching_keys_ = false;
  }

  // Where redirects have led may be an address that lasts for an hour, or a server that is gone.
  void from_the_start(fetch& wanted) {
    fetch::progress& at = *wanted.state;
    if (at.redirects == 0 && !at.is_remembered) return;
    moved_.erase(wanted.where);
    at.redirects = 0;
    at.is_remembered = false;
    at.at = *wanted.where;
  }
  // Once, so that it ends.
  bool begins_anew(fetch& wanted) {
    fetch::progress& at = *wanted.state;
    if ((at.redirects == 0 && !at.is_remembered) || std::exchange(at.was_begun_anew, true)) return false;
    from_the_start(wanted);
    return true;
  }

  std::unique_ptr<connection> take_idle(const address& to) {
    for (std::size_t i = idle_.size(); i-- > 0;) {
      if (!idle_[i]->to.is_same_server(to)) continue;
      std::unique_ptr<connection> taken = std::move(idle_[i]);
      idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
      return taken;
    }
    return nullptr;
  }
  void keep(std::unique_ptr<connection> used) {
    used->idle_since_ns = now_ns();
    used->received.clear();
    if (idle_.size() >= std::max(options_.connections_max, std::uint32_t{1})) idle_.erase(idle_.begin());
    idle_.push_back(std::move(used));
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
    if (active_.size() == 1) watching_->cancel();  // it may sleep for as long as connections are kept
  }
  asio::awaitable<void> watch() {
    unsigned ticks = 0;
    while (!active_.empty() || !idle_.empty()) {
      watching_->expires_after(active_.empty() && knocking_.empty() ? idle_time_max : watch_interval);
      co_await watching_->async_wait(answers);
      const std::uint64_t now = ran_ns();
      for (connection* const each : knocking_) {
        if (now - each->silent_since_ns < each->silence_max_ns) continue;
        each->is_late = true;
        each->close();
      }
      const std::vector<connection*> all = active_;  // asking a second time adds to it
      for (connection* const each : all) {
        if (!each->is_too_late(now)) {
          if (now - each->silent_since_ns > std::min(as_ns(low_water_time_max), each->silence_max_ns / 4))
            each->wake_at(1);
          if (each->serves != nullptr) ask_twice_if_slow(*each, now);
          continue;
        }
        each->is_late = true;
        error_code unknown;
        const tcp::endpoint silent = each->socket.remote_endpoint(unknown);
        if (!unknown) names_.is_dead(silent.address(), now_ns());
        each->close();
      }
      if (++ticks % 8 == 0) knock_at_silent_servers(now);
      std::erase_if(idle_,
                    [now = now_ns()](const auto& each) { return now - each->idle_since_ns > as_ns(idle_time_max); });
    }
    is_watching_ = false;
  }

  // A connection whose packets were lost for a while is repeated by the kernel ever more seldom: when a server that was silent on all of them
  // lets a new one in, those are given up.
  void knock_at_silent_servers(std::uint64_t now) {
    for (const auto& [name, server] : servers_) {
      if (server->is_knocked || now - server->knocked_ns < as_ns(retries_.server_silence) / 2) continue;
      const connection* asked = nullptr;
      std::uint64_t heard_ns = 0;
      for (const connection* const each : active_) {
        if (each->server != server.get()) continue;
        if (each->asked_ns != 0) asked = each;
        heard_ns = std::max(heard_ns, each->silent_since_ns);
      }
      for (const auto& each : idle_) {
        if (each->server == server.get()) heard_ns = std::max(heard_ns, each->silent_since_ns);
      }
      if (asked == nullptr || now - heard_ns < as_ns(retries_.server_silence)) {
        server->knocks_lost = 0;
        continue;
      }
      server->is_knocked = true;
      server->knocked_ns = now;
      spawn(knock(*server, asked->to));
    }
  }
  asio::awaitable<void> knock(known_server& server, address to) {
    const auto line = std::make_unique<connection>(*context_, to);
    line->silent_since_ns = ran_ns();
    line->silence_max_ns = as_ns(std::min(knock_time_max, retries_.server_silence));
    line->give_up_ns = ~std::uint64_t{0};
    knocking_.push_back(line.get());
    std::string why;
    bool is_open = false;
    try {
      is_open = co_await open(*line, why) == step::over;
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
    const std::uint64_t now = ran_ns();
    for (connection* const each : active_) {
      if (each->server != &server || now - each->silent_since_ns < as_ns(retries_.server_silence) / 2) continue;
      each->is_late = true;
      each->close();
    }
  }

  // What is later than 99 of 100 is asked for once more, what is missing of it, on a new connection. Whose answer has begun by the time
  // that the first one's is not over has the rest.
  void ask_twice_if_slow(connection& first, std::uint64_t now) {
    fetch& wanted = *first.serves;
    fetch::progress& at = *wanted.state;
    if (first.asked_ns == 0 || first.asked_bytes == 0 || at.is_asked_twice || at.is_cancelled ||
        wanted.end != fetch_end::pending || now - first.asked_ns <= slow_.late_ns(first.asked_bytes)) {
      return;
    }
    // They are beyond those that there is memory for: one for 16 of them.
    const std::size_t connections_max = limit_.now() + limit_.now() / 16 + 1;
    if (active_.size() >= connections_max) return;
    if (!slow_.may_ask_again_for(wanted.into.size() - wanted.bytes_received)) return;
    at.is_asked_twice = true;
    spawn(ask_twice(wanted.shared_from_this(), &first));
  }
  asio::awaitable<void> ask_twice(std::shared_ptr<fetch> wanted, const connection* first) try {
    fetch::progress& at = *wanted->state;
    const auto is_over = [&] { return wanted->end != fetch_end::pending || at.is_cancelled || at.in_use != first; };
    if (is_over()) co_return;
    auto line = std::make_unique<connection>(*context_, at.at);
    line->may_be_near = may_be_near(at);
    line->silent_since_ns = ran_ns();
    line->give_up_ns = first->give_up_ns;
    line->silence_max_ns = as_ns(std::min<std::chrono::milliseconds>(silence_max_, connect_time_max));
    transfer_counts::add(counts_.hedges, 1);
    std::optional<std::size_t> end;
    std::size_t from = 0;
    {
      const second_use used(*this, at, *line);
      std::string why;
      if (co_await open(*line, why) != step::over || is_over()) co_return;
      line->silence_max_ns = as_ns(silence_max_);
      from = wanted->bytes_received;
      const std::string request = request_of(*wanted, expected_of(*wanted));
      end = (co_await ask(*line, request, wanted->into.size() - from)).second;
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

  // Of a connection that broke.
  [[nodiscard]] static std::string words_of(const connection& broken, const error_code& failure, const char* when) {
    if (broken.is_late) return str_cat("no answer in time ", when);
    if (failure == asio::error::eof) {
      return str_cat("the server closed the connection ", when);
    }
    return str_cat(failure.message(), " ", when);
  }

  // With the first connection that needs it.
  const tls_context& tls() { return tls_ ? *tls_ : tls_.emplace(ca_file_); }

  // Others may have asked for it already.
  asio::awaitable<name_answer> look_up(const connection& of, const std::string& name) {
    asio::steady_timer timer(*context_);
    for (auto wait = std::chrono::milliseconds(1);; wait = std::min(2 * wait, look_up_interval_max)) {
      name_answer found = names_.ask(name, now_ns());
      if (found.what != name_answer::kind::pending || of.is_closed) co_return found;
      timer.expires_after(wait);
      co_await timer.async_wait(answers);
    }
  }

  // A server elsewhere that leads to this machine, to its link or to what a cloud answers there would have us ask what it cannot ask itself.
  static std::string leads_near(const address& to) {
    return str_cat("a redirect leads to ", to.host_header(),
                   ", of this machine or its link, which is not followed from elsewhere; if it is meant, give that "
                   "address");
  }
  static bool names_near(const address& to) {
    error_code failure;
    const asio::ip::address numbers = asio::ip::make_address(to.host, failure);
    return !failure && is_near(numbers);
  }
  [[nodiscard]] bool may_be_near(const fetch::progress& at) const {
    if (at.redirects > 0) return at.came_from_near;
    return !at.is_remembered || near_.contains(at.at.host_header());
  }

  // Names, TCP, TLS.
  asio::awaitable<step> open(connection& opened, std::string& why) {
    const address& to = opened.to;
    const proxy* const by = proxies_.on_the_way_to(to);
    if (by != nullptr && !by->refusal.empty()) {
      why = by->refusal;
      co_return step::give_up;
    }
    if (const step reached = co_await reach(opened, by, why); reached != step::over) co_return reached;
    transfer_counts::add(counts_.connections, 1);
    error_code failure;
    opened.socket.set_option(tcp::no_delay(true), failure);
    if (!to.tls) co_return step::over;
    if (by != nullptr) {
      if (const step led = co_await lead_through(opened, *by, why); led != step::over) co_return led;
    }
    co_return co_await begin_tls(opened, why);
  }
  // A connection to the server, or to who leads there.
  asio::awaitable<step> reach(connection& opened, const proxy* by, std::string& why) {
    const address& to = by == nullptr ? opened.to : by->at;
    error_code failure;
    std::vector<tcp::endpoint> endpoints;
    const asio::ip::address numbers = asio::ip::make_address(to.host, failure);
    const bool is_name = static_cast<bool>(failure);
    const std::string whose = by == nullptr ? "" : str_cat(", the proxy of ", by->variable);
    if (!is_name) {
      endpoints.emplace_back(numbers, to.port);
    } else {
      const name_answer found = co_await look_up(opened, to.host);
      if (opened.is_closed) {
        why = words_of(opened, asio::error::operation_aborted, "while the server's name was looked up");
        co_return step::again_later;
      }
      if (found.what == name_answer::kind::failed) {
        why = str_cat("the name of the server, ", to.host, whose, ", is not found: ", found.why);
        opened.has_no_such_name = found.is_unknown;
        co_return step::again_later;
      }
      for (const asio::ip::address& each : in_turns(found.addresses)) endpoints.emplace_back(each, to.port);
      opened.silent_since_ns = ran_ns();
    }
    if (!opened.may_be_near && by == nullptr)
      std::erase_if(endpoints, [](const auto& each) { return is_near(each.address()); });
    if (endpoints.empty()) {
      why = leads_near(to);
      co_return step::give_up;
    }
    const std::uint64_t began_ns = ran_ns();
    const error_code refused = co_await connect(opened, endpoints);
    opened.silent_since_ns = ran_ns();
    if (refused && is_name) names_.forget(to.host, now_ns());
    if (refused) {
      why = words_of(opened, refused, str_cat("while connecting to ", to.host_header(), whose).c_str());
      if (!is_for_want_of_descriptors(refused)) co_return step::again_later;
      why += more_descriptors;
      co_return make_room(began_ns);
    }
    if (by == nullptr && is_near(opened.socket.remote_endpoint(failure).address())) near_.insert(to.host_header());
    co_return step::over;
  }
  // RFC 9110 9.3.6.
  asio::awaitable<step> lead_through(connection& opened, const proxy& by, std::string& why) {
    const std::string to =
        str_cat(opened.to.host.find(':') == std::string::npos ? opened.to.host : str_cat("[", opened.to.host, "]"), ":",
                opened.to.port);
    const std::string request = str_cat("CONNECT ", to, " HTTP/1.1\r\nHost: ", to, "\r\n", lines_for(&by), "\r\n");
    const auto [failure, end] = co_await ask(opened, request, 0);
    opened.asked_ns = 0;
    const std::string whose = str_cat("the proxy of ", by.variable, ", ", by.at.host_header());
    if (!end) {
      why = words_of(opened, failure, str_cat("before ", whose, ", had led to ", to).c_str());
      co_return step::again_later;
    }
    const std::optional<http_head> head = parse_http_head(std::string_view(opened.received).substr(0, *end), why);
    const bool has_led = head && head->status >= 200 && head->status < 300 && opened.received.size() == *end;
    opened.received.clear();
    if (has_led) co_return step::over;
    if (head) {
      why = str_cat(whose, ", does not lead to ", to, ": ", head->status, " ", head->reason,
                    head->status == 407 ? words_of_user : "");
    }
    co_return head && head->status >= 500 ? step::again_later : step::give_up;
  }
  static std::string lines_for(const proxy* by) {
    if (by == nullptr || by->authorization.empty()) return {};
    return str_cat("Proxy-Authorization: ", by->authorization, "\r\n");
  }
  asio::awaitable<step> begin_tls(connection& opened, std::string& why) {
    const address& to = opened.to;
    error_code failure;
    static_cast<void>(asio::ip::make_address(to.host, failure));
    const bool is_name = static_cast<bool>(failure);
    opened.tls.emplace(tls(), opened.socket);
    if (!opened.tls->expect(to.host, is_name)) {
      why = str_cat("TLS does not take the name ", to.host);
      co_return step::give_up;
    }
    const error_code unsafe = co_await opened.tls->shake_hands();
    opened.silent_since_ns = ran_ns();
    if (!unsafe) co_return step::over;
    if (const char* const mistrust = opened.tls->mistrust(); mistrust != nullptr && !opened.is_late) {
      why = str_cat("the certificate of ", to.host, " is not trusted: ", mistrust,
                    "; if it is signed by an authority of your own, name that with ", spelled(option_id::ca_file));
      co_return step::give_up;
    }
    if (tls_session::is_without_tls(unsafe)) {
      why = str_cat(to.host_header(), " answers without TLS", without_tls());
      co_return step::give_up;
    }
    why = words_of(opened, unsafe, "while TLS began");
    // An alert of the server's comes again; a connection that broke may not.
    co_return tls_session::is_of_tls(unsafe) ? step::give_up : step::again_later;
  }

  static bool is_for_want_of_descriptors(const error_code& failure) {
    return failure == std::errc::too_many_files_open || failure == std::errc::too_many_files_open_in_system;
  }
  // Of descriptors: connections that are idle have theirs closed; else fewer are used from now on, as if the store had refused some. Where no other
  // one will give its own back, nothing is to be waited for.
  //   began_ns   when it was asked for
  step make_room(std::uint64_t began_ns) {
    if (!idle_.empty()) {
      idle_.clear();
      return step::again_now;
    }
    limit_.refused(began_ns, ran_ns());
    const bool is_alone =
        std::none_of(active_.begin(), active_.end(), [](const connection* each) { return each->socket.is_open(); });
    return is_alone ? step::give_up : step::lacks_room;
  }
  asio::awaitable<error_code> connect(connection& opened, const std::vector<tcp::endpoint>& endpoints) {
    connecting race(*context_);
    opened.opening = &race;
    const error_code refused = co_await race.run(
        endpoints, opened.socket, [this](const tcp::endpoint& silent) { names_.is_dead(silent.address(), now_ns()); });
    opened.opening = nullptr;
    co_return refused;
  }

  // A server that has said nothing since the client began is hardly there: it is not tried as long as one that was reached before.
  [[nodiscard]] step judge_opening(const connection& opened, step how, std::string& why) {
    known_server& known = server_of(opened.to);
    if (how == step::over) known.was_reached = true;
    if (how != step::again_later || !opened.is_late || known.was_reached) return how;
    const std::uint64_t now = ran_ns();
    const std::uint64_t silence_max_ns = as_ns(std::min<std::chrono::milliseconds>(silence_max_, connect_time_max));
    if (known.silent_since_ns == 0) known.silent_since_ns = now - opened.silence_max_ns;
    if (now - known.silent_since_ns < 2 * silence_max_ns) return how;
    str_append(why, ", and no other connection to it has come about", opened.to.tls ? without_tls() : "");
    return step::give_up;
  }

  // One request and its answer.
  asio::awaitable<step> attempt(fetch& wanted) {
    fetch::progress& at = *wanted.state;
    if (at.redirects == 0) {
      const auto moved = moved_.find(wanted.where);
      at.is_remembered = moved != moved_.end();
      if (at.is_remembered) at.at = moved->second;
    }
    std::unique_ptr<connection> line = take_idle(at.at);
    const bool was_idle = line != nullptr;
    if (!was_idle) line = std::make_unique<connection>(*context_, at.at);
    line->may_be_near = may_be_near(at);
    line->server = &server_of(at.at);
    line->place = {.answers_before = answers_, .beside = active_.size()};
    line->asked_ns = 0;
    line->silent_since_ns = ran_ns();
    line->give_up_ns =
        line->silent_since_ns + at.patience.left_ns() + time_of_bytes(wanted.into.size() - wanted.bytes_received);
    line->silence_max_ns =
        as_ns(was_idle                 ? silence_max_
              : at.admitted.is_probe() ? std::min<std::chrono::milliseconds>(silence_max_, knock_time_max)
                                       : std::min<std::chrono::milliseconds>(silence_max_, connect_time_max));
    bool is_reusable = false;
    const std::size_t bytes_before = wanted.bytes_received;
    step next = step::over;
    {
      const use used(*this, wanted, *line);
      if (!was_idle) {
        next = judge_opening(*line, co_await open(*line, wanted.why), wanted.why);
        line->silence_max_ns = as_ns(silence_max_);
        if (next == step::lacks_room) at.told = told_by_try::nothing;
        server_of(at.at).has_no_such_name = line->has_no_such_name;
      }
      if (wanted.end != fetch_end::pending) co_return step::over;
      if (next == step::over) next = co_await exchange(wanted, *line, was_idle, is_reusable);
      at.was_slow_store =
          line->is_late && at.tries < slow_tries_max && !line->place.is_overtaken(answers_, active_.size());
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
    if (is_reusable && line->socket.is_open()) keep(std::move(line));
    co_return next;
  }

  // A redirect is followed without a signature.
  [[nodiscard]] std::string request_of(const fetch& wanted, const object_facts* expected) {
    const address& to = wanted.state->at;
    const std::string host = to.host_header();
    std::string text;
    text.reserve(1'024);
    const proxy* const by = to.tls ? nullptr : proxies_.on_the_way_to(to);
    str_append(text, wanted.method, " ", by == nullptr ? "" : server_name(to), to.target, " HTTP/1.1\r\nHost: ", host,
               "\r\n", lines_for(by));
    std::vector<header_line> to_sign;
    to_sign.reserve(8);
    to_sign.push_back({"host", host});
    const bool is_whole = wants_whole(wanted, expected);
    if (is_whole) {
      constexpr std::string_view mode = "x-amz-checksum-mode";
      str_append(text, mode, ": ENABLED\r\n");
      to_sign.push_back({std::string(mode), "ENABLED"});
    } else if (wanted.whole_bytes_max == 0) {
      const std::string range =
          str_cat("bytes=", wanted.offset + wanted.bytes_received, "-", wanted.offset + wanted.into.size() - 1);
      str_append(text, "Range: ", range, "\r\n");
      to_sign.push_back({"range", range});
    }
    str_append(text, "Accept-Encoding: identity\r\nUser-Agent: leat/", LEAT_VERSION_MAJOR, ".", LEAT_VERSION_MINOR,
               "\r\n");
    if (to.is_same_server(*wanted.where)) {
      for (const header_line& each : wanted.headers) str_append(text, each.name, ": ", each.value, "\r\n");
    }
    for (const request_header& each : headers_) {
      if (to.is_same_server(each.server)) str_append(text, each.line.name, ": ", each.line.value, "\r\n");
    }
    if (wanted.is_signed && options_.requester_pays && to.is_same_server(*wanted.where)) {
      str_append(text, "x-amz-request-payer: requester\r\n");
      to_sign.push_back({"x-amz-request-payer", "requester"});
    }
    if (wanted.method != "GET") text += "Content-Length: 0\r\n";
    std::optional<std::int64_t>& signed_s = wanted.state->signed_s;
    signed_s.reset();
    wanted.state->signed_with.reset();
    if (wanted.is_signed && lent_) take_newest_keys();
    if (wanted.is_signed && signer_ && wanted.state->redirects == 0 && !wanted.state->is_remembered) {
      signed_s = skew_s_;
      wanted.state->signed_with = signed_with_;
      const std::string_view target = to.target;
      const std::size_t query = std::min(target.find('?'), target.size());
      for (const header_line& each :
           signer_->sign(target.substr(0, query), target.substr(std::min(query + 1, target.size())), std::move(to_sign),
                         static_cast<std::int64_t>(std::time(nullptr)) + *signed_s)) {
        str_append(text, each.name, ": ", each.value, "\r\n");
      }
    }
    if (expected != nullptr && is_strong(expected->etag)) str_append(text, "If-Match: ", expected->etag, "\r\n");
    return text += "\r\n";
  }

  // All of a store's object: asked for without a range, since it is then that a store tells its checksum.
  [[nodiscard]] static bool wants_whole(const fetch& wanted, const object_facts* expected) {
    return wanted.is_signed && wanted.whole_bytes_max == 0 && wanted.offset == 0 && wanted.bytes_received == 0 &&
           expected != nullptr && expected->size_bytes == wanted.into.size() && wanted.state->redirects == 0 &&
           !wanted.state->is_remembered;
  }

  // Bytes of two objects are never one range.
  [[nodiscard]] static const object_facts* expected_of(const fetch& wanted) {
    if (wanted.expected != nullptr) return wanted.expected;
    return wanted.bytes_received > 0 ? &*wanted.seen : nullptr;
  }

  static bool is_interim(std::string_view head) {
    return head.starts_with("HTTP/1.1 1") && !head.starts_with("HTTP/1.1 101");
  }

  // Sends a request, and receives the header of its answer: where that ends in what was received, or nothing.
  asio::awaitable<std::pair<error_code, std::optional<std::size_t>>> ask(connection& line, const std::string& request,
                                                                         std::uint64_t bytes) {
    transfer_counts::add(counts_.requests, 1);
    line.asked_ns = line.silent_since_ns = ran_ns();
    line.asked_bytes = bytes;
    line.wake_at(1);
    error_code failure;
    const std::size_t sent = line.send_now(request, failure);
    if (!failure && sent < request.size()) failure = co_await line.write(std::string_view(request).substr(sent));
    std::optional<std::size_t> end;
    std::string& received = line.received;
    received.clear();
    while (!failure && !end) {
      const std::size_t before = received.size();
      if (before >= http_head_bytes_max) break;
      received.resize(before + std::min(std::max(before, head_read_bytes), http_head_bytes_max - before));
      const auto [broken, bytes_more] =
          co_await line.read_some(asio::buffer(received.data() + before, received.size() - before), before > 0);
      received.resize(before + bytes_more);
      line.silent_since_ns = ran_ns();
      end = http_head_end(received, before);
      failure = broken;
      // RFC 9110 15.2: any number of answers that are not the answer may come first.
      while (end && is_interim(received)) {
        received.erase(0, *end);
        end = http_head_end(received);
      }
    }
    co_return std::pair(failure, end);
  }

  asio::awaitable<step> exchange(fetch& wanted, connection& line, bool was_idle, bool& is_reusable) {
    const object_facts* const expected = expected_of(wanted);
    const std::string request = request_of(wanted, expected);
    const bool is_range = wanted.whole_bytes_max == 0;
    const auto [failure, end] = co_await ask(line, request, is_range ? wanted.into.size() - wanted.bytes_received : 0);
    if (wanted.end != fetch_end::pending) co_return step::over;
    if (!end && line.received.size() >= http_head_bytes_max) {
      wanted.why = str_cat("its header is longer than ", http_head_bytes_max, " bytes");
      co_return step::give_up;
    }
    if (!end) {
      // Servers close connections that are idle, and may do so while a request is on its way.
      if (was_idle && line.received.empty() && !line.is_late) co_return step::again_now;
      wanted.why = words_of(line, failure, "before it had answered");
      co_return step::again_later;
    }
    co_return co_await take_answer(wanted, line, *end, expected, is_reusable);
  }

  //   end   of the header, in what was received
  asio::awaitable<step> take_answer(fetch& wanted, connection& line, std::size_t end, const object_facts* expected,
                                    bool& is_reusable) {
    const std::string& received = line.received;
    const std::optional<http_head> head = parse_http_head(std::string_view(received).substr(0, end), wanted.why);
    if (!head) co_return step::give_up;
    wanted.state->told = told_by(head->status);
    if (wanted.whole_bytes_max > 0 && head->status == 200)
      co_return co_await receive_text(wanted, line, *head, is_reusable);
    const std::string_view rest = std::string_view(received).substr(end);
    if (head->status == 206 || head->status == 200) {
      co_return co_await receive(wanted, line, *head, rest, expected, is_reusable);
    }
    if (wanted.state->told == told_by_try::refuses) transfer_counts::add(counts_.refusals, 1);
    // A store's code is in its error's words. Where they are too many, or do not come, the status alone is judged.
    const std::string words = co_await receive_words(wanted, line, *head, rest, is_reusable);
    if (wanted.end != fetch_end::pending) co_return step::over;
    const std::string code = s3_error_code(words);
    if (code.starts_with("ExpiredToken") && wanted.state->signed_with &&
        lent_->have_expired(wanted.state->signed_with)) {
      wanted.why = "the store says that its keys have expired, and no others that it takes have come";
      co_return step::await_keys;
    }
    if (head->status == 403 && correct_clock(*wanted.state, *head)) co_return step::again_now;
    const step judged = judge(wanted, *head, code, expected);
    if (judged == step::give_up && head->status == 400) add_words_of_store(wanted, words, request_of(wanted, expected));
    co_return judged;
  }

  // Words that repeat what was sent may hold a key or a signature.
  static bool repeats(std::string_view message, std::string_view request) {
    constexpr std::size_t secret_bytes_min = 12;
    for (std::size_t begin = 0, end = 0; begin < message.size(); begin = end + 1) {
      end = std::min(message.find_first_of(" \t\r\n'\"&?=;,:", begin), message.size());
      const std::string_view word = message.substr(begin, end - begin);
      if (word.size() >= secret_bytes_min && request.find(word) != std::string_view::npos) return true;
    }
    return false;
  }
  static void add_words_of_store(fetch& wanted, std::string_view words, std::string_view request) {
    const std::string region = s3_error_text(words, "Region");
    const std::string message = s3_error_text(words, "Message");
    if (!message.empty() && !repeats(message, request)) str_append(wanted.why, ": ", message);
    if (is_region(region)) str_append(wanted.why, "; the bucket is in the region ", region, "; give that as region");
  }

  void take_newest_keys() {
    std::shared_ptr<const access_keys> newest = lent_->now();
    if (newest == signed_with_) return;
    signer_.emplace(*newest, region_);
    signed_with_ = std::move(newest);
  }

  // A store refuses signatures of another time than its own, by a quarter of an hour: its clock is taken, once by each fetch. Others were
  // on their way with the old one.
  bool correct_clock(fetch::progress& at, const http_head& head) {
    constexpr std::int64_t skew_min_s = 60;
    if (!at.signed_s || at.is_clock_corrected) return false;
    if (*at.signed_s == skew_s_) {
      if (!head.date_unix_s) return false;
      const std::int64_t skew_s = *head.date_unix_s - static_cast<std::int64_t>(std::time(nullptr));
      if (std::abs(skew_s - skew_s_) < skew_min_s) return false;
      skew_s_ = skew_s;
    }
    return at.is_clock_corrected = true;
  }

  [[nodiscard]] static told_by_try told_by(unsigned status) {
    if (status == 503 || status == 429) return told_by_try::refuses;
    return status >= 500 || status == 408 ? told_by_try::fails : told_by_try::answers;
  }

  // What an answer without bytes means.
  //   code   of a store: "AccessDenied"; may be empty
  step judge(fetch& wanted, const http_head& head, const std::string& code, const object_facts* expected) {
    fetch::progress& at = *wanted.state;
    const std::string said =
        str_cat(head.status, head.reason.empty() ? "" : " ", head.reason, code.empty() ? "" : ", ", code);
    const auto over = [&](fetch_end how, std::string why) {
      wanted.why = std::move(why);
      finish(wanted, how);
      return step::over;
    };
    if (head.status >= 400 && head.status < 500 && head.status != 408 && head.status != 429 && begins_anew(wanted)) {
      return step::again_now;
    }
    switch (head.status) {
      case 301:
      case 302:
      case 303:
      case 307:
      case 308: {
        const std::optional<address> next = follow(at.at, head.location);
        if (!next && wanted.is_signed && !head.bucket_region.empty()) {
          return over(fetch_end::refused,
                      str_cat(said, ": the bucket is in the region ", head.bucket_region, "; give that as region"));
        }
        if (!next || (!next->tls && !options_.allow_http)) {
          return over(fetch_end::refused, str_cat(said, ", to an address that is not followed"));
        }
        at.came_from_near = near_.contains(at.at.host_header());
        if (!at.came_from_near && (names_near(*next) || near_.contains(next->host_header())))
          return over(fetch_end::refused, str_cat(said, ": ", leads_near(*next)));
        if (++at.redirects > redirects_max)
          return over(fetch_end::refused, str_cat("more than ", redirects_max, " redirects"));
        at.at = *next;
        return step::again_now;
      }
      case 401:
      case 403:
        return over(fetch_end::refused, str_cat(said,
                                                ": reading it is not allowed; check the address and, if it is signed, "
                                                "whether that has expired"));
      case 404:
      case 410:
        return over(fetch_end::missing, str_cat(said, ": there is no such object; check the address"));
      case 412:
        return over(fetch_end::changed, said);
      case 416: {
        const std::optional<content_range> range = parse_content_range(head.content_range);
        const bool tells_size = range && !range->is_satisfied && range->total;
        if (tells_size) wanted.seen = object_facts{*range->total, head.etag, head.last_modified, head.date_unix_s};
        if (expected != nullptr &&
            (wanted.bytes_received > 0 || (tells_size && *range->total != expected->size_bytes))) {
          return over(fetch_end::changed, said);
        }
        if (tells_size && *range->total > wanted.offset)
          return over(fetch_end::refused, str_cat(said, ", though it is longer"));
        return over(fetch_end::short_of, said);
      }
      default:
        break;
    }
    wanted.why = head.status == 407 ? str_cat(said, words_of_user) : said;
    if (code == "SlowDown") at.told = told_by_try::refuses;
    if (head.status == 408 || head.status == 429 || head.status >= 500 || code == "SlowDown" ||
        code == "RequestTimeout") {
      at.wait_at_least_ns = std::min<std::uint64_t>(head.retry_after_s, 3600) * 1'000'000'000;
      return step::again_later;
    }
    return step::give_up;
  }

  asio::awaitable<step> receive_text(fetch& wanted, connection& line, const http_head& head, bool& is_reusable) {
    http_text text(wanted.whole_bytes_max);
    http_text::state now = text.feed(line.received);
    std::vector<char> more(std::size_t{64} << 10);
    while (now == http_text::state::more) {
      const auto [broken, bytes] = co_await line.read_some(asio::buffer(more), true);
      line.silent_since_ns = ran_ns();
      if (wanted.end != fetch_end::pending) co_return step::over;
      if (broken) {
        wanted.why = words_of(line, broken, "before its answer's end");
        co_return step::again_later;
      }
      now = text.feed({more.data(), bytes});
    }
    if (now == http_text::state::refused) {
      wanted.why = text.refusal();
      co_return step::give_up;
    }
    wanted.whole = text.take();
    is_reusable = head.keeps_alive && !text.has_excess();
    finish(wanted, fetch_end::whole);
    co_return step::over;
  }

  // An error's text, of a length that is said or in chunks. Where neither is, what came with the head: some servers send no text then,
  // and leave the connection open.
  asio::awaitable<std::string> receive_words(fetch& wanted, connection& line, const http_head& head,
                                             std::string_view rest, bool& is_reusable) {
    http_text text(error_body_bytes_max);
    http_text::state now = text.feed(line.received);
    std::vector<char> more(head_read_bytes);
    const bool has_end = head.is_chunked || head.content_bytes;
    while (has_end && now == http_text::state::more) {
      const auto [broken, bytes] = co_await line.read_some(asio::buffer(more), true);
      line.silent_since_ns = ran_ns();
      if (wanted.end != fetch_end::pending || broken) break;
      now = text.feed({more.data(), bytes});
    }
    is_reusable = now == http_text::state::whole && head.keeps_alive && !text.has_excess();
    if (now == http_text::state::refused) co_return std::string(rest);
    co_return text.take();
  }

  // A body, straight to where it is wanted, and never a byte beyond.
  asio::awaitable<step> receive(fetch& wanted, connection& line, const http_head& head, std::string_view rest,
                                const object_facts* expected, bool& is_reusable) {
    fetch::progress& at = *wanted.state;
    const std::uint64_t begin = wanted.offset + wanted.bytes_received;
    const std::uint64_t end = wanted.offset + wanted.into.size();
    if (!head.content_encoding.empty() && head.content_encoding != "identity") {
      wanted.why = "the server sends it compressed, though that was not asked for";
      co_return step::give_up;
    }
    if (head.is_chunked || !head.content_bytes) {
      wanted.why = "the server does not say how many bytes it sends";
      co_return step::give_up;
    }
    std::uint64_t bytes = *head.content_bytes;
    std::optional<std::uint64_t> total;
    if (head.status == 200) {
      // The object whole: right where that was wanted.
      if (begin == 0 && expected != nullptr && expected->size_bytes == end && bytes != end) {
        wanted.why = "the server has another one now";
        finish(wanted, fetch_end::changed);
        co_return step::over;
      }
      if (begin != 0 || bytes > end) {
        wanted.why =
            "the server answers a request for a range with the whole object; leat reads ranges: use another server, or "
            "copy it";
        // One that had ranges when the object was opened has them again: SeaweedFS was seen to forget one of 140,000.
        co_return expected == nullptr ? step::give_up : step::again_later;
      }
      total = bytes;
    } else {
      const std::optional<content_range> range = parse_content_range(head.content_range);
      // Where it does not say the size, the one that it had holds: what comes is still compared with the tag and the end.
      if (range) total = range->total;
      if (!total && expected != nullptr) total = expected->size_bytes;
      if (!range || !range->is_satisfied || range->first != begin || range->last >= end ||
          range->last - range->first + 1 != bytes || (range->last + 1 < end && total && range->last + 1 != *total)) {
        wanted.why = str_cat("the server sends another range (", redacted_range(head.content_range), ") than bytes ",
                             begin, "-", end - 1);
        co_return step::give_up;
      }
    }
    if (total) {
      object_facts seen{*total, head.etag, head.last_modified, head.date_unix_s};
      if (expected != nullptr && !is_the_same(seen, *expected)) {
        wanted.why = "the server has another one now";
        finish(wanted, fetch_end::changed);
        co_return step::over;
      }
      wanted.seen = std::move(seen);
    } else {
      wanted.why = "the server does not say how large the object is";
      co_return step::give_up;
    }
    if (rest.size() > bytes) {
      wanted.why = "the server sends more bytes than it says";
      co_return step::give_up;
    }
    // Of a part of it the sum says nothing.
    if (wanted.offset == 0 && wanted.bytes_received == 0) {
      at.sum = *total == wanted.into.size() ? object_sum_of(head) : std::nullopt;
    }
    const std::size_t received_before = wanted.bytes_received;
    std::memcpy(wanted.into.data() + wanted.bytes_received, rest.data(), rest.size());
    wanted.bytes_received += rest.size();
    bytes -= rest.size();
    error_code failure;
    at.writes = true;
    // Not asio::async_read, which asks for 64 KiB at most: 2.2 times the CPU for reads of a MiB.
    while (bytes > 0 && !failure) {
      const auto [broken, some] =
          co_await line.read_some(asio::buffer(wanted.into.data() + wanted.bytes_received, bytes), true);
      wanted.bytes_received += some;
      bytes -= some;
      failure = broken;
      line.silent_since_ns = ran_ns();
      line.wake_at(bytes);
    }
    at.writes = false;
    transfer_counts::add(counts_.bytes, wanted.bytes_received - received_before);
    if (bytes > 0) {
      wanted.why = words_of(line, failure, str_cat(bytes, " bytes before its answer's end").c_str());
      co_return step::again_later;
    }
    if (at.sum && !at.sum->is_of(wanted.into)) {
      wanted.why = str_cat("its bytes are not those that the store's ", at.sum->name(), " is of");
      wanted.bytes_received = 0;
      if (++at.mismatches < mismatches_max) co_return step::again_later;
      str_append(wanted.why, ", ", at.mismatches, " times; see whether the object is damaged, and put it anew");
      finish(wanted, fetch_end::damaged);
      co_return step::over;
    }
    const std::uint64_t took_ns = ran_ns() - line.asked_ns;
    slow_.add(line.asked_bytes, took_ns);
    limit_.answered(took_ns);
    employ();
    is_reusable = head.keeps_alive;
    if (at.redirects > 0) remember(wanted);
    finish(wanted, wanted.bytes_received == wanted.into.size() ? fetch_end::whole : fetch_end::short_of);
    co_return step::over;
  }
  static std::string redacted_range(std::string_view text) {
    std::string shown(text.substr(0, 60));
    std::replace_if(shown.begin(), shown.end(), [](char letter) { return letter < 0x20 || letter > 0x7E; }, '?');
    return shown.empty() ? "no Content-Range" : shown;
  }
  void remember(const fetch& found) {
    constexpr std::size_t moved_max = 65'536;
    if (moved_.size() < moved_max) moved_.insert_or_assign(found.where, found.state->at);
  }

  const remote_options options_;
  const retry_options retries_;
  transfer_counts own_counts_;
  transfer_counts& counts_;
  name_answers& names_;
  const proxies proxies_ = proxies::of_environment();
  const std::chrono::milliseconds silence_max_;
  connection_limit limit_;
  slow_answers slow_;
  std::shared_ptr<renewed_keys> lent_;  // null: the signer's are for good
  std::string region_;
  std::string ca_file_;
  std::vector<request_header> headers_;
  std::shared_ptr<const access_keys> signed_with_;  // of those that are lent
  std::optional<sigv4_signer> signer_;
  std::int64_t skew_s_ = 0;
  std::optional<tls_context> tls_;  // none: nobody has asked for it
  std::deque<std::shared_ptr<fetch>> waiting_;
  std::vector<std::shared_ptr<fetch>> awaiting_keys_;
  std::vector<std::shared_ptr<fetch>> ended_;  // and not told
  bool is_watching_keys_ = false;
  std::uint32_t workers_ = 0;
  std::uint64_t answers_ = 0;  // of use
  std::vector<connection*> active_;
  std::vector<connection*> knocking_;
  absl::flat_hash_map<const address*, address> moved_;                       // where redirects have led
  absl::flat_hash_set<std::string> near_;                                    // servers that is_near(), by host_header()
  absl::flat_hash_map<std::string, std::unique_ptr<known_server>> servers_;  // by scheme, name and port
  bool is_watching_ = false;
  std::minstd_rand random_{static_cast<std::minstd_rand::result_type>(ran_ns())};
  std::unique_ptr<asio::io_context> context_;
  std::unique_ptr<posted_calls> calls_;
  std::unique_ptr<asio::steady_timer> watching_;
  std::vector<std::unique_ptr<connection>> idle_;
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

}  // namespace leat::io

#include "io/remote/store_probe.hpp"

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "io/remote/http_client.hpp"
#include "io/remote/s3.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace leat::io {
namespace {

struct probed_object {
  address where;
  std::optional<s3_access> store;
};

errc kind_of(fetch_end end) {
  switch (end) {
    case fetch_end::missing:
      return errc::not_found;
    case fetch_end::refused:
      return errc::permission;
    case fetch_end::changed:
      return errc::changed;
    default:
      return errc::io;
  }
}

std::string said_of(const fetch& ended) {
  if (!ended.why.empty()) return ended.why;
  return ended.end == fetch_end::short_of ? "it ends before the size that the server has told"
                                          : "the server told no size";
}

/// Fetches over a client of its own, as many at a time as it has connections, until time or bytes are spent.
class fetching {
 public:
  fetching(const probed_object& object, const object_facts* known, const remote_options& options,
           std::uint32_t connections)
      : object_(object), known_(known), connections_(connections) {
    remote_options own = options;
    own.connections_max = connections;
    own.patience = std::min(options.patience, std::chrono::milliseconds(std::chrono::seconds(10)));
    client_.emplace(own, retry_options{.tries_max = 3}, object.store ? &*object.store : nullptr);
  }

  struct limits {
    std::uint64_t bytes_each = 0;
    std::uint64_t fetches = ~std::uint64_t{0};
    std::uint64_t bytes = ~std::uint64_t{0};
    std::chrono::milliseconds time = std::chrono::hours(1);
  };
  /// From place to place of the object, in no order that a server or a drive could foresee.
  ///   each_s   how long each of them took
  ///   throws   the error of the first that failed
  measured_rate run(const limits& most, std::vector<double>* each_s = nullptr) {
    most_ = most;
    const std::uint64_t size = known_ != nullptr ? known_->size_bytes : most.bytes_each;
    bytes_each_ = std::max<std::uint64_t>(std::min(most.bytes_each, size), 1);
    places_ = std::max<std::uint64_t>(size / bytes_each_, 1);
    result_ = {.connections = connections_, .bytes_each = bytes_each_};
    each_s_ = each_s;
    began_ns_ = now_ns();
    std::vector<std::shared_ptr<fetch>> first;
    {
      const mutex_lock lock(mutex_);
      for (std::uint32_t i = 0; i < connections_; ++i) {
        auto made = std::make_shared<one>();
        made->all = this;
        made->memory.resize(bytes_each_);
        made->ended = [](fetch& done) noexcept { static_cast<one&>(done).all->end(static_cast<one&>(done)); };
        if (prepare(*made)) first.push_back(made);
      }
      running_ = first.size();
    }
    client_->start(std::move(first));
    {
      mutex_lock lock(mutex_);
      while (running_ != 0) idle_.wait(mutex_);
    }
    result_.seconds = static_cast<double>(now_ns() - began_ns_) / 1e9;
    if (failed_) throw *failed_;
    return result_;
  }
  [[nodiscard]] const std::optional<object_facts>& seen() const noexcept { return seen_; }

 private:
  struct one final : fetch {
    fetching* all = nullptr;
    std::vector<std::byte> memory;
    std::uint64_t started_ns = 0;
  };

  bool prepare(one& next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::uint64_t now = now_ns();
    const bool is_over = failed_ || started_ >= most_.fetches || started_ * bytes_each_ >= most_.bytes ||
                         (started_ > 0 && now - began_ns_ > static_cast<std::uint64_t>(most_.time.count()) * 1'000'000);
    if (is_over) return false;
    // The golden ratio's multiples: near no place that was read a moment ago.
    const std::uint64_t place = (started_ * 0x9E3779B97F4A7C15U >> 20U) % places_;
    ++started_;
    next.where = &object_.where;
    next.is_signed = object_.store.has_value();
    next.expected = known_;
    next.offset = place * bytes_each_;
    next.into = next.memory;
    next.end = fetch_end::pending;
    next.bytes_received = 0;
    next.state = nullptr;
    next.started_ns = now;
    return true;
  }
  // The client's thread.
  void end(one& done) noexcept {
    std::vector<std::shared_ptr<fetch>> next;
    {
      const mutex_lock lock(mutex_);
      if (done.seen && !seen_) seen_ = done.seen;
      if (done.end == fetch_end::whole) {
        ++result_.fetches;
        result_.bytes += done.bytes_received;
        if (each_s_ != nullptr) each_s_->push_back(static_cast<double>(now_ns() - done.started_ns) / 1e9);
      } else if (!failed_) {
        failed_.emplace(kind_of(done.end), said_of(done));
      }
      // A fetch that has ended is the client's until this returns: the next one has its memory, and is another one.
      auto again = std::make_shared<one>();
      again->all = this;
      again->memory = std::move(done.memory);
      again->ended = done.ended;
      if (prepare(*again)) {
        next.push_back(std::move(again));
      } else if (--running_ == 0) {
        idle_.notify_one();
      }
    }
    if (!next.empty()) client_->start(std::move(next));
  }

  const probed_object& object_;
  const object_facts* const known_;
  const std::uint32_t connections_;
  limits most_;
  std::uint64_t bytes_each_ = 1;
  std::uint64_t places_ = 1;
  std::uint64_t began_ns_ = 0;
  mutex mutex_;
  condition_variable idle_;
  std::uint64_t started_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<error> failed_;  // Written under the mutex, read after the last fetch; likewise what follows.
  std::optional<object_facts> seen_;
  measured_rate result_;
  std::vector<double>* each_s_ = nullptr;
  std::optional<http_client> client_;  // Its thread ends before what it refers to.
};

probed_object find(const std::string& asked, const remote_options& options, store_facts& facts) {
  probed_object found;
  if (is_s3(asked)) {
    found.store = find_s3_access(options);
    found.where = address_of(parse_s3_name(asked), *found.store);
    facts.keys_from = found.store->keys_from;
    facts.region = found.store->region;
  } else {
    found.where = parse_address(asked);
    if (!found.where.tls && !options.allow_http)
      throw error(errc::usage,
                  str_cat("what comes over http:// can be read and changed on its way; give https://, or ",
                          spelled(option_id::allow_http)),
                  option_id::allow_http);
  }
  facts.server = str_cat(found.where.tls ? "https://" : "http://", found.where.host_header());
  return found;
}

}  // namespace

store_facts look_at_store(const std::string& asked, const remote_options& options, const probe_effort& effort) {
  store_facts facts;
  facts.address = redacted(asked);
  try {
    const probed_object object = find(asked, options, facts);
    object_facts known;
    {
      fetching first(object, nullptr, options, 1);
      const measured_rate one = first.run({.bytes_each = 1, .fetches = 1});
      facts.first_s = one.seconds;
      if (!first.seen()) throw error(errc::io, "the server does not say how large it is");
      known = *first.seen();
    }
    facts.size_bytes = known.size_bytes;
    facts.is_versioned = known.version(object.where) != 0;
    {
      fetching small(object, &known, options, 1);
      // The first one has the connection to make.
      facts.bytes += small.run({.bytes_each = effort.latency_bytes, .fetches = 1}).bytes;
      facts.bytes += small
                         .run({.bytes_each = effort.latency_bytes,
                               .fetches = 1 + std::uint64_t{effort.latencies},
                               .time = effort.time_each},
                              &facts.latencies_s)
                         .bytes;
      std::sort(facts.latencies_s.begin(), facts.latencies_s.end());
    }
    const auto rate_of = [&](std::uint32_t connections, std::uint64_t bytes_each) {
      fetching all(object, &known, options, connections);
      const measured_rate made =
          all.run({.bytes_each = bytes_each, .bytes = effort.bytes_each, .time = effort.time_each});
      facts.bytes += made.bytes;
      return made;
    };
    for (const std::uint32_t connections : effort.connections)
      facts.by_blocks.push_back(rate_of(connections, effort.block_bytes));
    if (!effort.connections.empty()) facts.by_samples = rate_of(effort.connections.back(), effort.sample_bytes);
  } catch (const error& failed) {
    facts.failure = failed.what();
    facts.failure_kind = failed.code();
  }
  return facts;
}

}  // namespace leat::io

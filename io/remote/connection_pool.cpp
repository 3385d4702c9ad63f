#include "io/remote/connection_pool.hpp"

#include <algorithm>
#include <utility>

namespace leat::io {
namespace {

// How long bytes of a body are waited for before they are read.
constexpr std::uint64_t low_water_time_max_ns = 100'000'000;

}  // namespace

std::unique_ptr<http_connection> connection_pool::take_idle(const address& to) {
  const auto found =
      std::find_if(idle_.rbegin(), idle_.rend(), [&](const auto& each) { return each->to.is_same_server(to); });
  if (found == idle_.rend()) return nullptr;
  std::unique_ptr<http_connection> taken = std::move(*found);
  idle_.erase(std::next(found).base());
  return taken;
}

void connection_pool::keep(std::unique_ptr<http_connection> used, std::uint64_t now_ns) {
  used->idle_since_ns = now_ns;
  used->received.clear();
  if (idle_.size() >= std::max(idle_max_, std::size_t{1})) idle_.erase(idle_.begin());
  idle_.push_back(std::move(used));
}

void connection_pool::close_old(std::uint64_t now_ns) {
  constexpr auto most = static_cast<std::uint64_t>(std::chrono::nanoseconds(idle_time_max).count());
  std::erase_if(idle_, [&](const auto& each) { return now_ns - each->idle_since_ns > most; });
}

bool connection_pool::close_idle() { return !std::exchange(idle_, {}).empty(); }

bool connection_pool::has_open() const {
  return std::any_of(active_.begin(), active_.end(), [](const auto* each) { return each->socket.is_open(); });
}

void connection_pool::watch(std::uint64_t ran_ns, const std::function<void(http_connection&)>& late,
                            const std::function<void(http_connection&)>& others) {
  const std::vector<http_connection*> all = active_;
  for (http_connection* const each : all) {
    if (each->is_too_late(ran_ns)) {
      each->is_late = true;
      late(*each);
      each->close();
      continue;
    }
    if (ran_ns - each->silent_since_ns > std::min(low_water_time_max_ns, each->silence_max_ns / 4)) each->wake_at(1);
    others(*each);
  }
}

connection_pool::silence connection_pool::of(const known_server& server) const {
  silence made;
  for (const http_connection* const each : active_) {
    if (each->server != &server) continue;
    if (each->asked_ns != 0) made.asked = each;
    made.heard_ns = std::max(made.heard_ns, each->silent_since_ns);
  }
  for (const auto& each : idle_) {
    if (each->server == &server) made.heard_ns = std::max(made.heard_ns, each->silent_since_ns);
  }
  return made;
}

void connection_pool::close_silent(const known_server& server, std::uint64_t ran_ns, std::uint64_t silent_ns) {
  for (http_connection* const each : active_) {
    if (each->server == &server && ran_ns - each->silent_since_ns >= silent_ns) each->close_late();
  }
}

}  // namespace leat::io

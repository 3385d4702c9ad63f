#include "io/remote/retry_rules.hpp"

#include <algorithm>

namespace leat::io {
namespace {

// Of what one request waits for alone, where others are answered.
constexpr auto refused_wait_max = std::chrono::milliseconds(250);
constexpr auto retry_after_max = std::chrono::seconds(20);

}  // namespace

told_by_try told_by_status(unsigned status) noexcept {
  if (status == 503 || status == 429) return told_by_try::refuses;
  return status >= 500 || status == 408 ? told_by_try::fails : told_by_try::answers;
}

store_state::pauses retry_rules::pauses() const {
  const auto most = std::min<std::chrono::nanoseconds>(options_.wait_max, std::chrono::seconds(1));
  return {as_ns(options_.wait_first), as_ns(most)};
}

std::uint64_t retry_rules::patience_ns(bool has_answered, bool has_no_such_name) const {
  const std::uint64_t all = as_ns(patience_);
  if (has_answered) return all;
  return std::min(all, as_ns(has_no_such_name ? options_.unknown_patience : options_.unreached_patience));
}

bool retry_rules::is_patience_over(std::uint64_t asked_for_ns, const shared_store::view& store,
                                   bool has_no_such_name) const {
  return std::min(store.silent_ns, asked_for_ns) >= patience_ns(store.has_answered, has_no_such_name);
}

std::chrono::nanoseconds retry_rules::pause(std::uint32_t tries, bool was_refused, std::uint64_t least_ns) {
  const auto most = std::min<std::chrono::nanoseconds>(
      was_refused ? std::min<std::chrono::milliseconds>(options_.wait_max, refused_wait_max) : options_.wait_max,
      options_.wait_first * (1U << std::min(tries - 1, 12U)));
  std::uniform_int_distribution<std::int64_t> some(0, most.count());
  return std::max(std::chrono::nanoseconds(some(random_)),
                  std::min<std::chrono::nanoseconds>(std::chrono::nanoseconds(least_ns), retry_after_max));
}

}  // namespace leat::io

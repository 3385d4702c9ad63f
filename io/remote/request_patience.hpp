// How long one request is asked for anew without use, of a store that others have use of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace leat::io {

/// Only what its own tries took, and the pauses that it made between them, use it up: not what it waited for its turn, and not what the store,
/// away, throttled or slow, has cost. So a client, a store or a machine that is overloaded ends none of many requests.
class request_patience {
 public:
  explicit request_patience(std::uint64_t all_ns) : all_ns_(all_ns) {}

  [[nodiscard]] std::uint64_t left_ns() const noexcept { return all_ns_ - std::min(all_ns_, used_ns_); }
  [[nodiscard]] bool is_over() const noexcept { return used_ns_ >= all_ns_; }
  /// By a try, or by a pause.
  void use(std::uint64_t ns) noexcept { used_ns_ += std::min(ns, left_ns()); }

 private:
  std::uint64_t all_ns_;
  std::uint64_t used_ns_ = 0;
};

/// A request's place among those of its client: one that is silent is ignored where others that came later are answered; else the store is slow.
struct place_in_line {
  std::uint64_t answers_before = 0;  // of the client, when it was asked
  std::size_t beside = 0;            // that were under way then

  /// By twice as many as are under way, at the least: of the answers since then, only those can be to earlier ones.
  [[nodiscard]] bool is_overtaken(std::uint64_t answers_now, std::size_t beside_now) const noexcept {
    return answers_now - answers_before >= 3 * std::max({beside, beside_now, std::size_t{1}});
  }
};

}  // namespace leat::io

// When a request is asked anew, and for how long: what a client waits between tries, and when its patience is over.
#pragma once

#include "io/remote/request_patience.hpp"
#include "io/remote/shared_store.hpp"

#include <chrono>
#include <cstdint>
#include <random>

namespace leat::io {

class name_answers;

/// What is tried again and when; tests want to wait for less.
struct retry_options {
  std::uint32_t tries_max = ~std::uint32_t{0};  ///< without a byte between them
  std::chrono::milliseconds wait_first = std::chrono::milliseconds(5);
  std::chrono::milliseconds wait_max = std::chrono::seconds(1);             ///< where the store does not ask for more
  std::chrono::milliseconds unreached_patience = std::chrono::seconds(20);  ///< with a server that never answered
  /// After so long without a byte of a server that is asked, a connection of its own looks whether it is there.
  std::chrono::milliseconds server_silence = std::chrono::seconds(2);
  std::chrono::milliseconds unknown_patience = std::chrono::seconds(5);  ///< where its name is not known either
  name_answers* names = nullptr;  ///< that servers are looked up by; null: the process's
  std::chrono::milliseconds keys_patience =
      std::chrono::minutes(1);  ///< with a provider of keys, once they have expired
  std::chrono::milliseconds others_patience =
      std::chrono::seconds(10);  ///< with a block of a cache that another one fills
};

/// What the last try of a fetch says of its store.
enum class told_by_try : std::uint8_t { nothing, answers, refuses, fails };

/// By an answer's status alone.
[[nodiscard]] told_by_try told_by_status(unsigned status) noexcept;

[[nodiscard]] inline std::uint64_t as_ns(std::chrono::nanoseconds time) noexcept {
  return static_cast<std::uint64_t>(time.count());
}

/// Without a clock: times are nanoseconds that whoever asks has measured. Thread: one.
class retry_rules {
 public:
  ///   patience   with a store that answers nothing of use
  retry_rules(const retry_options& options, std::chrono::milliseconds patience, std::uint64_t seed)
      : options_(options), patience_(patience), random_(static_cast<std::minstd_rand::result_type>(seed)) {}

  /// Between two requests that ask whether a store is back.
  [[nodiscard]] store_state::pauses pauses() const;
  /// How long a store may be silent, one that never answered less, and one whose name is not known least.
  [[nodiscard]] std::uint64_t patience_ns(bool has_answered, bool has_no_such_name) const;
  /// Each request has its patience, also where the store was silent before it came: what follows an optional one is asked for.
  ///   asked_for_ns   since it was wanted
  [[nodiscard]] bool is_patience_over(std::uint64_t asked_for_ns, const shared_store::view& store,
                                      bool has_no_such_name) const;
  /// Before the next try. Full jitter: who failed together does not come back together.
  ///   tries      without a byte between them; 1 at least
  ///   least_ns   as the store asks for
  [[nodiscard]] std::chrono::nanoseconds pause(std::uint32_t tries, bool was_refused, std::uint64_t least_ns);

 private:
  const retry_options options_;
  const std::chrono::milliseconds patience_;
  std::minstd_rand random_;
};

}  // namespace leat::io

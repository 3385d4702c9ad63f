// Ends a run that has too many corrupt samples. It counts in delivery order, so that the same run ends at the same batch with
// any number of threads.
#pragma once

#include "base/corrupt_kind.hpp"

#include <leat/corrupt_policy.hpp>
#include <leat/error.hpp>
#include <leat/loader_state.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace leat::stages {

struct delivery_item;
struct journal_entry;

/// How many corrupt samples are accepted.
///   epoch_samples   samples planned for each epoch, of which corrupt_max.share is a share
struct corrupt_limits {
  corrupt_bound corrupt_max = {};
  std::uint64_t unreadable_max = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t epoch_samples = 0;
};

/// Thread: one at a time.
class corrupt_watch {
 public:
  /// A run of which so many samples one after the other are all corrupt ends; so does one that has delivered nothing at the end of an
  /// epoch, the first one or one of epoch_least samples.
  static constexpr std::uint64_t samples_without_any_max = 1000;
  static constexpr std::uint64_t epoch_least = 32;

  ///   epoch, counted   of a run that is resumed: the epoch that has begun, and what was counted before
  explicit corrupt_watch(const corrupt_limits& limits = {}, std::uint32_t epoch = 0,
                         const state_counters& counted = {});

  /// Counts the item that is delivered next. Returns the error that ends the run in its place, if it is one too many.
  [[nodiscard]] std::optional<error> see(const delivery_item& item);
  /// In the epoch that has begun.
  [[nodiscard]] std::uint64_t epoch_corrupt() const noexcept { return corrupt_; }
  [[nodiscard]] std::uint64_t epoch_unreadable() const noexcept { return unreadable_; }

 private:
  struct reason {
    std::uint64_t count = 0;
    std::string first;  ///< the first sample with this reason, and the reason
    bool unreadable = false;
  };

  void count(const journal_entry& entry);
  [[nodiscard]] reason most_frequent(bool unreadable) const;
  [[nodiscard]] std::string words_for(const reason& what) const;

  const std::uint64_t corrupt_max_;  // of an epoch
  const std::uint64_t unreadable_max_;
  // In this epoch.
  std::uint32_t epoch_;
  std::uint64_t corrupt_;
  std::uint64_t unreadable_;
  std::uint64_t epoch_planned_ = 0;  // with epoch_delivered_ of what this process has seen
  std::uint64_t epoch_delivered_ = 0;
  std::uint64_t dry_;  // planned since something was delivered
  // In the whole run.
  std::uint64_t planned_;
  std::uint64_t delivered_;
  std::uint64_t corrupt_in_all_;
  // Of samples that this process has met: by kind, field and errno.
  std::map<std::tuple<corrupt_kind, std::uint16_t, int>, reason> reasons_;
};

}  // namespace leat::stages

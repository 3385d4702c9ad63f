// Fetches that wait for their store to let them go, the oldest of each folder first.
#pragma once

#include "io/remote/fetch.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace leat::io {

using fetch_queue = std::deque<std::shared_ptr<fetch>>;

/// What was wanted first goes first: none of those that are asked for again waits for all others.
void add_by_age(fetch_queue& to, std::shared_ptr<fetch> one);

/// By the lanes of a store_state: a prefix that is throttled holds up no other one. Thread: one.
class parked_fetches {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool are_in(std::uint32_t lane) const noexcept { return lane < lanes_.size() && !lanes_[lane].empty(); }
  void add(std::uint32_t lane, std::shared_ptr<fetch> one);
  /// The first one that may go, of the oldest ones of each lane. Lanes take turns: one that is refused and asks again leaves
  /// the others their share.
  ///   wait_of   one's, 0 where it may go now
  ///   returns   null where none may, and the least wait
  [[nodiscard]] std::pair<std::shared_ptr<fetch>, std::uint64_t> take(
      const std::function<std::uint64_t(fetch&)>& wait_of);
  /// Those that `is_over` is true of.
  [[nodiscard]] std::vector<std::shared_ptr<fetch>> take_all(const std::function<bool(const fetch&)>& is_over);

 private:
  std::vector<fetch_queue> lanes_;
  std::size_t size_ = 0;
  std::size_t last_ = 0;  // the lane of the last that went
};

}  // namespace leat::io

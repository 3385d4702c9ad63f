#include "io/remote/parked_fetches.hpp"

#include "io/remote/fetch_progress.hpp"

#include <algorithm>
#include <limits>

namespace leat::io {

void add_by_age(fetch_queue& to, std::shared_ptr<fetch> one) {
  const auto later = std::upper_bound(to.begin(), to.end(), one->state->wanted_ns,
                                      [](std::uint64_t ns, const auto& each) { return ns < each->state->wanted_ns; });
  to.insert(later, std::move(one));
}

void parked_fetches::add(std::uint32_t lane, std::shared_ptr<fetch> one) {
  if (lane >= lanes_.size()) lanes_.resize(lane + 1);
  add_by_age(lanes_[lane], std::move(one));
  ++size_;
}

std::pair<std::shared_ptr<fetch>, std::uint64_t> parked_fetches::take(
    const std::function<std::uint64_t(fetch&)>& wait_of) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t i = 1; i <= lanes_.size(); ++i) {
    const std::size_t lane = (last_ + i) % lanes_.size();
    fetch_queue& waiting = lanes_[lane];
    if (waiting.empty()) continue;
    const std::uint64_t wait = wait_of(*waiting.front());
    least = std::min(least, wait);
    if (wait != 0) continue;
    std::shared_ptr<fetch> goes = std::move(waiting.front());
    waiting.pop_front();
    --size_;
    last_ = lane;
    return {std::move(goes), 0};
  }
  return {nullptr, least};
}

std::vector<std::shared_ptr<fetch>> parked_fetches::take_all(const std::function<bool(const fetch&)>& is_over) {
  std::vector<std::shared_ptr<fetch>> taken;
  for (fetch_queue& each : lanes_) {
    for (std::shared_ptr<fetch>& one : each) {
      if (is_over(*one)) taken.push_back(std::move(one));
    }
    std::erase(each, nullptr);
  }
  size_ -= taken.size();
  return taken;
}

}  // namespace leat::io

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
  std::vector<fetch_queue*> by_age;
  for (fetch_queue& each : lanes_) {
    if (!each.empty()) by_age.push_back(&each);
  }
  std::sort(by_age.begin(), by_age.end(), [](const fetch_queue* one, const fetch_queue* other) {
    return one->front()->state->wanted_ns < other->front()->state->wanted_ns;
  });
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (fetch_queue* const each : by_age) {
    const std::uint64_t wait = wait_of(*each->front());
    least = std::min(least, wait);
    if (wait != 0) continue;
    std::shared_ptr<fetch> goes = std::move(each->front());
    each->pop_front();
    --size_;
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

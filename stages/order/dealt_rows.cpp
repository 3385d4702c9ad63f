#include "stages/order/dealt_rows.hpp"

#include <leat/world.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <queue>
#include <utility>

namespace leat::stages {
namespace {

struct share {
  std::vector<std::uint32_t> rows;  // the cheapest first
  std::size_t room = 0;
  double sum = 0;
};

class dealer {
 public:
  dealer(std::span<const double> costs, std::uint32_t ranks) : costs_(costs), shares_(ranks) {
    const auto rows = static_cast<std::uint32_t>(costs.size());
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const world here{.rank = rank, .size = ranks};
      shares_[rank].room = here.row_end(rows) - here.row_begin(rows);
    }
  }

  // The dearest first, each to the rank that has least and has room.
  void deal() {
    std::vector<std::uint32_t> dearest(costs_.size());
    std::iota(dearest.begin(), dearest.end(), 0U);
    std::sort(dearest.begin(), dearest.end(), [&](std::uint32_t a, std::uint32_t b) { return is_cheaper(b, a); });
    using least = std::pair<double, std::size_t>;
    std::priority_queue<least, std::vector<least>, std::greater<>> open;
    for (std::size_t rank = 0; rank < shares_.size(); ++rank) {
      if (shares_[rank].room != 0) open.emplace(0, rank);
    }
    for (const std::uint32_t row : dearest) {
      const std::size_t rank = open.top().second;
      open.pop();
      share& to = shares_[rank];
      to.rows.push_back(row);
      to.sum += costs_[row];
      if (--to.room != 0) open.emplace(to.sum, rank);
    }
    for (share& each : shares_) {
      std::sort(each.rows.begin(), each.rows.end(), [&](std::uint32_t a, std::uint32_t b) { return is_cheaper(a, b); });
    }
  }

  // Rows of the rank that has most for cheaper ones of others, as long as that helps.
  void even_out() {
    const double all = std::accumulate(costs_.begin(), costs_.end(), 0.0);
    const double mean = all / static_cast<double>(shares_.size());
    constexpr double good_enough = 1.002;
    const std::size_t swaps_max = 8 * shares_.size() + 64;
    for (std::size_t swaps = 0; swaps < swaps_max; ++swaps) {
      const auto most = std::max_element(shares_.begin(), shares_.end(),
                                         [](const share& a, const share& b) { return a.sum < b.sum; });
      if (most->sum <= mean * good_enough || !swap_of(*most)) return;
    }
  }

  [[nodiscard]] std::vector<std::uint32_t> order() {
    std::vector<std::uint32_t> all;
    all.reserve(costs_.size());
    for (share& each : shares_) {
      std::sort(each.rows.begin(), each.rows.end());
      all.insert(all.end(), each.rows.begin(), each.rows.end());
    }
    return all;
  }

 private:
  [[nodiscard]] bool is_cheaper(std::uint32_t a, std::uint32_t b) const {
    return costs_[a] != costs_[b] ? costs_[a] < costs_[b] : a < b;
  }

  // The swap after which the larger of the two has least.
  bool swap_of(share& most) {
    double best = most.sum;
    share* other = nullptr;
    std::size_t given = 0;
    std::size_t got = 0;
    for (share& each : shares_) {
      if (&each == &most || each.sum >= most.sum) continue;
      const double half = (most.sum - each.sum) / 2;
      for (std::size_t mine = 0; mine < most.rows.size(); ++mine) {
        // Those next to what would make both equal.
        const double wanted = costs_[most.rows[mine]] - half;
        const auto at = std::lower_bound(each.rows.begin(), each.rows.end(), wanted,
                                         [&](std::uint32_t row, double cost) { return costs_[row] < cost; });
        for (auto near = at == each.rows.begin() ? at : at - 1; near != each.rows.end() && near <= at; ++near) {
          const double moved = costs_[most.rows[mine]] - costs_[*near];
          const double larger = std::max(most.sum - moved, each.sum + moved);
          if (moved <= 0 || larger >= best) continue;
          best = larger;
          other = &each;
          given = mine;
          got = static_cast<std::size_t>(near - each.rows.begin());
        }
      }
    }
    if (other == nullptr) return false;
    const double moved = costs_[most.rows[given]] - costs_[other->rows[got]];
    std::swap(most.rows[given], other->rows[got]);
    most.sum -= moved;
    other->sum += moved;
    for (share* const each : {&most, other}) {
      std::sort(each->rows.begin(), each->rows.end(),
                [&](std::uint32_t a, std::uint32_t b) { return is_cheaper(a, b); });
    }
    return true;
  }

  std::span<const double> costs_;
  std::vector<share> shares_;
};

}  // namespace

std::vector<std::uint32_t> deal_rows(std::span<const double> costs, std::uint32_t ranks) {
  dealer all(costs, ranks);
  all.deal();
  all.even_out();
  return all.order();
}

double slowest_share(std::span<const double> costs, std::span<const std::uint32_t> order, std::uint32_t ranks) {
  const auto rows = static_cast<std::uint32_t>(costs.size());
  double most = 0;
  double all = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const world here{.rank = rank, .size = ranks};
    double sum = 0;
    for (std::uint32_t place = here.row_begin(rows); place < here.row_end(rows); ++place) sum += costs[order[place]];
    most = std::max(most, sum);
    all += sum;
  }
  return all == 0 ? 1 : most * ranks / all;
}

}  // namespace leat::stages

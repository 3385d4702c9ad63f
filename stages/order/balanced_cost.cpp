// Rows of a global batch dealt to ranks by what they cost.
#include "base/text.hpp"
#include "stages/order/columns.hpp"
#include "stages/order/dealt_rows.hpp"
#include "stages/order/order_error.hpp"
#include "stages/order/order_model.hpp"
#include "stages/order/packing.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/order.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace leat {
namespace stages {
namespace {

constexpr std::string_view order_name = "balanced_cost";

struct row_costs {
  cost_options how;
  std::uint32_t ranks = 1;

  [[nodiscard]] double operator()(std::uint64_t length) const {
    if (!how.cost) return static_cast<double>(length) * static_cast<double>(length);
    const double cost = how.cost(length);
    if (!(cost >= 0) || !std::isfinite(cost)) {
      throw order_error(order_name, "the cost of ", length, " is ", cost, "; give finite numbers from 0 on");
    }
    return cost;
  }
};

/// What the sampler that deals leaves to the one whose rows it deals.
class dealt_sampler : public sampler, public dealing {
 public:
  dealt_sampler(std::shared_ptr<const sampler> of, row_costs costs) : of_(std::move(of)), costs_(std::move(costs)) {}

  void describe(description& out) const override {
    of_->describe(out);
    if (!costs_.how.cost) {
      out.add("dealt by", "length^2");
    } else if (!costs_.how.name.empty()) {
      out.add("dealt by", costs_.how.name);
    } else {
      out.add_unnamed("balanced_cost", "give cost_options::name");
    }
  }
  std::uint64_t batches(std::uint32_t epoch) const override { return of_->batches(epoch); }
  std::uint32_t rows(std::uint32_t epoch, std::uint64_t batch) const override { return of_->rows(epoch, batch); }
  bool repeats() const override { return of_->repeats(); }
  bool in_order() const override { return of_->in_order(); }
  std::uint64_t blocks_near() const override { return of_->blocks_near(); }
  std::uint64_t samples(std::uint32_t epoch) const override { return of_->samples(epoch); }
  std::uint64_t substitutes(std::uint32_t epoch, std::uint64_t batch) const override {
    return of_->substitutes(epoch, batch);
  }
  pick substitute(std::uint32_t epoch, std::uint64_t batch, std::uint64_t n) const override {
    return of_->substitute(epoch, batch, n);
  }
  double slowest(std::uint32_t epoch, std::uint64_t batch) const override {
    const std::vector<double> costs = costs_of(epoch, batch);
    return slowest_share(costs, deal_rows(costs, costs_.ranks), costs_.ranks);
  }
  double slowest_as_they_come(std::uint32_t epoch, std::uint64_t batch) const override {
    const std::vector<double> costs = costs_of(epoch, batch);
    std::vector<std::uint32_t> rows(costs.size());
    std::iota(rows.begin(), rows.end(), 0U);
    return slowest_share(costs, rows, costs_.ranks);
  }

 protected:
  /// Of each row of a global batch.
  [[nodiscard]] virtual std::vector<double> costs_of(std::uint32_t epoch, std::uint64_t batch) const = 0;

  const std::shared_ptr<const sampler> of_;
  const row_costs costs_;
};

/// Rows of one sample each.
class dealt_samples final : public dealt_sampler {
 public:
  dealt_samples(std::shared_ptr<const sampler> of, row_costs costs, std::vector<std::uint64_t> lengths)
      : dealt_sampler(std::move(of), std::move(costs)), lengths_(std::move(lengths)) {}

  std::uint32_t rows_max() const override { return of_->rows_max(); }
  void picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin, std::uint32_t row_end,
             std::span<pick> out) const override {
    const std::vector<pick> all = picks_of(epoch, batch);
    const std::vector<std::uint32_t> order = deal_rows(costs_of(all), costs_.ranks);
    for (std::uint32_t row = row_begin; row < row_end; ++row) out[row - row_begin] = all[order[row]];
  }

 private:
  [[nodiscard]] std::vector<pick> picks_of(std::uint32_t epoch, std::uint64_t batch) const {
    std::vector<pick> all(of_->rows(epoch, batch));
    of_->picks(epoch, batch, 0, static_cast<std::uint32_t>(all.size()), all);
    return all;
  }
  [[nodiscard]] std::vector<double> costs_of(const std::vector<pick>& picks) const {
    std::vector<double> costs;
    for (const pick& each : picks) costs.push_back(costs_(lengths_[each.sample]));
    return costs;
  }
  [[nodiscard]] std::vector<double> costs_of(std::uint32_t epoch, std::uint64_t batch) const override {
    return costs_of(picks_of(epoch, batch));
  }

  const std::vector<std::uint64_t> lengths_;
};

/// Packed rows.
class dealt_packing final : public dealt_sampler, public packing {
 public:
  dealt_packing(std::shared_ptr<const sampler> of, const packing& packs, row_costs costs)
      : dealt_sampler(std::move(of), std::move(costs)), packs_(packs) {}

  std::uint32_t rows_max() const override { return pieces_max(packs_.packed_rows_max()); }
  void picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin, std::uint32_t row_end,
             std::span<pick> out) const override {
    std::vector<packed_piece> all;
    const std::uint64_t first = packs_.first_row(epoch, batch);
    pieces(epoch, first, first + packs_.packed_rows(epoch, batch), all);
    for (std::uint32_t row = row_begin; row < row_end; ++row) out[row - row_begin] = all[row].of;
  }

  std::uint32_t row_tokens() const noexcept override { return packs_.row_tokens(); }
  std::int64_t pad() const noexcept override { return packs_.pad(); }
  std::uint32_t packed_rows(std::uint32_t epoch, std::uint64_t batch) const override {
    return packs_.packed_rows(epoch, batch);
  }
  std::uint64_t first_row(std::uint32_t epoch, std::uint64_t batch) const override {
    return packs_.first_row(epoch, batch);
  }
  std::uint32_t packed_rows_max() const noexcept override { return packs_.packed_rows_max(); }
  // Each row may begin with a piece that was cut, and end with one.
  std::uint32_t pieces_max(std::uint32_t rows) const override {
    const std::uint64_t room = std::uint64_t{rows} * packs_.row_tokens();
    return static_cast<std::uint32_t>(std::min(std::uint64_t{packs_.pieces_max(rows)} + rows, room));
  }
  // Of one batch: a row stands where it was dealt to.
  void pieces(std::uint32_t epoch, std::uint64_t first, std::uint64_t end,
              std::vector<packed_piece>& out) const override {
    if (first == end) return;
    const std::uint64_t batch = first / packs_.packed_rows_max();
    const std::uint64_t begin = packs_.first_row(epoch, batch);
    std::vector<packed_piece> all;
    packs_.pieces(epoch, begin, begin + packs_.packed_rows(epoch, batch), all);
    const std::vector<std::uint32_t> order = deal_rows(costs_of(epoch, batch, all), costs_.ranks);
    assert(end - begin <= order.size());
    const auto is_before = [](const packed_piece& each, std::uint64_t row) { return each.row < row; };
    for (std::uint64_t row = first; row < end; ++row) {
      const std::uint64_t dealt_row = begin + order[row - begin];
      // They lie in the order of their rows.
      auto each = std::lower_bound(all.begin(), all.end(), dealt_row, is_before);
      for (; each != all.end() && each->row == dealt_row; ++each) {
        out.push_back(*each);
        out.back().row = row;
      }
    }
  }
  packed_piece piece_of(const pick& chosen) const override { return packs_.piece_of(chosen); }
  std::uint32_t tokens_of(std::uint64_t sample) const noexcept override { return packs_.tokens_of(sample); }
  bool cuts_or_splits() const noexcept override { return packs_.cuts_or_splits(); }

 private:
  [[nodiscard]] std::vector<double> costs_of(std::uint32_t epoch, std::uint64_t batch,
                                             const std::vector<packed_piece>& pieces) const {
    std::vector<double> costs(packs_.packed_rows(epoch, batch));
    const std::uint64_t first = packs_.first_row(epoch, batch);
    for (const packed_piece& each : pieces) costs[each.row - first] += costs_(each.count);
    return costs;
  }
  [[nodiscard]] std::vector<double> costs_of(std::uint32_t epoch, std::uint64_t batch) const override {
    std::vector<packed_piece> all;
    const std::uint64_t first = packs_.first_row(epoch, batch);
    packs_.pieces(epoch, first, first + packs_.packed_rows(epoch, batch), all);
    return costs_of(epoch, batch, all);
  }

  const packing& packs_;  // of_
};

class balanced_cost_order final : public order_model {
 public:
  balanced_cost_order(order of, cost_options how) : of_(std::move(of)), how_(std::move(how)) {}

  std::string_view name() const noexcept override { return of_.name(); }
  std::shared_ptr<const sampler> bind(const dataset& samples, const order_context& context) const override {
    if (context.last == last_batch::pad) {
      throw order_error(order_name,
                        "rows at the end of a last batch that is padded only fill it, and would be dealt like "
                        "any other; give keep or drop");
    }
    std::shared_ptr<const sampler> inner = of_.model().bind(samples, context);
    if (inner->nodes() != 1) throw order_error(order_name, "each node has rows of its own; leave node_local() out");
    const row_costs costs{.how = how_, .ranks = context.ranks};
    if (const auto* const packs = dynamic_cast<const packing*>(inner.get()); packs != nullptr) {
      if (!how_.length.empty())
        throw order_error(order_name, "rows are packed: their pieces have lengths; leave `length` out");
      return std::make_shared<dealt_packing>(std::move(inner), *packs, costs);
    }
    if (inner->batches(0) == 0) return inner;
    if (how_.length.empty()) {
      throw order_error(order_name, "order ", of_.name(),
                        " does not pack; say which lengths cost, as .length = \"tokens\"");
    }
    std::vector<std::uint64_t> lengths = lengths_of(samples, how_.length, order_name, context.fields, context.counting);
    return std::make_shared<dealt_samples>(std::move(inner), costs, std::move(lengths));
  }

 private:
  order of_;
  cost_options how_;
};

}  // namespace
}  // namespace stages

order balanced_cost(order of, cost_options how) {
  return order(std::make_shared<stages::balanced_cost_order>(std::move(of), std::move(how)));
}

}  // namespace leat

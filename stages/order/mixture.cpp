// The parts of a concatenation by shares.
#include "base/random.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "stages/order/order_error.hpp"
#include "stages/order/order_model.hpp"
#include "stages/order/permutation.hpp"
#include "stages/order/places_sampler.hpp"
#include "stages/order/share_schedule.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/order.hpp>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <utility>

namespace leat {
namespace stages {
namespace {

constexpr double share_least = 1e-6;
constexpr double share_most = 1e100;

/// Rows go on from epoch to epoch, so that shares hold over the whole run.
class mixture_sampler final : public places_sampler {
 public:
  ///   sizes   of the parts, none 0
  mixture_sampler(std::span<const double> shares, std::vector<std::uint64_t> sizes, std::uint64_t places,
                  const order_context& context)
      : places_sampler("mixture", places, context),
        schedule_(shares),
        sizes_(std::move(sizes)),
        last_(schedule_.at(0)) {
    std::exclusive_scan(sizes_.begin(), sizes_.end(), std::back_inserter(begins_), std::uint64_t{0});
  }

  void describe(description& out) const override {
    places_sampler::describe(out);
    for (std::size_t part = 0; part < sizes_.size(); ++part) {
      out.add(str_cat("part ", part), str_cat(schedule_.share(part), " of 2^40, ", sizes_[part], " samples"));
    }
  }
  bool repeats() const override { return true; }

 private:
  void at(std::uint32_t epoch, std::uint64_t first, std::span<pick> out) const override {
    share_schedule::position position = find(epoch * cut().places_used() + first);
    std::vector<std::uint64_t> given(sizes_.size());
    for (std::size_t part = 0; part < given.size(); ++part) given[part] = position.given(part);
    std::vector<std::vector<std::uint32_t>> rows(sizes_.size());
    for (std::size_t row = 0; row < out.size(); ++row) rows[position.step()].push_back(static_cast<std::uint32_t>(row));
    for (std::size_t part = 0; part < rows.size(); ++part) fill(part, given[part], rows[part], out);
    const std::lock_guard lock(mutex_);
    last_ = std::move(position);
  }

  // The rows of one part are neighbours in its own order.
  void fill(std::size_t part, std::uint64_t given, std::span<const std::uint32_t> rows, std::span<pick> out) const {
    const std::uint64_t size = sizes_[part];
    while (!rows.empty()) {
      const auto own_epoch = static_cast<std::uint32_t>(given / size);
      const std::uint64_t place = given % size;
      const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(rows.size(), size - place));
      const permutation order(size, random_draws(seed(), own_epoch, part, "mixture"));
      order.for_each(place, some, [&](std::size_t i, std::uint64_t number) {
        const std::uint64_t sample = begins_[part] + number;
        out[rows[i]] = {.sample = sample, .draw = sample, .epoch = own_epoch};
      });
      given += some;
      rows = rows.subspan(some);
    }
  }

  // From where the last batch ended, mostly: the next one begins there.
  [[nodiscard]] share_schedule::position find(std::uint64_t row) const {
    share_schedule::position position;
    {
      const std::lock_guard lock(mutex_);
      position = last_;
    }
    if (position.row() > row || row - position.row() > schedule_.steps_max()) return schedule_.at(row);
    share_schedule::go_on(position, row);
    return position;
  }

  const share_schedule schedule_;
  const std::vector<std::uint64_t> sizes_;
  std::vector<std::uint64_t> begins_;
  mutable std::mutex mutex_;
  mutable share_schedule::position last_;
};

class mixture_order final : public order_model {
 public:
  mixture_order(std::vector<double> shares, std::uint64_t samples_per_epoch)
      : shares_(std::move(shares)), samples_per_epoch_(samples_per_epoch) {}

  std::string_view name() const noexcept override { return "mixture"; }
  std::shared_ptr<const sampler> bind(const dataset& samples, const order_context& context) const override {
    check_shares();
    std::vector<std::uint64_t> sizes;
    for (const auto& part : samples.model()->joined()) sizes.push_back(part->size());
    if (sizes.empty()) sizes.push_back(samples.size());
    if (sizes.size() != shares_.size()) {
      throw order_error(option_id::order_mixture, shares_.size(), " shares for a dataset of ", sizes.size(),
                        " parts; give one for each that concat() was given");
    }
    const auto empty = std::find(sizes.begin(), sizes.end(), std::uint64_t{0});
    if (empty != sizes.end()) {
      throw order_error(option_id::order_mixture, "part ", empty - sizes.begin(), " has no sample; leave it out");
    }
    return std::make_shared<mixture_sampler>(shares_, std::move(sizes),
                                             samples_per_epoch_ != 0 ? samples_per_epoch_ : samples.size(), context);
  }

 private:
  void check_shares() const {
    double sum = 0;
    for (std::size_t part = 0; part < shares_.size(); ++part) {
      if (!(shares_[part] > 0) || shares_[part] > share_most) {
        throw order_error(option_id::order_mixture, "the share of part ", part, " is ", shares_[part],
                          "; give a number above 0 and up to 1e100, or leave the part out");
      }
      sum += shares_[part];
    }
    for (std::size_t part = 0; part < shares_.size(); ++part) {
      if (shares_[part] / sum >= share_least) continue;
      throw order_error(option_id::order_mixture, "the share of part ", part, " is ", shares_[part], " of ", sum,
                        "; give at least a millionth of the sum");
    }
  }

  std::vector<double> shares_;
  std::uint64_t samples_per_epoch_;
};

dataset joined(std::span<const mixture::part> parts) {
  std::vector<dataset> all;
  for (const mixture::part& each : parts) all.push_back(each.samples);
  return concat(all);
}

std::vector<double> shares_of(std::span<const mixture::part> parts) {
  std::vector<double> shares;
  for (const mixture::part& each : parts) shares.push_back(each.share);
  return shares;
}

}  // namespace
}  // namespace stages

order mixed_by(std::vector<double> shares, std::uint64_t samples_per_epoch) {
  return order(std::make_shared<stages::mixture_order>(std::move(shares), samples_per_epoch));
}

mixture::mixture(std::span<const part> parts, std::uint64_t samples_per_epoch)
    : samples_(stages::joined(parts)), order_(mixed_by(stages::shares_of(parts), samples_per_epoch)) {}
mixture::mixture(std::initializer_list<part> parts, std::uint64_t samples_per_epoch)
    : mixture(std::span<const part>(parts.begin(), parts.size()), samples_per_epoch) {}

}  // namespace leat

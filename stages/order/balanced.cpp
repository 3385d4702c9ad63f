// Equal shares for all values of a column: rounds in which each value has one row.
#include "base/hasher.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "stages/order/columns.hpp"
#include "stages/order/order_model.hpp"
#include "stages/order/permutation.hpp"
#include "stages/order/places_sampler.hpp"
#include "stages/order/sample_numbers.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/order.hpp>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace leat {
namespace stages {
namespace {

/// Rounds go on from epoch to epoch, so that shares are equal over the whole run: row r of all is in round r / values.
class balanced_sampler final : public places_sampler {
 public:
  balanced_sampler(std::span<const std::int64_t> values, std::uint64_t places, const order_context& context)
      : places_sampler("balanced", places, context), samples_(values.size(), values.size()) {
    hasher hash;
    hash.add(std::as_bytes(values));
    values_ = hash.finish();
    std::map<std::int64_t, std::uint64_t> counts;
    for (const std::int64_t value : values) ++counts[value];
    std::uint64_t begin = 0;
    for (auto& [value, count] : counts) {
      begins_.push_back(begin);
      begin += std::exchange(count, begin);  // and from here on, where its next sample goes
    }
    begins_.push_back(begin);
    for (std::uint64_t sample = 0; sample < values.size(); ++sample) samples_.set(counts[values[sample]]++, sample);
  }

  void describe(description& out) const override {
    places_sampler::describe(out);
    out.add("values", values_);
  }
  bool repeats() const override { return true; }

 private:
  void at(std::uint32_t epoch, std::uint64_t first, std::span<pick> out) const override {
    const std::uint64_t values = begins_.size() - 1;
    const std::uint64_t from = epoch * cut().places_used() + first;
    // Where a value has several rows here, they are neighbours in its own order: sorted by value, one permutation serves them.
    struct row_of_value {
      std::uint64_t value;
      std::uint64_t round;
      std::size_t row;
    };
    std::vector<row_of_value> rows;
    rows.reserve(out.size());
    for (std::size_t row = 0; row < out.size();) {
      const std::uint64_t round = (from + row) / values;
      const std::uint64_t place = (from + row) % values;
      const permutation order(values, random_draws(seed(), static_cast<std::uint32_t>(round >> 47),
                                                   round % (draws_end / 2), "balanced round"));
      order.for_each(place, std::min<std::uint64_t>(values - place, out.size() - row),
                     [&](std::size_t k, std::uint64_t value) { rows.push_back({value, round, row + k}); });
      row = rows.size();
    }
    std::sort(rows.begin(), rows.end(), [](const row_of_value& a, const row_of_value& b) {
      return a.value != b.value ? a.value < b.value : a.round < b.round;
    });
    for (std::size_t k = 0; k < rows.size();) {
      const std::uint64_t value = rows[k].value;
      const std::uint64_t begin = begins_[value];
      const std::uint64_t size = begins_[value + 1] - begin;
      // Its own epoch, cut to 32 bits: a value of a single sample may have more of them than there are numbers.
      const auto own_epoch = static_cast<std::uint32_t>(rows[k].round / size);
      const permutation order(size, random_draws(seed(), own_epoch, value, "balanced"));
      for (const std::uint64_t pass = rows[k].round / size;
           k < rows.size() && rows[k].value == value && rows[k].round / size == pass; ++k) {
        const std::uint64_t sample = samples_[begin + order(rows[k].round % size)];
        out[rows[k].row] = {.sample = sample, .draw = sample, .epoch = own_epoch};
      }
    }
  }

  digest values_;
  sample_numbers samples_;             // Those of the first value, of the second, ...
  std::vector<std::uint64_t> begins_;  // Of each value in `samples_`, and the end.
};

class balanced_order final : public order_model {
 public:
  balanced_order(std::string column, std::uint64_t samples_per_epoch)
      : column_(std::move(column)), samples_per_epoch_(samples_per_epoch) {}

  std::string_view name() const noexcept override { return "balanced"; }
  std::shared_ptr<const sampler> bind(const dataset& samples, const order_context& context) const override {
    const std::vector<std::int64_t> values = column_values_of(samples, column_, name());
    if (values.empty()) return std::make_shared<global_sampler>(0, sampler_options{.batch_size = context.batch_size});
    return std::make_shared<balanced_sampler>(values, samples_per_epoch_ != 0 ? samples_per_epoch_ : values.size(),
                                              context);
  }

 private:
  std::string column_;
  std::uint64_t samples_per_epoch_;
};

}  // namespace
}  // namespace stages

order balanced(std::string column, std::uint64_t samples_per_epoch) {
  return order(std::make_shared<stages::balanced_order>(std::move(column), samples_per_epoch));
}

}  // namespace leat

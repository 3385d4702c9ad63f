// Rows drawn by weight: each for itself by Walker's alias method, or each sample once at most by exponential clocks.
#include "base/hasher.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "stages/order/made_ahead.hpp"
#include "stages/order/order_model.hpp"
#include "stages/order/places_sampler.hpp"
#include "stages/order/sample_numbers.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/order.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

namespace leat {
namespace stages {
namespace {

/// Draws a number by its weight in constant time.
///   source   Walker 1977; Vose, "A linear algorithm for generating random numbers with a given distribution", 1991. In whole numbers,
///            so that equal weights give equal tables on every machine
class alias_table {
 public:
  ///   weights   none negative, some above 0
  explicit alias_table(std::span<const double> weights) : aliases_(weights.size(), weights.size()) {
    const std::uint64_t n = weights.size();
    // A column holds `full_` units, all of them fewer than 2^63.
    const int n_bits = static_cast<int>(std::bit_width(n));
    full_ = std::uint64_t{1} << std::min(53, 63 - n_bits);
    shares_ = units_of(weights);
    std::vector<std::uint64_t> small;
    std::vector<std::uint64_t> large;
    for (std::uint64_t i = 0; i < n; ++i) {
      aliases_.set(i, i);
      if (shares_[i] < full_) {
        small.push_back(i);
      } else if (shares_[i] > full_) {
        large.push_back(i);
      }
    }
    while (!small.empty()) {
      assert(!large.empty());
      const std::uint64_t less = small.back();
      const std::uint64_t more = large.back();
      small.pop_back();
      aliases_.set(less, more);
      shares_[more] -= full_ - shares_[less];
      if (shares_[more] > full_) continue;
      large.pop_back();
      if (shares_[more] < full_) small.push_back(more);
    }
  }

  /// Where the table has what decides a draw: to be asked for before it is needed, since the table is larger than a cache.
  struct throw_of_dice {
    std::uint64_t column;
    std::uint64_t height;
  };
  [[nodiscard]] throw_of_dice begin_draw(random_draws draws) const noexcept {
    const std::uint64_t column = draws.below(shares_.size());
    __builtin_prefetch(&shares_[column]);
    aliases_.prefetch(column);
    return {column, draws.below(full_)};
  }
  [[nodiscard]] std::uint64_t end_draw(const throw_of_dice& thrown) const noexcept {
    const std::uint64_t alias = aliases_[thrown.column];
    return thrown.height < shares_[thrown.column] ? thrown.column : alias;
  }

 private:
  // Weights as units that add up to a full column for each. What is above 0 has one unit at least.
  [[nodiscard]] std::vector<std::uint64_t> units_of(std::span<const double> weights) const {
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;  // of weights that are 1 at most: nothing overflows
    for (const double weight : weights) sum += weight / largest;
    const double scale = static_cast<double>(full_) * static_cast<double>(weights.size()) / sum;
    std::vector<std::uint64_t> units(weights.size());
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] > 0)
        units[i] = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(weights[i] / largest * scale));
      total += units[i];
    }
    // What rounding has lost or won is the largest one's: at most n units of its full column or more.
    const auto most = static_cast<std::size_t>(std::max_element(units.begin(), units.end()) - units.begin());
    units[most] += full_ * weights.size() - total;
    return units;
  }

  std::uint64_t full_ = 0;
  std::vector<std::uint64_t> shares_;  // Of a column, what is its own.
  sample_numbers aliases_;             // Whose the rest is.
};

digest digest_of(std::span<const double> weights) {
  hasher hash;
  hash.add(std::as_bytes(weights));
  return hash.finish();
}

class drawn_sampler final : public places_sampler {
 public:
  drawn_sampler(std::span<const double> weights, std::uint64_t places, const order_context& context)
      : places_sampler("weighted", places, context), table_(weights), weights_(digest_of(weights)) {}

  void describe(description& out) const override {
    places_sampler::describe(out);
    out.add("replacement", true);
    out.add("weights", weights_);
  }

  bool repeats() const override { return true; }

 private:
  void at(std::uint32_t epoch, std::uint64_t first, std::span<pick> out) const override {
    std::array<alias_table::throw_of_dice, 64> thrown;
    for (std::size_t begin = 0; begin < out.size(); begin += thrown.size()) {
      const std::size_t some = std::min(thrown.size(), out.size() - begin);
      for (std::size_t i = 0; i < some; ++i) {
        thrown[i] = table_.begin_draw(random_draws(seed(), epoch, first + begin + i, "weighted"));
      }
      for (std::size_t i = 0; i < some; ++i) {
        out[begin + i] = {.sample = table_.end_draw(thrown[i]), .draw = first + begin + i, .epoch = epoch};
      }
    }
  }

  alias_table table_;
  digest weights_;
};

/// The natural logarithm, of additions, multiplications and divisions alone: the C library's differs from machine to machine, and with
/// it would the order. Within 1e-15 of the value; x > 0 and normal.
double logarithm(double x) noexcept {
  auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  bits = (bits & ((std::uint64_t{1} << 52) - 1)) | (std::uint64_t{1023} << 52);
  auto mantissa = std::bit_cast<double>(bits);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    ++exponent;
  }
  const double t = (mantissa - 1) / (mantissa + 1);  // |t| < 0.172: nine terms of 2 atanh(t)
  const double square = t * t;
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return static_cast<double>(exponent) * 0.6931471805599453 + 2 * t * sum;
}

/// Each sample rings once, after a time of mean 1 / weight: the order of the rings is that of drawing by weight one after another
/// among those that are left.
///   source   Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006
class clocks_sampler final : public places_sampler {
 public:
  clocks_sampler(std::shared_ptr<const std::vector<double>> weights, std::uint64_t places, const order_context& context)
      : places_sampler("weighted", places, context),
        weights_(std::move(weights)),
        epochs_([this](std::uint32_t epoch, const std::stop_token& stop) { return make(epoch, stop); }) {}

  void describe(description& out) const override {
    places_sampler::describe(out);
    out.add("replacement", false);
    out.add("weights", digest_of(*weights_));
  }
  bool repeats() const override { return rows_max() > places(); }

 private:
  void at(std::uint32_t epoch, std::uint64_t first, std::span<pick> out) const override {
    const std::shared_ptr<const sample_numbers> order = epochs_.of(epoch);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t sample = (*order)[first + i];
      out[i] = {.sample = sample, .draw = sample, .epoch = epoch};
    }
  }

  [[nodiscard]] sample_numbers make(std::uint32_t epoch, const std::stop_token& stop) const {
    struct ring {
      double time;
      std::uint64_t sample;
      bool operator<(const ring& other) const noexcept {
        return time != other.time ? time < other.time : sample < other.sample;
      }
    };
    std::vector<ring> rings;
    for (std::uint64_t sample = 0; sample < weights_->size(); ++sample) {
      if (sample % 65536 == 0 && stop.stop_requested()) return {};
      const double weight = (*weights_)[sample];
      if (weight == 0) continue;
      // In (0, 1]: one minus a number of 53 bits.
      const double uniform = 1 - random_draws(seed(), epoch, sample, "weighted").uniform();
      rings.push_back({-logarithm(uniform) / weight, sample});
    }
    const auto end = rings.begin() + static_cast<std::ptrdiff_t>(places());
    if (end != rings.end()) std::nth_element(rings.begin(), end, rings.end());
    if (stop.stop_requested()) return {};
    std::sort(rings.begin(), end);
    sample_numbers order(places(), weights_->size());
    for (std::uint64_t place = 0; place < places(); ++place) order.set(place, rings[place].sample);
    return order;
  }

  const std::shared_ptr<const std::vector<double>> weights_;
  mutable made_ahead<sample_numbers> epochs_;  // Last: its threads refer to what is above.
};

class weighted_order final : public order_model {
 public:
  weighted_order(std::vector<double> weights, std::uint64_t samples_per_epoch, replacement how)
      : weights_(std::make_shared<const std::vector<double>>(std::move(weights))),
        samples_per_epoch_(samples_per_epoch),
        how_(how) {}

  std::string_view name() const noexcept override { return "weighted"; }
  std::shared_ptr<const sampler> bind(const dataset& samples, const order_context& context) const override {
    const std::vector<double>& weights = *weights_;
    if (weights.size() != samples.size()) {
      throw error(errc::usage, str_cat("order weighted: ", weights.size(), " weights for ", samples.size(),
                                       " samples; give one for each"));
    }
    const std::uint64_t above_0 = count_above_0();
    std::uint64_t places = samples_per_epoch_;
    if (how_ == replacement::yes) {
      if (places == 0) places = weights.size();
      if (weights.empty())
        return std::make_shared<global_sampler>(0, sampler_options{.batch_size = context.batch_size});
      return std::make_shared<drawn_sampler>(weights, places, context);
    }
    if (places == 0) places = above_0;
    if (places > above_0) {
      throw error(errc::usage, str_cat("order weighted: ", places, " samples per epoch without replacement, and ",
                                       above_0, " of ", weights.size(), " weights are above 0"));
    }
    return std::make_shared<clocks_sampler>(weights_, places, context);
  }

 private:
  [[nodiscard]] std::uint64_t count_above_0() const {
    std::uint64_t above_0 = 0;
    for (std::size_t sample = 0; sample < weights_->size(); ++sample) {
      const double weight = (*weights_)[sample];
      if (!(weight >= 0) || std::isinf(weight)) {
        throw error(errc::usage, str_cat("order weighted: the weight of sample ", sample, " is ", weight,
                                         "; give a number from 0 on"));
      }
      // Times to wait are divided by it, and must not overflow.
      if (weight != 0 && !std::isnormal(weight)) {
        throw error(errc::usage, str_cat("order weighted: the weight of sample ", sample, " is ", weight,
                                         ", too near to 0; give 0, or weights of another scale"));
      }
      above_0 += weight > 0;
    }
    if (above_0 == 0 && !weights_->empty()) {
      throw error(errc::usage, str_cat("order weighted: all of ", weights_->size(), " weights are 0"));
    }
    return above_0;
  }

  std::shared_ptr<const std::vector<double>> weights_;
  std::uint64_t samples_per_epoch_;
  replacement how_;
};

}  // namespace
}  // namespace stages

order weighted(std::vector<double> weights, std::uint64_t samples_per_epoch, replacement how) {
  return order(std::make_shared<stages::weighted_order>(std::move(weights), samples_per_epoch, how));
}

}  // namespace leat

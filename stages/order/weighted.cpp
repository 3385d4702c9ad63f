// Rows drawn by weight: each for itself by Walker's alias method, or each sample once at most by exponential clocks.
#include "base/hasher.hpp"
#include "base/portable_log.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "stages/order/alias_table.hpp"
#include "stages/order/made_ahead.hpp"
#include "stages/order/order_error.hpp"
#include "stages/order/order_model.hpp"
#include "stages/order/places_sampler.hpp"
#include "stages/order/sample_numbers.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/order.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

namespace leat {
namespace stages {
namespace {

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
      rings.push_back({-portable_log(uniform) / weight, sample});
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
      throw order_error(option_id::order_weighted, weights.size(), " weights for ", samples.size(),
                        " samples; give one for each");
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
      throw order_error(option_id::order_weighted, places, " samples per epoch without replacement, and ", above_0,
                        " of ", weights.size(), " weights are above 0");
    }
    return std::make_shared<clocks_sampler>(weights_, places, context);
  }

 private:
  [[nodiscard]] std::uint64_t count_above_0() const {
    std::uint64_t above_0 = 0;
    for (std::size_t sample = 0; sample < weights_->size(); ++sample) {
      const double weight = (*weights_)[sample];
      if (!(weight >= 0) || std::isinf(weight)) {
        throw order_error(option_id::order_weighted, "the weight of sample ", sample, " is ", weight,
                          "; give a number from 0 on");
      }
      // Times to wait are divided by it, and must not overflow.
      if (weight != 0 && !std::isnormal(weight)) {
        throw order_error(option_id::order_weighted, "the weight of sample ", sample, " is ", weight,
                          ", too near to 0; give 0, or weights of another scale");
      }
      above_0 += weight > 0;
    }
    if (above_0 == 0 && !weights_->empty()) {
      throw order_error(option_id::order_weighted, "all of ", weights_->size(), " weights are 0");
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

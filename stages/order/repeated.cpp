// Each sample some times in a row.
#include "base/random.hpp"
#include "base/text.hpp"
#include "stages/order/order_error.hpp"
#include "stages/order/order_model.hpp"
#include "stages/order/permutation.hpp"
#include "stages/order/places_sampler.hpp"
#include "stages/order/sample_places.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/order.hpp>

#include <vector>

namespace leat {
namespace stages {
namespace {

class repeated_sampler final : public places_sampler, public invertible {
 public:
  repeated_sampler(std::uint64_t samples, std::uint32_t n, const order_context& context)
      : places_sampler("repeated", samples * n, context), samples_(samples), n_(n) {}

  void describe(description& out) const override {
    places_sampler::describe(out);
    out.add("n", n_);
  }

  bool repeats() const override { return true; }
  void places_of(std::uint32_t epoch, std::uint64_t sample, std::vector<std::uint64_t>& places) const override {
    const std::uint64_t group = permutation(samples_, seed(), epoch).place_of(sample);
    for (std::uint64_t copy = 0; copy < n_; ++copy) places.push_back(group * n_ + copy);
  }

 private:
  void at(std::uint32_t epoch, std::uint64_t first, std::span<pick> out) const override {
    const permutation order(samples_, seed(), epoch);
    const std::uint64_t first_group = first / n_;
    const std::uint64_t groups = (first + out.size() - 1) / n_ - first_group + 1;
    std::size_t row = 0;
    std::uint64_t copy = first % n_;
    order.for_each(first_group, groups, [&](std::size_t /*group*/, std::uint64_t sample) {
      for (; copy < n_ && row < out.size(); ++copy) {
        out[row++] = {.sample = sample, .draw = sample * n_ + copy, .epoch = epoch};
      }
      copy = 0;
    });
  }

  std::uint64_t samples_;
  std::uint64_t n_;
};

class repeated_order final : public order_model {
 public:
  explicit repeated_order(std::uint32_t n) noexcept : n_(n) {}

  std::string_view name() const noexcept override { return "repeated"; }
  std::shared_ptr<const sampler> bind(const dataset& samples, const order_context& context) const override {
    if (samples.size() > draws_end / n_) {
      throw order_error(option_id::order_repeated, n_, " draws of ", samples.size(),
                        " samples; an epoch may have up to ", draws_end, " rows (2^48)");
    }
    return std::make_shared<repeated_sampler>(samples.size(), n_, context);
  }

 private:
  std::uint32_t n_;
};

}  // namespace
}  // namespace stages

order repeated(std::uint32_t n) {
  if (n == 0) throw stages::order_error(option_id::order_repeated, "0 draws of each sample; give at least 1");
  return order(std::make_shared<stages::repeated_order>(n));
}

}  // namespace leat

// The orders that need no table.
#include "datasets/model/sample_blocks.hpp"
#include "stages/order/batch_cut.hpp"
#include "stages/order/order_error.hpp"
#include "stages/order/order_model.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/order.hpp>

#include <cassert>
#include <utility>

namespace leat {
namespace stages {
namespace {

class global_order final : public order_model {
 public:
  explicit global_order(bool shuffle) noexcept : shuffle_(shuffle) {}

  std::string_view name() const noexcept override { return shuffle_ ? "shuffled" : "sequential"; }
  std::shared_ptr<const sampler> bind(const dataset& samples, const order_context& context) const override {
    return bind_part(samples.size(), {}, context);
  }
  std::shared_ptr<const sampler> bind_part(std::uint64_t samples, datasets::sample_blocks /*blocks*/,
                                           const order_context& context) const override {
    return std::make_shared<global_sampler>(
        samples,
        sampler_options{
            .shuffle = shuffle_, .seed = context.seed, .batch_size = context.batch_size, .last = context.last});
  }

 private:
  bool shuffle_;
};

class own_order final : public order_model {
 public:
  explicit own_order(std::shared_ptr<const sampler> own) noexcept : own_(std::move(own)) {}

  std::string_view name() const noexcept override { return "sampled_by"; }
  std::shared_ptr<const sampler> bind(const dataset& /*samples*/, const order_context& context) const override {
    if (context.last != last_batch::keep) {
      throw order_error(option_id::order_sampled_by,
                        "its sampler cuts the batches itself; leave last and drop_last out");
    }
    if (own_->rows_max() == 0) throw error(errc::usage, "the sampler's rows_max() is 0; a batch has at least 1 row");
    return own_;
  }

 private:
  std::shared_ptr<const sampler> own_;
};

}  // namespace

std::shared_ptr<const sampler> order_model::bind_part(std::uint64_t /*samples*/, datasets::sample_blocks /*blocks*/,
                                                      const order_context& /*context*/) const {
  return nullptr;
}

void describe_order(description& out, std::string_view name, const order_context& context) {
  out.add("order", name);
  out.add("seed", context.seed);
  out.add("batch_size", context.batch_size);
  out.add("last", name_of(context.last));
}

}  // namespace stages

order::order(std::shared_ptr<const stages::order_model> model) : model_(std::move(model)) { assert(model_); }
std::string_view order::name() const noexcept { return model_->name(); }

order sequential() { return order(std::make_shared<stages::global_order>(false)); }
order shuffled() { return order(std::make_shared<stages::global_order>(true)); }
order sampled_by(std::shared_ptr<const sampler> own) {
  if (own == nullptr) throw error(errc::usage, "sampled_by: no sampler was given");
  return order(std::make_shared<stages::own_order>(std::move(own)));
}

}  // namespace leat

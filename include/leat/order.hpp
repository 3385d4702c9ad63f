// In which order a loader takes the samples of its dataset. An order is a value; the loader binds it to its dataset, as a field.
#pragma once

#include <leat/sampler.hpp>

#include <memory>
#include <string_view>

namespace leat {

namespace stages {
class order_model;  // stages/order/order_model.hpp: what an order becomes inside the loader
}

/// Any order, as loader_options::order takes it. docs/order.md has what each guarantees and what it costs.
class order {
 public:
  explicit order(std::shared_ptr<const stages::order_model> model);
  /// "shuffled", "weighted"
  [[nodiscard]] std::string_view name() const noexcept;
  [[nodiscard]] const stages::order_model& model() const noexcept { return *model_; }

 private:
  std::shared_ptr<const stages::order_model> model_;  // Immutable, and shared by the copies of this value.
};

/// Each sample once per epoch, in the dataset's order.
[[nodiscard]] order sequential();

/// Each sample once per epoch, in an order drawn exactly and globally from (seed, epoch).
[[nodiscard]] order shuffled();

/// One's own. batch_size says nothing then, and `last` has to be last_batch::keep: the sampler cuts its batches itself.
///   throws   error{errc::usage} for none; when the loader is built, if its rows_max() is 0
[[nodiscard]] order sampled_by(std::shared_ptr<const sampler> own);

}  // namespace leat

// What an order is inside: it becomes a sampler as soon as it is known of which dataset.
#pragma once

#include <leat/dataset.hpp>
#include <leat/sampler.hpp>

#include <cstdint>
#include <memory>
#include <string_view>

namespace leat::stages {

/// What a loader tells an order, besides its dataset.
///   batch_size   rows of a global batch, those of all ranks together: at least 1
struct order_context {
  std::uint64_t seed = 0;
  std::uint32_t batch_size = 64;
  last_batch last = last_batch::keep;
};

/// What the description of each order begins with.
void describe_order(description& out, std::string_view name, const order_context& context);

/// An order as the user wrote it.
class order_model {
 public:
  order_model() = default;
  order_model(const order_model&) = delete;
  order_model& operator=(const order_model&) = delete;
  virtual ~order_model() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// May walk all samples. Throws error{errc::usage} naming the order, and the sample or value that is wrong.
  [[nodiscard]] virtual std::shared_ptr<const sampler> bind(const dataset& samples,
                                                            const order_context& context) const = 0;
};

}  // namespace leat::stages

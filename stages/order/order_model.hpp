// What an order is inside: it becomes a sampler as soon as it is known of which dataset.
#pragma once

#include "stages/batch/row_counts.hpp"

#include <leat/field.hpp>
#include <leat/sampler.hpp>
#include <leat/samples.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace leat::datasets {
class sample_blocks;
}

namespace leat::stages {

/// What a loader tells an order, besides its dataset.
///   batch_size   rows of a global batch, those of all ranks together: at least 1
///   nodes        machines of the world; 0 where they have different numbers of ranks
///   ranks        of the world
///   fields       the loader's, of which some know how long rows are; only while the order is bound
///   counting     how they find out
struct order_context {
  std::uint64_t seed = 0;
  std::uint32_t batch_size = 64;
  last_batch last = last_batch::keep;
  std::uint32_t nodes = 1;
  std::uint32_t ranks = 1;
  std::span<const field> fields = {};
  stages::counting counting = {};
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
  /// The same order of a part of a dataset, whose samples are numbered from 0.
  ///   blocks    that the samples of the part share
  ///   default   none: the order is not one of parts
  [[nodiscard]] virtual std::shared_ptr<const sampler> bind_part(std::uint64_t samples, datasets::sample_blocks blocks,
                                                                 const order_context& context) const;
};

}  // namespace leat::stages

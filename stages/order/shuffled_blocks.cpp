// Blocks shuffled, and the samples of some blocks at a time.
#include "base/random.hpp"
#include "base/text.hpp"
#include "datasets/model.hpp"
#include "stages/order/made_ahead.hpp"
#include "stages/order/order_model.hpp"
#include "stages/order/permutation.hpp"
#include "stages/order/places_sampler.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/order.hpp>

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>
#include <vector>

namespace leat {
namespace stages {
namespace {

/// The blocks of an epoch stand in an order that is drawn. Each `pool_blocks` of them in a row are a pool, whose samples stand in an order
/// that is drawn.
class block_sampler final : public places_sampler {
 public:
  ///   firsts   the first sample of each block: ascending, from 0
  block_sampler(std::vector<std::uint64_t> firsts, std::uint64_t samples, std::uint32_t pool_blocks,
                const order_context& context)
      : places_sampler("shuffled_blocks", samples, context),
        firsts_(std::move(firsts)),
        samples_(samples),
        pool_blocks_(pool_blocks),
        pools_([this](std::uint32_t epoch, const std::stop_token& stop) { return pools_of(epoch, stop); }) {}

  void describe(description& out) const override {
    places_sampler::describe(out);
    out.add("blocks", firsts_.size());
    out.add("pool_blocks", pool_blocks_);
  }

  bool repeats() const override { return cut().rows_max() > samples_; }
  std::uint64_t blocks_near() const override { return std::min<std::uint64_t>(pool_blocks_, firsts_.size()); }

 private:
  /// Places where the pools of an epoch begin.
  using pools = std::vector<std::uint64_t>;

  [[nodiscard]] permutation order_of(std::uint32_t epoch) const {
    return {firsts_.size(), random_draws(seed(), epoch, 0, "blocks")};
  }
  [[nodiscard]] std::uint64_t end_of(std::uint64_t block) const noexcept {
    return block + 1 < firsts_.size() ? firsts_[block + 1] : samples_;
  }

  [[nodiscard]] pools pools_of(std::uint32_t epoch, const std::stop_token& stop) const {
    pools begins;
    const permutation order = order_of(epoch);
    std::uint64_t place = 0;
    for (std::uint64_t i = 0; i < firsts_.size(); ++i) {
      if (i % pool_blocks_ == 0) {
        if (stop.stop_requested()) return begins;
        begins.push_back(place);
      }
      const std::uint64_t block = order(i);
      place += end_of(block) - firsts_[block];
    }
    return begins;
  }

  void at(std::uint32_t epoch, std::uint64_t first, std::span<pick> out) const override {
    const std::shared_ptr<const pools> begins = pools_.of(epoch);
    const permutation order = order_of(epoch);
    auto pool =
        static_cast<std::uint64_t>(std::upper_bound(begins->begin(), begins->end(), first) - begins->begin()) - 1;
    std::vector<std::uint64_t> blocks;
    std::vector<std::uint64_t> ends;  // of the blocks, in the pool
    for (std::size_t row = 0; row < out.size(); ++pool) {
      const std::uint64_t first_block = pool * pool_blocks_;
      blocks.resize(std::min<std::uint64_t>(pool_blocks_, firsts_.size() - first_block));
      order(first_block, blocks);
      ends.clear();
      std::uint64_t samples = 0;
      for (const std::uint64_t block : blocks) ends.push_back(samples += end_of(block) - firsts_[block]);
      const permutation inside(samples, random_draws(seed(), epoch, pool, "pool"));
      const std::uint64_t in_pool = first + row - (*begins)[pool];
      const std::size_t count = std::min<std::uint64_t>(samples - in_pool, out.size() - row);
      inside.for_each(in_pool, count, [&](std::size_t k, std::uint64_t number) {
        const auto which = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), number) - ends.begin());
        const std::uint64_t sample = firsts_[blocks[which]] + number - (which == 0 ? 0 : ends[which - 1]);
        out[row + k] = {.sample = sample, .draw = sample, .epoch = epoch};
      });
      row += count;
    }
  }

  const std::vector<std::uint64_t> firsts_;
  const std::uint64_t samples_;
  const std::uint32_t pool_blocks_;
  mutable made_ahead<pools> pools_;
};

class blocks_order final : public order_model {
 public:
  explicit blocks_order(std::uint32_t pool_blocks) noexcept : pool_blocks_(pool_blocks) {}

  std::string_view name() const noexcept override { return "shuffled_blocks"; }
  std::shared_ptr<const sampler> bind(const dataset& samples, const order_context& context) const override {
    std::vector<std::uint64_t> firsts = samples.model()->blocks();
    if (firsts.empty() && samples.size() != 0) {
      throw error(
          errc::usage,
          "order shuffled_blocks: no samples of this dataset share blocks; shuffled() costs no more, and is exact");
    }
    return std::make_shared<block_sampler>(std::move(firsts), samples.size(), pool_blocks_, context);
  }

 private:
  std::uint32_t pool_blocks_;
};

}  // namespace
}  // namespace stages

order shuffled_blocks(std::uint32_t pool_blocks) {
  if (pool_blocks == 0) throw error(errc::usage, "order shuffled_blocks: pools of 0 blocks; give at least 1");
  return order(std::make_shared<stages::blocks_order>(pool_blocks));
}

}  // namespace leat

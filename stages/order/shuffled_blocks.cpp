// Blocks shuffled, and the samples of some blocks at a time.
#include "base/random.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/model/sample_blocks.hpp"
#include "stages/order/made_ahead.hpp"
#include "stages/order/order_error.hpp"
#include "stages/order/order_model.hpp"
#include "stages/order/permutation.hpp"
#include "stages/order/places_sampler.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/order.hpp>

#include <algorithm>
#include <cassert>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace leat {
namespace stages {
namespace {

/// The blocks of an epoch stand in an order that is drawn. Each `pool_blocks` of them in a row are a pool, whose samples stand in an order
/// that is drawn.
class block_sampler final : public places_sampler {
 public:
  block_sampler(datasets::sample_blocks blocks, std::uint32_t pool_blocks, const order_context& context)
      : places_sampler("shuffled_blocks", blocks.samples(), context),
        blocks_(std::move(blocks)),
        pool_blocks_(pool_blocks) {
    if (blocks_.equal() != 0) return;
    begins_.emplace([this](std::uint32_t epoch, const std::stop_token& stop) { return begins_of(epoch, stop); });
  }

  void describe(description& out) const override {
    places_sampler::describe(out);
    out.add("blocks", blocks_.size());
    out.add("pool_blocks", pool_blocks_);
  }

  bool repeats() const override { return cut().rows_max() > places(); }
  std::uint64_t blocks_near() const override { return std::min<std::uint64_t>(pool_blocks_, blocks_.size()); }

 private:
  /// Places where the pools of an epoch begin.
  using pool_begins = std::vector<std::uint64_t>;
  struct pool {
    std::uint64_t number = 0;
    std::uint64_t begin = 0;  ///< its first place
  };

  [[nodiscard]] permutation order_of(std::uint32_t epoch) const {
    return {blocks_.size(), random_draws(seed(), epoch, 0, "blocks")};
  }

  [[nodiscard]] pool_begins begins_of(std::uint32_t epoch, const std::stop_token& stop) const {
    pool_begins begins;
    const permutation order = order_of(epoch);
    std::uint64_t place = 0;
    for (std::uint64_t i = 0; i < blocks_.size(); ++i) {
      if (i % pool_blocks_ == 0) {
        if (stop.stop_requested()) return begins;
        begins.push_back(place);
      }
      place += blocks_.samples_of(order(i));
    }
    return begins;
  }

  // The pool of a place.
  [[nodiscard]] pool find(std::uint32_t epoch, const permutation& order, std::uint64_t place) const {
    if (begins_) {
      const std::shared_ptr<const pool_begins> begins = begins_->of(epoch);
      const auto behind = std::upper_bound(begins->begin(), begins->end(), place);
      return {static_cast<std::uint64_t>(behind - begins->begin()) - 1, *(behind - 1)};
    }
    // Blocks are equal, but the first and the last one may be shorter: the pools behind these two begin so much earlier.
    const std::uint64_t each = blocks_.equal();
    const std::uint64_t last = blocks_.size() - 1;
    const std::uint64_t first_at = order.place_of(0);
    const std::uint64_t last_at = order.place_of(last);
    const auto begin_of = [&](std::uint64_t number) {
      const std::uint64_t before = number * pool_blocks_;
      std::uint64_t begin = before * each;
      if (first_at < before) begin -= each - blocks_.samples_of(0);
      if (last_at < before && last != 0) begin -= each - blocks_.samples_of(last);
      return begin;
    };
    std::uint64_t number = place / each / pool_blocks_;  // or one of the two behind it
    while ((number + 1) * pool_blocks_ <= last && begin_of(number + 1) <= place) ++number;
    return {number, begin_of(number)};
  }

  void at(std::uint32_t epoch, std::uint64_t first, std::span<pick> out) const override {
    const permutation order = order_of(epoch);
    pool from = find(epoch, order, first);
    std::vector<std::uint64_t> blocks;
    std::vector<std::uint64_t> ends;  // of the blocks, in the pool
    for (std::size_t row = 0; row < out.size(); ++from.number) {
      const std::uint64_t first_block = from.number * pool_blocks_;
      blocks.resize(std::min<std::uint64_t>(pool_blocks_, blocks_.size() - first_block));
      order(first_block, blocks);
      ends.clear();
      std::uint64_t samples = 0;
      for (const std::uint64_t block : blocks) ends.push_back(samples += blocks_.samples_of(block));
      const permutation inside(samples, random_draws(seed(), epoch, from.number, "pool"));
      const std::uint64_t in_pool = first + row - from.begin;
      const std::size_t count = std::min<std::uint64_t>(samples - in_pool, out.size() - row);
      inside.for_each(in_pool, count, [&](std::size_t k, std::uint64_t number) {
        const auto which = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), number) - ends.begin());
        const std::uint64_t sample = blocks_.first(blocks[which]) + number - (which == 0 ? 0 : ends[which - 1]);
        out[row + k] = {.sample = sample, .draw = sample, .epoch = epoch};
      });
      row += count;
      from.begin += samples;
    }
  }

  const datasets::sample_blocks blocks_;
  const std::uint32_t pool_blocks_;
  mutable std::optional<made_ahead<pool_begins>> begins_;  // Where blocks are not equal.
};

class blocks_order final : public order_model {
 public:
  explicit blocks_order(std::uint32_t pool_blocks) noexcept : pool_blocks_(pool_blocks) {}

  std::string_view name() const noexcept override { return "shuffled_blocks"; }
  std::shared_ptr<const sampler> bind(const dataset& samples, const order_context& context) const override {
    return bind_part(samples.size(), samples.model()->blocks(), context);
  }
  std::shared_ptr<const sampler> bind_part(std::uint64_t samples, datasets::sample_blocks blocks,
                                           const order_context& context) const override {
    if (blocks.empty() && samples != 0) {
      throw order_error(option_id::order_shuffled_blocks,
                        "no samples of this dataset share blocks; shuffled() costs no more, and is exact");
    }
    return std::make_shared<block_sampler>(std::move(blocks), pool_blocks_, context);
  }

 private:
  std::uint32_t pool_blocks_;
};

}  // namespace
}  // namespace stages

order shuffled_blocks(std::uint32_t pool_blocks) {
  if (pool_blocks == 0)
    throw stages::order_error(option_id::order_shuffled_blocks, "pools of 0 blocks; give at least 1");
  return order(std::make_shared<stages::blocks_order>(pool_blocks));
}

}  // namespace leat

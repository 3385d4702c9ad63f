// Each node reads its own part of the dataset, so that its cache needs no room for the others'.
#include "base/random.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/model/sample_blocks.hpp"
#include "datasets/views/token_windows.hpp"
#include "stages/order/batch_cut.hpp"
#include "stages/order/order_error.hpp"
#include "stages/order/order_model.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/order.hpp>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace stages {
namespace {

/// The part of a node: neighbouring samples, and the order of them, which numbers them from 0.
struct node_share {
  std::uint64_t begin = 0;
  std::uint64_t samples = 0;
  std::shared_ptr<const sampler> order = {};
};

/// Rows of a batch lie node by node, as the ranks do. Row i of a node is row i of the same batch in the order of its share. The smallest
/// share says how many batches there are.
class node_local_sampler final : public sampler {
 public:
  ///   whole    what the order is without nodes
  ///   shares   one for each node, two at least; of batches of batch_size / shares.size() rows, the last one kept
  node_local_sampler(std::shared_ptr<const sampler> whole, std::vector<node_share> shares, const order_context& context)
      : whole_(std::move(whole)),
        shares_(std::move(shares)),
        samples_(std::min_element(shares_.begin(), shares_.end(),
                                  [](const node_share& a, const node_share& b) { return a.samples < b.samples; })
                     ->samples),
        cut_(samples_, context.batch_size / nodes(), context.last) {}

  void describe(description& out) const override {
    whole_->describe(out);
    out.add("nodes", nodes());
    std::string begins;
    for (const node_share& share : shares_) str_append(begins, begins.empty() ? "" : ",", share.begin);
    out.add("shares", begins);
  }

  std::uint64_t batches(std::uint32_t /*epoch*/) const override { return cut_.batches(); }
  std::uint32_t rows(std::uint32_t /*epoch*/, std::uint64_t batch) const override { return nodes() * cut_.rows(batch); }
  std::uint32_t rows_max() const override { return nodes() * cut_.rows_max(); }
  std::uint64_t samples(std::uint32_t /*epoch*/) const override { return nodes() * cut_.rows_of_all(); }
  bool repeats() const override { return false; }
  bool in_order() const override { return whole_->in_order(); }
  std::uint64_t blocks_near() const override { return whole_->blocks_near(); }
  std::uint32_t nodes() const override { return static_cast<std::uint32_t>(shares_.size()); }

  void picks(std::uint32_t epoch, std::uint64_t batch, std::uint32_t row_begin, [[maybe_unused]] std::uint32_t row_end,
             std::span<pick> out) const override {
    assert(row_begin <= row_end && row_end <= rows(epoch, batch));
    assert(out.size() == row_end - row_begin);
    const std::uint32_t of_node = cut_.rows(batch);
    std::uint32_t row = row_begin;
    while (!out.empty()) {
      const node_share& share = shares_[row / of_node];
      const std::uint32_t begin = row % of_node;
      const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(of_node - begin, out.size()));
      share.order->picks(epoch, batch, begin, begin + count, out.first(count));
      for (pick& each : out.first(count)) each = of_whole(share, each);
      out = out.subspan(count);
      row += count;
    }
  }

  /// As many of each node, one node's after the other's.
  std::uint64_t substitutes(std::uint32_t /*epoch*/, std::uint64_t /*batch*/) const override {
    return nodes() * samples_;
  }
  pick substitute(std::uint32_t epoch, std::uint64_t batch, std::uint64_t n) const override {
    const node_share& share = shares_[n / samples_];
    return of_whole(share, share.order->substitute(epoch, batch, n % samples_));
  }

 private:
  // Draws are keyed as they are without nodes: by the sample.
  [[nodiscard]] static pick of_whole(const node_share& share, pick in_share) noexcept {
    in_share.sample += share.begin;
    in_share.draw += share.begin;
    return in_share;
  }

  const std::shared_ptr<const sampler> whole_;
  const std::vector<node_share> shares_;
  const std::uint64_t samples_;  // of the smallest share
  const batch_cut cut_;          // of a node's rows
};

[[noreturn]] void refuse(const std::string& why) { throw order_error(option_id::order_node_local, why); }

std::uint64_t seed_of(std::uint64_t seed, std::uint32_t node) {
  // The word that keys it is the name that this order had before: its rows stay as they were.
  random_draws draws(seed, 0, node, "sticky");
  const std::uint64_t high = draws.bits();
  return high << 32 | draws.bits();
}

// The first sample, or block, of each node, and the end: at equal shares of the samples, or at the block's border that is next to these.
std::vector<std::uint64_t> borders_of(std::uint64_t samples, const datasets::sample_blocks& blocks,
                                      std::uint32_t nodes) {
  std::vector<std::uint64_t> borders{0};
  for (std::uint32_t node = 1; node < nodes; ++node) {
    const auto sample = static_cast<std::uint64_t>(static_cast<uint128>(samples) * node / nodes);
    if (blocks.empty()) {
      borders.push_back(sample);
      continue;
    }
    std::uint64_t block = blocks.block_of(sample);
    if (blocks.first(block + 1) - sample < sample - blocks.first(block)) ++block;
    // Each node gets one at least.
    borders.push_back(std::clamp(block, borders.back() + 1, blocks.size() - (nodes - node)));
  }
  borders.push_back(blocks.empty() ? samples : blocks.size());
  return borders;
}

datasets::sample_blocks blocks_between(const datasets::sample_blocks& whole, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t first = whole.first(begin);
  datasets::sample_blocks part(whole.first(end) - first);
  for (std::uint64_t block = begin; block < end; ++block) part.begin_block(whole.first(block) - first);
  return part;
}

class node_local_order final : public order_model {
 public:
  node_local_order(order of, std::uint32_t nodes) : of_(std::move(of)), nodes_(nodes) {}

  std::string_view name() const noexcept override { return "node_local"; }
  std::shared_ptr<const sampler> bind(const dataset& samples, const order_context& context) const override {
    const std::uint32_t nodes = nodes_ != 0 ? nodes_ : context.nodes;
    if (nodes == 1) return of_.model().bind(samples, context);
    const datasets::dataset_model& model = *samples.model();
    const datasets::sample_blocks blocks = model.blocks();
    check(model, blocks, context, nodes);
    const std::vector<std::uint64_t> borders = borders_of(model.size(), blocks, nodes);
    std::vector<node_share> shares;
    shares.reserve(nodes);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const std::uint64_t begin = borders[node];
      const std::uint64_t end = borders[node + 1];
      // Of shares of one size, equal seeds would give the same order: neighbours in a batch would be so in every epoch.
      const order_context of_share{
          .seed = seed_of(context.seed, node), .batch_size = context.batch_size / nodes, .last = last_batch::keep};
      node_share& share = shares.emplace_back();
      share.begin = blocks.empty() ? begin : blocks.first(begin);
      share.samples = (blocks.empty() ? end : blocks.first(end)) - share.begin;
      share.order = of_.model().bind_part(
          share.samples, blocks.empty() ? datasets::sample_blocks() : blocks_between(blocks, begin, end), of_share);
      if (share.order == nullptr) {
        refuse(
            str_cat(of_.name(), " cannot be divided by nodes; give it sequential(), shuffled() or shuffled_blocks()"));
      }
    }
    return std::make_shared<node_local_sampler>(of_.model().bind(samples, context), std::move(shares), context);
  }

 private:
  void check(const datasets::dataset_model& model, const datasets::sample_blocks& blocks, const order_context& context,
             std::uint32_t nodes) const {
    if (nodes == 0) {
      refuse(
          "the world has other numbers of ranks on some machines than on others, and no number of nodes; give the "
          "number of nodes");
    }
    if (context.last == last_batch::pad) {
      refuse("last = pad fills the end of a batch, and here each node's rows have an end; give keep or drop");
    }
    if (context.batch_size % nodes != 0) {
      refuse(str_cat("a global batch of ", context.batch_size, " rows, and ", nodes, " nodes; give a ",
                     spelled(option_id::batch_size), ", or ", spelled(option_id::global_batch_size),
                     ", that is a multiple of ", nodes));
    }
    if (!blocks.empty() && blocks.size() < nodes) {
      refuse(str_cat(
          nodes, " nodes, and ", blocks.size(),
          " blocks (shards, chunks) to divide; give fewer nodes, or write smaller ones, at least one for each"));
    }
    if (model.size() < nodes) refuse(str_cat(nodes, " nodes, and ", model.size(), " samples; give fewer nodes"));
    const datasets::token_windows* const windows = model.window_of(0).of;
    if (windows != nullptr && windows->rule().order == window_order::random) {
      refuse("windows of window_order::random begin anywhere, in any node's share; give shifted or tiled");
    }
  }

  order of_;
  std::uint32_t nodes_;
};

}  // namespace
}  // namespace stages

order node_local(order of, std::uint32_t nodes) {
  return order(std::make_shared<stages::node_local_order>(std::move(of), nodes));
}

}  // namespace leat

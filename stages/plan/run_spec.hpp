// A run before a byte of it is read: a dataset, its order and the fields, bound to one another. It knows what any batch is made of,
// and owns no memory, thread or file.
#pragma once

#include "datasets/model/model.hpp"
#include "stages/batch/batch_layout.hpp"
#include "stages/batch/batch_plan.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/order/dealt_rows.hpp"
#include "stages/order/packing.hpp"
#include "stages/plan/plan.hpp"

#include <leat/field.hpp>
#include <leat/loading.hpp>
#include <leat/sampler.hpp>
#include <leat/samples.hpp>
#include <leat/world.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace leat::stages {

/// The options as they are, or error{errc::usage}.
[[nodiscard]] loader_options checked(loader_options options);

/// Rows of a full batch of all ranks together, of checked options.
[[nodiscard]] std::uint32_t global_batch_size(const loader_options& options) noexcept;

/// Machines of a world; 0 where they have different numbers of ranks.
[[nodiscard]] constexpr std::uint32_t machines_of(const world& all) noexcept {
  return all.size % all.local_size == 0 ? all.size / all.local_size : 0;
}

/// Thread: const calls from any number of threads.
class run_spec {
 public:
  ///   finished   who makes the last of pictures
  ///   throws     error{errc::usage}: fields that the dataset lacks, an order that cannot be
  run_spec(const dataset& samples, const std::vector<field>& fields, const loader_options& options,
           finished_by finished = finished_by::host);
  run_spec(const run_spec&) = delete;
  run_spec& operator=(const run_spec&) = delete;

  /// The dataset that was given, or the windows of tokens in it.
  [[nodiscard]] const leat::dataset& samples() const noexcept { return samples_; }
  [[nodiscard]] const datasets::dataset_model& dataset() const noexcept { return *samples_.model(); }
  [[nodiscard]] const sampler& order() const noexcept { return *order_; }
  /// Null, unless rows are dealt to several ranks by what they cost.
  [[nodiscard]] const dealing* deals() const noexcept;
  /// Null, unless the order packs.
  [[nodiscard]] const rank_packing* packing() const noexcept { return packing_ ? &*packing_ : nullptr; }
  [[nodiscard]] const std::vector<std::unique_ptr<field_program>>& programs() const noexcept { return programs_; }
  [[nodiscard]] const std::shared_ptr<const batch_layout>& layout() const noexcept { return layout_; }
  [[nodiscard]] const stages::planner& planner() const noexcept { return planner_; }
  /// planner::leave_out_above(). Before any other call.
  void leave_out_above(std::uint64_t value_bytes_max) { planner_.leave_out_above(value_bytes_max); }

  /// Batches that are delivered of an epoch.
  [[nodiscard]] std::uint64_t batches(std::uint32_t epoch) const;
  /// Rows that are planned for an epoch of this rank, and stored bytes for one of all ranks. The rows of a rank of many are counted
  /// batch by batch.
  [[nodiscard]] std::uint64_t epoch_samples() const;
  [[nodiscard]] std::uint64_t epoch_bytes() const;

  [[nodiscard]] const leat::world& world() const noexcept { return world_; }
  /// Nodes of the order, and of how many of them this rank has rows: of one, where there are enough ranks.
  [[nodiscard]] std::uint32_t nodes() const noexcept { return nodes_; }
  [[nodiscard]] std::uint32_t nodes_of_rank() const noexcept { return std::max(nodes_ / world_.size, 1U); }
  /// Ranks that read what this one's node does, itself among them: all, unless the order has several nodes.
  [[nodiscard]] std::uint32_t ranks_of_node() const noexcept { return world_.size / shares(); }
  /// What this rank's node reads of so many bytes, samples or blocks of the dataset: all, unless the order has several nodes.
  [[nodiscard]] std::uint64_t share_of_rank(std::uint64_t whole) const noexcept {
    return whole / shares() + (whole % shares() != 0 ? 1 : 0);
  }

  /// What lies in this rank's rows of a batch: perhaps in none.
  ///   throws   error{errc::usage} for what cannot be, which the user's own sampler may give; whatever that throws
  void pick_rows(std::uint32_t epoch, std::uint64_t index, std::vector<pick>& rows) const;
  /// The same, of a plan that knows its epoch and index; where an order packs, its pieces as well.
  void pick_rows(batch_plan& plan) const;
  /// How many of this rank's rows of a batch, at their end, only fill it.
  [[nodiscard]] std::uint32_t padded(std::uint32_t epoch, std::uint64_t index) const;
  /// Of how many a substitute for a corrupt sample of a batch is drawn, and number n of those for one of this rank's rows.
  ///   row      of the rank's, from 0
  ///   n        less than substitutes(epoch, index)
  ///   throws   as pick_rows()
  [[nodiscard]] std::uint64_t substitutes(std::uint32_t epoch, std::uint64_t index) const;
  [[nodiscard]] pick substitute(std::uint32_t epoch, std::uint64_t index, std::uint32_t row, std::uint64_t n) const;

  ///   throws   as pick_rows()
  [[nodiscard]] batch_plan plan(std::uint32_t epoch, std::uint64_t index) const;

 private:
  /// Into which the ranks divide what is read.
  [[nodiscard]] std::uint32_t shares() const noexcept { return nodes_ / nodes_of_rank(); }
  //   row   of the global batch
  void check(const pick& chosen, std::uint32_t epoch, std::uint64_t index, std::uint64_t row,
             std::string_view what) const;

  [[nodiscard]] std::uint32_t rows_of_all(std::uint32_t epoch, std::uint64_t index) const;

  const leat::dataset samples_;
  const leat::world world_;
  const std::uint64_t batches_max_;  // of an epoch; 0 is all
  const std::shared_ptr<const sampler> order_;
  const std::uint32_t nodes_;
  const std::optional<rank_packing> packing_;
  const std::vector<std::unique_ptr<field_program>> programs_;
  const std::shared_ptr<const batch_layout>
      layout_;  // shared with the batches handed out, which may outlive the loader
  stages::planner planner_;
};

}  // namespace leat::stages

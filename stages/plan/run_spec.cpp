#include "stages/plan/run_spec.hpp"

#include "base/option_words.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "stages/device/mix.hpp"
#include "stages/order/launchers.hpp"
#include "stages/order/order_error.hpp"
#include "stages/order/order_model.hpp"
#include "stages/plan/lowering.hpp"
#include "stages/plan/shared_members.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace leat::stages {
namespace {

std::vector<std::unique_ptr<field_program>> bind_all(const std::vector<field>& fields,
                                                     const datasets::dataset_model& dataset, finished_by finished,
                                                     const rank_packing* packed) {
  std::vector<std::unique_ptr<field_program>> programs;
  programs.reserve(fields.size());
  for (const field& each : fields) each.model().bind(dataset, finished, programs);
  number_views(programs);
  follow_pictures(programs);
  static_cast<void>(boxes_looked_at(programs));  // may refuse
  bool is_first = true;
  for (const auto& each : programs) {
    packable_facet* const packable = each->facets().packable;
    if (packable == nullptr) continue;
    if (packed != nullptr) {
      packable->pack(*packed, std::exchange(is_first, false));
    } else {
      packable->leave_unpacked();
    }
  }
  return programs;
}

void refuse_mixed_followers(const std::vector<std::unique_ptr<field_program>>& programs, const batch_mix& mix) {
  if (mix == batch_mix()) return;
  for (const auto& each : programs) {
    if (each->facets().following == nullptr) continue;
    throw error(errc::usage,
                str_cat("field '", shown_name(*each), "' follows the picture '", each->facets().following->leader(),
                        "', whose rows are mixed with others' (loader_options::mix): one place of a row "
                        "then has two of its values; leave mix out"));
  }
}

std::shared_ptr<const batch_layout> lay_out(const datasets::dataset_model& dataset,
                                            const std::vector<std::unique_ptr<field_program>>& programs,
                                            const batch_mix& mix, std::uint32_t rows_max) {
  if (is_mosaic(mix)) {
    keep_further_boxes(programs);
  } else {
    refuse_mixed_followers(programs, mix);
  }
  std::vector<output_spec> outputs;
  std::vector<std::size_t> staging;
  for (const auto& program : programs) {
    staging.push_back(staging_row_bytes_of(dataset, *program));
    outputs.insert(outputs.end(), program->outputs().begin(), program->outputs().end());
    outputs.back().read_into = reads_into_rows(dataset, *program);
  }
  if (is_mosaic(mix)) {
    add_mosaic_outputs(outputs, programs, mix);
  } else {
    add_mix_outputs(outputs, mix);
  }
  return std::make_shared<const batch_layout>(std::move(outputs), rows_max, staging);
}

void take_picks(const std::vector<packed_piece>& pieces, std::vector<pick>& picks) {
  picks.resize(pieces.size());
  std::transform(pieces.begin(), pieces.end(), picks.begin(), [](const packed_piece& each) { return each.of; });
}

counting counting_of(const loader_options& options) {
  return {.raises = options.on_corrupt == corrupt_policy::raise,
          .bytes_max = options.host_bytes_max != 0 ? options.host_bytes_max : host_bytes_usual};
}

std::shared_ptr<const sampler> order_of(const loader_options& options, const dataset& samples,
                                        const std::vector<field>& fields) {
  const order chosen = options.order                 ? *options.order
                       : options.shuffle_blocks != 0 ? shuffled_blocks(options.shuffle_blocks)
                       : options.shuffle             ? shuffled()
                                                     : sequential();
  return chosen.model().bind(samples, {.seed = options.seed,
                                       .batch_size = global_batch_size(options),
                                       .last = options.drop_last ? last_batch::drop : options.last,
                                       .nodes = machines_of(options.world),
                                       .ranks = options.world.size,
                                       .fields = fields,
                                       .counting = counting_of(options)});
}

std::optional<rank_packing> packing_of(const sampler& order, const loader_options& options) {
  const auto* const packs = dynamic_cast<const packing*>(&order);  // No part of what a user's own sampler may be.
  if (packs == nullptr) return std::nullopt;
  if (options.on_corrupt == corrupt_policy::substitute) {
    throw order_error(std::string_view("packed"), "another text does not fit into the place of a corrupt one; ",
                      spelled(option_id::on_corrupt, "skip"), " leaves that place empty");
  }
  if (options.mix != batch_mix()) {
    throw order_error(std::string_view("packed"), "rows of several texts cannot be mixed; leave mix out");
  }
  return rank_packing(*packs, options.world);
}

// The order's nodes, where this world may have them.
std::uint32_t nodes_of(const sampler& order, const world& here) {
  const std::uint32_t nodes = std::max(order.nodes(), 1U);
  if (nodes == 1) return 1;
  if (here.size % nodes != 0 && nodes % here.size != 0) {
    throw order_error(option_id::order_node_local, nodes, " nodes, and a world of ", here.size,
                      " ranks; give each node the same number of ranks");
  }
  if (machines_of(here) != 0 && here.size >= nodes && here.rank % here.local_size != here.local_rank) {
    throw order_error(option_id::order_node_local, "rank ", here.rank, " is number ", here.local_rank, " of ",
                      here.local_size,
                      " on its machine; the ranks of a machine have to follow one another (srun --distribution=block, "
                      "mpirun --map-by slot)");
  }
  return nodes;
}

void check_timeline(const timeline_options& options) {
  const auto refuse = [](auto&&... words) {
    throw error(errc::usage, str_cat("timeline_options::", words...), option_id::timeline_bytes);
  };
  const auto wait = options.on_stall.count();
  if (wait < 0) refuse("on_stall is ", wait, " ms; give the longest wait that needs no file");
  constexpr std::chrono::milliseconds longest = std::chrono::hours(24);
  if (options.on_stall > longest) refuse("on_stall is ", wait, " ms; give a day at most (", longest.count(), " ms)");
  if (wait == 0 && options.directory.empty()) return;
  if (wait == 0) {
    refuse("directory is for the files that timeline_options::on_stall asks for; give that, too");
  }
  if (options.bytes == 0) {
    refuse("on_stall writes the timeline, and there is none; give ", spelled(option_id::timeline_bytes), ", 8_MiB say");
  }
  if (options.directory.empty()) {
    refuse("on_stall writes files; give timeline_options::directory, the folder for them");
  }
  if (options.files_max == 0) {
    refuse("files_max is 0, so that no stall would get its file; give at least 1");
  }
}

}  // namespace

loader_options checked(loader_options options) {
  if (options.batch_size == 0)
    throw error(errc::usage, str_cat(spelled(option_id::batch_size), " is 0; give at least 1"), option_id::batch_size);
  if (options.drop_last && options.last == last_batch::pad) {
    throw error(errc::usage, "drop_last is the short form of last = drop, and last is pad; give one of them");
  }
  if (options.shuffle_blocks != 0 && options.order) {
    throw error(
        errc::usage,
        str_cat(spelled(option_id::shuffle_blocks), " is a short form of order, and both are given; give one of them"),
        option_id::shuffle_blocks);
  }
  check_world(options.world, "loader_options::world");
  // A run that goes on in another world keeps its global batches; another batch_size is refused, as any other option.
  if (options.resume && options.global_batch_size == 0 && options.resume->batch_size == options.batch_size) {
    options.global_batch_size = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(options.resume->global_batch_size, std::numeric_limits<std::uint32_t>::max()));
  }
  const std::uint64_t of_all = std::uint64_t{options.world.size} * options.batch_size;
  if (options.global_batch_size == 0 && of_all > std::numeric_limits<std::uint32_t>::max()) {
    throw error(errc::usage,
                str_cat("a global batch of ", options.world.size, " ranks with a ", spelled(option_id::batch_size),
                        " of ", options.batch_size, " has ", of_all, " rows, and may have ",
                        std::numeric_limits<std::uint32_t>::max(), "; lower ", spelled(option_id::batch_size)),
                option_id::batch_size);
  }
  if (options.decode_threads > 1024) {
    throw error(errc::usage,
                str_cat(spelled(option_id::decode_threads), " is ", options.decode_threads, "; give at most 1024"),
                option_id::decode_threads);
  }
  if (!(options.corrupt_max.share >= 0 && options.corrupt_max.share <= 1)) {
    throw error(errc::usage,
                str_cat(spelled(option_id::corrupt_max), ".share is ", options.corrupt_max.share,
                        "; give a share of an epoch's samples, from 0 to 1"),
                option_id::corrupt_max);
  }
  if (options.on_corrupt == corrupt_policy::raise && options.corrupt_max != corrupt_bound()) {
    throw error(
        errc::usage,
        str_cat(spelled(option_id::corrupt_max), " says how many corrupt samples are passed over, and ",
                spelled(option_id::on_corrupt, "raise"), " passes over none; give skip or substitute, or leave ",
                spelled(option_id::corrupt_max), " out"),
        option_id::corrupt_max);
  }
  check_timeline(options.timeline);
  if (!options.receipts.empty()) options.digests = true;
  return options;
}

std::uint32_t global_batch_size(const loader_options& options) noexcept {
  return options.global_batch_size != 0 ? options.global_batch_size : options.world.size * options.batch_size;
}

run_spec::run_spec(const leat::dataset& samples, const std::vector<field>& fields, const loader_options& options,
                   finished_by finished)
    : samples_(samples),
      world_(options.world),
      batches_max_(options.batches_max),
      order_(order_of(options, samples_, fields)),
      nodes_(nodes_of(*order_, world_)),
      packing_(packing_of(*order_, options)),
      programs_(bind_all(fields, dataset(), finished, packing())),
      layout_(lay_out(dataset(), programs_, options.mix,
                      packing_ ? packing_->pieces_max() : world_.rows_max(order_->rows_max()))),
      planner_(dataset(), programs_, *layout_,
               {.substitutes = options.on_corrupt == corrupt_policy::substitute,
                .repeats = order_->repeats(),
                .in_order = order_->in_order(),
                .mosaics = is_mosaic(options.mix),
                .seed = options.seed,
                .packed = packing()}) {}

const dealing* run_spec::deals() const noexcept {
  return world_.size > 1 ? dynamic_cast<const dealing*>(order_.get()) : nullptr;
}

std::uint64_t run_spec::batches(std::uint32_t epoch) const {
  const std::uint64_t all = order_->batches(epoch);
  return batches_max_ != 0 ? std::min(all, batches_max_) : all;
}

std::uint64_t run_spec::epoch_samples() const {
  const std::uint64_t batches = this->batches(0);
  if (world_.size == 1 && batches == order_->batches(0)) return order_->samples(0);
  std::uint64_t rows = 0;
  std::vector<pick> picked;
  for (std::uint64_t batch = 0; batch < batches; ++batch) {
    if (packing_) {
      pick_rows(0, batch, picked);
      rows += picked.size();
      continue;
    }
    const std::uint32_t of_all = order_->rows(0, batch);
    rows += world_.row_end(of_all) - world_.row_begin(of_all);
  }
  return rows;
}

std::uint64_t run_spec::epoch_bytes() const {
  std::uint64_t bytes = 0;
  for (const std::uint16_t field : planner_.wanted()) bytes += dataset().fields()[field].bytes_total;
  return bytes;
}

void run_spec::check(const pick& chosen, std::uint32_t epoch, std::uint64_t index, std::uint64_t row,
                     std::string_view what) const {
  if (chosen.sample < dataset().size() && chosen.draw < draws_end) return;
  description named;
  order_->describe(named);
  const auto name = std::find_if(named.entries().begin(), named.entries().end(),
                                 [](const description::entry& each) { return each.key == "order"; });
  const std::string given = str_cat(name == named.entries().end() ? "the sampler" : str_cat("order ", name->value),
                                    " gives, as ", what, " ", row, " of batch ", index, " of epoch ", epoch, ", ");
  if (chosen.sample >= dataset().size()) {
    throw error(errc::usage,
                str_cat(given, "sample ", chosen.sample, "; the dataset has ", dataset().size(), ", numbered from 0"));
  }
  throw error(errc::usage, str_cat(given, "the draw ", chosen.draw, "; draws are less than 2^48"));
}

std::uint32_t run_spec::rows_of_all(std::uint32_t epoch, std::uint64_t index) const {
  const std::uint32_t count = order_->rows(epoch, index);
  const std::uint32_t most = order_->rows_max();
  if (count == 0 || count > most) {
    throw error(errc::usage, str_cat("the sampler gives batch ", index, " of epoch ", epoch, " ", count,
                                     " rows; a batch has 1 to ", most, ", its rows_max()"));
  }
  return count;
}

void run_spec::pick_rows(std::uint32_t epoch, std::uint64_t index, std::vector<pick>& rows) const {
  if (packing_) {
    std::vector<packed_piece> pieces;
    packing_->pieces(epoch, index, pieces);
    take_picks(pieces, rows);
    return;
  }
  const std::uint32_t of_all = rows_of_all(epoch, index);
  const std::uint32_t begin = world_.row_begin(of_all);
  const std::uint32_t end = world_.row_end(of_all);
  rows.resize(end - begin);
  if (begin != end) order_->picks(epoch, index, begin, end, rows);
  const std::uint64_t samples = dataset().size();
  for (std::uint32_t row = begin; row < end; ++row) {
    const pick& chosen = rows[row - begin];
    if (chosen.sample >= samples || chosen.draw >= draws_end) check(chosen, epoch, index, row, "row");
  }
}

void run_spec::pick_rows(batch_plan& plan) const {
  if (!packing_) return pick_rows(plan.epoch, plan.index, plan.picks);
  packing_->pieces(plan.epoch, plan.index, plan.pieces);
  take_picks(plan.pieces, plan.picks);
}

std::uint32_t run_spec::padded(std::uint32_t epoch, std::uint64_t index) const {
  if (packing_) return 0;
  const std::uint32_t of_all = rows_of_all(epoch, index);
  const std::uint32_t counted = of_all - std::min(order_->padded(epoch, index), of_all);
  const std::uint32_t end = world_.row_end(of_all);
  return end - std::clamp(counted, world_.row_begin(of_all), end);
}

std::uint64_t run_spec::substitutes(std::uint32_t epoch, std::uint64_t index) const {
  return order_->substitutes(epoch, index) / nodes_;
}

pick run_spec::substitute(std::uint32_t epoch, std::uint64_t index, std::uint32_t row, std::uint64_t n) const {
  const std::uint32_t of_all = rows_of_all(epoch, index);
  const std::uint64_t row_of_all = world_.row_begin(of_all) + std::uint64_t{row};
  const std::uint64_t node = row_of_all * nodes_ / of_all;
  const std::uint64_t number = node * substitutes(epoch, index) + n;
  const pick drawn = order_->substitute(epoch, index, number);
  check(drawn, epoch, index, number, "substitute");
  return drawn;
}

batch_plan run_spec::plan(std::uint32_t epoch, std::uint64_t index) const {
  batch_plan made;
  made.epoch = epoch;
  made.index = index;
  pick_rows(made);
  made.padded = padded(epoch, index);
  planner_.plan(made);
  return made;
}

}  // namespace leat::stages

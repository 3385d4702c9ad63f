#include "stages/run/resumption.hpp"

#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "stages/plan/describe_run.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace leat::stages {
namespace {

bool is_of_rank(const loader_state& state, const world& here) {
  return state.world == here.size && state.rank == here.rank;
}

// In another world the files of the ranks are others: one that is there is left as it is.
void check_not_there(std::string_view what, const std::string& path, const loader_options& options,
                     const loader_state& state) {
  std::error_code failure;
  if (path.empty() || !std::filesystem::exists(path, failure)) return;
  throw error(errc::usage,
              str_cat("the ", what, " ", path, " is there already, and the state is of rank ", state.rank, " of ",
                      state.world, ", not ", options.world.rank, " of ", options.world.size,
                      ": ranks of another world begin files of their own; give another name, or move it away"));
}

// Of a few: a format may read for a name.
std::uint64_t hash_of_names(const datasets::dataset_model& samples) {
  constexpr std::uint64_t names_most = 8;
  hasher some;
  for (std::uint64_t i = 0, count = std::min(samples.size(), names_most); i < count; ++i) {
    some.add(samples.name(samples.size() / count * i));
  }
  std::uint64_t hash = 0;
  std::memcpy(&hash, some.finish().bytes.data(), sizeof hash);
  return hash;
}

}  // namespace

span_of_run resumption::resumed() const {
  run_progress from;
  if (options_.digests) from.run.emplace();
  if (!options_.resume) return {.from = from};
  const loader_state& state = *options_.resume;
  check_resumes(state, descriptions());
  const bool ended = options_.epochs != 0 && state.epoch >= options_.epochs;
  if (const std::uint64_t batches = ended ? 0 : run_.batches(state.epoch); !ended && state.batch > batches) {
    throw error(errc::usage, str_cat("the state to resume from is at batch ", state.batch, " of epoch ", state.epoch,
                                     ", which has ", batches, "; give at() a place that there is"));
  }
  from.epoch = state.epoch;
  from.batch = state.batch;
  from.counted = state.counted;
  // What another rank has delivered and written is not what this one goes on with.
  if (!is_of_rank(state, options_.world)) {
    from.run.reset();
    check_not_there("journal", options_.journal, options_, state);
    check_not_there("receipt", options_.receipts, options_, state);
    return {.from = from};
  }
  from.run = options_.digests ? state.run_digest : std::nullopt;
  from.journal_bytes = options_.journal.empty() ? 0 : state.journal_bytes;
  return {.from = from};
}

const state_descriptions& resumption::descriptions() const {
  std::call_once(described_, [this] {
    descriptions_ =
        describe_run(options_, {.global_batch_size = global_batch_size(options_), .world_size = options_.world.size},
                     run_.samples(), fields_, run_.order());
  });
  return *descriptions_;
}

receipts resumption::receipts_from(const run_progress& from) const {
  if (options_.receipts.empty()) return {};
  hasher described;
  for (std::size_t i = 0; i < state_descriptions::part_count; ++i) {
    described.add(descriptions().digest_of(static_cast<state_descriptions::part>(i)));
  }
  const bool goes_on = options_.resume && is_of_rank(*options_.resume, options_.world);
  return {options_.receipts,
          {.described = described.finish(),
           .names = hash_of_names(run_.dataset()),
           .seed = options_.seed,
           .epochs = options_.epochs,
           .rank = options_.world.rank,
           .world = options_.world.size,
           .begin_epoch = from.epoch,
           .begin_batch = from.batch},
          {.counted = from.counted.samples + from.counted.substituted, .epoch = from.epoch, .goes_on = goes_on}};
}

loader_state resumption::at(const run_progress& place) const {
  descriptions().check_named();
  loader_state state;
  state.epoch = place.epoch;
  state.batch = place.batch;
  state.seed = options_.seed;
  state.rank = options_.world.rank;
  state.world = options_.world.size;
  state.global_batch_size = global_batch_size(options_);
  state.batch_size = options_.batch_size;
  state.counted = place.counted;
  state.run_digest = place.run;
  state.journal_bytes = place.journal_bytes;
  state.descriptions = descriptions_;
  return state;
}

span_of_run resumption::one_batch(const batch_place& at) const {
  if (options_.resume) check_resumes(*options_.resume, descriptions());
  if (options_.epochs != 0 && at.epoch >= options_.epochs) {
    throw error(errc::usage,
                str_cat("there is no epoch ", at.epoch, ": the run has ", options_.epochs, ", numbered from 0"));
  }
  if (const std::uint64_t batches = run_.batches(at.epoch); at.index >= batches) {
    throw error(errc::usage, str_cat("there is no batch ", at.index, " of epoch ", at.epoch, ": it has ", batches,
                                     ", numbered from 0"));
  }
  span_of_run part{.from = {.epoch = at.epoch, .batch = at.index}, .batches = 1};
  if (options_.digests) part.from.run.emplace();
  return part;
}

std::uint64_t resumption::batches_of(const span_of_run& span) const {
  if (span.batches != 0) return span.batches;
  if (options_.epochs == 0) return 0;
  const std::uint64_t all = run_.batches(0) * options_.epochs;
  const std::uint64_t gone = run_.batches(0) * span.from.epoch + span.from.batch;
  return all > gone ? all - gone : 1;
}

}  // namespace leat::stages

#include "stages/run/substitution.hpp"

#include "base/random.hpp"
#include "base/text.hpp"

namespace leat::stages {
namespace {

// How often a substitute is drawn for a corrupt sample before the run ends: with half of a dataset corrupt, one row in
// 2^32 gets none.
constexpr std::uint32_t substitutions_max = 32;

}  // namespace

std::optional<std::string> draw_substitutes(batch_in_flight& batch, const run_spec& run, std::uint64_t seed,
                                            std::vector<std::uint32_t>& rows) {
  const std::uint64_t candidates = run.substitutes(batch.plan.epoch, batch.plan.index);
  for (std::uint32_t row = 0; row < batch.rows(); ++row) {
    sample_in_flight& sample = batch.samples[row];
    if (!sample.corrupt) continue;
    sample_trouble& trouble = sample.in_trouble();
    const pick& planned = sample.planned();
    random_draws draws(seed, planned.epoch, planned.draw, "substitute");
    for (std::uint32_t skipped = 0; skipped < trouble.substitutions; ++skipped) static_cast<void>(draws.below(1));
    pick drawn = planned;
    while (drawn.sample == planned.sample) {
      if (trouble.substitutions == substitutions_max || candidates == 0) {
        return str_cat("no substitute for ", trouble.planned_name, ": ", trouble.substitutions,
                       " others were tried, the last of which failed: ", trouble.reason);
      }
      ++trouble.substitutions;
      drawn = run.substitute(batch.plan.epoch, batch.plan.index, row, draws.below(candidates));
    }
    run.planner().plan_substitute(batch.plan, row, drawn);
    batch.take_substitute(row, drawn);
    rows.push_back(row);
  }
  return std::nullopt;
}

}  // namespace leat::stages

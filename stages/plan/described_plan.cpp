#include "stages/plan/described_plan.hpp"

#include "base/cores_quota.hpp"
#include "base/text.hpp"
#include "stages/batch/transfer.hpp"
#include "stages/plan/block_uses.hpp"
#include "stages/plan/cache_use.hpp"
#include "stages/plan/memory_plan.hpp"
#include "stages/plan/node_shares.hpp"
#include "stages/plan/run_spec.hpp"
#include "stages/plan/shared_members.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace leat::stages {
namespace {

// How even the batches are that are looked at: the first of an epoch, as far as they are quickly looked at.
std::optional<std::string> describe_dealing(const run_spec& run) {
  const dealing* const deals = run.deals();
  if (deals == nullptr) return std::nullopt;
  constexpr std::uint64_t looked_at_max = 16;
  const std::uint64_t looked_at = std::min(run.batches(0), looked_at_max);
  if (looked_at == 0) return std::nullopt;
  double dealt = 0;
  double as_they_come = 0;
  for (std::uint64_t batch = 0; batch < looked_at; ++batch) {
    dealt += deals->slowest(0, batch);
    as_they_come += deals->slowest_as_they_come(0, batch);
  }
  const auto mean = [&](double of) { return with_decimals(of / static_cast<double>(looked_at), 3); };
  return str_cat("rows are dealt by what they cost: the slowest of ", run.world().size, " ranks has ", mean(dealt),
                 " of the mean, and ", mean(as_they_come), " as they come (", count_text(looked_at),
                 " batches of epoch 0)");
}

}  // namespace

std::optional<std::string> explain_quota(std::optional<double> quota, std::uint32_t cores) {
  if (!quota || *quota >= cores) return std::nullopt;
  if (*quota < 1) {
    return str_cat("the CPU quota of this process's control group is ", three_digits(*quota),
                   " of a core: the loader, and the trainer beside it, stand still for a part of each period");
  }
  return str_cat("the CPU quota of this process's control group is ", three_digits(*quota), " of the ", cores,
                 " cores that it may run on: ", cores_within(quota, cores), " count");
}

loader_plan described_plan(const run_spec& run, const memory_plan& memory, const cache_use& cache, const transfer& to,
                           const plan_surroundings& around) {
  loader_plan plan = memory.shown;
  if (cache.warning) plan.warnings.push_back(*cache.warning);
  if (around.why_no_cache.starts_with("off: ")) {
    plan.warnings.push_back(str_cat("the cache is not used: ", around.why_no_cache.substr(5)));
  }
  for (const auto& program : run.programs()) {
    if (!program->facts().warning.empty()) plan.warnings.push_back(program->facts().warning);
  }
  plan.notes = describe_shared_decodes(run.programs());
  if (std::optional<std::string> told = explain_quota(around.quota, around.cores)) {
    (*around.quota < 1 ? plan.warnings : plan.notes).push_back(*std::move(told));
  }
  if (around.io_threads_asked == 0 && around.io_threads > 1) {
    plan.notes.push_back(str_cat(around.io_threads, " I/O threads: a device decodes faster than one reads"));
  }
  if (std::optional<node_shares> shares = describe_node_shares(run)) {
    (shares->warns ? plan.warnings : plan.notes).push_back(std::move(shares->text));
  }
  if (std::optional<std::string> uses = describe_block_uses(run, memory)) plan.notes.push_back(*std::move(uses));
  if (std::optional<std::string> dealt = describe_dealing(run)) plan.notes.push_back(*std::move(dealt));
  const device_report device = to.report();
  if (device.batches != 0) {
    const std::size_t scratch = run.layout()->scratch_bytes();
    const std::size_t cached = device.cache_bytes_max;
    plan.device = {device.use.use, device.bytes,
                   str_cat(device.batches, " x ", bytes_text((device.bytes - scratch - cached) / device.batches),
                           " of its memory: what is copied, and the pictures it makes of it",
                           scratch == 0 ? "" : str_cat("; ", bytes_text(scratch), " to decode in"),
                           cached == 0 ? "" : str_cat("; ", bytes_text(cached), " for rows that stay"))};
  }
  if (around.device_cache_asked) {
    if (device.cache_bytes_max == 0) {
      const std::string why = device.batches == 0 ? "batches stay on the host" : device.cache.why;
      plan.warnings.push_back(str_cat("device_cache: no row stays: ", why));
    } else {
      plan.notes.push_back(str_cat("device_cache: ", device.cache.why));
    }
  }
  return plan;
}

}  // namespace leat::stages

#include "tools/epoch_report.hpp"

#include "base/as_absl.hpp"
#include "base/text.hpp"
#include "tools/human.hpp"
#include "tools/process.hpp"
#include "tools/ranks.hpp"

#include <leat/index_options.hpp>

#include <absl/strings/str_format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;

json tuning_json(const tuning_stats& of) {
  json steps = json::array();
  for (const tuning_step& each : of.steps) steps.push_back(step_json(each));
  return {{"decode_threads", of.decode_threads},
          {"batches", of.batches},
          {"queue_depth", of.queue_depth},
          {"io_threads", of.io_threads},
          {"connections", of.connections != 0 ? json(of.connections) : json()},
          {"frozen", of.frozen},
          {"steps_in_all", of.steps_in_all},
          {"steps", std::move(steps)}};
}

}  // namespace

std::uint32_t tuned_connections(const tuning_stats& of) {
  const bool tried = std::any_of(of.steps.begin(), of.steps.end(),
                                 [](const tuning_step& each) { return each.setting == "connections"; });
  return tried ? of.connections : 0;
}

namespace {

// What to paste the next time.
std::string tuning_text(const tuning_stats& of) {
  if (of.steps_in_all == 0 && !of.frozen) return "nothing was tried yet; a longer run tells more";
  return str_cat(
      "--threads ", of.decode_threads, " --prefetch-batches ", std::max(of.batches, 2U) - 1,
      of.queue_depth != 0 ? str_cat(" --queue-depth ", of.queue_depth) : "",
      of.io_threads > 1 ? str_cat(" --io-threads ", of.io_threads) : "",
      tuned_connections(of) != 0 ? str_cat("; in a program remote_options::connections_max = ", tuned_connections(of))
                                 : "",
      ", after ", counted(of.steps_in_all, "step", "steps"), of.frozen ? "" : "; a longer run may find more");
}

double per_second(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }
double ratio(std::uint64_t of, std::uint64_t to) {
  return to > 0 ? static_cast<double>(of) / static_cast<double>(to) : 0;
}

struct named_stage {
  const char* name;
  const stage_stats* numbers;
};
std::vector<named_stage> stages_of(const loader_stats& stats) {
  return {{"read", &stats.read},
          {"decode", &stats.decode},
          {"collate", &stats.collate},
          {"transfer", &stats.transfer},
          {"next", &stats.next}};
}

struct named_fallback {
  const char* name;
  const fallback* taken;
};
std::vector<named_fallback> fallbacks_of(const reader_report& reader) {
  return {{"backend", &reader.backend},
          {"registered_buffers", &reader.registered_buffers},
          {"direct", &reader.direct},
          {"huge_pages", &reader.huge_pages}};
}

// "backend: ...; direct: ...": every fallback that has a reason to tell.
std::string reasons(const reader_report& reader) {
  std::string text;
  for (const auto& [name, taken] : fallbacks_of(reader)) {
    if (!taken->why.empty()) str_append(text, text.empty() ? "" : "; ", name, " ", taken->use, ": ", taken->why);
  }
  return text;
}

json plan_json(const loader_plan& plan) {
  json lines = json::array();
  for (const loader_plan::line& line : plan.lines) {
    lines.push_back({{"holder", line.holder}, {"bytes", line.bytes}, {"why", line.why}});
  }
  return {{"lines", lines},
          {"bytes_total", plan.bytes_total},
          {"host_bytes_max", plan.host_bytes_max},
          {"host_bytes_least", plan.host_bytes_least},
          {"batches", plan.batches},
          {"batch_bytes", plan.batch_bytes},
          {"device_bytes", plan.device.bytes}};
}

// The sentence with its first words in bold.
std::string emphasised(const terminal& screen, const verdict& of) {
  const std::string text = of.to_string();
  const std::size_t words = std::min(text.find(':'), text.size());
  return str_cat(screen.bold(text.substr(0, words)), text.substr(words));
}

// "  name       text"
void row(std::string& text, const terminal& screen, std::string_view name, std::string_view value) {
  str_append(text, "  ", screen.dim(absl::StrFormat("%-11s ", as_absl(name))), value, "\n");
}

std::string headline(const epoch_report& run) {
  const loader_stats& stats = run.stats;
  std::string text = str_cat(counted(stats.samples, run.packs ? "piece" : "sample", run.packs ? "pieces" : "samples"),
                             " in ", counted(stats.batches, "batch", "batches"));
  if (stats.epochs_finished > 1) str_append(text, ", ", count_text(stats.epochs_finished), " epochs");
  return str_cat(text, ", ", seconds_text(run.seconds));
}

// "10 TIFF, 2 damaged".
std::string kinds_text(const loader_stats& stats) {
  std::string text;
  for (const corrupt_count& each : stats.quarantined_as) {
    str_append(text, text.empty() ? "" : ", ", count_text(each.samples), " ", each.kind);
  }
  return text;
}

std::string reader_text(const terminal& screen, const reader_report& reader) {
  std::string text = str_cat(reader.backend.use, ", O_DIRECT ", reader.direct.use, ", registered buffers ",
                             reader.registered_buffers.use, ", huge pages ", reader.huge_pages.use);
  for (const auto& [name, taken] : fallbacks_of(reader)) {
    if (!taken->why.empty()) {
      std::string spaced = name;
      for (char& letter : spaced) letter = letter == '_' ? ' ' : letter;
      str_append(text, "\n", std::string(14, ' '),
                 screen.dim(str_cat(spaced, " ", taken->use, ": ", one_line(taken->why))));
    }
  }
  return text;
}

// Of several sources: used where all were.
json index_json(const std::vector<index_report>& indexes) {
  if (indexes.empty()) return nullptr;
  using outcome = index_report::outcome;
  const auto is_not_used = [](const index_report& each) { return each.what != outcome::used; };
  const auto found = std::find_if(indexes.begin(), indexes.end(), is_not_used);
  const index_report& shown = found == indexes.end() ? indexes.front() : *found;
  const char* const what = shown.what == outcome::used ? "used" : shown.what == outcome::written ? "written" : "none";
  return {{"use", what}, {"why", shown.why}};
}

// None where the part had nothing to do.
json capacity_json(const capacity& of) {
  return {{"per_s", of.per_s > 0 ? json(of.per_s) : json(nullptr)}, {"at_least", of.at_least}};
}

}  // namespace

json step_json(const tuning_step& of) {
  return {{"at_s", of.at_s},
          {"setting", of.setting},
          {"from", of.from},
          {"to", of.to},
          {"why", of.why},
          {"samples_per_s", of.samples_per_s},
          {"stall_share", of.stall_share}};
}

json verdict_json(const verdict& of) {
  const auto name_of = [](const std::optional<bottleneck>& who) {
    return who ? json(std::string(name(*who))) : json(nullptr);
  };
  return {{"who", std::string(name(of.who))},
          {"also", name_of(of.also)},
          {"next", name_of(of.next)},
          {"if_free_per_s", of.next ? json(of.if_free.per_s) : json(nullptr)},
          {"samples_per_s", of.samples_per_s},
          {"stall_share", of.stall_share},
          {"window_s", of.window_s},
          {"capacities",
           {{"read", capacity_json(of.read)},
            {"decode", capacity_json(of.decode)},
            {"transfer", capacity_json(of.transfer)},
            {"consumer", capacity_json(of.consumer)}}},
          {"why", of.why}};
}

void epoch_report::measure_process() {
  cpu_s = cpu_seconds();
  rss_bytes_max = tools::rss_bytes_max();
}

json epoch_report::as_json() const {
  json object;
  object["planned"] = stats.planned;
  object["padded"] = stats.padded;
  object["samples"] = stats.samples;
  object["batches"] = stats.batches;
  object["quarantined"] = stats.quarantined;
  object["quarantined_as"] = json::object();
  for (const corrupt_count& each : stats.quarantined_as) object["quarantined_as"][each.kind] = each.samples;
  object["substituted"] = stats.substituted;
  object["epochs"] = stats.epochs_finished;
  add_ranks(object, here);
  object["slowest_rank"] = slowest_rank ? json{{"rank", slowest_rank->rank},
                                               {"wait_s", slowest_rank->wait_s},
                                               {"wait_s_mean", slowest_rank->wait_s_mean},
                                               {"slowest", slowest_rank->slowest}}
                                        : json(nullptr);
  object["index"] = index_json(indexes);
  object["seconds"] = seconds;
  object["open_seconds"] = open_seconds;
  object["samples_per_s"] = per_second(static_cast<double>(stats.samples), seconds);
  object["bytes_read"] = stats.bytes_read;
  object["bytes_from_files"] = stats.bytes_from_files;
  object["bytes_copied"] = stats.bytes_copied;
  object["bytes_delivered"] = stats.bytes_delivered;
  object["ragged_bytes"] = stats.ragged_bytes;
  object["ragged_padding_bytes"] = stats.ragged_padding_bytes;
  object["slowest_rank_cost"] = stats.slowest_rank_cost;
  object["expand"] = {{"blocks", stats.expand.blocks},
                      {"uses", stats.expand.uses},
                      {"bytes", stats.expand.bytes},
                      {"busy_s", stats.expand.busy_s},
                      {"wait_s", stats.expand.wait_s}};
  object["remote"] = {{"requests", stats.remote.requests},
                      {"bytes", stats.remote.bytes},
                      {"bytes_from_cache", stats.remote.bytes_from_cache},
                      {"retries", stats.remote.retries},
                      {"hedges", stats.remote.hedges},
                      {"connections", stats.remote.connections},
                      {"wait_s", stats.remote.wait_s},
                      {"cached_blocks", stats.remote.cached_blocks},
                      {"damaged_reads", stats.remote.damaged_reads},
                      {"refusals", stats.remote.refusals},
                      {"requests_per_s_max", stats.remote.requests_per_s_max},
                      {"cache", stats.remote.cache}};
  object["cpu_s"] = cpu_s;
  object["cpu_s_per_1000_samples"] = per_second(cpu_s * 1000, static_cast<double>(stats.samples));
  object["digest_cpu_s"] = stats.digest_cpu_s;
  object["first_batch_ms"] = first_batch_ms ? json(*first_batch_ms) : json(nullptr);
  if (is_trained) object["au"] = au ? json(*au) : json(nullptr);
  if (run_digest) object["digest"] = run_digest->hex();
  if (resumed) object["resumed"] = {{"epoch", resumed->epoch}, {"batch", resumed->batch}};
  object["rss_bytes_max"] = rss_bytes_max;
  object["host_bytes_max"] = host_bytes_max;
  object["arena_bytes"] = stats.arena_bytes;
  object["scratch_bytes_peak"] = stats.scratch_bytes_peak;
  object["bottleneck"] = std::string(name(verdict_of_run.who));
  object["verdict"] = verdict_json(verdict_of_run);
  if (is_tuned) object["tuning"] = tuning_json(stats.tuned);
  object["next_wait_ms_p50"] = stats.next.p50_s * 1e3;
  object["next_wait_ms_p99"] = stats.next.p99_s * 1e3;
  json reader;
  for (const auto& [fallback_name, taken] : fallbacks_of(stats.reader)) reader[fallback_name] = taken->use;
  reader["why"] = reasons(stats.reader);
  object["reader"] = std::move(reader);
  object["placement"] = {{"use", stats.placement.use}, {"why", stats.placement.why}};
  const device_report& device = stats.device;
  object["device"] = {{"use", device.use.use},           {"why", device.use.why},     {"pinned", device.pinned.use},
                      {"why_pinned", device.pinned.why}, {"batches", device.batches}, {"bytes", device.bytes}};
  object["device"]["cache"] = {{"use", device.cache.use},
                               {"why", device.cache.why},
                               {"rows", device.cached_rows},
                               {"bytes", device.cache_bytes},
                               {"rows_from_cache", device.rows_from_cache}};
  object["photo_packs"] = {{"use", device.photos.use},
                           {"why", device.photos.why},
                           {"on_device", device.photos_decoded},
                           {"on_host", device.photos_on_host}};
  object["nvjpeg"] = {{"decoded", device.jpegs_decoded}, {"on_host", device.jpegs_on_host}};
  json stages;
  for (const auto& [stage_name, numbers] : stages_of(stats)) {
    stages[stage_name] = {{"count", numbers->count},        {"bytes", numbers->bytes},
                          {"busy_s", numbers->busy_s},      {"wait_s", numbers->wait_s},
                          {"p50_ms", numbers->p50_s * 1e3}, {"p90_ms", numbers->p90_s * 1e3},
                          {"p99_ms", numbers->p99_s * 1e3}, {"max_ms", numbers->max_s * 1e3}};
  }
  stages["decode"]["device_passes"] = {{"use", device.passes.use},
                                       {"why", device.passes.why},
                                       {"on_device", device.passes_on_device},
                                       {"on_host", device.passes_on_host}};
  object["stages"] = std::move(stages);
  object["queues"] = {{"decode", stats.queues.decode}, {"ready", stats.queues.ready}, {"out", stats.queues.out}};
  json threads;
  for (const thread_stats& each : stats.threads) {
    threads[each.name] = {{"busy_s", each.busy_s}, {"idle_s", each.idle_s}, {"cpu_s", each.cpu_s}};
  }
  object["threads"] = std::move(threads);
  if (plan) object["plan"] = plan_json(*plan);
  object["notes"] = notes;
  object["interrupted"] = interrupted;
  if (!failure.empty()) object["error"] = failure;
  return object;
}

std::string epoch_report::as_text(const terminal& screen) const {
  const auto samples = static_cast<double>(stats.samples);
  std::string text = str_cat("\n  ", screen.bold(headline(*this)), "\n");
  const double share_done = per_second(static_cast<double>(stats.planned), static_cast<double>(planned_in_all));
  if (interrupted) {
    str_append(text, "  ", screen.warning(absl::StrFormat("stopped at %.0f %%", share_done * 100)), "\n");
  }
  text += "\n";
  if (here.world.size > 1) {
    row(text, screen, "rank", str_cat(here.world.rank, " of ", here.world.size, " (", here.launcher, ")"));
    if (slowest_rank) {
      row(text, screen, "slowest rank",
          str_cat(slowest_rank->rank, " waited ", seconds_text(slowest_rank->wait_s), " for batches, for ",
                  slowest_rank->slowest, "; all ranks ", seconds_text(slowest_rank->wait_s_mean), " in the mean"));
    }
  }
  if (stats.slowest_rank_cost != 0) {
    row(text, screen, "dealt rows",
        absl::StrFormat("the slowest rank has %.3f of the mean cost", stats.slowest_rank_cost));
  }
  row(text, screen, "speed",
      str_cat(screen.bold(str_cat(count_text(static_cast<std::uint64_t>(per_second(samples, seconds) + 0.5)),
                                  packs ? " pieces/s" : " samples/s")),
              ", ", rate_text(per_second(static_cast<double>(stats.bytes_read), seconds)), " read"));
  if (const std::uint64_t padding = stats.ragged_padding_bytes; packs && stats.ragged_bytes != 0) {
    row(text, screen, "packed rows",
        absl::StrFormat("%.2f %% of positions are tokens",
                        ratio(stats.ragged_bytes, stats.ragged_bytes + padding) * 100));
  }
  if (const double share = ratio(stats.bytes_from_files, stats.bytes_read); share > 1.05) {
    row(text, screen, "from files",
        str_cat(bytes_text(stats.bytes_from_files), absl::StrFormat(", %.2f times the ", share),
                bytes_text(stats.bytes_read), " of the samples: O_DIRECT reads whole blocks"));
  }
  if (const remote_stats& remote = stats.remote; remote.requests > 0 || remote.bytes_from_cache > 0) {
    row(text, screen, "network",
        str_cat(counted(remote.requests, "request", "requests"),
                remote.requests > 0 ? str_cat(", ", bytes_text(remote.bytes)) : "",
                remote.connections > 0
                    ? str_cat(", ", counted(remote.connections, "connection", "connections"), " opened")
                    : "",
                remote.retries > 0 ? str_cat(", ", count_text(remote.retries), " tried again") : "",
                remote.refusals > 0 ? str_cat(", ", count_text(remote.refusals), " refused (503 or 429)") : "",
                remote.hedges > 0 ? str_cat(", ", count_text(remote.hedges), " beside late ones") : ""));
  }
  if (const remote_stats& remote = stats.remote; remote.cache.starts_with("off: ")) {
    row(text, screen, "cache", screen.warning(one_line(remote.cache)));
  } else if (remote.cache != "off") {
    row(text, screen, "cache",
        str_cat(bytes_text(remote.bytes_from_cache), " read from it, ",
                counted(remote.cached_blocks, "block", "blocks"), " written",
                remote.damaged_reads > 0 ? str_cat(", ", count_text(remote.damaged_reads), " damaged reads") : "",
                remote.cache == "on" ? "" : one_line(remote.cache.substr(2))));
  }
  row(text, screen, "bottleneck", emphasised(screen, verdict_of_run));
  if (is_tuned) row(text, screen, "tuned", tuning_text(stats.tuned));
  if (first_batch_ms) {
    row(text, screen, "waiting",
        str_cat("first batch after ", seconds_text(*first_batch_ms * 1e-3), ", then ", seconds_text(stats.next.p50_s),
                " each (median), 1 % over ", seconds_text(stats.next.p99_s)));
  }
  if (is_trained) {
    const double stalled = per_second(stats.stalled_s, stats.elapsed_s);
    const std::string steps = au ? absl::StrFormat("steps took %.1f %% of its time (au)", *au * 100)
                                 : std::string("no au, which leaves out the first step, and there was no other");
    row(text, screen, "trainer", str_cat(steps, absl::StrFormat("; it waited %.1f %%", stalled * 100)));
  }
  row(text, screen, "cpu",
      str_cat(seconds_text(cpu_s), ", ", seconds_text(per_second(cpu_s * 1000, samples)), " per 1,000 samples",
              stats.digest_cpu_s > 0 ? str_cat(", ", seconds_text(stats.digest_cpu_s), " of it for digests") : ""));
  row(text, screen, "memory",
      str_cat(bytes_text(rss_bytes_max), " resident at most; the loader has ",
              bytes_text(stats.arena_bytes + stats.scratch_bytes_peak), " of ", bytes_text(host_bytes_max)));
  row(text, screen, "reader", reader_text(screen, stats.reader));
  if (stats.placement.use != "off") {
    row(text, screen, "NUMA", str_cat(stats.placement.use, ": ", one_line(stats.placement.why)));
  }
  if (stats.device.use.why != "asked for") {
    row(text, screen, "device", str_cat(stats.device.use.use, ": ", one_line(stats.device.use.why)));
  }
  if (const device_report& device = stats.device; device.cache.why != "not asked for") {
    row(text, screen, "device cache",
        str_cat(device.cache.use == "off" ? "off" : str_cat(count_text(device.rows_from_cache), " rows came from it"),
                ": ", one_line(device.cache.why)));
  }
  if (const device_report& device = stats.device; device.photos.use != "host") {
    row(text, screen, "photo packs",
        str_cat(count_text(device.photos_decoded), " decoded on ", device.photos.use,
                device.photos_on_host > 0 ? str_cat(", ", count_text(device.photos_on_host), " on the host") : ""));
  } else if (device.photos.why != "asked for") {
    row(text, screen, "photo packs", str_cat("on the host: ", one_line(device.photos.why)));
  }
  if (const device_report& device = stats.device; device.passes_on_device > 0) {
    row(text, screen, "colour",
        str_cat(count_text(device.passes_on_device), " steps on ", device.passes.use,
                device.passes_on_host > 0
                    ? str_cat(", ", count_text(device.passes_on_host), " on the host: ", device.passes.why)
                    : ""));
  }
  if (const device_report& device = stats.device; device.jpegs_decoded + device.jpegs_on_host > 0) {
    row(text, screen, "nvjpeg",
        str_cat(count_text(device.jpegs_decoded), " decoded",
                device.jpegs_on_host > 0
                    ? str_cat(", ", count_text(device.jpegs_on_host), " on the host (no baseline file, or too large)")
                    : ""));
  }
  if (stats.quarantined > 0) {
    const std::string_view fate = !failure.empty()                         ? ""
                                  : stats.substituted == stats.quarantined ? ", substituted"
                                                                           : ", left out";
    row(text, screen, "corrupt",
        screen.warning(str_cat(counted(stats.quarantined, "sample", "samples"), fate, ": ", kinds_text(stats))));
  }
  if (run_digest) row(text, screen, "digest", run_digest->hex());
  if (resumed) row(text, screen, "resumed", str_cat("with batch ", resumed->batch, " of epoch ", resumed->epoch));

  text += "\n";
  str_append(text, "  ", screen.dim(absl::StrFormat("%-12s%10s  %10s  %10s", "stage", "count", "busy", "waiting")),
             "\n");
  for (const auto& [stage_name, numbers] : stages_of(stats)) {
    absl::StrAppendFormat(&text, "  %-12s%10s  %10s  %10s\n", stage_name, count_text(numbers->count),
                          seconds_text(numbers->busy_s), seconds_text(numbers->wait_s));
  }
  if (stats.expand.blocks != 0) {
    absl::StrAppendFormat(
        &text, "  %-12s%10s  %10s  %10s  %s\n", "of it expand", count_text(stats.expand.blocks),
        seconds_text(stats.expand.busy_s), seconds_text(stats.expand.wait_s),
        screen.dim(absl::StrFormat("%.1f uses of each block that is expanded",
                                   static_cast<double>(stats.expand.uses) / static_cast<double>(stats.expand.blocks))));
  }
  return text + "\n";
}

}  // namespace leat::tools

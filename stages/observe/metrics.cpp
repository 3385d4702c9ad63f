#include "base/text.hpp"
#include "base/words.hpp"

#include <leat/error.hpp>
#include <leat/metrics.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <ostream>
#include <string_view>
#include <utility>

namespace leat {
namespace {

using label = std::pair<std::string_view, std::string_view>;

constexpr std::array<std::string_view, 9> own_labels = {"stage", "le",  "side",   "queue", "who",
                                                        "kind",  "use", "thread", "of"};

std::string escaped(std::string_view value) {
  std::string text;
  for (const char each : value) {
    if (each == '\\' || each == '"') text += '\\';
    if (each == '\n') {
      text += "\\n";
    } else {
      text += each;
    }
  }
  return text;
}

// 12 digits: microseconds of a run of several days.
std::string number(double value) {
  std::string text = with_digits(value, 12);
  return std::isfinite(value) ? text : value > 0 ? "+Inf" : value < 0 ? "-Inf" : "NaN";
}

void check(const std::vector<metric_label>& labels) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::string& name = labels[i].name;
    const auto fits = [](char each) { return is_letter(each) || is_digit(each) || each == '_'; };
    const bool is_name = !name.empty() && !is_digit(name.front()) && std::all_of(name.begin(), name.end(), fits) &&
                         !name.starts_with("__");
    if (!is_name) {
      throw error(errc::usage,
                  str_cat("'", name,
                          "' cannot be the name of a label; use letters, digits and _, begin with no digit "
                          "and not with __"));
    }
    const bool is_ours = std::find(own_labels.begin(), own_labels.end(), name) != own_labels.end();
    const bool is_twice = std::any_of(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(i),
                                      [&](const metric_label& before) { return before.name == name; });
    if (is_ours || is_twice) {
      throw error(errc::usage, str_cat("the label '", name, "' ", is_ours ? "is one that leat sets" : "is given twice",
                                       "; use another name"));
    }
  }
}

/// The text grows in one string, which is written once.
class text_format {
 public:
  explicit text_format(const std::vector<metric_label>& labels) {
    for (const metric_label& each : labels) str_append(common_, ",", each.name, "=\"", escaped(each.value), "\"");
  }

  void begin(std::string_view name, std::string_view type, std::string_view help) {
    str_append(text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  void line(std::string_view name, std::initializer_list<label> labels, double value) {
    line(name, labels, number(value));
  }
  void line(std::string_view name, std::initializer_list<label> labels, std::uint64_t value) {
    line(name, labels, str_cat(value));
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void line(std::string_view name, std::initializer_list<label> labels, const std::string& value) {
    str_append(text_, name);
    std::string all;
    for (const auto& [key, of] : labels) str_append(all, ",", key, "=\"", escaped(of), "\"");
    all += common_;
    if (!all.empty()) str_append(text_, "{", std::string_view(all).substr(1), "}");
    str_append(text_, " ", value, "\n");
  }

  std::string common_;
  std::string text_;
};

struct named_stage {
  std::string_view name;
  const stage_stats* of;
};

void add_counts(text_format& to, const loader_stats& now) {
  to.begin("leat_loader_seconds_total", "counter", "Time since the loader began.");
  to.line("leat_loader_seconds_total", {}, now.elapsed_s);
  to.begin("leat_planned_samples_total", "counter", "Rows of the batches handed out, quarantined ones too.");
  to.line("leat_planned_samples_total", {}, now.planned);
  to.begin("leat_samples_total", "counter", "Samples handed out.");
  to.line("leat_samples_total", {}, now.samples);
  to.begin("leat_substituted_samples_total", "counter", "Quarantined samples in whose place another one came.");
  to.line("leat_substituted_samples_total", {}, now.substituted);
  to.begin("leat_batches_total", "counter", "Batches handed out.");
  to.line("leat_batches_total", {}, now.batches);
  to.begin("leat_epochs_total", "counter", "Epochs finished.");
  to.line("leat_epochs_total", {}, std::uint64_t{now.epochs_finished});
  to.begin("leat_quarantined_samples_total", "counter", "Samples that could not be read or decoded.");
  for (const corrupt_count& each : now.quarantined_as) {
    to.line("leat_quarantined_samples_total", {{"kind", each.kind}}, each.samples);
  }
  to.begin("leat_bytes_total", "counter", "Bytes: read for samples, given by the kernel, handed out, copied to rows.");
  to.line("leat_bytes_total", {{"of", "read"}}, now.bytes_read);
  to.line("leat_bytes_total", {{"of", "files"}}, now.bytes_from_files);
  to.line("leat_bytes_total", {{"of", "delivered"}}, now.bytes_delivered);
  to.line("leat_bytes_total", {{"of", "copied"}}, now.bytes_copied);
  to.begin("leat_store_requests_total", "counter",
           "Requests over the network: all, tried again, refused by 503 or 429.");
  to.line("leat_store_requests_total", {{"of", "all"}}, now.remote.requests);
  to.line("leat_store_requests_total", {{"of", "retries"}}, now.remote.retries);
  to.line("leat_store_requests_total", {{"of", "refused"}}, now.remote.refusals);
}

void add_stages(text_format& to, const loader_stats& now) {
  const named_stage stages[] = {{"read", &now.read},
                                {"decode", &now.decode},
                                {"collate", &now.collate},
                                {"transfer", &now.transfer},
                                {"next", &now.next}};
  to.begin("leat_stage_busy_seconds_total", "counter",
           "Time of work, summed over threads or reads in the kernel; of transfer on a device 16 times the copies that "
           "were timed; of next from a batch to the next call.");
  for (const auto& [name, of] : stages) to.line("leat_stage_busy_seconds_total", {{"stage", name}}, of->busy_s);
  to.begin("leat_stage_seconds", "histogram", "What one item takes; of next what a call waits.");
  for (const auto& [name, of] : stages) {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < duration_counts::bounds_s.size(); ++i) {
      below += of->items.counts[i];
      const std::string bound = number(duration_counts::bounds_s[i]);
      to.line("leat_stage_seconds_bucket", {{"stage", name}, {"le", bound}}, below);
    }
    below += of->items.counts.back();
    to.line("leat_stage_seconds_bucket", {{"stage", name}, {"le", "+Inf"}}, below);
    to.line("leat_stage_seconds_sum", {{"stage", name}}, of->items_s);
    to.line("leat_stage_seconds_count", {{"stage", name}}, below);
  }
  to.begin("leat_wait_seconds_total", "counter",
           "Time that somebody waited: the consumer in next(), decode threads for work, the others for memory.");
  to.line("leat_wait_seconds_total", {{"side", "consumer"}}, now.stalled_s);
  to.line("leat_wait_seconds_total", {{"side", "decode"}}, now.decode.wait_s);
  to.line("leat_wait_seconds_total", {{"side", "read_memory"}}, now.read.wait_s);
  to.line("leat_wait_seconds_total", {{"side", "batch_memory"}}, now.transfer.wait_s);
  to.begin("leat_thread_seconds_total", "counter", "Of each thread: busy and idle by the clock, and CPU time.");
  for (const thread_stats& each : now.threads) {
    to.line("leat_thread_seconds_total", {{"thread", each.name}, {"of", "busy"}}, each.busy_s);
    to.line("leat_thread_seconds_total", {{"thread", each.name}, {"of", "idle"}}, each.idle_s);
    to.line("leat_thread_seconds_total", {{"thread", each.name}, {"of", "cpu"}}, each.cpu_s);
  }
}

void add_state(text_format& to, const loader_stats& now) {
  to.begin("leat_queue_items", "gauge",
           "Now: reads in flight, samples before a decode thread, batches ready and held.");
  to.line("leat_queue_items", {{"queue", "reads"}}, now.reads_in_flight);
  to.line("leat_queue_items", {{"queue", "decode"}}, std::uint64_t{now.decode_queued});
  to.line("leat_queue_items", {{"queue", "ready"}}, now.batches_ready);
  to.line("leat_queue_items", {{"queue", "out"}}, now.batches_out);

  to.begin("leat_store_away_seconds", "gauge", "Now: since when a store has answered nothing of use.");
  to.line("leat_store_away_seconds", {}, now.remote.away_s);
  to.begin("leat_store_reads_waiting", "gauge", "Now: reads that wait for a store that is away or throttled.");
  to.line("leat_store_reads_waiting", {}, now.remote.reads_waiting);
  to.begin("leat_store_requests_per_second_max", "gauge", "Now: what a store has been found to allow; 0: no limit.");
  to.line("leat_store_requests_per_second_max", {}, now.remote.requests_per_s_max);

  const verdict& of = now.verdict;
  const std::pair<std::string_view, const capacity*> capacities[] = {
      {"read", &of.read}, {"decode", &of.decode}, {"transfer", &of.transfer}, {"consumer", &of.consumer}};
  to.begin("leat_capacity_samples_per_second", "gauge",
           "What a part of the line can do, in the last window; no line for one without work.");
  for (const auto& [name, each] : capacities) {
    if (each->per_s > 0) to.line("leat_capacity_samples_per_second", {{"stage", name}}, each->per_s);
  }
  to.begin("leat_bottleneck", "gauge",
           "1: whom the others wait for, in the last window; two of them where they are within 10 %.");
  for (std::size_t i = 0; i <= static_cast<std::size_t>(bottleneck::unknown); ++i) {
    const auto each = static_cast<bottleneck>(i);
    to.line("leat_bottleneck", {{"who", name(each)}}, std::uint64_t{each == of.who || each == of.also ? 1U : 0U});
  }
  to.begin("leat_stall_ratio", "gauge", "Share of the last window in which the consumer waited.");
  to.line("leat_stall_ratio", {}, of.stall_share);

  to.begin("leat_memory_bytes", "gauge", "Memory: of reads and batches, of decoders at most, of a device.");
  to.line("leat_memory_bytes", {{"of", "arena"}}, now.arena_bytes);
  to.line("leat_memory_bytes", {{"of", "scratch_peak"}}, now.scratch_bytes_peak);
  to.line("leat_memory_bytes", {{"of", "device"}}, now.device.bytes);
  to.begin("leat_rung", "gauge", "1: what is in use.");
  const std::pair<std::string_view, const fallback*> fallbacks[] = {
      {"backend", &now.reader.backend}, {"registered_buffers", &now.reader.registered_buffers},
      {"direct", &now.reader.direct},   {"huge_pages", &now.reader.huge_pages},
      {"device", &now.device.use},      {"pinned", &now.device.pinned}};
  for (const auto& [kind, each] : fallbacks)
    to.line("leat_rung", {{"kind", kind}, {"use", each->use}}, std::uint64_t{1});
}

}  // namespace

void write_metrics(std::ostream& out, const loader_stats& stats, const std::vector<metric_label>& labels) {
  check(labels);
  text_format text(labels);
  add_counts(text, stats);
  add_stages(text, stats);
  add_state(text, stats);
  out << text.text();
}

}  // namespace leat

#include "tools/report_page.hpp"

#include "base/as_absl.hpp"
#include "base/text.hpp"
#include "tools/human.hpp"
#include "tools/page_parts.hpp"
#include "tools/sheet.hpp"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace leat::tools {
namespace {

constexpr std::string_view style = R"(
:root { --read: #1971c2; --decode: #d9480f; --transfer: #9c36b5; --consumer: #2f9e44; --variance: #e0a800; --unclear: #868e96 }
@media (prefers-color-scheme: dark) {
  :root { --read: #4dabf7; --decode: #ff8a4c; --transfer: #cc7be0; --consumer: #51cf66; --variance: #ffd43b } }
.line { fill: none; stroke: var(--first); stroke-width: 1.6; vector-effect: non-scaling-stroke }
.line.second { stroke: var(--other) } .line.dashed { stroke-dasharray: 5 4 }
.band { width: 100%; height: 30px; display: block; margin: 0 0 6px; shape-rendering: crispEdges }
.read { fill: var(--read); background: var(--read) !important } .decode { fill: var(--decode); background: var(--decode) !important }
.transfer { fill: var(--transfer); background: var(--transfer) !important }
.consumer { fill: var(--consumer); background: var(--consumer) !important }
.variance { fill: var(--variance); background: var(--variance) !important }
.unclear { fill: var(--unclear); background: var(--unclear) !important }
)";

constexpr std::size_t points_max = 200;
constexpr std::size_t rows_max = 64;

/// Lines of a run that are drawn as one point.
struct moment {
  std::size_t first = 0;
  std::size_t last = 0;  // one beyond
};

std::vector<moment> moments_of(const recorded_run& run) {
  const std::size_t count = run.lines.size();
  const std::size_t each = (count + points_max - 1) / points_max;
  std::vector<moment> moments;
  for (std::size_t first = 0; first < count; first += each) moments.push_back({first, std::min(first + each, count)});
  return moments;
}

std::span<const run_line> lines_in(const recorded_run& run, const moment& at) {
  return std::span(run.lines).subspan(at.first, at.last - at.first);
}

/// What is drawn of a moment; nothing where it is not known.
using measured = std::function<std::optional<double>(std::span<const run_line>)>;

struct curve {
  std::string label;
  const char* kind;  // its class
  const recorded_run* run;
  measured value;
};

double end_of(const recorded_run& run) { return std::max(run.lines.back().end_s, 1e-9); }

measured mean_of(double run_line::* member) {
  return [member](std::span<const run_line> lines) {
    double sum = 0;
    for (const run_line& line : lines) sum += line.*member;
    return std::optional(sum / static_cast<double>(lines.size()));
  };
}

measured mean_of(std::optional<double> run_line::* member) {
  return [member](std::span<const run_line> lines) -> std::optional<double> {
    double sum = 0;
    for (const run_line& line : lines) {
      if (!(line.*member)) return std::nullopt;
      sum += *(line.*member);
    }
    return sum / static_cast<double>(lines.size());
  };
}

// Of the lines that have it.
measured mean_of(std::optional<double> run_line::gpu_shares::* member) {
  return [member](std::span<const run_line> lines) -> std::optional<double> {
    double sum = 0;
    double count = 0;
    for (const run_line& line : lines) {
      if (!line.gpu || !((*line.gpu).*member)) continue;
      sum += *((*line.gpu).*member);
      ++count;
    }
    return count > 0 ? std::optional(sum / count) : std::nullopt;
  };
}

// Of a sum, by the time in which it came.
template <class Member>
measured by_second(Member member, double factor = 1) {
  return [member, factor](std::span<const run_line> lines) -> std::optional<double> {
    double sum = 0;
    double seconds = 0;
    for (const run_line& line : lines) {
      if constexpr (std::is_same_v<Member, double run_line::*>) {
        sum += line.*member;
      } else {
        if (!(line.*member)) return std::nullopt;
        sum += *(line.*member);
      }
      seconds += line.seconds;
    }
    return seconds > 0 ? std::optional(sum * factor / seconds) : std::nullopt;
  };
}

measured most_of(double run_line::waits::* member) {
  return [member](std::span<const run_line> lines) {
    std::optional<double> most;
    for (const run_line& line : lines) {
      if (line.waited) most = std::max(most.value_or(0), (*line.waited).*member);
    }
    return most;
  };
}

std::string words(std::string_view text) { return page_words(text); }

// The next 1, 2 or 5 with zeros above it.
double round_up(double value) {
  if (!(value > 0)) return 1;
  const double unit = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (value <= step * unit * (1 + 1e-9)) return step * unit;
  }
  return 10 * unit;
}

std::string clock_words(double seconds) {
  return seconds < 10 ? absl::StrFormat("%.3g s", seconds) : clock_text(seconds);
}

using number_words = std::string (*)(double);
std::string share_words(double share) { return absl::StrFormat("%.3g %%", share * 100); }
std::string memory_words(double bytes) { return bytes_text(static_cast<std::uint64_t>(bytes)); }
std::string wait_words(double ms) { return seconds_text(ms * 1e-3); }

/// Curves over time. Numbers stand beside the drawing, which has any width.
///   top   the value at the upper edge; 0: as the curves need
std::string plot(std::string_view title, const std::vector<curve>& curves, number_words say, double top = 0) {
  double end_s = 0;
  double most = 0;
  std::vector<std::vector<std::pair<double, double>>> all;
  for (const curve& each : curves) {
    std::vector<std::pair<double, double>>& points = all.emplace_back();
    end_s = std::max(end_s, end_of(*each.run));
    for (const moment& at : moments_of(*each.run)) {
      const std::span<const run_line> lines = lines_in(*each.run, at);
      if (const std::optional<double> value = each.value(lines)) {
        points.emplace_back(lines.back().end_s, *value);
        most = std::max(most, *value);
      }
    }
  }
  std::string html = str_cat("<section><h2>", html_text(title), "</h2>");
  const bool is_empty = std::all_of(all.begin(), all.end(), [](const auto& points) { return points.empty(); });
  if (is_empty) return html + "<p class=\"facts\">not measured</p></section>\n";
  if (top == 0) top = round_up(most);
  str_append(html, "<div class=\"plot\"><div class=\"up\"><span>", html_text(say(top)), "</span><span>",
             html_text(say(top / 2)),
             "</span><span>0</span></div><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" "
             "aria-label=\"",
             html_text(title), "\">");
  for (std::size_t i = 0; i < curves.size(); ++i) {
    std::string path;
    for (const auto& [at_s, value] : all[i]) {
      absl::StrAppendFormat(&path, "%s%.1f %.1f", path.empty() ? "M" : "L", at_s / end_s * 1000,
                            100 - std::min(value / top, 1.0) * 100);
    }
    // A single point would not be seen.
    if (all[i].size() == 1) path += "h8";
    if (!path.empty()) str_append(html, "<path class=\"line ", curves[i].kind, "\" d=\"", path, "\"/>");
  }
  str_append(html, "</svg><div class=\"along\"><span>0</span><span>", clock_words(end_s / 2), "</span><span>",
             clock_words(end_s), "</span></div></div>");
  if (curves.size() > 1) {
    html += "<p class=\"key\">";
    for (const curve& each : curves) {
      str_append(html, "<span><i class=\"", each.kind, "\"></i>", words(each.label), "</span>");
    }
    html += "</p>";
  }
  return html + "</section>\n";
}

// Names of a class each; what is none of these is unclear.
std::string_view kind_of(std::string_view verdict) {
  for (const std::string_view each : {"read", "decode", "transfer", "consumer", "variance"}) {
    if (verdict == each) return each;
  }
  return "unclear";
}

/// The share of its time that each verdict had, the largest first.
std::vector<std::pair<std::string_view, double>> verdict_shares(const recorded_run& run) {
  std::vector<std::pair<std::string_view, double>> shares;
  const double seconds = run.seconds();
  for (const run_line& line : run.lines) {
    const std::string_view kind = kind_of(line.verdict);
    const auto found = std::find_if(shares.begin(), shares.end(), [&](const auto& each) { return each.first == kind; });
    const double share = seconds > 0 ? line.seconds / seconds : 0;
    if (found == shares.end()) {
      shares.emplace_back(kind, share);
    } else {
      found->second += share;
    }
  }
  std::sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return shares;
}

// Of the lines of a moment the verdict that had most of its time.
std::string_view verdict_of(std::span<const run_line> lines) {
  std::string_view best = "unclear";
  double most = -1;
  for (const run_line& one : lines) {
    double seconds = 0;
    for (const run_line& other : lines) seconds += kind_of(other.verdict) == kind_of(one.verdict) ? other.seconds : 0;
    if (seconds > most) {
      most = seconds;
      best = kind_of(one.verdict);
    }
  }
  return best;
}

std::string verdict_band(const run_report& report) {
  std::string html = "<section><h2>The bottleneck</h2>";
  for (const recorded_run& run : report.runs) {
    if (report.runs.size() > 1) str_append(html, "<div>", words(run.path), "</div>");
    const double end_s = end_of(run);
    html +=
        "<svg class=\"band\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"the "
        "bottleneck over time\">";
    double from = 0;
    for (const moment& at : moments_of(run)) {
      const std::span<const run_line> lines = lines_in(run, at);
      const double to = lines.back().end_s / end_s * 1000;
      absl::StrAppendFormat(&html, "<rect class=\"%s\" x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"10\"/>",
                            as_absl(verdict_of(lines)), from, std::max(to - from, 0.0));
      from = to;
    }
    html += "</svg><p class=\"key\">";
    for (const auto& [kind, share] : verdict_shares(run)) {
      str_append(html, "<span><i class=\"", kind, "\"></i>", kind, " ", share_words(share), "</span>");
    }
    html += "</p>";
  }
  return html + "</section>\n";
}

struct cost {
  double all = 0;
  double waits = 0;
};
cost cost_of(const recorded_run& run, double price_per_hour) {
  return {.all = run.seconds() / 3600 * price_per_hour, .waits = run.stalled_s() / 3600 * price_per_hour};
}

std::string measured_words(const run_measure& of) {
  if (!of.value) return "not measured: " + of.why;
  return of.name == "rss_bytes" ? memory_words(*of.value) : measure_text(*of.value);
}

std::string measures_table(const run_report& report) {
  std::string html = "<section><h2>Figures</h2><table><tr><th></th>";
  for (const recorded_run& run : report.runs) str_append(html, "<th>", words(run.path), "</th>");
  html += "</tr>";
  for (std::size_t i = 0; i < report.measures.front().size(); ++i) {
    const run_measure& first = report.measures.front()[i];
    str_append(html, "<tr><th>", html_text(first.is), " (", html_text(first.name), ")</th>");
    for (const auto& each : report.measures)
      str_append(html, "<td class=\"n\">", words(measured_words(each[i])), "</td>");
    html += "</tr>";
  }
  if (report.price_per_hour > 0) {
    html += "<tr><th>cost, and of it of waits</th>";
    for (const recorded_run& run : report.runs) {
      const cost of = cost_of(run, report.price_per_hour);
      absl::StrAppendFormat(&html, "<td class=\"n\">%.4g, %.4g</td>", of.all, of.waits);
    }
    html += "</tr>";
  }
  return html + "</table></section>\n";
}

std::string_view outcome_words(limit_outcome outcome) {
  switch (outcome) {
    case limit_outcome::kept:
      return "kept";
    case limit_outcome::broken:
      return "broken";
    case limit_outcome::not_measured:
      break;
  }
  return "not measured";
}

std::string limit_words(const run_limit& limit) {
  return str_cat(limit.name, limit.at_most ? " <= " : " >= ", absl::StrFormat("%.6g", limit.bound));
}

std::string limits_table(const run_report& report) {
  if (report.limits.empty()) return "";
  std::string html = "<section><h2>Limits</h2><table>";
  for (const held_limit& each : report.limits) {
    str_append(html, "<tr><td>", html_text(limit_words(each.limit)), "</td><td class=\"n\">",
               words(measured_words(each.measure)), "</td><td class=\"",
               each.outcome == limit_outcome::kept ? "kept" : "broken", "\">", outcome_words(each.outcome),
               "</td></tr>");
  }
  return html + "</table></section>\n";
}

// What it measured; nothing where no GPU was looked at, which the figures say.
std::string gpu_plot(const recorded_run& run) {
  std::vector<curve> curves;
  const auto add = [&](const char* label, std::optional<double> run_line::gpu_shares::* member) {
    const auto has = [&](const run_line& line) { return line.gpu && (*line.gpu).*member; };
    if (!std::any_of(run.lines.begin(), run.lines.end(), has)) return;
    curves.push_back({label, curves.empty() ? "" : "second", &run, mean_of(member)});
  };
  add("SMs that were busy", &run_line::gpu_shares::sm);
  add("time with a kernel on it", &run_line::gpu_shares::busy);
  if (curves.empty()) return "";
  // One has no key beside it.
  return plot(curves.size() == 1 ? str_cat("The GPU: ", curves.front().label) : std::string("The GPU"), curves,
              share_words, 1);
}

std::string threads_table(const recorded_run& run) {
  std::vector<std::pair<std::string, double>> busy;  // core-seconds
  for (const run_line& line : run.lines) {
    for (const auto& [name, cores] : line.threads) {
      const auto found = std::find_if(busy.begin(), busy.end(), [&](const auto& each) { return each.first == name; });
      if (found != busy.end()) {
        found->second += cores * line.seconds;
      } else if (busy.size() < rows_max) {
        busy.emplace_back(name, cores * line.seconds);
      }
    }
  }
  if (busy.empty()) return "";
  std::string html = "<section><h2>CPU by thread</h2><table>";
  for (const auto& [name, core_s] : busy) {
    const double share = std::min(core_s / std::max(run.seconds(), 1e-9), 1.0);
    absl::StrAppendFormat(&html,
                          "<tr><th>%s</th><td class=\"n\">%s</td><td style=\"width:50%%\"><div class=\"bar\" "
                          "style=\"width:%.1f%%\"></div></td></tr>",
                          words(name), share_words(share), share * 100);
  }
  return html + "</table></section>\n";
}

/// The seconds of the longest waits, the longest first.
std::vector<const run_line*> slowest_of(const recorded_run& run, std::size_t count) {
  std::vector<const run_line*> slowest;
  for (const run_line& line : run.lines) {
    if (line.waited) slowest.push_back(&line);
  }
  std::sort(slowest.begin(), slowest.end(), [](const run_line* a, const run_line* b) {
    const bool is_equal = a->waited->max_ms == b->waited->max_ms;
    return is_equal ? a->end_s < b->end_s : a->waited->max_ms > b->waited->max_ms;
  });
  slowest.resize(std::min(slowest.size(), count));
  return slowest;
}

std::string slowest_table(const recorded_run& run) {
  const std::vector<const run_line*> slowest = slowest_of(run, 8);
  if (slowest.empty()) return "";
  std::string html =
      "<section><h2>Batches that were waited for "
      "longest</h2><table><tr><th>epoch</th><th>batch</th><th>wait</th><th>at</th><th>bottleneck</th></tr>";
  for (const run_line* const line : slowest) {
    str_append(html, "<tr><td class=\"n\">", line->waited->epoch, "</td><td class=\"n\">", line->waited->batch,
               "</td><td class=\"n\">", wait_words(line->waited->max_ms), "</td><td class=\"n\">",
               clock_words(line->end_s), "</td><td>", words(line->verdict), "</td></tr>");
  }
  return html + "</table></section>\n";
}

std::string steps_table(const recorded_run& run) {
  std::string html;
  std::size_t rows = 0;
  for (const run_line& line : run.lines) {
    for (const run_line::step& each : line.steps) {
      if (++rows > rows_max) continue;
      str_append(html, "<tr><td class=\"n\">", clock_words(each.at_s), "</td><td>", words(each.setting),
                 "</td><td class=\"n\">", measure_text(each.from), " to ", measure_text(each.to), "</td><td>",
                 words(each.why), "</td><td class=\"n\">", share_words(each.stall_share), "</td></tr>");
    }
  }
  if (html.empty()) return "";
  if (rows > rows_max) str_append(html, "<tr><td>and ", rows - rows_max, " more</td></tr>");
  return str_cat(
      "<section><h2>What the tuner changed</h2><table><tr><th>at</th><th>setting</th><th>from, to</th><th>for</th>"
      "<th>stall before</th></tr>",
      html, "</table></section>\n");
}

std::string value_words(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::vector<std::string> all;
    for (const auto& each : value) all.push_back(value_words(each));
    return joined(all, " ");
  }
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string settings_table(const recorded_run& run) {
  std::string html;
  for (const nlohmann::ordered_json* const part : {&run.settings, &run.about}) {
    if (!part->is_object()) continue;
    std::size_t rows = 0;
    for (const auto& [name, value] : part->items()) {
      if (++rows > rows_max) break;
      str_append(html, "<tr><th>", words(name), "</th><td>", words(value_words(value)), "</td></tr>");
    }
  }
  return html.empty() ? "" : str_cat("<section><h2>Settings</h2><table>", html, "</table></section>\n");
}

/// A curve of each run.
std::vector<curve> of_runs(const run_report& report, const measured& value) {
  std::vector<curve> curves;
  for (const recorded_run& run : report.runs) curves.push_back({run.path, curves.empty() ? "" : "second", &run, value});
  return curves;
}

std::string facts_of(const recorded_run& run) {
  return str_cat(count_text(static_cast<std::uint64_t>(run.samples())), " samples in ", seconds_text(run.seconds()),
                 run.unreadable > 0
                     ? str_cat("; ", counted(run.unreadable, "line", "lines"), " of the file could not be read")
                     : "");
}

}  // namespace

bool run_report::keeps_limits() const {
  return std::all_of(limits.begin(), limits.end(),
                     [](const held_limit& each) { return each.outcome == limit_outcome::kept; });
}

std::string run_report::as_html() const {
  const recorded_run& run = runs.front();
  std::string html = page_head(run.path, style);
  for (const recorded_run& each : runs) {
    str_append(html, "<p class=\"facts\">", runs.size() > 1 ? words(each.path) + ": " : "", facts_of(each), "</p>\n");
  }
  html += "<div class=\"cards\">\n";
  html += limits_table(*this);
  html += plot("Samples a second", of_runs(*this, by_second(&run_line::samples)), measure_text);
  html += plot("Share of the time that the trainer waited", of_runs(*this, by_second(&run_line::stalled_s)),
               share_words, 1);
  html += verdict_band(*this);
  html += plot("Wait of next(): the 99th percentile of each second", of_runs(*this, most_of(&run_line::waits::p99_ms)),
               wait_words);
  html += plot("Queues",
               {{"reads in flight", "", &run, mean_of(&run_line::reads_in_flight)},
                {"samples that wait for a decode thread", "second", &run, mean_of(&run_line::decode_queued)}},
               measure_text);
  html += plot("Batches that are ready", of_runs(*this, mean_of(&run_line::batches_ready)), measure_text);
  html += plot("Cores in use", of_runs(*this, by_second(&run_line::cpu_s)), measure_text);
  html += gpu_plot(run);
  html += threads_table(run);
  html += plot("Memory",
               {{"of the process", "", &run, mean_of(&run_line::rss_bytes)},
                {"of the loader", "second", &run, mean_of(&run_line::arena_bytes)}},
               memory_words);
  html += steps_table(run);
  html += slowest_table(run);
  html += measures_table(*this);
  html += settings_table(run);
  return html + "</div>\n" + page_end();
}

std::string run_report::as_text(const terminal& screen) const {
  std::string text;
  const auto row = [&](std::string_view name, std::string_view value) {
    str_append(text, "  ", screen.dim(absl::StrFormat("%-12s", as_absl(name))), value, "\n");
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const recorded_run& run = runs[i];
    const auto value = [&](std::string_view name) {
      for (const run_measure& each : measures[i]) {
        if (each.name == name) return each.value ? measured_words(each) : std::string("-");
      }
      return std::string("-");
    };
    str_append(text, "\n", screen.bold(one_line(run.path)), ": ", facts_of(run), "\n\n");
    row("speed", str_cat(value("samples_per_s"), " samples/s"));
    row("trainer", str_cat("it waited ", share_words(run.stalled_s() / std::max(run.seconds(), 1e-9)),
                           " of the time; au ", value("au")));
    std::vector<std::string> shares;
    for (const auto& [kind, share] : verdict_shares(run)) shares.push_back(str_cat(kind, " ", share_words(share)));
    row("bottleneck", joined(shares, ", "));
    row("next()", str_cat("median ", value("next_p50_ms"), " ms, 1 % over ", value("next_p99_ms"), " ms, longest ",
                          value("next_max_ms"), " ms"));
    row("cpu", str_cat(value("cpu"), " of the cores, ", value("cpu_ms_per_sample"), " ms a sample"));
    if (value("sm") != "-" || value("gpu_busy") != "-") {
      // GPUs before Hopper count no SMs.
      std::vector<std::string> known;
      if (value("sm") != "-") known.push_back(str_cat(value("sm"), " of its SMs busy"));
      if (value("gpu_busy") != "-") known.push_back(str_cat("a kernel on it ", value("gpu_busy"), " of the time"));
      row("gpu", joined(known, ", "));
    }
    row("memory", str_cat(value("rss_bytes"), " at most"));
    if (const auto slowest = slowest_of(run, 1); !slowest.empty()) {
      row("slowest", str_cat("batch ", slowest[0]->waited->batch, " of epoch ", slowest[0]->waited->epoch, ", after ",
                             wait_words(slowest[0]->waited->max_ms)));
    }
    if (price_per_hour > 0) {
      const cost of = cost_of(run, price_per_hour);
      row("cost", absl::StrFormat("%.4g, of it %.4g of waits", of.all, of.waits));
    }
  }
  for (const held_limit& each : limits) {
    const std::string said = str_cat(
        outcome_words(each.outcome), ": ", limit_words(each.limit),
        each.measure.value ? str_cat(", it was ", measured_words(each.measure)) : str_cat("; ", each.measure.why));
    row("limit", each.outcome == limit_outcome::kept ? said : screen.warning(said));
  }
  return text + "\n";
}

}  // namespace leat::tools

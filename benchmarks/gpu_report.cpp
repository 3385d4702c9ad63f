#include "benchmarks/gpu_report.hpp"

#include "base/text.hpp"

#include <absl/strings/str_format.h>
#include <absl/strings/str_replace.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <utility>

namespace leat::benchmarks {
namespace {

std::string number(double value, int decimals, const std::string& unit) {
  return absl::StrFormat("%.*f%s%s", decimals, value, unit.empty() ? "" : " ", unit);
}

/// "1.003 (1.001..1.006)"
std::string with_spread(const measured& of) {
  if (of.value.empty()) return "not measured";
  return absl::StrFormat("%.*f (%.*f..%.*f)%s%s", of.decimals, of.value.median(), of.decimals, of.value.low(),
                         of.decimals, of.value.high(), of.unit.empty() ? "" : " ", of.unit);
}

std::string in_words(const std::optional<target>& wanted, const measured& of) {
  if (!wanted) return "";
  return str_cat(wanted->how == target::sense::at_most ? "at most " : "at least ",
                 number(wanted->value, of.decimals, of.unit));
}

std::string_view verdict(const report_line& line) {
  if (!line.target) return "";
  return line.met() ? "met" : "MISSED";
}

/// "with leat 5.01 (5.00..5.03) ms, data there 5.00 (4.99..5.01) ms"
std::string computed_from(const report_line& line) {
  std::string text;
  for (const measured& each : line.of) {
    str_append(text, text.empty() ? "" : ", ", each.name, " ", with_spread(each));
  }
  return text;
}

// A number that is none (no round, a division by nothing) has no place in JSON.
nlohmann::ordered_json finite(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json as_object(const measured& of) {
  nlohmann::ordered_json made{{"name", of.name}, {"unit", of.unit}, {"rounds", of.value.count()}};
  if (of.value.empty()) return made;
  made["median"] = finite(of.value.median());
  made["low"] = finite(of.value.low());
  made["high"] = finite(of.value.high());
  return made;
}

std::string cell(const std::string& text) { return absl::StrReplaceAll(text, {{"|", "\\|"}, {"\n", " "}}); }

}  // namespace

bool report_line::met() const {
  if (!target) return true;
  if (what.value.empty()) return false;
  return target->how == target::sense::at_most ? what.value.median() <= target->value
                                               : what.value.median() >= target->value;
}

void first_steps::add(const round& measured) {
  const auto steps = static_cast<double>(measured.steps);
  more_ms_.add(measured.took_ms - steps * measured.later_ms);
  steps_.add(steps);
  step_ms_.add(measured.took_ms / steps);
  later_ms_.add(measured.later_ms);
  pins_.add(static_cast<double>(measured.pins));
  pinning_ms_.add(measured.pinning_ms);
}

report_line first_steps::report(std::string under) const {
  return {.what = {"what the first steps take longer, while memory is pinned", more_ms_, "ms", 2},
          .under = std::move(under),
          .of = {{"first steps", steps_, "", 0},
                 {"each of them", step_ms_, "ms", 3},
                 {"a later one", later_ms_, "ms", 3},
                 {"calls that pin", pins_, "", 0},
                 {"all of those", pinning_ms_, "ms", 2}}};
}

std::string gpu_report::as_table() const {
  std::string text;
  for (const auto& [name, value] : facts) str_append(text, absl::StrFormat("  %-10s %s\n", name, value));
  std::string last;
  for (const report_line& line : lines) {
    if (line.what.name != last) str_append(text, "\n", line.what.name, "\n");
    last = line.what.name;
    str_append(text, absl::StrFormat("  %-34s %-28s %-16s %s\n", line.under, with_spread(line.what),
                                     in_words(line.target, line.what), verdict(line)));
    if (!line.of.empty()) str_append(text, "      ", computed_from(line), "\n");
  }
  if (!left_out.empty()) text += "\n";
  for (const std::string& each : left_out) str_append(text, "left out: ", each, "\n");
  return text;
}

std::string gpu_report::as_json() const {
  nlohmann::ordered_json made;
  made["facts"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : facts) made["facts"][name] = value;
  made["figures"] = nlohmann::ordered_json::array();
  for (const report_line& line : lines) {
    nlohmann::ordered_json each = as_object(line.what);
    each["under"] = line.under;
    if (line.target) {
      each["target"] = {{"at", line.target->how == target::sense::at_most ? "most" : "least"},
                        {"value", line.target->value},
                        {"met", line.met()}};
    }
    each["of"] = nlohmann::ordered_json::array();
    for (const measured& part : line.of) each["of"].push_back(as_object(part));
    made["figures"].push_back(std::move(each));
  }
  made["left_out"] = left_out;
  // What a driver says of itself is not always UTF-8.
  return made.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string gpu_report::as_markdown(const std::string& title) const {
  std::string text = str_cat("# ", title, "\n\n");
  for (const auto& [name, value] : facts) str_append(text, "- ", name, ": ", value, "\n");
  str_append(text, "\nMedian (lowest..highest) of interleaved rounds; each figure beside what it was computed from.\n",
             "\n| figure | under | measured | target | | computed from |\n| --- | --- | --- | --- | --- | --- |\n");
  for (const report_line& line : lines) {
    str_append(text, "| ", cell(line.what.name), " | ", cell(line.under), " | ", with_spread(line.what), " | ",
               in_words(line.target, line.what), " | ", verdict(line), " | ", cell(computed_from(line)), " |\n");
  }
  if (!left_out.empty()) text += "\nLeft out:\n\n";
  for (const std::string& each : left_out) str_append(text, "- ", each, "\n");
  return text;
}

}  // namespace leat::benchmarks

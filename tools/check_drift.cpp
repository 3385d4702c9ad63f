#include "tools/check_drift.hpp"

#include "base/parse_json.hpp"
#include "base/text.hpp"
#include "tools/human.hpp"
#include "tools/whole_file.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;

// A report of ten million broken samples is smaller.
constexpr std::uint64_t baseline_bytes_max = std::uint64_t{4} << 30;
// Means that differ and do not vary are infinitely many deviations apart, for which JSON has no number.
constexpr double effect_max = 99;

std::string_view size_of(std::string_view measure, double effect) {
  const bool is_delta = measure == "delta";
  const double from[] = {is_delta ? 0.147 : 0.2, is_delta ? 0.33 : 0.5, is_delta ? 0.474 : 0.8};
  const double apart = std::abs(effect);
  return apart >= from[2] ? "large" : apart >= from[1] ? "medium" : apart >= from[0] ? "small" : "none";
}
int rank_of(std::string_view size) { return size == "large" ? 0 : size == "medium" ? 1 : size == "small" ? 2 : 3; }

[[noreturn]] void refuse_report(std::string_view what) {
  throw error(errc::format, str_cat("is no report of leat check --json: ", what));
}

const json& member_of(const json& object, const char* name) {
  const auto found = object.find(name);
  if (!object.is_object() || found == object.end()) refuse_report(str_cat("it has no '", name, "'"));
  return *found;
}
double number_of(const json& object, const char* name) {
  const json& value = member_of(object, name);
  if (!value.is_number()) refuse_report(str_cat("'", name, "' is no number"));
  return value.get<double>();
}
std::string text_of_member(const json& object, const char* name) {
  const json& value = member_of(object, name);
  if (!value.is_string()) refuse_report(str_cat("'", name, "' is no text"));
  return value.get<std::string>();
}
const json& list_of(const json& object, const char* name) {
  const json& value = member_of(object, name);
  if (!value.is_array()) refuse_report(str_cat("'", name, "' is no list"));
  return value;
}

std::map<double, double> histogram_of(const json& spread) {
  if (!spread.is_object() || !spread.contains("histogram")) {
    refuse_report("it has no histograms, as an older leat wrote it; make it anew");
  }
  std::map<double, double> counts;
  for (const json& each : list_of(spread, "histogram")) {
    if (!each.is_array() || each.size() != 2 || !each[0].is_number() || !each[1].is_number()) {
      refuse_report("a histogram has pairs of numbers");
    }
    counts[each[0].get<double>()] += each[1].get<double>();
  }
  return counts;
}

/// The share of pairs of which the number now is larger, without those of which it is smaller. Nothing where one has none.
std::optional<double> cliffs_delta(const std::map<double, double>& before, const std::map<double, double>& now) {
  double all_before = 0;
  double all_now = 0;
  for (const auto& [size, count] : before) all_before += count;
  for (const auto& [size, count] : now) all_now += count;
  if (!(all_before > 0) || !(all_now > 0)) return std::nullopt;
  double larger = 0;
  double below = 0;  // of those before
  auto at = before.begin();
  for (const auto& [size, count] : now) {
    for (; at != before.end() && at->first < size; ++at) below += at->second;
    const double equal = at != before.end() && at->first == size ? at->second : 0;
    larger += count * (below - (all_before - below - equal));
  }
  return larger / (all_before * all_now);
}

// Of two shares.
double cohens_h(double before, double now) {
  const auto angle = [](double share) { return 2 * std::asin(std::sqrt(std::clamp(share, 0.0, 1.0))); };
  return angle(now) - angle(before);
}

double cohens_d(double mean_before, double deviation_before, double mean_now, double deviation_now) {
  const double apart = mean_now - mean_before;
  const double pooled = std::sqrt((deviation_before * deviation_before + deviation_now * deviation_now) / 2);
  if (apart == 0) return 0;
  return pooled > 0 ? std::clamp(apart / pooled, -effect_max, effect_max) : std::copysign(effect_max, apart);
}

void add_effect(check_drift& drift, std::string of, std::string_view measure, double effect) {
  drift.effects.push_back({std::move(of), measure, effect, size_of(measure, effect)});
}

void compare_spreads(check_drift& drift, const char* name, const json& before, const json& now) {
  const std::optional<double> delta = cliffs_delta(histogram_of(before), histogram_of(now));
  if (delta) add_effect(drift, name, "delta", *delta);
}

// By name, which is the number where classes have none.
std::map<std::string, double> classes_in(const json& report) {
  std::map<std::string, double> counts;
  for (const json& each : list_of(report, "classes"))
    counts[text_of_member(each, "name")] += number_of(each, "samples");
  return counts;
}

double sum_of(const std::map<std::string, double>& counts) {
  double all = 0;
  for (const auto& [name, count] : counts) all += count;
  return all;
}

void compare_classes(check_drift& drift, const json& before, const json& now) {
  const std::map<std::string, double> old_counts = classes_in(before);
  const std::map<std::string, double> counts = classes_in(now);
  const double old_all = sum_of(old_counts);
  const double all = sum_of(counts);
  for (const auto& [name, count] : old_counts) {
    if (!counts.contains(name)) drift.missing_classes.push_back(name);
  }
  for (const auto& [name, count] : counts) {
    const auto old_one = old_counts.find(name);
    if (old_one == old_counts.end()) {
      drift.new_classes.push_back(name);
      continue;
    }
    add_effect(drift, str_cat("class ", name), "h", cohens_h(old_one->second / old_all, count / all));
  }
}

void compare_numbers(check_drift& drift, const json& before, const json& now) {
  const json& numbers = list_of(now, "numbers");
  // Numbers of classes have no mean that says anything; classes are compared by name.
  const std::string label = now.contains("class_label") ? text_of_member(now, "class_label") : std::string();
  for (const json& old_one : list_of(before, "numbers")) {
    const std::string name = text_of_member(old_one, "name");
    if (name == label) continue;
    const auto one = std::find_if(numbers.begin(), numbers.end(),
                                  [&](const json& each) { return text_of_member(each, "name") == name; });
    if (one == numbers.end()) {
      drift.missing_columns.push_back(name);
      continue;
    }
    if (old_one.contains("mean") && one->contains("mean")) {
      add_effect(drift, str_cat("column ", name), "d",
                 cohens_d(number_of(old_one, "mean"), number_of(old_one, "deviation"), number_of(*one, "mean"),
                          number_of(*one, "deviation")));
    }
    const auto lacking = [](const json& of) {
      const double missing = number_of(of, "missing") + number_of(of, "not_a_number");
      const double all = number_of(of, "missing") + number_of(of, "samples");
      return all > 0 ? missing / all : 0;
    };
    add_effect(drift, str_cat("column ", name, ", missing"), "h", cohens_h(lacking(old_one), lacking(*one)));
  }
}

void compare_pictures(check_drift& drift, const json& before, const json& now) {
  const bool were_there = number_of(before, "samples") != 0;
  if (were_there && number_of(now, "samples") == 0) drift.missing_columns.emplace_back("pictures");
  if (!were_there || number_of(now, "samples") == 0) return;
  compare_spreads(drift, "width", member_of(before, "width"), member_of(now, "width"));
  compare_spreads(drift, "height", member_of(before, "height"), member_of(now, "height"));
  const char* const channels[] = {"red", "green", "blue"};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto channel = [&](const json& of, const char* what) {
      const json& three = list_of(of, what);
      if (three.size() != 3 || !three[i].is_number()) refuse_report(str_cat("'", what, "' has three numbers"));
      return three[i].get<double>();
    };
    add_effect(drift, channels[i], "d",
               cohens_d(channel(before, "mean"), channel(before, "deviation"), channel(now, "mean"),
                        channel(now, "deviation")));
  }
}

}  // namespace

json check_drift::as_json() const {
  json all = json::array();
  for (const drift_effect& each : effects) {
    all.push_back({{"of", each.of}, {"measure", each.measure}, {"effect", each.effect}, {"size", each.size}});
  }
  return {{"samples", samples_before},          {"wrong", is_wrong()},
          {"new_classes", new_classes},         {"missing_classes", missing_classes},
          {"missing_columns", missing_columns}, {"effects", std::move(all)}};
}

check_drift drift_between(const json& before, const json& now) {
  check_drift drift;
  const double samples = number_of(before, "samples");
  if (!(samples >= 0 && samples < 0x1p53)) refuse_report("'samples' is no count");
  drift.samples_before = static_cast<std::uint64_t>(samples);
  compare_spreads(drift, "bytes", member_of(before, "bytes"), member_of(now, "bytes"));
  compare_pictures(drift, member_of(before, "pictures"), member_of(now, "pictures"));
  compare_numbers(drift, before, now);
  compare_classes(drift, before, now);
  std::sort(drift.effects.begin(), drift.effects.end(), [](const drift_effect& a, const drift_effect& b) {
    return std::pair(rank_of(a.size), std::string_view(a.of)) < std::pair(rank_of(b.size), std::string_view(b.of));
  });
  return drift;
}

json read_baseline(const std::string& path) {
  const auto fail = [&](const std::string& why) {
    throw error(errc::usage, str_cat("--baseline ", one_line(path), ": ", why));
  };
  int failure = 0;
  const std::string text = whole_file(path, failure, baseline_bytes_max);
  if (failure == EFBIG) fail("is larger than any report of leat check --json");
  if (failure != 0) fail(str_cat("cannot read it: ", std::generic_category().message(failure)));
  try {
    json report = parse_json<json>(text);
    static_cast<void>(drift_between(report, report));  // Before the work: an hour later it is lost.
    return report;
  } catch (const error& wrong) {
    fail(wrong.what());
  }
  return {};
}

}  // namespace leat::tools

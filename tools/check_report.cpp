#include "tools/check_report.hpp"

#include "base/text.hpp"
#include "tools/class_counts.hpp"
#include "tools/human.hpp"
#include "tools/output_kind.hpp"
#include "tools/run_record.hpp"
#include "tools/sample_list.hpp"

#include <leat/error.hpp>

#include <absl/strings/str_format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;

// Of each kind, on a screen.
constexpr std::size_t shown_max = 2;
constexpr std::size_t classes_shown = 4;

std::string name_of(const dataset& samples, std::uint64_t sample) {
  try {
    return samples.name(sample);
  } catch (const error&) {
    return str_cat("sample ", sample);  // The shard that holds its name is damaged too.
  }
}

json class_json(const checked_samples& set, std::uint64_t sample) {
  return set.all[sample].has_class ? json(set.all[sample].cls) : json();
}

json spread_json(const spread_of& of) {
  json histogram = json::array();
  for (const auto& [size, count] : of.histogram) histogram.push_back({size, count});
  return {{"least", of.least}, {"p5", of.p5},           {"median", of.median},   {"p95", of.p95},
          {"p99", of.p99},     {"largest", of.largest}, {"histogram", histogram}};
}

json numbers_json(const checked_samples& set) {
  json all = json::array();
  for (const number_facts& each : set.numbers) {
    json one = {{"name", each.name},
                {"array", each.is_array},
                {"samples", each.samples},
                {"missing", each.missing},
                {"not_a_number", each.not_a_number},
                {"constant", each.is_constant()},
                {"least", each.least ? json(*each.least) : json()},
                {"largest", each.largest ? json(*each.largest) : json()}};
    // Sums of numbers near the largest are infinite, for which JSON has no number.
    if (!each.is_array && each.least && std::isfinite(each.mean) && std::isfinite(each.deviation)) {
      one["mean"] = each.mean;
      one["deviation"] = each.deviation;
    }
    all.push_back(std::move(one));
  }
  return all;
}

json same_json(const checked_samples& set, const std::vector<same_content>& groups) {
  json all = json::array();
  for (const same_content& group : groups) {
    json samples = json::array();
    for (const std::uint64_t sample : group.samples) {
      samples.push_back(
          {{"sample", sample}, {"name", name_of(set.samples, sample)}, {"class", class_json(set, sample)}});
    }
    all.push_back({{"digest", group.content.hex()}, {"samples", std::move(samples)}});
  }
  return all;
}

json similar_json(const checked_samples& set, const checked_samples& of, const std::vector<similar_sample>& similar) {
  json all = json::array();
  for (const similar_sample& each : similar) {
    all.push_back({{"sample", each.sample},
                   {"name", name_of(set.samples, each.sample)},
                   {"class", class_json(set, each.sample)},
                   {"of", each.of},
                   {"of_name", name_of(of.samples, each.of)},
                   {"of_class", class_json(of, each.of)},
                   {"bits", each.bits},
                   {"other_columns", each.rest_differs}});
  }
  return all;
}

json faults_json(const checked_samples& set) {
  json all = json::array();
  for (const sample_fault& each : set.faults) {
    all.push_back({{"sample", each.sample},
                   {"name", name_of(set.samples, each.sample)},
                   {"field", each.field},
                   {"kind", each.kind},
                   {"reason", each.reason}});
  }
  return all;
}

std::uint64_t samples_with_faults(const checked_samples& set) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < set.faults.size(); ++i) {
    if (i == 0 || set.faults[i].sample != set.faults[i - 1].sample) ++count;
  }
  return count;
}

std::uint64_t samples_in(const std::vector<same_content>& groups) {
  std::uint64_t count = 0;
  for (const same_content& each : groups) count += each.samples.size();
  return count;
}

// "0.485, 0.456, 0.406", as C++ and Python read it.
std::string three(const std::array<double, 3>& values) {
  return str_cat(with_decimals(values[0], 4), ", ", with_decimals(values[1], 4), ", ", with_decimals(values[2], 4));
}

/// Lines of a name and what is said of it.
class lines {
 public:
  explicit lines(const terminal& screen) : screen_(screen) {}

  void add(std::string_view name, const std::string& said, bool is_wrong = false) {
    const std::string column = to_left(name, name_columns);
    str_append(text_, "  ", is_wrong ? screen_.warning(column) : column, "  ", said, "\n");
  }
  void add_below(const std::string& said) {
    str_append(text_, std::string(name_columns + 4, ' '), screen_.dim(one_line(said)), "\n");
  }
  void blank() { text_ += '\n'; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  static constexpr std::size_t name_columns = 12;
  const terminal& screen_;
  std::string text_;
};

template <class All, class Words>
void add_some(lines& to, const All& all, const Words& words) {
  for (std::size_t i = 0; i < std::min(all.size(), shown_max); ++i) to.add_below(words(all[i]));
  if (all.size() > shown_max) to.add_below(str_cat("and ", count_text(all.size() - shown_max), " more"));
}

// Columns that say nothing.
void add_numbers(lines& to, const checked_samples& set) {
  const auto add_those = [&](std::string_view name, const auto& is_so, const auto& words) {
    std::vector<const number_facts*> some;
    for (const number_facts& each : set.numbers) {
      if (is_so(each)) some.push_back(&each);
    }
    if (some.empty()) return;
    to.add(name, counted(some.size(), "column", "columns"));
    add_some(to, some, words);
  };
  add_those(
      "constant", [](const number_facts& of) { return of.is_constant(); },
      [](const number_facts* of) { return str_cat(of->name, ": ", of->least.value_or(0)); });
  add_those(
      "no numbers", [](const number_facts& of) { return of.not_a_number != 0 || of.is_empty(); },
      [](const number_facts* of) {
        return str_cat(of->name, ": ",
                       of->not_a_number == 0 ? "empty" : count_text(of->not_a_number) + " NaN or infinite");
      });
}

void add_drift(lines& to, const check_drift& drift) {
  std::vector<const drift_effect*> some;
  for (const drift_effect& each : drift.effects) {
    if (each.size != "none") some.push_back(&each);
  }
  to.add("baseline",
         str_cat(counted(drift.samples_before, "sample", "samples"), ": ",
                 some.empty() ? "nothing has drifted" : counted(some.size(), "thing has", "things have") + " drifted"));
  for (std::size_t i = 0; i < std::min<std::size_t>(some.size(), 5); ++i) {
    to.add_below(
        str_cat(some[i]->of, ": ", some[i]->size, ", ", some[i]->measure, " ", with_digits(some[i]->effect, 3)));
  }
  const auto add_names = [&](std::string_view what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    to.add(what, count_text(names.size()), true);
    add_some(to, names, [](const std::string& name) { return name; });
  };
  add_names("new classes", drift.new_classes);
  add_names("classes gone", drift.missing_classes);
  add_names("columns gone", drift.missing_columns);
}

std::string kinds_text(const checked_samples& set) {
  std::map<std::string_view, std::uint64_t> kinds;
  for (const sample_fault& each : set.faults) ++kinds[each.kind];
  std::string text;
  for (const auto& [kind, count] : kinds) str_append(text, text.empty() ? "" : ", ", count_text(count), " ", kind);
  return text;
}

std::string spread_text(const spread_of& of, std::string (*shown)(std::uint64_t)) {
  return str_cat("least ", shown(of.least), ", 5 % ", shown(of.p5), ", median ", shown(of.median), ", 95 % ",
                 shown(of.p95), ", 99 % ", shown(of.p99), ", largest ", shown(of.largest));
}
std::string as_bytes_text(std::uint64_t bytes) { return bytes_text(bytes); }

std::string classes_text(const checked_samples& set, const std::map<std::int64_t, std::uint64_t>& classes) {
  std::vector<std::pair<std::uint64_t, std::int64_t>> by_count;
  for (const auto& [number, count] : classes) by_count.emplace_back(count, number);
  std::sort(by_count.begin(), by_count.end());
  const auto shown = [&](const std::pair<std::uint64_t, std::int64_t>& each) {
    return str_cat(one_line(class_name(set.samples, each.second)), " ", count_text(each.first));
  };
  std::string text = str_cat(counted(by_count.size(), "class", "classes"), " by ", one_line(set.label), ": ");
  if (by_count.size() <= classes_shown) {
    std::string all;
    for (const auto& each : by_count) str_append(all, all.empty() ? "" : ", ", shown(each));
    return text + all;
  }
  return str_cat(text, "fewest ", shown(by_count.front()), ", median ", count_text(by_count[by_count.size() / 2].first),
                 ", most ", shown(by_count.back()));
}

// Of what stands behind an id.
std::map<std::uint64_t, std::string> reasons_of(const checked_samples& set, const check_findings& found) {
  std::map<std::uint64_t, std::string> reasons;
  for (const sample_fault& each : set.faults) reasons.emplace(each.sample, str_cat(each.kind, ": ", each.reason));
  for (const same_content& group : found.two_labels) {
    for (const std::uint64_t sample : group.samples) reasons.emplace(sample, "the same content under several classes");
  }
  if (found.shared) {
    for (const similar_sample& each : found.shared->same) {
      if (!each.rest_differs) reasons.emplace(each.sample, "also in the other set");
    }
  }
  for (const same_content& group : found.duplicates) {
    for (const std::uint64_t sample : group.samples) {
      reasons.emplace(sample, str_cat("the same in all as sample ", group.samples.front()));
    }
  }
  return reasons;
}

}  // namespace

std::string check_report::as_text(const terminal& screen, double seconds) const {
  const std::uint64_t all = set.all.size() + (other == nullptr ? 0 : other->all.size());
  const auto name = [&](std::uint64_t sample) { return name_of(set.samples, sample); };
  const auto group = [&](const same_content& each) {
    std::string names;
    for (std::size_t i = 0; i < std::min<std::size_t>(each.samples.size(), 3); ++i) {
      const std::uint64_t sample = each.samples[i];
      str_append(names, i == 0 ? "" : " = ", name(sample));
      const checked_sample& one = set.all[sample];
      if (one.has_class) str_append(names, " (", class_name(set.samples, one.cls), ")");
    }
    return each.samples.size() > 3 ? str_cat(names, " and ", count_text(each.samples.size() - 3), " more") : names;
  };
  const auto pair = [&](const checked_samples& of) {
    return [&](const similar_sample& each) {
      return str_cat(name(each.sample), " ~ ", name_of(of.samples, each.of), each.bits == 0 ? "" : ", ",
                     each.bits == 0 ? std::string() : counted(each.bits, "bit", "bits"),
                     each.labels_differ ? ", of other classes" : "", each.rest_differs ? ", with other columns" : "");
    };
  };
  const auto relabelled = static_cast<std::uint64_t>(std::count_if(
      found.near.begin(), found.near.end(), [](const similar_sample& each) { return each.labels_differ; }));

  lines text(screen);
  text.blank();
  text.add(
      "checked",
      str_cat(counted(set.all.size(), "sample", "samples"),
              other == nullptr ? std::string() : str_cat(" against ", counted(other->all.size(), "sample", "samples")),
              " in ", seconds_text(seconds), ", ",
              count_text(static_cast<std::uint64_t>(static_cast<double>(all) / std::max(seconds, 1e-9))),
              " samples/s"));
  text.add("broken", set.faults.empty() ? "none" : str_cat(count_text(samples_with_faults(set)), ": ", kinds_text(set)),
           !set.faults.empty());
  add_some(text, set.faults, [&](const sample_fault& each) {
    return str_cat(name(each.sample), each.field.empty() ? "" : ", ", each.field, ": ", each.reason);
  });
  if (!set.label.empty()) {
    text.add("two labels",
             found.two_labels.empty()
                 ? "no content has two"
                 : counted(found.two_labels.size(), "content has", "contents have") + " several, in " +
                       counted(samples_in(found.two_labels), "sample", "samples"),
             !found.two_labels.empty());
    add_some(text, found.two_labels, group);
  }
  text.add("duplicates", found.duplicates.empty()
                             ? "none"
                             : str_cat(count_text(samples_in(found.duplicates) - found.duplicates.size()),
                                       " beside the first of ", counted(found.duplicates.size(), "sample", "samples")));
  add_some(text, found.duplicates, group);
  if (!found.other_fields.empty()) {
    text.add("other fields",
             str_cat(counted(found.other_fields.size(), found.pictures == 0 ? "content" : "picture",
                             found.pictures == 0 ? "contents" : "pictures"),
                     " with several, in ", counted(samples_in(found.other_fields), "sample", "samples")));
    add_some(text, found.other_fields, group);
  }
  if (found.pictures != 0) {
    text.add("look alike", found.near.empty()
                               ? str_cat("none within ", bits_max, " bits")
                               : str_cat(counted(found.near.size(), "picture", "pictures"), " within ", bits_max,
                                         " bits of an earlier one",
                                         relabelled == 0 ? std::string()
                                                         : str_cat(", ", count_text(relabelled), " of another class")));
    add_some(text, found.near, pair(set));
    if (!found.flat.empty()) {
      text.add("one colour", counted(found.flat.size(), "picture", "pictures"));
      add_some(text, found.flat, name);
    }
  }
  if (found.shared) {
    const shared_samples& shared = *found.shared;
    text.add("in both",
             shared.same.empty() ? "no content"
                                 : counted(shared.same.size(), "sample is", "samples are") + " in the other set too",
             !shared.same.empty());
    add_some(text, shared.same, pair(*other));
    if (found.pictures != 0) {
      text.add("near in both", shared.near.empty() ? "none" : counted(shared.near.size(), "picture", "pictures"));
      add_some(text, shared.near, pair(*other));
    }
  }
  add_numbers(text, set);
  if (drift) add_drift(text, *drift);
  text.blank();
  if (!found.classes.empty()) text.add("classes", classes_text(set, found.classes));
  text.add("bytes", spread_text(found.bytes, as_bytes_text));
  if (found.pictures != 0) {
    text.add("width", spread_text(found.widths, count_text));
    text.add("height", spread_text(found.heights, count_text));
    text.add("normalize",
             str_cat(".normalize({{", three(set.pixels.means()), "}, {", three(set.pixels.deviations()), "}})"));
  }
  return text.text() + "\n";
}

json check_report::as_json() const {
  json classes = json::array();
  for (const auto& [number, count] : found.classes) {
    classes.push_back({{"class", number}, {"name", class_name(set.samples, number)}, {"samples", count}});
  }
  json flat = json::array();
  for (const std::uint64_t sample : found.flat) {
    flat.push_back({{"sample", sample}, {"name", name_of(set.samples, sample)}});
  }
  json shared;
  if (found.shared) {
    shared = {{"sources", against},
              {"samples", found.shared->looked_at},
              {"same", similar_json(set, *other, found.shared->same)},
              {"near", similar_json(set, *other, found.shared->near)}};
  }
  return {{"version", version_number()},
          {"sources", sources},
          {"samples", set.all.size()},
          {"strays", set.strays},
          {"wrong", is_wrong(set, found)},
          {"broken", faults_json(set)},
          {"two_labels", same_json(set, found.two_labels)},
          {"duplicates", same_json(set, found.duplicates)},
          {"other_fields", same_json(set, found.other_fields)},
          {"near_bits_max", bits_max},
          {"near", similar_json(set, set, found.near)},
          {"one_colour", flat},
          {"against", shared},
          {"baseline", drift ? drift->as_json() : json()},
          {"exclude", to_leave_out(set, found)},
          {"class_label", set.label},
          {"classes", classes},
          {"numbers", numbers_json(set)},
          {"bytes", spread_json(found.bytes)},
          {"pictures",
           {{"samples", found.pictures},
            {"width", spread_json(found.widths)},
            {"height", spread_json(found.heights)},
            {"decoded", set.pixels.pictures},
            {"mean", set.pixels.means()},
            {"deviation", set.pixels.deviations()}}}};
}

std::string check_report::as_ids() const {
  const std::map<std::uint64_t, std::string> reasons = reasons_of(set, found);
  const auto noted = [&](std::uint64_t sample, const std::string& why) {
    return str_cat(sample, "  # ", one_line(name_of(set.samples, sample)), ": ", one_line(why), "\n");
  };
  std::string text = made_of_line(set.samples);
  for (const std::uint64_t sample : to_leave_out(set, found)) text += noted(sample, reasons.at(sample));
  const auto add_similar = [&](const std::vector<similar_sample>& similar, std::string_view of) {
    for (const similar_sample& each : similar) {
      str_append(text, "# ", noted(each.sample, str_cat("resembles ", of, each.of, ", bits: ", each.bits)));
    }
  };
  if (found.shared) {
    for (const similar_sample& each : found.shared->same) {
      if (!each.rest_differs) continue;
      str_append(text, "# ", noted(each.sample, str_cat("with other columns, the other set's sample ", each.of)));
    }
  }
  if (!found.near.empty()) text += "# These resemble another; take the # away from those that are to go.\n";
  add_similar(found.near, "sample ");
  if (found.shared) add_similar(found.shared->near, "the other set's sample ");
  return sealed_list(text);
}

}  // namespace leat::tools

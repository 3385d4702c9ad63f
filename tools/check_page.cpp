#include "tools/check_page.hpp"

#include "base/text.hpp"
#include "tools/class_counts.hpp"
#include "tools/human.hpp"
#include "tools/page_parts.hpp"
#include "tools/thumbnails.hpp"

#include <leat/error.hpp>

#include <absl/strings/str_format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

// Of each kind, of classes and of columns; and bytes of a name. Even where every letter is escaped there is room for pictures.
constexpr std::size_t cells_max = 8;
constexpr std::size_t table_rows_max = 40;
constexpr std::size_t name_bytes_max = 90;
constexpr std::size_t check_page_bytes_max = 290'000;
// Of what is listed for the search: samples of all kinds together, if there is so much room, and classes.
constexpr std::size_t listed_bytes_max = 90'000;
constexpr std::size_t listed_classes_bytes_max = 25'000;

constexpr std::string_view check_style = R"(
.wide { grid-column: 1 / -1 }
.cells { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 210px), 1fr)); gap: 10px }
figure { margin: 0; background: var(--chip); border-radius: 8px; padding: 10px; min-width: 0 }
figure div { display: flex; gap: 6px; height: 96px; align-items: center; justify-content: center; color: var(--faint) }
figure img { max-width: 100%; border-radius: 3px }
figcaption { margin-top: 8px; font-size: 12px; overflow-wrap: anywhere }
figcaption b { font-weight: 600; color: var(--faint) }
rect { fill: var(--first) }
.find { position: sticky; top: 0; z-index: 1; background: var(--paper); margin: 0 0 12px; padding: 8px 0; color: var(--faint) }
.find input { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
              padding: 6px 10px; width: min(100%, 420px) }
[hidden] { display: none }
summary { cursor: pointer; color: var(--faint) }
code { font: 12px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere }
)";

// Rows of tables and figures stay that have all words. It looks at texts of the page alone, and makes none but a count.
constexpr std::string_view find_script = R"(
const find = document.querySelector(".find"), field = find.querySelector("input"), said = find.querySelector("span");
const rows = Array.from(document.querySelectorAll(".rows tr, figure"));
const texts = rows.map(function (row) {
  return Array.from(row.children, function (cell) { return cell.textContent; }).join(" ").toLowerCase();
});
find.hidden = false;
field.addEventListener("input", function () {
  const words = field.value.toLowerCase().split(" ").filter(Boolean);
  let shown = 0;
  rows.forEach(function (row, i) {
    const has = words.every(function (word) { return texts[i].includes(word); });
    row.hidden = !has;
    if (has) shown += 1;
  });
  document.querySelectorAll("details").forEach(function (list) { list.open = words.length !== 0; });
  said.textContent = words.length === 0 ? "" : shown + " of " + rows.length;
});
)";

/// A sample of a set.
struct pictured {
  const checked_samples* of;
  std::uint64_t sample = 0;
};

///   pictures   beside each other
struct finding_cell {
  std::vector<pictured> pictures;
  std::string caption;  // HTML
};

///   count     of all that were found
///   samples   these, as far as they may be listed; of all that could be
struct finding_section {
  std::string_view title;
  std::uint64_t count = 0;
  bool is_wrong = false;
  std::vector<finding_cell> cells = {};
  std::vector<pictured> samples = {};
  std::uint64_t of_all = 0;

  void list(pictured one) {
    ++of_all;
    if (samples.size() < listed_max) samples.push_back(one);
  }
  static constexpr std::size_t listed_max = 1000;
};

std::string name_words(const pictured& of) {
  try {
    return page_words(of.of->samples.name(of.sample), name_bytes_max);
  } catch (const error&) {
    return "its shard cannot be read";
  }
}

// Empty where it has none.
std::string class_words(const pictured& of) {
  const checked_sample& one = of.of->all[of.sample];
  return one.has_class ? page_words(class_name(of.of->samples, one.cls), name_bytes_max) : std::string();
}

std::string sample_words(const pictured& of) {
  std::string words = str_cat(name_words(of), " <b>", of.sample, "</b>");
  if (const std::string its_class = class_words(of); !its_class.empty()) str_append(words, " (", its_class, ")");
  return words;
}

void add_groups(std::vector<finding_section>& to, std::string_view title, bool is_wrong, const checked_samples& set,
                const std::vector<same_content>& groups) {
  finding_section section{title, groups.size(), is_wrong};
  for (const same_content& group : groups) {
    for (const std::uint64_t sample : group.samples) section.list({&set, sample});
    if (section.cells.size() == cells_max) continue;
    finding_cell cell;
    // They have one content.
    cell.pictures.push_back({&set, group.samples.front()});
    for (std::size_t i = 0; i < std::min<std::size_t>(group.samples.size(), 3); ++i) {
      str_append(cell.caption, i == 0 ? "" : "<br/>", sample_words({&set, group.samples[i]}));
    }
    if (group.samples.size() > 3) str_append(cell.caption, "<br/>and ", count_text(group.samples.size() - 3), " more");
    section.cells.push_back(std::move(cell));
  }
  if (section.count != 0) to.push_back(std::move(section));
}

void add_pairs(std::vector<finding_section>& to, std::string_view title, bool is_wrong, const checked_samples& set,
               const checked_samples& of, std::span<const similar_sample> pairs) {
  finding_section section{title, pairs.size(), is_wrong};
  for (const similar_sample& each : pairs) {
    section.list({&set, each.sample});
    section.list({&of, each.of});
  }
  for (const similar_sample& each : pairs.first(std::min(pairs.size(), cells_max))) {
    section.cells.push_back(
        {{{&set, each.sample}, {&of, each.of}},
         str_cat(sample_words({&set, each.sample}), "<br/>", sample_words({&of, each.of}),
                 each.bits == 0 ? "" : "<br/>", each.bits == 0 ? std::string() : counted(each.bits, "bit", "bits"),
                 each.labels_differ ? ", of other classes" : "")});
  }
  if (section.count != 0) to.push_back(std::move(section));
}

void add_samples(std::vector<finding_section>& to, std::string_view title, const checked_samples& set,
                 std::uint64_t count, std::span<const std::uint64_t> samples, bool with_size) {
  finding_section section{title, count, false};
  for (const std::uint64_t sample : samples) section.list({&set, sample});
  for (const std::uint64_t sample : samples.first(std::min(samples.size(), cells_max))) {
    const checked_sample& one = set.all[sample];
    section.cells.push_back({{{&set, sample}},
                             str_cat(sample_words({&set, sample}),
                                     with_size ? str_cat("<br/>", one.width, " × ", one.height) : std::string())});
  }
  if (count != 0) to.push_back(std::move(section));
}

void add_faults(std::vector<finding_section>& to, const checked_samples& set) {
  finding_section section{"Broken", set.faults.size(), true};
  for (const sample_fault& each : set.faults) section.list({&set, each.sample});
  // Some of each kind, rather than many of one.
  for (std::size_t round = 0; section.cells.size() < cells_max && round < cells_max; ++round) {
    std::vector<std::pair<std::string_view, std::size_t>> seen;
    for (const sample_fault& each : set.faults) {
      auto of_kind = std::find_if(seen.begin(), seen.end(), [&](const auto& one) { return one.first == each.kind; });
      if (of_kind == seen.end()) of_kind = seen.insert(seen.end(), {each.kind, 0});
      if (of_kind->second++ != round || section.cells.size() == cells_max) continue;
      section.cells.push_back(
          {{{&set, each.sample}},
           str_cat(sample_words({&set, each.sample}), "<br/>", page_words(each.field, name_bytes_max),
                   each.field.empty() ? "" : ": ", page_words(each.reason, 2 * name_bytes_max))});
    }
  }
  if (section.count != 0) to.push_back(std::move(section));
}

// The least and the most pixels.
void add_extremes(std::vector<finding_section>& to, const checked_samples& set) {
  std::vector<std::uint64_t> pictures;
  for (std::uint64_t sample = 0; sample < set.all.size(); ++sample) {
    if (set.all[sample].has_picture) pictures.push_back(sample);
  }
  const auto pixels = [&](std::uint64_t sample) {
    return std::pair(std::uint64_t{set.all[sample].width} * set.all[sample].height, sample);
  };
  const auto some = static_cast<std::ptrdiff_t>(std::min<std::size_t>(pictures.size(), 4));
  if (pictures.size() < 8) return;
  std::partial_sort(pictures.begin(), pictures.begin() + some, pictures.end(),
                    [&](std::uint64_t a, std::uint64_t b) { return pixels(a) < pixels(b); });
  add_samples(to, "Smallest pictures", set, 4, std::span(pictures).first(4), true);
  std::partial_sort(pictures.begin(), pictures.begin() + some, pictures.end(),
                    [&](std::uint64_t a, std::uint64_t b) { return pixels(a) > pixels(b); });
  add_samples(to, "Largest pictures", set, 4, std::span(pictures).first(4), true);
}

std::vector<finding_section> sections_of(const check_report& report) {
  const check_findings& found = report.found;
  std::vector<finding_section> all;
  add_faults(all, report.set);
  add_groups(all, "Two labels", true, report.set, found.two_labels);
  if (found.shared) add_pairs(all, "In both sets", true, report.set, *report.other, found.shared->same);
  if (found.shared) add_pairs(all, "Look alike in both sets", false, report.set, *report.other, found.shared->near);
  add_groups(all, "Duplicates", false, report.set, found.duplicates);
  add_groups(all, "One content, other fields", false, report.set, found.other_fields);
  add_pairs(all, "Look alike", false, report.set, report.set, found.near);
  add_samples(all, "One colour", report.set, found.flat.size(), found.flat, false);
  return all;
}

// Samples of each kind, for whoever looks for a name or a class. The kinds share the room.
std::string samples_table(std::span<const finding_section> sections, std::size_t bytes_max) {
  std::string html;
  std::uint64_t listed = 0;
  std::uint64_t left_out = 0;
  for (std::size_t k = 0; k < sections.size(); ++k) {
    const finding_section& section = sections[k];
    const std::size_t end = html.size() + (bytes_max - html.size()) / (sections.size() - k);
    std::size_t shown = 0;
    for (; shown < section.samples.size(); ++shown) {
      const pictured& each = section.samples[shown];
      std::string row = str_cat("<tr><td>", section.title, "</td><td class=\"n\">", each.sample, "</td><td>",
                                name_words(each), "</td><td>", class_words(each), "</td></tr>\n");
      if (html.size() + row.size() > end) break;
      html += row;
    }
    listed += shown;
    left_out += section.of_all - shown;
  }
  if (listed == 0) return "";
  return str_cat("<section class=\"wide\"><details><summary>", counted(listed, "sample", "samples"), " by name",
                 left_out == 0 ? std::string() : str_cat("; ", count_text(left_out), " more: leat check --json"),
                 "</summary><table class=\"rows\">\n", html, "</table></details></section>\n");
}

std::string summary_table(const std::vector<finding_section>& sections, const check_report& report) {
  std::string html = "<section><h2>Found</h2><table>";
  for (const finding_section& each : sections) {
    str_append(html, "<tr><td", each.is_wrong ? " class=\"broken\"" : "", ">", each.title, "</td><td class=\"n\">",
               count_text(each.count), "</td></tr>");
  }
  if (sections.empty()) html += "<tr><td class=\"kept\">nothing</td></tr>";
  html += "</table>";
  if (report.set.pixels.pictures != 0) {
    const auto three = [](const std::array<double, 3>& of) {
      return absl::StrFormat("%.4f, %.4f, %.4f", of[0], of[1], of[2]);
    };
    str_append(html, "<p><code>.normalize({{", three(report.set.pixels.means()), "}, {",
               three(report.set.pixels.deviations()), "}})</code></p>");
  }
  return html + "</section>\n";
}

std::uint64_t size_above(std::uint64_t size) {
  return size < 8 ? size + 1 : size + (std::uint64_t{1} << (static_cast<unsigned>(std::bit_width(size)) - 3));
}

// Bars of sizes that grow by the same factor: most sets have few large samples and many small ones.
std::string histogram(std::string_view title, const spread_of& of, std::string (*say)(std::uint64_t)) {
  if (of.histogram.empty()) return "";
  std::vector<std::uint64_t> bars;
  std::uint64_t most = 0;
  const std::uint64_t last = of.histogram.rbegin()->first;
  for (std::uint64_t size = of.histogram.begin()->first; size <= last; size = size_above(size)) {
    const auto found = of.histogram.find(size);
    bars.push_back(found == of.histogram.end() ? 0 : found->second);
    most = std::max(most, bars.back());
    if (size_above(size) < size) break;  // The largest number there is.
  }
  std::string html =
      str_cat("<section><h2>", title, "</h2><div class=\"plot\"><div class=\"up\"><span>", count_text(most),
              "</span><span>0</span></div><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" "
              "aria-label=\"",
              title, "\">");
  const double width = 1000.0 / static_cast<double>(bars.size());
  for (std::size_t i = 0; i < bars.size(); ++i) {
    if (bars[i] == 0) continue;
    const double height = std::max(static_cast<double>(bars[i]) / static_cast<double>(most) * 100, 0.7);
    absl::StrAppendFormat(&html, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
                          width * static_cast<double>(i) + width * 0.06, 100 - height, width * 0.88, height);
  }
  str_append(html, "</svg><div class=\"along\"><span>", say(of.least), "</span><span>median ", say(of.median),
             "</span><span>", say(of.largest), "</span></div></div><p class=\"key\">5 %: ", say(of.p5),
             ", 95 %: ", say(of.p95), ", 99 %: ", say(of.p99), "</p></section>\n");
  return html;
}

// Those with the most samples and those with the fewest, and the names of those between as far as there is room.
std::string classes_table(const check_report& report) {
  if (report.found.classes.empty()) return "";
  std::vector<std::pair<std::int64_t, std::uint64_t>> all(report.found.classes.begin(), report.found.classes.end());
  const bool is_cut = all.size() > table_rows_max;
  std::uint64_t most = 1;
  for (const auto& [number, count] : all) most = std::max(most, count);
  if (is_cut) {
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
  }
  using classes = std::span<const std::pair<std::int64_t, std::uint64_t>>;
  const auto row = [&](std::int64_t number, std::uint64_t count) {
    return str_cat("<tr><td>", page_words(class_name(report.set.samples, number), name_bytes_max),
                   "</td><td class=\"n\">", count_text(count), "</td>");
  };
  const auto table = [&](classes some) {
    std::string html = "<table class=\"rows\">";
    for (const auto& [number, count] : some) {
      html += row(number, count);
      absl::StrAppendFormat(&html,
                            "<td style=\"width:45%%\"><div class=\"bar\" style=\"width:%.1f%%\"></div></td></tr>",
                            100.0 * static_cast<double>(count) / static_cast<double>(most));
    }
    return html + "</table>";
  };
  std::string html = str_cat("<section><h2>", counted(all.size(), "class", "classes"), "</h2>");
  if (!is_cut) return html + table(all) + "</section>\n";
  const classes between = classes(all).subspan(table_rows_max / 2, all.size() - table_rows_max);
  str_append(html, table(classes(all).first(table_rows_max / 2)), "<details><summary>", count_text(between.size()),
             " between</summary><table class=\"rows\">");
  const std::size_t end = html.size() + listed_classes_bytes_max;
  for (std::size_t i = 0; i < between.size(); ++i) {
    const std::string one = row(between[i].first, between[i].second) + "</tr>\n";
    if (html.size() + one.size() > end) {
      str_append(html, "<tr><td>and ", count_text(between.size() - i), " more</td></tr>");
      break;
    }
    html += one;
  }
  return html + "</table></details>" + table(classes(all).last(table_rows_max / 2)) + "</section>\n";
}

std::string numbers_table(const checked_samples& set) {
  if (set.numbers.empty()) return "";
  std::string html =
      "<section><h2>Columns and "
      "arrays</h2><table><tr><th></th><th>least</th><th>mean</th><th>largest</th><th>missing</th>"
      "<th>NaN</th></tr>";
  const auto number = [](const std::optional<double>& value) {
    return value ? with_digits(*value, 4) : std::string("-");
  };
  for (std::size_t i = 0; i < std::min(set.numbers.size(), table_rows_max); ++i) {
    const number_facts& each = set.numbers[i];
    const bool says_nothing = each.is_constant() || each.is_empty() || each.not_a_number != 0;
    str_append(html, "<tr><td", says_nothing ? " class=\"broken\"" : "", ">", page_words(each.name, name_bytes_max),
               each.is_constant() ? ", constant" : "", "</td><td class=\"n\">", number(each.least),
               "</td><td class=\"n\">", each.is_array || !each.least ? std::string("-") : number(each.mean),
               "</td><td class=\"n\">", number(each.largest), "</td><td class=\"n\">", count_text(each.missing),
               "</td><td class=\"n\">", count_text(each.not_a_number), "</td></tr>");
  }
  if (set.numbers.size() > table_rows_max) {
    str_append(html, "<tr><td>and ", count_text(set.numbers.size() - table_rows_max), " more</td></tr>");
  }
  return html + "</table></section>\n";
}

std::string drift_table(const check_drift& drift) {
  std::string html = str_cat("<section><h2>Beside the baseline of ", counted(drift.samples_before, "sample", "samples"),
                             "</h2><table>");
  const auto add_names = [&](std::string_view what, const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), cells_max); ++i) {
      str_append(html, "<tr><td class=\"broken\">", what, "</td><td>", page_words(names[i], name_bytes_max),
                 "</td></tr>");
    }
    if (names.size() > cells_max) {
      str_append(html, "<tr><td class=\"broken\">", what, "</td><td>and ", count_text(names.size() - cells_max),
                 " more</td></tr>");
    }
  };
  add_names("new class", drift.new_classes);
  add_names("class gone", drift.missing_classes);
  add_names("column gone", drift.missing_columns);
  for (std::size_t i = 0; i < std::min(drift.effects.size(), table_rows_max); ++i) {
    const drift_effect& each = drift.effects[i];
    str_append(html, "<tr><td>", page_words(each.of, name_bytes_max), "</td><td class=\"n\">", each.measure, " ",
               with_digits(each.effect, 3), ", ", each.size, "</td></tr>");
  }
  return html + "</table></section>\n";
}

std::string pictures_of(const finding_cell& cell, thumbnailer& pictures, std::size_t& room) {
  std::string html = "<div>";
  for (const pictured& each : cell.pictures) {
    const std::optional<thumbnail> small = room == 0 ? std::nullopt : pictures.of(each.of->samples, each.sample);
    std::string image;
    if (small) {
      image = str_cat("<img alt=\"\" width=\"", small->width, "\" height=\"", small->height, "\" src=\"",
                      data_address("image/jpeg", std::as_bytes(std::span(small->jpeg))), "\"/>");
    }
    if (image.size() > room) room = 0;  // The page is full.
    if (!image.empty() && room != 0) {
      html += image;
      room -= image.size();
    } else {
      html += "<span>no picture</span>";
    }
  }
  return html + "</div>";
}

std::string size_words(std::uint64_t bytes) { return bytes_text(bytes); }

}  // namespace

std::string check_page(const check_report& report, std::size_t host_bytes_max) {
  std::vector<finding_section> sections = sections_of(report);
  std::string head = page_head(joined(report.sources, ", "), check_style, find_script);
  str_append(head, "<p class=\"facts\">", counted(report.set.all.size(), "sample", "samples"),
             report.other == nullptr ? std::string()
                                     : str_cat(" against ", counted(report.other->all.size(), "sample", "samples")),
             report.set.strays == 0 ? std::string()
                                    : str_cat("; ", counted(report.set.strays, "stray member", "stray members")),
             "</p>\n<p class=\"find\" hidden=\"hidden\"><input type=\"search\" aria-label=\"find\" "
             "placeholder=\"name or class\"/> <span></span></p>\n<div class=\"cards\">\n");
  str_append(head, summary_table(sections, report), report.drift ? drift_table(*report.drift) : std::string(),
             classes_table(report), numbers_table(report.set));
  str_append(head, histogram("Bytes", report.found.bytes, size_words));
  if (report.found.pictures != 0) {
    str_append(head, histogram("Width", report.found.widths, count_text),
               histogram("Height", report.found.heights, count_text));
  }
  const std::size_t found = sections.size();
  add_extremes(sections, report.set);

  constexpr std::size_t frame_bytes = 300;  // of a cell: its elements
  std::size_t words_bytes = head.size() + find_script.size();
  for (const finding_section& section : sections) {
    words_bytes += frame_bytes;
    for (const finding_cell& cell : section.cells) words_bytes += frame_bytes + cell.caption.size();
  }
  std::size_t room = words_bytes < check_page_bytes_max ? check_page_bytes_max - words_bytes : 0;
  const std::string listed = samples_table(std::span(sections).first(found), std::min(listed_bytes_max, room / 2));
  room -= std::min(room, listed.size());
  thumbnailer pictures(host_bytes_max);
  std::string html = std::move(head);
  for (const finding_section& section : sections) {
    str_append(html, "<section class=\"wide\"><h2", section.is_wrong ? " class=\"broken\"" : "", ">", section.title,
               ": ", count_text(section.count), "</h2><div class=\"cells\">\n");
    for (const finding_cell& cell : section.cells) {
      str_append(html, "<figure>", report.found.pictures == 0 ? std::string() : pictures_of(cell, pictures, room),
                 "<figcaption>", cell.caption, "</figcaption></figure>\n");
    }
    html += "</div></section>\n";
  }
  return html + listed + "</div>\n" + page_end(find_script);
}

}  // namespace leat::tools

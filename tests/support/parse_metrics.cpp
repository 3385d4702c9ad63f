#include "tests/support/parse_metrics.hpp"

#include <cmath>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace leat::testing {
namespace {

void require(bool holds, const std::string& what, const std::string& line) {
  if (!holds) throw std::runtime_error(what + ": " + line);
}

bool ends_with(const std::string& name, const std::string& end) {
  return name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

// The family that a line belongs to: a histogram has three kinds of lines.
std::string family_of(const std::string& name, const std::map<std::string, std::string>& types) {
  for (const char* end : {"_bucket", "_sum", "_count"}) {
    if (!ends_with(name, end)) continue;
    const std::string family = name.substr(0, name.size() - std::string(end).size());
    if (const auto of = types.find(family); of != types.end() && of->second == "histogram") return family;
  }
  return name;
}

}  // namespace

bool metrics::only_grows(const std::string& line) const {
  const std::string name = line.substr(0, line.find('{'));
  return types.at(family_of(name, types)) != "gauge";
}

metrics parse_metrics(const std::string& text) {
  static const std::regex comment(R"(# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+))");
  static const std::regex sample(R"(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(.*)\})? (\S+))");
  static const std::regex label(R"lit(([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$))lit");
  metrics read;
  std::map<std::string, std::string> helps;
  std::set<std::string> closed;
  std::string open;
  std::map<std::string, std::pair<double, double>> buckets;  // by series: the last bound, and what lay below
  require(!text.empty() && text.back() == '\n', "does not end with a line", text);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, comment)) {
      auto& into = found[1] == "HELP" ? helps : read.types;
      require(into.emplace(found[2], found[3]).second, "comes twice", line);
      if (found[2] != open) {
        require(closed.insert(open).second && !closed.contains(found[2]), "a family that does not stand together",
                line);
        open = found[2];
      }
      if (found[1] == "TYPE")
        require(found[3] == "counter" || found[3] == "gauge" || found[3] == "histogram", "type", line);
      continue;
    }
    require(std::regex_match(line, found, sample), "is no line", line);
    const std::string name = found[1];
    const std::string labels = found[3];
    const std::string family = family_of(name, read.types);
    require(family == open && read.types.contains(family) && helps.contains(family), "has no HELP or TYPE", line);
    if (read.types[family] == "counter")
      require(ends_with(name, "_total"), "a counter whose name does not say so", line);
    std::string series = name;
    std::string bound;
    std::set<std::string> names;
    std::size_t at = 0;
    while (at < labels.size()) {
      std::smatch one;
      const std::string rest = labels.substr(at);
      require(std::regex_search(rest, one, label, std::regex_constants::match_continuous), "labels", line);
      require(names.insert(one[1]).second, "a label twice", line);
      if (one[1] == "le") {
        bound = one[2];
      } else {
        series += "," + one[1].str() + "=" + one[2].str();
      }
      at += static_cast<std::size_t>(one.length());
    }
    std::size_t used = 0;
    const std::string number = found[4];
    const double value = number == "+Inf" ? INFINITY : std::stod(number, &used);
    require(number == "+Inf" || used == number.size(), "no number", line);
    if (name != family && ends_with(name, "_bucket")) {
      require(!bound.empty(), "a bucket without a bound", line);
      const double le = bound == "+Inf" ? INFINITY : std::stod(bound);
      const auto before = buckets.find(series);
      if (before != buckets.end()) {
        require(before->second.first < le && before->second.second <= value, "buckets do not ascend", line);
      }
      buckets[series] = {le, value};
    }
    if (name != family && ends_with(name, "_count")) {
      std::string of_buckets = series;
      of_buckets.replace(0, name.size(), family + "_bucket");
      require(buckets.contains(of_buckets) && std::isinf(buckets[of_buckets].first), "no bucket +Inf", line);
      require(buckets[of_buckets].second == value, "the count is not what lies below +Inf", line);
    }
    require(read.values.emplace(line.substr(0, line.rfind(' ')), value).second, "comes twice", line);
  }
  for (const auto& [name, type] : read.types) require(helps.contains(name), "has no HELP", name);
  return read;
}

}  // namespace leat::testing

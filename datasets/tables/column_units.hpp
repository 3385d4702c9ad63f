// What columns of dates and times are in, over all files of a table: seconds of one and milliseconds of another are no column of numbers.
#pragma once

#include "base/text.hpp"

#include <leat/error.hpp>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::datasets {

/// Columns of one file by their names, each with its unit in words: "days since 1970-01-01".
using units_of_file = std::vector<std::pair<std::string, std::string>>;

class column_units {
 public:
  /// The columns of the next file, which is called `title`. Both outlive this.
  /// Whether they are of UTC makes no other unit: of one tool's versions some say so, and some do not.
  ///   throws   error{errc::unsupported} where one of these is in another unit in a file before
  void add(std::string_view title, const units_of_file& units) {
    for (const auto& [name, unit] : units) {
      const known& first = all_.try_emplace(name, known{unit, title}).first->second;
      if (without_zone(first.unit) == without_zone(unit)) continue;
      throw error(errc::unsupported, str_cat(title, ": the column '", name, "' is in ", unit, ", and in ", first.title,
                                             " in ", first.unit, "; write both in one unit, or open them apart"));
    }
  }

 private:
  struct known {
    std::string_view unit;
    std::string_view title;
  };
  static std::string_view without_zone(std::string_view unit) noexcept {
    constexpr std::string_view zone = " UTC";
    if (unit.ends_with(zone)) unit.remove_suffix(zone.size());
    return unit;
  }

  std::map<std::string_view, known> all_;
};

}  // namespace leat::datasets

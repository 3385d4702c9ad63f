// What has changed between two checks: by effect sizes, and by what is new or gone (leat check --baseline).
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat::tools {

/// How far two sets are apart in one thing, whatever their sizes are.
///   measure   "delta": Cliff's, of distributions, -1 to 1; above 0 where the numbers are larger now. "d": Cohen's, of means, in deviations.
///             "h": Cohen's, of shares
///   size      "none", "small", "medium" or "large": from 0.147, 0.33 and 0.474 on (Romano and others, 2006), or 0.2, 0.5 and 0.8
///             (Cohen, 1988)
struct drift_effect {
  std::string of;
  std::string_view measure;
  double effect = 0;
  std::string_view size;
};

///   effects   the largest size first, and by their names
struct check_drift {
  std::uint64_t samples_before = 0;
  std::vector<std::string> new_classes = {};
  std::vector<std::string> missing_classes = {};
  std::vector<std::string> missing_columns = {};
  std::vector<drift_effect> effects = {};

  /// That a set has other classes, or lacks a column, breaks a trainer; that it has drifted is somebody's to judge.
  [[nodiscard]] bool is_wrong() const noexcept {
    return !new_classes.empty() || !missing_classes.empty() || !missing_columns.empty();
  }
  [[nodiscard]] nlohmann::ordered_json as_json() const;
};

/// Of two reports of `leat check --json`.
///   throws   error{errc::format}: `before` is none, or one of another leat that has no histograms
[[nodiscard]] check_drift drift_between(const nlohmann::ordered_json& before, const nlohmann::ordered_json& now);

/// The report in a file.
///   throws   error{errc::usage} naming the file
[[nodiscard]] nlohmann::ordered_json read_baseline(const std::string& path);

}  // namespace leat::tools

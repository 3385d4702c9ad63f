// The place of a mistake in a JSON text, as line and column.
#pragma once

#include "base/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace leat {

/// "line 2, column 31: unexpected '}'", from the exception that nlohmann::json::parse(text) threw. Lines and columns count from
/// 1. The exception for a number that is too large for a double has no place: "number overflow parsing '1e999'".
[[nodiscard]] inline std::string explain_json(const nlohmann::json::exception& thrown, std::string_view text) {
  const std::string_view what = thrown.what();  // "[...] parse error at ...: syntax error while ... - unexpected ..."
  const auto* const wrong = dynamic_cast<const nlohmann::json::parse_error*>(&thrown);
  if (wrong == nullptr) return std::string(what.substr(std::min(what.find("] ") + 2, what.size())));
  // The byte is counted from 1, and is one behind the last where the text ends too early.
  const std::size_t bytes_before = std::min<std::size_t>(wrong->byte > 0 ? wrong->byte - 1 : 0, text.size());
  const std::string_view before = text.substr(0, bytes_before);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0.
  const std::size_t reason = what.find(" - ");
  return str_cat("line ", line, ", column ", column,
                 reason == std::string_view::npos ? std::string() : str_cat(": ", what.substr(reason + 3)));
}

}  // namespace leat

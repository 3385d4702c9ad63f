// The one place where JSON from outside is parsed.
#pragma once

#include "base/json_depth.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace leat {

/// "line 2, column 31". Both count from 1.
[[nodiscard]] inline std::string place_in_text(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0.
  return str_cat("line ", line, ", column ", column);
}

/// The value that a text stands for.
///   Json     nlohmann::json, or nlohmann::ordered_json
///   throws   error{errc::format} "line 2, column 31: unexpected '}'", also where lists and objects lie within one another more than
///            json_depth_max deep. A number that is too large for a double has no place: "number overflow parsing '1e999'".
template <class Json = nlohmann::json>
[[nodiscard]] Json parse_json(std::string_view text) {
  if (const auto at = find_too_deep(text)) {
    throw error(errc::format, str_cat(place_in_text(text, *at), ": lists and objects within one another, more than ",
                                      json_depth_max, " deep"));
  }
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const typename Json::exception& thrown) {
    const std::string_view what = thrown.what();  // "[...] parse error at ...: syntax error while ... - unexpected ..."
    const auto* const wrong = dynamic_cast<const typename Json::parse_error*>(&thrown);
    if (wrong == nullptr)
      throw error(errc::format, std::string(what.substr(std::min(what.find("] ") + 2, what.size()))));
    // The byte is counted from 1, and is one behind the last where the text ends too early.
    const std::string place = place_in_text(text, wrong->byte > 0 ? wrong->byte - 1 : 0);
    const std::size_t reason = what.find(" - ");
    throw error(errc::format, reason == std::string_view::npos ? place : str_cat(place, ": ", what.substr(reason + 3)));
  }
}

/// The same; where the text is none, a value that is_discarded().
template <class Json = nlohmann::json>
[[nodiscard]] Json parse_json_or_discard(std::string_view text) {
  return find_too_deep(text) ? Json(Json::value_t::discarded) : Json::parse(text.begin(), text.end(), nullptr, false);
}

}  // namespace leat

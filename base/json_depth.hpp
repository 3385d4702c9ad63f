// How deep JSON from outside may be nested. What copies, compares or writes a parsed value calls itself for each level.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace leat {

inline constexpr std::size_t json_depth_max = 64;

/// The byte at which a list or an object begins that lies deeper; nothing where none does, or where the text is no JSON before.
[[nodiscard]] constexpr std::optional<std::size_t> find_too_deep(std::string_view json) noexcept {
  std::size_t depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    switch (json[i]) {
      case '"':
        in_text = !in_text;
        break;
      case '\\':
        if (in_text) ++i;
        break;
      case '[':
      case '{':
        if (!in_text && ++depth > json_depth_max) return i;
        break;
      case ']':
      case '}':
        if (!in_text && depth > 0) --depth;
        break;
      default:
        break;
    }
  }
  return std::nullopt;
}

}  // namespace leat

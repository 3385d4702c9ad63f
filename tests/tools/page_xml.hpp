// Whether a page is well-formed XML, as far as its tags go.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace leat::testing {

/// Tags that are closed by others, or not at all; attributes without quotes.
inline std::string wrong_with_xml(std::string_view page) {
  std::vector<std::string> open;
  page.remove_prefix(page.find("<html"));
  for (std::size_t at = page.find('<'); at != std::string_view::npos; at = page.find('<', at + 1)) {
    const std::size_t end = page.find('>', at);
    if (end == std::string_view::npos) return "a tag without an end";
    const std::string_view tag = page.substr(at + 1, end - at - 1);
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "a quote in " + std::string(tag);
    const std::string name(tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/')));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != name) return "</" + name + "> closes another";
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : open.back() + " is not closed";
}

}  // namespace leat::testing

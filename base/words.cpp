#include "base/words.hpp"

namespace leat {

std::string lower_case(std::string_view text) {
  std::string made(text);
  for (char& each : made) each = lower_case(each);
  return made;
}

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view space = " \t\n\v\f\r";
  const std::size_t begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(space) + 1 - begin);
}

std::vector<std::string_view> words_of(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0;;) {
    const std::size_t begin = text.find_first_not_of(separators, at);
    if (begin == std::string_view::npos) return words;
    at = std::min(text.find_first_of(separators, begin), text.size());
    words.push_back(text.substr(begin, at - begin));
  }
}

}  // namespace leat

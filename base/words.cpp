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

void word_range::const_iterator::next() noexcept {
  const std::size_t begin = rest_.find_first_not_of(separators_);
  if (begin == std::string_view::npos) {
    word_ = {};
    return;
  }
  const std::size_t end = std::min(rest_.find_first_of(separators_, begin), rest_.size());
  word_ = rest_.substr(begin, end - begin);
  rest_.remove_prefix(end);
}

}  // namespace leat

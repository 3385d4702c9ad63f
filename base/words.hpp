// Letters and words of ASCII, whatever the locale is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

namespace leat {

[[nodiscard]] constexpr bool is_digit(char each) noexcept { return each >= '0' && each <= '9'; }
[[nodiscard]] constexpr bool is_letter(char each) noexcept {
  return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z');
}
[[nodiscard]] constexpr bool is_printable(char each) noexcept { return each >= ' ' && each <= '~'; }
[[nodiscard]] constexpr char lower_case(char each) noexcept {
  return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each;
}
[[nodiscard]] std::string lower_case(std::string_view text);

[[nodiscard]] constexpr bool is_same_in_any_case(std::string_view one, std::string_view other) noexcept {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](char a, char b) { return lower_case(a) == lower_case(b); });
}

/// Without white space at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;

/// The words of a text, one after another, without memory of its own.
class word_range {
 public:
  using value_type = std::string_view;

  class const_iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = const std::string_view&;

    const_iterator() = default;
    const_iterator(std::string_view rest, std::string_view separators) noexcept : rest_(rest), separators_(separators) {
      next();
    }
    [[nodiscard]] reference operator*() const noexcept { return word_; }
    [[nodiscard]] pointer operator->() const noexcept { return &word_; }
    const_iterator& operator++() noexcept {
      next();
      return *this;
    }
    const_iterator operator++(int) noexcept {
      const const_iterator before = *this;
      next();
      return before;
    }
    // Of one text: words differ by where they begin. None is left where there is no word.
    [[nodiscard]] friend bool operator==(const const_iterator& a, const const_iterator& b) noexcept {
      return a.word_.data() == b.word_.data();
    }

   private:
    void next() noexcept;

    std::string_view rest_;
    std::string_view separators_;
    std::string_view word_;
  };

  word_range(std::string_view text, std::string_view separators) noexcept : text_(text), separators_(separators) {}
  [[nodiscard]] const_iterator begin() const noexcept { return {text_, separators_}; }
  [[nodiscard]] const_iterator end() const noexcept { return {}; }

 private:
  std::string_view text_;
  std::string_view separators_;
};

/// What stands between any of `separators`, and is not empty.
[[nodiscard]] inline word_range words_of(std::string_view text, std::string_view separators) noexcept {
  return {text, separators};
}

}  // namespace leat

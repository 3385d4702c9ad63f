// Numbers as text, with spaces between them: what fields of numbers are that have no type.
#pragma once

#include <charconv>
#include <cstddef>
#include <span>
#include <system_error>

namespace leat::datasets {

class number_text {
 public:
  explicit number_text(std::span<std::byte> into)
      : begin_(reinterpret_cast<char*>(into.data())), at_(begin_), end_(begin_ + into.size()) {}

  /// False where it has no room.
  template <class Number>
  [[nodiscard]] bool add(Number value) {
    if (at_ != begin_) {
      if (at_ == end_) return false;
      *at_++ = ' ';
    }
    const auto [next, failure] = std::to_chars(at_, end_, value);
    if (failure != std::errc{}) return false;
    at_ = next;
    return true;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return static_cast<std::size_t>(at_ - begin_); }

 private:
  char* begin_;
  char* at_;
  char* end_;
};

}  // namespace leat::datasets

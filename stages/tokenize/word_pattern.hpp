// A regular expression that cuts a text into words before they are encoded. PCRE2 is in word_pattern.cpp only.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace leat::stages {

/// Where a word lies in its text: [begin, end), in bytes.
struct word_place {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Compiled, with \s, \p{...} and case of Unicode, as tokenizers' own expressions mean them. Thread: any, each with a matcher of its own.
class word_pattern {
 public:
  ///   throws   error{errc::unsupported} with the expression and what of it is not known
  explicit word_pattern(const std::string& expression);
  ~word_pattern();
  word_pattern(word_pattern&&) noexcept;
  word_pattern& operator=(word_pattern&&) noexcept;

  /// One thread's memory for matching.
  class matcher {
   public:
    explicit matcher(const word_pattern& pattern);
    ~matcher();
    matcher(matcher&&) noexcept;
    matcher& operator=(matcher&&) noexcept;

    /// The first match at `from` or behind it that is not empty; nothing if there is none.
    ///   text     UTF-8
    ///   from     0 of another text: that is looked at as a whole then
    ///   throws   error{errc::limit} where the expression needs too many steps for the text
    [[nodiscard]] std::optional<word_place> find(std::string_view text, std::size_t from);

   private:
    struct state;
    std::unique_ptr<state> state_;
  };

 private:
  struct compiled;
  std::unique_ptr<compiled> compiled_;
};

}  // namespace leat::stages

// How messages spell options. A message is made of pieces, of which an option is one: nothing is looked for in finished text.
#pragma once

#include <leat/option.hpp>

#include <span>
#include <string>
#include <string_view>

namespace leat {

/// One option in somebody's words, or one value of it: {on_corrupt, "", "--on-corrupt"}, {digests, "false", "--digest off"}.
struct option_words {
  option_id option;
  std::string_view value;
  std::string_view words;
};

/// Who reads this process's messages. Options without words of their own are spelled as in C++.
struct option_spelling {
  std::span<const option_words> words;
  std::string_view before_value;  ///< " = " in C++
};

/// Set once, before there are threads, by a program whose users do not read C++ (the command). `how` is not copied.
void spell_options(const option_spelling& how) noexcept;

/// "loader_options::batch_size", "--batch-size"
[[nodiscard]] std::string spelled(option_id option);
/// "reader_options::direct = auto", "--direct auto"
[[nodiscard]] std::string spelled(option_id option, std::string_view value);

}  // namespace leat

// What the other end of standard output and standard error is.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace leat::tools {

/// Whether a person looks at this stream, and what may be sent to them.
///   live      lines may be drawn over: a terminal, and not TERM=dumb
///   colour    as live, and NO_COLOR is unset or empty (no-color.org)
///   unicode   the locale's characters are UTF-8, as far as the environment says
struct terminal {
  bool live = false;
  bool colour = false;
  bool unicode = false;

  [[nodiscard]] static terminal of(std::FILE* stream);

  [[nodiscard]] std::string bold(std::string_view text) const { return paint("1", text); }
  [[nodiscard]] std::string dim(std::string_view text) const { return paint("2", text); }
  [[nodiscard]] std::string accent(std::string_view text) const { return paint("36", text); }
  [[nodiscard]] std::string warning(std::string_view text) const { return paint("33", text); }

 private:
  [[nodiscard]] std::string paint(std::string_view code, std::string_view text) const;
};

/// Columns of the terminal behind standard error; 80 where nobody says.
[[nodiscard]] std::size_t terminal_columns();

}  // namespace leat::tools

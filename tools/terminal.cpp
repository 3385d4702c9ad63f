#include "tools/terminal.hpp"

#include "base/text.hpp"

#include <sys/ioctl.h>

#include <unistd.h>

#include <cstdlib>

namespace leat::tools {
namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

// The first of these that is set decides, as in setlocale(3).
bool utf8_locale() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string_view::npos || value.find("utf8") != std::string_view::npos ||
           value.find("utf-8") != std::string_view::npos;
  }
  return false;
}

}  // namespace

terminal terminal::of(std::FILE* stream) {
  terminal now;
  const std::string_view kind = environment("TERM");
  now.live = ::isatty(::fileno(stream)) == 1 && kind != "dumb" && !kind.empty();
  now.colour = now.live && environment("NO_COLOR").empty();
  now.unicode = utf8_locale();
  return now;
}

std::string terminal::paint(std::string_view code, std::string_view text) const {
  return colour ? str_cat("\x1b[", code, "m", text, "\x1b[0m") : std::string(text);
}

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace leat::tools

#include "tools/human.hpp"

#include "base/as_absl.hpp"
#include "base/text.hpp"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>

namespace leat::tools {

std::string rate_text(double bytes_per_s) {
  constexpr const char* units[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  return scaled(std::max(bytes_per_s, 0.0), 1000, units);
}

std::string seconds_text(double seconds) {
  if (!(seconds >= 0)) return "-";
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6) + " us";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 99.95) return three_digits(seconds) + " s";
  const auto whole = static_cast<std::uint64_t>(seconds + 0.5);
  if (whole < 3600) return absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
  return absl::StrFormat("%d h %02d min", whole / 3600, whole / 60 % 60);
}

std::string clock_text(double seconds) {
  if (!(seconds >= 0) || seconds > 359'999) return "-:--";
  const auto whole = static_cast<std::uint64_t>(std::ceil(seconds));
  if (whole < 3600) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return str_cat(count_text(count), " ", count == 1 ? one : many);
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  double number = 0;
  if (digits == 0 || !absl::SimpleAtod(as_absl(text.substr(0, digits)), &number)) return std::nullopt;
  std::string unit(text.substr(digits));
  absl::AsciiStrToLower(&unit);
  absl::StripAsciiWhitespace(&unit);
  double factor = 1;
  if (!unit.empty() && unit != "b" && unit != "bytes") {
    const std::size_t power = std::string_view("kmgtp").find(unit[0]);
    const std::string_view rest = std::string_view(unit).substr(1);
    if (power == std::string_view::npos || (!rest.empty() && rest != "b" && rest != "ib")) return std::nullopt;
    factor = std::pow(rest == "b" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  }
  // Whole numbers of bytes are taken exactly; a double holds them only up to 2^53.
  std::uint64_t whole = 0;
  if (factor == 1) {
    return absl::SimpleAtoi(as_absl(text.substr(0, digits)), &whole) ? std::optional(whole) : std::nullopt;
  }
  const double bytes = number * factor;
  if (!(bytes < 0x1p63)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes + 0.5);
}

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '\n') {
      line += "\\n";
    } else if (letter == '\t') {
      line += "\\t";
    } else if (code < 0x20 || code == 0x7f) {
      line += absl::StrFormat("\\x%02x", code);
    } else {
      line += letter;
    }
  }
  return line;
}

std::size_t columns_of(std::string_view text) noexcept {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b') {
      while (at < text.size() && !absl::ascii_isalpha(static_cast<unsigned char>(text[at]))) ++at;
      continue;
    }
    // Bytes 10xxxxxx go on with the character before.
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) ++columns;
  }
  return columns;
}

}  // namespace leat::tools

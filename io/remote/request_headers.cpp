#include "io/remote/request_headers.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"
#include "base/words.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace leat::io {
namespace {

// What leat asks by, and what says where a request ends.
constexpr std::string_view own_names[] = {"host",       "range",          "if-match",         "accept-encoding",
                                          "connection", "content-length", "transfer-encoding"};

bool is_of_a_name(char letter) { return is_letter(letter) || is_digit(letter) || letter == '-' || letter == '_'; }

}  // namespace

std::vector<request_header> parse_request_headers(const std::vector<std::string>& given, bool allow_http) {
  std::vector<request_header> all;
  for (const std::string& each : given) {
    const std::size_t blank = each.find(' ');
    const std::size_t colon = blank == std::string::npos ? blank : each.find(':', blank);
    if (colon == std::string::npos || !is_address(each) || is_s3(each)) {
      throw error(errc::usage,
                  "a header is written with the server that it goes to, as 'https://host Authorization: Bearer ...'");
    }
    request_header made{.server = parse_address(each.substr(0, blank)),
                        .line = {each.substr(blank + 1, colon - blank - 1),
                                 std::string(trimmed(std::string_view(each).substr(colon + 1)))}};
    const std::string& name = made.line.name;
    if (name.empty() || !std::all_of(name.begin(), name.end(), is_of_a_name))
      throw error(errc::usage, str_cat("a header for ", made.server.shown, " has no name such as Authorization"));
    const bool is_own = std::any_of(std::begin(own_names), std::end(own_names),
                                    [&](std::string_view own) { return lower_case(name) == own; });
    if (is_own) throw error(errc::usage, str_cat("the header ", name, " is set by leat itself; leave it out"));
    const std::string& value = made.line.value;
    if (value.empty() || !std::all_of(value.begin(), value.end(), is_printable)) {
      throw error(errc::usage, str_cat("the value of the header ", name,
                                       " is empty, or has line ends or other letters that no header can hold"));
    }
    if (!made.server.tls && !allow_http) {
      throw error(errc::usage,
                  str_cat("the header ", name,
                          " would go over http://, where others can read it; give "
                          "https://, or ",
                          spelled(option_id::allow_http)),
                  option_id::allow_http);
    }
    all.push_back(std::move(made));
  }
  return all;
}

}  // namespace leat::io

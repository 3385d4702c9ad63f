#include "io/remote/http_head.hpp"

#include "base/text.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <ctime>
#include <utility>

namespace leat::io {
namespace {

namespace http = boost::beast::http;

std::string_view view_of(boost::beast::string_view text) noexcept { return {text.data(), text.size()}; }

std::string printable(std::string_view text) {
  constexpr std::size_t length_max = 100;
  std::string out(text.substr(0, length_max));
  std::replace_if(out.begin(), out.end(), [](char letter) { return letter < 0x20 || letter > 0x7E; }, '?');
  return out;
}

// The whole text is a number.
std::optional<std::uint64_t> number_of(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::size_t> http_head_end(std::string_view bytes, std::size_t from) noexcept {
  const std::size_t end = bytes.find("\r\n\r\n", from < 3 ? 0 : from - 3);
  if (end == std::string_view::npos) return std::nullopt;
  return end + 4;
}

std::optional<http_head> parse_http_head(std::string_view head, std::string& refusal) {
  if (static_cast<std::size_t>(std::count(head.begin(), head.end(), '\n')) > http_head_lines_max) {
    refusal = str_cat("its header has more than ", http_head_lines_max, " lines");
    return std::nullopt;
  }
  http::response_parser<http::empty_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(http_head_bytes_max));
  parser.body_limit(boost::none);
  parser.skip(true);  // The body is not read by it.
  boost::system::error_code failure;
  parser.put(boost::asio::buffer(head.data(), head.size()), failure);
  if (failure || !parser.is_header_done()) {
    refusal = str_cat("its header is not HTTP/1.1 (", failure ? failure.message() : std::string("it is cut"), ")");
    return std::nullopt;
  }
  const auto& message = parser.get();
  http_head found;
  found.status = message.result_int();
  found.reason = printable(view_of(message.reason()));
  if (const auto bytes = parser.content_length()) found.content_bytes = *bytes;
  found.is_chunked = parser.chunked();
  found.keeps_alive = parser.keep_alive();
  found.etag = view_of(message[http::field::etag]);
  found.last_modified = view_of(message[http::field::last_modified]);
  found.location = view_of(message[http::field::location]);
  found.content_range = view_of(message[http::field::content_range]);
  found.content_encoding = view_of(message[http::field::content_encoding]);
  found.crc32 = view_of(message["x-amz-checksum-crc32"]);
  found.crc32c = view_of(message["x-amz-checksum-crc32c"]);
  found.crc64nvme = view_of(message["x-amz-checksum-crc64nvme"]);
  found.checksum_type = view_of(message["x-amz-checksum-type"]);
  found.bucket_region = printable(view_of(message["x-amz-bucket-region"]));
  found.date_unix_s = parse_http_date(view_of(message[http::field::date]));
  found.retry_after_s = number_of(view_of(message[http::field::retry_after])).value_or(0);
  return found;
}

struct http_text::impl {
  http::response_parser<http::string_body> parser;
};

http_text::http_text(std::size_t bytes_max) : impl_(std::make_unique<impl>()) {
  impl_->parser.header_limit(static_cast<std::uint32_t>(http_head_bytes_max));
  impl_->parser.body_limit(bytes_max);
  impl_->parser.eager(true);
}
http_text::~http_text() = default;

http_text::state http_text::feed(std::string_view bytes) {
  pending_ += bytes;
  while (!impl_->parser.is_done() && !pending_.empty()) {
    boost::system::error_code failure;
    const std::size_t used = impl_->parser.put(boost::asio::buffer(pending_.data(), pending_.size()), failure);
    pending_.erase(0, used);
    if (failure == http::error::need_more) break;
    if (failure) {
      refusal_ = str_cat("its text is not taken (", failure.message(), ")");
      return state::refused;
    }
    if (used == 0) break;
  }
  if (impl_->parser.is_done()) return state::whole;
  // A chunk's first line or a trailer that does not end.
  if (pending_.size() > http_head_bytes_max) {
    refusal_ = str_cat("a line of its text is longer than ", http_head_bytes_max, " bytes");
    return state::refused;
  }
  return state::more;
}

std::string http_text::take() { return std::move(impl_->parser.get().body()); }

namespace {

// "Sun, 06 Nov 1994 08:49:37 GMT" and nothing else. The weekday is not looked at.
std::optional<std::int64_t> parse_fixed_date(std::string_view text) noexcept {
  constexpr std::string_view shape = "aaa, 00 aaa 0000 00:00:00 GMT";
  constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() != shape.size()) return std::nullopt;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (shape[i] == '0' ? !is_digit : shape[i] != 'a' && text[i] != shape[i]) return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t digits) {
    int value = 0;
    for (std::size_t i = at; i < at + digits; ++i) value = value * 10 + (text[i] - '0');
    return value;
  };
  const std::size_t month = months.find(text.substr(8, 3));
  const int hour = number(17, 2);
  const int minute = number(20, 2);
  const int second = number(23, 2);
  if (month % 3 != 0 || month >= months.size() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const std::chrono::year_month_day day(std::chrono::year(number(12, 4)),
                                        std::chrono::month(static_cast<unsigned>(month / 3 + 1)),
                                        std::chrono::day(static_cast<unsigned>(number(5, 2))));
  if (!day.ok()) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(day).time_since_epoch().count();
  return days * 86'400 + hour * 3'600 + minute * 60 + second;
}

}  // namespace

// Each answer has one, and strptime() with timegm() takes some us.
std::optional<std::int64_t> parse_http_date(std::string_view given) {
  if (given.empty()) return std::nullopt;
  if (const std::optional<std::int64_t> found = parse_fixed_date(given)) return found;
  const std::string text(given);
  std::tm parts{};
  const char* const end = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return static_cast<std::int64_t>(::timegm(&parts));
}

std::string s3_error_code(std::string_view body) {
  constexpr std::size_t length_max = 64;
  constexpr std::string_view opens = "<Code>";
  const std::size_t begin = body.find(opens);
  if (begin == std::string_view::npos) return {};
  const std::string_view code =
      body.substr(begin + opens.size(), body.find('<', begin + opens.size()) - begin - opens.size());
  const bool is_word =
      code.size() <= length_max && std::all_of(code.begin(), code.end(), [](char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
      });
  return is_word ? std::string(code) : std::string();
}

std::string s3_error_text(std::string_view body, std::string_view name) {
  constexpr std::size_t length_max = 200;
  const std::string opens = str_cat("<", name, ">");
  const std::size_t begin = body.find(opens);
  if (begin == std::string_view::npos) return {};
  std::string text(body.substr(begin + opens.size()).substr(0, length_max));
  text.resize(std::min(text.find('<'), text.size()));
  std::replace_if(text.begin(), text.end(), [](char letter) { return letter < 0x20 || letter > 0x7E; }, '?');
  return text;
}

std::optional<content_range> parse_content_range(std::string_view text) noexcept {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  content_range found;
  if (const std::string_view total = text.substr(slash + 1); total != "*") {
    found.total = number_of(total);
    if (!found.total) return std::nullopt;
  }
  const std::string_view places = text.substr(0, slash);
  if (places == "*") return found;
  const std::size_t dash = places.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = number_of(places.substr(0, dash));
  const auto last = number_of(places.substr(dash + 1));
  if (!first || !last || *last < *first || (found.total && *last >= *found.total)) return std::nullopt;
  found.is_satisfied = true;
  found.first = *first;
  found.last = *last;
  return found;
}

}  // namespace leat::io

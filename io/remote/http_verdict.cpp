#include "io/remote/http_verdict.hpp"

#include "base/text.hpp"
#include "io/remote/s3.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace leat::io {
namespace {

http_verdict ended(fetch_end how, std::string why) { return {.end = how, .why = std::move(why)}; }
http_verdict given_up(std::string why) { return {.next = next_step::give_up, .why = std::move(why)}; }

http_verdict judge_unsatisfied(const fetch& wanted, const http_head& head, const std::string& said,
                               const object_facts* expected) {
  const std::optional<content_range> range = parse_content_range(head.content_range);
  const bool tells_size = range && !range->is_satisfied && range->total;
  http_verdict made = ended(fetch_end::short_of, said);
  if (tells_size) made.seen = object_facts{*range->total, head.etag, head.last_modified, head.date_unix_s};
  if (expected != nullptr && (wanted.bytes_received > 0 || (tells_size && *range->total != expected->size_bytes))) {
    made.end = fetch_end::changed;
  } else if (tells_size && *range->total > wanted.offset) {
    made.end = fetch_end::refused;
    made.why = str_cat(said, ", though it is longer");
  }
  return made;
}

http_verdict judge_redirect(const fetch& wanted, const http_head& head, const std::string& said, const address& at) {
  if (wanted.is_signed && !head.bucket_region.empty() && !follow(at, head.location)) {
    return ended(fetch_end::refused,
                 str_cat(said, ": the bucket is in the region ", head.bucket_region, "; give that as region"));
  }
  return {.next = next_step::again_now, .why = said, .is_redirect = true};
}

std::string printable_range(std::string_view text) {
  std::string shown(text.substr(0, 60));
  std::replace_if(shown.begin(), shown.end(), [](char letter) { return letter < 0x20 || letter > 0x7E; }, '?');
  return shown.empty() ? "no Content-Range" : shown;
}

// Words that repeat what was sent may hold a key or a signature.
bool repeats(std::string_view message, std::string_view request) {
  constexpr std::size_t secret_bytes_min = 12;
  for (std::size_t begin = 0, end = 0; begin < message.size(); begin = end + 1) {
    end = std::min(message.find_first_of(" \t\r\n'\"&?=;,:", begin), message.size());
    const std::string_view word = message.substr(begin, end - begin);
    if (word.size() >= secret_bytes_min && request.find(word) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

http_verdict judge_error(const fetch& wanted, const http_head& head, const std::string& code, const address& at,
                         const object_facts* expected) {
  const std::string said =
      str_cat(head.status, head.reason.empty() ? "" : " ", head.reason, code.empty() ? "" : ", ", code);
  switch (head.status) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      return judge_redirect(wanted, head, said, at);
    case 401:
    case 403:
      return ended(fetch_end::refused, str_cat(said,
                                               ": reading it is not allowed; check the address and, if it is signed, "
                                               "whether that has expired"));
    case 404:
    case 410:
      return ended(fetch_end::missing, str_cat(said, ": there is no such object; check the address"));
    case 412:
      return ended(fetch_end::changed, said);
    case 416:
      return judge_unsatisfied(wanted, head, said, expected);
    default:
      break;
  }
  http_verdict made = given_up(head.status == 407 ? str_cat(said, words_of_user) : said);
  made.is_refusal = code == "SlowDown";
  if (head.status == 408 || head.status == 429 || head.status >= 500 || made.is_refusal || code == "RequestTimeout") {
    made.wait_at_least_ns = std::min<std::uint64_t>(head.retry_after_s, 3600) * 1'000'000'000;
    made.next = next_step::again_later;
  }
  return made;
}

http_verdict judge_body(const fetch& wanted, const http_head& head, std::size_t came, const object_facts* expected) {
  const std::uint64_t begin = wanted.offset + wanted.bytes_received;
  const std::uint64_t end = wanted.offset + wanted.into.size();
  if (!head.content_encoding.empty() && head.content_encoding != "identity")
    return given_up("the server sends it compressed, though that was not asked for");
  if (head.is_chunked || !head.content_bytes) return given_up("the server does not say how many bytes it sends");
  const std::uint64_t bytes = *head.content_bytes;
  std::optional<std::uint64_t> total;
  if (head.status == 200) {
    // The object whole: right where that was wanted.
    if (begin == 0 && expected != nullptr && expected->size_bytes == end && bytes != end)
      return ended(fetch_end::changed, "the server has another one now");
    if (begin != 0 || bytes > end) {
      http_verdict made = given_up(
          "the server answers a request for a range with the whole object; leat reads ranges: use another server, or "
          "copy it");
      // One that had ranges when the object was opened has them again: SeaweedFS was seen to forget one of 140,000.
      if (expected != nullptr) made.next = next_step::again_later;
      return made;
    }
    total = bytes;
  } else {
    const std::optional<content_range> range = parse_content_range(head.content_range);
    // Where it does not say the size, the one that it had holds: what comes is still compared with the tag and the end.
    if (range) total = range->total;
    if (!total && expected != nullptr) total = expected->size_bytes;
    if (!range || !range->is_satisfied || range->first != begin || range->last >= end ||
        range->last - range->first + 1 != bytes || (range->last + 1 < end && total && range->last + 1 != *total)) {
      return given_up(str_cat("the server sends another range (", printable_range(head.content_range), ") than bytes ",
                              begin, "-", end - 1));
    }
  }
  if (!total) return given_up("the server does not say how large the object is");
  object_facts seen{*total, head.etag, head.last_modified, head.date_unix_s};
  if (expected != nullptr && !is_the_same(seen, *expected))
    return ended(fetch_end::changed, "the server has another one now");
  http_verdict made;
  if (came > bytes) made = given_up("the server sends more bytes than it says");
  made.seen = std::move(seen);
  return made;
}

std::string words_of_store(const std::string& answer, const std::string& request) {
  const std::string region = s3_error_text(answer, "Region");
  const std::string message = s3_error_text(answer, "Message");
  std::string words;
  if (!message.empty() && !repeats(message, request)) str_append(words, ": ", message);
  if (is_region(region)) str_append(words, "; the bucket is in the region ", region, "; give that as region");
  return words;
}

}  // namespace leat::io

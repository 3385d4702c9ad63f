#include "io/remote/request_writer.hpp"

#include "base/text.hpp"
#include "io/remote/renewed_credentials.hpp"
#include "io/remote/shared_store.hpp"

#include <leat/version.hpp>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace leat::io {
namespace {

// All of a store's object: asked for without a range, since it is then that a store tells its checksum.
bool wants_whole(const fetch& wanted, const route& way, const object_facts* expected) {
  return wanted.is_signed && wanted.whole_bytes_max == 0 && wanted.offset == 0 && wanted.bytes_received == 0 &&
         expected != nullptr && expected->size_bytes == wanted.into.size() && way.is_direct();
}

}  // namespace

std::string lines_for(const proxy* by) {
  if (by == nullptr || by->authorization.empty()) return {};
  return str_cat("Proxy-Authorization: ", by->authorization, "\r\n");
}

request_writer::request_writer(const remote_options& options, const s3_access* store,
                               std::function<std::int64_t()> unix_now)
    : requester_pays_(options.requester_pays),
      unix_now_(std::move(unix_now)),
      headers_(parse_request_headers(options.headers, options.allow_http)) {
  if (store != nullptr && store->renewed) {
    renewed_ = store->renewed;
    region_ = store->region;
  } else if (store != nullptr && !store->keys.empty()) {
    signer_.emplace(store->keys, store->region, store->service);
  }
}

void request_writer::take_newest_keys() {
  std::shared_ptr<const access_keys> newest = renewed_->now();
  if (newest == signed_with_) return;
  signer_.emplace(*newest, region_);
  signed_with_ = std::move(newest);
}

std::string request_writer::write(const fetch& wanted, const route& way, const proxies& all_proxies,
                                  const object_facts* expected, request_signature& signature) {
  const address& to = way.at;
  const std::string host = to.host_header();
  std::string text;
  text.reserve(1'024);
  const proxy* const by = to.tls ? nullptr : all_proxies.on_the_way_to(to);
  str_append(text, wanted.method, " ", by == nullptr ? "" : server_name(to), to.target, " HTTP/1.1\r\nHost: ", host,
             "\r\n", lines_for(by));
  std::vector<header_line> to_sign;
  to_sign.reserve(8);
  to_sign.push_back({"host", host});
  if (wants_whole(wanted, way, expected)) {
    constexpr std::string_view mode = "x-amz-checksum-mode";
    str_append(text, mode, ": ENABLED\r\n");
    to_sign.push_back({std::string(mode), "ENABLED"});
  } else if (wanted.whole_bytes_max == 0) {
    const std::string range =
        str_cat("bytes=", wanted.offset + wanted.bytes_received, "-", wanted.offset + wanted.into.size() - 1);
    str_append(text, "Range: ", range, "\r\n");
    to_sign.push_back({"range", range});
  }
  str_append(text, "Accept-Encoding: identity\r\nUser-Agent: leat/", LEAT_VERSION_MAJOR, ".", LEAT_VERSION_MINOR,
             "\r\n");
  if (to.is_same_server(*wanted.where)) {
    for (const header_line& each : wanted.headers) str_append(text, each.name, ": ", each.value, "\r\n");
  }
  for (const request_header& each : headers_) {
    if (to.is_same_server(each.server)) str_append(text, each.line.name, ": ", each.line.value, "\r\n");
  }
  if (wanted.is_signed && requester_pays_ && to.is_same_server(*wanted.where)) {
    str_append(text, "x-amz-request-payer: requester\r\n");
    to_sign.push_back({"x-amz-request-payer", "requester"});
  }
  if (wanted.method != "GET") text += "Content-Length: 0\r\n";
  signature.skew_s.reset();
  signature.keys.reset();
  if (wanted.is_signed && renewed_) take_newest_keys();
  if (wanted.is_signed && signer_ && way.is_direct()) {
    signature.skew_s = skew_s_;
    signature.keys = signed_with_;
    const std::string_view target = to.target;
    const std::size_t query = std::min(target.find('?'), target.size());
    for (const header_line& each :
         signer_->sign(target.substr(0, query), target.substr(std::min(query + 1, target.size())), std::move(to_sign),
                       unix_now_() + skew_s_)) {
      str_append(text, each.name, ": ", each.value, "\r\n");
    }
  }
  if (expected != nullptr && is_strong(expected->etag)) str_append(text, "If-Match: ", expected->etag, "\r\n");
  return text += "\r\n";
}

bool request_writer::correct_clock(request_signature& refused, const std::optional<std::int64_t>& store_unix_s) {
  constexpr std::int64_t skew_min_s = 60;
  if (!refused.skew_s || refused.is_clock_corrected) return false;
  if (*refused.skew_s == skew_s_) {
    if (!store_unix_s) return false;
    const std::int64_t skew_s = *store_unix_s - unix_now_();
    if (std::abs(skew_s - skew_s_) < skew_min_s) return false;
    skew_s_ = skew_s;
  }
  return refused.is_clock_corrected = true;
}

}  // namespace leat::io

#include "io/remote/address.hpp"

#include "base/percent.hpp"
#include "base/text.hpp"
#include "io/store/registered_stores.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace leat::io {
namespace {

// What a request line may hold; all else is written as %XX. A percent sign is taken for the beginning of one.
std::string encoded(std::string_view text) { return percent_encoded(text, "-._~:/?[]@!$&'()*+,;=%"); }

std::string printable(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char letter) { return static_cast<unsigned char>(letter) < 0x20; }, '?');
  return text;
}

bool is_web(std::string_view text) noexcept { return text.starts_with("https://") || text.starts_with("http://"); }

bool is_host(std::string_view host) {
  return !host.empty() && host.size() <= 255 && std::all_of(host.begin(), host.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' || letter == '.' ||
           letter == '_' || letter == ':';
  });
}

// Nothing where it is none; it is said what is wrong by who calls.
std::optional<address> parsed(std::string_view text) {
  const bool tls = text.starts_with("https://");
  if (!is_web(text)) return std::nullopt;
  const bool has_control = std::any_of(text.begin(), text.end(), [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F;
  });
  if (has_control) return std::nullopt;
  std::string_view rest = text.substr(tls ? 8 : 7);
  rest = rest.substr(0, rest.find('#'));
  const std::size_t authority_end = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, authority_end);
  if (authority.find('@') != std::string_view::npos) return std::nullopt;
  address found;
  found.tls = tls;
  found.port = tls ? 443 : 80;
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    found.host = authority.substr(1, end - 1);
    authority.remove_prefix(end + 1);
    if (!authority.empty() && authority.front() != ':') return std::nullopt;
    port = authority.substr(authority.empty() ? 0 : 1);
  } else {
    const std::size_t colon = authority.find(':');
    found.host = authority.substr(0, colon);
    if (found.host.find(':') != std::string::npos) return std::nullopt;
    if (colon != std::string_view::npos) port = authority.substr(colon + 1);
  }
  std::transform(found.host.begin(), found.host.end(), found.host.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  if (!is_host(found.host)) return std::nullopt;
  if (!port.empty()) {
    const auto [end, failure] = std::from_chars(port.data(), port.data() + port.size(), found.port);
    if (failure != std::errc() || end != port.data() + port.size() || found.port == 0) return std::nullopt;
  }
  const std::string_view path = rest.substr(authority_end);
  found.target = encoded(path);
  if (!found.target.starts_with('/')) found.target.insert(0, "/");
  found.shown = redacted(text);
  return found;
}

}  // namespace

std::string address::host_header() const {
  const std::string name = host.find(':') == std::string::npos ? host : str_cat("[", host, "]");
  return port == (tls ? 443 : 80) ? name : str_cat(name, ":", port);
}

bool is_s3(std::string_view text) noexcept { return text.starts_with("s3://"); }

bool has_keys(std::string_view text) noexcept { return is_s3(text) || is_registered(text); }

std::size_t query_of(std::string_view text) noexcept {
  return has_keys(text) ? text.size() : std::min(text.find('?'), text.size());
}

bool is_address(std::string_view text) noexcept { return is_web(text) || has_keys(text); }

bool has_user(std::string_view text) noexcept {
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos || has_keys(text)) return false;
  const std::string_view rest = text.substr(scheme + 3);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  if (authority.find('@') != std::string_view::npos) return true;
  const std::size_t colon = authority.find(':');
  return !authority.starts_with('[') && colon != std::string_view::npos &&
         authority.find_first_not_of("0123456789", colon + 1) != std::string_view::npos &&
         rest.find('@') != std::string_view::npos;
}

std::string redacted(std::string_view text) {
  if (has_keys(text)) return printable(std::string(text));
  const std::size_t scheme = text.find("://");
  const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  std::string_view rest = text.substr(begin);
  if (has_user(text)) rest.remove_prefix(rest.rfind('@') + 1);
  return printable(str_cat(text.substr(0, begin), rest.substr(0, rest.find_first_of("?#"))));
}

address parse_address(std::string_view text) {
  if (std::optional<address> found = parsed(text)) return *std::move(found);
  throw error(
      errc::usage,
      str_cat(redacted(text), has_user(text)
                                  ? ": an address with a user or a password is not read; give a signed one, which has "
                                    "its secret in the query"
                                  : ": this is no address of an object; write https://host/path"));
}

std::string unsigned_target(std::string_view target) {
  const std::size_t mark = target.find('?');
  std::string out(target.substr(0, mark));
  if (mark == std::string_view::npos) return out;
  std::vector<std::string_view> parts;
  for (std::string_view rest = target.substr(mark + 1);;) {
    const std::size_t end = rest.find('&');
    parts.push_back(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  const auto name_of = [](std::string_view part) {
    std::string name(part.substr(0, part.find('=')));
    std::transform(name.begin(), name.end(), name.begin(), [](char letter) {
      return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
    });
    return name;
  };
  const auto has = [&](std::string_view name) {
    return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return name_of(part) == name; });
  };
  // Each store's signature, and what it signs beside the address. Names as short as Azure's mean other things elsewhere.
  constexpr std::string_view of_s3[] = {"awsaccesskeyid", "googleaccessid", "key-pair-id",
                                        "policy",         "expires",        "signature"};
  constexpr std::string_view of_azure[] = {"sv",  "ss",  "srt", "sr",    "st",    "se",    "sp",
                                           "sip", "spr", "si",  "sig",   "skoid", "sktid", "skt",
                                           "ske", "sks", "skv", "saoid", "suoid", "scid"};
  const bool is_s3 = has("signature");
  const bool is_azure = has("sig") && has("sv");
  const bool is_v4 = has("x-amz-signature");
  const bool is_google = has("x-goog-signature");
  char before = '?';
  for (const std::string_view part : parts) {
    const std::string name = name_of(part);
    const auto is_in = [&](const auto& names) {
      return std::find(std::begin(names), std::end(names), name) != std::end(names);
    };
    if ((is_v4 && name.starts_with("x-amz-")) || (is_google && name.starts_with("x-goog-")) ||
        (is_s3 && is_in(of_s3)) || (is_azure && is_in(of_azure))) {
      continue;
    }
    out += std::exchange(before, '&');
    out += part;
  }
  return out;
}

std::optional<address> follow(const address& from, std::string_view location) {
  if (location.starts_with('/') && !location.starts_with("//")) {
    address next = from;
    next.target = encoded(location.substr(0, location.find('#')));
    const std::size_t path = from.shown.find('/', from.shown.find("://") + 3);
    next.shown = redacted(str_cat(from.shown.substr(0, path), location));
    return next;
  }
  std::optional<address> next = parsed(location);
  if (next && from.tls && !next->tls) return std::nullopt;
  return next;
}

}  // namespace leat::io

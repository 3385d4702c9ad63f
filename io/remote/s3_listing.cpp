#include "io/remote/s3_listing.hpp"

#include "base/hash_map.hpp"
#include "base/percent.hpp"
#include "base/text.hpp"
#include "io/remote/list_bucket.hpp"
#include "io/remote/web_objects.hpp"
#include "io/store/registered_stores.hpp"

#include <leat/error.hpp>

#include <string.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

namespace leat::io {
namespace {

struct tag {
  std::string_view opens;
  std::string_view closes;
};
constexpr tag contents_tag = {"<Contents>", "</Contents>"};
constexpr tag key_tag = {"<Key>", "</Key>"};
constexpr tag size_tag = {"<Size>", "</Size>"};
constexpr tag etag_tag = {"<ETag>", "</ETag>"};
constexpr tag folder_tag = {"<CommonPrefixes>", "</CommonPrefixes>"};
constexpr tag prefix_tag = {"<Prefix>", "</Prefix>"};
constexpr tag encoding_tag = {"<EncodingType>", "</EncodingType>"};
constexpr tag truncated_tag = {"<IsTruncated>", "</IsTruncated>"};
constexpr tag token_tag = {"<NextContinuationToken>", "</NextContinuationToken>"};

// As text.find(), which stops at each '<'.
std::size_t find(std::string_view text, std::string_view what, std::size_t at) {
  const std::string_view rest = text.substr(at);
  const void* const found = ::memmem(rest.data(), rest.size(), what.data(), what.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

// What stands between the tags, from `at` on, which moves behind it.
std::optional<std::string_view> element(std::string_view xml, const tag& of, std::size_t& at) {
  const std::size_t begin = find(xml, of.opens, at);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = find(xml, of.closes, begin + of.opens.size());
  if (end == std::string_view::npos) return std::nullopt;
  at = end + of.closes.size();
  return xml.substr(begin + of.opens.size(), end - begin - of.opens.size());
}
std::optional<std::string_view> element(std::string_view xml, const tag& of) {
  std::size_t at = 0;
  return element(xml, of, at);
}

// Of "#34" and "#x22": '"'. Nothing else than ASCII occurs where keys are encoded.
std::optional<char> numbered(std::string_view reference) {
  if (!reference.starts_with('#')) return std::nullopt;
  reference.remove_prefix(1);
  const bool is_hex = reference.starts_with('x');
  if (is_hex) reference.remove_prefix(1);
  unsigned number = 0;
  const auto [end, failure] =
      std::from_chars(reference.data(), reference.data() + reference.size(), number, is_hex ? 16 : 10);
  if (failure != std::errc() || end != reference.data() + reference.size() || number == 0 || number > 0x7F)
    return std::nullopt;
  return static_cast<char>(number);
}

// Without XML's references: the five by name, and numbers, as which what is written in Go has its quotes.
std::string plain(std::string_view text) {
  constexpr std::pair<std::string_view, char> names[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  constexpr std::size_t reference_max = 10;
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (text.front() != '&') {
      const std::string_view run = text.substr(0, text.find('&'));
      out += run;
      text.remove_prefix(run.size());
      continue;
    }
    const std::size_t end = text.substr(0, reference_max).find(';');
    std::optional<char> meant;
    if (end != std::string_view::npos) {
      const std::string_view reference = text.substr(1, end - 1);
      const auto* const found =
          std::find_if(std::begin(names), std::end(names), [&](const auto& each) { return reference == each.first; });
      meant = found != std::end(names) ? found->second : numbered(reference);
    }
    out += meant.value_or(text.front());
    text.remove_prefix(meant ? end + 1 : 1);
  }
  return out;
}

// "a%20b+c" as "a b c".
std::optional<std::string> decoded(std::string text) {
  if (text.find_first_of("+%") == std::string::npos) return text;
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const std::optional<char> code = leading_percent_code(std::string_view(text).substr(i));
      if (!code) return std::nullopt;
      out += *code;
      i += 2;
    }
  }
  return out;
}

// No store has an object without a name; of others C's functions would see a part.
bool is_key(const std::optional<std::string>& name) {
  return name && !name->empty() && name->find('\0') == std::string::npos;
}

// What may stand in a header; "" else.
std::string quoted(std::string tag) {
  const bool has_quotes = tag.size() >= 2 && tag.front() == '"' && tag.back() == '"';
  const std::string_view inside = has_quotes ? std::string_view(tag).substr(1, tag.size() - 2) : std::string_view(tag);
  const bool is_tag = !inside.empty() && inside.size() <= 200 &&
                      std::all_of(inside.begin(), inside.end(),
                                  [](char letter) { return letter > 0x20 && letter < 0x7F && letter != '"'; });
  if (!is_tag) return {};
  return str_cat("\"", inside, "\"");
}

}  // namespace

std::optional<s3_page> parse_s3_page(std::string_view xml) {
  const std::optional<std::string_view> result = [&]() -> std::optional<std::string_view> {
    const std::size_t begin = xml.find("<ListBucketResult");
    const std::size_t end = xml.find("</ListBucketResult>");
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return std::nullopt;
    return xml.substr(begin, end - begin);
  }();
  if (!result) return std::nullopt;
  s3_page page;
  // Not every store encodes names because it was asked to.
  const bool is_encoded = element(*result, encoding_tag) == "url";
  std::size_t at = 0;
  while (const std::optional<std::string_view> object = element(*result, contents_tag, at)) {
    const std::optional<std::string_view> key = element(*object, key_tag);
    const std::optional<std::string_view> size = element(*object, size_tag);
    if (!key || !size) return std::nullopt;
    s3_listed& added = page.objects.emplace_back();
    std::optional<std::string> name = is_encoded ? decoded(plain(*key)) : plain(*key);
    const auto [end, failure] = std::from_chars(size->data(), size->data() + size->size(), added.size_bytes);
    if (!is_key(name) || failure != std::errc() || end != size->data() + size->size()) return std::nullopt;
    added.key = *std::move(name);
    if (const std::optional<std::string_view> tag = element(*object, etag_tag)) added.etag = quoted(plain(*tag));
  }
  at = 0;
  while (const std::optional<std::string_view> folder = element(*result, folder_tag, at)) {
    const std::optional<std::string_view> prefix = element(*folder, prefix_tag);
    if (!prefix) return std::nullopt;
    std::optional<std::string> name = is_encoded ? decoded(plain(*prefix)) : plain(*prefix);
    if (!is_key(name)) return std::nullopt;
    page.folders.push_back(*std::move(name));
  }
  if (element(*result, truncated_tag) == "true") {
    const std::optional<std::string_view> token = element(*result, token_tag);
    if (!token || token->empty()) return std::nullopt;
    page.next = plain(*token);
  }
  return page;
}

std::vector<named_object> match_s3_objects(const std::string& pattern, const remote_options& options) {
  const s3_name name = parse_s3_name(pattern);
  std::vector<named_object> found;
  for (s3_listed& each : list_bucket(name.bucket, listed_prefix(name.key), find_s3_access(options), options)) {
    if (!is_matched(name.key, each.key)) continue;
    found.push_back({str_cat("s3://", name.bucket, "/", each.key), each.size_bytes, std::move(each.etag)});
  }
  if (found.empty()) throw error(errc::not_found, str_cat(pattern, ": no object matches; check the pattern"));
  return found;
}

std::vector<named_object> list_s3_objects(const std::string& folder, const remote_options& options) {
  // A bucket by itself is no name of an object.
  s3_name below = parse_s3_name(str_cat(folder, folder.ends_with('/') ? "*" : "/*"));
  below.key.pop_back();
  std::vector<s3_listed> listed = list_bucket(below.bucket, below.key, find_s3_access(options), options);
  std::vector<named_object> found;
  found.reserve(listed.size());
  for (s3_listed& each : listed) {
    // Its key's memory goes back at once: of a million objects it is not held twice.
    s3_listed taken = std::move(each);
    found.push_back({str_cat("s3://", below.bucket, "/", taken.key), taken.size_bytes, std::move(taken.etag)});
  }
  return found;
}

void ask_for_facts(std::span<named_object> objects, const remote_options& options) {
  // A page is an answer that is waited for, and has a thousand names; looks are waited for together.
  constexpr std::size_t objects_min = 16;
  constexpr std::size_t names_a_page = 1000;
  if (objects.size() < objects_min) return;
  std::string bucket;
  std::string prefix;
  hash_map<std::string, named_object*> by_key;
  for (named_object& each : objects) {
    if (!is_s3(each.address) || !each.etag.empty()) return;
    s3_name name = parse_s3_name(each.address);
    if (by_key.empty()) {
      bucket = name.bucket;
      prefix = name.key;
    }
    if (name.bucket != bucket) return;
    const auto [end, of_key] = std::mismatch(prefix.begin(), prefix.end(), name.key.begin(), name.key.end());
    prefix.erase(end, prefix.end());
    by_key.emplace(std::move(name.key), &each);
  }
  try {
    // What else begins so may be many. Folders that are listed side by side take up to three answers for each one in a row.
    const std::size_t pages_max = 1 + 4 * objects.size() / names_a_page;
    for (s3_listed& each : list_bucket(bucket, prefix, find_s3_access(options), options, pages_max)) {
      const auto found = by_key.find(each.key);
      if (found == by_key.end()) continue;
      found->second->size_bytes = each.size_bytes;
      found->second->etag = std::move(each.etag);
    }
  } catch (const error& refused) {
    // Who may read objects need not be allowed to list them.
    if (refused.code() != errc::permission && refused.code() != errc::not_found && refused.code() != errc::io) throw;
  }
}

}  // namespace leat::io

#include "base/hasher.hpp"
#include "base/utf8.hpp"

#include <leat/description.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string>

namespace leat {
namespace {

leat::digest digest_of(std::string_view text) noexcept {
  hasher hash;
  hash.add(text);
  return hash.finish();
}

// Of text that is no UTF-8, every byte beyond ASCII: what is compared later is then what was written.
std::string as_utf8(std::string_view text) {
  if (!first_invalid_utf8(std::as_bytes(std::span(text)))) return std::string(text);
  std::string escaped;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x80) {
      escaped.push_back(letter);
    } else {
      std::array<char, 8> digits{};
      std::snprintf(digits.data(), digits.size(), "\\x%02x", static_cast<unsigned>(byte));
      escaped += digits.data();
    }
  }
  return escaped;
}

std::string bounded(std::string_view text) {
  std::string value = as_utf8(text);
  if (value.size() <= description::value_bytes_max) return value;
  return "digest " + digest_of(text).hex() + " of " + std::to_string(text.size()) + " bytes";
}

template <class Number>
std::string text_of(Number value) {
  std::array<char, 64> digits{};
  const std::to_chars_result end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), end.ptr};
}

}  // namespace

std::string description::unique(std::string_view key) const {
  const std::string wanted = bounded(key);
  std::string name = wanted;
  const auto is_there = [&] {
    return std::any_of(entries_.begin(), entries_.end(), [&](const entry& each) { return each.key == name; });
  };
  for (std::uint64_t number = 2; is_there(); ++number) name = wanted + "." + std::to_string(number);
  return name;
}

void description::add(std::string_view key, std::string_view value) {
  entries_.push_back({unique(key), bounded(value)});
}
void description::add(std::string_view key, double value) { add(key, std::string_view(text_of(value))); }
void description::add_signed(std::string_view key, std::int64_t value) { add(key, std::string_view(text_of(value))); }
void description::add_unsigned(std::string_view key, std::uint64_t value) {
  add(key, std::string_view(text_of(value)));
}

void description::add(std::string_view key, const description& part) {
  const auto inner = [&](const std::string& name) { return std::string(key) + "." + name; };
  for (const entry& each : part.entries_) add(inner(each.key), std::string_view(each.value));
  for (const unnamed_part& each : part.unnamed_) add_unnamed(inner(each.key), each.remedy);
}

void description::add_unnamed(std::string_view key, std::string_view remedy) {
  unnamed_.push_back({std::string(key), std::string(remedy)});
}

bool operator==(const description& a, const description& b) noexcept { return a.entries_ == b.entries_; }

leat::digest description::digest() const noexcept {
  hasher hash;
  hash.add(static_cast<std::uint64_t>(entries_.size()));
  for (const entry& each : entries_) {
    hash.add(std::string_view(each.key));
    hash.add(std::string_view(each.value));
  }
  return hash.finish();
}

std::string description::to_json() const {
  std::string text = "{";
  for (const entry& each : entries_) {
    if (text.size() > 1) text += ",";
    text += nlohmann::json(each.key).dump() + ":" + nlohmann::json(each.value).dump();
  }
  return text + "}";
}

}  // namespace leat

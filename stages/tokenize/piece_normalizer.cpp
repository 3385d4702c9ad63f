#include "stages/tokenize/piece_normalizer.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

// The bytes of the character that a text begins with; 0: it begins with none.
std::size_t character_bytes(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  if (at(0) < 0x80) return 1;
  const utf8_rest rest = utf8_rest::of(at(0));
  if (rest.bytes == 0 || text.size() <= rest.bytes) return 0;
  for (std::size_t i = 0; i < rest.bytes; ++i) {
    if (!rest.takes(i, at(i + 1))) return 0;
  }
  return rest.bytes + 1;
}

std::optional<token_tree> tree_of(const std::vector<std::string>& texts) {
  if (texts.empty()) return std::nullopt;
  std::vector<vocabulary_entry> entries;
  for (const std::string& each : texts) entries.push_back({.bytes = each, .id = 0});
  return token_tree(entries);
}

}  // namespace

piece_normalizer::piece_normalizer(const normal_step& how)
    : map_(how.text, how.escape ? 3 : 1),
      kept_(tree_of(how.kept)),
      space_(how.escape ? "\xE2\x96\x81" : " "),
      dummy_prefix_(how.dummy_prefix),
      lone_spaces_(how.lone_spaces),
      suffix_(how.suffix),
      factor_(std::max(map_.factor(), std::max(space_.size(), replacement.size()))) {
  for (std::size_t a = 0; a < 128; ++a) {
    for (std::size_t b = 0; b < 128; ++b) {
      const char pair[] = {static_cast<char>(a), static_cast<char>(b)};
      const std::string_view both(pair, 2);
      const bool is_kept = kept_ && kept_->walk(both.substr(0, 1)) != token_tree::none;
      plain_[a * 128 + b] = a != ' ' && !is_kept && !map_.leads_on(both) && map_.longest(both.substr(0, 1)).bytes == 0;
    }
  }
}

// How many bytes at the begin of a text stay as they are.
std::size_t piece_normalizer::plain_bytes(std::string_view text) const noexcept {
  std::size_t count = 0;
  while (count + 1 < text.size()) {
    const auto a = static_cast<unsigned char>(text[count]);
    const auto b = static_cast<unsigned char>(text[count + 1]);
    if ((a | b) >= 0x80 || !plain_[std::size_t{a} * 128 + b]) break;
    ++count;
  }
  return count;
}

// source: Normalizer::NormalizePrefix()
piece_normalizer::prefix piece_normalizer::first(std::string_view text) const noexcept {
  if (kept_) {
    std::size_t longest = 0;
    std::uint32_t node = token_tree::root;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = kept_->next(node, static_cast<unsigned char>(text[i]));
      if (node == token_tree::none) break;
      if (kept_->entry(node) != token_tree::none) longest = i + 1;
    }
    if (longest != 0) return {text.substr(0, longest), longest};
  }
  const precompiled_map::found found = map_.longest(text);
  if (found.bytes != 0) return {found.into, found.bytes};
  const std::size_t bytes = character_bytes(text);
  if (bytes == 0) return {replacement, 1};
  return {text.substr(0, bytes), bytes};
}

// source: Normalizer::Normalize()
void piece_normalizer::normalize(std::string_view text, std::string& to) const {
  while (lone_spaces_ && !text.empty()) {
    const prefix begin = first(text);
    if (begin.into != " ") break;
    text.remove_prefix(begin.bytes);
  }
  if (text.empty()) return;
  if (dummy_prefix_ && !suffix_) to += space_;
  bool is_behind_space = lone_spaces_;
  while (!text.empty()) {
    if (const std::size_t plain = plain_bytes(text); plain != 0) {
      to += text.substr(0, plain);
      text.remove_prefix(plain);
      is_behind_space = false;
    }
    prefix next = first(text);
    text.remove_prefix(next.bytes);
    while (is_behind_space && next.into.starts_with(' ')) next.into.remove_prefix(1);
    if (next.into.empty()) continue;
    for (const char letter : next.into) {
      if (letter == ' ') {
        to += space_;
      } else {
        to += letter;
      }
    }
    is_behind_space = lone_spaces_ && next.into.ends_with(' ');
  }
  while (lone_spaces_ && to.ends_with(space_)) to.resize(to.size() - space_.size());
  if (dummy_prefix_ && suffix_) to += space_;
}

}  // namespace leat::stages

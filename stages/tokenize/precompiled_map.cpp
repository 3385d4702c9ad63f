#include "stages/tokenize/precompiled_map.hpp"

#include "base/text.hpp"
#include "base/utf8.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace leat::stages {
namespace {

// A unit of the double array: a leaf's number, or where the children of a node begin (Darts-clone).
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t leaf_value(std::uint32_t unit) { return unit & 0x7FFFFFFF; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FF; }
std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

[[noreturn]] void damaged(const std::string& what) {
  throw error(errc::format, str_cat("precompiled_charsmap: ", what));
}

}  // namespace

precompiled_map::precompiled_map(std::string_view blob, std::size_t space) {
  if (blob.empty()) return;
  std::uint32_t bytes = 0;
  if (blob.size() < sizeof bytes) damaged("it has no size");
  std::memcpy(&bytes, blob.data(), sizeof bytes);
  blob.remove_prefix(sizeof bytes);
  if (bytes > blob.size() || bytes % sizeof(std::uint32_t) != 0 || bytes == 0) {
    damaged(str_cat("its array has ", bytes, " bytes, and ", blob.size(), " are there"));
  }
  units_.resize(bytes / sizeof(std::uint32_t));
  std::memcpy(units_.data(), blob.data(), bytes);
  texts_ = blob.substr(bytes);
  texts_ += '\0';
  walk(space);
}

// What a text is replaced by has to be there, and says how much longer a text becomes. Ends of texts share their nodes: each node is
// looked at once, where it is nearest to the root, since there it makes a text longest.
void precompiled_map::walk(std::size_t space) {
  struct place {
    std::size_t at;
    std::size_t bytes;
  };
  std::vector<place> open{{offset_of(units_[0]), 0}};
  std::vector<bool> seen(units_.size() + 256);
  for (std::size_t next = 0; next < open.size(); ++next) {
    const place here = open[next];
    if (here.at >= seen.size() || seen[here.at]) continue;
    seen[here.at] = true;
    for (std::size_t byte = 1; byte < 256; ++byte) {
      const std::size_t at = here.at ^ byte;
      if (at >= units_.size() || label_of(units_[at]) != byte) continue;
      const std::size_t children = at ^ offset_of(units_[at]);
      if (has_leaf(units_[at])) {
        if (children >= units_.size()) damaged("an entry leads out of its array");
        const std::size_t text = leaf_value(units_[children]);
        if (text >= texts_.size()) damaged("an entry leads to no text");
        const std::string_view into(texts_.data() + text);
        if (first_invalid_utf8(std::as_bytes(std::span(into)))) damaged("a text is no UTF-8");
        const std::size_t key = here.bytes + 1;
        const auto spaces = static_cast<std::size_t>(std::count(into.begin(), into.end(), ' '));
        factor_ = std::max(factor_, (into.size() + spaces * (space - 1) + key - 1) / key);
      }
      open.push_back({children, here.bytes + 1});
    }
  }
}

precompiled_map::found precompiled_map::find(std::string_view text, bool longest) const noexcept {
  found best;
  if (units_.empty()) return best;
  std::size_t at = offset_of(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (byte == 0 || at >= units_.size() || label_of(units_[at]) != byte) return best;
    const bool is_end = has_leaf(units_[at]);
    at ^= offset_of(units_[at]);
    if (!is_end) continue;
    best = {.bytes = i + 1, .into = std::string_view(texts_.data() + leaf_value(units_[at]))};
    if (!longest) return best;
  }
  return best;
}

bool precompiled_map::leads_on(std::string_view text) const noexcept {
  if (units_.empty()) return false;
  std::size_t at = offset_of(units_[0]);
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    at ^= byte;
    if (byte == 0 || at >= units_.size() || label_of(units_[at]) != byte) return false;
    at ^= offset_of(units_[at]);
  }
  return true;
}

}  // namespace leat::stages

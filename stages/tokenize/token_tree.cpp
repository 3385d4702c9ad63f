#include "stages/tokenize/token_tree.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <utility>

namespace leat::stages {

token_tree::token_tree(std::span<const vocabulary_entry> vocabulary) {
  std::vector<std::uint32_t> sorted;
  for (std::uint32_t i = 0; i < vocabulary.size(); ++i) {
    const std::string& bytes = vocabulary[i].bytes;
    if (bytes.size() > token_bytes_max) {
      throw error(errc::unsupported, str_cat("a token of ", bytes.size(), " bytes ('", bytes.substr(0, 40),
                                             "...') is not read; up to ", token_bytes_max, " bytes are"));
    }
    if (!bytes.empty()) sorted.push_back(i);
  }
  std::sort(sorted.begin(), sorted.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int order = vocabulary[a].bytes.compare(vocabulary[b].bytes);
    return order != 0 ? order < 0 : a < b;
  });
  // Nodes whose children are not placed yet: the tokens [begin, end) that begin with the node's bytes.
  struct range {
    std::uint32_t node;
    std::size_t begin;
    std::size_t end;
    std::size_t depth;
  };
  units_.resize(512);
  units_[root].parent = root;  // taken; no base leads to it, since each is 1 or more
  std::vector<range> open{{root, 0, sorted.size(), 0}};
  std::size_t first_free = 1;
  std::size_t wide = 1;  // where nodes with several children are placed
  std::vector<std::pair<unsigned char, range>> children;
  while (!open.empty()) {
    const range here = open.back();
    open.pop_back();
    children.clear();
    for (std::size_t i = here.begin; i < here.end; ++i) {
      const std::string& bytes = vocabulary[sorted[i]].bytes;
      if (bytes.size() == here.depth) {
        units_[here.node].entry = sorted[i];
        continue;
      }
      const auto byte = static_cast<unsigned char>(bytes[here.depth]);
      if (children.empty() || children.back().first != byte) children.push_back({byte, {0, i, i, here.depth + 1}});
      children.back().second.end = i + 1;
    }
    if (children.empty()) {
      // A leaf: from it no byte leads anywhere, since no unit has it for a parent.
      units_[here.node].base = 1;
      continue;
    }
    while (units_[first_free].parent != none) {
      if (++first_free == units_.size()) units_.resize(2 * units_.size());
    }
    // Where several children find no place soon, the search goes on from there for good: what it left is for nodes with one child. So
    // building takes no time that grows with the square.
    constexpr int tries_max = 64;
    const unsigned char least = children.front().first;
    const std::size_t from = children.size() == 1 ? first_free : std::max(first_free, wide);
    std::size_t base = from > least ? from - least : 1;
    for (int tries = 0;; ++tries, ++base) {
      if (base + 256 >= units_.size()) units_.resize(2 * units_.size() + 256);
      const bool is_free = std::all_of(children.begin(), children.end(),
                                       [&](const auto& each) { return units_[base + each.first].parent == none; });
      if (!is_free) continue;
      if (tries > tries_max && children.size() > 1) wide = base + least;
      break;
    }
    units_[here.node].base = static_cast<std::uint32_t>(base);
    for (auto& [byte, child] : children) {
      child.node = static_cast<std::uint32_t>(base + byte);
      units_[child.node].parent = here.node;
      open.push_back(child);
    }
  }
  std::size_t used = units_.size();
  while (used > 1 && units_[used - 1].parent == none) --used;
  units_.resize(used + 256);  // next() looks at any byte behind the last base
  units_.shrink_to_fit();
}

std::uint32_t token_tree::walk(std::string_view text, std::uint32_t node) const noexcept {
  for (const char letter : text) {
    node = next(node, static_cast<unsigned char>(letter));
    if (node == none) return none;
  }
  return node;
}

}  // namespace leat::stages

#include "stages/tokenize/byte_pairs.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace leat::stages {
namespace {

std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) { return std::uint64_t{left} << 32 | right; }

std::size_t slot_of(std::uint64_t pair, std::size_t slots) {
  const std::uint64_t mixed = pair * 0x9E3779B97F4A7C15U;
  return static_cast<std::size_t>(mixed >> 32 ^ mixed) & (slots - 1);
}

std::size_t slots_for(std::size_t entries) { return std::bit_ceil(2 * entries + 2); }

}  // namespace

byte_pairs::byte_pairs(std::span<const vocabulary_entry> vocabulary, std::span<const token_merge> merges,
                       bool whole_words) {
  std::fill(std::begin(of_byte_), std::end(of_byte_), none);
  for (const vocabulary_entry& each : vocabulary) {
    if (each.bytes.size() == 1) of_byte_[static_cast<unsigned char>(each.bytes.front())] = each.id;
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (of_byte_[byte] != none) continue;
    throw error(errc::format, str_cat("its vocabulary has no token for the byte ", byte,
                                      ", and a text that holds it could not be written"));
  }
  set_pairs(merges);
  if (!whole_words) return;
  words_.resize(slots_for(vocabulary.size()));
  for (const vocabulary_entry& each : vocabulary) {
    if (each.bytes.empty()) continue;
    std::size_t at = XXH3_64bits(each.bytes.data(), each.bytes.size()) & (words_.size() - 1);
    while (words_[at].length != 0) at = (at + 1) & (words_.size() - 1);
    words_[at] = {.begin = static_cast<std::uint32_t>(word_bytes_.size()),
                  .length = static_cast<std::uint32_t>(each.bytes.size()),
                  .id = each.id};
    word_bytes_ += each.bytes;
  }
}

byte_pairs::byte_pairs(std::span<const token_merge> merges) {
  std::fill(std::begin(of_byte_), std::end(of_byte_), none);
  set_pairs(merges);
}

void byte_pairs::set_pairs(std::span<const token_merge> merges) {
  pairs_.resize(slots_for(merges.size()));
  for (const token_merge& each : merges) {
    const std::uint64_t pair = pair_of(each.left, each.right);
    std::size_t at = slot_of(pair, pairs_.size());
    while (pairs_[at].pair != no_pair && pairs_[at].pair != pair) at = (at + 1) & (pairs_.size() - 1);
    // Of two with one pair the last counts, as in the reference.
    pairs_[at] = {.pair = pair, .into = {.rank = each.rank, .id = each.id}};
  }
}

std::size_t byte_pairs::memory_bytes() const noexcept {
  return sizeof *this + pairs_.capacity() * sizeof(pair_slot) + words_.capacity() * sizeof(word_slot) +
         word_bytes_.capacity();
}

byte_pairs::merged byte_pairs::find(std::uint32_t left, std::uint32_t right) const noexcept {
  const std::uint64_t pair = pair_of(left, right);
  for (std::size_t at = slot_of(pair, pairs_.size());; at = (at + 1) & (pairs_.size() - 1)) {
    if (pairs_[at].pair == pair) return pairs_[at].into;
    if (pairs_[at].pair == no_pair) return {};
  }
}

const byte_pairs::word_slot* byte_pairs::find_word(std::string_view word) const noexcept {
  for (std::size_t at = XXH3_64bits(word.data(), word.size()) & (words_.size() - 1);;
       at = (at + 1) & (words_.size() - 1)) {
    const word_slot& slot = words_[at];
    if (slot.length == 0) return nullptr;
    if (std::string_view(word_bytes_).substr(slot.begin, slot.length) == word) return &slot;
  }
}

void byte_pairs::encode(std::string_view word, merge_scratch& scratch, std::vector<std::uint32_t>& ids) const {
  assert(!word.empty() && word.size() <= word_bytes_max);
  if (!words_.empty()) {
    if (const word_slot* const whole = find_word(word); whole != nullptr) {
      ids.push_back(whole->id);
      return;
    }
  }
  if (word.size() <= few_symbols) {
    std::uint32_t symbols[few_symbols];
    for (std::size_t i = 0; i < word.size(); ++i) symbols[i] = of_byte_[static_cast<unsigned char>(word[i])];
    merge_few({symbols, word.size()}, ids);
    return;
  }
  scratch.fill(word.size());
  for (std::size_t i = 0; i < word.size(); ++i) scratch.symbols_[i].id = of_byte_[static_cast<unsigned char>(word[i])];
  merge_many(scratch, ids);
}

void byte_pairs::merge(std::span<const std::uint32_t> symbols, merge_scratch& scratch,
                       std::vector<std::uint32_t>& ids) const {
  if (symbols.size() <= few_symbols) {
    merge_few(symbols, ids);
    return;
  }
  scratch.fill(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) scratch.symbols_[i].id = symbols[i];
  merge_many(scratch, ids);
}

void byte_pairs::merge_few(std::span<const std::uint32_t> symbols, std::vector<std::uint32_t>& ids) const {
  std::uint32_t id[few_symbols];
  merged with_next[few_symbols];
  std::size_t count = symbols.size();
  std::copy(symbols.begin(), symbols.end(), id);
  for (std::size_t i = 0; i + 1 < count; ++i) with_next[i] = find(id[i], id[i + 1]);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (with_next[i].rank < with_next[best].rank) best = i;
    }
    if (with_next[best].rank == none) break;
    id[best] = with_next[best].id;
    std::copy(id + best + 2, id + count, id + best + 1);
    if (best + 2 < count) std::copy(with_next + best + 2, with_next + count - 1, with_next + best + 1);
    --count;
    if (best != 0) with_next[best - 1] = find(id[best - 1], id[best]);
    if (best + 1 < count) with_next[best] = find(id[best], id[best + 1]);
  }
  ids.insert(ids.end(), id, id + count);
}

void merge_scratch::fill(std::size_t count) {
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  symbols_.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    symbols_[i].before = i == 0 ? none : i - 1;
    symbols_[i].behind = i + 1 == count ? none : i + 1;
  }
}

void byte_pairs::merge_many(merge_scratch& scratch, std::vector<std::uint32_t>& ids) const {
  auto& symbols = scratch.symbols_;
  auto& candidates = scratch.candidates_;
  candidates.clear();
  const auto count = static_cast<std::uint32_t>(symbols.size());
  const auto later = [](const merge_scratch::candidate& a, const merge_scratch::candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  };
  const auto look_at = [&](std::uint32_t at) {
    if (at == none || symbols[at].behind == none) return;
    const merged into = find(symbols[at].id, symbols[symbols[at].behind].id);
    if (into.rank == none) return;
    candidates.push_back({.rank = into.rank, .at = at, .id = into.id});
    std::push_heap(candidates.begin(), candidates.end(), later);
  };
  for (std::uint32_t i = 0; i < count; ++i) look_at(i);
  while (!candidates.empty()) {
    const merge_scratch::candidate best = candidates.front();
    std::pop_heap(candidates.begin(), candidates.end(), later);
    candidates.pop_back();
    merge_scratch::symbol& left = symbols[best.at];
    if (left.id == none || left.behind == none) continue;
    merge_scratch::symbol& right = symbols[left.behind];
    const merged now = find(left.id, right.id);
    if (now.rank != best.rank || now.id != best.id) continue;  // One of the two has become another one.
    left.id = best.id;
    left.behind = right.behind;
    right.id = none;
    if (left.behind != none) symbols[left.behind].before = best.at;
    look_at(left.before);
    look_at(best.at);
  }
  for (std::uint32_t at = 0; at != none; at = symbols[at].behind) ids.push_back(symbols[at].id);
}

}  // namespace leat::stages

// Byte pair encoding: a word's bytes become tokens by merging neighbours, the pair of the least rank first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::stages {

/// Bytes, and the number that stands for them.
struct vocabulary_entry {
  std::string bytes;
  std::uint32_t id = 0;
};

/// Two neighbours that become one. Of several the least rank comes first, and of equal ranks the first place in the word.
struct token_merge {
  std::uint32_t left = 0;
  std::uint32_t right = 0;
  std::uint32_t id = 0;
  std::uint32_t rank = 0;
};

/// One thread's memory for merging. It grows with the longest word.
class merge_scratch {
 private:
  friend class byte_pairs;
  struct symbol {
    std::uint32_t id;
    std::uint32_t before;
    std::uint32_t behind;
  };
  struct candidate {
    std::uint32_t rank;
    std::uint32_t at;
    std::uint32_t id;  // of what the two become: they may have become something else meanwhile
  };
  void fill(std::size_t count);
  std::vector<symbol> symbols_;
  std::vector<candidate> candidates_;
};

/// Thread: any, each with a scratch of its own.
class byte_pairs {
 public:
  /// Longer words are refused: merging takes 36 bytes of memory for each of theirs.
  static constexpr std::size_t word_bytes_max = std::size_t{1} << 20;

  ///   vocabulary    has every single byte
  ///   whole_words   a word that is in the vocabulary is one token, whatever merging would make of it
  ///   throws        error{errc::format} naming a byte that it lacks, or a merge that names no token
  byte_pairs(std::span<const vocabulary_entry> vocabulary, std::span<const token_merge> merges, bool whole_words);
  /// For merge() alone.
  explicit byte_pairs(std::span<const token_merge> merges);

  /// Appends the word's tokens. Time: n log n in its bytes.
  ///   word   1 to word_bytes_max bytes
  void encode(std::string_view word, merge_scratch& scratch, std::vector<std::uint32_t>& ids) const;
  /// Appends what becomes of these tokens.
  ///   symbols   up to word_bytes_max of them
  void merge(std::span<const std::uint32_t> symbols, merge_scratch& scratch, std::vector<std::uint32_t>& ids) const;

  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  struct merged {
    std::uint32_t rank = none;
    std::uint32_t id = 0;
  };
  struct pair_slot {
    std::uint64_t pair = no_pair;
    merged into;
  };
  struct word_slot {
    std::uint32_t begin = 0;
    std::uint32_t length = 0;  // 0: free
    std::uint32_t id = 0;
  };
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint64_t no_pair = std::numeric_limits<std::uint64_t>::max();
  // Up to here looking at all pairs again after each merge is cheaper than a heap.
  static constexpr std::size_t few_symbols = 48;

  void set_pairs(std::span<const token_merge> merges);
  [[nodiscard]] merged find(std::uint32_t left, std::uint32_t right) const noexcept;
  [[nodiscard]] const word_slot* find_word(std::string_view word) const noexcept;
  void merge_few(std::span<const std::uint32_t> symbols, std::vector<std::uint32_t>& ids) const;
  void merge_many(merge_scratch& scratch, std::vector<std::uint32_t>& ids) const;

  std::uint32_t of_byte_[256];
  std::vector<pair_slot> pairs_;  // a power of two of them, at most half of them taken
  std::vector<word_slot> words_;  // likewise; empty unless whole words are looked up
  std::string word_bytes_;
};

}  // namespace leat::stages

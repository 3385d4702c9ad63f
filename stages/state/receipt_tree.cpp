#include "stages/state/receipt_tree.hpp"

#include "base/descriptor.hpp"
#include "base/file_at.hpp"
#include "base/hasher.hpp"
#include "base/text.hpp"
#include "io/files/read_error.hpp"

#include <leat/error.hpp>

#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

namespace leat::stages {
namespace {

constexpr std::uint64_t block_rows = 64;
// No file has more, and no sum of these overflows.
constexpr std::uint64_t receipt_rows_max = std::uint64_t{1} << 56U;
enum class hash_of : std::uint8_t { block = 0, node = 1, root = 2 };
using name_key = std::array<std::uint8_t, receipt_row::key_bytes>;

sha256_hasher begin_hash(hash_of what) {
  sha256_hasher hash;
  hash.add(std::as_bytes(std::span(&what, 1)));
  return hash;
}

sha256 hash_block(std::span<const receipt_row> rows) {
  sha256_hasher hash = begin_hash(hash_of::block);
  hash.add(std::as_bytes(rows));
  return hash.finish();
}

sha256 hash_node(const sha256& left, const sha256& right) {
  sha256_hasher hash = begin_hash(hash_of::node);
  hash.add(left);
  hash.add(right);
  return hash.finish();
}

sha256 hash_root(const receipt_statement& of, const sha256& top) {
  sha256_hasher hash = begin_hash(hash_of::root);
  for (const std::uint64_t each :
       {std::uint64_t{of.of.content}, of.of.seed, std::uint64_t{of.of.epochs}, std::uint64_t{of.of.rank},
        std::uint64_t{of.of.world}, std::uint64_t{of.of.begin_epoch}, of.of.begin_batch, of.rows,
        std::uint64_t{of.ended}}) {
    hash.add(each);
  }
  hash.add(std::as_bytes(std::span(of.of.described.bytes)));
  hash.add(top);
  return hash.finish();
}

std::uint64_t blocks_of(std::uint64_t rows) { return std::max<std::uint64_t>(1, (rows + block_rows - 1) / block_rows); }

name_key key_of(std::string_view name) {
  name_key key;
  std::copy_n(receipt_row_of(name, {}).bytes.begin(), key.size(), key.begin());
  return key;
}

name_key key_of(const receipt_row& row) {
  name_key key;
  std::copy_n(row.bytes.begin(), key.size(), key.begin());
  return key;
}

// The node above the leaves of [begin, end).
//   known     of [first, last): calls leaf(i) for these, from left to right
//   sibling   called for what lies besides these, each the largest subtree that has none of them
template <class Leaf, class Sibling>
sha256 node_of(std::uint64_t begin, std::uint64_t end, std::uint64_t first, std::uint64_t last, Leaf& leaf,
               Sibling& sibling) {
  if (end <= first || last <= begin) return sibling(begin, end);
  if (end - begin == 1) return leaf(begin);
  const std::uint64_t middle = begin + std::bit_floor(end - begin - 1);
  const sha256 left = node_of(begin, middle, first, last, leaf, sibling);
  return hash_node(left, node_of(middle, end, first, last, leaf, sibling));
}

/// The nodes over all leaves.
class receipt_nodes {
 public:
  explicit receipt_nodes(std::vector<sha256> leaves) : count_(leaves.size()) {
    levels_.push_back(std::move(leaves));
    while (levels_.back().size() > 1) {
      const std::vector<sha256>& below = levels_.back();
      std::vector<sha256> level;
      level.reserve(below.size() / 2);
      for (std::size_t i = 0; i + 1 < below.size(); i += 2) level.push_back(hash_node(below[i], below[i + 1]));
      levels_.push_back(std::move(level));
    }
  }

  [[nodiscard]] std::uint64_t leaves() const noexcept { return count_; }
  /// The node over [begin, end), a subtree.
  [[nodiscard]] sha256 over(std::uint64_t begin, std::uint64_t end) const {
    const std::uint64_t size = end - begin;
    if (std::has_single_bit(size)) {
      const auto level = static_cast<std::size_t>(std::countr_zero(size));
      return levels_[level][begin >> level];
    }
    const std::uint64_t middle = begin + std::bit_floor(size);
    return hash_node(over(begin, middle), over(middle, end));
  }

 private:
  std::uint64_t count_;
  std::vector<std::vector<sha256>> levels_;  // of leaves 1, 2, 4, ...: the whole ones
};

/// A receipt's rows, block by block in their order.
class sorted_blocks {
 public:
  sorted_blocks(const std::string& path, std::size_t bytes_max)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)), bytes_max_(bytes_max) {
    if (file_.get() < 0) throw io::explain_open(errno, path_);
    struct stat status{};
    if (::fstat(file_.get(), &status) != 0) throw io::explain_open(errno, path_);
    if (!S_ISREG(status.st_mode)) throw error(errc::format, str_cat(path_, ": is no regular file; give a receipt"));
    head_ = read_receipt_head(file_.get(), path_);
    const auto bytes = static_cast<std::uint64_t>(status.st_size) - receipt_head::bytes;
    // What is left of a row is of one that a killed process had begun.
    rows_ = bytes / sizeof(receipt_row);
    if (rows_ < head_.rows) refuse(str_cat("has ", rows_, " rows of ", head_.rows, ": it was cut"));
    if (head_.ended() && bytes != head_.rows * sizeof(receipt_row)) {
      refuse(str_cat("has more than the ", head_.rows, " rows with which its run ended"));
    }
  }

  [[nodiscard]] const receipt_head& head() const noexcept { return head_; }
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }

  ///   take   gets each block
  void for_each(const std::function<void(std::span<const receipt_row>)>& take) {
    // Keys are hashes: parts of their range have equally many, unless one name has most of the rows.
    const std::uint64_t parts = rows_ * sizeof(receipt_row) / std::max<std::size_t>(bytes_max_, 1) + 1;
    const std::uint64_t in_part = rows_ / parts;
    std::vector<receipt_row> sorted;
    sorted.reserve(std::min(rows_, in_part + in_part / 16 + 2 * block_rows));
    for (std::uint64_t part = 0; part < parts; ++part) {
      read(part, parts, sorted);
      std::sort(sorted.begin() + static_cast<std::ptrdiff_t>(left_over_), sorted.end());
      const std::size_t whole = part + 1 == parts ? sorted.size() : sorted.size() / block_rows * block_rows;
      for (std::size_t at = 0; at < whole; at += block_rows) {
        take(std::span(sorted).subspan(at, std::min<std::size_t>(block_rows, whole - at)));
      }
      sorted.erase(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(whole));
      left_over_ = sorted.size();
    }
    if (rows_ == 0) take({});
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw error(errc::format, str_cat(path_, ": ", why, "; take the file as its run has left it"));
  }

  // Appends the rows of one part of the keys' range; the first time the sum of all is checked.
  void read(std::uint64_t part, std::uint64_t parts, std::vector<receipt_row>& into) {
    std::vector<receipt_row> some(std::size_t{1} << 16U);
    hasher sum;
    for (std::uint64_t row = 0; row < rows_; row += some.size()) {
      some.resize(std::min<std::uint64_t>(some.size(), rows_ - row));
      read_rows(row, std::as_writable_bytes(std::span(some)));
      const std::uint64_t counted = part == 0 && row < head_.rows ? head_.rows - row : 0;
      for (std::size_t i = 0; i < some.size(); ++i) {
        if (i < counted) sum.add(digest{some[i].bytes});
        if (parts == 1 || part_of(some[i], parts) == part) into.push_back(some[i]);
      }
    }
    if (part == 0 && sum.finish() != head_.sum) refuse("its checksum does not match: it is damaged, or was changed");
  }

  static std::uint64_t part_of(const receipt_row& row, std::uint64_t parts) {
    std::uint32_t first = 0;
    for (std::size_t i = 0; i < sizeof first; ++i) first = first << 8U | row.bytes[i];
    return first * parts >> 32U;
  }

  void read_rows(std::uint64_t row, std::span<std::byte> into) const {
    const std::uint64_t at = receipt_head::bytes + row * sizeof(receipt_row);
    const auto [have, failure] = read_at(file_.get(), at, into);
    if (failure != 0) {
      throw io::explain_read({.failure = failure, .path = path_, .offset = at + have, .bytes = into.size() - have});
    }
    if (have != into.size()) refuse("became shorter while it was read");
  }

  const std::string path_;
  const descriptor file_;
  const std::size_t bytes_max_;
  receipt_head head_;
  std::uint64_t rows_ = 0;
  std::size_t left_over_ = 0;  // of the parts before: sorted, and less than all that follow
};

/// Takes the blocks one after the other, and keeps what they have and prove of names.
class name_finder {
 public:
  name_finder(std::span<const std::string> names, receipt_proofs wanted)
      : rows_(names.size()), proofs_(wanted == receipt_proofs::none ? 0 : names.size()) {
    for (std::size_t i = 0; i < names.size(); ++i) wanted_.emplace_back(key_of(names[i]), i);
    std::sort(wanted_.begin(), wanted_.end());
  }

  void take(std::span<const receipt_row> block) {
    if (!block.empty() && number_ != 0) keep(key_of(block.front()));
    held_.assign(block.begin(), block.end());
    ++number_;
  }
  void finish(sealed_receipt& into) {
    keep(std::nullopt);
    into.rows = std::move(rows_);
    into.proofs = std::move(proofs_);
  }

 private:
  // A block is needed by names that lie between the last row before it and the first one behind it, these included.
  void keep(std::optional<name_key> next) {
    const auto less = [](const auto& one, const name_key& key) { return one.first < key; };
    const auto more = [](const name_key& key, const auto& one) { return key < one.first; };
    auto first = wanted_.begin();
    auto last = wanted_.end();
    if (before_) first = std::lower_bound(first, last, *before_, less);
    if (next) last = std::upper_bound(first, last, *next, more);
    for (; first != last; ++first) {
      for (const receipt_row& row : held_) {
        if (key_of(row) == first->first) rows_[first->second].push_back(row);
      }
      if (proofs_.empty()) continue;
      receipt_proof& proof = proofs_[first->second];
      if (proof.rows.empty()) proof.first_block = number_ - 1;
      proof.rows.insert(proof.rows.end(), held_.begin(), held_.end());
    }
    if (!held_.empty()) before_ = key_of(held_.back());
  }

  std::vector<std::pair<name_key, std::size_t>> wanted_;
  std::vector<std::vector<receipt_row>> rows_;
  std::vector<receipt_proof> proofs_;  // empty: not wanted
  std::vector<receipt_row> held_;
  std::optional<name_key> before_;  // the last row before `held_`
  std::uint64_t number_ = 0;        // of blocks so far
};

[[noreturn]] void refuse_proof(std::string_view why) {
  throw error(errc::corrupt, str_cat("the proof does not hold: ", why));
}

}  // namespace

sealed_receipt seal_receipt(const std::string& path, std::span<const std::string> names, receipt_proofs wanted,
                            std::size_t bytes_max) {
  sorted_blocks blocks(path, bytes_max);
  sealed_receipt sealed;
  sealed.of = {.of = blocks.head().of, .rows = blocks.rows(), .ended = blocks.head().ended()};
  std::vector<sha256> leaves;
  leaves.reserve(blocks_of(blocks.rows()));
  name_finder finder(names, wanted);
  blocks.for_each([&](std::span<const receipt_row> block) {
    leaves.push_back(hash_block(block));
    finder.take(block);
  });
  finder.finish(sealed);

  const receipt_nodes nodes(std::move(leaves));
  sealed.root = hash_root(sealed.of, nodes.over(0, nodes.leaves()));
  const auto leaf = [&](std::uint64_t number) { return nodes.over(number, number + 1); };
  for (receipt_proof& proof : sealed.proofs) {
    const auto sibling = [&](std::uint64_t begin, std::uint64_t end) {
      return proof.siblings.emplace_back(nodes.over(begin, end));
    };
    static_cast<void>(
        node_of(0, nodes.leaves(), proof.first_block, proof.first_block + blocks_of(proof.rows.size()), leaf, sibling));
  }
  return sealed;
}

proved_rows prove(const receipt_statement& of, std::string_view name, const receipt_proof& by) {
  const std::span<const receipt_row> rows = by.rows;
  if (of.rows > receipt_rows_max) refuse_proof("no receipt has as many rows as it says");
  const std::uint64_t blocks = blocks_of(of.rows);
  const std::uint64_t last_block = by.first_block + blocks_of(rows.size());
  if (by.first_block >= blocks || last_block > blocks || rows.size() > of.rows ||
      rows.size() != std::min(of.rows, last_block * block_rows) - by.first_block * block_rows) {
    refuse_proof("its rows are no whole blocks of so many rows");
  }
  if (!std::is_sorted(rows.begin(), rows.end())) refuse_proof("its rows are not sorted");

  std::size_t next = 0;
  const auto leaf = [&](std::uint64_t number) {
    const std::uint64_t at = (number - by.first_block) * block_rows;
    return hash_block(rows.subspan(at, std::min<std::uint64_t>(block_rows, rows.size() - at)));
  };
  const auto sibling = [&](std::uint64_t, std::uint64_t) {
    if (next == by.siblings.size()) refuse_proof("hashes are missing");
    return by.siblings[next++];
  };
  proved_rows proved;
  proved.root = hash_root(of, node_of(0, blocks, by.first_block, last_block, leaf, sibling));
  if (next != by.siblings.size()) refuse_proof("it has hashes that nothing needs");

  const name_key key = key_of(name);
  const bool from_before = by.first_block == 0 || key_of(rows.front()) < key;
  const bool to_behind = last_block == blocks || key < key_of(rows.back());
  if (!from_before || !to_behind) refuse_proof("it has not all rows that this name could have");
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(proved.rows),
               [&](const receipt_row& each) { return key_of(each) == key; });
  return proved;
}

}  // namespace leat::stages

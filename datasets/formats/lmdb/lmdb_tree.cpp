#include "datasets/formats/lmdb/lmdb_tree.hpp"

#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "datasets/files/cursor.hpp"
#include "datasets/files/parallel.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::uint32_t magic = 0xBEEFC0DE;
constexpr std::uint64_t header_bytes = 16;  // of each page
constexpr std::uint64_t magic_at = header_bytes;
constexpr std::uint64_t newer_magic_at =
    header_bytes + 8;  // of 1.0, whose pages have the number of their transaction as well
constexpr std::uint64_t no_page = ~std::uint64_t{0};
constexpr std::uint16_t database_has_duplicates = 4;
constexpr std::uint64_t database_bytes = 48;

enum page_flag : std::uint16_t {
  is_branch = 1,
  is_leaf = 2,
  is_overflow = 4,
  is_meta = 8,
  is_leaf_of_duplicates = 0x20
};
enum node_flag : std::uint16_t { lies_in_overflow = 1, is_database = 2, has_duplicates = 4 };

/// The root of a tree.
struct database_record {
  std::uint32_t page_bytes = 0;  // of the list of free pages
  std::uint16_t flags = 0;
  std::uint16_t depth = 0;
  std::uint64_t entries = 0;
  std::uint64_t root = no_page;
};

database_record read_database(cursor& at) {
  database_record found;
  found.page_bytes = at.number<std::uint32_t>();
  found.flags = at.number<std::uint16_t>();
  found.depth = at.number<std::uint16_t>();
  at.skip(3 * sizeof(std::uint64_t));  // pages of each kind
  found.entries = at.number<std::uint64_t>();
  found.root = at.number<std::uint64_t>();
  return found;
}

struct meta_page {
  std::uint64_t page_bytes = 0;
  std::uint64_t last_page = 0;
  std::uint64_t transaction = 0;
  database_record main;
};

[[noreturn]] void refuse_version(const file_bytes& file, std::uint32_t version) {
  throw error(errc::unsupported, str_cat(file.path(), ": LMDB data of version ", version,
                                         ", which liblmdb 0.9 does not write; leat reads version 1: "
                                         "`mdb_dump` of the newer LMDB and `mdb_load` of 0.9 write it anew"));
}

std::optional<meta_page> read_meta(const file_bytes& file, std::uint64_t offset) {
  constexpr std::uint64_t meta_bytes = header_bytes + 24 + 2 * database_bytes + 16;
  const std::vector<std::byte> bytes = file.read(offset, meta_bytes);
  if (bytes.size() < meta_bytes) return std::nullopt;
  cursor at(file.path(), bytes, offset);
  at.skip(10);
  const auto flags = at.number<std::uint16_t>();
  at.skip(4);
  if (at.number<std::uint32_t>() != magic || (flags & is_meta) == 0) return std::nullopt;
  const auto version = at.number<std::uint32_t>();
  if (version != 1) refuse_version(file, version);
  at.skip(2 * sizeof(std::uint64_t));  // address and size of the map
  meta_page found;
  found.page_bytes = read_database(at).page_bytes;
  found.main = read_database(at);
  found.last_page = at.number<std::uint64_t>();
  found.transaction = at.number<std::uint64_t>();
  return found;
}

bool has_magic(std::span<const std::byte> start, std::uint64_t at) noexcept {
  return start.size() >= at + sizeof magic && number_at<std::uint32_t>(start, at) == magic;
}

meta_page newest_meta(const file_bytes& file) {
  const std::vector<std::byte> start = file.read(0, newer_magic_at + 8);
  if (start.size() == newer_magic_at + 8 && has_magic(start, newer_magic_at) && !has_magic(start, magic_at)) {
    refuse_version(file, number_at<std::uint32_t>(start, newer_magic_at + 4));
  }
  const std::optional<meta_page> first = read_meta(file, 0);
  if (!first) fail_at(file.path(), 0, "no LMDB database: it has no meta page");
  constexpr std::uint64_t page_bytes_least = 256;
  constexpr std::uint64_t page_bytes_most = std::uint64_t{1} << 16;
  if (first->page_bytes < page_bytes_least || first->page_bytes > page_bytes_most ||
      !std::has_single_bit(first->page_bytes)) {
    fail_at(file.path(), 0, str_cat("pages of ", first->page_bytes, " bytes"));
  }
  const std::optional<meta_page> second = read_meta(file, first->page_bytes);
  const meta_page& newest = second && second->transaction > first->transaction ? *second : *first;
  meta_page found = newest;
  found.page_bytes = first->page_bytes;
  const std::uint64_t pages = file.size() / found.page_bytes;
  if (found.main.root != no_page && found.last_page >= pages) {
    fail_at(file.path(), 0, str_cat("page ", found.last_page, " is its last one, and the file has ", pages));
  }
  return found;
}

/// Entries of some leaves.
struct leaf_entries {
  std::vector<value_place> values;
  std::vector<lmdb_contents::key_place> keys;
  std::string key_bytes;
  std::vector<std::pair<std::string, database_record>> databases;
};

class tree_walker {
 public:
  tree_walker(const std::function<std::unique_ptr<file_bytes>()>& open, const meta_page& meta, unsigned threads)
      : open_(open), file_(open()), meta_(meta), threads_(threads) {}

  leaf_entries read(const database_record& tree) {
    leaf_entries all;
    if (tree.root == no_page) return all;
    constexpr std::uint16_t depth_max = 32;
    if (tree.depth == 0 || tree.depth > depth_max) fail(0, str_cat("a tree of depth ", tree.depth));
    if ((tree.flags & database_has_duplicates) != 0) {
      throw error(errc::unsupported,
                  str_cat(file_->path(),
                          ": a database with several values for a key (DUPSORT), which leat does not read; "
                          "copy it to one whose keys are different"));
    }
    std::vector<std::uint64_t> level{tree.root};
    for (std::uint16_t depth = 1; depth < tree.depth; ++depth) level = children_of(level);
    count(level);
    const std::vector<run> runs = runs_of(level);
    std::vector<leaf_entries> found(runs.size());
    in_parallel(runs, [&](std::size_t i, cursor page, std::uint64_t number) { read_leaf(page, number, found[i]); });
    for (leaf_entries& each : found) {
      all.values.insert(all.values.end(), each.values.begin(), each.values.end());
      all.keys.insert(all.keys.end(), each.keys.begin(), each.keys.end());
      all.key_bytes += each.key_bytes;
      for (auto& database : each.databases) all.databases.push_back(std::move(database));
      each = {};
    }
    if (all.values.size() + all.databases.size() != tree.entries) {
      fail(tree.root * meta_.page_bytes,
           str_cat("a tree of ", tree.entries, " entries has ", all.values.size() + all.databases.size()));
    }
    return all;
  }

 private:
  // Neighbouring pages.
  struct run {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };

  [[noreturn]] void fail(std::uint64_t offset, std::string_view what) const { fail_at(file_->path(), offset, what); }

  // A tree has no more pages than its file; one that goes in a circle would visit more.
  void count(const std::vector<std::uint64_t>& level) {
    seen_ += level.size();
    if (seen_ > meta_.last_page + 1) fail(level.front() * meta_.page_bytes, "a tree that goes in a circle");
    for (const std::uint64_t page : level) {
      if (page > meta_.last_page) fail(0, str_cat("page ", page, ", behind the last one, ", meta_.last_page));
    }
  }

  static std::vector<run> runs_of(const std::vector<std::uint64_t>& level) {
    constexpr std::uint64_t pages_max = 64;
    std::vector<run> runs;
    for (const std::uint64_t page : level) {
      if (!runs.empty() && runs.back().first + runs.back().count == page && runs.back().count < pages_max) {
        ++runs.back().count;
      } else {
        runs.push_back({page, 1});
      }
    }
    return runs;
  }

  // Calls look(number of the run, page, its number) for each page of each run.
  template <class Look>
  void in_parallel(const std::vector<run>& runs, const Look& look) const {
    constexpr std::size_t together = 64;
    for_each_parallel((runs.size() + together - 1) / together, threads_, [&](std::size_t item) {
      const std::unique_ptr<file_bytes> file = open_();
      for (std::size_t i = item * together; i < std::min(runs.size(), (item + 1) * together); ++i) {
        const std::uint64_t offset = runs[i].first * meta_.page_bytes;
        const std::vector<std::byte> bytes = file->read(offset, runs[i].count * meta_.page_bytes);
        if (bytes.size() != runs[i].count * meta_.page_bytes) fail(offset, "the file ends within a page");
        for (std::uint64_t k = 0; k < runs[i].count; ++k) {
          const std::uint64_t at = k * meta_.page_bytes;
          look(i, cursor(file_->path(), std::span(bytes).subspan(at, meta_.page_bytes), offset + at),
               runs[i].first + k);
        }
      }
    });
  }

  // The nodes of a page, by their offsets in it.
  [[nodiscard]] std::vector<std::uint16_t> nodes_of(cursor page, std::uint64_t number, page_flag kind) const {
    const std::uint64_t offset = page.offset();
    if (page.number<std::uint64_t>() != number) fail(offset, str_cat("page ", number, " carries another number"));
    page.skip(2);
    const auto flags = page.number<std::uint16_t>();
    if ((flags & kind) == 0 || (flags & (is_overflow | is_meta | is_leaf_of_duplicates)) != 0) {
      fail(offset, str_cat("a page of another kind than its place in the tree: flags ", flags));
    }
    const auto lower = page.number<std::uint16_t>();
    page.skip(2);
    if (lower < header_bytes || lower > meta_.page_bytes) fail(offset, "a page whose nodes reach beyond it");
    std::vector<std::uint16_t> nodes((lower - header_bytes) / sizeof(std::uint16_t));
    for (std::uint16_t& each : nodes) {
      each = page.number<std::uint16_t>();
      if (each < lower || each >= meta_.page_bytes) fail(offset, "a node outside its page");
    }
    return nodes;
  }

  std::vector<std::uint64_t> children_of(const std::vector<std::uint64_t>& level) {
    count(level);
    const std::vector<run> runs = runs_of(level);
    std::vector<std::vector<std::uint64_t>> found(runs.size());
    in_parallel(runs, [&](std::size_t i, cursor page, std::uint64_t number) {
      for (const std::uint16_t node : nodes_of(page, number, is_branch)) {
        cursor at = page;
        at.skip(node);
        const std::uint64_t low = at.number<std::uint16_t>();
        const std::uint64_t middle = at.number<std::uint16_t>();
        const std::uint64_t high = at.number<std::uint16_t>();
        found[i].push_back(low | middle << 16 | high << 32);
      }
    });
    std::vector<std::uint64_t> children;
    for (const std::vector<std::uint64_t>& each : found) children.insert(children.end(), each.begin(), each.end());
    if (children.empty()) fail(level.front() * meta_.page_bytes, "branches that lead nowhere");
    return children;
  }

  void read_leaf(cursor page, std::uint64_t number, leaf_entries& into) const {
    const std::uint64_t begin = page.offset();
    std::uint64_t node_bytes = 0;
    for (const std::uint16_t node : nodes_of(page, number, is_leaf)) {
      cursor at = page;
      at.skip(node);
      const std::uint64_t low = at.number<std::uint16_t>();
      const std::uint64_t high = at.number<std::uint16_t>();
      const std::uint64_t bytes = low | high << 16;
      const auto flags = at.number<std::uint16_t>();
      const auto key_bytes = at.number<std::uint16_t>();
      const std::uint64_t key_offset = at.offset();
      const std::string_view key = at.text(key_bytes);
      node_bytes += key_bytes;
      if (node_bytes > meta_.page_bytes) fail(begin, "keys that lie over one another");
      if ((flags & has_duplicates) != 0) {
        throw error(errc::unsupported,
                    str_cat(file_->path(),
                            ": a key with several values (DUPSORT), which leat does not read; copy it to a "
                            "database whose keys are different"));
      }
      if ((flags & is_database) != 0) {
        into.databases.emplace_back(std::string(key), read_database(at));
        continue;
      }
      value_place value{.offset = at.offset(), .bytes = bytes};
      if ((flags & lies_in_overflow) != 0) {
        const auto first = at.number<std::uint64_t>();
        if (first > meta_.last_page || header_bytes + bytes > (meta_.last_page + 1 - first) * meta_.page_bytes) {
          fail(begin,
               str_cat("a value of ", bytes, " bytes on page ", first, ", behind the last one, ", meta_.last_page));
        }
        value.offset = first * meta_.page_bytes + header_bytes;
      } else {
        at.skip(bytes);
      }
      into.values.push_back(value);
      into.keys.push_back(key_offset | std::uint64_t{key_bytes} << 48);
      into.key_bytes += key;
    }
  }

  const std::function<std::unique_ptr<file_bytes>()>& open_;
  const std::unique_ptr<file_bytes> file_;  // for its name
  const meta_page& meta_;
  unsigned threads_;
  std::uint64_t seen_ = 0;
};

}  // namespace

bool is_lmdb(std::span<const std::byte> start) noexcept {
  return has_magic(start, magic_at) || has_magic(start, newer_magic_at);
}

std::uint64_t newest_transaction(const file_bytes& file) { return newest_meta(file).transaction; }

lmdb_contents read_lmdb(const std::function<std::unique_ptr<file_bytes>()>& open, const std::string& database,
                        unsigned threads) {
  const std::unique_ptr<file_bytes> file = open();
  const meta_page meta = newest_meta(*file);
  lmdb_contents found;
  found.transaction = meta.transaction;
  tree_walker walker(open, meta, threads);
  leaf_entries entries = walker.read(meta.main);
  for (const auto& [name, record] : entries.databases) found.databases.push_back(name);
  std::sort(found.databases.begin(), found.databases.end());
  const bool is_only_one = entries.values.empty() && entries.databases.size() == 1;
  if (!database.empty() || is_only_one) {
    const auto named = std::find_if(entries.databases.begin(), entries.databases.end(), [&](const auto& each) {
      return is_only_one ? database.empty() || each.first == database : each.first == database;
    });
    if (named == entries.databases.end()) {
      std::string names;
      for (const std::string& each : found.databases) str_append(names, names.empty() ? "" : ", ", each);
      throw error(errc::not_found, str_cat(file->path(), ": it has no database '", database, "'",
                                           names.empty() ? std::string(": only the main one, which has no name")
                                                         : str_cat("; it has ", names),
                                           did_you_mean(database, found.databases)));
    }
    const database_record record = named->second;
    entries = walker.read(record);
    if (!entries.databases.empty())
      fail_at(file->path(), record.root * meta.page_bytes, "databases within a named database");
    found.databases.clear();
  }
  found.values = std::move(entries.values);
  found.keys = std::move(entries.keys);
  found.key_bytes = std::move(entries.key_bytes);
  return found;
}

}  // namespace leat::datasets

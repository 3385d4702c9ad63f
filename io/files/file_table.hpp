// The files of a source: paths and sizes of a million loose files, or of three shards, in one compact block.
#pragma once

#include "base/hash_map.hpp"

#include <leat/digest.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::io {

/// Paths and sizes by file number. A file costs its name and 8 bytes; a directory is written once, and costs 8 bytes
/// more for each run of files added to it, so add files directory by directory.
///
/// Thread: built by one; const members may be called by any number of threads afterwards.
class file_table {
 public:
  static constexpr std::uint64_t unknown_size = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint32_t no_directory = std::numeric_limits<std::uint32_t>::max();

  /// A file's name begins there among all names; its size, or that it is unknown or kept apart.
  struct entry {
    std::uint32_t name_begin;
    std::uint32_t size;
  };
  /// From this file on they lie in this directory.
  struct run {
    std::uint32_t first_file;
    std::uint32_t directory;
  };
  struct large_size {
    std::uint64_t file;
    std::uint64_t bytes;
  };
  /// What a table is made of, but for the directories: to be kept somewhere else.
  struct blocks {
    std::span<const entry> entries;
    std::span<const char> names;
    std::span<const run> runs;
    std::span<const large_size> large_sizes;
  };

  file_table() = default;
  /// Of blocks that lie elsewhere, in an index that is mapped; nothing is added to it.
  ///   owner    keeps them
  ///   throws   error{errc::format}: blocks that do not belong together
  file_table(std::shared_ptr<const void> owner, const blocks& kept, std::vector<std::string> directories);

  /// Whether it is of such blocks: sizes that an earlier run has seen.
  [[nodiscard]] bool is_kept() const noexcept { return owner_ != nullptr; }

  [[nodiscard]] blocks parts() const noexcept { return owner_ ? kept_ : blocks{entries_, names_, runs_, large_sizes_}; }

  /// Returns the file's number: 0, 1, 2 ... Throws error{errc::limit} past 2^32 - 2 files or 4 GiB of names.
  std::uint32_t add(std::string_view path, std::uint64_t size_bytes = unknown_size);
  /// The same, the path in two parts: directory + "/" + name; an empty directory is the working one.
  std::uint32_t add(std::string_view directory, std::string_view name, std::uint64_t size_bytes);
  /// Appends all of `other`; returns the number that its file 0 has here.
  std::uint32_t append(const file_table& other);

  /// Gives back what building needed and reading does not.
  void finish();

  [[nodiscard]] std::uint32_t files() const noexcept { return static_cast<std::uint32_t>(parts().entries.size()); }
  [[nodiscard]] std::string path(std::uint32_t file) const;
  /// Writes the path over `out`, whose memory is used again.
  void path(std::uint32_t file, std::string& out) const;
  /// The last part of the path.
  [[nodiscard]] std::string_view name(std::uint32_t file) const noexcept;
  /// As it was when the table was made; unknown_size where nobody looked.
  [[nodiscard]] std::uint64_t size_bytes(std::uint32_t file) const noexcept;

  /// Directories are numbered too: what is learned about one file's file system holds for its neighbours.
  [[nodiscard]] std::uint32_t directories() const noexcept { return static_cast<std::uint32_t>(directories_.size()); }
  [[nodiscard]] std::uint32_t directory(std::uint32_t file) const noexcept;
  [[nodiscard]] const std::string& directory_path(std::uint32_t directory) const noexcept {
    return directories_[directory];
  }

  /// Of names and sizes, and of folders below the one that all share: the same wherever the files are mounted. A few milliseconds for
  /// a million files.
  [[nodiscard]] leat::digest digest() const;

  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  // Sizes of 4 GiB - 2 and more are kept apart, in file order.
  static constexpr std::uint32_t size_unknown = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t size_apart = size_unknown - 1;

  std::vector<entry> entries_;
  std::vector<char> names_;
  std::vector<run> runs_;
  std::vector<std::string> directories_;
  std::vector<large_size> large_sizes_;
  std::shared_ptr<const void> owner_;  // of kept_, which then takes the place of those above
  blocks kept_;
  hash_map<std::string, std::uint32_t> directory_numbers_;  // while building
};

}  // namespace leat::io

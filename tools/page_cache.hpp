// What the page cache has of files that are measured: it is emptied of them, and looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat::tools {

/// The pages of some files in the page cache. The files are opened one by one, and those that cannot be are left out.
class page_cache_of {
 public:
  explicit page_cache_of(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  /// Writes out what is dirty: such pages cannot be dropped.
  void write_out() const;
  /// Takes all pages out. Memory file systems keep theirs, and so do pages that are being read.
  void drop() const;
  /// How many bytes of the files are in it: mincore(2). Nothing where the kernel does not tell this user.
  [[nodiscard]] std::optional<std::uint64_t> bytes() const;

 private:
  std::vector<std::string> paths_;
};

/// Bytes that this process has made drives read, by /proc/self/io; nothing where there is no such file.
[[nodiscard]] std::optional<std::uint64_t> bytes_from_drives();

/// What is known of a run that read through the page cache.
///   kept       of the files, by mincore(2), after they were dropped
///   drive      bytes that came from drives; nothing where the kernel does not count them for this file system
struct cached_run {
  std::uint64_t bytes = 0;
  std::uint64_t file_bytes = 0;
  std::optional<std::uint64_t> kept;
  std::optional<std::uint64_t> drive;
};

/// Why the figures of such a run are memory's and not the drive's; empty: they are the drive's.
[[nodiscard]] std::string why_warm(const cached_run& run);

/// Bytes of a regular file that lie on its drive: what is left are holes. Nothing where the file system does not tell.
[[nodiscard]] std::optional<std::uint64_t> bytes_on_drive(const std::string& path);

}  // namespace leat::tools

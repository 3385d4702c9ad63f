// The files of a dataset as they were when it was opened. They are compared with this again and again while it is read.
#pragma once

#include "datasets/model/staleness.hpp"
#include "io/files/file_table.hpp"
#include "io/files/source.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leat::datasets {

/// Size and time of modification, or whatever else a source calls a version. Thread: const members any, several at once.
class file_staleness final : public staleness_facet {
 public:
  /// A file of this version is never checked.
  static constexpr std::uint64_t unknown = 0;

  ///   files      with their sizes
  ///   source     of the same files; null where they lie on a disk, and are looked at by their paths
  ///   versions   by number of the file
  file_staleness(std::shared_ptr<const io::file_table> files, std::shared_ptr<const io::source_description> source,
                 std::vector<std::uint64_t> versions);

  /// A few files of a disk are checked with each batch (a microsecond each); otherwise files are checked once an epoch.
  staleness_check staleness_checks() const noexcept override { return rate_; }
  /// One line about the first file that has changed. May block on the disk, or on the source, to which it connects anew.
  std::optional<std::string> changed(staleness_check at) const override;

  [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return versions_.capacity() * sizeof versions_[0]; }

 private:
  std::shared_ptr<const io::file_table> files_;
  std::shared_ptr<const io::source_description> source_;
  std::vector<std::uint64_t> versions_;
  staleness_check rate_;
};

/// The version of a file of a disk; unknown where it cannot be looked at.
[[nodiscard]] std::uint64_t version_on_disk(const std::string& path) noexcept;

}  // namespace leat::datasets

// The files that a format of headers and rows is opened from: on a disk, or of any other source. A format gets names and bytes
// here, and makes no system calls itself.
#pragma once

#include "datasets/files/file_bytes.hpp"
#include "io/files/file_table.hpp"
#include "io/files/source.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

class file_staleness;

/// A file that samples lie in, as it was when it was opened.
///   version   as file_bytes::version(); 0: changes are not noticed
struct sized_file {
  std::string name;
  std::uint64_t size_bytes = 0;
  std::uint64_t version = 0;
};

/// Such files as a dataset holds them.
struct placed_files {
  std::shared_ptr<const io::file_table> table;  ///< names and sizes, by the source's numbers
  std::shared_ptr<const io::source_description> source;
  std::vector<std::uint32_t> numbers;           ///< of each file, in the source
  std::shared_ptr<const file_staleness> watch;  ///< of those with a version; null where there are none
};

class input_files {
 public:
  input_files() = default;
  input_files(const input_files&) = delete;
  input_files& operator=(const input_files&) = delete;
  virtual ~input_files() = default;

  /// Of the files to open; a description or an index beside them need not be among these.
  [[nodiscard]] virtual const std::vector<std::string>& names() const noexcept = 0;
  /// Whether names() are all that there are.
  [[nodiscard]] virtual bool lists() const noexcept { return true; }
  [[nodiscard]] virtual bool has(const std::string& name) const = 0;
  /// Size and version of a file, if it is there.
  [[nodiscard]] virtual std::optional<sized_file> find(const std::string& name) const;
  /// Says which files has(), find() and open() will be asked for: where each of them is a request, they are made together.
  virtual void expect(std::span<const std::string> /*names*/) const {}
  /// Says which of such names are whole addresses, as they are asked for; others are names of files in the folder. Before expect().
  virtual void expect_addresses(std::span<const std::string> /*names*/) const {}
  /// Throws if there is no such file, or it cannot be read. This outlives the result. Thread: any, several at once.
  [[nodiscard]] virtual std::unique_ptr<file_bytes> open(const std::string& name) const = 0;
  [[nodiscard]] virtual placed_files place(std::span<const sized_file> files) const = 0;
};

/// Files of a disk, by their paths.
[[nodiscard]] std::unique_ptr<input_files> files_on_disk(std::vector<std::string> paths);
/// Patterns of paths, as a caller gives them.
///   throws   error{errc::not_found} for a pattern without a file
[[nodiscard]] std::unique_ptr<input_files> files_on_disk_of(std::span<const std::string> patterns);

/// Files of a source. To read headers it is connected to a loop, once for each thread that reads.
///   names   of the source's files; the empty list is all of them
[[nodiscard]] std::unique_ptr<input_files> files_of_source(std::shared_ptr<const io::source_description> source,
                                                           std::vector<std::string> names = {});

}  // namespace leat::datasets

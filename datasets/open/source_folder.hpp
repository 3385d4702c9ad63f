// A folder that a source names, on a disk, listed at an address or asked for at one: what it is is decided of all of them in the same way.
#pragma once

#include "datasets/files/input_files.hpp"
#include "io/remote/describe_objects.hpp"

#include <leat/remote.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

class listed_folder;

class source_folder {
 public:
  source_folder() = default;
  source_folder(const source_folder&) = delete;
  source_folder& operator=(const source_folder&) = delete;
  virtual ~source_folder() = default;

  /// Of one on a disk as it was given, else without a slash at its end.
  [[nodiscard]] virtual const std::string& path() const noexcept = 0;
  /// Whether it has a file of this name directly in it.
  [[nodiscard]] virtual bool has(std::string_view name) const = 0;
  /// Whether there is such a folder below it, by its whole path.
  [[nodiscard]] virtual bool has_folder(const std::string& path) const = 0;
  /// Paths of those directly in it whose names end so, sorted; none where nobody can say which files it has.
  [[nodiscard]] virtual std::vector<std::string> files_in(std::string_view ending) const = 0;
  /// Paths of the folders directly in it, sorted; likewise.
  [[nodiscard]] virtual std::vector<std::string> folders_in() const { return {}; }
  /// Paths of all files below it, sorted; likewise.
  [[nodiscard]] virtual std::vector<std::string> files_below() const { return {}; }
  /// The folder of this name in it, which is there.
  [[nodiscard]] virtual std::unique_ptr<source_folder> below(std::string_view name) const = 0;
  /// Of one at an address that was listed.
  [[nodiscard]] virtual const listed_folder* listing() const noexcept { return nullptr; }
  /// Whether files_in() tells.
  [[nodiscard]] virtual bool lists() const noexcept { return true; }
  /// Its files, and those below it. This outlives the result.
  [[nodiscard]] virtual const input_files& files() const = 0;
  /// A table of its files, and what it may name.
  [[nodiscard]] virtual std::unique_ptr<input_files> files_of_table(const std::string& path) const = 0;
  /// A file at an address, by its path; of a disk with nothing but that.
  [[nodiscard]] virtual io::named_object object(const std::string& path) const = 0;
};

[[nodiscard]] std::unique_ptr<source_folder> folder_on_disk(const std::string& path);
[[nodiscard]] std::unique_ptr<source_folder> folder_of_listing(listed_folder listed, const remote_options& options);
/// A folder whose server lists nothing. What tells what a folder is, is asked for by name at once, with ten requests.
[[nodiscard]] std::unique_ptr<source_folder> folder_asked_for(const std::string& address,
                                                              const remote_options& options);

/// Of s3:// the listed one, else one that is asked for. `address` with or without a slash at its end.
[[nodiscard]] std::unique_ptr<source_folder> folder_at(const std::string& address, const remote_options& options);

/// What a folder is, and which of its files are opened.
struct folder_content {
  enum class kind : std::uint8_t {
    zarr,
    lmdb,      ///< files: data.mdb
    mds,       ///< what its index.json lists
    arrow,     ///< files: those of a saved set, in its order
    table,     ///< files: metadata.jsonl or metadata.csv, which names the pictures
    shards,    ///< files: *.tar
    pictures,  ///< anything else, with or without class folders
    unknown    ///< nothing that has a known name, where nothing is listed
  };
  kind what = kind::pictures;
  std::vector<std::string> files = {};
};

///   throws   as files_of_saved_set(); what the folder's files throw where they cannot be asked for
[[nodiscard]] folder_content content_of_folder(const source_folder& folder);

}  // namespace leat::datasets

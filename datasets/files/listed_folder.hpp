// A folder at an address whose objects were listed, all of them.
#pragma once

#include "datasets/files/folder_walk.hpp"
#include "io/remote/describe_objects.hpp"

#include <leat/remote.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

class listed_folder {
 public:
  ///   path      without a slash at its end
  ///   objects   what lies below it, sorted by their addresses
  listed_folder(std::string path, std::vector<io::named_object> objects);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// By its whole address; null: there is none.
  [[nodiscard]] const io::named_object* find(std::string_view address) const;
  /// Whether it has an object of this name directly in it.
  [[nodiscard]] bool has(std::string_view name) const;
  /// Whether anything lies below this address.
  [[nodiscard]] bool has_folder(std::string_view address) const;
  /// Those directly in it whose names end so, as files_in() has them.
  [[nodiscard]] std::vector<io::named_object> objects_in(std::string_view ending) const;
  /// All of them, below the folder. This outlives the result.
  [[nodiscard]] std::vector<listed_file> files_below() const;
  [[nodiscard]] const std::vector<io::named_object>& objects() const noexcept { return objects_; }

 private:
  [[nodiscard]] std::vector<io::named_object>::const_iterator first_from(std::string_view address) const;

  std::string path_;
  std::vector<io::named_object> objects_;
};

/// What a name of s3:// leads to, where it is a folder: it ends with a slash, or has nothing like a file's extension and objects below it. A
/// store is asked for the latter, and may refuse it; so it may be an object.
///   throws   error{errc::not_found} nothing lies below an address that ends with a slash; as io::list_objects()
[[nodiscard]] std::optional<listed_folder> find_listed_folder(const io::named_object& named,
                                                              const remote_options& options);

/// Whether an address that is not of s3:// can only be a folder: it ends with a slash, or with .zarr.
[[nodiscard]] bool is_unlisted_folder(const std::string& address);

/// The folder of an address that is told to be one, with or without a slash at its end.
///   throws   error{errc::not_found} nothing lies below it; error{errc::usage} it is not of s3://; as io::list_objects()
[[nodiscard]] listed_folder list_folder(const std::string& address, const remote_options& options);

}  // namespace leat::datasets

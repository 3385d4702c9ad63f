// The pictures below a folder, in torchvision's order, found by several threads.
#pragma once

#include "datasets/model/hidden_names.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::datasets {

/// Pictures of one directory, sorted by name. Names lie in one block: a data set is a million of them.
struct picture_directory {
  struct picture {
    std::uint32_t name_begin = 0;
    std::uint32_t name_bytes = 0;
    std::uint64_t size_bytes = 0;
    int failure = 0;  ///< an errno where there is no such file to read: a link that leads nowhere; EISDIR: not a file
  };
  std::string path;  ///< below the root, without a slash at either end; empty: the root itself
  std::size_t class_index = 0;
  std::string names;
  std::vector<picture> pictures;

  [[nodiscard]] std::string_view name(const picture& of) const noexcept {
    return std::string_view(names).substr(of.name_begin, of.name_bytes);
  }
};

/// Extensions are in lower case, with the dot.
struct folder_walk_options {
  std::vector<std::string> extensions;
  std::vector<std::string> counted;  ///< extensions of files that are no samples; these files are counted
  unsigned threads = 1;
};

/// The contents of some folders.
///   directories   those with pictures in them
///   counted       the number of files for each of folder_walk_options::counted
///   hidden        folders, and files that would be pictures, that were left out for their names
///   visited       all directories that were listed, with their times of modification before that
struct folder_contents {
  struct visited_directory {
    std::string path;  ///< below the root
    std::int64_t modified_ns = 0;
  };
  std::vector<picture_directory> directories;
  std::vector<std::uint64_t> counted;
  hidden_files hidden;
  std::vector<visited_directory> visited;
};

/// What lies directly in a folder, without what is hidden: the names of the folders in it (links to folders too, but for those that lead
/// back to the root), sorted; and how many pictures are beside them, with the names of the first few.
struct folder_listing {
  static constexpr std::size_t names_max = 3;
  std::vector<std::string> folders;
  std::uint64_t pictures = 0;
  std::vector<std::string> picture_names;
  hidden_files hidden;
  std::int64_t modified_ns = 0;  ///< of the folder, before it was listed
};
[[nodiscard]] folder_listing list_folder(const std::string& root, const folder_walk_options& options);

/// All pictures below root/start for each of `starts` (start i has class_index i; "" is the root itself), directories
/// in the order (class, path), with sizes. Links are followed; a directory that is one of its own ancestors is left out.
///   throws   error{errc::not_found}, error{errc::permission}, error{errc::io} with the directory and what to do
[[nodiscard]] folder_contents walk_folders(const std::string& root, const std::vector<std::string>& starts,
                                           const folder_walk_options& options);

/// A file as a listing has it: its path below the root. One that ends with a slash stands for a folder.
struct listed_file {
  std::string_view path;
  std::uint64_t size_bytes = 0;
};
/// The same of folders whose files were listed, all of them, sorted by byte. A path that no disk has (two slashes side by side) is left out.
[[nodiscard]] folder_listing list_folder(std::span<const listed_file> files, const folder_walk_options& options);
[[nodiscard]] folder_contents walk_folders(std::span<const listed_file> files, const std::vector<std::string>& starts,
                                           const folder_walk_options& options);

/// True where the name ends in one of the extensions, whatever its case.
[[nodiscard]] bool has_extension(std::string_view name, const std::vector<std::string>& extensions) noexcept;

}  // namespace leat::datasets

// Folders of pictures.
#pragma once

#include <leat/compiler.hpp>
#include <leat/index_options.hpp>
#include <leat/remote.hpp>
#include <leat/samples.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

/// How the samples of a folder are found.
struct folder_options {
  enum class class_folders : std::uint8_t {
    automatic,  ///< as yes if the folder holds folders with pictures, else as no
    yes,        ///< each folder is a class, as in torchvision's ImageFolder
    no          ///< every picture below the folder; no classes, no labels
  };
  class_folders classes = class_folders::automatic;
  bool allow_empty_classes = false;  ///< true: a class folder may have no picture; false (default): that is an error
  /// Endings of file names that are samples, in lower case with the dot; names may have any case. Empty (default): .jpg
  /// .jpeg .png .bmp .webp, and photo packs, .fjpg .fjpeg .fjpe.
  std::vector<std::string> extensions = {};
  unsigned threads = 0;        ///< threads that list the folder. 0 (default): chosen for the machine
  index_options index = {};    ///< whether the list of files is kept for the next run
  remote_options remote = {};  ///< for a folder at an address
};

/// Pictures in a folder: the field "jpg" (of any picture format), and the column "cls" if there are classes.
///   order    as torchvision: classes by name, then directories by their whole path, then file names. Symbolic links
///            are followed, but a link to a folder that it lies in is not
///   notes    pictures that are no samples: those beside class folders, .gif, .tif, .ppm, .heic and other formats that
///            leat does not read, and hidden files and folders: names that begin with a dot, __MACOSX, Thumbs.db, @eaDir
///   throws   error{errc::not_found} no such folder, no picture, or (named) class folders without one;
///            error{errc::permission} naming the directory that could not be read
///   source   torchvision/datasets/folder.py: find_classes, make_dataset
///   path     a folder, or s3://bucket/folder/, which is listed; no index of the latter is kept
[[nodiscard]] dataset open_folder(const std::string& path, const folder_options& options = {});
/// Deleted: use open() for several folders. Without this, {"a", "b"} would call std::string's constructor from two
/// iterators.
dataset open_folder(std::initializer_list<std::string_view> paths, const folder_options& options = {}) = delete;

}  // namespace leat
#pragma GCC visibility pop

// What a SOURCE of the command line is, found out by looking.
#include "datasets/patterns.hpp"
#include "datasets/raw_files.hpp"
#include "io/text.hpp"

#include <leat/dataset.hpp>
#include <leat/error.hpp>

#include <sys/stat.h>

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <system_error>

namespace leat {
namespace {

using datasets::expand_paths;
using datasets::file_kind;
using io::str_cat;

bool is_folder(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// The files directly in a folder whose names end so, sorted by byte. Unreadable folders are left to who opens them, with its
// message.
std::vector<std::string> files_in(const std::string& folder, std::string_view ending) {
  struct closer {
    void operator()(DIR* stream) const noexcept { ::closedir(stream); }
  };
  const std::unique_ptr<DIR, closer> stream(::opendir(folder.c_str()));
  std::vector<std::string> files;
  while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (!name.ends_with(ending) || name.starts_with('.')) continue;
    std::string path = folder.ends_with('/') ? str_cat(folder, name) : str_cat(folder, "/", name);
    if (!is_folder(path)) files.push_back(std::move(path));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// A folder of what is opened file by file is told how.
dataset open_pictures(const std::string& folder) {
  try {
    return open_folder(folder);
  } catch (const error& none) {
    if (none.code() != errc::not_found) throw;
    for (const std::string_view ending : {".npy", ".npz", ".bin"}) {
      const std::size_t files = files_in(folder, ending).size();
      if (files == 0) continue;
      throw error(errc::not_found, str_cat(none.what(), "; it has ", files, files == 1 ? " file *" : " files *", ending,
                                           ": give '", folder, folder.ends_with('/') ? "*" : "/*", ending, "'"));
    }
    throw;
  }
}

// What lies beside records is no shard.
[[noreturn]] void refuse_description(const std::string& path) {
  const std::string data = datasets::with_extension(path, ".bin");
  throw error(errc::usage, datasets::file_exists(data)
                               ? str_cat(path, " says what the records in ", data, " are; give that one")
                               : str_cat(path,
                                         ": no source; a .json says what the records in the .bin beside it are, "
                                         "and there is no ",
                                         data));
}

[[noreturn]] void refuse_address(const std::string& source) {
  throw error(errc::unsupported,
              str_cat(source, ": only local files can be opened; copy or mount it, then give the path"));
}

// The paths a source stands for; a missing one is named together with what would be understood.
std::vector<std::string> paths_of(const std::string& source) {
  for (const std::string_view scheme : {"http://", "https://", "s3://", "gs://", "pipe:"}) {
    if (source.starts_with(scheme)) refuse_address(source);
  }
  std::vector<std::string> paths = expand_paths(source);
  struct stat status{};
  if (paths.size() == 1 && ::stat(paths.front().c_str(), &status) != 0 &&
      datasets::kind_of_file(paths.front()) == file_kind::other) {
    const int failure = errno;
    const errc code = failure == EACCES                         ? errc::permission
                      : failure == ENOENT || failure == ENOTDIR ? errc::not_found
                                                                : errc::io;
    throw error(code,
                str_cat(source, ": ", std::generic_category().message(failure),
                        "; a source is a folder of pictures or of class folders, or tar shards, .npy, .npz, records "
                        "(.bin and .json) or tokens by path, brace list ('a-{000..127}.tar') or glob ('a-*.tar')"));
  }
  return paths;
}

dataset open_as(file_kind kind, const std::vector<std::string>& files) {
  switch (kind) {
    case file_kind::npy:
      return open_npy(files);
    case file_kind::npz:
      return open_npz(files);
    case file_kind::records:
      return open_records(files);
    case file_kind::tokens:
      return open_tokens(files);
    case file_kind::raw:
      throw error(errc::usage,
                  str_cat(files.front(), ": nothing tells what is in it: ", datasets::looks_like(files.front())));
    case file_kind::other:
      break;
  }
  return open_tar(files);
}

}  // namespace

dataset open(std::span<const std::string> sources) {
  if (sources.empty()) throw error(errc::usage, "no source was given: name a folder of pictures, or tar shards");
  std::vector<dataset> parts;
  std::string with_classes;  // The last folder of each kind.
  std::string without_classes;
  // Neighbours of one kind are opened together: all their headers in flight at once, and several arrays are samples each.
  std::vector<std::string> files;
  file_kind kind = file_kind::other;
  const auto open_files = [&] {
    if (files.empty()) return;
    parts.push_back(open_as(kind, files));
    files.clear();
  };
  const auto add_file = [&](std::string path, file_kind of) {
    if (of != kind) open_files();
    kind = of;
    files.push_back(std::move(path));
  };
  for (const std::string& source : sources) {
    for (std::string& path : paths_of(source)) {
      if (!is_folder(path)) {
        const file_kind found = datasets::kind_of_file(path);
        if (found == file_kind::other && path.ends_with(".json")) refuse_description(path);
        add_file(std::move(path), found);
        continue;
      }
      std::vector<std::string> inside = files_in(path, ".tar");
      if (!inside.empty()) {
        for (std::string& shard : inside) add_file(std::move(shard), file_kind::other);
        continue;
      }
      open_files();
      parts.push_back(open_pictures(path));
      (parts.back().classes().empty() ? without_classes : with_classes) = path;
      if (!with_classes.empty() && !without_classes.empty()) {
        throw error(errc::usage,
                    str_cat(with_classes, " has class folders and ", without_classes,
                            " has none, so that its pictures would have no label; put them into class folders, "
                            "or open the two apart (a program may leat::concat() them all the same)"));
      }
    }
  }
  open_files();
  return concat(parts);
}

dataset open(const std::string& source) { return open({&source, 1}); }

}  // namespace leat

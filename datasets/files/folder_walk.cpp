#include "datasets/files/folder_walk.hpp"

#include "base/descriptor.hpp"
#include "base/hash_map.hpp"
#include "base/text.hpp"
#include "datasets/files/index_cache.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/python_order.hpp"
#include "io/files/read_error.hpp"

#include <leat/error.hpp>

#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <system_error>

namespace leat::datasets {
namespace {

std::string join(std::string_view directory, std::string_view name) {
  if (directory.empty()) return std::string(name);
  return directory.ends_with('/') ? str_cat(directory, name) : str_cat(directory, "/", name);
}

[[noreturn]] void fail(int failure, const std::string& directory) {
  const std::string why = str_cat(directory, ": ", std::generic_category().message(failure));
  switch (failure) {
    case ENOENT:
      throw error(errc::not_found, str_cat(why, "; check the path, or whether it vanished while it was being read"));
    case EACCES:
    case EPERM:
      throw error(
          errc::permission,
          str_cat(why, "; this user may not read the directory: `chmod u+rx` it, or move it out of the data set"));
    case ENOTDIR:
      throw error(errc::usage, str_cat(why, "; a folder of pictures was expected"));
    case EMFILE:
    case ENFILE:
      throw error(errc::limit, str_cat(why, "; raise the limit of open files: `ulimit -n 4096`"));
    default:
      throw io::explain_open(failure, directory);
  }
}

// Directories are identified by device and inode, so that a link back to an ancestor is seen whatever it is called.
struct identity {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const identity&, const identity&) = default;
};

identity identity_of(const struct stat& status) noexcept { return {status.st_dev, status.st_ino}; }

// Without regard to case.
bool ends_in(std::string_view name, std::string_view extension) noexcept {
  const auto same_letter = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return name.size() >= extension.size() && std::equal(name.end() - static_cast<std::ptrdiff_t>(extension.size()),
                                                       name.end(), extension.begin(), same_letter);
}

constexpr std::size_t no_parent = std::numeric_limits<std::size_t>::max();

struct node {
  picture_directory found;
  std::size_t parent = no_parent;
  identity self;
  std::int64_t modified_ns = 0;
  bool linked = false;  // Entered through a symbolic link; only these can close a circle.
  struct child {
    std::string name;
    bool linked;
  };
  std::vector<child> children;
  std::vector<std::uint64_t> counted;
  hidden_files hidden;
};

enum class entry_type : std::uint8_t { directory, linked_directory, other };

entry_type type_of(int directory, const dirent& entry) noexcept {
  if (entry.d_type == DT_DIR) return entry_type::directory;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return entry_type::other;
  struct stat status{};
  // A link that leads nowhere is no directory; what is wrong with it shows when its size is asked for.
  if (::fstatat(directory, entry.d_name, &status, 0) != 0 || !S_ISDIR(status.st_mode)) return entry_type::other;
  // If the file system gives no types, any directory may be a link.
  return entry_type::linked_directory;
}

// Calls visit(entry, type) for everything in the directory but "." and "..".
template <class Visit>
void read_directory(int directory, const std::string& path, const Visit& visit) {
  descriptor for_stream(::dup(directory));
  if (for_stream.get() < 0) fail(errno, path);
  struct closer {
    void operator()(DIR* stream) const noexcept { ::closedir(stream); }
  };
  const std::unique_ptr<DIR, closer> stream(::fdopendir(for_stream.get()));
  if (!stream) fail(errno, path);
  static_cast<void>(for_stream.release());  // closedir() closes it.
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) {
      if (errno != 0) fail(errno, path);
      return;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    visit(*entry, type_of(directory, *entry));
  }
}

int open_directory(int at, const std::string& path) noexcept {
  return ::openat(at, path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void sort_pictures(picture_directory& directory) {
  std::sort(directory.pictures.begin(), directory.pictures.end(),
            [&](const picture_directory::picture& a, const picture_directory::picture& b) {
              return python_less(directory.name(a), directory.name(b));
            });
}

void add_picture(std::string_view name, std::uint64_t size_bytes, picture_directory& to) {
  to.pictures.push_back(
      {static_cast<std::uint32_t>(to.names.size()), static_cast<std::uint32_t>(name.size()), size_bytes, 0});
  to.names.append(name);
}

// A file that is no sample.
void count(std::string_view name, const std::vector<std::string>& extensions, std::vector<std::uint64_t>& counted) {
  for (std::size_t i = 0; i < extensions.size(); ++i) {
    if (!ends_in(name, extensions[i])) continue;
    counted.resize(extensions.size());
    ++counted[i];
  }
}

// A hidden file that would be no picture is not worth a word.
void leave_out(std::string_view path, bool is_folder, const folder_walk_options& options, hidden_files& hidden) {
  if (is_folder) {
    hidden.add_folder(path);
  } else if (has_extension(path, options.extensions)) {
    hidden.add_file(path);
  }
}

void sort_directories(std::vector<picture_directory>& directories) {
  std::sort(directories.begin(), directories.end(), [](const picture_directory& a, const picture_directory& b) {
    return a.class_index != b.class_index ? a.class_index < b.class_index : python_less(a.path, b.path);
  });
}

class walker {
 public:
  walker(const std::string& root, const folder_walk_options& options)
      : root_(root), options_(options), root_directory_(open_directory(AT_FDCWD, root)) {
    if (root_directory_.get() < 0) fail(errno, root_);
    struct stat status{};
    if (::fstat(root_directory_.get(), &status) != 0) fail(errno, root_);
    root_identity_ = identity_of(status);
  }

  folder_contents run(const std::vector<std::string>& starts) {
    std::vector<std::size_t> level;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      level.push_back(nodes_.size());
      nodes_.emplace_back().found.path = starts[i];
      nodes_.back().found.class_index = i;
    }
    while (!level.empty()) level = descend(level);
    folder_contents contents;
    contents.counted.assign(options_.counted.size(), 0);
    std::vector<picture_directory>& directories = contents.directories;
    for (node& done : nodes_) {
      contents.visited.push_back({done.found.path, done.modified_ns});
      for (std::size_t i = 0; i < done.counted.size(); ++i) contents.counted[i] += done.counted[i];
      contents.hidden.add(done.hidden);
      if (!done.found.pictures.empty()) directories.push_back(std::move(done.found));
    }
    nodes_.clear();
    sort_directories(directories);
    ask_sizes(directories);
    return contents;
  }

 private:
  // Lists the directories of one level, each by one thread, and returns the next level.
  std::vector<std::size_t> descend(const std::vector<std::size_t>& level) {
    for_each_parallel(level.size(), options_.threads, [&](std::size_t i) { list(nodes_[level[i]]); });
    std::vector<std::size_t> next;
    for (const std::size_t parent : level) {
      const std::vector<node::child> children = std::move(nodes_[parent].children);
      for (const node::child& child : children) {
        next.push_back(nodes_.size());
        node& added = nodes_.emplace_back();
        added.found.path = join(nodes_[parent].found.path, child.name);
        added.found.class_index = nodes_[parent].found.class_index;
        added.parent = parent;
        added.linked = child.linked;
      }
    }
    return next;
  }

  void list(node& here) const {
    const std::string path = join(root_, here.found.path);
    const descriptor directory(open_directory(root_directory_.get(), here.found.path));
    if (directory.get() < 0) fail(errno, path);
    struct stat status{};
    if (::fstat(directory.get(), &status) != 0) fail(errno, path);
    here.self = identity_of(status);
    here.modified_ns = stamp_of(status).modified_ns;
    if (here.linked && is_own_ancestor(here)) return;
    read_directory(directory.get(), path, [&](const dirent& entry, entry_type type) {
      const std::string_view name = entry.d_name;
      if (is_hidden_name(name)) {
        leave_out(join(here.found.path, name), type != entry_type::other, options_, here.hidden);
      } else if (type != entry_type::other) {
        here.children.push_back({std::string(name), type == entry_type::linked_directory});
      } else if (has_extension(name, options_.extensions)) {
        add_picture(name, 0, here.found);
      } else {
        count(name, options_.counted, here.counted);
      }
    });
    sort_pictures(here.found);
  }

  bool is_own_ancestor(const node& here) const noexcept {
    if (here.self == root_identity_) return true;
    for (std::size_t i = here.parent; i != no_parent; i = nodes_[i].parent) {
      if (nodes_[i].self == here.self) return true;
    }
    return false;
  }

  // A flat folder is one directory: its sizes are asked for in portions, so that all threads have something to do.
  void ask_sizes(std::vector<picture_directory>& directories) const {
    constexpr std::size_t portion_pictures = 1024;
    struct portion {
      std::size_t directory;
      std::size_t begin;
    };
    std::vector<portion> portions;
    for (std::size_t i = 0; i < directories.size(); ++i) {
      for (std::size_t begin = 0; begin < directories[i].pictures.size(); begin += portion_pictures) {
        portions.push_back({i, begin});
      }
    }
    for_each_parallel(portions.size(), options_.threads, [&](std::size_t i) {
      picture_directory& from = directories[portions[i].directory];
      const std::size_t end = std::min(portions[i].begin + portion_pictures, from.pictures.size());
      ask_sizes(from, portions[i].begin, end);
    });
  }

  void ask_sizes(picture_directory& from, std::size_t begin, std::size_t end) const {
    const descriptor directory(open_directory(root_directory_.get(), from.path));
    if (directory.get() < 0) fail(errno, join(root_, from.path));
    std::string name;
    for (std::size_t i = begin; i < end; ++i) {
      picture_directory::picture& picture = from.pictures[i];
      name = from.name(picture);
      struct stat status{};
      if (::fstatat(directory.get(), name.c_str(), &status, 0) != 0) {
        // The directory may be read but not entered. Any other failure concerns only this picture.
        if (errno == EACCES) fail(errno, join(root_, from.path));
        picture.failure = errno;
      } else if (!S_ISREG(status.st_mode)) {
        picture.failure = EISDIR;
      } else {
        picture.size_bytes = static_cast<std::uint64_t>(status.st_size);
      }
    }
  }

  const std::string& root_;
  const folder_walk_options& options_;
  descriptor root_directory_;
  identity root_identity_;
  std::vector<node> nodes_;
};

}  // namespace

bool has_extension(std::string_view name, const std::vector<std::string>& extensions) noexcept {
  return std::any_of(extensions.begin(), extensions.end(),
                     [&](const std::string& extension) { return ends_in(name, extension); });
}

namespace {

// Keeps the first few names in order, whatever the order of the directory.
void note_picture(std::string_view name, folder_listing& listing) {
  ++listing.pictures;
  std::vector<std::string>& names = listing.picture_names;
  names.emplace(std::upper_bound(names.begin(), names.end(), name, python_less), name);
  if (names.size() > folder_listing::names_max) names.pop_back();
}

void sort_folders(folder_listing& listing) {
  std::sort(listing.folders.begin(), listing.folders.end(),
            [](const std::string& a, const std::string& b) { return python_less(a, b); });
}

// Whether a disk could have it: no name between two slashes is empty, "." or "..".
bool is_path(std::string_view path) noexcept {
  if (path.ends_with('/')) path.remove_suffix(1);
  for (;;) {
    const std::string_view name = path.substr(0, path.find('/'));
    if (name.empty() || name == "." || name == "..") return false;
    if (name.size() == path.size()) return true;
    path.remove_prefix(name.size() + 1);
  }
}

}  // namespace

folder_listing list_folder(const std::string& root, const folder_walk_options& options) {
  const descriptor directory(open_directory(AT_FDCWD, root));
  if (directory.get() < 0) fail(errno, root);
  struct stat self{};
  if (::fstat(directory.get(), &self) != 0) fail(errno, root);
  folder_listing listing;
  listing.modified_ns = stamp_of(self).modified_ns;
  read_directory(directory.get(), root, [&](const dirent& entry, entry_type type) {
    if (is_hidden_name(entry.d_name)) {
      leave_out(entry.d_name, type != entry_type::other, options, listing.hidden);
      return;
    }
    if (type == entry_type::other) {
      if (has_extension(entry.d_name, options.extensions)) note_picture(entry.d_name, listing);
      return;
    }
    struct stat status{};
    const bool leads_back = type == entry_type::linked_directory &&
                            ::fstatat(directory.get(), entry.d_name, &status, 0) == 0 &&
                            identity_of(status) == identity_of(self);
    if (!leads_back) listing.folders.emplace_back(entry.d_name);
  });
  sort_folders(listing);
  return listing;
}

folder_listing list_folder(std::span<const listed_file> files, const folder_walk_options& options) {
  folder_listing listing;
  hash_set<std::string_view> seen;
  for (const listed_file& each : files) {
    if (!is_path(each.path)) continue;
    const std::size_t slash = each.path.find('/');
    if (is_hidden_name(each.path.substr(0, slash))) {
      const std::string_view hidden = each.path.substr(0, slash);
      if (slash == std::string_view::npos || seen.insert(hidden).second) {
        leave_out(hidden, slash != std::string_view::npos, options, listing.hidden);
      }
    } else if (slash != std::string_view::npos) {
      if (seen.insert(each.path.substr(0, slash)).second) listing.folders.emplace_back(each.path.substr(0, slash));
    } else if (has_extension(each.path, options.extensions)) {
      note_picture(each.path, listing);
    }
  }
  sort_folders(listing);
  return listing;
}

folder_contents walk_folders(const std::string& root, const std::vector<std::string>& starts,
                             const folder_walk_options& options) {
  return walker(root, options).run(starts);
}

folder_contents walk_folders(std::span<const listed_file> files, const std::vector<std::string>& starts,
                             const folder_walk_options& options) {
  hash_map<std::string_view, std::size_t> classes;
  for (std::size_t i = 0; i < starts.size(); ++i) classes.emplace(starts[i], i);
  const auto whole = classes.find("");
  folder_contents contents;
  contents.counted.assign(options.counted.size(), 0);
  hash_map<std::string_view, std::size_t> numbers;
  hash_set<std::string_view> hidden_folders;
  for (const listed_file& each : files) {
    if (!is_path(each.path) || each.path.ends_with('/')) continue;
    const std::size_t slash = each.path.rfind('/');
    const std::string_view directory = each.path.substr(0, slash == std::string_view::npos ? 0 : slash);
    const std::string_view name = each.path.substr(slash == std::string_view::npos ? 0 : slash + 1);
    const auto of = whole != classes.end() ? whole : classes.find(directory.substr(0, directory.find('/')));
    if (of == classes.end()) continue;
    if (const std::string_view hidden = hidden_part(each.path); !hidden.empty()) {
      const bool is_folder = hidden.size() < each.path.size();
      if (!is_folder || hidden_folders.insert(hidden).second) {
        leave_out(hidden, is_folder, options, contents.hidden);
      }
      continue;
    }
    if (!has_extension(name, options.extensions)) {
      count(name, options.counted, contents.counted);
      continue;
    }
    const auto [number, is_new] = numbers.try_emplace(directory, contents.directories.size());
    if (is_new) {
      contents.directories.emplace_back().path = directory;
      contents.directories.back().class_index = of->second;
    }
    add_picture(name, each.size_bytes, contents.directories[number->second]);
  }
  for (picture_directory& each : contents.directories) sort_pictures(each);
  sort_directories(contents.directories);
  return contents;
}

}  // namespace leat::datasets

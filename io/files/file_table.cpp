#include "io/files/file_table.hpp"

#include "base/hasher.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

namespace leat::io {
namespace {

// The folder that all of these lie in, or are: "a/b" of "a/b" and "a/b/c"; empty where they share none.
std::string_view common_folder(const std::vector<std::string>& directories) {
  if (directories.empty()) return {};
  std::string_view common = directories.front();
  for (const std::string& each : directories) {
    const auto is_in = [&](std::string_view folder) {
      return each.starts_with(folder) &&
             (folder.empty() || folder.ends_with('/') || each.size() == folder.size() || each[folder.size()] == '/');
    };
    while (!is_in(common)) {
      const std::size_t slash = common.rfind('/');
      common = common.substr(0, slash == std::string_view::npos ? 0 : slash);
    }
  }
  return common;
}

}  // namespace

file_table::file_table(std::shared_ptr<const void> owner, const blocks& kept, std::vector<std::string> directories)
    : directories_(std::move(directories)), owner_(std::move(owner)), kept_(kept) {
  bool is_whole = (kept.entries.empty() || !kept.runs.empty()) && kept.entries.size() < size_apart;
  std::uint32_t before = 0;
  for (const entry& each : kept.entries) {
    is_whole = is_whole && before <= each.name_begin;
    before = each.name_begin;
    if (each.size == size_apart) {
      const auto number = static_cast<std::uint64_t>(&each - kept.entries.data());
      is_whole = is_whole && std::any_of(kept.large_sizes.begin(), kept.large_sizes.end(),
                                         [&](const large_size& of) { return of.file == number; });
    }
  }
  is_whole = is_whole && before <= kept.names.size();
  std::uint64_t next = 0;
  for (const run& each : kept.runs) {
    is_whole = is_whole && each.directory < directories_.size() &&
               (next == 0 ? each.first_file == 0 : each.first_file >= next);
    next = std::uint64_t{each.first_file} + 1;
  }
  if (!is_whole) throw error(errc::format, "its files, names and directories do not belong together");
}

std::uint32_t file_table::add(std::string_view path, std::uint64_t size_bytes) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return add({}, path, size_bytes);
  // "/name" lies in the directory "/", which keeps its slash so that it is not taken for the working directory.
  return add(path.substr(0, std::max<std::size_t>(slash, 1)), path.substr(slash + 1), size_bytes);
}

std::uint32_t file_table::add(std::string_view directory, std::string_view name, std::uint64_t size_bytes) {
  if (entries_.size() >= std::numeric_limits<std::uint32_t>::max() - 1) {
    throw error(errc::limit, "a source holds 4,294,967,294 files at most; split it into several sources");
  }
  if (names_.size() + name.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw error(errc::limit, "the file names of one source take more than 4 GiB; split it into several sources");
  }
  // Out of a table, or of a program. The system ends a name there, and would open another file.
  for (const std::string_view part : {directory, name}) {
    if (const std::size_t zero = part.find('\0'); zero != std::string_view::npos) {
      throw error(errc::format, str_cat("a file is named \"", part.substr(0, zero), "\", a zero byte and ",
                                        part.size() - zero - 1, " bytes more; no file can have that name"));
    }
  }
  const auto file = static_cast<std::uint32_t>(entries_.size());
  if (runs_.empty() || directories_[runs_.back().directory] != directory) {
    if (directory_numbers_.empty() && !directories_.empty()) {  // finish() was called, and now there is more
      for (std::uint32_t i = 0; i < directories(); ++i) directory_numbers_.emplace(directories_[i], i);
    }
    const auto [place, is_new] = directory_numbers_.try_emplace(std::string(directory), directories());
    if (is_new) directories_.emplace_back(directory);
    runs_.push_back({file, place->second});
  }

  entry added{static_cast<std::uint32_t>(names_.size()), size_unknown};
  if (size_bytes < size_apart) {
    added.size = static_cast<std::uint32_t>(size_bytes);
  } else if (size_bytes != unknown_size) {
    added.size = size_apart;
    large_sizes_.push_back({file, size_bytes});
  }
  names_.insert(names_.end(), name.begin(), name.end());
  entries_.push_back(added);
  return file;
}

std::uint32_t file_table::append(const file_table& other) {
  const std::uint32_t first = files();
  entries_.reserve(entries_.size() + other.parts().entries.size());
  names_.reserve(names_.size() + other.parts().names.size());
  for (std::uint32_t i = 0; i < other.files(); ++i) {
    add(other.directories_[other.directory(i)], other.name(i), other.size_bytes(i));
  }
  return first;
}

void file_table::finish() {
  entries_.shrink_to_fit();
  names_.shrink_to_fit();
  runs_.shrink_to_fit();
  directories_.shrink_to_fit();
  large_sizes_.shrink_to_fit();
  directory_numbers_ = {};
}

std::string file_table::path(std::uint32_t file) const {
  std::string path;
  this->path(file, path);
  return path;
}

void file_table::path(std::uint32_t file, std::string& out) const {
  out.assign(directories_[directory(file)]);
  if (!out.empty() && out.back() != '/') out.push_back('/');
  out.append(name(file));
}

std::string_view file_table::name(std::uint32_t file) const noexcept {
  assert(file < files());
  const blocks in = parts();
  const std::size_t begin = in.entries[file].name_begin;
  const std::size_t end = file + 1 < files() ? in.entries[file + 1].name_begin : in.names.size();
  return {in.names.data() + begin, end - begin};
}

std::uint64_t file_table::size_bytes(std::uint32_t file) const noexcept {
  assert(file < files());
  const blocks in = parts();
  const std::uint32_t size = in.entries[file].size;
  if (size == size_unknown) return unknown_size;
  if (size != size_apart) return size;
  return std::lower_bound(in.large_sizes.begin(), in.large_sizes.end(), file,
                          [](const large_size& each, std::uint32_t number) { return each.file < number; })
      ->bytes;
}

std::uint32_t file_table::directory(std::uint32_t file) const noexcept {
  assert(file < files());
  const std::span<const run> runs = parts().runs;
  const auto after = std::upper_bound(runs.begin(), runs.end(), file,
                                      [](std::uint32_t number, const run& r) { return number < r.first_file; });
  return std::prev(after)->directory;
}

leat::digest file_table::digest() const {
  hasher hash;
  const std::size_t common = common_folder(directories_).size();
  hash.add(static_cast<std::uint64_t>(directories_.size()));
  for (const std::string& each : directories_) {
    std::string_view below = std::string_view(each).substr(common);
    if (below.starts_with('/')) below.remove_prefix(1);
    hash.add(below);
  }
  // Runs, names and entries follow from the files in their order, and from nothing else.
  static_assert(sizeof(entry) == 8 && sizeof(run) == 8, "no padding");
  const blocks in = parts();
  hash.add(std::as_bytes(in.runs));
  hash.add(std::as_bytes(in.entries));
  hash.add(std::as_bytes(in.names));
  for (const auto& [file, size] : in.large_sizes) {
    hash.add(file);
    hash.add(size);
  }
  return hash.finish();
}

std::size_t file_table::memory_bytes() const noexcept {
  std::size_t bytes = sizeof(*this) + entries_.capacity() * sizeof(entry) + names_.capacity() +
                      runs_.capacity() * sizeof(run) + large_sizes_.capacity() * sizeof(large_sizes_[0]) +
                      kept_.entries.size_bytes() + kept_.names.size_bytes() + kept_.runs.size_bytes() +
                      kept_.large_sizes.size_bytes();
  for (const std::string& directory : directories_) bytes += sizeof(directory) + directory.capacity() + 1;
  bytes += directory_numbers_.bucket_count() * (sizeof(std::string) + 2 * sizeof(std::uint32_t) + 1);
  return bytes;
}

}  // namespace leat::io

// Names that systems and programs leave among one's files: hidden ones, and those that macOS, Windows and NAS boxes write.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// Of a file or folder, without its path: it begins with a dot (.ipynb_checkpoints, ._1.jpg, .DS_Store), or is __MACOSX, Thumbs.db
/// or @eaDir.
[[nodiscard]] inline bool is_hidden_name(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 3> left_by_systems = {"__MACOSX", "Thumbs.db", "@eaDir"};
  if (name.starts_with('.')) return name != "." && name != "..";
  return std::find(left_by_systems.begin(), left_by_systems.end(), name) != left_by_systems.end();
}

/// The first part of a path that is hidden; empty where none is.
[[nodiscard]] inline std::string_view hidden_part(std::string_view path) noexcept {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    if (is_hidden_name(name)) return path.substr(0, end);
    begin = end + 1;
  }
  return {};
}

/// What was left out for its name.
///   names   the first few by order, as paths
struct hidden_files {
  static constexpr std::size_t names_max = 3;
  std::uint64_t folders = 0;
  std::uint64_t files = 0;
  std::vector<std::string> names = {};

  void add_folder(std::string_view path) {
    ++folders;
    note(path);
  }
  void add_file(std::string_view path) {
    ++files;
    note(path);
  }
  void add(const hidden_files& more) {
    folders += more.folders;
    files += more.files;
    for (const std::string& each : more.names) note(each);
  }
  /// "1 hidden folder (.ipynb_checkpoints)"; empty where there is none.
  [[nodiscard]] std::string text() const;

 private:
  void note(std::string_view path) {
    names.emplace(std::upper_bound(names.begin(), names.end(), path), path);
    if (names.size() > names_max) names.pop_back();
  }
};

}  // namespace leat::datasets

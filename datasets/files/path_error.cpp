#include "datasets/files/path_error.hpp"

#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "io/files/read_error.hpp"

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace leat::datasets {

namespace {

// " (did you mean 'photos'?)", where what lies beside is nearly called so.
std::string near_name(std::string path) {
  constexpr std::size_t looked_at = 10'000;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::filesystem::path asked(path);
  const std::filesystem::path folder = asked.has_parent_path() ? asked.parent_path() : std::filesystem::path(".");
  std::error_code failure;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator each(folder, failure), end; !failure && each != end;
       each.increment(failure)) {
    if (names.size() == looked_at) break;
    names.push_back(each->path().filename().string());
  }
  const std::string given = asked.filename().string();
  const std::string meant = given.size() < 2 ? std::string() : nearest_name(given, names);
  if (meant.empty()) return {};
  return str_cat(" (did you mean '", asked.has_parent_path() ? (folder / meant).string() : meant, "'?)");
}

}  // namespace

error path_error(int failure, const std::string& path, std::string_view advice) {
  if (failure != ENOENT && failure != ENOTDIR) return io::explain_open(failure, path);
  return {errc::not_found,
          str_cat(path, ": ", std::generic_category().message(failure), near_name(path), "; ", advice)};
}

}  // namespace leat::datasets

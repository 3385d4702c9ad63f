// A path that somebody gave and that the file system refuses: what it said, and what to do.
#pragma once

#include <leat/error.hpp>

#include <string>
#include <string_view>

namespace leat::datasets {

/// stat(2) or open(2) of `path` has failed: not_found, permission, limit or io.
///   advice   what to do where it is not there: "check the path"
[[nodiscard]] error path_error(int failure, const std::string& path, std::string_view advice);

}  // namespace leat::datasets

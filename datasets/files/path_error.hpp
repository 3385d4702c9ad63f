// The error for a path from the user that the file system refuses.
#pragma once

#include <leat/error.hpp>

#include <string>
#include <string_view>

namespace leat::datasets {

/// The error after stat(2) or open(2) of `path` has failed: not_found, permission, limit or io.
///   advice   what to do if it does not exist: "check the path"
[[nodiscard]] error path_error(int failure, const std::string& path, std::string_view advice);

}  // namespace leat::datasets

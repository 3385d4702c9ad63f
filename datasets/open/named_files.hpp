// What an opener is asked for.
#pragma once

#include "base/text.hpp"

#include <leat/error.hpp>
#include <leat/source_names.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// The names of `files`.
///   throws   error{errc::usage} where there are none
[[nodiscard]] inline const std::vector<std::string>& named(const source_names& files, std::string_view function,
                                                           std::string_view example) {
  if (!files.empty()) return files.all();
  throw error(errc::usage, str_cat(function, ": no file was given; name one, as ", example));
}

}  // namespace leat::datasets

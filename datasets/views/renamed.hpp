// A dataset whose fields and columns have other names.
#pragma once

#include <leat/samples.hpp>

#include <span>
#include <string>
#include <utility>

namespace leat::datasets {

///   names    (old, new); "jpg" is that name alone
///   throws   error{errc::usage} for an old name that is not there, and a new one that is taken, or empty
[[nodiscard]] dataset renamed(const dataset& samples, std::span<const std::pair<std::string, std::string>> names);

}  // namespace leat::datasets

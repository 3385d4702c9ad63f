// For our programs, which link Abseil: the library does not. Debian 12 builds Abseil as C++14, where absl::string_view is a type of its own;
// later distributions alias it to std::string_view. This compiles with both.
#pragma once

#include <absl/strings/string_view.h>

#include <string_view>

namespace leat {

/// The same characters for Abseil's functions.
[[nodiscard]] inline absl::string_view as_absl(std::string_view text) noexcept { return {text.data(), text.size()}; }

}  // namespace leat

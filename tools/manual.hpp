// leat(1), made of what the parser knows.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace leat::tools {

/// The manual page in troff's man macros: each command with all of its options and its examples.
[[nodiscard]] std::string manual_page(const CLI::App& leat);

}  // namespace leat::tools

// What a shell completes after `leat`, made of what the parser knows.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace leat::tools {

enum class shell { bash, zsh, fish };

/// The script that the shell loads: commands, their options, and the words or files that an option takes.
[[nodiscard]] std::string completions(const CLI::App& leat, shell which);

}  // namespace leat::tools

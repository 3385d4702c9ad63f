// What stands behind `--` on the command line: names, whatever they begin with. The parser alone would take some for options: once a
// command has as many names as it needs, it hands what follows `--` to the command above it.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace leat::tools {

/// The words of a command line behind the program's name, in their order: the first `--` is left out, and what stands behind it is marked,
/// so that the parser sees no option in it. A `--` that is the value of an option, or stands before the command, is a word.
[[nodiscard]] std::vector<std::string> words_of(const CLI::App& leat, int argc, const char* const* argv);

/// Every name that a command takes is without its mark from here on.
void take_marks_off(CLI::App& leat);

[[nodiscard]] bool is_marked(const std::string& word);
[[nodiscard]] std::string without_mark(std::string word);

}  // namespace leat::tools

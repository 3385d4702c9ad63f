// How the command explains itself: short, aligned, with examples.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace leat::tools {

/// Usage, options by group, examples (the footer), no wider than 100 columns.
class help_formatter final : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

/// "leat bench read PATH... [options]": what the command line of an app looks like, whose whole name is `name`.
[[nodiscard]] std::string usage(const CLI::App& app, const std::string& name);

/// What the parser's complaint means, in one line that says what to do: with the option that was probably meant where
/// one is only a slip away.
[[nodiscard]] std::string explain(const CLI::ParseError& problem, const CLI::App& app);

}  // namespace leat::tools

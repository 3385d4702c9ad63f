// How the command explains itself: short, aligned, with examples.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace leat::tools {

/// A command by the words that follow `leat`, as "bench read"; the whole has none.
struct listed_command {
  std::string name;
  const CLI::App* app = nullptr;
};

/// The whole, and all commands; each stands before its own.
[[nodiscard]] std::vector<listed_command> commands_of(const CLI::App& leat);

/// Every option that has a name, -h and --help too.
[[nodiscard]] std::vector<const CLI::Option*> named_options(const CLI::App& app);

/// "SOURCE...", "DIR".
[[nodiscard]] std::string positional_name(const CLI::Option& option);

/// "epoch", "bench read": the words that name an app after `leat`; none for the whole.
[[nodiscard]] std::string command_name(const CLI::App& app);

/// The words that an option takes, of "auto|on|off"; empty where it takes others.
[[nodiscard]] std::vector<std::string> values_of(const CLI::Option& option);

/// Whether the option's value is a file or a folder.
[[nodiscard]] bool takes_path(const CLI::Option& option);

/// Usage, options by group, examples (the footer), no wider than 100 columns. Mode All (--help) says what each option does; Normal (-h)
/// only names them where that would not fit a screen.
class help_formatter final : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

/// The help of one app of the tree, under its whole name.
[[nodiscard]] std::string help_of(const CLI::App& app, CLI::AppFormatMode mode);

/// "leat bench read PATH... [options]": what the command line of an app looks like, whose whole name is `name`.
[[nodiscard]] std::string usage(const CLI::App& app, const std::string& name);

/// What the parser's complaint means, in one line that says what to do: with the option that was probably meant where
/// one is only a slip away.
[[nodiscard]] std::string explain(const CLI::ParseError& problem, const CLI::App& app);

}  // namespace leat::tools

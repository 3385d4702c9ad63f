// leat help: what the parser knows of the commands, for people, man(1) and shells.
#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "tools/arguments.hpp"
#include "tools/completions.hpp"
#include "tools/help.hpp"
#include "tools/manual.hpp"
#include "tools/output.hpp"
#include "tools/subcommand.hpp"

#include <leat/error.hpp>

#include <absl/strings/str_join.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leat::tools {
namespace {

struct help_arguments {
  std::vector<std::string> command;
  std::optional<shell> completions_of;
  bool manual = false;
};

const CLI::App& find_command(const CLI::App& leat, const std::string& name) {
  std::vector<std::string> names;
  for (const listed_command& each : commands_of(leat)) {
    if (each.name == name) return *each.app;
    if (!each.name.empty()) names.push_back(each.name);
  }
  const std::string meant = nearest_name(name, names);
  throw error(errc::usage, str_cat("there is no command '", name, "'; ",
                                   meant.empty() ? "`leat --help` lists them" : str_cat("did you mean ", meant, "?")));
}

int help(const CLI::App& leat, const help_arguments& arguments) {
  if (arguments.manual) {
    print(manual_page(leat));
  } else if (arguments.completions_of) {
    print(completions(leat, *arguments.completions_of));
  } else {
    print(help_of(find_command(leat, absl::StrJoin(arguments.command, " ")), CLI::AppFormatMode::All));
  }
  return exit_done;
}

}  // namespace

void add_help(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<help_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("help", "say what a command does and takes");
  app.add_option("COMMAND", arguments->command, "as bench read; all")->type_name("");
  CLI::Option* const manual = app.add_flag("--man", arguments->manual, "leat(1), for man(1)");
  add_choice(
      app, "--completions", arguments->completions_of,
      {{"bash", std::optional(shell::bash)}, {"zsh", std::optional(shell::zsh)}, {"fish", std::optional(shell::fish)}},
      "what this shell loads to complete a command line of leat")
      ->excludes(manual);
  app.footer(
      "  leat help epoch\n  leat help --man | man -l -\n"
      "  leat help --completions bash >~/.local/share/bash-completion/completions/leat");
  app.callback(
      [arguments, &leat, &chosen] { chosen = [arguments, &leat](interruption&) { return help(leat, *arguments); }; });
}

}  // namespace leat::tools

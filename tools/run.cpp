// The command as a whole: from argv to an exit code.
#include "base/text.hpp"
#include "tools/flags.hpp"
#include "tools/help.hpp"
#include "tools/names_behind_dashes.hpp"
#include "tools/output.hpp"
#include "tools/subcommand.hpp"
#include "tools/user_signal.hpp"

#include <leat/error.hpp>
#include <leat/version.hpp>

#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

std::string version_text() {
  return str_cat("leat ", LEAT_VERSION_MAJOR, ".", LEAT_VERSION_MINOR, ".", LEAT_VERSION_PATCH, "\n");
}

// The subcommand that was named, or the whole.
const CLI::App& named(const CLI::App& leat) {
  const CLI::App* found = &leat;
  while (!found->get_subcommands().empty()) found = found->get_subcommands().front();
  return *found;
}

// What holds for each command.
void set_rules(CLI::App& app) {
  // Behind a command its name, or another's, is an argument: a folder may be called so.
  app.require_subcommand(0, 1);
  for (CLI::App* each : app.get_subcommands(nullptr)) {
    // Whoever reads a command's help has found it.
    for (const char* const help : {"-h", "--help"}) each->get_option(help)->group("");
    set_rules(*each);
  }
}

// Of a command that has commands of its own, and was given none.
std::string missing_command(const CLI::App& app) {
  const std::vector<const CLI::App*> all = app.get_subcommands({});
  std::string names;
  for (const CLI::App* each : all) str_append(names, names.empty() ? "" : ", ", each->get_name());
  const CLI::App& first = *all.front();
  const std::string whole = "leat " + command_name(first);
  return str_cat(all.size() == 1 ? "its only command is " : "give one of its commands: ", names, ", as `",
                 usage(first, whole), "`; `", whole, " --help` says more");
}

// Where the caller closed a standard stream, the next file opened would get its number, and our output. /dev/null takes the
// place, opened the wrong way round so that using it is still an error.
void hold_standard_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) == -1) static_cast<void>(::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY));
  }
}

// Errors of the subcommand `name`, told in one line.
int run_chosen(const chosen_command& chosen, interruption& stop, const std::string& name) {
  if (name != "epoch") release_user_signal();  // that decides by --trace
  try {
    return chosen(stop);
  } catch (const reader_has_gone&) {
    return exit_no_reader;
  } catch (const error& failure) {
    complain(name, failure.what());
    return failure.code() == errc::usage ? exit_usage : exit_failed;
  } catch (const std::bad_alloc&) {
    complain(name, "out of memory; give a smaller --host-bytes-max or --batch-size, or free some");
    return exit_failed;
  } catch (const std::exception& failure) {
    complain(name, failure.what());
    return exit_failed;
  }
}

int show_help(const CLI::App& app, CLI::AppFormatMode mode) {
  try {
    print(help_of(app, mode));
    return exit_done;
  } catch (const reader_has_gone&) {
    return exit_no_reader;
  } catch (const error& failure) {
    complain("", failure.what());
    return exit_failed;
  }
}

constexpr const char* about = "leat loads training data: batched reads, decoded and collated in place, batch by batch.";

struct command {
  std::string_view name;
  void (*add)(CLI::App& leat, chosen_command& chosen);
};
constexpr std::array<command, 19> commands = {{{"epoch", add_epoch},
                                               {"inspect", add_inspect},
                                               {"check", add_check},
                                               {"show", add_show},
                                               {"tune", add_tune},
                                               {"report", add_report},
                                               {"receipt", add_receipt},
                                               {"replay", add_replay},
                                               {"replay-io", add_replay_io},
                                               {"where", add_where_command},
                                               {"pack", add_pack},
                                               {"unpack", add_unpack},
                                               {"make-photos", add_make_photos},
                                               {"doctor", add_doctor},
                                               {"bench", add_bench},
                                               {"cache", add_cache},
                                               {"index", add_index},
                                               {"tokens", add_tokens},
                                               {"help", add_help}}};

// Where the first word is a command the options of the others are not made: 600 of them take half of a start's time. `help` is told of all.
void add_commands(CLI::App& leat, chosen_command& chosen, bool& version_wanted, std::string_view first_word) {
  leat.formatter(std::make_shared<help_formatter>());
  leat.set_help_flag("-h", "the same in short");
  leat.set_help_all_flag("--help", "this, or a command's own; -h is short");
  leat.add_flag("--version", version_wanted, "the version");
  leat.footer("  leat make-photos photos && leat epoch photos && leat show photos -o sheet.html");
  const auto* const only = std::ranges::find(commands, first_word == "help" ? "" : first_word, &command::name);
  for (const command& each : commands) {
    if (only == commands.end() || only == &each) each.add(leat, chosen);
  }
  // Now: a command gets its own from what is listed when it is made.
  set_rules(leat);
  take_marks_off(leat);
  leat.get_option("-h")->group("");
}

std::string_view first_word(int argc, const char* const* argv) { return argc > 1 ? argv[1] : ""; }

void parse(CLI::App& leat, int argc, const char* const* argv) {
  std::vector<std::string> words = words_of(leat, argc, argv);
  std::reverse(words.begin(), words.end());  // as the parser takes them
  leat.parse(std::move(words));
}

int run_interruptibly(int argc, char** argv, interruption& stop) {
  chosen_command chosen;
  bool version_wanted = false;
  CLI::App leat(about, "leat");
  add_commands(leat, chosen, version_wanted, first_word(argc, argv));
  try {
    parse(leat, argc, argv);
    if (version_wanted) {
      print(version_text());
      return exit_done;
    }
    if (!chosen) {
      // Nothing was asked: a mistake to a script, and a question to a person.
      if (const CLI::App& app = named(leat); &app != &leat) {
        complain(command_name(app), missing_command(app));
        return exit_usage;
      }
      const std::string help = help_of(leat, CLI::AppFormatMode::All);
      std::fwrite(help.data(), 1, help.size(), stderr);
      return exit_usage;
    }
  } catch (const CLI::CallForHelp&) {
    return show_help(named(leat), CLI::AppFormatMode::Normal);
  } catch (const CLI::CallForAllHelp&) {
    return show_help(named(leat), CLI::AppFormatMode::All);
  } catch (const reader_has_gone&) {
    return exit_no_reader;
  } catch (const CLI::ParseError& problem) {
    complain(command_name(named(leat)), explain(problem, named(leat)));
    return exit_usage;
  } catch (const error& failure) {
    complain("", failure.what());
    return exit_failed;
  }
  return run_chosen(chosen, stop, command_name(named(leat)));
}

}  // namespace

std::string why_refused(int argc, const char* const* argv) {
  spell_options(on_the_command_line);
  chosen_command chosen;
  bool version_wanted = false;
  CLI::App leat(about, "leat");
  add_commands(leat, chosen, version_wanted, first_word(argc, argv));
  try {
    parse(leat, argc, argv);
    if (chosen || version_wanted) return "";
    const CLI::App& app = named(leat);
    return &app == &leat ? "it names no command" : missing_command(app);
  } catch (const CLI::CallForHelp&) {
    return "";
  } catch (const CLI::CallForAllHelp&) {
    return "";
  } catch (const CLI::ParseError& problem) {
    return explain(problem, named(leat));
  } catch (const error& failure) {
    return failure.what();
  }
}

int run(int argc, char** argv) {
  hold_standard_streams();
  spell_options(on_the_command_line);
  // Writing to a pipe that nobody reads is an error like others, with an exit code.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // and so is a file that may not grow (`ulimit -f`)
  std::optional<interruption> stop;
  try {
    stop.emplace();
  } catch (const std::exception& failure) {
    complain("", str_cat("cannot watch for Ctrl-C: ", failure.what(), "; raise `ulimit -n` or `ulimit -u`"));
    return exit_failed;
  }
  return run_interruptibly(argc, argv, *stop);
}

}  // namespace leat::tools

// What the command is made of: each subcommand adds its options, and leaves behind what is to be run.
#pragma once

#include "io/arena/budget_refusal.hpp"
#include "tools/interruption.hpp"

#include <leat/error.hpp>

#include <CLI/CLI.hpp>

#include <signal.h>

#include <functional>
#include <string>

namespace leat::tools {

/// What a process tells its shell. After a signal: interruption::exit_code().
enum exit_code : int {
  exit_done = 0,
  exit_failed = 1,                 ///< the data is damaged, or the machine or the run failed
  exit_no_reader = 128 + SIGPIPE,  ///< who was to read standard output has gone, as of `| head`; nothing is said
  exit_usage = 2  ///< the command line: a wrong option, more than a budget holds, a source that as_named() refuses
};

/// Makes what the command line asks for: a budget that does not hold the rest of it is a mistake of the command line. A limit of
/// the machine (threads, files, memory) is none, whether it is met here or while it runs.
///   returns   what `make` does
///   throws    what `make` does; error{errc::usage} for its io::budget_refusal
template <class Make>
decltype(auto) set_up(Make&& make) {
  try {
    return make();
  } catch (const io::budget_refusal& refused) {
    throw error(errc::usage, refused.what());
  }
}

/// error{errc::usage}: what the command line names is not there, or leat does not read it.
class refused_name : public error {
 public:
  explicit refused_name(const std::string& message) : error(errc::usage, message) {}
};

/// Opens what the command line names. That it is not there, has no sample, or is of a kind that leat does not read, is a
/// mistake of the command line; damage in it, or a machine that fails to read it, is none.
///   returns   what `open` does
///   throws    what `open` does; refused_name for its not_found and unsupported
template <class Open>
decltype(auto) as_named(Open&& open) {
  try {
    return open();
  } catch (const error& refused) {
    if (refused.code() != errc::not_found && refused.code() != errc::unsupported) throw;
    throw refused_name(refused.what());
  }
}

/// What the command line asked for; empty until the parser has found a subcommand. Returns the exit code; throws what
/// went wrong.
using chosen_command = std::function<int(interruption& stop)>;

void add_epoch(CLI::App& leat, chosen_command& chosen);
void add_inspect(CLI::App& leat, chosen_command& chosen);
void add_check(CLI::App& leat, chosen_command& chosen);
void add_show(CLI::App& leat, chosen_command& chosen);
void add_tune(CLI::App& leat, chosen_command& chosen);
void add_report(CLI::App& leat, chosen_command& chosen);
void add_receipt(CLI::App& leat, chosen_command& chosen);
void add_replay(CLI::App& leat, chosen_command& chosen);
void add_replay_io(CLI::App& leat, chosen_command& chosen);
void add_where_command(CLI::App& leat, chosen_command& chosen);
void add_pack(CLI::App& leat, chosen_command& chosen);
void add_unpack(CLI::App& leat, chosen_command& chosen);
void add_make_photos(CLI::App& leat, chosen_command& chosen);
void add_doctor(CLI::App& leat, chosen_command& chosen);
void add_bench(CLI::App& leat, chosen_command& chosen);
void add_cache(CLI::App& leat, chosen_command& chosen);
void add_tokens(CLI::App& leat, chosen_command& chosen);
void add_index(CLI::App& leat, chosen_command& chosen);
void add_help(CLI::App& leat, chosen_command& chosen);

/// The whole command: parses, runs, says in one line what went wrong. Called by main(), once.
int run(int argc, char** argv);

/// Parses a command line that is not run.
///   returns   what is wrong with it, empty where nothing is
[[nodiscard]] std::string why_refused(int argc, const char* const* argv);

}  // namespace leat::tools

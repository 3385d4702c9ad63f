// The command as a function, for a process that has it in a library: the module of pyleat. Called once.
#include "tools/interruption.hpp"
#include "tools/subcommand.hpp"
#include "tools/user_signal.hpp"

extern "C" int leat_command(int argc, char** argv);

int leat_command(int argc, char** argv) {
  leat::tools::hold_stop_signals();
  leat::tools::hold_user_signal();
  return leat::tools::run(argc, argv);
}

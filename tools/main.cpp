// The leat command. Everything is in tools/run.cpp and one file per subcommand, where tests reach it.
#include "tools/interruption.hpp"
#include "tools/subcommand.hpp"
#include "tools/user_signal.hpp"

namespace {

// Ctrl-C is to be answered in order at any moment: until somebody can answer it, it waits. 101: the first that is not
// reserved for the implementation; before it only the dynamic linker has run.
__attribute__((constructor(101))) void hold_signals() noexcept {
  leat::tools::hold_stop_signals();
  leat::tools::hold_user_signal();
}

}  // namespace

int main(int argc, char** argv) { return leat::tools::run(argc, argv); }

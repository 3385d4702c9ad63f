// The leat command. Everything is in tools/run.cpp and one file per subcommand, where tests reach it.
#include "tools/subcommand.hpp"

int main(int argc, char** argv) { return leat::tools::run(argc, argv); }

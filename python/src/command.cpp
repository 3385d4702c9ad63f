// The command leat: in the wheel it is a part of the module, whose code it shares.
#include "module.hpp"

#include <cstdio>
#include <string>
#include <vector>

extern "C" {
// tools/command.cpp
int leat_command(int argc, char** argv);
// The archives that are linked in need not be position independent, as long as they refer to no variable of another library.
// Instead of that of the C library they refer to this one (leat_whole in tools/CMakeLists.txt).
extern std::FILE* leat_stderr;
std::FILE* leat_stderr = nullptr;
}

namespace pyleat {
namespace {

// 101: the first that is not reserved for the implementation.
__attribute__((constructor(101))) void find_stderr() noexcept { leat_stderr = stderr; }

// Bytes, since the name of a file need be no UTF-8.
int command(const nb::list& of) {
  std::vector<std::string> words;
  for (const nb::handle each : of) {
    const auto bytes = nb::cast<nb::bytes>(each);
    words.emplace_back(static_cast<const char*>(bytes.data()), bytes.size());
  }
  std::vector<char*> given;
  for (std::string& each : words) given.push_back(each.data());
  given.push_back(nullptr);
  return unlocked([&] { return leat_command(static_cast<int>(words.size()), given.data()); });
}

}  // namespace

void add_command(nb::module_& to) {
  to.def("_command", &command, nb::arg("words"), "Runs the command leat; called once, by pyleat/_command.py.");
}

}  // namespace pyleat

// What was thrown, in words, whatever it is: a function of the user may throw anything.
#pragma once

#include <string>

namespace leat {

/// Of the exception that is being handled: its type, and its what() where it has one. "std::out_of_range: vector::at", "int".
[[nodiscard]] std::string current_exception_text();

}  // namespace leat

// The command's flags, in the place of a program's options: messages of the library name options as values, and spell them so here.
#pragma once

#include "base/option_words.hpp"

namespace leat::tools {

/// For spell_options().
extern const option_spelling on_the_command_line;

}  // namespace leat::tools

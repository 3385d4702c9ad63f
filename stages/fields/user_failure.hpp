// A function of the user's that throws ends the run.
#pragma once

#include "stages/batch/field_model.hpp"

#include <string_view>

namespace leat::stages {

/// Within a catch clause: throws error{errc::callback} that names sample and field, with what is being handled nested in it.
///   what   "its function"
[[noreturn]] void throw_from_user(const decode_input& input, std::string_view field, std::string_view what);

}  // namespace leat::stages

// What launchers say of a process in its environment.
#pragma once

#include <leat/world.hpp>

#include <functional>
#include <string>

namespace leat::stages {

/// getenv(3), or what a test has in its place: null where there is no such variable.
using environment = std::function<const char*(const char* name)>;

/// As leat::find_world(). A variable that is set and empty is not there.
[[nodiscard]] found_world find_world_in(const environment& variables);

/// Throws error{errc::usage} where the numbers are none of a world's. `who` begins the message.
void check_world(const world& checked, const std::string& who);

}  // namespace leat::stages

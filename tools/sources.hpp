// The SOURCE... of a subcommand as a dataset.
#pragma once

#include "tools/interruption.hpp"

#include <leat/dataset.hpp>

#include <functional>
#include <string>
#include <vector>

namespace leat::tools {

/// leat::open(), saying on a terminal that it is at it. Opening cannot be stopped half-way: when `stop` is requested
/// meanwhile, `leave` has the last word, on another thread, and the process ends with the interruption's exit code.
/// Nothing has been written by then.
[[nodiscard]] dataset open_sources(const std::vector<std::string>& sources, interruption& stop,
                                   const std::function<void()>& leave);

}  // namespace leat::tools

// The ring's twin: a run loop and a few threads that call pread(2).
#pragma once

#include "io/ring/io_loop.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace leat::io {

/// Makes the loop and starts its threads.
///   why   it is this and not a ring, for the report
[[nodiscard]] std::unique_ptr<io_loop> make_preadv_loop(io_context& context, std::string why);

}  // namespace leat::io

// A run loop whose sleep is io_uring_enter(2): one thread, one ring, no lock.
#pragma once

#include "io/ring/io_loop.hpp"

#include <memory>

namespace leat::io {

/// What tests bend to reach the fallbacks that this kernel would not show.
struct ring_limits {
  unsigned files_max = 1024;       ///< open at a time; also bounded by RLIMIT_NOFILE
  bool direct_descriptors = true;  ///< off: ordinary ones, as before Linux 5.19
};

/// Makes the loop on its thread. Throws uring_refusal where there is no io_uring, and error.
[[nodiscard]] std::unique_ptr<io_loop> make_ring_loop(io_context& context, const ring_limits& limits = {});

}  // namespace leat::io

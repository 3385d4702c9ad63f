// Threads that cannot be started say which one that was, how many there are, and what to do.
#pragma once

#include <leat/error.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace leat {

/// Which thread: "decode thread", the number-th of `of`, from 0.
///   remedy   what else would do beside a higher limit: "or give fewer decode_threads"; may be empty
struct thread_name {
  std::string_view what;
  std::size_t number = 0;
  std::size_t of = 1;
  std::string_view remedy = {};
};

/// Threads of this process, and the most that its user or its container may have; 0 is not known, or no limit.
struct thread_counts {
  std::size_t here = 0;
  std::size_t of_user_max = 0;       ///< RLIMIT_NPROC
  std::size_t of_container_max = 0;  ///< pids.max
};
[[nodiscard]] thread_counts count_threads();

/// error{errc::limit} in those words.
[[nodiscard]] error cannot_start(const thread_name& which, const std::error_code& why, const thread_counts& counts);

/// A thread that runs `function`. Throws error{errc::limit} where none can be had.
template <class Function>
[[nodiscard]] std::thread start_thread(const thread_name& which, Function function) {
  try {
    return std::thread(std::move(function));
  } catch (const std::system_error& failure) {
    throw cannot_start(which, failure.code(), count_threads());
  }
}

}  // namespace leat

// The SOURCE... of a subcommand as a dataset.
#pragma once

#include "tools/interruption.hpp"

#include <leat/dataset.hpp>

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace leat::tools {

/// While it lives a stop request ends the process with the interruption's exit code, on another thread, after `leave` has had
/// the last word: for work that cannot be stopped half-way and has written nothing.
class leaving_at_once {
 public:
  leaving_at_once(interruption& stop, const std::function<void()>& leave);

 private:
  std::stop_callback<std::function<void()>> leaving_;
};

/// leat::open(), or leat::open_tokens() where `tokens` is given, or leat::open_npy() where `arrays` is, saying on a terminal
/// that it is at it. Opening is left at once.
[[nodiscard]] dataset open_sources(const std::vector<std::string>& sources, interruption& stop,
                                   const std::function<void()>& leave,
                                   const std::optional<token_options>& tokens = std::nullopt,
                                   const std::optional<npy_options>& arrays = std::nullopt);

}  // namespace leat::tools

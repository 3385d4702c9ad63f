// The SOURCE... of a subcommand as a dataset.
#pragma once

#include "datasets/raw_files.hpp"
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

/// What a command that loads says of a file that could be tokens.
[[nodiscard]] std::string advise_loading(dtype type);

/// leat::open(), or leat::open_tokens() where `tokens` is given, or leat::open_npy() where `arrays` is, saying on a terminal
/// that it is at it. Opening is left at once.
///   advice   what this command can do with a file that could be tokens
///   throws   as those, and error{errc::not_found} where there is no sample; error{errc::usage} where `tokens` has another
///            type than the files say that they have
[[nodiscard]] dataset open_sources(const std::vector<std::string>& sources, interruption& stop,
                                   const std::function<void()>& leave, datasets::token_advice advice,
                                   const std::optional<token_options>& tokens = std::nullopt,
                                   const std::optional<npy_options>& arrays = std::nullopt);

}  // namespace leat::tools

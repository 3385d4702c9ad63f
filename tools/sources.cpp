#include "tools/sources.hpp"

#include "io/text.hpp"
#include "tools/human.hpp"
#include "tools/status_line.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace leat::tools {

leaving_at_once::leaving_at_once(interruption& stop, const std::function<void()>& leave)
    : leaving_(stop.token(), [&stop, leave] {
        leave();
        std::fflush(nullptr);
        std::_Exit(stop.exit_code());  // The threads that look through the source are in the middle of it.
      }) {}

dataset open_sources(const std::vector<std::string>& sources, interruption& stop, const std::function<void()>& leave,
                     const std::optional<token_options>& tokens, const std::optional<npy_options>& arrays) {
  const auto began = std::chrono::steady_clock::now();
  const leaving_at_once leaving(stop, leave);
  const std::string what =
      one_line(sources.size() == 1 ? sources.front() : counted(sources.size(), "source", "sources"));
  const status_line shown([&](const terminal& screen, std::size_t columns) {
    const std::chrono::duration<double> so_far = std::chrono::steady_clock::now() - began;
    const std::string line = io::str_cat("  opening ", what);
    const std::string clock = io::str_cat("  ", clock_text(so_far.count()));
    const std::string shown_line = line.size() + clock.size() <= columns ? line : "  opening";
    return screen.dim(shown_line + clock);
  });
  if (tokens) return open_tokens(sources, *tokens);
  return arrays ? open_npy(sources, *arrays) : open(sources);
}

}  // namespace leat::tools

// What the benchmarks' command lines have in common.
#pragma once

#include "base/text.hpp"

#include <leat/error.hpp>

#include <charconv>
#include <cstdio>
#include <exception>
#include <string_view>
#include <system_error>

namespace leat::benchmarks {

/// Throws error{errc::usage}, naming the option, for what is no number above 0.
template <class Number>
[[nodiscard]] Number number(std::string_view option, std::string_view text) {
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value == 0) {
    throw error(errc::usage, str_cat(option, " is '", text, "'; give a number above 0"));
  }
  return value;
}

/// What a main() returns: 0, or 1 after saying why `body` threw.
template <class Body>
[[nodiscard]] int run_benchmark(const char* name, Body body) {
  try {
    body();
    return 0;
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "%s: %s\n", name, failed.what());
    return 1;
  }
}

}  // namespace leat::benchmarks

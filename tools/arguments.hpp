// Options whose mistakes are one line: which option, what was given, what would do.
#pragma once

#include <CLI/CLI.hpp>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::tools {

/// The SOURCE... of a subcommand; `more` ends what --help says of it.
CLI::Option* add_sources(CLI::App& app, std::vector<std::string>& sources, const std::string& more = {});

/// Throws the parser's error for an option's value.
[[noreturn]] void refuse(const std::string& option, std::string_view given, std::string_view wanted);

/// A whole number; throws by refuse() where it is none, or not within least..most.
std::uint64_t parse_number(const std::string& option, std::string_view given, std::uint64_t least, std::uint64_t most);

/// --option N
template <std::unsigned_integral Number>
CLI::Option* add_number(CLI::App& app, const std::string& option, Number& value, std::uint64_t least, std::string help,
                        std::uint64_t most = std::numeric_limits<Number>::max()) {
  return app
      .add_option_function<std::string>(
          option,
          [&value, option, least, most](const std::string& given) {
            value = static_cast<Number>(parse_number(option, given, least, most));
          },
          std::move(help))
      ->type_name("N");
}

/// --option SIZE
CLI::Option* add_bytes(CLI::App& app, const std::string& option, std::uint64_t& value, std::string help);
CLI::Option* add_bytes(CLI::App& app, const std::string& option, std::uint32_t& value, std::string help);

/// --option a|b|c
template <class Choice>
CLI::Option* add_choice(CLI::App& app, const std::string& option, Choice& value,
                        std::initializer_list<std::pair<const char*, Choice>> choices, std::string help) {
  std::string names;
  for (const auto& [name, meaning] : choices) names += (names.empty() ? "" : "|") + std::string(name);
  return app
      .add_option_function<std::string>(
          option,
          [&value, option, names, known = std::vector(choices)](const std::string& given) {
            for (const auto& [name, meaning] : known) {
              if (given == name) {
                value = meaning;
                return;
              }
            }
            refuse(option, given, names);
          },
          std::move(help))
      ->type_name(names);
}

/// --option FILE, or what else `type` says.
CLI::Option* add_text(CLI::App& app, const std::string& option, std::string& value, std::string type, std::string help);

}  // namespace leat::tools

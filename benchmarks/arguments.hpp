// What the benchmarks' command lines have in common.
#pragma once

#include "base/text.hpp"

#include <leat/error.hpp>

#include <charconv>
#include <concepts>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace leat::benchmarks {

/// Throws error{errc::usage}, naming the option, for what is no number above 0.
template <class Number>
[[nodiscard]] Number number(std::string_view option, std::string_view text) {
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || !(value > 0)) {
    throw error(errc::usage, str_cat(option, " is '", text, "'; give a number above 0"));
  }
  return value;
}

/// The parts of "warm,cold": at least one, which may be empty.
[[nodiscard]] std::vector<std::string_view> listed(std::string_view text);

/// An option that a benchmark knows. What it refers to has to outlive it.
class option {
 public:
  /// With a number above 0 as its value.
  template <class Number>
    requires(std::is_arithmetic_v<Number> && !std::same_as<Number, bool>)
  option(std::string_view name, Number& to)
      : option(name, [name, &to](std::string_view value) { to = number<Number>(name, value); }) {}
  /// With several of them: "1,2,4".
  template <class Number>
  option(std::string_view name, std::vector<Number>& to)
      : option(name, [name, &to](std::string_view value) {
          to.clear();
          for (const std::string_view each : listed(value)) to.push_back(number<Number>(name, each));
        }) {}
  /// With any text as its value. A name without dashes ("FOLDER") stands for the one word that may be there beside options and their
  /// values.
  option(std::string_view name, std::string& to) : option(name, [&to](std::string_view value) { to = value; }) {
    if (!name.starts_with('-')) word_ = &to;
  }
  option(std::string_view name, bool& is_given) : option(name, [&is_given] { is_given = true; }) {}
  template <std::invocable<std::string_view> Take>
  option(std::string_view name, Take take) : name_(name), has_value_(true), take_(std::move(take)) {}
  template <std::invocable Take>
  option(std::string_view name, Take take)
      : name_(name), take_([take = std::move(take)](std::string_view) { take(); }) {}

  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] bool is_word() const noexcept { return word_ != nullptr; }
  [[nodiscard]] bool has_value() const noexcept { return has_value_ && !is_word(); }
  [[nodiscard]] bool is(std::string_view argument) const noexcept {
    return is_word() ? word_->empty() && !argument.starts_with('-') : argument == name_;
  }
  /// Its value, or the word itself; ignored by an option without a value.
  void take(std::string_view value) const { take_(value); }

 private:
  std::string_view name_;
  bool has_value_ = false;
  const std::string* word_ = nullptr;
  std::function<void(std::string_view)> take_;
};

/// Reads what main() got.
///   throws   error{errc::usage}: an option that none of `known` is, with the names of those; one without its value
void read_options(int count, char** words, const std::vector<option>& known);

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

// The names of what is opened.
#pragma once

#include <leat/compiler.hpp>

#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

/// One path or address, or several: a text, a list of texts, or strings one after another. Each may be a brace list
/// (a-{000..127}.tar) or a glob.
class source_names {
 public:
  template <std::convertible_to<std::string_view> Text>
  source_names(const Text& one) : names_{std::string(std::string_view(one))} {}  // NOLINT(google-explicit-constructor)
  /// A std::filesystem::path.
  template <class Path>
    requires requires(const Path& one) {
      { one.native() } -> std::same_as<const std::string&>;
    }
  source_names(const Path& one) : names_{one.native()} {}  // NOLINT(google-explicit-constructor)
  source_names(std::initializer_list<std::string_view> several) : names_(several.begin(), several.end()) {}
  template <std::convertible_to<std::span<const std::string>> Strings>
  source_names(const Strings& several) {  // NOLINT(google-explicit-constructor)
    const std::span<const std::string> names = several;
    names_.assign(names.begin(), names.end());
  }

  [[nodiscard]] bool empty() const noexcept { return names_.empty(); }
  [[nodiscard]] const std::vector<std::string>& all() const noexcept { return names_; }

 private:
  std::vector<std::string> names_;
};

}  // namespace leat
#pragma GCC visibility pop

// Names of many files at once: brace lists as a shell writes them, and globs.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// a-{000..127}.tar, {train,val}-{0..3}.tar, {a..c}, {0..100..10}, nested; a backslash takes a brace's meaning away.
/// A range keeps the width of its wider end where one of them starts with 0. Text without braces comes back alone.
/// A range that counts down is refused, unless its step is negative: {3..0..-1}.
///   throws   error{errc::usage} a brace that is not closed, a range that counts down, more than 1,000,000 names
///   source   Bash Reference Manual 3.5.1; the braceexpand package that WebDataset uses
[[nodiscard]] std::vector<std::string> expand_braces(std::string_view pattern);

/// True where expand_braces would give more than the text itself.
[[nodiscard]] bool has_braces(std::string_view pattern);

/// Refuses addresses (s3://bucket/x, pipe:cat x) where a path is wanted.
///   throws   error{errc::unsupported} says how to get a file from there
void refuse_address(std::string_view source);

/// Files that a pattern of braces and glob(7) names: brace lists in their order, each glob's matches sorted by byte. A
/// path that exists is itself, whatever characters it holds; one without * ? [ is passed on, there or not.
///   throws   error{errc::not_found} a glob matches nothing; as expand_braces and refuse_address
[[nodiscard]] std::vector<std::string> expand_paths(std::string_view pattern);

/// The arguments of open({"a", "b"}).
[[nodiscard]] inline std::vector<std::string> as_strings(std::initializer_list<std::string_view> texts) {
  return {texts.begin(), texts.end()};
}

}  // namespace leat::datasets

// Names of many files at once: brace lists as a shell writes them, and globs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// a-{000..127}.tar, {train,val}-{0..3}.tar, {a..c}, {0..100..10}, nested; a backslash takes a brace's meaning away.
/// A range keeps the width of its wider end where one of them starts with 0. Text without braces comes back alone.
///   throws   error{errc::usage} a brace that is not closed, or more than 1,000,000 names
///   source   Bash Reference Manual 3.5.1; the braceexpand package that WebDataset uses
[[nodiscard]] std::vector<std::string> expand_braces(std::string_view pattern);

/// True where expand_braces would give more than the text itself.
[[nodiscard]] bool has_braces(std::string_view pattern);

/// Files that a pattern of braces and glob(7) names: brace lists in their order, each glob's matches sorted by byte. A
/// path that exists is itself, whatever characters it holds; one without * ? [ is passed on, there or not.
///   throws   error{errc::not_found} a glob matches nothing; as expand_braces
[[nodiscard]] std::vector<std::string> expand_paths(std::string_view pattern);

}  // namespace leat::datasets

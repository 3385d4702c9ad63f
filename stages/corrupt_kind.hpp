// What kind of thing a corrupt sample was, in a word or two: for counting them, where a journal has each reason.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace leat::stages {

/// Of a reason in words: the format that nobody reads by its name ("TIFF"), "unknown format", "unsupported", "empty",
/// "incomplete" (a member is missing), else "damaged".
[[nodiscard]] std::string_view corrupt_kind(std::string_view reason) noexcept;

/// Samples of each kind. Few: formats have names of a fixed number.
using corrupt_kinds = std::map<std::string, std::uint64_t, std::less<>>;

}  // namespace leat::stages

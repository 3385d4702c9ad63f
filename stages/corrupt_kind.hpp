// The kind of a corrupt sample in a word or two, for counting; the journal has the reason of each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace leat::stages {

/// The kind that a reason stands for: the name of a format that leat does not read ("TIFF"), "unknown format", "unsupported",
/// "empty", "incomplete" (a member is missing), else "damaged".
[[nodiscard]] std::string_view corrupt_kind(std::string_view reason) noexcept;

/// Samples of each kind. There are few kinds, since formats are a fixed list.
using corrupt_kinds = std::map<std::string, std::uint64_t, std::less<>>;

}  // namespace leat::stages

// Names that were misspelt.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace leat::io {

/// The one of `known` that was probably meant: fewer slips (letters missing, wrong, too many or exchanged) than a fourth of the
/// name's letters and one. Empty where none is near.
[[nodiscard]] std::string nearest_name(std::string_view given, std::span<const std::string> known);

/// "; did you mean 'jpg'?", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view given, std::span<const std::string> known);

}  // namespace leat::io

// Suggestions for misspelt names.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace leat {

/// The one of `known` that was probably meant: at most one letter and a quarter of the letters are missing, wrong, too many
/// or exchanged. Empty if there is none.
[[nodiscard]] std::string nearest_name(std::string_view given, std::span<const std::string> known);
/// The same with so many slips at most.
[[nodiscard]] std::string nearest_name(std::string_view given, std::span<const std::string> known,
                                       std::size_t slips_max);

/// "; did you mean 'jpg'?", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view given, std::span<const std::string> known);

}  // namespace leat

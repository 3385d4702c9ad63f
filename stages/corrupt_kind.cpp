#include "stages/corrupt_kind.hpp"

#include "stages/pixels/picture_format.hpp"

namespace leat::stages {

std::string_view corrupt_kind(std::string_view reason) noexcept {
  const auto says = [reason](std::string_view words) { return reason.find(words) != std::string_view::npos; };
  constexpr std::string_view refused = "unsupported format: ";
  if (const std::size_t at = reason.find(refused); at != std::string_view::npos) {
    const std::string_view rest = reason.substr(at + refused.size());
    for (std::size_t i = 1; i < pixels::format_count; ++i) {
      const std::string_view known = pixels::name(static_cast<pixels::format>(i));
      if (rest.starts_with(known) && rest.substr(known.size()).starts_with(";")) return known;
    }
    return "unknown format";
  }
  if (says("zero bytes")) return "empty";
  if (says("no field '") && says("in this sample")) return "incomplete";
  if (says("unsupported ") || says("more than pixels_max")) return "unsupported";
  return "damaged";
}

}  // namespace leat::stages

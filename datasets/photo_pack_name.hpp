// Which fields hold photo packs, by their names.
#pragma once

#include <string_view>

namespace leat::datasets {

/// "fjpg", "left.fjpeg" and the like (picture_names()). An index of packs is used for these only, so that a plan of memory knows by the
/// names which samples may be read in two pieces.
[[nodiscard]] constexpr bool is_photo_pack_name(std::string_view field_name) noexcept {
  const std::string_view last = field_name.substr(field_name.rfind('.') + 1);
  return last == "fjpg" || last == "fjpeg" || last == "fjpe";
}

}  // namespace leat::datasets

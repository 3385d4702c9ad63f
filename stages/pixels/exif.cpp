#include "stages/pixels/exif.hpp"

#include <cstddef>

namespace leat::pixels {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view exif_prefix = "Exif\0\0"sv;

int valid_or_upright(std::uint32_t value) noexcept { return value >= 1 && value <= 8 ? static_cast<int>(value) : 1; }

}  // namespace

std::optional<int> exif_orientation(byte_span tiff) noexcept {
  // Up to two prefixes are removed, as in Pillow: some writers add one to a structure that has one.
  for (int i = 0; i < 2 && stands_at(tiff, 0, exif_prefix); ++i) tiff = tiff.subspan(exif_prefix.size());
  if (tiff.size() < 8) return std::nullopt;
  const std::uint32_t order = big16(tiff, 0);
  if (order != 0x4949 && order != 0x4D4D) return std::nullopt;
  const bool little = order == 0x4949;
  const auto u16 = [&](std::size_t at) { return little ? little16(tiff, at) : big16(tiff, at); };
  const auto u32 = [&](std::size_t at) { return little ? little32(tiff, at) : big32(tiff, at); };
  if (u16(2) != 42) return std::nullopt;
  const std::size_t directory = u32(4);
  if (directory > tiff.size() - 2) return std::nullopt;
  const std::size_t entries = u16(directory);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + i * 12;
    if (at + 12 > tiff.size()) return std::nullopt;
    if (u16(at) != 0x0112) continue;
    if (u32(at + 4) != 1) return 1;
    switch (
        u16(at + 2)) {  // SHORT by the standard; BYTE, LONG and the signed types occur. What is negative is not in 1..8
      case 1:
      case 6:
        return valid_or_upright(byte_at(tiff, at + 8));
      case 3:
      case 8:
        return valid_or_upright(u16(at + 8));
      case 4:
      case 9:
        return valid_or_upright(u32(at + 8));
      default:
        return 1;
    }
  }
  return std::nullopt;
}

std::optional<int> xmp_orientation(std::string_view packet) noexcept {
  constexpr std::string_view tag = "tiff:Orientation";
  for (std::size_t at = packet.find(tag); at != std::string_view::npos; at = packet.find(tag, at + 1)) {
    std::string_view rest = packet.substr(at + tag.size());
    if (rest.starts_with("=\"")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with(">")) {
      rest.remove_prefix(1);
    } else {
      continue;
    }
    if (rest.empty() || rest.front() < '0' || rest.front() > '9') continue;
    return valid_or_upright(static_cast<std::uint32_t>(rest.front() - '0'));
  }
  return std::nullopt;
}

}  // namespace leat::pixels

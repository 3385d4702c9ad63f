// RGB to a PNG file in memory, by libpng.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::tools {

/// 8-bit RGB, rows from the top, no padding.
///   throws   error{errc::limit} where libpng refuses, with its words
[[nodiscard]] std::vector<std::byte> encode_png(std::span<const std::uint8_t> rgb, std::uint32_t width,
                                                std::uint32_t height);

}  // namespace leat::tools

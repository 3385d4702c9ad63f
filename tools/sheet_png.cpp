#include "tools/output_kind.hpp"
#include "tools/png_encode.hpp"
#include "tools/sheet.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace leat::tools {
namespace {

constexpr std::uint32_t gap = 4;
constexpr std::uint8_t paper = 24;
constexpr std::uint8_t missing = 60;
constexpr std::uint8_t cross = 110;

// A picture in the whole, its left upper corner at (x, y).
void place(rgb_picture& whole, const rgb_picture& part, std::uint32_t x, std::uint32_t y) {
  for (std::uint32_t line = 0; line < part.height; ++line) {
    std::memcpy(&whole.rgb[(std::size_t{y + line} * whole.width + x) * 3],
                &part.rgb[std::size_t{line} * part.width * 3], std::size_t{part.width} * 3);
  }
}

rgb_picture crossed_out(std::uint32_t width, std::uint32_t height) {
  rgb_picture cell{width, height, std::vector<std::uint8_t>(std::size_t{3} * width * height, missing)};
  const std::uint32_t steps = std::max(width, height);
  for (std::uint32_t i = 0; i < steps; ++i) {
    const auto x = static_cast<std::uint32_t>(std::uint64_t{i} * width / steps);
    const auto y = static_cast<std::uint32_t>(std::uint64_t{i} * height / steps);
    for (const std::uint32_t column : {x, width - 1 - x}) {
      std::memset(&cell.rgb[(std::size_t{y} * width + column) * 3], cross, 3);
    }
  }
  return cell;
}

}  // namespace

std::vector<std::byte> sheet_png(const sheet& shown) {
  std::uint32_t cell_width = 0;
  std::uint32_t cell_height = 0;
  for (const sheet_cell& cell : shown.cells) {
    if (!cell.seen) continue;
    cell_width = std::max(cell_width, cell.seen->width);
    cell_height = std::max(cell_height, cell.seen->height);
  }
  if (cell_width == 0) {
    throw error(errc::unsupported, "there is no picture to draw in the first batch; -o sheet.html shows what there is");
  }
  const auto count = static_cast<std::uint32_t>(shown.cells.size());
  const auto columns = static_cast<std::uint32_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const std::uint32_t rows = (count + columns - 1) / columns;
  rgb_picture whole;
  whole.width = columns * (cell_width + gap) + gap;
  whole.height = rows * (cell_height + gap) + gap;
  whole.rgb.assign(std::size_t{3} * whole.width * whole.height, paper);
  for (std::uint32_t i = 0; i < count; ++i) {
    const sheet_cell& cell = shown.cells[i];
    const std::uint32_t x = gap + i % columns * (cell_width + gap);
    const std::uint32_t y = gap + i / columns * (cell_height + gap);
    place(whole, cell.seen ? *cell.seen : crossed_out(cell_width, cell_height), x, y);
  }
  std::vector<std::byte> file = encode_png(whole.rgb, whole.width, whole.height);
  const auto chunk = std::as_bytes(std::span(png_software_chunk()));
  file.insert(file.begin() + std::ptrdiff_t{png_header_bytes}, chunk.begin(), chunk.end());
  return file;
}

}  // namespace leat::tools

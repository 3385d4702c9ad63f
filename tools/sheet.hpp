// A contact sheet: what a batch looks like to a person. show.cpp fills it in, sheet_html.cpp and sheet_png.cpp draw it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leat::tools {

/// 8-bit RGB, rows from the top, no padding.
struct rgb_picture {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> rgb;
};

/// The file a picture came from.
///   file            as it is; empty where there is none, or it is too large for a page
///   media_type      of `file`
///   small           a JPEG of at most original_side_max pixels a side, where `file` is large or left out
///   width, height   in pixels, of the original, not of the smaller one
struct original_picture {
  std::vector<std::byte> file;
  std::string media_type;
  std::vector<std::byte> small = {};
  int width = 0;
  int height = 0;
};

/// The part of the original that the trainer sees, in its pixels; it may reach outside, where there is padding.
struct crop_box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

/// One sample's picture, or what there is instead.
///   seen         by the trainer, back from the tensor; unset when the sample is not in the batch
///   outline      of what the trainer sees, where it is no box: corners in the original's pixels
///   decimation   by how much the decoder shrank the original: 1, 2, 4 or 8
///   problem      why there is no picture
///   texts        the sample's other fields, by name
///   drawings     of some of these, by name
struct sheet_cell {
  std::uint64_t sample = 0;
  std::string name = {};
  std::string label = {};
  std::optional<rgb_picture> seen = {};
  original_picture original = {};
  std::optional<crop_box> box = {};
  std::vector<std::array<double, 2>> outline = {};
  bool flipped = false;
  int decimation = 1;
  std::string problem = {};
  std::vector<std::pair<std::string, std::string>> texts = {};
  std::vector<std::pair<std::string, rgb_picture>> drawings = {};
};

struct sheet {
  std::string title;
  std::vector<std::string> facts;  ///< how the batch was made, each a few words
  std::vector<sheet_cell> cells;
};

/// A page is not larger, and a page of more than 64 cells has so much for each 64, up to the second: mails and browsers take it.
/// Thousands of cells may need more for their words alone.
inline constexpr std::size_t page_bytes_max = 4'000'000;
inline constexpr std::size_t page_bytes_most = 8'000'000;
inline constexpr int original_side_max = 360;

/// One page that needs nothing beside it: pictures are data: addresses, all text is escaped. What the trainer sees is there
/// pixel by pixel (PNG), and originals as they are, as far as page_bytes_max allows; else originals are the small ones,
/// then what the trainer sees is JPEG, of less and less quality, and smaller at last. The page says which. Long texts are cut
/// where there are many.
[[nodiscard]] std::string sheet_html(const sheet& shown);

/// The pictures as the trainer sees them in a plain grid; a missing one is a grey cell with a cross.
///   throws   error{errc::unsupported} where no cell has a picture
[[nodiscard]] std::vector<std::byte> sheet_png(const sheet& shown);

/// Text as HTML shows it, in attributes too. What is not UTF-8 becomes U+FFFD.
[[nodiscard]] std::string html_text(std::string_view text);

}  // namespace leat::tools

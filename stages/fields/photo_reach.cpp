#include "stages/fields/photo_reach.hpp"

#include "stages/pixels/decimation.hpp"
#include "stages/pixels/jpeg_scan.hpp"
#include "stages/pixels/orientation.hpp"
#include "stages/pixels/photo_pack_layout.hpp"
#include "stages/pixels/picture_info.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <vector>

namespace leat::stages {

std::optional<datasets::photo_place> place_of_photo(std::span<const std::byte> pack) {
  if (!pixels::begins_as_photo_pack(pack)) return std::nullopt;
  const auto view = pixels::view_photo_pack(pack);
  const auto info = pixels::peek(pack);
  if (!view || !info) return std::nullopt;
  int v = 1;
  try {
    const pixels::jpeg_head head = pixels::parse_jpeg_head(view->jpeg_head);
    for (int i = 0; i < head.components; ++i) v = std::max<int>(v, head.component_of[i].v);
  } catch (const error&) {
    return std::nullopt;
  }
  datasets::photo_place place{.bytes = view->head.pack_bytes,
                              .head_bytes = static_cast<std::uint32_t>(pack.size() - view->rows.size()),
                              .width = static_cast<std::uint16_t>(info->width),
                              .height = static_cast<std::uint16_t>(info->height),
                              .mcu_rows = static_cast<std::uint16_t>(view->head.mcu_rows),
                              .mcu_height = static_cast<std::uint8_t>(8 * v),
                              .orientation = static_cast<std::uint8_t>(info->orientation)};
  // A grey photograph's sampling factors say nothing of its MCUs, but libjpeg goes by them.
  if (!place.is_sound()) return std::nullopt;
  std::vector<std::uint32_t> ends(view->head.mcu_rows);
  for (std::uint32_t y = 0; y < ends.size(); ++y) ends[y] = view->row_end(y);
  place.mark(ends);
  return place;
}

datasets::photo_range photo_bytes_wanted(const datasets::photo_place& photo, const pixels::pipeline& steps,
                                         const pixels::draw_key& key, const pixels::decode_options& options) noexcept {
  const datasets::photo_range all{photo.head_bytes, photo.bytes};
  if (std::int64_t{photo.width} * photo.height > options.pixels_max) return all;
  const pixels::picture_info info{.what = pixels::format::photo_pack,
                                  .width = photo.width,
                                  .height = photo.height,
                                  .orientation = options.exif_orientation ? photo.orientation : 1};
  const pixels::orientation turn(info.orientation);
  const auto [width, height] = turn.size(info.width, info.height);
  const pixels::geometry drawn = steps.compile(width, height, key);
  const int by = options.decimate ? pixels::decimation_of(drawn) : 1;
  const pixels::rectangle upright = pixels::resampler(drawn, pixels::decimated_by(by, info)).region();
  if (upright.width == 0) return {photo.head_bytes, photo.head_bytes};
  const pixels::rectangle region =
      turn.stored(upright, pixels::shrunk(info.width, by), pixels::shrunk(info.height, by));
  // Fancy upsampling looks at a line on either side; libjpeg takes its lines by groups, as many as the chroma is coarser.
  const int row_lines = photo.mcu_height / by;
  const int group_lines = photo.mcu_height / 8;
  const int first = std::max(region.y - 1, 0) / row_lines;
  const int last = std::min((region.y + region.height - 1 + group_lines) / row_lines, photo.mcu_rows - 1);
  return photo.bytes_of({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last) + 1});
}

}  // namespace leat::stages

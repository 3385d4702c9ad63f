#include "tools/thumbnails.hpp"

#include "datasets/model/model.hpp"
#include "stages/pixels/geometry.hpp"
#include "stages/pixels/picture_info.hpp"
#include "tools/jpeg_encode.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <span>

namespace leat::tools {

thumbnailer::thumbnailer(std::size_t host_bytes_max)
    : budget_(pixels::scratch_budget::sample_bytes_max(host_bytes_max) + pixels::scratch_arena::base_bytes,
              host_bytes_max),
      decoder_(budget_) {}

std::optional<thumbnail> thumbnailer::of(const dataset& samples, std::uint64_t sample) {
  const datasets::dataset_model& model = *samples.model();
  datasets::part_list parts;
  model.parts(sample, parts);
  const auto* const picture = std::find_if(parts.begin(), parts.end(), [&](const datasets::part& each) {
    return model.fields()[each.field].kind == field_kind::picture;
  });
  if (picture == parts.end()) return std::nullopt;
  std::vector<std::byte> file;
  try {
    file = samples.read(sample, model.fields()[picture->field].name);
  } catch (const error&) {
    return std::nullopt;  // The page says what is wrong with it.
  }
  const auto info = pixels::peek(file, pixels::look_for::size);
  if (!info) return std::nullopt;
  const int side = std::max(info->width, info->height);
  const auto scaled = [side](int length) {
    const auto pixels = std::int64_t{length} * std::min(side, thumbnail_side_max) / side;
    return static_cast<int>(std::max<std::int64_t>(pixels, 1));
  };
  thumbnail made{.jpeg = {}, .width = scaled(info->width), .height = scaled(info->height)};
  const pixels::geometry whole{.box = {0, 0, info->width, info->height},
                               .scaled_width = made.width,
                               .scaled_height = made.height,
                               .out_width = made.width,
                               .out_height = made.height};
  std::vector<std::byte> rgb(store_.row_bytes(made.height, made.width));
  if (!decoder_.decode(file, whole, store_, {.accept_cut = true, .decimate = true}, rgb.data(), nullptr)) {
    return std::nullopt;
  }
  encode_jpeg({reinterpret_cast<const std::uint8_t*>(rgb.data()), rgb.size()}, static_cast<std::uint32_t>(made.width),
              static_cast<std::uint32_t>(made.height), {.quality = 72, .chroma = jpeg_chroma::yuv420}, made.jpeg);
  return made;
}

}  // namespace leat::tools

// What a photo pack says of itself before a row of it is decoded, and what an index of packs says of a shard: is whatever was made up refused
// or within its bounds?
//
// An input is a pack, or an index's content. What is read of it has to lie within it and agree with itself, else this stops and libFuzzer
// keeps the input. No row is decoded, so that it runs 5 times as often as picture_fuzz does.
// scripts/fuzz runs it.
#include "datasets/formats/tar/photo_places.hpp"
#include "stages/fields/photo_reach.hpp"
#include "stages/pixels/photo_pack_layout.hpp"
#include "stages/pixels/picture_info.hpp"

#include <cstdio>
#include <cstdlib>
#include <span>

namespace leat {
namespace {

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::abort();
}

// Rows are somewhere behind the head and before the end, whichever are asked for.
void look_at_place(const datasets::photo_place& place) {
  if (!place.is_sound()) stop("a place that is not sound was given");
  for (std::uint32_t row = 0; row < place.mcu_rows; row += place.rows_per_mark()) {
    const datasets::photo_range bytes = place.bytes_of({row, row + 1});
    if (bytes.first < place.head_bytes || bytes.first > bytes.end || bytes.end > place.bytes) {
      stop("a row lies outside of the pack");
    }
  }
}

void look_at_pack(std::span<const std::byte> pack) {
  const auto view = pixels::view_photo_pack(pack);
  if (!view) return;
  std::uint32_t begin = 0;
  std::size_t sum = 0;
  for (std::uint32_t row = 0; row < view->head.mcu_rows; ++row) {
    const std::uint32_t end = view->row_end(row);
    if (end < begin || end > view->rows.size()) stop("rows are not one behind the other");
    for (const std::byte each : view->row(row)) sum += static_cast<std::size_t>(each);
    begin = end;
  }
  const auto info = pixels::peek(pack);
  const auto place = stages::place_of_photo(pack);
  if (!place) return;
  if (!info || place->width != info->width || place->height != info->height) stop("its size is said in two ways");
  if (place->bytes > pack.size() || sum > 255 * pack.size()) stop("it is longer than it is");
  look_at_place(*place);
}

}  // namespace
}  // namespace leat

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (leat::pixels::begins_as_photo_pack(bytes)) {
    leat::look_at_pack(bytes);
  } else if (const auto places = leat::datasets::parse_photo_places(bytes)) {
    for (const leat::datasets::photo_place& place : *places) leat::look_at_place(place);
  }
  return 0;
}

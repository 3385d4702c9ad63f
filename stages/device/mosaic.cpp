#include "stages/device/mosaic.hpp"

#include "base/random.hpp"
#include "base/text.hpp"
#include "stages/device/mosaic_operation.hpp"
#include "stages/pixels/placed_picture.hpp"

#include <leat/error.hpp>

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace leat::stages {
namespace {

constexpr std::string_view tiles_name = "mix.tiles";
constexpr std::string_view center_name = "mix.center";
constexpr std::string_view shown_boxes_name = "mix.shown";
constexpr std::size_t partners = 3;
// kornia's start_ratio_range.
constexpr double center_least = 0.3;
constexpr double center_most = 0.7;

bool has_pixels(const output_spec& of) noexcept { return of.axes && !of.is_slot(); }

pixel_planes planes_of(const output_spec& of) {
  const dimensions& shape = of.row_shape;
  if (!of.axes) {
    return {
        .height = static_cast<int>(shape[0]), .width = static_cast<int>(shape[1]), .pixel_bytes = size_bytes(of.type)};
  }
  const bool planar = *of.axes == layout::nchw;
  const auto channels = static_cast<std::size_t>(shape[planar ? 0 : 2]);
  return {.planes = planar ? channels : 1,
          .height = static_cast<int>(shape[planar ? 1 : 0]),
          .width = static_cast<int>(shape[planar ? 2 : 1]),
          .pixel_bytes = planar ? size_bytes(of.type) : channels * size_bytes(of.type)};
}

std::string tiles_of_output(const output_spec& of) { return of.name + ".tiles"; }

// Of an output that a device makes: what says which tiles its rows have.
output_spec make_on_device(output_spec& of) {
  const pixel_planes planes = planes_of(of);
  const std::size_t unit_bytes = size_bytes(of.type);
  const tiled_batch how{.planes = static_cast<std::uint32_t>(planes.planes),
                        .height = static_cast<std::uint32_t>(planes.height),
                        .width = static_cast<std::uint32_t>(planes.width),
                        .units = static_cast<std::uint32_t>(planes.pixel_bytes / unit_bytes),
                        .unit_bytes = static_cast<std::uint32_t>(unit_bytes)};
  of.made_by = std::make_shared<mosaic_operation>(std::move(of.made_by), of.made_from.size() + 1, of.row_bytes(), how);
  of.made_from.push_back(tiles_of_output(of));
  return {
      .name = tiles_of_output(of), .type = dtype::u8, .row_shape = {static_cast<std::int64_t>(sizeof(picture_tiles))}};
}

[[noreturn]] void refuse(std::string_view name, std::string_view why) {
  throw error(errc::usage, str_cat("mosaic of '", name, "': ", why, ", or leave mosaic out"));
}

void check_follower(const field_program& program) {
  const tiling_facet* const rows = program.facets().tiling;
  const std::string& name = program.outputs().front().name;
  const std::string why = rows == nullptr
                              ? str_cat("only masks, depths and boxes go along with tiles; leave '", name, "' out")
                              : rows->why_not_tiled();
  if (why.empty()) return;
  throw error(errc::usage, str_cat("field '", name, "' follows the picture '", program.facets().following->leader(),
                                   "', whose rows become mosaics: ", why, ", or leave mosaic out"));
}

// Into the row, by what is left in its tile; whether it is kept.
bool move_box(const tiled_boxes& rules, const mosaic_tile& tile, std::array<float, 4>& box) noexcept {
  const auto dx = static_cast<float>(tile.dx);
  const auto dy = static_cast<float>(tile.dy);
  const auto left = static_cast<float>(tile.at.left);
  const auto top = static_cast<float>(tile.at.top);
  const auto right = static_cast<float>(tile.at.right);
  const auto bottom = static_cast<float>(tile.at.bottom);
  const std::array<float, 4> whole{box[0] - dx, box[1] - dy, box[2] - dx, box[3] - dy};
  box = {std::max(whole[0], left), std::max(whole[1], top), std::min(whole[2], right), std::min(whole[3], bottom)};
  if (!(box[2] > box[0] && box[3] > box[1])) return false;
  const auto area_of = [](const std::array<float, 4>& of) {
    return (double{of[2]} - double{of[0]}) * (double{of[3]} - double{of[1]});
  };
  const double area = area_of(box);
  if (area < rules.area_min || area < rules.visible_min * area_of(whole)) return false;
  if (!rules.center_inside) return true;
  const double x = 0.5 * (double{whole[0]} + double{whole[2]});
  const double y = 0.5 * (double{whole[1]} + double{whole[3]});
  return x > left && x < right && y > top && y < bottom;
}

// Each copy is twice as long as the one before.
void repeat_pixel(const std::byte* pixel, std::size_t pixel_bytes, std::byte* to, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  std::memcpy(to, pixel, pixel_bytes);
  for (std::size_t made = pixel_bytes; made < bytes; made *= 2) {
    std::memcpy(to + made, to, std::min(made, bytes - made));
  }
}

// Bytes [begin, end) of numbers.
void fill_up(dtype type, std::int64_t number, std::byte* to, std::size_t begin, std::size_t end) noexcept {
  const auto real = static_cast<float>(number);
  for (std::size_t at = begin; at < end; at += size_bytes(type)) {
    if (type == dtype::f32) {
      std::memcpy(to + at, &real, sizeof real);
    } else {
      std::memcpy(to + at, &number, sizeof number);
    }
  }
}

}  // namespace

bool is_mosaic(const batch_mix& how) noexcept { return how.what == batch_mix::kind::mosaic; }

drawn_mosaic draw_mosaic(double probability, std::uint64_t seed, std::uint32_t epoch, std::uint64_t draw, int height,
                         int width) noexcept {
  random_draws draws(seed, epoch, draw, "mosaic");
  if (draws.uniform() >= probability) return {.x = width, .y = height};
  const double x = draws.uniform(center_least, center_most);
  const double y = draws.uniform(center_least, center_most);
  return {.x = static_cast<int>(x * width), .y = static_cast<int>(y * height), .is_one = true};
}

void draw_circle(std::uint64_t seed, std::uint32_t epoch, std::uint64_t batch, std::span<std::uint32_t> rows) noexcept {
  std::iota(rows.begin(), rows.end(), 0U);
  random_draws draws(seed, epoch, batch, "mosaic.circle");
  shuffle(rows, draws);
}

pixel_box shown_box(const pixels::placed_picture& of) noexcept {
  const int width = of.geometry.row_width;
  const int height = of.geometry.row_height;
  pixel_box shown{width, height, 0, 0};
  for (int y = 0; y < height; ++y) {
    const pixels::pixel_run run = pixels::shown_in_line(of, y);
    if (run.begin >= run.end) continue;
    shown = {std::min(shown.left, run.begin), std::min(shown.top, y), std::max(shown.right, run.end), y + 1};
  }
  return shown.bottom > 0 ? shown : pixel_box{0, 0, width, height};
}

std::array<mosaic_tile, 4> tiles_around(int x, int y, const std::array<pixel_box, 4>& shown, int height,
                                        int width) noexcept {
  std::array<mosaic_tile, 4> tiles;
  for (std::size_t k = 0; k < tiles.size(); ++k) {
    const bool right = k % 2 == 1;
    const bool below = k / 2 == 1;
    tiles[k] = {.at = {right ? x : 0, below ? y : 0, right ? width : x, below ? height : y},
                .dx = (right ? shown[k].left : shown[k].right) - x,
                .dy = (below ? shown[k].top : shown[k].bottom) - y};
  }
  return tiles;
}

void write_tile(const pixel_planes& how, const mosaic_tile& tile, std::byte* to, const std::byte* from) noexcept {
  const pixel_box& at = tile.at;
  if (at.left >= at.right || at.top >= at.bottom) return;
  const std::size_t pixel = how.pixel_bytes;
  const std::size_t line = static_cast<std::size_t>(how.width) * pixel;
  const std::size_t plane = static_cast<std::size_t>(how.height) * line;
  const auto at_pixel = [&](int x) { return static_cast<std::size_t>(x) * pixel; };
  // The pixels that `from` has.
  const int begin = std::clamp(-tile.dx, at.left, at.right);
  const int end = std::clamp(how.width - tile.dx, begin, at.right);
  const auto write_line = [&](std::byte* to_plane, const std::byte* from_plane, int y) {
    const int from_y = y + tile.dy;
    const int there = from_y < 0 ? how.height - 1 : from_y >= how.height ? 0 : from_y;
    std::byte* const row = to_plane + static_cast<std::size_t>(y) * line;
    const std::byte* const source = from_plane + static_cast<std::size_t>(there) * line;
    if (begin < end) {
      std::memmove(row + at_pixel(begin), source + at_pixel(begin + tile.dx), at_pixel(end - begin));
    }
    const std::byte* const right_edge = source + at_pixel(how.width - 1);
    repeat_pixel(right_edge, pixel, row + at_pixel(at.left), at_pixel(begin - at.left));
    repeat_pixel(source, pixel, row + at_pixel(end), at_pixel(at.right - end));
  };
  for (std::size_t p = 0; p < how.planes; ++p) {
    // Within a row no line is read after it was written.
    if (tile.dy >= 0) {
      for (int y = at.top; y < at.bottom; ++y) write_line(to + p * plane, from + p * plane, y);
    } else {
      for (int y = at.bottom; y-- > at.top;) write_line(to + p * plane, from + p * plane, y);
    }
  }
}

void keep_further_boxes(std::span<const std::unique_ptr<field_program>> programs) {
  for (const auto& program : programs) {
    if (tiling_facet* const rows = program->facets().tiling) rows->keep_further_boxes();
  }
}

void add_mosaic_outputs(std::vector<output_spec>& outputs, std::span<const std::unique_ptr<field_program>> programs,
                        const batch_mix& how) {
  if (!(how.alpha > 0 && how.alpha <= 1)) {
    throw error(errc::usage, str_cat("mosaic with a probability of ", how.alpha, "; give more than 0 and at most 1"));
  }
  const output_spec* first = nullptr;
  std::vector<output_spec> tiles;
  for (output_spec& each : outputs) {
    if (each.unmixed && !each.axes)
      refuse(each.name, "several pictures in one output are no tiles; give each a field of its own");
    if (!has_pixels(each)) continue;
    if (each.made_by != nullptr) tiles.push_back(make_on_device(each));
    if (first == nullptr) first = &each;
    const pixel_planes one = planes_of(*first);
    const pixel_planes other = planes_of(each);
    if (one.height == other.height && one.width == other.width) continue;
    throw error(errc::usage, str_cat("mosaic needs pictures of one size; '", first->name, "' has ", one.height, " x ",
                                     one.width, " and '", each.name, "' ", other.height, " x ", other.width));
  }
  if (first == nullptr) throw error(errc::usage, "mosaic without a picture among the fields");
  for (const auto& program : programs) {
    if (program->facets().following != nullptr) check_follower(*program);
  }
  outputs.push_back({.name = std::string(tiles_name), .type = dtype::i32, .row_shape = {4}});
  const auto pictures = std::count_if(outputs.begin(), outputs.end(), [](const auto& each) { return each.picture; });
  outputs.push_back({.name = std::string(center_name), .type = dtype::i32, .row_shape = {2}});
  static_assert(sizeof(pixel_box) == 4 * sizeof(std::int32_t));
  outputs.push_back(
      {.name = std::string(shown_boxes_name), .type = dtype::i32, .row_shape = {pictures, 4}, .hidden = true});
  for (output_spec& each : tiles) outputs.push_back(std::move(each));
}

std::optional<std::size_t> output_of_shown(const batch_layout& layout) noexcept {
  return layout.find(shown_boxes_name);
}

bool is_tiled_ragged(const field_program& program, std::size_t output) noexcept {
  const tiling_facet* const rows = program.facets().tiling;
  const output_spec& of = program.outputs()[output];
  return rows != nullptr && rows->boxes_of_tiles() && of.has_offsets() && !of.hidden;
}

mosaic_maker::mosaic_maker(const batch_layout& layout, std::span<const std::unique_ptr<field_program>> programs,
                           double probability, std::uint64_t seed, std::size_t threads)
    : layout_(layout), probability_(probability), seed_(seed), threads_(threads) {
  const auto places = layout_.outputs();
  tiles_output_ = layout_.find(tiles_name).value();
  center_output_ = layout_.find(center_name).value();
  shown_output_ = layout_.find(shown_boxes_name).value();
  std::size_t output = 0;
  for (const auto& program : programs) {
    const std::size_t begin = output;
    output += program->outputs().size();
    for (std::size_t o = begin; o < output; ++o) {
      const output_spec& spec = places[o].spec;
      if (!has_pixels(spec)) continue;
      pixels_of pixels{.output = o, .picture = places[o].picture_index, .how = planes_of(spec)};
      height_ = pixels.how.height;
      width_ = pixels.how.width;
      if (spec.made_by == nullptr) {
        pixels_.push_back(pixels);
      } else {
        pixels.output = layout_.find(tiles_of_output(spec)).value();
        made_.push_back(pixels);
      }
    }
    const tiling_facet* const rows = program->facets().tiling;
    if (rows == nullptr || program->facets().following == nullptr) continue;
    const std::size_t picture = places[layout_.find(program->facets().following->leader()).value()].picture_index;
    const std::optional<tiled_boxes> rules = rows->boxes_of_tiles();
    if (!rules) {
      pixels_.push_back({.output = begin, .picture = picture, .how = planes_of(places[begin].spec)});
      continue;
    }
    boxes_of all{.outputs = {}, .count = {}, .further = 0, .picture = picture, .rules = *rules};
    for (std::size_t o = begin; o < output; ++o) {
      if (rules->most != 0 ? !places[o].hidden : is_tiled_ragged(*program, o - begin)) all.outputs.push_back(o);
    }
    if (rules->most != 0) {
      all.count = all.outputs.back();
      all.outputs.pop_back();
      all.further = *all.count + 1;
      assert(places[all.further].hidden && places[all.further].spec.has_offsets());
    }
    boxes_.push_back(std::move(all));
  }
  const std::size_t rows = layout_.rows_max();
  for (thread_state& own : threads_) {
    own.circle.reserve(rows);
    own.rows.reserve(rows);
    if (!boxes_.empty()) {
      own.first_box.reserve(rows);
      own.box_count.reserve(rows);
    }
    own.saved.resize(scratch_bytes(layout_, programs));
  }
}

std::size_t mosaic_maker::scratch_bytes(const batch_layout& layout,
                                        std::span<const std::unique_ptr<field_program>> programs) noexcept {
  const auto places = layout.outputs();
  const auto first = std::find_if(places.begin(), places.end(), [](const auto& each) { return has_pixels(each.spec); });
  if (first == places.end()) return 0;
  const pixel_planes one = planes_of(first->spec);
  std::size_t largest = 0;
  for (const batch_layout::output_place& place : places) {
    const bool may_follow = !place.spec.ragged && place.spec.row_shape == dimensions{one.height, one.width};
    if (place.spec.made_by != nullptr) continue;
    if (has_pixels(place.spec) || may_follow) largest = std::max(largest, place.row_bytes);
  }
  std::size_t bytes = std::min<std::size_t>(partners, layout.rows_max()) * largest;
  for (const auto& program : programs) {
    const tiling_facet* const rows = program->facets().tiling;
    if (rows == nullptr || rows->boxes_of_tiles().value_or(tiled_boxes()).most == 0) continue;
    std::size_t row_bytes = 0;
    for (const output_spec& each : program->outputs()) row_bytes += each.hidden ? 0 : each.row_bytes();
    bytes = std::max(bytes, layout.rows_max() * row_bytes);
  }
  return bytes;
}

std::array<mosaic_tile, 4> mosaic_maker::tiles_of(const batch::state& batch, const thread_state& own, std::size_t row,
                                                  std::size_t picture) const {
  const batch_layout::output_place& place = layout_.outputs()[shown_output_];
  const row_of& of = own.rows[row];
  std::array<pixel_box, 4> shown;
  for (std::size_t k = 0; k < shown.size(); ++k) {
    std::memcpy(&shown[k],
                batch.memory.data() + place.offset + of.tiles[k] * place.row_bytes + picture * sizeof shown[k],
                sizeof shown[k]);
  }
  return tiles_around(of.drawn.x, of.drawn.y, shown, height_, width_);
}

void mosaic_maker::make(batch::state& batch, std::size_t thread, const std::atomic<bool>& stop) {
  thread_state& own = threads_[thread];
  const std::uint32_t rows = batch.rows;
  if (rows == 0) return;
  own.circle.resize(rows);
  draw_circle(seed_, batch.epoch, batch.index, own.circle);
  own.rows.resize(rows);
  for (std::uint32_t i = 0; i < rows; ++i) {
    const std::uint32_t r = own.circle[i];
    row_of& row = own.rows[r];
    row.drawn = draw_mosaic(probability_, seed_, batch.picks[r].epoch, batch.picks[r].draw, height_, width_);
    for (std::uint32_t k = 0; k < row.tiles.size(); ++k) {
      row.tiles[k] = row.drawn.is_one ? own.circle[(i + k) % rows] : r;
    }
  }
  for (const pixels_of& each : pixels_) move_pixels(each, batch, own, stop);
  for (const pixels_of& each : made_) write_tiles(each, batch, own);
  for (const boxes_of& each : boxes_) move_boxes(each, batch, own);
  std::byte* const base = batch.memory.data();
  for (std::uint32_t r = 0; r < rows; ++r) {
    const row_of& row = own.rows[r];
    std::array<std::int32_t, 4> tiles{};
    std::copy(row.tiles.begin(), row.tiles.end(), tiles.begin());
    const std::array<std::int32_t, 2> center{row.drawn.x, row.drawn.y};
    std::memcpy(base + layout_.outputs()[tiles_output_].offset + r * sizeof tiles, tiles.data(), sizeof tiles);
    std::memcpy(base + layout_.outputs()[center_output_].offset + r * sizeof center, center.data(), sizeof center);
    if (!row.drawn.is_one) continue;
    // batch::placement() refuses it.
    const std::size_t pictures = layout_.picture_count();
    for (std::size_t p = 0; p < pictures; ++p) batch.geometries[r * pictures + p] = {};
  }
}

// Along the circle: the partners of a row are made after it, or are the first ones, which are saved.
void mosaic_maker::move_pixels(const pixels_of& which, batch::state& batch, thread_state& own,
                               const std::atomic<bool>& stop) const {
  const batch_layout::output_place& place = layout_.outputs()[which.output];
  std::byte* const tensor = batch.memory.data() + place.offset;
  const std::size_t row_bytes = place.row_bytes;
  const std::size_t rows = batch.rows;
  assert(std::min(partners, rows) * row_bytes <= own.saved.size());
  for (std::size_t i = 0; i < std::min(partners, rows); ++i) {
    std::memcpy(own.saved.data() + i * row_bytes, tensor + own.circle[i] * row_bytes, row_bytes);
  }
  for (std::size_t i = 0; i < rows && !stop.load(std::memory_order_relaxed); ++i) {
    const std::uint32_t r = own.circle[i];
    if (!own.rows[r].drawn.is_one) continue;
    const std::array<mosaic_tile, 4> tiles = tiles_of(batch, own, r, which.picture);
    std::byte* const to = tensor + r * row_bytes;
    write_tile(which.how, tiles[0], to, to);
    for (std::size_t k = 1; k < tiles.size(); ++k) {
      const std::size_t at = (i + k) % rows;
      const std::byte* const from =
          i + k >= rows ? own.saved.data() + at * row_bytes : tensor + own.circle[at] * row_bytes;
      write_tile(which.how, tiles[k], to, from);
    }
  }
}

void mosaic_maker::write_tiles(const pixels_of& which, batch::state& batch, const thread_state& own) const {
  const batch_layout::output_place& place = layout_.outputs()[which.output];
  assert(place.row_bytes == sizeof(picture_tiles));
  for (std::size_t r = 0; r < batch.rows; ++r) {
    const row_of& row = own.rows[r];
    picture_tiles made{.row = {}, .dx = {}, .dy = {}, .x = row.drawn.x, .y = row.drawn.y, .padding = {}};
    std::copy(row.tiles.begin(), row.tiles.end(), made.row);
    if (row.drawn.is_one) {
      const std::array<mosaic_tile, 4> tiles = tiles_of(batch, own, r, which.picture);
      for (std::size_t k = 0; k < tiles.size(); ++k) {
        made.dx[k] = tiles[k].dx;
        made.dy[k] = tiles[k].dy;
      }
    }
    std::memcpy(batch.memory.data() + place.offset + r * sizeof made, &made, sizeof made);
  }
}

// Boxes, or numbers of them.
//   from, to   elements as they were, and the output
//   in_further   where its element is of a box behind those of a padded row
struct mosaic_maker::moved_list {
  const batch_layout::output_place* place = nullptr;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes = 0;  // of each
  std::size_t in_further = 0;
};

// Ragged ones are kept at the end of their buffer, padded ones in the thread's memory.
absl::InlinedVector<mosaic_maker::moved_list, 6> mosaic_maker::lists_as_they_were(const boxes_of& which,
                                                                                  batch::state& batch,
                                                                                  thread_state& own) const {
  std::byte* const base = batch.memory.data();
  const std::size_t rows = batch.rows;
  const std::size_t most = which.rules.most;
  absl::InlinedVector<moved_list, 6> lists;
  std::size_t saved = 0;
  for (const std::size_t output : which.outputs) {
    const batch_layout::output_place& place = layout_.outputs()[output];
    moved_list list{.place = &place};
    if (most == 0) {
      const batch::state::ragged& buffer = batch.raggeds[place.ragged_index];
      assert(buffer.capacity >= mosaic_ragged_times * buffer.own_bytes);
      list.to = base + buffer.offset;
      std::byte* const end = list.to + buffer.capacity - buffer.own_bytes;
      std::memmove(end, list.to, buffer.own_bytes);
      list.from = end;
      list.bytes = place.spec.row_bytes();
    } else {
      assert(saved + rows * place.row_bytes <= own.saved.size());
      list.to = base + place.offset;
      list.from = own.saved.data() + saved;
      std::memcpy(own.saved.data() + saved, list.to, rows * place.row_bytes);
      list.bytes = place.row_bytes / most;
      saved += rows * place.row_bytes;
    }
    if (!lists.empty()) list.in_further = lists.back().in_further + lists.back().bytes;
    lists.push_back(list);
  }
  own.first_box.resize(rows);
  own.box_count.resize(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    std::array<std::int64_t, 2> read{};
    if (which.count) {
      std::memcpy(&read[1], base + layout_.outputs()[*which.count].offset + r * sizeof read[1], sizeof read[1]);
      read[0] = static_cast<std::int64_t>(r * most);
      read[1] += read[0];
    } else {
      std::memcpy(read.data(), base + lists.front().place->offset + r * sizeof read[0], sizeof read);
    }
    own.first_box[r] = static_cast<std::size_t>(read[0]);
    own.box_count[r] = static_cast<std::size_t>(read[1] - read[0]);
  }
  return lists;
}

// The boxes of padded rows that had no room in them.
struct mosaic_maker::further_boxes {
  const std::byte* bytes = nullptr;
  const std::byte* offsets = nullptr;
  std::size_t each = 0;  // bytes

  struct of_row {
    const std::byte* first = nullptr;
    std::size_t count = 0;
  };
  [[nodiscard]] of_row of(std::size_t row) const noexcept {
    if (bytes == nullptr) return {};
    std::array<std::int64_t, 2> read{};
    std::memcpy(read.data(), offsets + row * sizeof read[0], sizeof read);
    return {.first = bytes + read[0], .count = static_cast<std::size_t>(read[1] - read[0]) / each};
  }
};

void mosaic_maker::move_boxes(const boxes_of& which, batch::state& batch, thread_state& own) const {
  const absl::InlinedVector<moved_list, 6> lists = lists_as_they_were(which, batch, own);
  std::byte* const base = batch.memory.data();
  const std::size_t rows = batch.rows;
  const std::size_t most = which.rules.most;
  further_boxes further;
  if (which.count) {
    const batch_layout::output_place& place = layout_.outputs()[which.further];
    further = {.bytes = base + batch.raggeds[place.ragged_index].offset,
               .offsets = base + place.offset,
               .each = lists.back().in_further + lists.back().bytes};
  }
  std::size_t at = 0;
  std::size_t longest = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    if (most != 0) at = r * most;
    const std::size_t first = at;
    const row_of& row = own.rows[r];
    const std::array<mosaic_tile, 4> tiles = tiles_of(batch, own, r, which.picture);
    for (std::size_t k = 0; k < (row.drawn.is_one ? tiles.size() : 1); ++k) {
      const std::size_t begin = own.first_box[row.tiles[k]];
      const std::size_t count = own.box_count[row.tiles[k]];
      const further_boxes::of_row behind = further.of(row.tiles[k]);
      for (std::size_t i = 0; i < count + behind.count && (most == 0 || at < first + most); ++i) {
        const auto element = [&](const moved_list& list) {
          return i < count ? list.from + (begin + i) * list.bytes
                           : behind.first + (i - count) * further.each + list.in_further;
        };
        std::array<float, 4> box{};
        std::memcpy(box.data(), element(lists.front()), sizeof box);
        if (row.drawn.is_one && !move_box(which.rules, tiles[k], box)) continue;
        std::memcpy(lists.front().to + at * sizeof box, box.data(), sizeof box);
        for (std::size_t l = 1; l < lists.size(); ++l) {
          std::memcpy(lists[l].to + at * lists[l].bytes, element(lists[l]), lists[l].bytes);
        }
        ++at;
      }
    }
    longest = std::max(longest, at - first);
    if (which.count) {
      for (const moved_list& list : lists)
        fill_up(list.place->spec.type, which.rules.fill, list.to, at * list.bytes, (first + most) * list.bytes);
      const auto count = static_cast<std::int64_t>(at - first);
      std::memcpy(base + layout_.outputs()[*which.count].offset + r * sizeof count, &count, sizeof count);
      continue;
    }
    const auto end = static_cast<std::int64_t>(at);
    for (const moved_list& list : lists) {
      batch.ragged_bytes[r * batch.raggeds.size() + list.place->ragged_index] = (at - first) * list.bytes;
      std::memcpy(base + list.place->offset + (r + 1) * sizeof end, &end, sizeof end);
    }
  }
  if (which.count) {  // What was behind the rows is in no batch.
    batch::state::ragged& buffer = batch.raggeds[layout_.outputs()[which.further].ragged_index];
    buffer.bytes = buffer.own_bytes = buffer.room_bytes = buffer.longest = 0;
    return;
  }
  for (const moved_list& list : lists) {
    batch::state::ragged& buffer = batch.raggeds[list.place->ragged_index];
    buffer.bytes = buffer.own_bytes = at * list.bytes;
    buffer.longest = longest * list.bytes;
    buffer.room_bytes = rows * buffer.longest;
  }
}

}  // namespace leat::stages

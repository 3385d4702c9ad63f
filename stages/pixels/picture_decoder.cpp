#include "stages/pixels/picture_decoder.hpp"

#include "base/text.hpp"
#include "stages/pixels/array_reader.hpp"
#include "stages/pixels/bmp_reader.hpp"
#include "stages/pixels/decimation.hpp"
#include "stages/pixels/gif_reader.hpp"
#include "stages/pixels/jpeg_reader.hpp"
#include "stages/pixels/orientation.hpp"
#include "stages/pixels/picture_format.hpp"
#include "stages/pixels/png_reader.hpp"
#include "stages/pixels/resample.hpp"
#include "stages/pixels/row_writer.hpp"
#include "stages/pixels/shared_crops.hpp"
#include "stages/pixels/tiff.hpp"
#include "stages/pixels/webp_reader.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace leat::pixels {
namespace {

// A fused warp has it in its matrix.
//   passes   all of the row's, whoever does them
bool leaves_flip(const decode_options& options, const geometry& drawn, const recipe& passes) noexcept {
  return options.leave_flip && !drawn.warp && !passes.sees_sides();
}

geometry as_stored(geometry drawn, bool leave_flip) noexcept {
  if (leave_flip) drawn.flip = false;
  return drawn;
}

int choose_decimation(const geometry& drawn, const picture_reader& reader, const decode_options& options) noexcept {
  return options.decimate && reader.decimates() ? decimation_of(drawn) : 1;
}

// The smallest rectangle that holds both; one of no width is nothing.
rectangle hull(const rectangle& a, const rectangle& b) noexcept {
  if (a.width == 0) return b;
  if (b.width == 0) return a;
  const int x = std::min(a.x, b.x);
  const int y = std::min(a.y, b.y);
  return {x, y, std::max(a.x + a.width, b.x + b.width) - x, std::max(a.y + a.height, b.y + b.height) - y};
}

// One row of a batch that is made from the picture.
struct drawn_row {
  geometry drawn;
  const recipe* passes;
  const store* how;
  std::byte* row;
};

// Rows that are cut from one resampled picture; or one row, which is that.
struct shared_rows {
  geometry drawn;  // of the picture
  layout order = layout::nchw;
  std::size_t first = 0;  // row
  std::size_t count = 0;
};

std::size_t rgb_bytes(const rectangle& of) noexcept {
  return static_cast<std::size_t>(of.width) * 3 * static_cast<std::size_t>(of.height);
}

// What rows are made of: pixels of the decimated picture, upright and as they are stored.
struct planned_rows {
  rectangle upright;
  rectangle stored;
  std::size_t bytes = 0;  // of scratch, without the reader's
};

// What a picture that is read several times may keep: coefficients of 0.7 megapixels with 4:2:0. It is a part of what image_field reserves for
// a picture.
constexpr std::size_t kept_bytes_max = std::size_t{2} << 20;

outcome<picture_info> look_at_array(std::span<const std::byte> encoded, const array_pixels& pixels) {
  if (encoded.size() != pixels.bytes()) {
    return stages::corrupt(str_cat("holds ", encoded.size(), " bytes where a picture of ", pixels.height, " x ",
                                   pixels.width, " pixels has ", pixels.bytes()));
  }
  return picture_info{.width = pixels.width, .height = pixels.height, .channels = pixels.channels};
}

}  // namespace

struct picture_decoder::state {
  /// The picture being decoded, and its reader.
  struct source {
    std::span<const std::byte> encoded;
    const picture_info& info;
    picture_reader& reader;
    reading how;
  };

  explicit state(scratch_budget& budget)
      : arena(budget),
        jpeg(arena),
        png(arena),
        webp(arena),
        bmp(arena),
        gif(arena),
        tiff(make_tiff_reader(arena)),
        array(arena) {}

  scratch_arena arena;
  jpeg_reader jpeg;
  png_reader png;
  webp_reader webp;
  bmp_reader bmp;
  gif_reader gif;
  std::unique_ptr<picture_reader> tiff;  // null where it is not read
  array_reader array;
  std::vector<recipe> recipes;        // of the rows that are wanted
  std::vector<recipe> of_host;        // what of them is done here, where that is not all
  std::vector<row_writer> writers;    // of the rows that are being made
  std::vector<shared_rows> shared;    // what they are cut from
  std::vector<std::size_t> cut_from;  // of each row: which of `shared`
  std::vector<line_cut> cuts;         // of `shared`, one after the other
  std::vector<line_cutter> cutters;   // for each of `shared`
  std::vector<resampler> resamplers;  // likewise
  std::vector<drawn_row> alike;       // rows that are decimated alike

  /// The reader of a format that peek() accepts.
  [[nodiscard]] picture_reader& reader_of(format what) noexcept {
    switch (what) {
      case format::png:
        return png;
      case format::webp:
        return webp;
      case format::bmp:
        return bmp;
      case format::gif:
        return gif;
      case format::tiff:
        return *tiff;
      default:
        break;
    }
    assert(what == format::jpeg || what == format::photo_pack);
    return jpeg;
  }

  /// Draws what is behind the geometry, for one of the rows that are wanted. Returns what of it is done here.
  const recipe& draw_colour(const pipeline& steps, const draw_key& key, const decode_options& options,
                            std::size_t row) {
    recipe& all = recipes[row];
    steps.draw_colour(key, all);
    if (!options.leave_colour) return all;
    recipe& here = of_host[row];
    here.key = key;
    here.count = all.host_count();
    here.erased.reset();
    std::copy_n(all.passes.begin(), here.count, here.passes.begin());
    return here;
  }
  void want_rows(std::size_t count) {
    if (recipes.size() >= count) return;
    recipes.resize(count);
    of_host.resize(count);
    writers.reserve(count);
    shared.reserve(count);
    cut_from.reserve(count);
    cuts.reserve(count);
    cutters.reserve(count);
    resamplers.reserve(count);
  }

  /// Reads the headers as far as a decision needs them.
  outcome<picture_info> look(std::span<const std::byte> encoded, const decode_options& options,
                             const std::atomic<bool>* stop) {
    const look_for what = options.exif_orientation ? look_for::orientation : look_for::size;
    outcome<picture_info> info = options.array ? look_at_array(encoded, *options.array) : peek(encoded, what);
    if (!info) return info;
    if (std::int64_t{info->width} * info->height > options.pixels_max) {
      const stages::failure refused =
          stages::unsupported(std::to_string(info->width) + " x " + std::to_string(info->height) +
                              " pixels are more than pixels_max = " + std::to_string(options.pixels_max));
      if (options.array) return refused;
      // A damaged header may claim any size, so compare the claim with the bytes first.
      const outcome<void> opened =
          reader_of(info->what)
              .open(encoded, *info, {.stop = stop, .library_only = true, .accept_cut = options.accept_cut});
      const bool is_said =
          opened.kind() == stages::outcome_kind::corrupt || opened.kind() == stages::outcome_kind::cancelled;
      if (is_said) return opened.error();
      return refused;
    }
    return info;
  }

  [[nodiscard]] source source_of(std::span<const std::byte> encoded, const picture_info& info,
                                 const decode_options& options, const std::atomic<bool>* stop) noexcept {
    return {encoded,
            info,
            options.array ? static_cast<picture_reader&>(array) : reader_of(info.what),
            {.stop = stop,
             .library_only = !options.own_huffman,
             .accept_cut = options.accept_cut,
             .background = options.background,
             .array = options.array,
             .plain = options.plain_huffman}};
  }

  /// Reserves what the reader and `more` bytes besides need, and begins to decode `region` (stored, decimated pixels).
  outcome<void> start(const source& from, const rectangle& region, int decimation, std::size_t more) {
    outcome<void> opened = from.reader.open(from.encoded, from.info, from.how);
    if (!opened) return opened;
    // keep_for_passes() has reserved for all passes.
    if (from.how.kept.empty()) {
      outcome<void> reserved = reserve(from, region, decimation, more);
      if (!reserved) return reserved;
    }
    return from.reader.start(region, decimation);
  }

  /// Reserves scratch. A picture that needs more than the arena can have is held packed, in all that the arena can have. This
  /// depends on sizes only, so that every run decides alike, and the pixels are the same.
  outcome<void> reserve(const source& from, const rectangle& region, int decimation, std::size_t more) {
    outcome<void> reserved = arena.reserve(from.reader.scratch_bytes(region, decimation) + more);
    if (reserved.kind() != stages::outcome_kind::over_budget) return reserved;
    stages::failure refused = reserved.error();
    if (!from.reader.remedy().empty()) refused.reason.append("; ").append(from.reader.remedy());
    const std::size_t packed = from.reader.scratch_bytes_packed(region, decimation);
    const std::size_t most = arena.most();
    // With the memory that the run had, packing might do: what it has delivered once is not left out later.
    if (const std::size_t had = arena.most_of_run(); had > most && packed != 0 && packed + more < had) {
      refused = arena.less_than_run(from.reader.scratch_bytes(region, decimation) + more);
    }
    if (packed == 0 || packed + more >= most) return refused;
    reserved = arena.reserve(most);
    if (!reserved) return reserved;
    refused.reason += "; less may do, since coefficients are packed, and how small shows only as they are read";
    from.reader.pack(most - packed - more, std::move(refused));
    return reserved;
  }

  /// Calls line(pointer) for every line of the region.
  template <class Line>
  outcome<void> read_all(const source& from, const rectangle& region, Line&& line) {
    for (int y = 0; y < region.height;) {
      const outcome<lines> some = from.reader.read();
      if (!some) return some.error();
      for (int i = 0; i < some->count; ++i, ++y) line(some->first + static_cast<std::size_t>(i) * some->stride);
    }
    return {};
  }

  ///   all     of the row; `passes`: those of them that are done here
  outcome<decoded> fill_one(const source& from, const geometry& drawn, const recipe& all, const recipe& passes,
                            const store& how, const decode_options& options, std::byte* row);
  /// Returns whether the reader's fast path had given up.
  outcome<bool> fill(source from, std::span<const drawn_row> rows, int decimation);
  outcome<void> fill_once(const source& from, std::span<const drawn_row> rows, int decimation);
  outcome<void> fill_turned(const source& from, const planned_rows& planned, int decimation);
  planned_rows plan(const picture_info& info, std::span<const drawn_row> rows, int decimation);
  [[nodiscard]] bool choose(std::span<picture_row> rows, int decimation);
  [[nodiscard]] bool keep_for_passes(source& from, std::span<picture_row> rows);
  void share_rows(std::span<const drawn_row> rows);
  void cut_rows(std::span<const drawn_row> rows);
  [[nodiscard]] bool start_rows();
  void push(const std::uint8_t* line, int y, const rectangle& region);
};

namespace {

stages::failure out_of_scratch() {
  // A wrong sum in one of the scratch_bytes(): our bug, but no reason to take the whole run down.
  assert(false && "more scratch was taken than was reserved");
  return stages::unsupported("more scratch memory was needed than had been reserved");
}

}  // namespace

outcome<decoded> picture_decoder::state::fill_one(const source& from, const geometry& drawn, const recipe& all,
                                                  const recipe& passes, const store& how, const decode_options& options,
                                                  std::byte* row) {
  const int decimation = choose_decimation(drawn, from.reader, options);
  const bool leave = leaves_flip(options, drawn, all);
  const drawn_row only{as_stored(drawn, leave), &passes, &how, row};
  const outcome<bool> again = fill(from, {&only, 1}, decimation);
  if (!again) return again.error();
  return decoded{drawn, from.info, decimation, leave && drawn.flip, *again};
}

// A picture that the reader's fast path finds damaged is decoded again, from the start, by the library, whose verdict counts.
outcome<bool> picture_decoder::state::fill(source from, std::span<const drawn_row> rows, int decimation) {
  outcome<void> filled = fill_once(from, rows, decimation);
  const bool again = !filled && from.reader.gave_up();
  if (again) {
    from.how.library_only = true;
    from.how.kept = {};
    arena.end();
    arena.begin();
    filled = fill_once(from, rows, decimation);
  }
  if (!filled) return filled.error();
  return again;
}

// Each row goes to the first of those that it can share the resampling with.
void picture_decoder::state::share_rows(std::span<const drawn_row> rows) {
  shared.clear();
  cut_from.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const layout order = writers[i].line_order();
    std::size_t at = 0;
    for (; at < shared.size(); ++at) {
      if (shared[at].order != order) continue;
      const std::optional<geometry> both = crop_of_both(shared[at].drawn, rows[i].drawn);
      if (!both) continue;
      shared[at].drawn = *both;
      break;
    }
    if (at == shared.size()) shared.push_back({.drawn = rows[i].drawn, .order = order, .first = i});
    ++shared[at].count;
    cut_from.push_back(at);
  }
}

// After share_rows().
void picture_decoder::state::cut_rows(std::span<const drawn_row> rows) {
  cuts.clear();
  cutters.clear();
  cuts.reserve(rows.size());  // cutters keep their addresses
  cutters.reserve(shared.size());
  for (std::size_t at = 0; at < shared.size(); ++at) {
    const geometry& whole = shared[at].drawn;
    const std::size_t begin = cuts.size();
    for (std::size_t i = shared[at].first; i < rows.size() && cuts.size() < begin + shared[at].count; ++i) {
      if (cut_from[i] != at) continue;
      const geometry& part = rows[i].drawn;
      cuts.push_back({.to = &writers[i],
                      .x = static_cast<int>(part.crop_x - whole.crop_x),
                      .y = static_cast<int>(part.crop_y - whole.crop_y),
                      .width = part.out_width,
                      .height = part.out_height,
                      .mirrored = part.flip});
    }
    cutters.emplace_back(whole.out_width, shared[at].order, std::span(cuts).subspan(begin));
  }
}

// Where the rows' pixels lie, and what making them takes besides reading.
planned_rows picture_decoder::state::plan(const picture_info& info, std::span<const drawn_row> rows, int decimation) {
  writers.clear();
  writers.reserve(rows.size());  // resamplers keep their addresses
  for (const drawn_row& each : rows) {
    row_writer& writer =
        writers.emplace_back(*each.how, each.passes, each.drawn.out_height, each.drawn.out_width, each.row);
    if (each.drawn.warp) writer.take_planar();
  }
  share_rows(rows);
  cut_rows(rows);
  resamplers.clear();
  planned_rows planned;
  for (const row_writer& each : writers) planned.bytes += each.scratch_bytes();
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const resampler& to = resamplers.emplace_back(shared[i].drawn, decimated_by(decimation, info));
    planned.upright = hull(planned.upright, to.region());
    planned.bytes += to.scratch_bytes();
    if (shared[i].count > 1) planned.bytes += cutters[i].scratch_bytes();
  }
  const orientation turn(info.orientation);
  planned.stored = planned.upright;
  if (planned.upright.width == 0 || turn.upright()) return planned;
  planned.stored = turn.stored(planned.upright, shrunk(info.width, decimation), shrunk(info.height, decimation));
  planned.bytes += scratch_arena::rounded(rgb_bytes(planned.stored));
  planned.bytes += scratch_arena::rounded(rgb_line_bytes(planned.upright.width));
  return planned;
}

// Passes lines directly from the decoder to the rows.
outcome<void> picture_decoder::state::fill_once(const source& from, std::span<const drawn_row> rows, int decimation) {
  const planned_rows planned = plan(from.info, rows, decimation);
  const rectangle& region = planned.stored;
  if (region.width == 0) {  // nothing of the picture is in any row
    outcome<void> reserved = from.how.kept.empty() ? arena.reserve(planned.bytes) : outcome<void>();
    if (!reserved) return reserved;
    if (!start_rows()) return out_of_scratch();
  } else if (!orientation(from.info.orientation).upright()) {
    outcome<void> filled = fill_turned(from, planned, decimation);
    if (!filled) return filled;
  } else {
    outcome<void> started = start(from, region, decimation, planned.bytes);
    if (!started) return started;
    if (!start_rows()) return out_of_scratch();
    int y = region.y;
    outcome<void> read = read_all(from, region, [&](const std::uint8_t* line) { push(line, y++, region); });
    if (!read) return read;
  }
  for (resampler& to : resamplers) to.finish();
  for (row_writer& to : writers) {
    outcome<void> finished = to.finish();
    if (!finished) return finished;
  }
  return {};
}

// Decodes the crop to memory first, then reads it in another order.
outcome<void> picture_decoder::state::fill_turned(const source& from, const planned_rows& planned, int decimation) {
  const orientation turn(from.info.orientation);
  const rectangle& upright = planned.upright;
  const rectangle& region = planned.stored;
  const std::size_t stride = static_cast<std::size_t>(region.width) * 3;
  outcome<void> started = start(from, region, decimation, planned.bytes);
  if (!started) return started;
  auto* const part = arena.take_array<std::uint8_t>(rgb_bytes(region));
  auto* const line = arena.take_array<std::uint8_t>(rgb_line_bytes(upright.width));
  if (part == nullptr || line == nullptr || !start_rows()) return out_of_scratch();

  std::uint8_t* next = part;
  outcome<void> read = read_all(from, region, [&](const std::uint8_t* stored) {
    std::memcpy(next, stored, stride);
    next += stride;
  });
  if (!read) return read;
  for (int y = 0; y < upright.height; ++y) {
    turn.line(part, region, y, line);
    push(line, upright.y + y, upright);
  }
  return {};
}

bool picture_decoder::state::start_rows() {
  for (row_writer& each : writers) {
    if (!each.start(arena)) return false;
  }
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const bool is_cut = shared[i].count > 1;
    if (is_cut && !cutters[i].start(arena)) return false;
    line_sink& to = is_cut ? static_cast<line_sink&>(cutters[i]) : writers[shared[i].first];
    if (!resamplers[i].start(arena, shared[i].order, to)) return false;
  }
  return true;
}

// Line y of the region, to those that need it.
void picture_decoder::state::push(const std::uint8_t* line, int y, const rectangle& region) {
  for (resampler& to : resamplers) {
    const rectangle& wanted = to.region();
    if (y < wanted.y || y >= wanted.y + wanted.height) continue;
    to.push(line + static_cast<std::size_t>(wanted.x - region.x) * 3);
  }
}

warp_matrix decoded::from_row() const noexcept {
  return colour == nullptr ? drawn.from_row() : followed(drawn.from_row(), colour->from_row());
}

picture_decoder::picture_decoder(scratch_budget& budget) : state_(std::make_unique<state>(budget)) {}
picture_decoder::~picture_decoder() = default;

outcome<decoded> picture_decoder::decode(std::span<const std::byte> encoded, const pipeline& steps, const draw_key& key,
                                         const store& how, const decode_options& options, std::byte* row,
                                         const std::atomic<bool>* stop) {
  const arena_use use(state_->arena);
  const outcome<picture_info> info = state_->look(encoded, options, stop);
  if (!info) return info.error();
  const auto [width, height] = orientation(info->orientation).size(info->width, info->height);
  const geometry drawn = steps.compile(width, height, key, info->orientation);
  state_->want_rows(1);
  const recipe& passes = state_->draw_colour(steps, key, options, 0);
  outcome<decoded> made = state_->fill_one(state_->source_of(encoded, *info, options, stop), drawn,
                                           state_->recipes.front(), passes, how, options, row);
  if (!made) return made;
  made->colour = &state_->recipes.front();
  made->colour_done = passes.count;
  return made;
}

outcome<decoded> picture_decoder::decode(std::span<const std::byte> encoded, const geometry& drawn, const store& how,
                                         const decode_options& options, std::byte* row, const std::atomic<bool>* stop,
                                         const recipe* passes) {
  static const recipe none;
  const arena_use use(state_->arena);
  const outcome<picture_info> info = state_->look(encoded, options, stop);
  if (!info) return info.error();
  const auto [width, height] = orientation(info->orientation).size(info->width, info->height);
  if (drawn.box.x < 0 || drawn.box.y < 0 || drawn.box.width < 1 || drawn.box.height < 1 ||
      drawn.box.width > width - drawn.box.x || drawn.box.height > height - drawn.box.y || drawn.scaled_width < 1 ||
      drawn.scaled_height < 1 || drawn.out_width < 1 || drawn.out_height < 1) {
    return stages::unsupported("a crop that is not inside the picture of " + std::to_string(width) + " x " +
                               std::to_string(height) + " pixels");
  }
  const recipe& all = passes != nullptr ? *passes : none;
  return state_->fill_one(state_->source_of(encoded, *info, options, stop), drawn, all, all, how, options, row);
}

std::optional<undecoded_photo> picture_decoder::look_at_photo(std::span<const std::byte> encoded, const pipeline& steps,
                                                              const draw_key& key, const decode_options& options,
                                                              const std::atomic<bool>* stop) {
  if (format_of(encoded) != format::photo_pack) return std::nullopt;
  const arena_use use(state_->arena);
  const outcome<picture_info> info = state_->look(encoded, options, stop);
  if (!info || !state_->jpeg.open(encoded, *info, {.stop = stop})) return std::nullopt;
  const auto [width, height] = orientation(info->orientation).size(info->width, info->height);
  const geometry drawn = steps.compile(width, height, key, info->orientation);
  if (drawn.is_of_host()) return std::nullopt;
  const int decimation = choose_decimation(drawn, state_->jpeg, options);
  std::optional<photo_layout> layout = state_->jpeg.layout(decimation);
  if (!layout) return std::nullopt;
  return undecoded_photo{std::move(*layout), *info, as_stored(drawn, options.leave_flip), decimation,
                         options.leave_flip && drawn.flip};
}

outcome<void> picture_decoder::decode_rows(std::span<const std::byte> encoded, std::span<picture_row> rows,
                                           const std::atomic<bool>* stop) {
  assert(!rows.empty());
  const arena_use use(state_->arena);
  const decode_options& options = rows.front().options;
  const outcome<picture_info> info = state_->look(encoded, options, stop);
  if (!info) return info.error();
  const auto [width, height] = orientation(info->orientation).size(info->width, info->height);
  state::source from = state_->source_of(encoded, *info, options, stop);
  state_->want_rows(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    picture_row& each = rows[i];
    each.drawn = each.steps->compile(width, height, each.key, info->orientation);
    each.info = *info;
    each.colour_done = state_->draw_colour(*each.steps, each.key, each.options, i).count;
    each.colour = &state_->recipes[i];
    each.decimation = choose_decimation(each.drawn, from.reader, each.options);
  }
  bool keeping = state_->keep_for_passes(from, rows);
  bool first = true;
  for (const int by : {1, 2, 4, 8}) {
    if (!state_->choose(rows, by)) continue;
    const bool again = !std::exchange(first, false);
    from.how.again = again && keeping;
    if (again && !keeping) {  // each pass takes its scratch anew, like a sample of its own
      state_->arena.end();
      state_->arena.begin();
    }
    const outcome<bool> filled = state_->fill(from, state_->alike, by);
    if (!filled) return filled.error();
    if (*filled) {  // what was kept is gone
      keeping = false;
      from.how.kept = {};
    }
  }
  return {};
}

// The rows of one decimation. False where there are none.
bool picture_decoder::state::choose(std::span<picture_row> rows, int decimation) {
  alike.clear();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    picture_row& each = rows[i];
    if (each.decimation != decimation) continue;
    const bool leave = leaves_flip(each.options, each.drawn, recipes[i]);
    each.to_mirror = leave && each.drawn.flip;
    const recipe* const here = each.options.leave_colour ? &of_host[i] : each.colour;
    alike.push_back({as_stored(each.drawn, leave), here, each.how, each.row});
  }
  return !alike.empty();
}

// Where rows are decimated differently, the picture is read several times. What is costly to decode is kept between them, if it is small;
// then the scratch of all passes is reserved at once. By sizes alone.
bool picture_decoder::state::keep_for_passes(source& from, std::span<picture_row> rows) {
  const int one = rows.front().decimation;
  const bool several =
      std::any_of(rows.begin(), rows.end(), [one](const picture_row& each) { return each.decimation != one; });
  if (!several || !from.reader.open(from.encoded, from.info, from.how)) return false;
  std::size_t bytes = 0;
  int line = from.info.height;
  for (const int by : {1, 2, 4, 8}) {
    if (!choose(rows, by)) continue;
    const planned_rows planned = plan(from.info, alike, by);
    bytes += scratch_arena::base_bytes + planned.bytes;  // headers are read again
    if (planned.stored.width == 0) continue;
    bytes += from.reader.scratch_bytes(planned.stored, by);
    line = std::min(line, planned.stored.y * by);
  }
  const std::size_t kept = from.reader.kept_bytes(line);
  if (kept != 0 && kept <= kept_bytes_max && arena.reserve(bytes + scratch_arena::rounded(kept))) {
    auto* const memory = arena.take_array<std::byte>(kept);
    if (memory != nullptr) {
      from.how.kept = {memory, kept};
      from.how.kept_line = line;
      return true;
    }
  }
  arena.end();
  arena.begin();
  return false;
}

outcome<whole_picture> picture_decoder::decode_whole(std::span<const std::byte> encoded, const decode_options& options,
                                                     const std::atomic<bool>* stop) {
  const arena_use use(state_->arena);
  const outcome<picture_info> info = state_->look(encoded, options, stop);
  if (!info) return info.error();
  const orientation turn(info->orientation);
  const auto [width, height] = turn.size(info->width, info->height);
  const rectangle region{0, 0, info->width, info->height};
  state::source from = state_->source_of(encoded, *info, options, stop);
  from.how.library_only = true;  // this function is seldom used, and is simpler without a second pass
  outcome<void> started = state_->start(from, region, 1, 0);
  if (!started) return started.error();

  const std::size_t stored_stride = static_cast<std::size_t>(info->width) * 3;
  std::vector<std::byte> stored(stored_stride * static_cast<std::size_t>(info->height));
  std::byte* next = stored.data();
  outcome<void> read = state_->read_all(from, region, [&](const std::uint8_t* line) {
    std::memcpy(next, line, stored_stride);
    next += stored_stride;
  });
  if (!read) return read.error();

  whole_picture whole{*info, width, height, std::move(stored)};
  if (turn.upright()) return whole;
  std::vector<std::byte> turned(whole.rgb.size());
  for (int y = 0; y < height; ++y) {
    turn.line(reinterpret_cast<const std::uint8_t*>(whole.rgb.data()), region, y,
              reinterpret_cast<std::uint8_t*>(turned.data()) +
                  static_cast<std::size_t>(y) * static_cast<std::size_t>(width) * 3);
  }
  whole.rgb = std::move(turned);
  return whole;
}

outcome<std::size_t> picture_decoder::scratch_bytes_whole(std::span<const std::byte> encoded,
                                                          const decode_options& options) {
  const arena_use use(state_->arena);
  const outcome<picture_info> info = state_->look(encoded, options, nullptr);
  if (!info) return info.error();
  const state::source from = state_->source_of(encoded, *info, options, nullptr);
  outcome<void> opened = from.reader.open(encoded, *info, from.how);
  if (!opened) return opened.error();
  return state_->arena.used() + from.reader.scratch_bytes({0, 0, info->width, info->height}, 1);
}

}  // namespace leat::pixels

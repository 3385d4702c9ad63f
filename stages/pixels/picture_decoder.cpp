#include "stages/pixels/picture_decoder.hpp"

#include "stages/pixels/jpeg_reader.hpp"
#include "stages/pixels/orientation.hpp"
#include "stages/pixels/png_reader.hpp"
#include "stages/pixels/resample.hpp"

#include <cassert>
#include <cstring>
#include <string>
#include <utility>

namespace leat::pixels {
namespace {

geometry as_stored(geometry drawn, const decode_options& options) noexcept {
  if (options.leave_flip) drawn.flip = false;
  return drawn;
}

// By sizes alone, so that every machine chooses the same: the most by which the box can shrink without becoming smaller
// than what it is scaled to.
int choose_decimation(const geometry& drawn, const picture_info& info, const decode_options& options) noexcept {
  if (!options.decimate || info.what != format::jpeg || drawn.how == filter::nearest) return 1;
  for (const int by : {8, 4, 2}) {
    if (drawn.box.width >= by * drawn.scaled_width && drawn.box.height >= by * drawn.scaled_height) return by;
  }
  return 1;
}

int shrunk(int size, int by) noexcept { return (size + by - 1) / by; }

// Decimated sizes are rounded up at the stored picture's right and lower edge; the upright picture may begin there.
decimated decimated_by(int by, const picture_info& info) noexcept {
  const orientation turn(info.orientation);
  const auto [width, height] = turn.size(info.width, info.height);
  const auto rounded_by = [&](int size) { return shrunk(size, by) - static_cast<double>(size) / by; };
  return {by, turn.from_far_x() ? rounded_by(width) : 0.0, turn.from_far_y() ? rounded_by(height) : 0.0};
}

// A sample's time in the arena.
class arena_use {
 public:
  explicit arena_use(scratch_arena& arena) noexcept : arena_(arena) { arena_.begin(); }
  ~arena_use() { arena_.end(); }
  arena_use(const arena_use&) = delete;
  arena_use& operator=(const arena_use&) = delete;

 private:
  scratch_arena& arena_;
};

}  // namespace

struct picture_decoder::state {
  explicit state(scratch_budget& budget) : arena(budget), jpeg(arena), png(arena) {}

  scratch_arena arena;
  jpeg_reader jpeg;
  png_reader png;
  huffman_stage huffman = huffman_stage::own;  // of the picture being decoded

  [[nodiscard]] static huffman_stage stage_of(const decode_options& options) noexcept {
    return options.own_huffman ? huffman_stage::own : huffman_stage::libjpeg;
  }

  /// Reads the headers as far as a decision needs them.
  outcome<picture_info> look(std::span<const std::byte> encoded, const decode_options& options) const {
    outcome<picture_info> info = peek(encoded);
    if (!info) return info;
    if (std::int64_t{info->width} * info->height > options.pixels_max) {
      return stages::unsupported(std::to_string(info->width) + " x " + std::to_string(info->height) +
                                 " pixels are more than pixels_max = " + std::to_string(options.pixels_max));
    }
    if (!options.exif_orientation) info->orientation = 1;
    return info;
  }

  /// Reserves what the reader and `more` bytes besides need, and begins to decode `region` (stored, decimated pixels).
  outcome<void> start(std::span<const std::byte> encoded, const picture_info& info, const rectangle& region,
                      int decimation, std::size_t more, const std::atomic<bool>* stop) {
    if (info.what == format::png) {
      outcome<void> reserved = arena.reserve(png_reader::scratch_bytes(info) + more);
      if (!reserved) return reserved;
      return png.start(encoded, info, region, stop);
    }
    outcome<void> opened = jpeg.open(encoded, info, stop, huffman);
    if (!opened) return opened;
    outcome<void> reserved = arena.reserve(jpeg.scratch_bytes(region, decimation) + more);
    if (!reserved) return reserved;
    return jpeg.start(region, decimation);
  }

  outcome<lines> read(const picture_info& info) { return info.what == format::png ? png.read() : jpeg.read(); }

  /// Calls line(pointer) for every line of the region.
  template <class Line>
  outcome<void> read_all(const picture_info& info, const rectangle& region, Line&& line) {
    for (int y = 0; y < region.height;) {
      const outcome<lines> some = read(info);
      if (!some) return some.error();
      for (int i = 0; i < some->count; ++i, ++y) line(some->first + static_cast<std::size_t>(i) * some->stride);
    }
    return {};
  }

  outcome<void> fill(std::span<const std::byte> encoded, const picture_info& info, const geometry& drawn,
                     int decimation, const store& how, std::byte* row, const std::atomic<bool>* stop);
  outcome<void> fill_once(std::span<const std::byte> encoded, const picture_info& info, const geometry& drawn,
                          int decimation, const store& how, std::byte* row, const std::atomic<bool>* stop);
  outcome<void> fill_turned(std::span<const std::byte> encoded, const picture_info& info, resampler& to, int decimation,
                            const store& how, std::byte* row, const std::atomic<bool>* stop);
};

namespace {

stages::failure out_of_scratch() {
  // A wrong sum in one of the scratch_bytes(): our bug, but no reason to take the whole run down.
  assert(false && "more scratch was taken than was reserved");
  return stages::unsupported("more scratch memory was needed than had been reserved");
}

}  // namespace

// What our Huffman decoder finds damaged is decoded again, from the start, by libjpeg's: it has the last word.
outcome<void> picture_decoder::state::fill(std::span<const std::byte> encoded, const picture_info& info,
                                           const geometry& drawn, int decimation, const store& how, std::byte* row,
                                           const std::atomic<bool>* stop) {
  outcome<void> filled = fill_once(encoded, info, drawn, decimation, how, row, stop);
  if (filled || info.what != format::jpeg || !jpeg.gave_up()) return filled;
  huffman = huffman_stage::libjpeg;
  arena.end();
  arena.begin();
  return fill_once(encoded, info, drawn, decimation, how, row, stop);
}

// Straight through: from the decoder's lines to the row.
outcome<void> picture_decoder::state::fill_once(std::span<const std::byte> encoded, const picture_info& info,
                                                const geometry& drawn, int decimation, const store& how, std::byte* row,
                                                const std::atomic<bool>* stop) {
  resampler to(drawn, decimated_by(decimation, info));
  const rectangle& region = to.region();
  if (region.width == 0) {  // nothing of the picture is in the row
    outcome<void> reserved = arena.reserve(to.scratch_bytes());
    if (!reserved) return reserved;
    if (!to.start(arena, how, row)) return out_of_scratch();
    to.finish();
    return {};
  }
  if (!orientation(info.orientation).upright()) {
    return fill_turned(encoded, info, to, decimation, how, row, stop);
  }
  outcome<void> started = start(encoded, info, region, decimation, to.scratch_bytes(), stop);
  if (!started) return started;
  if (!to.start(arena, how, row)) return out_of_scratch();
  outcome<void> read = read_all(info, region, [&](const std::uint8_t* line) { to.push(line); });
  if (!read) return read;
  to.finish();
  return {};
}

// By way of the decoded crop, which is then read in another order.
outcome<void> picture_decoder::state::fill_turned(std::span<const std::byte> encoded, const picture_info& info,
                                                  resampler& to, int decimation, const store& how, std::byte* row,
                                                  const std::atomic<bool>* stop) {
  const orientation turn(info.orientation);
  const rectangle& upright = to.region();
  const rectangle region = turn.stored(upright, shrunk(info.width, decimation), shrunk(info.height, decimation));
  const std::size_t stride = static_cast<std::size_t>(region.width) * 3;
  const std::size_t part_bytes = stride * static_cast<std::size_t>(region.height);
  const std::size_t line_bytes = static_cast<std::size_t>(upright.width) * 3 + line_slack_bytes;
  outcome<void> started =
      start(encoded, info, region, decimation,
            to.scratch_bytes() + scratch_arena::rounded(part_bytes) + scratch_arena::rounded(line_bytes), stop);
  if (!started) return started;
  auto* const part = arena.take_array<std::uint8_t>(part_bytes);
  auto* const line = arena.take_array<std::uint8_t>(line_bytes);
  if (part == nullptr || line == nullptr || !to.start(arena, how, row)) return out_of_scratch();

  std::uint8_t* next = part;
  outcome<void> read = read_all(info, region, [&](const std::uint8_t* from) {
    std::memcpy(next, from, stride);
    next += stride;
  });
  if (!read) return read;
  for (int y = 0; y < upright.height; ++y) {
    turn.line(part, region, y, line);
    to.push(line);
  }
  to.finish();
  return {};
}

picture_decoder::picture_decoder(scratch_budget& budget) : state_(std::make_unique<state>(budget)) {}
picture_decoder::~picture_decoder() = default;

outcome<decoded> picture_decoder::decode(std::span<const std::byte> encoded, const pipeline& steps, const draw_key& key,
                                         const store& how, const decode_options& options, std::byte* row,
                                         const std::atomic<bool>* stop) {
  const arena_use use(state_->arena);
  const outcome<picture_info> info = state_->look(encoded, options);
  if (!info) return info.error();
  const auto [width, height] = orientation(info->orientation).size(info->width, info->height);
  const geometry drawn = steps.compile(width, height, key);
  const int decimation = choose_decimation(drawn, *info, options);
  state_->huffman = state::stage_of(options);
  outcome<void> filled = state_->fill(encoded, *info, as_stored(drawn, options), decimation, how, row, stop);
  if (!filled) return filled.error();
  return decoded{drawn, *info, decimation, state_->huffman != state::stage_of(options)};
}

outcome<decoded> picture_decoder::decode(std::span<const std::byte> encoded, const geometry& drawn, const store& how,
                                         const decode_options& options, std::byte* row, const std::atomic<bool>* stop) {
  const arena_use use(state_->arena);
  const outcome<picture_info> info = state_->look(encoded, options);
  if (!info) return info.error();
  const auto [width, height] = orientation(info->orientation).size(info->width, info->height);
  if (drawn.box.x < 0 || drawn.box.y < 0 || drawn.box.width < 1 || drawn.box.height < 1 ||
      drawn.box.width > width - drawn.box.x || drawn.box.height > height - drawn.box.y || drawn.scaled_width < 1 ||
      drawn.scaled_height < 1 || drawn.out_width < 1 || drawn.out_height < 1) {
    return stages::unsupported("a crop that is not inside the picture of " + std::to_string(width) + " x " +
                               std::to_string(height) + " pixels");
  }
  const int decimation = choose_decimation(drawn, *info, options);
  state_->huffman = state::stage_of(options);
  outcome<void> filled = state_->fill(encoded, *info, as_stored(drawn, options), decimation, how, row, stop);
  if (!filled) return filled.error();
  return decoded{drawn, *info, decimation, state_->huffman != state::stage_of(options)};
}

outcome<whole_picture> picture_decoder::decode_whole(std::span<const std::byte> encoded, const decode_options& options,
                                                     const std::atomic<bool>* stop) {
  const arena_use use(state_->arena);
  const outcome<picture_info> info = state_->look(encoded, options);
  if (!info) return info.error();
  const orientation turn(info->orientation);
  const auto [width, height] = turn.size(info->width, info->height);
  const rectangle region{0, 0, info->width, info->height};
  state_->huffman = huffman_stage::libjpeg;  // seldom used, and simpler without a second try
  outcome<void> started = state_->start(encoded, *info, region, 1, 0, stop);
  if (!started) return started.error();

  const std::size_t stored_stride = static_cast<std::size_t>(info->width) * 3;
  std::vector<std::byte> stored(stored_stride * static_cast<std::size_t>(info->height));
  std::byte* next = stored.data();
  outcome<void> read = state_->read_all(*info, region, [&](const std::uint8_t* line) {
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

}  // namespace leat::pixels

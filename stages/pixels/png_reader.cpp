#include "stages/pixels/png_reader.hpp"

#include "stages/pixels/png_data.hpp"
#include "stages/pixels/resample_kernels.hpp"

#include <png.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <csetjmp>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>

namespace leat::pixels {
namespace {

// How many bytes of lines are given to libpng at a time, and inflated at a time behind the region. Few calls of inflate(), since
// the last 258 bytes of each are slow; and small enough for a core's cache.
constexpr std::size_t block_bytes = std::size_t{16} << 10;
static_assert(block_bytes <= 65'535, "the most that a stored block can have");

// libpng's structs and input buffer, and the zlib of its own, which only unpacks stored blocks. Measured 30 KiB with libpng
// 1.6.39 and zlib 1.2.13; other zlibs keep more. The test `takes_no_more_for_a_png_than_it_said` watches it.
constexpr std::size_t modules_bytes = (std::size_t{48} << 10) + png_data::scratch_bytes;

// Everything that libpng's error jumps may skip: plain data, no destructors.
struct frame {
  scratch_arena* arena;
  png_structp png;
  png_infop info;
  std::jmp_buf jump;

  stages::outcome_kind failed;
  char message[128];

  png_data data;
  std::span<const std::byte> piece;  // given to libpng next, before block_left bytes of lines
  std::byte seam[32];                // what `piece` shows between two blocks
  std::size_t block_left;
  std::uint64_t bytes_left;  // of lines behind that block
  int pieces;                // that have been begun

  const std::atomic<bool>* stop;
  picture_info expected;
  std::optional<rgb_colour> background;  // where the file has alpha
  bool as_stored;
  std::size_t pixel_bytes;
  rectangle region;

  std::size_t stride;
  png_bytep memory;  // one line; for an interlaced picture all lines of the region
  std::byte* room;   // block_bytes, for lines behind the region
  bool interlaced;
  int lines_left;
};
static_assert(std::is_trivially_destructible_v<frame>);

[[noreturn]] void leave(frame& f, stages::outcome_kind kind, const char* why) {
  f.failed = kind;
  std::strncpy(f.message, why, sizeof f.message - 1);
  f.message[sizeof f.message - 1] = '\0';
  std::longjmp(f.jump, 1);
}

[[noreturn]] void on_error(png_structp png, png_const_charp why) {
  leave(*static_cast<frame*>(png_get_error_ptr(png)), stages::outcome_kind::corrupt, why);
}

// Ancillary chunks and other things that leave the pixels alone; what harms them is an error.
void on_warning(png_structp /*png*/, png_const_charp /*why*/) {}

png_voidp allocate(png_structp png, png_alloc_size_t bytes) {
  return static_cast<frame*>(png_get_mem_ptr(png))->arena->take(bytes);  // libpng reports a null
}

// The arena forgets everything at the end of the sample.
void release(png_structp /*png*/, png_voidp /*memory*/) {}

// libpng does not read the file but a PNG that is made here: signature, header, palette, and chunks that each hold a stored
// block of the lines that png_data has inflated. libpng undoes the filters and converts pixels. No block is marked as the last
// one: behind the last line libpng looks for the end of the data, finds an empty block, and stops.
void begin_piece(frame& f) {
  const int piece = f.pieces++;
  if (piece == 0) {
    f.piece = f.data.header();
    return;
  }
  if (piece == 1) {
    f.piece = f.data.palette();  // none: an empty piece
    return;
  }
  if (piece == 2) {
    f.piece = f.data.transparency();  // likewise
    return;
  }
  const bool first = piece == 3;
  f.block_left = static_cast<std::size_t>(std::min<std::uint64_t>(f.bytes_left, block_bytes));
  f.bytes_left -= f.block_left;
  std::size_t bytes = 0;
  const auto put = [&](std::initializer_list<std::size_t> values) {
    for (const std::size_t value : values) f.seam[bytes++] = static_cast<std::byte>(value & 0xFF);
  };
  if (!first) put({0, 0, 0, 0});  // the CRC of the chunk before, at which libpng does not look
  const std::size_t length = (first ? 2U : 0U) + 5U + f.block_left;
  put({length >> 24, length >> 16, length >> 8, length, 'I', 'D', 'A', 'T'});
  if (first) put({0x08, 0x1D});  // zlib's header with a window of 256 bytes, RFC 1950
  put({0, f.block_left, f.block_left >> 8, ~f.block_left, ~f.block_left >> 8});  // RFC 1951, section 3.2.4
  f.piece = {f.seam, bytes};
}

void on_read(png_structp png, png_bytep to, std::size_t bytes) {
  frame& f = *static_cast<frame*>(png_get_io_ptr(png));
  while (bytes > 0) {
    std::size_t some = 0;
    if (!f.piece.empty()) {
      some = std::min(bytes, f.piece.size());
      std::memcpy(to, f.piece.data(), some);
      f.piece = f.piece.subspan(some);
    } else if (f.block_left > 0) {
      some = std::min(bytes, f.block_left);
      if (const char* const why = f.data.read(reinterpret_cast<std::byte*>(to), some)) {
        leave(f, stages::outcome_kind::corrupt, why);
      }
      f.block_left -= some;
    } else {
      begin_piece(f);
    }
    to += some;
    bytes -= some;
  }
}

void check_stop(frame& f) {
  if (f.stop != nullptr && f.stop->load(std::memory_order_relaxed)) {
    leave(f, stages::outcome_kind::cancelled, "cancelled");
  }
}

// The only setjmp: `step` and what it calls hold plain data only, as the jump skips them.
bool run(frame& f, void (*step)(frame&)) {
  if (setjmp(f.jump) != 0) return false;
  step(f);
  return true;
}

void read_all_passes(frame& f, int passes) {
  for (int pass = 0; pass < passes; ++pass) {
    for (int y = 0; y < f.expected.height; ++y) {
      check_stop(f);
      const int line = y - f.region.y;
      const bool wanted = line >= 0 && line < f.region.height;
      png_read_row(f.png, wanted ? f.memory + static_cast<std::size_t>(line) * f.stride : nullptr, nullptr);
    }
  }
}

// Inflates the lines behind the region, without undoing their filters, and checks what comes after the last one.
void check_rest(frame& f) {
  while (f.data.bytes_left() > 0) {
    check_stop(f);
    const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(f.data.bytes_left(), block_bytes));
    if (const char* const why = f.data.read(f.room, some)) leave(f, stages::outcome_kind::corrupt, why);
  }
  if (const char* const why = f.data.finish({f.room, block_bytes})) leave(f, stages::outcome_kind::corrupt, why);
}

void start_step(frame& f) {
  if (const char* const why = f.data.start(*f.arena)) leave(f, stages::outcome_kind::unsupported, why);
  f.room = f.arena->take_array<std::byte>(block_bytes);
  if (f.room == nullptr) leave(f, stages::outcome_kind::unsupported, "out of scratch memory");
  f.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &f, on_error, on_warning, &f, allocate, release);
  if (f.png == nullptr) leave(f, stages::outcome_kind::unsupported, "libpng cannot start (version or memory)");
  f.info = png_create_info_struct(f.png);
  if (f.info == nullptr) leave(f, stages::outcome_kind::unsupported, "out of scratch memory");
  png_set_read_fn(f.png, &f, on_read);
  // The pixel limit has been checked by the caller; libpng's own is a million a side.
  png_set_user_limits(f.png, 0x7FFFFFFF, 0x7FFFFFFF);
  // png_data looks at the checksums of the file; those of our chunks are not filled in.
  png_set_crc_action(f.png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
#if defined(PNG_SET_OPTION_SUPPORTED) && defined(PNG_IGNORE_ADLER32)
  png_set_option(f.png, PNG_IGNORE_ADLER32, PNG_OPTION_ON);
#endif
  png_set_compression_buffer_size(f.png, block_bytes + sizeof f.seam);
  png_read_info(f.png, f.info);
  if (png_get_image_width(f.png, f.info) != static_cast<png_uint_32>(f.expected.width) ||
      png_get_image_height(f.png, f.info) != static_cast<png_uint_32>(f.expected.height)) {
    leave(f, stages::outcome_kind::corrupt, "two header chunks that differ");
  }

  if (f.as_stored) {
    png_set_packing(f.png);
    png_set_strip_alpha(f.png);
    if constexpr (std::endian::native == std::endian::little) png_set_swap(f.png);
  } else {
    png_set_expand(f.png);  // palettes to RGB, grey of few bits to 8
    png_set_strip_16(f.png);
    if (!f.background) png_set_strip_alpha(f.png);
    png_set_gray_to_rgb(f.png);
  }
  const int passes = png_set_interlace_handling(f.png);
  png_read_update_info(f.png, f.info);
  if (!f.as_stored) {
    // Transparency that libpng finds invalid is none.
    const bool has_alpha = png_get_channels(f.png, f.info) == 4;
    if (!has_alpha) f.background.reset();
    f.pixel_bytes = has_alpha ? 4 : 3;
  }
  f.stride = static_cast<std::size_t>(f.expected.width) * f.pixel_bytes;
  if (png_get_rowbytes(f.png, f.info) != f.stride) leave(f, stages::outcome_kind::unsupported, "odd pixel layout");

  f.interlaced = passes > 1;
  const std::size_t height = f.interlaced ? static_cast<std::size_t>(f.region.height) : 1;
  f.memory = f.arena->take_array<png_byte>(f.stride * height + line_slack_bytes);
  if (f.memory == nullptr) leave(f, stages::outcome_kind::unsupported, "out of scratch memory");
  if (f.interlaced) {
    read_all_passes(f, passes);
    check_rest(f);
  } else {
    for (int y = 0; y < f.region.y; ++y) {
      check_stop(f);
      png_read_row(f.png, nullptr, nullptr);
    }
  }
  f.lines_left = f.region.height;
}

void read_step(frame& f) {
  check_stop(f);
  png_read_row(f.png, f.memory, nullptr);
  if (--f.lines_left == 0) check_rest(f);
}

stages::failure failure_of(const frame& f) {
  if (f.failed == stages::outcome_kind::cancelled) return stages::cancelled();
  return {f.failed, std::string("PNG: ") + f.message};
}

}  // namespace

png_samples samples_of(std::span<const std::byte> encoded) noexcept {
  constexpr std::size_t depth_at = 24;
  if (encoded.size() < depth_at + 2) return {};
  const auto colours = std::to_integer<unsigned>(encoded[depth_at + 1]);
  return {.channels = (colours & 3U) == 2 ? 3 : 1,
          .bits = std::to_integer<int>(encoded[depth_at]),
          .is_palette = colours == 3,
          .alpha = (colours & 4U) != 0};
}

struct png_reader::state {
  frame f{};
};

png_reader::png_reader(scratch_arena& arena) : state_(std::make_unique<state>()) { state_->f.arena = &arena; }

png_reader::~png_reader() = default;

stages::outcome<void> png_reader::open(std::span<const std::byte> encoded, const picture_info& info,
                                       const reading& how) {
  frame& f = state_->f;
  f.background.reset();
  f.as_stored = how.as_stored;
  f.expected = info;
  f.stop = how.stop;
  f.piece = {};
  f.block_left = 0;
  f.pieces = 0;
  stages::outcome<void> opened = f.data.open(encoded, how.background.has_value(), how.stop);
  if (!opened) return opened;
  f.bytes_left = f.data.bytes();
  if (f.data.has_alpha_samples() || !f.data.transparency().empty()) f.background = how.background;
  f.pixel_bytes = f.as_stored ? samples_of(encoded).bytes() : f.background ? 4 : 3;
  return {};
}

std::size_t png_reader::scratch_bytes(const rectangle& region, int /*decimation*/) {
  const picture_info& info = state_->f.expected;
  const auto width = static_cast<std::size_t>(info.width);
  const std::size_t height = info.progressive ? static_cast<std::size_t>(region.height) : 1;
  const std::size_t pixel_bytes = state_->f.pixel_bytes;
  // pngrutil.c: the line and the one before it, at up to 64 bits a pixel, and their margins.
  const std::size_t line = scratch_arena::rounded(width * 8 + 256);
  return modules_bytes + scratch_arena::rounded(block_bytes) + 2 * line +
         scratch_arena::rounded(width * height * pixel_bytes + line_slack_bytes);
}

std::string_view png_reader::remedy() const noexcept {
  return state_->f.expected.progressive ? "stored without interlacing it needs little" : "";
}

stages::outcome<void> png_reader::start(const rectangle& region, int decimation) {
  assert(decimation == 1);
  static_cast<void>(decimation);
  frame& f = state_->f;
  f.region = region;
  if (!run(f, start_step)) return failure_of(f);
  return {};
}

stages::outcome<lines> png_reader::read() {
  frame& f = state_->f;
  assert(f.lines_left > 0);
  const png_bytep first = f.memory + static_cast<std::size_t>(f.region.x) * f.pixel_bytes;
  const int count = f.interlaced ? f.lines_left : 1;
  if (f.interlaced) {
    f.lines_left = 0;
  } else if (!run(f, read_step)) {
    return failure_of(f);
  }
  if (f.background) {
    for (int i = 0; i < count; ++i) {
      const png_bytep line = first + static_cast<std::size_t>(i) * f.stride;
      blend_line(line, static_cast<std::size_t>(f.region.width), *f.background, line);
    }
  }
  return lines{first, f.stride, count};
}

}  // namespace leat::pixels

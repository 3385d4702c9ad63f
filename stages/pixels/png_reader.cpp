#include "stages/pixels/png_reader.hpp"

#include "stages/pixels/resample_kernels.hpp"

#include <png.h>

#include <algorithm>
#include <cassert>
#include <csetjmp>
#include <cstring>
#include <string>
#include <type_traits>

namespace leat::pixels {
namespace {

// libpng's and zlib's own structs, zlib's window and libpng's input buffer. Measured 50 KiB with libpng
// 1.6.39 and zlib 1.2.13; other zlibs keep more. The test `takes_no_more_for_a_png_than_it_said` watches it.
constexpr std::size_t modules_bytes = std::size_t{96} << 10;

// Everything that libpng's error jumps may skip: plain data, no destructors.
struct frame {
  scratch_arena* arena;
  png_structp png;
  png_infop info;
  std::jmp_buf jump;

  stages::outcome_kind failed;
  char message[128];

  const std::byte* next;
  std::size_t bytes_left;
  const std::atomic<bool>* stop;
  picture_info expected;
  rectangle region;

  std::size_t stride;
  png_bytep memory;  // one line, or of an interlaced picture all of them
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

void on_read(png_structp png, png_bytep to, std::size_t bytes) {
  frame& f = *static_cast<frame*>(png_get_io_ptr(png));
  if (bytes > f.bytes_left) leave(f, stages::outcome_kind::corrupt, "premature end of file");
  std::memcpy(to, f.next, bytes);
  f.next += bytes;
  f.bytes_left -= bytes;
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
    png_bytep line = f.memory;
    for (int y = 0; y < f.expected.height; ++y, line += f.stride) {
      check_stop(f);
      png_read_row(f.png, line, nullptr);
    }
  }
}

void start_step(frame& f) {
  f.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &f, on_error, on_warning, &f, allocate, release);
  if (f.png == nullptr) leave(f, stages::outcome_kind::unsupported, "libpng cannot start (version or memory)");
  f.info = png_create_info_struct(f.png);
  if (f.info == nullptr) leave(f, stages::outcome_kind::unsupported, "out of scratch memory");
  png_set_read_fn(f.png, &f, on_read);
  // The pixel limit has been checked by the caller; libpng's own is a million a side.
  png_set_user_limits(f.png, 0x7FFFFFFF, 0x7FFFFFFF);
  // Profiles, texts and times are skipped unread: they could take any amount of memory, and change no pixel of ours.
  png_set_keep_unknown_chunks(f.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(f.png, f.info);
  if (png_get_image_width(f.png, f.info) != static_cast<png_uint_32>(f.expected.width) ||
      png_get_image_height(f.png, f.info) != static_cast<png_uint_32>(f.expected.height)) {
    leave(f, stages::outcome_kind::corrupt, "two header chunks that differ");
  }

  png_set_expand(f.png);  // palettes to RGB, grey of few bits to 8
  png_set_strip_16(f.png);
  png_set_strip_alpha(f.png);
  png_set_gray_to_rgb(f.png);
  const int passes = png_set_interlace_handling(f.png);
  png_read_update_info(f.png, f.info);
  f.stride = static_cast<std::size_t>(f.expected.width) * 3;
  if (png_get_rowbytes(f.png, f.info) != f.stride) leave(f, stages::outcome_kind::unsupported, "odd pixel layout");

  f.interlaced = passes > 1;
  const std::size_t height = f.interlaced ? static_cast<std::size_t>(f.expected.height) : 1;
  f.memory = f.arena->take_array<png_byte>(f.stride * height + line_slack_bytes);
  if (f.memory == nullptr) leave(f, stages::outcome_kind::unsupported, "out of scratch memory");
  if (f.interlaced) {
    read_all_passes(f, passes);
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
}

stages::failure failure_of(const frame& f) {
  if (f.failed == stages::outcome_kind::cancelled) return stages::cancelled();
  return {f.failed, std::string("PNG: ") + f.message};
}

}  // namespace

struct png_reader::state {
  frame f{};
};

png_reader::png_reader(scratch_arena& arena) : state_(std::make_unique<state>()) { state_->f.arena = &arena; }

png_reader::~png_reader() = default;

stages::outcome<void> png_reader::open(std::span<const std::byte> encoded, const picture_info& info,
                                       const reading& how) {
  frame& f = state_->f;
  f.next = encoded.data();
  f.bytes_left = encoded.size();
  f.expected = info;
  f.stop = how.stop;
  return {};
}

std::size_t png_reader::scratch_bytes(const rectangle& /*region*/, int /*decimation*/) {
  const picture_info& info = state_->f.expected;
  const auto width = static_cast<std::size_t>(info.width);
  const std::size_t height = info.progressive ? static_cast<std::size_t>(info.height) : 1;
  // pngrutil.c: the line and the one before it, at up to 64 bits a pixel, and their margins.
  const std::size_t line = scratch_arena::rounded(width * 8 + 256);
  return modules_bytes + 2 * line + scratch_arena::rounded(width * height * 3 + line_slack_bytes);
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
  const std::size_t left = static_cast<std::size_t>(f.region.x) * 3;
  if (f.interlaced) {
    const lines all{f.memory + static_cast<std::size_t>(f.region.y) * f.stride + left, f.stride, f.lines_left};
    f.lines_left = 0;
    return all;
  }
  if (!run(f, read_step)) return failure_of(f);
  --f.lines_left;
  return lines{f.memory + left, f.stride, 1};
}

}  // namespace leat::pixels

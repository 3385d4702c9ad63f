#include "stages/pixels/jpeg_transcoder.hpp"

#include "stages/pixels/jpeg_claims.hpp"
#include "stages/pixels/libjpeg.hpp"
#include "stages/pixels/picture_info.hpp"

#include <jerror.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <type_traits>

namespace leat::pixels {
namespace {

// As the decoder: Pillow's bomb limit.
constexpr std::int64_t pixels_max = 178'956'970;
// An MCU of a scan has at most ten blocks of all components together (T.81, B.2.3); libjpeg refuses more itself.
constexpr std::size_t room_bytes = std::size_t{64} << 10;

// Everything that libjpeg's error jumps may skip: plain data, no destructors.
struct frame {
  jpeg_decompress_struct in;
  jpeg_compress_struct out;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  jpeg_destination_mgr destination;
  std::jmp_buf jump;

  const unsigned char* encoded;
  std::size_t encoded_bytes;
  bool is_baseline;
  int scans;     // as check_jpeg_claims() counted them
  bool refused;  // by us or by libjpeg, as unsupported and not as damaged
  char message[JMSG_LENGTH_MAX];

  JOCTET* written;  // by malloc
  std::size_t written_bytes;
  std::size_t room;
};
static_assert(std::is_trivially_destructible_v<frame> && std::is_standard_layout_v<frame>);

frame& frame_of(j_common_ptr cinfo) noexcept { return *static_cast<frame*>(cinfo->client_data); }

[[noreturn]] void refuse(frame& f, const char* why) {
  f.refused = true;
  std::strcpy(f.message, why);
  std::longjmp(f.jump, 1);
}

void on_error(j_common_ptr cinfo) {
  frame& f = frame_of(cinfo);
  switch (cinfo->err->msg_code) {
#if JPEG_LIB_VERSION < 70  // else no message
    case JERR_ARITH_NOTIMPL:
#endif
    case JERR_BAD_MCU_SIZE:
    case JERR_BAD_PRECISION:
    case JERR_COMPONENT_COUNT:
    case JERR_IMAGE_TOO_BIG:
    case JERR_MISMATCHED_QUANT_TABLE:
    case JERR_NOT_COMPILED:
    case JERR_OUT_OF_MEMORY:
    case JERR_SOF_UNSUPPORTED:
      f.refused = true;
      break;
    default:
      break;
  }
  cinfo->err->format_message(cinfo, f.message);
  std::longjmp(f.jump, 1);
}

// libjpeg repairs damage and goes on. Its guesses would be in the new file as if they were data: any warning is a failure.
void on_message(j_common_ptr cinfo, int level) {
  if (level >= 0) return;
  frame& f = frame_of(cinfo);
  cinfo->err->format_message(cinfo, f.message);
  std::longjmp(f.jump, 1);
}

void on_output(j_common_ptr /*cinfo*/) {}

void on_progress(j_common_ptr cinfo) {
  frame& f = frame_of(cinfo);
  if (cinfo->is_decompressor != FALSE && f.in.input_scan_number > f.scans) {
    refuse(f, "scans that were hidden from a search for them");
  }
}

void make_room(frame& f, std::size_t bytes) {
  auto* const larger = static_cast<JOCTET*>(std::realloc(f.written, bytes));
  if (larger == nullptr) refuse(f, "not enough memory");
  f.written = larger;
  f.room = bytes;
}

void begin_writing(j_compress_ptr out) {
  frame& f = frame_of(reinterpret_cast<j_common_ptr>(out));
  make_room(f, f.encoded_bytes + room_bytes);
  f.destination.next_output_byte = f.written;
  f.destination.free_in_buffer = f.room;
}

boolean write_more(j_compress_ptr out) {
  frame& f = frame_of(reinterpret_cast<j_common_ptr>(out));
  const std::size_t full = f.room;  // By contract it is full, whatever free_in_buffer says.
  make_room(f, 2 * full);
  f.destination.next_output_byte = f.written + full;
  f.destination.free_in_buffer = f.room - full;
  return TRUE;
}

void end_writing(j_compress_ptr out) {
  frame& f = frame_of(reinterpret_cast<j_common_ptr>(out));
  f.written_bytes = f.room - f.destination.free_in_buffer;
}

bool begins_with(const jpeg_marker_struct& marker, const char* text, unsigned bytes) noexcept {
  return marker.data_length >= bytes && std::memcmp(marker.data, text, bytes) == 0;
}

// All but those that libjpeg writes by itself.
void copy_markers(frame& f) {
  for (const jpeg_marker_struct* each = f.in.marker_list; each != nullptr; each = each->next) {
    if (f.out.write_JFIF_header != FALSE && each->marker == JPEG_APP0 && begins_with(*each, "JFIF", 5)) continue;
    if (f.out.write_Adobe_marker != FALSE && each->marker == JPEG_APP0 + 14 && begins_with(*each, "Adobe", 5)) continue;
    jpeg_write_marker(&f.out, each->marker, each->data, each->data_length);
  }
}

void read_header(frame& f) {
  jpeg_create_decompress(&f.in);
  jpeg_create_compress(&f.out);
  jpeg_mem_src(&f.in, f.encoded, static_cast<unsigned long>(f.encoded_bytes));
  jpeg_save_markers(&f.in, JPEG_COM, 0xFFFF);
  for (int n = 0; n < 16; ++n) jpeg_save_markers(&f.in, JPEG_APP0 + n, 0xFFFF);
  jpeg_read_header(&f.in, TRUE);
  f.is_baseline = jpeg_has_multiple_scans(&f.in) == FALSE && f.in.arith_code == FALSE;
}

void transcode(frame& f) {
  if (std::int64_t{f.in.image_width} * f.in.image_height > pixels_max) refuse(f, "too many pixels");
  f.in.progress = &f.progress;
  jvirt_barray_ptr* const coefficients = jpeg_read_coefficients(&f.in);
  jpeg_copy_critical_parameters(&f.in, &f.out);
  f.out.optimize_coding = TRUE;
  f.out.dest = &f.destination;
  jpeg_write_coefficients(&f.out, coefficients);
  copy_markers(f);
  jpeg_finish_compress(&f.out);
  jpeg_finish_decompress(&f.in);
}

// The only setjmp: what `step` and those it calls hold is plain data, as the jump skips them.
bool run(frame& f, void (*step)(frame&)) {
  if (setjmp(f.jump) != 0) return false;
  step(f);
  return true;
}

stages::failure failure_of(const frame& f) {
  const std::string reason = std::string("JPEG: ") + f.message;
  return f.refused ? stages::unsupported(reason) : stages::corrupt(reason);
}

struct ends {
  void operator()(frame* f) const noexcept {
    jpeg_destroy_compress(&f->out);
    jpeg_destroy_decompress(&f->in);
    std::free(f->written);
    delete f;
  }
};

std::unique_ptr<frame, ends> frame_for(std::span<const std::byte> encoded) {
  std::unique_ptr<frame, ends> f(new frame{});
  f->in.err = f->out.err = jpeg_std_error(&f->errors);
  f->in.client_data = f->out.client_data = f.get();
  f->errors.error_exit = on_error;
  f->errors.emit_message = on_message;
  f->errors.output_message = on_output;
  f->progress.progress_monitor = on_progress;
  f->destination.init_destination = begin_writing;
  f->destination.empty_output_buffer = write_more;
  f->destination.term_destination = end_writing;
  f->encoded = reinterpret_cast<const unsigned char*>(encoded.data());
  f->encoded_bytes = encoded.size();
  return f;
}

}  // namespace

stages::outcome<transcode_result> transcode_to_baseline(std::span<const std::byte> encoded,
                                                        std::vector<std::byte>& file) {
  const outcome<picture_info> info = peek(encoded);
  if (!info && info.kind() == stages::outcome_kind::corrupt) return info.error();
  if (!info || info->what != format::jpeg) return transcode_result::as_it_is;
  const std::unique_ptr<frame, ends> f = frame_for(encoded);
  if (!run(*f, read_header)) return failure_of(*f);
  if (f->is_baseline) return transcode_result::as_it_is;
  const stages::outcome<void> checked = check_jpeg_claims(f->in, false, f->scans);
  if (!checked) return checked.error();
  if (!run(*f, transcode)) return failure_of(*f);
  const auto* const written = reinterpret_cast<const std::byte*>(f->written);
  file.assign(written, written + f->written_bytes);
  return transcode_result::rewritten;
}

}  // namespace leat::pixels

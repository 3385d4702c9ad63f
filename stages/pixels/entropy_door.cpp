#include "stages/pixels/entropy_door.hpp"

#include "stages/pixels/photo_pack_layout.hpp"

#include <dlfcn.h>

#include <csetjmp>

namespace leat::pixels {
namespace {

// The decoder's struct is internal to libjpeg. If another libjpeg than the header's is loaded, what we take for the struct's
// functions are hardly functions of the library that jpeg_start_decompress() is in.
bool is_the_known_libjpeg(const jpeg_entropy_decoder& methods) noexcept {
  const auto library_of = [](auto* function) -> const void* {
    Dl_info found{};
    return ::dladdr(reinterpret_cast<const void*>(function), &found) != 0 ? found.dli_fbase : nullptr;
  };
  const void* const libjpeg = library_of(&jpeg_start_decompress);
  return libjpeg != nullptr && library_of(methods.start_pass) == libjpeg && library_of(methods.decode_mcu) == libjpeg;
}

}  // namespace

bool entropy_door_is_open(const jpeg_entropy_decoder& methods) noexcept {
#ifdef LEAT_ENTROPY_DOOR
  static const bool known = is_the_known_libjpeg(methods);
  return known;
#else
  static_cast<void>(methods);
  return false;
#endif
}

namespace {

// The least baseline JPEG there is: 8 x 8 grey pixels.
constexpr unsigned char least_jpeg[] = {
    0xFF, 0xD8,                                                    // SOI
    0xFF, 0xDB, 0, 67, 0, 1, 1, 1, 1,    1,    1,    1,  1,    1,  // DQT: all 1
    1,    1,    1, 1,  1, 1, 1, 1, 1,    1,    1,    1,  1,    1, 1, 1, 1,  1, 1,    1,    1,    1, 1,
    1,    1,    1, 1,  1, 1, 1, 1, 1,    1,    1,    1,  1,    1, 1, 1, 1,  1, 1,    1,    1,    1, 1,
    1,    1,    1, 1,  1, 1, 1, 1, 1,    0xFF, 0xC0, 0,  11,   8, 0, 8, 0,  8, 1,    1,    0x11, 0,  // SOF0
    0xFF, 0xC4, 0, 20, 0, 1, 0, 0, 0,    0,    0,    0,  0,    0,  // DHT: DC, one code
    0,    0,    0, 0,  0, 0, 0, 0, 0xFF, 0xC4, 0,    20, 0x10, 1, 0, 0, 0,  0, 0,    0,    0,    0,  // DHT: AC, one code
    0,    0,    0, 0,  0, 0, 0, 0, 0xFF, 0xDA, 0,    8,  1,    1, 0, 0, 63, 0, 0x3F, 0xFF, 0xD9};    // SOS, a scan, EOI

#ifdef LEAT_ENTROPY_DOOR
struct leaving_errors {
  jpeg_error_mgr methods;
  std::jmp_buf jump;
};

bool look_at_the_door() noexcept {
  leaving_errors errors{};
  jpeg_decompress_struct cinfo{};
  cinfo.err = jpeg_std_error(&errors.methods);
  cinfo.client_data = &errors;
  errors.methods.error_exit = [](j_common_ptr c) {
    std::longjmp(static_cast<leaving_errors*>(c->client_data)->jump, 1);
  };
  errors.methods.output_message = [](j_common_ptr) {};
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_decompress(&cinfo);
    return false;
  }
  jpeg_create_decompress(&cinfo);
  jpeg_mem_src(&cinfo, least_jpeg, sizeof(least_jpeg));
  jpeg_read_header(&cinfo, TRUE);
  jpeg_start_decompress(&cinfo);
  const bool open = entropy_door_is_open(*cinfo.entropy);
  jpeg_destroy_decompress(&cinfo);
  return open;
}
#endif

}  // namespace

bool photo_packs_are_recoded() noexcept {
#ifdef LEAT_ENTROPY_DOOR
  static const bool open = look_at_the_door();
  return !open;
#else
  return true;
#endif
}

bool is_one_plain_scan(const jpeg_decompress_struct& c) noexcept {
  return !c.progressive_mode && c.data_precision == 8 && c.comps_in_scan == c.num_components && c.Ss == 0 &&
         c.Se == DCTSIZE2 - 1 && c.Ah == 0 && c.Al == 0 && c.unread_marker == 0 &&
         c.blocks_in_MCU <= D_MAX_BLOCKS_IN_MCU;
}

}  // namespace leat::pixels

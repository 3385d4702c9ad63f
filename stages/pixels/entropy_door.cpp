#include "stages/pixels/entropy_door.hpp"

#include <dlfcn.h>

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

bool is_one_plain_scan(const jpeg_decompress_struct& c) noexcept {
  return !c.progressive_mode && c.data_precision == 8 && c.comps_in_scan == c.num_components && c.Ss == 0 &&
         c.Se == DCTSIZE2 - 1 && c.Ah == 0 && c.Al == 0 && c.unread_marker == 0 &&
         c.blocks_in_MCU <= D_MAX_BLOCKS_IN_MCU;
}

}  // namespace leat::pixels

#include "stages/pixels/photo_entropy.hpp"

#include <type_traits>

namespace leat::pixels {
namespace {

static_assert(std::is_same_v<JCOEF, std::int16_t>);

boolean decode_mcu(j_decompress_ptr cinfo, JBLOCKROW* mcu) {
  reinterpret_cast<photo_entropy*>(cinfo->entropy)->mcus->next(cinfo, reinterpret_cast<std::int16_t* const*>(mcu));
  return TRUE;
}

}  // namespace

bool photo_entropy::install(j_decompress_ptr cinfo, photo_mcus& from) noexcept {
  if (!entropy_door_is_open(*cinfo->entropy)) return false;
  mcus = &from;
  methods = *cinfo->entropy;
  methods.decode_mcu = decode_mcu;
  cinfo->entropy = &methods;
  return true;
}

}  // namespace leat::pixels

#include "stages/pixels/photo_entropy.hpp"

#include <cassert>
#include <type_traits>

namespace leat::pixels {
namespace {

static_assert(std::is_same_v<JCOEF, std::int16_t>);

boolean decode_mcu(j_decompress_ptr cinfo, JBLOCKROW* mcu) {
  reinterpret_cast<photo_entropy*>(cinfo->entropy)->mcus->next(cinfo, reinterpret_cast<std::int16_t* const*>(mcu));
  return TRUE;
}

}  // namespace

void photo_entropy::install(j_decompress_ptr cinfo, photo_mcus& from) noexcept {
  assert(entropy_door_is_open(*cinfo->entropy));
  mcus = &from;
  methods = *cinfo->entropy;
  methods.decode_mcu = decode_mcu;
  cinfo->entropy = &methods;
}

}  // namespace leat::pixels

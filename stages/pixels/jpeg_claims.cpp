#include "stages/pixels/jpeg_claims.hpp"

#include <cstdint>
#include <cstring>
#include <string>

namespace leat::pixels {
namespace {

// Ten scans are usual, and some encoders write twenty. One for each coefficient of each component makes 192.
constexpr int scans_max = 500;

// A scan visits all blocks of its components, even if it has few bytes. libjpeg's default scans visit a block 6 times, and
// mozjpeg's a dozen times. More visits are accepted in proportion to the file's bytes (a photograph with a scan for each
// coefficient has 5 to 10 visits for a byte), and up to visits_free, which take some 20 ms.
constexpr std::uint64_t visits_of_block = 24;
constexpr std::uint64_t visits_of_byte = 16;
constexpr std::uint64_t visits_free = 2'000'000;

std::uint64_t blocks_of(const jpeg_component_info& component) noexcept {
  return std::uint64_t{component.width_in_blocks} * component.height_in_blocks;
}

struct scan_counts {
  int scans = 1;
  std::uint64_t visits = 0;  // of blocks, by all scans
};

// Counts by searching for markers. The header of the first scan has been read.
scan_counts count_scans(const jpeg_decompress_struct& cinfo) noexcept {
  scan_counts counted;
  for (int i = 0; i < cinfo.comps_in_scan; ++i) counted.visits += blocks_of(*cinfo.cur_comp_info[i]);
  const std::uint8_t* at = cinfo.src->next_input_byte;
  const std::uint8_t* const end = at + cinfo.src->bytes_in_buffer;
  while ((at = static_cast<const std::uint8_t*>(std::memchr(at, 0xFF, static_cast<std::size_t>(end - at)))) !=
         nullptr) {
    while (at != end && *at == 0xFF) ++at;
    if (at == end) break;
    const std::uint8_t marker = *at++;
    if (marker <= 0x01 || (marker >= 0xD0 && marker <= 0xD8)) continue;  // no marker, or one that stands alone
    if (marker == 0xD9 || end - at < 2) break;
    const auto length = static_cast<std::ptrdiff_t>(at[0] << 8 | at[1]);
    if (length < 2 || length > end - at) break;  // libjpeg will say so.
    if (marker == 0xDA && length >= 3) {
      ++counted.scans;
      const int components = at[2];
      for (int i = 0; i < components && 4 + 2 * i < length; ++i) {
        for (int c = 0; c < cinfo.num_components; ++c) {
          if (cinfo.comp_info[c].component_id == at[3 + 2 * i]) counted.visits += blocks_of(cinfo.comp_info[c]);
        }
      }
    }
    at += length;
  }
  return counted;
}

}  // namespace

stages::outcome<void> check_jpeg_claims(const jpeg_decompress_struct& cinfo, bool may_be_cut, int& scans) {
  std::uint64_t blocks = 0;
  for (int i = 0; i < cinfo.num_components; ++i) blocks += blocks_of(cinfo.comp_info[i]);
  const std::uint64_t bytes = cinfo.src->bytes_in_buffer;
  // A block has at least one code for its first coefficient and, if all are in one scan, one for its end. Arithmetic coding can
  // code any number of blocks in a bit.
  const std::uint64_t bits_least = cinfo.arith_code != FALSE ? 0 : cinfo.progressive_mode != FALSE ? 1 : 2;
  if (!may_be_cut && blocks * bits_least > bytes * 8) {
    return stages::corrupt("JPEG: too short for its picture: " + std::to_string(bytes) + " bytes of data cannot hold " +
                           std::to_string(blocks) + " blocks");
  }
  scans = 1;
  if (cinfo.progressive_mode == FALSE && cinfo.comps_in_scan == cinfo.num_components) return {};
  const scan_counts counted = count_scans(cinfo);
  scans = counted.scans;
  if (counted.scans > scans_max || counted.visits > visits_of_block * blocks + visits_of_byte * bytes + visits_free) {
    return stages::unsupported("JPEG: " + std::to_string(counted.scans) + " scans are too many for a picture of " +
                               std::to_string(blocks) + " blocks in " + std::to_string(bytes) + " bytes");
  }
  return {};
}

}  // namespace leat::pixels

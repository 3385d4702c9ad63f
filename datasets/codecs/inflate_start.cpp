// libdeflate has no half of a stream.
#include "datasets/codecs/deflate.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

namespace leat::datasets {

std::vector<std::byte> inflate_start(std::span<const std::byte> stored, std::size_t bytes) {
  constexpr std::size_t most = std::numeric_limits<uInt>::max();
  std::vector<std::byte> start(std::min(bytes, most));
  z_stream stream{};
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(stored.data()));
  stream.avail_in = static_cast<uInt>(std::min(stored.size(), most));
  stream.next_out = reinterpret_cast<Bytef*>(start.data());
  stream.avail_out = static_cast<uInt>(start.size());
  // Whatever it says: damage is found when all of it is expanded.
  static_cast<void>(::inflate(&stream, Z_SYNC_FLUSH));
  start.resize(start.size() - stream.avail_out);
  ::inflateEnd(&stream);
  return start;
}

}  // namespace leat::datasets

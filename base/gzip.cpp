#include "base/gzip.hpp"

#include <libdeflate.h>

#include <cassert>
#include <memory>
#include <new>

namespace leat {

void gzip(std::span<const std::byte> raw, std::vector<std::byte>& packed) {
  struct free_compressor {
    void operator()(libdeflate_compressor* one) const noexcept { libdeflate_free_compressor(one); }
  };
  thread_local const std::unique_ptr<libdeflate_compressor, free_compressor> with(
      libdeflate_alloc_compressor(gzip_level));
  if (!with) throw std::bad_alloc();
  packed.resize(libdeflate_gzip_compress_bound(with.get(), raw.size()));
  const std::size_t written =
      libdeflate_gzip_compress(with.get(), raw.data(), raw.size(), packed.data(), packed.size());
  // 0 would say that there is too little room, and there is as much as it asked for.
  assert(written != 0);
  packed.resize(written);
}

}  // namespace leat

#include "datasets/codecs/compress.hpp"

#include "base/gzip.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <blosc.h>
#include <zstd.h>

#include <cassert>
#include <memory>
#include <new>

namespace leat::datasets {
namespace {

void compress_zstd(std::span<const std::byte> raw, std::vector<std::byte>& packed) {
  struct free_context {
    void operator()(ZSTD_CCtx* one) const noexcept { ZSTD_freeCCtx(one); }
  };
  // A megabyte and more, which would take longer to get than a small chunk to pack.
  thread_local const std::unique_ptr<ZSTD_CCtx, free_context> with(ZSTD_createCCtx());
  if (!with) throw std::bad_alloc();
  packed.resize(ZSTD_compressBound(raw.size()));
  const std::size_t written =
      ZSTD_compressCCtx(with.get(), packed.data(), packed.size(), raw.data(), raw.size(), zstd_level);
  if (ZSTD_isError(written) != 0) {
    throw error(errc::limit, str_cat("zstd cannot pack ", raw.size(), " bytes: ", ZSTD_getErrorName(written),
                                     "; make smaller chunks"));
  }
  packed.resize(written);
}

void compress_blosc(std::uint32_t element_bytes, std::span<const std::byte> raw, std::vector<std::byte>& packed) {
  packed.resize(raw.size() + BLOSC_MAX_OVERHEAD);
  constexpr std::size_t block_bytes = 0;  // as it sees fit
  constexpr int threads = 1;
  const int written =
      blosc_compress_ctx(blosc_level, element_bytes > 1 ? BLOSC_SHUFFLE : BLOSC_NOSHUFFLE, element_bytes, raw.size(),
                         raw.data(), packed.data(), packed.size(), BLOSC_LZ4_COMPNAME, block_bytes, threads);
  if (written <= 0) {
    throw error(errc::unsupported, str_cat("Blosc cannot pack ", raw.size(),
                                           " bytes: this libblosc was built without LZ4; choose another codec"));
  }
  packed.resize(static_cast<std::size_t>(written));
}

}  // namespace

void compress(packing how, std::uint32_t element_bytes, std::span<const std::byte> raw,
              std::vector<std::byte>& packed) {
  assert(raw.size() <= packed_bytes_max);
  switch (how) {
    case packing::none:
      packed.assign(raw.begin(), raw.end());
      return;
    case packing::zstd:
      compress_zstd(raw, packed);
      return;
    case packing::gzip:
      gzip(raw, packed);
      return;
    case packing::blosc_lz4:
      compress_blosc(element_bytes, raw, packed);
      return;
  }
}

}  // namespace leat::datasets

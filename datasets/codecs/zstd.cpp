#include "datasets/codecs/zstd.hpp"

#include "base/text.hpp"

#include <zstd.h>

#include <memory>
#include <new>

namespace leat::datasets {

std::optional<std::string> expand_zstd(std::span<const std::byte> stored, std::span<std::byte> decoded) {
  struct free_context {
    void operator()(ZSTD_DCtx* one) const noexcept { ZSTD_freeDCtx(one); }
  };
  // 150 KB, which would take longer to get than a small chunk to expand.
  thread_local const std::unique_ptr<ZSTD_DCtx, free_context> with(ZSTD_createDCtx());
  if (!with) throw std::bad_alloc();
  const std::size_t written =
      ZSTD_decompressDCtx(with.get(), decoded.data(), decoded.size(), stored.data(), stored.size());
  if (ZSTD_isError(written) != 0) {
    return str_cat("damaged zstd data in ", stored.size(), " bytes: ", ZSTD_getErrorName(written));
  }
  if (written == decoded.size()) return std::nullopt;
  return str_cat("zstd data become ", written, " bytes where ", decoded.size(), " were expected");
}

}  // namespace leat::datasets

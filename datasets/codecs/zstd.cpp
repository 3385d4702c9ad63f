#include "datasets/codecs/zstd.hpp"

#include "base/text.hpp"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

namespace leat::datasets {

namespace {

struct free_context {
  void operator()(ZSTD_DCtx* one) const noexcept { ZSTD_freeDCtx(one); }
};

std::string damaged(std::size_t stored_bytes, std::string_view why) {
  return str_cat("damaged zstd data in ", stored_bytes, " bytes: ", why);
}

}  // namespace

std::optional<std::string> expand_zstd(std::span<const std::byte> stored, std::span<std::byte> decoded) {
  // 150 KB, which would take longer to get than a small chunk to expand.
  thread_local const std::unique_ptr<ZSTD_DCtx, free_context> with(ZSTD_createDCtx());
  if (!with) throw std::bad_alloc();
  const std::size_t written =
      ZSTD_decompressDCtx(with.get(), decoded.data(), decoded.size(), stored.data(), stored.size());
  if (ZSTD_isError(written) != 0) {
    return damaged(stored.size(), ZSTD_getErrorName(written));
  }
  if (written == decoded.size()) return std::nullopt;
  return str_cat("zstd data become ", written, " bytes where ", decoded.size(), " were expected");
}

std::optional<std::string> expand_zstd_part(std::span<const std::byte> stored, std::uint64_t begin,
                                            std::span<std::byte> part) {
  const std::unique_ptr<ZSTD_DCtx, free_context> with(ZSTD_createDCtx());
  if (!with) throw std::bad_alloc();
  std::vector<std::byte> passed(std::min<std::uint64_t>(begin, ZSTD_DStreamOutSize()));
  ZSTD_inBuffer from{stored.data(), stored.size(), 0};
  while (!part.empty()) {
    const std::span<std::byte> to =
        begin == 0 ? part : std::span(passed).first(std::min<std::uint64_t>(begin, passed.size()));
    ZSTD_outBuffer into{to.data(), to.size(), 0};
    const std::size_t taken = from.pos;
    const std::size_t left = ZSTD_decompressStream(with.get(), &into, &from);
    if (ZSTD_isError(left) != 0) return damaged(stored.size(), ZSTD_getErrorName(left));
    if (into.pos == 0 && from.pos == taken) return damaged(stored.size(), "they end too early");
    if (begin == 0) {
      part = part.subspan(into.pos);
    } else {
      begin -= into.pos;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> zstd_frame_bytes(std::span<const std::byte> start) noexcept {
  const unsigned long long bytes = ZSTD_getFrameContentSize(start.data(), start.size());
  if (bytes == ZSTD_CONTENTSIZE_UNKNOWN || bytes == ZSTD_CONTENTSIZE_ERROR) return std::nullopt;
  return bytes;
}

}  // namespace leat::datasets

#include "datasets/codecs/lz4.hpp"

#include "base/text.hpp"
#include "datasets/codecs/big_endian.hpp"

#include <lz4.h>
#include <lz4frame.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <vector>

namespace leat::datasets {
namespace {

std::string cut_short(std::size_t bytes) { return str_cat("lz4 data end too early, after ", bytes, " bytes"); }

// This thread's, for a frame that begins.
LZ4F_dctx* frame_context() {
  struct free_context {
    void operator()(LZ4F_dctx* one) const noexcept { LZ4F_freeDecompressionContext(one); }
  };
  thread_local const std::unique_ptr<LZ4F_dctx, free_context> with([] {
    LZ4F_dctx* made = nullptr;
    return LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION)) != 0 ? nullptr : made;
  }());
  if (!with) throw std::bad_alloc();
  LZ4F_resetDecompressionContext(with.get());
  return with.get();
}

std::string damaged_frame(std::size_t stored_bytes, std::size_t code) {
  return str_cat("damaged lz4 data in ", stored_bytes, " bytes: ", LZ4F_getErrorName(code));
}

}  // namespace

std::optional<std::string> expand_lz4_block(std::span<const std::byte> stored, std::span<std::byte> decoded) {
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (stored.size() > most || decoded.size() > most) return "an lz4 block of more than 2 GiB";
  if (decoded.empty() && stored.empty()) return std::nullopt;
  const int written =
      LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()), reinterpret_cast<char*>(decoded.data()),
                          static_cast<int>(stored.size()), static_cast<int>(decoded.size()));
  if (written < 0) return str_cat("damaged lz4 data in ", stored.size(), " bytes");
  if (static_cast<std::size_t>(written) == decoded.size()) return std::nullopt;
  return str_cat("lz4 data become ", written, " bytes where ", decoded.size(), " were expected");
}

std::optional<std::string> expand_lz4_frame(std::span<const std::byte> stored, std::span<std::byte> decoded) {
  LZ4F_dctx* const with = frame_context();
  const std::size_t all = stored.size();
  const std::size_t wanted = decoded.size();
  std::size_t hint = 1;  // bytes that are still to come; 0 at the end of a frame
  while (!stored.empty()) {
    std::size_t taken = stored.size();
    std::size_t written = decoded.size();
    hint = LZ4F_decompress(with, decoded.data(), &written, stored.data(), &taken, nullptr);
    if (LZ4F_isError(hint) != 0) return damaged_frame(all, hint);
    stored = stored.subspan(taken);
    decoded = decoded.subspan(written);
    if (taken == 0 && written == 0) return str_cat("lz4 data become more than ", wanted, " bytes");
  }
  if (hint != 0) return cut_short(all);
  if (decoded.empty()) return std::nullopt;
  return str_cat("lz4 data become ", wanted - decoded.size(), " bytes where ", wanted, " were expected");
}

std::optional<std::string> expand_lz4_frame_part(std::span<const std::byte> stored, std::uint64_t begin,
                                                 std::span<std::byte> part) {
  constexpr std::size_t passed_bytes = std::size_t{64} << 10;
  LZ4F_dctx* const with = frame_context();
  const std::size_t all = stored.size();
  std::vector<std::byte> passed(std::min<std::uint64_t>(begin, passed_bytes));
  while (!part.empty()) {
    const std::span<std::byte> to =
        begin == 0 ? part : std::span(passed).first(std::min<std::uint64_t>(begin, passed.size()));
    std::size_t taken = stored.size();
    std::size_t written = to.size();
    const std::size_t hint = LZ4F_decompress(with, to.data(), &written, stored.data(), &taken, nullptr);
    if (LZ4F_isError(hint) != 0) return damaged_frame(all, hint);
    if (taken == 0 && written == 0) return cut_short(all);
    stored = stored.subspan(taken);
    if (begin == 0) {
      part = part.subspan(written);
    } else {
      begin -= written;
    }
  }
  return std::nullopt;
}

std::optional<std::string> expand_lz4(std::span<const std::byte> stored, std::span<std::byte> decoded) {
  std::uint32_t bytes = 0;
  if (stored.size() < sizeof bytes) return cut_short(stored.size());
  std::memcpy(&bytes, stored.data(), sizeof bytes);
  if (bytes != decoded.size()) {
    return str_cat("lz4 data become ", bytes, " bytes where ", decoded.size(), " were expected");
  }
  return expand_lz4_block(stored.subspan(sizeof bytes), decoded);
}

std::optional<std::string> expand_lz4_hdf5(std::span<const std::byte> stored, std::span<std::byte> decoded) {
  constexpr std::size_t header_bytes = 12;
  constexpr std::size_t size_bytes = 4;
  const std::size_t all = stored.size();
  if (all < header_bytes) return cut_short(all);
  const std::uint64_t bytes = big_endian(stored.first(8));
  const std::uint64_t block_bytes = big_endian(stored.subspan(8, 4));
  stored = stored.subspan(header_bytes);
  if (bytes != decoded.size()) {
    return str_cat("lz4 data become ", bytes, " bytes where ", decoded.size(), " were expected");
  }
  if (block_bytes == 0 && !decoded.empty()) return "lz4 data in blocks of no bytes";
  while (!decoded.empty()) {
    const std::size_t into = std::min<std::size_t>(decoded.size(), block_bytes);
    if (stored.size() < size_bytes) return cut_short(all);
    const std::uint64_t packed = big_endian(stored.first(size_bytes));
    stored = stored.subspan(size_bytes);
    if (packed > stored.size()) return cut_short(all);
    if (packed == into) {
      std::memcpy(decoded.data(), stored.data(), into);
    } else if (auto reason = expand_lz4_block(stored.first(packed), decoded.first(into))) {
      return reason;
    }
    stored = stored.subspan(packed);
    decoded = decoded.subspan(into);
  }
  return std::nullopt;
}

}  // namespace leat::datasets

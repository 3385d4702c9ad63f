#include "datasets/formats/zarr/zarr_shard.hpp"

#include "base/text.hpp"
#include "datasets/files/file_bytes.hpp"

#include <leat/error.hpp>

namespace leat::datasets {
namespace {

constexpr std::uint64_t entry_bytes = 16;
constexpr std::uint64_t checksum_bytes = 4;

}  // namespace

std::uint64_t shard_index_bytes(std::uint64_t chunks, std::span<const filter> filters) noexcept {
  return chunks * entry_bytes + filters.size() * checksum_bytes;
}

std::vector<chunk_place> parse_shard_index(std::span<const std::byte> stored, std::uint64_t chunks,
                                           std::span<const filter> filters, std::uint64_t shard_bytes,
                                           const std::string& where) {
  std::vector<std::byte> index(chunks * entry_bytes);
  if (const auto reason = undo_filters(filters, 0, stored, index)) {
    throw error(errc::format, str_cat(where, " is damaged: ", *reason));
  }
  std::vector<chunk_place> places(chunks);
  for (std::uint64_t i = 0; i < chunks; ++i) {
    const auto begin = number_at<std::uint64_t>(index, i * entry_bytes);
    const auto bytes = number_at<std::uint64_t>(index, i * entry_bytes + sizeof begin);
    if (begin == chunk_place::absent && bytes == chunk_place::absent) continue;
    if (begin > shard_bytes || bytes > shard_bytes - begin) {
      throw error(errc::format, str_cat(where, " has a chunk of ", bytes, " bytes at offset ", begin,
                                        ", and the shard has ", shard_bytes));
    }
    places[i] = {.offset = begin, .bytes = bytes};
  }
  return places;
}

}  // namespace leat::datasets

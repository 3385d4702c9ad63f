// Does a file that was made up bring down the readers of arrays in chunks? It may only be read, or refused with an error of leat's.
//
// The first byte of an input says what the rest is: an HDF5 file, the metadata of a Zarr array of version 2 or 3, a chunk, whose
// next bytes say which filters it went through, a shard, whose next bytes say what its index is, or references. scripts/fuzz runs it.
#include "base/parse_json.hpp"
#include "datasets/codecs/filters.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/formats/hdf5/hdf5_file.hpp"
#include "datasets/formats/zarr/zarr_metadata.hpp"
#include "datasets/formats/zarr/zarr_references.hpp"
#include "datasets/formats/zarr/zarr_shard.hpp"
#include "tests/fuzz/bytes_in_memory.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat {
namespace {

using datasets::chunk_place;
using datasets::chunked_array;
using datasets::filter;
using datasets::filter_kind;

constexpr std::uint64_t chunk_bytes_max = std::uint64_t{1} << 16;

struct tally {
  std::uint64_t files = 0;
  std::uint64_t arrays = 0;
  std::uint64_t chunks = 0;

  ~tally() {
    std::fprintf(stderr, "decoded: %llu inputs were read, with %llu arrays, and %llu chunks were expanded\n",
                 static_cast<unsigned long long>(files), static_cast<unsigned long long>(arrays),
                 static_cast<unsigned long long>(chunks));
  }
} seen;

void expand(std::span<const filter> filters, std::uint32_t skipped, std::span<const std::byte> stored,
            std::uint64_t bytes) {
  // Of exactly this size, so that AddressSanitizer sees who goes beyond.
  std::vector<std::byte> decoded(bytes);
  if (!datasets::undo_filters(filters, skipped, stored, decoded)) ++seen.chunks;
}

void read_file(std::span<const std::byte> bytes) {
  const datasets::hdf5_contents contents = datasets::read_hdf5(testing::bytes_in_memory(bytes, "made-up.h5"));
  for (const chunked_array& array : contents.arrays) {
    ++seen.arrays;
    std::uint64_t chunk_bytes = size_bytes(array.type);
    for (const std::uint64_t extent : array.chunk)
      chunk_bytes = std::min(chunk_bytes * std::min(extent, chunk_bytes_max), 2 * chunk_bytes_max);
    if (chunk_bytes > chunk_bytes_max) continue;
    for (std::size_t i = 0; i < std::min<std::size_t>(array.places.size(), 4); ++i) {
      const chunk_place& place = array.places[i];
      if (place.offset > bytes.size() || place.bytes > bytes.size() - place.offset) continue;
      expand(array.filters, place.skipped, bytes.subspan(place.offset, place.bytes), chunk_bytes);
    }
  }
}

void read_metadata(std::span<const std::byte> bytes, bool is_v3) {
  const nlohmann::json metadata = parse_json_or_discard({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!metadata.is_object()) return;
  try {
    static_cast<void>(is_v3 ? datasets::zarr_layout_v3(metadata, "x", "zarr.json")
                            : datasets::zarr_layout_v2(metadata, "x", ".zarray"));
    ++seen.arrays;
  } catch (const datasets::zarr_not_read&) {
  } catch (const nlohmann::json::exception&) {  // as read_zarr() takes it
  }
}

// Filters, the bytes that come out, and the chunk.
void read_chunk(std::span<const std::byte> bytes) {
  constexpr std::size_t header_bytes = 5;
  if (bytes.size() < header_bytes) return;
  std::vector<filter> filters;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto code = std::to_integer<unsigned>(bytes[i]);
    if (code == 0xFF) continue;
    filters.push_back({static_cast<filter_kind>(code % (static_cast<unsigned>(filter_kind::swap) + 1)),
                       1U + std::to_integer<std::uint32_t>(bytes[2]) % 16});
  }
  const std::uint64_t decoded =
      std::to_integer<std::uint64_t>(bytes[3]) << 8 | std::to_integer<std::uint64_t>(bytes[4]);
  expand(filters, 0, bytes.subspan(header_bytes), decoded);
}

// Whether there is a checksum and where the index lies, how many chunks, and the shard.
void read_shard(std::span<const std::byte> bytes) {
  constexpr std::size_t header_bytes = 3;
  if (bytes.size() < header_bytes) return;
  const auto flags = std::to_integer<unsigned>(bytes[0]);
  const std::uint64_t chunks = datasets::number_at<std::uint16_t>(bytes, 1);
  const std::vector<filter> filters(flags & 1U, filter{filter_kind::crc32c, 8});
  const std::span<const std::byte> shard = bytes.subspan(header_bytes);
  const std::uint64_t index_bytes = datasets::shard_index_bytes(chunks, filters);
  if (index_bytes > shard.size()) return;
  const std::span<const std::byte> index = (flags & 2U) != 0 ? shard.first(index_bytes) : shard.last(index_bytes);
  for (const chunk_place& place : datasets::parse_shard_index(index, chunks, filters, shard.size(), "shard")) {
    if (place.offset == chunk_place::absent) continue;
    if (place.offset > shard.size() || place.bytes > shard.size() - place.offset) std::abort();
    ++seen.chunks;
  }
}

// All groups and arrays, and the first chunk of each. Arrays of many chunks would take seconds each, and are no other code.
void read_references(std::span<const std::byte> bytes) {
  constexpr std::size_t nodes_max = 1000;
  static_cast<void>(datasets::is_references(bytes));
  const std::unique_ptr<datasets::zarr_store> store = datasets::zarr_of_references("made-up.json", bytes);
  std::vector<std::string> groups{""};
  std::vector<datasets::sized_file> files;
  const auto look_at = [&](const std::string& key) {
    try {
      const datasets::zarr_object found = store->find(key);
      if (!found.is_there()) return;
      if (store->number_of_file(key, found, files) >= files.size()) std::abort();
      if (found.held != nullptr && store->read(key, found, 1, found.bytes).size() > found.bytes) std::abort();
    } catch (const datasets::zarr_not_read&) {
    } catch (const error&) {
    }
  };
  for (std::size_t i = 0; i < groups.size() && i < nodes_max; ++i) {
    const std::string before = groups[i].empty() ? "" : groups[i] + "/";
    for (const std::string& name : store->names_in(groups[i])) groups.push_back(before + name);
    for (const char* name : {".zarray", "zarr.json", "0", "0.0", "c/0/0"}) look_at(before + name);
    if (store->has(before + ".zarray")) ++seen.arrays;
  }
}

}  // namespace
}  // namespace leat

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size)).subspan(1);
  try {
    switch (data[0] % 6) {
      case 0:
        leat::read_file(bytes);
        break;
      case 1:
      case 2:
        leat::read_metadata(bytes, data[0] % 6 == 2);
        break;
      case 4:
        leat::read_shard(bytes);
        break;
      case 5:
        leat::read_references(bytes);
        break;
      default:
        leat::read_chunk(bytes);
    }
    ++leat::seen.files;
  } catch (const leat::error&) {
  }
  return 0;
}

// Indexes of shards that a store may hold: ours where the first byte is even, DALI's where it is odd. What is taken has its places in the shard.
#include "datasets/formats/tar/shard_index_file.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

namespace leat::datasets {
namespace {

void demand(bool holds) {
  if (!holds) std::abort();
}

void look_at(const shard_index& index) {
  for (const extent_table::record& each : index.records) {
    demand(each.offset() + each.bytes() <= index.file_bytes && each.field() < index.fields.size());
  }
  demand(index.ends.empty() ? index.records.empty() : index.ends.back() == index.records.size());
  demand(std::is_sorted(index.ends.begin(), index.ends.end()));
  for (const shard_index::damaged& each : index.defects) demand(each.sample < index.ends.size());
}

// Behind a header of its own: the checksum is not looked at here.
void read_own(std::span<const std::byte> content) {
  std::vector<std::byte> bytes = write_shard_indexes({}, at_end_marker::stop);
  bytes.resize(32);
  bytes.insert(bytes.end(), content.begin(), content.end());
  const parsed_shard_indexes parsed = parse_shard_indexes(bytes);
  for (const indexed_shard& each : parsed.shards) look_at(each.index);
  demand(parse_shard_indexes(write_shard_indexes(parsed.shards, parsed.at_marker)).shards.size() ==
         parsed.shards.size());
}

}  // namespace
}  // namespace leat::datasets

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    if (data[0] % 2 == 0) {
      leat::datasets::read_own(std::as_bytes(std::span(data + 1, size - 1)));
    } else {
      leat::datasets::look_at(
          leat::datasets::parse_wds_index({reinterpret_cast<const char*>(data) + 1, size - 1}, std::uint64_t{1} << 20));
    }
  } catch (const leat::error&) {  // Said in words, which is what it is for.
  }
  return 0;
}

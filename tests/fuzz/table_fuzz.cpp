// Does a file that was made up bring down the readers of tables? It may only be read, or refused with an error of leat's.
//
// The first byte of an input says what the rest is: a Parquet file, or a block of Snappy, whose next bytes say what it becomes.
// scripts/fuzz runs it.
#include "datasets/codecs/snappy.hpp"
#include "datasets/hub_features.hpp"
#include "datasets/parquet_footer.hpp"
#include "datasets/parquet_pages.hpp"
#include "datasets/parquet_values.hpp"
#include "tests/fuzz/bytes_in_memory.hpp"

#include <leat/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

namespace leat {
namespace {

struct tally {
  std::uint64_t files = 0;
  std::uint64_t values = 0;

  ~tally() {
    std::fprintf(stderr, "decoded: %llu inputs were read, with %llu values\n", static_cast<unsigned long long>(files),
                 static_cast<unsigned long long>(values));
  }
} seen;

// Larger tables would take seconds each, and are no other code.
constexpr std::uint64_t rows_max = 4096;

template <class Function>
void if_it_can(const Function& function) {
  try {
    function();
  } catch (const error&) {
  }
}

void check(std::span<const datasets::value_place> places, std::uint64_t file_bytes) {
  for (const datasets::value_place& each : places) {
    if (!each.is_there()) continue;
    if (each.offset > file_bytes || each.bytes > file_bytes - each.offset) std::abort();
    ++seen.values;
  }
}

class counting_sink final : public datasets::parquet_sink {
 public:
  void add(std::uint32_t, std::uint32_t, std::span<const std::byte> value) override {
    for (const std::byte each : value) sum_ += std::to_integer<std::uint64_t>(each);
    if (++count_ > 64 * rows_max) throw error(errc::limit, "enough");
    ++seen.values;
  }

 private:
  std::uint64_t sum_ = 0;
  std::uint64_t count_ = 0;
};

void read_parquet(std::span<const std::byte> bytes) {
  const testing::bytes_in_memory file(bytes);
  const datasets::parquet_footer footer = datasets::read_parquet_footer(file);
  static_cast<void>(datasets::read_hub_features(footer.hub_features));
  if (footer.rows > rows_max || footer.groups.size() * footer.leaves.size() > 256) return;
  for (const datasets::parquet_group& group : footer.groups) {
    for (std::size_t i = 0; i < footer.leaves.size(); ++i) {
      const datasets::parquet_leaf& leaf = footer.leaves[i];
      const datasets::parquet_chunk& chunk = group.chunks[i];
      const auto type = datasets::number_type(leaf);
      if (leaf.repeated == 0 && type) {
        if_it_can([&] {
          datasets::record_numbers numbers{.name = leaf.path, .type = *type};
          numbers.whole.resize(footer.rows);
          numbers.bytes.resize(footer.rows * 8);
          static_cast<void>(datasets::read_numbers(file, leaf, group, chunk, numbers));
        });
      } else if (leaf.repeated == 0 && datasets::why_not_bare(leaf, chunk).empty()) {
        if_it_can([&] {
          std::vector<datasets::value_place> places(group.rows);
          datasets::find_bare_values(file, leaf, group, chunk, places);
          check(places, bytes.size());
        });
      } else {
        if_it_can([&] {
          counting_sink sink;
          const std::vector<std::byte> stored = file.read(chunk.offset, chunk.bytes);
          datasets::decode_chunk(file.path(), leaf, chunk, stored, sink);
        });
        if (leaf.repeated == 0)
          if_it_can([&] { static_cast<void>(datasets::read_few_texts(file, leaf, group, chunk)); });
      }
    }
  }
}

void expand_snappy(std::span<const std::byte> bytes) {
  if (bytes.size() < 2) return;
  std::vector<std::byte> decoded(datasets::number_at<std::uint16_t>(bytes, 0));
  if (!datasets::expand_snappy(bytes.subspan(2), decoded)) ++seen.values;
}

}  // namespace
}  // namespace leat

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size)).subspan(1);
  try {
    if (data[0] % 2 == 0) {
      leat::read_parquet(bytes);
    } else {
      leat::expand_snappy(bytes);
    }
    ++leat::seen.files;
  } catch (const leat::error&) {
  }
  return 0;
}

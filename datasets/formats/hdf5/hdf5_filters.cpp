#include "datasets/formats/hdf5/hdf5_filters.hpp"

#include "base/text.hpp"

namespace leat::datasets {
namespace {

// Client values are the filter's version twice, the bytes of an element, elements of a block, the compression and its level.
filter bitshuffle_of(std::span<const std::uint32_t> values, std::uint32_t element_bytes) {
  enum compression : std::uint32_t { none = 0, lz4 = 2, zstd = 3 };
  const auto value = [&](std::size_t number) { return number < values.size() ? values[number] : 0; };
  if (value(2) != 0) element_bytes = value(2);
  const std::uint32_t block_elements = value(3);
  if (block_elements % 8 != 0)
    throw hdf5_not_read{str_cat("bitshuffle in blocks of ", block_elements, " elements, which are no multiple of 8")};
  switch (value(4)) {
    case none:
      return {.kind = filter_kind::bitshuffle, .element_bytes = element_bytes, .block_elements = block_elements};
    case lz4:  // each chunk has the size of its blocks
      return {.kind = filter_kind::bitshuffle_lz4, .element_bytes = element_bytes};
    case zstd:
      throw hdf5_not_read{"bitshuffle with zstd; `h5repack -f GZIP=4` writes it anew"};
    default:
      throw hdf5_not_read{
          str_cat("bitshuffle with the compression ", value(4), "; `h5repack -f GZIP=4` writes it anew")};
  }
}

}  // namespace

filter hdf5_filter_of(std::uint64_t id, const std::string& name, std::span<const std::uint32_t> values,
                      std::uint32_t element_bytes) {
  switch (id) {
    case 1:  // level
      return {filter_kind::zlib, element_bytes};
    case 2:  // bytes of an element
      return {filter_kind::shuffle, values.empty() ? element_bytes : values.front()};
    case 3:
      return {filter_kind::fletcher32, element_bytes};
    case 32000:  // versions, bytes of a chunk
      return {filter_kind::lzf, element_bytes};
    case 32001:  // what each chunk says of itself
      return {filter_kind::blosc, element_bytes};
    case 32004:  // bytes of a block, which each chunk says too
      return {filter_kind::lz4_hdf5, element_bytes};
    case 32008:
      return bitshuffle_of(values, element_bytes);
    case 32015:  // level
      return {filter_kind::zstd, element_bytes};
    case 4:
      throw hdf5_not_read{"the filter szip; `h5repack -f SHUF -f GZIP=4` writes it anew"};
    case 5:
      throw hdf5_not_read{"the filter n-bit; `h5repack -f SHUF -f GZIP=4` writes it anew"};
    case 6:
      throw hdf5_not_read{"the filter scale-offset; `h5repack -f SHUF -f GZIP=4` writes it anew"};
    case 32026:
      throw hdf5_not_read{"the filter blosc2; `h5repack -f SHUF -f GZIP=4` writes it anew"};
    default:
      throw hdf5_not_read{str_cat("the filter ", id, name.empty() ? "" : str_cat(" ('", name, "')"),
                                  ", which leat does not have; `h5repack -f SHUF -f GZIP=4` writes it anew")};
  }
}

}  // namespace leat::datasets

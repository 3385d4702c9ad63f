// What the files of a dataset call its samples and their fields: for packing, and for who looks for them there.
#pragma once

#include <leat/extent.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

class blocking_sources;

/// Where packing puts a field of a sample: a member's path without its extension, and the extension as it was.
struct member_path {
  std::string stem;       ///< may hold directories; dots too, unless it is a key already
  std::string extension;  ///< without the dot; may hold dots where the source's members had them
  bool is_key = false;    ///< it comes from a shard and goes into one as it is
};

class packing_facet {
 public:
  /// One for each of `fields`, which the sample has. May block, reading from `sources`.
  [[nodiscard]] virtual std::vector<member_path> members(std::uint64_t sample, std::span<const std::uint16_t> fields,
                                                         blocking_sources& sources) const = 0;

  /// Where a person looks for a part of this sample in its file: at the header before it, where a format has one.
  ///   default   the offset of its bytes
  [[nodiscard]] virtual std::uint64_t header_offset(std::uint64_t sample, const extent& part) const;

 protected:
  ~packing_facet() = default;
};

}  // namespace leat::datasets

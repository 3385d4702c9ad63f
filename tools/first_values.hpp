// How a dataset's fields lie in its files, and what the first value of each is (leat inspect).
#pragma once

#include <leat/samples.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leat::tools {

/// Of one field that has bytes.
///   mode      "extents": read as it lies; "blocks": samples share what is read, and expanded, for one; "made": by a function
///   how       what is done to what is read: "snappy, dictionary", "picked out of a record", "decoded"; empty: nothing
///   sample    whose value was read; none where no sample that was looked at has one
///   shows     the value, decoded: "JPEG, 500 x 375", "i32 [3]: 0, 1, 2"
///   failure   why it cannot be decoded
struct first_value {
  std::string field;
  std::string mode;
  std::string how;
  std::optional<std::uint64_t> sample;
  std::string shows;
  std::string failure;
};

/// One for each field with bytes, in their order. Reads one value of each, and what has to be expanded for it.
///   host_bytes_max   a loader's budget, of which a picture may take its share
[[nodiscard]] std::vector<first_value> first_values(const dataset& samples, std::size_t host_bytes_max);

}  // namespace leat::tools

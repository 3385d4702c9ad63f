// Every sample read and decoded whole, as no epoch does that crops: what is damaged anywhere is found (leat inspect
// --decode).
#pragma once

#include "tools/large_pictures.hpp"

#include <leat/dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leat::tools {

struct undecoded_sample {
  std::uint64_t sample = 0;
  std::string name;
  std::string field;
  std::string kind;  ///< corrupt_kind
  std::string reason;
};

struct decoded_samples {
  std::uint64_t looked_at = 0;
  std::vector<undecoded_sample> damaged;  ///< by sample and field
};

/// Reads all fields of all samples, expands what is stored in another form, and decodes pictures. On all processors.
///   host_bytes_max   the budget that a loader would have
[[nodiscard]] decoded_samples decode_all(const dataset& samples, std::size_t host_bytes_max,
                                         measuring_progress& so_far);

}  // namespace leat::tools

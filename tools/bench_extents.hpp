// The reads that an epoch of a dataset makes, in its order: what `leat bench read --pattern extents` replays.
#pragma once

#include "tools/bench_read.hpp"

#include <leat/field.hpp>
#include <leat/loading.hpp>
#include <leat/samples.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace leat::tools {

/// Reads as the loader's planner makes them: neighbours merged, as long as a sample's fields need. The reader widens them
/// to what the drive can do.
struct epoch_reads {
  std::vector<std::string> files;
  std::vector<read_places::place> reads;
  std::uint64_t samples = 0;      ///< that these reads serve
  std::uint64_t samples_all = 0;  ///< of the epoch; more than `samples` where it has more than `reads_max` reads
  std::uint64_t bytes = 0;
  std::uint64_t read_bytes_max = 0;

  [[nodiscard]] std::uint64_t read_bytes_mean() const noexcept { return reads.empty() ? 0 : bytes / reads.size(); }
};

/// Plans epoch 0 with the loader's own sampler and planner.
///   reads_max   more are not planned: what is left out of an epoch is as random as what is in
///   throws      error{errc::usage}: none of the fields is read from a file
[[nodiscard]] epoch_reads plan_epoch(const dataset& samples, const std::vector<field>& fields,
                                     const loader_options& options, std::size_t reads_max = std::size_t{1} << 22);

}  // namespace leat::tools

// How many elements rows have, where only a field can tell.
#pragma once

#include <cstdint>
#include <vector>

namespace leat::stages {

/// Elements of the row of each sample. Of one that has no row, which its decoding says when it comes, 1.
using row_counts = std::vector<std::uint32_t>;

/// What counting a row's elements does with samples that it cannot read, and how much memory it takes.
///   raises      it throws; else each is counted as 1, as a run that goes on has it
///   bytes_max   loader_options::host_bytes_max, or what is chosen for it
struct counting {
  bool raises = true;
  std::uint64_t bytes_max = std::uint64_t{512} << 20;
};

}  // namespace leat::stages

// What a batch reads, as a value: asked for with no loader around, and the same for whoever asks.
#pragma once

#include <leat/extent.hpp>
#include <leat/sampler.hpp>

#include <cstdint>
#include <vector>

namespace leat::stages {

/// No lease, no operation, no thread.
///   picks   of the rows
///   parts   of what each row is made, row by row; a row without any is corrupt, or made by a call
///   reads   that fetch them: neighbours in a file are one read
struct batch_plan {
  /// The bytes of a field of the dataset.
  struct part {
    std::uint32_t row = 0;
    std::uint16_t field = 0;
    extent where;
  };
  ///   rows   that it serves
  struct read {
    std::uint32_t source = 0;
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::vector<std::uint32_t> rows;
  };

  std::uint32_t epoch = 0;
  std::uint64_t index = 0;
  std::vector<pick> picks;
  std::vector<part> parts;
  std::vector<read> reads;
};

}  // namespace leat::stages

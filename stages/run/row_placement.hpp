// Which thread makes a row.
#pragma once

#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/run/batch_in_flight.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace leat::stages {

/// The one place that decides it, of a run and of each of its samples. A job for another thread costs about 1 us, so the I/O thread
/// that has read a sample makes its rows where that takes no longer:
///
///   - nothing is left to do: all of its bytes were read to where they stay
///   - all fields are cheap: each copies or widens stored bytes (output_spec::copied) to at most cheap_row_bytes a row, and every field
///     that is read comes from extents (a call or a coroutine may take any time)
///
/// Never where the rows are looked at again when they are made (digests, names, checks of a sample), nor where one waits for another
/// (targets, crops that look at boxes), and never a corrupt sample, whose description may
/// read a file.
class row_placement {
 public:
  enum class thread : std::uint8_t { io, decode };

  /// A row of so many bytes is written in about 1 us.
  static constexpr std::size_t cheap_row_bytes = std::size_t{32} << 10;

  ///   read_again   rows are looked at when they are made
  row_placement(const datasets::dataset_model& dataset, std::span<const std::unique_ptr<field_program>> programs,
                bool read_again);

  /// Of a sample whose bytes are there.
  [[nodiscard]] thread of(const sample_in_flight& sample) const noexcept {
    const bool here = cheap_ || (sample.read_into && !read_again_);
    return here && !sample.corrupt ? thread::io : thread::decode;
  }
  /// Whether I/O threads write rows, and so need what a decoder needs.
  [[nodiscard]] bool io_threads_write() const noexcept { return cheap_; }

 private:
  bool read_again_ = false;
  bool cheap_ = false;
};

}  // namespace leat::stages

// Reading pictures whose samples may have more than 8 bits: lines of numbers, of any number of channels.
#pragma once

#include "stages/pixels/geometry.hpp"
#include "stages/pixels/picture_info.hpp"
#include "stages/pixels/sample_kind.hpp"

#include <atomic>
#include <cstddef>
#include <span>

namespace leat::pixels {

/// What a file says of its samples.
///   channels   alpha left aside
///   bits       of each sample
///   alpha      there was one
struct wide_info {
  format what = format::unknown;
  int width = 0;
  int height = 0;
  int channels = 0;
  int bits = 0;
  sample_kind kind = sample_kind::whole;
  bool alpha = false;
};

/// One thread's reader of one format, which takes its memory from an arena. The calls for a picture are open(), scratch_bytes(), start(),
/// then read() for each line of the region.
class wide_reader {
 public:
  wide_reader() = default;
  wide_reader(const wide_reader&) = delete;
  wide_reader& operator=(const wide_reader&) = delete;
  virtual ~wide_reader() = default;

  /// Reads the headers within the arena's base. `encoded` stays where it is until the last read().
  virtual outcome<wide_info> open(std::span<const std::byte> encoded, const std::atomic<bool>* stop) = 0;
  /// The most bytes of the arena that start() and read() will take.
  ///   region   not empty
  [[nodiscard]] virtual std::size_t scratch_bytes(const rectangle& region) = 0;
  virtual outcome<void> start(const rectangle& region) = 0;
  /// The region's next line: region.width pixels of wide_info::channels numbers, as stored.
  virtual outcome<const float*> read() = 0;
  /// Gives back what a library holds of a picture that was not read to its end. Before the arena's end().
  virtual void stop_reading() noexcept {}
};

}  // namespace leat::pixels

// The lines of a TIFF's first page by libtiff: samples as they are stored, of the host's byte order.
#pragma once

#include "stages/pixels/geometry.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/pixels/tiff_headers.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

namespace leat::pixels {

/// One thread's reader of TIFF. Lines and blocks come from the arena; what libtiff allocates itself is computed first and lent from it.
/// Strips are decoded line by line; of tiles, and where channels lie apart, a row of blocks is held.
class tiff_blocks {
 public:
  explicit tiff_blocks(scratch_arena& arena);
  ~tiff_blocks();
  tiff_blocks(const tiff_blocks&) = delete;
  tiff_blocks& operator=(const tiff_blocks&) = delete;

  /// Reads the headers; takes no memory. `encoded` stays where it is until the last read().
  ///   returns   unsupported: compression that is not read, by its name
  outcome<tiff_layout> open(std::span<const std::byte> encoded, const std::atomic<bool>* stop);
  /// The most bytes of the arena that start() and read() will take.
  ///   region   not empty
  [[nodiscard]] std::size_t scratch_bytes(const rectangle& region);
  outcome<void> start(const rectangle& region);
  /// The region's next line: region.width pixels, interleaved, at any address.
  outcome<const std::byte*> read();
  /// libtiff gives its memory back, which read() does after the last line and after a failure.
  void stop_reading() noexcept;
  /// Colours of a palette: three times 2^bits numbers of 16 bits, red first. Null where there is none. After start().
  struct colours {
    const std::uint16_t* red = nullptr;
    const std::uint16_t* green = nullptr;
    const std::uint16_t* blue = nullptr;
  };
  [[nodiscard]] colours palette() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace leat::pixels

// A JPEG's lines by libjpeg-turbo, straight from the caller's bytes: only the rows and columns of a region, which come
// out as they would if the whole picture had been decoded.
#pragma once

#include "stages/outcome.hpp"
#include "stages/pixels/geometry.hpp"
#include "stages/pixels/lines.hpp"
#include "stages/pixels/picture_info.hpp"
#include "stages/pixels/scratch.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace leat::pixels {

/// Who decodes the Huffman codes of a baseline picture.
enum class huffman_stage : std::uint8_t {
  own,     ///< ours, where it can (baseline_huffman.hpp); where it finds the picture damaged, gave_up() says so
  libjpeg  ///< libjpeg-turbo's, and so is every other kind of picture
};

/// One thread's JPEG decoder. Between open() and the arena's end() it reads one picture; nothing of one picture reaches
/// the next.
class jpeg_reader {
 public:
  explicit jpeg_reader(scratch_arena& arena);
  ~jpeg_reader();
  jpeg_reader(const jpeg_reader&) = delete;
  jpeg_reader& operator=(const jpeg_reader&) = delete;

  /// Reads the headers within the arena's base. `encoded` stays where it is until the last read().
  stages::outcome<void> open(std::span<const std::byte> encoded, const picture_info& info,
                             const std::atomic<bool>* stop, huffman_stage huffman);

  /// What start() and read() will take at most.
  ///   decimation   1, 2, 4 or 8: the inverse DCT shrinks by it, sizes round up
  ///   region       in decimated pixels, not empty
  [[nodiscard]] std::size_t scratch_bytes(const rectangle& region, int decimation);

  /// Begins to decode. A progressive picture is decoded to coefficients here.
  stages::outcome<void> start(const rectangle& region, int decimation);

  /// The region's next lines, at least one. At most region.height in all.
  stages::outcome<lines> read();

  /// A step failed that would not have, or not in the same way, with huffman_stage::libjpeg.
  [[nodiscard]] bool gave_up() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace leat::pixels

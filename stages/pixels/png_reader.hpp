// A PNG's lines by libpng: 8-bit RGB whatever is stored, only the rows of a region.
#pragma once

#include "stages/outcome.hpp"
#include "stages/pixels/geometry.hpp"
#include "stages/pixels/lines.hpp"
#include "stages/pixels/picture_info.hpp"
#include "stages/pixels/scratch.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

namespace leat::pixels {

/// One thread's PNG decoder. Grey and palettes become RGB, of 16 bits the upper 8 are taken (as Pillow does), alpha and
/// colour profiles are dropped. libpng's memory comes from the arena.
class png_reader {
 public:
  explicit png_reader(scratch_arena& arena);
  ~png_reader();
  png_reader(const png_reader&) = delete;
  png_reader& operator=(const png_reader&) = delete;

  /// What start() and read() will take at most. An interlaced picture is held as a whole.
  [[nodiscard]] static std::size_t scratch_bytes(const picture_info& info) noexcept;

  /// Begins to decode `region` of the picture that `info` describes; `encoded` stays where it is until the last read().
  stages::outcome<void> start(std::span<const std::byte> encoded, const picture_info& info, const rectangle& region,
                              const std::atomic<bool>* stop);

  /// The region's next lines, at least one. At most region.height in all.
  stages::outcome<lines> read();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace leat::pixels

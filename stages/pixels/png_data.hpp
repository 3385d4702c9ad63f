// Gives the bytes of a PNG's lines: checks chunks and checksums, and inflates the data with zlib, up to the last line. libpng
// itself would leave the file behind the last line that it is asked for unread; and with the last line of the picture it would
// inflate all data behind it, of any length.
#pragma once

#include "base/outcome.hpp"
#include "stages/pixels/scratch.hpp"

#include <zlib.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace leat::pixels {

/// Plain data, since libpng's errors jump over stack frames that use it. Functions return what is wrong with the picture as a
/// string literal, or null.
class png_data {
 public:
  /// Walks over all chunks and checks the CRC of those that pixels depend on. Takes no memory.
  ///   alpha     the transparency of colours is wanted: its chunk is looked at, too
  ///   encoded   a PNG by its signature; stays where it is until finish()
  ///             A file that ends early is accepted as far as this goes: read() and finish() tell whether its lines are whole, and
  ///             their checksum is there
  ///   returns   corrupt: what libpng calls an error, a CRC, no data, fewer bytes than can hold the lines; cancelled
  ///   source    W3C PNG 3rd edition, sections 5 and 11.2
  stages::outcome<void> open(std::span<const std::byte> encoded, bool alpha, const std::atomic<bool>* stop);

  /// Signature and header chunk.
  [[nodiscard]] std::span<const std::byte> header() const noexcept { return encoded_.first(header_bytes); }
  /// The palette's chunk where the pixels are indexes, else empty.
  [[nodiscard]] std::span<const std::byte> palette() const noexcept { return palette_; }
  /// The chunk that says which colours are transparent, where that is wanted, else empty.
  [[nodiscard]] std::span<const std::byte> transparency() const noexcept { return transparency_; }
  /// Whether a pixel has a sample of alpha in the file.
  [[nodiscard]] bool has_alpha_samples() const noexcept;
  /// The bytes of all lines of all passes, each with its filter byte.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// The bytes that start() takes, for zlib's state and window. Debian 12's zlib 1.2.13 takes 40 KiB, others more.
  static constexpr std::size_t scratch_bytes = std::size_t{56} << 10;
  const char* start(scratch_arena& arena) noexcept;

  /// The next bytes, at most as many as are left.
  const char* read(std::byte* to, std::size_t bytes) noexcept;

  [[nodiscard]] std::uint64_t bytes_left() const noexcept { return bytes_left_; }

  /// Call it when none are left. Checks that the data ends here or soon after, and that its checksum is right.
  ///   room   to inflate to, at least a byte
  const char* finish(std::span<std::byte> room) noexcept;

 private:
  static constexpr std::size_t header_bytes = 8 + 12 + 13;

  bool next_chunk() noexcept;
  const char* inflate_some() noexcept;

  std::span<const std::byte> encoded_;
  std::span<const std::byte> palette_;
  std::span<const std::byte> transparency_;
  std::uint64_t bytes_;
  std::uint64_t bytes_left_;
  std::size_t data_;  // where the next chunk with data begins, if it is one
  z_stream stream_;
  bool ended_;
  bool cut_;  // the file ends before its end chunk does
};

}  // namespace leat::pixels

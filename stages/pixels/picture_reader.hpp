// The interface of a reader of one picture format, which decodes the lines of a region. Each format implements it in a file of
// its own, for picture_decoder.
#pragma once

#include "base/outcome.hpp"
#include "stages/pixels/array_pixels.hpp"
#include "stages/pixels/background.hpp"
#include "stages/pixels/geometry.hpp"
#include "stages/pixels/lines.hpp"
#include "stages/pixels/picture_info.hpp"

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace leat::pixels {

/// How one picture is read.
///   stop           looked at every few lines; may be null
///   library_only   use the format's library only, without our fast path; see picture_reader::gave_up()
///   accept_cut     a JPEG that lost its end is grey from there on
///   background     what a picture with alpha is laid over; none: its alpha is dropped
///   as_stored      PNG only: the samples of the file without alpha, of the host's byte order; of a palette its indexes. One byte each,
///                  or two of 16 bits; others get 8-bit RGB
///   array          how pixels lie in the bytes, which are an array's; none: they are a file's
///   kept           memory for a picture that is read several times, each time from open() on: what was costly to decode stays there
///   kept_line      the first line that any of these reads wants, of the picture as it is stored
///   again          it has been read with the same `kept`, and was not damaged
///   plain          without the vector and bit instructions that not every processor has, in our JPEG path; for tests
struct reading {
  const std::atomic<bool>* stop = nullptr;
  bool library_only = false;
  bool accept_cut = false;
  std::optional<rgb_colour> background = std::nullopt;
  std::optional<array_pixels> array = std::nullopt;
  std::span<std::byte> kept = {};
  int kept_line = 0;
  bool again = false;
  bool plain = false;
  bool as_stored = false;
};

/// One thread's reader of one format, which takes its memory from an arena. Between open() and the arena's end() it reads one
/// picture, and keeps nothing of it for the next. The calls for a picture are open(), scratch_bytes(), start(), then read() until
/// all lines of the region have come.
class picture_reader {
 public:
  picture_reader() = default;
  picture_reader(const picture_reader&) = delete;
  picture_reader& operator=(const picture_reader&) = delete;
  virtual ~picture_reader() = default;

  /// Reads the headers within the arena's base. `encoded` stays where it is until the last read().
  virtual stages::outcome<void> open(std::span<const std::byte> encoded, const picture_info& info,
                                     const reading& how) = 0;

  /// The most bytes of the arena that start() and read() will take.
  ///   region       not empty, in decimated pixels
  ///   decimation   1; or 2, 4 or 8 where the reader decimates(): sizes round up
  [[nodiscard]] virtual std::size_t scratch_bytes(const rectangle& region, int decimation) = 0;

  /// What reading::kept wants of a picture, from a line on, so that reading it again takes less time. 0 if nothing can be kept.
  [[nodiscard]] virtual std::size_t kept_bytes(int /*line*/) { return 0; }

  /// As scratch_bytes(), for a picture that is held packed, which takes less memory and more time; without the packed data
  /// itself. 0 if the reader cannot pack.
  [[nodiscard]] virtual std::size_t scratch_bytes_packed(const rectangle& /*region*/, int /*decimation*/) { return 0; }

  /// Holds the picture packed, in at most so many bytes. Call it before start(), which fails with `too_little` if they do not
  /// suffice.
  virtual void pack(std::size_t /*bytes_max*/, stages::failure /*too_little*/) {}

  /// For messages: how to store the picture so that it needs less memory; empty if it needs little already.
  [[nodiscard]] virtual std::string_view remedy() const noexcept { return {}; }

  /// Begins to decode. A picture that has to be in memory as a whole is decoded here.
  virtual stages::outcome<void> start(const rectangle& region, int decimation) = 0;

  /// The region's next lines, at least one. At most region.height in all.
  virtual stages::outcome<lines> read() = 0;

  /// Whether it can shrink a picture while it decodes it.
  [[nodiscard]] virtual bool decimates() const noexcept { return false; }

  /// After a failure: whether the fast path failed, so that the result may differ with reading::library_only.
  [[nodiscard]] virtual bool gave_up() const noexcept { return false; }
};

}  // namespace leat::pixels

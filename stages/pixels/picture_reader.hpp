// What a reader of one picture format offers: lines of a region, cut from encoded bytes. Each format is a file of its own
// behind this; picture_decoder asks them all alike.
#pragma once

#include "stages/outcome.hpp"
#include "stages/pixels/geometry.hpp"
#include "stages/pixels/lines.hpp"
#include "stages/pixels/picture_info.hpp"

#include <atomic>
#include <cstddef>
#include <span>
#include <string_view>

namespace leat::pixels {

/// How one picture is read.
///   stop           looked at every few lines; may be null
///   library_only   without what we have beside the format's library; see picture_reader::gave_up()
struct reading {
  const std::atomic<bool>* stop = nullptr;
  bool library_only = false;
};

/// One thread's reader of one format, over an arena that it is made with. Between open() and the arena's end() it reads one
/// picture; nothing of one picture reaches the next. The calls of a picture: open(), scratch_bytes(), start(), then read()
/// until the region's lines have come.
class picture_reader {
 public:
  picture_reader() = default;
  picture_reader(const picture_reader&) = delete;
  picture_reader& operator=(const picture_reader&) = delete;
  virtual ~picture_reader() = default;

  /// Reads the headers within the arena's base. `encoded` stays where it is until the last read().
  virtual stages::outcome<void> open(std::span<const std::byte> encoded, const picture_info& info,
                                     const reading& how) = 0;

  /// What start() and read() will take at most.
  ///   region       not empty, in decimated pixels
  ///   decimation   1; or 2, 4 or 8 where the reader decimates(): sizes round up
  [[nodiscard]] virtual std::size_t scratch_bytes(const rectangle& region, int decimation) = 0;

  /// The same where the reader can hold the picture packed, without what is packed; 0 where it cannot. For pictures that take
  /// more than they can be given: it takes more time.
  [[nodiscard]] virtual std::size_t scratch_bytes_packed(const rectangle& /*region*/, int /*decimation*/) { return 0; }

  /// Before start(): holds it packed, in at most so many bytes. Where these do not do, start() fails with `too_little`.
  virtual void pack(std::size_t /*bytes_max*/, stages::failure /*too_little*/) {}

  /// How the same picture would be stored to need little memory, for a person; empty where it is.
  [[nodiscard]] virtual std::string_view remedy() const noexcept { return {}; }

  /// Begins to decode. What needs its whole self in memory is decoded here.
  virtual stages::outcome<void> start(const rectangle& region, int decimation) = 0;

  /// The region's next lines, at least one. At most region.height in all.
  virtual stages::outcome<lines> read() = 0;

  /// Whether it shrinks while it decodes.
  [[nodiscard]] virtual bool decimates() const noexcept { return false; }

  /// After a failure: a step failed that would not have, or not in the same way, with reading::library_only.
  [[nodiscard]] virtual bool gave_up() const noexcept { return false; }
};

}  // namespace leat::pixels

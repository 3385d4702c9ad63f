// Streams of gzip and Zstandard, unpacked a piece at a time, from their beginning or from a point in the middle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace leat::datasets {

enum class stream_coding : std::uint8_t { gzip, zstd };
[[nodiscard]] std::string_view name_of(stream_coding what) noexcept;
/// By the first bytes of a file; nothing where they are of neither.
[[nodiscard]] std::optional<stream_coding> coding_of(std::span<const std::byte> start) noexcept;

/// How far a deflated block may refer back: what must be known to go on in the middle of a stream.
inline constexpr std::size_t deflate_window_bytes = 32768;

/// Where a stream can be entered: between two blocks of deflate, or where a member of gzip or a frame of Zstandard begins.
///   out      offset of the next byte in what the stream becomes
///   in       offset of the next whole byte in the stream
///   bits     bits of the byte before, which are still to be read
///   window   number of the bytes before, deflate_window_bytes of them; no_window at the beginning of a member or a frame
///   crc      of what the stream becomes up to the next point
struct entry_point {
  static constexpr std::uint32_t no_window = ~std::uint32_t{0};

  std::uint64_t out = 0;
  std::uint64_t in = 0;
  std::uint32_t bits = 0;
  std::uint32_t window = no_window;
  std::uint32_t crc = 0;
  std::uint32_t reserved = 0;

  [[nodiscard]] std::uint64_t first_stored() const noexcept { return in - (bits != 0 ? 1 : 0); }
};

/// Thread: one at a time.
class unpacker {
 public:
  unpacker() = default;
  unpacker(const unpacker&) = delete;
  unpacker& operator=(const unpacker&) = delete;
  virtual ~unpacker() = default;

  enum class at : std::uint8_t {
    inside,    ///< it wants more bytes, or more room
    boundary,  ///< the stream can be entered here, with a window
    part_end,  ///< a member or a frame has ended, and its checksum is right: the stream can be entered here
    behind,    ///< what comes is no member and no frame
    damaged    ///< fault() says why
  };
  struct step {
    std::size_t read = 0;
    std::size_t written = 0;
    at where = at::inside;
  };
  /// Goes on until one of them is used up, or to the next place where the stream can be entered.
  [[nodiscard]] virtual step next(std::span<const std::byte> stored, std::span<std::byte> to) = 0;
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }

  /// Whether it stands within a member or a frame: a stream that ends there was cut.
  [[nodiscard]] virtual bool is_inside() const noexcept = 0;
  /// At a boundary: bits of the last byte that are still to be read, and the bytes before, with zeros in front where there are fewer.
  [[nodiscard]] virtual std::uint32_t bits() const noexcept { return 0; }
  virtual void copy_window(std::span<std::byte> /*to*/) {}

  /// Begins at this point.
  ///   window   of a point that has one
  ///   stored   bytes of the stream from point.first_stored() on
  ///   returns  how many of these are passed
  [[nodiscard]] virtual std::size_t enter(const entry_point& point, std::span<const std::byte> window,
                                          std::span<const std::byte> stored) = 0;

 protected:
  std::string fault_;
};
[[nodiscard]] std::unique_ptr<unpacker> make_unpacker(stream_coding what);

/// Fills `to` with what the stream becomes from a point on. Thread-safe.
///   returns   the reason why not
[[nodiscard]] std::optional<std::string> unpack_from(stream_coding what, const entry_point& point,
                                                     std::span<const std::byte> window,
                                                     std::span<const std::byte> stored, std::span<std::byte> to);

}  // namespace leat::datasets

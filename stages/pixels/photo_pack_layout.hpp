// A photo pack's parts: docs/internals/photo-pack.md.
#pragma once

#include "base/outcome.hpp"
#include "stages/pixels/byte_reading.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace leat::pixels {

/// The fixed head, as it lies in the file.
struct photo_pack_head {
  static constexpr std::size_t bytes = 48;
  static constexpr std::string_view magic =
      "\x89"
      "FJPG\r\n\x1A";
  static constexpr std::uint32_t version_known = 1;

  std::uint32_t version = version_known;
  std::uint32_t head_bytes = 0;  // of the JPEG, up to its scan
  std::uint32_t tail_bytes = 0;  // of the JPEG, behind its scan
  std::uint8_t components = 0;
  std::uint8_t mcu_blocks = 0;
  bool padded_by_ones = false;
  std::uint32_t mcu_columns = 0;
  std::uint32_t mcu_rows = 0;
  std::uint32_t jpeg_bytes = 0;
  std::uint32_t jpeg_sum = 0;
  std::uint32_t pack_bytes = 0;
};

/// A pack whose head has been checked. The bytes are the caller's.
struct photo_pack_view {
  photo_pack_head head;
  byte_span jpeg_head;
  byte_span jpeg_tail;
  byte_span index;
  byte_span rows;  // and the zeros behind them

  [[nodiscard]] std::uint32_t row_blocks() const noexcept { return head.mcu_columns * head.mcu_blocks; }
  /// Where a row ends, counted from the first row's begin.
  [[nodiscard]] std::uint32_t row_end(std::uint32_t number) const noexcept;
  /// A row's bytes, which photo_row_slack_bytes follow; empty where it is damaged.
  [[nodiscard]] byte_span row(std::uint32_t number) const noexcept;
};

[[nodiscard]] bool begins_as_photo_pack(byte_span bytes) noexcept;

/// The JPEG's head of a pack, unchecked: for reading markers only. Empty if it is cut off.
[[nodiscard]] byte_span jpeg_head_of_pack(byte_span pack) noexcept;

[[nodiscard]] stages::outcome<photo_pack_view> view_photo_pack(byte_span pack);

/// Whether packs are coded again for libjpeg-turbo to read (photo_source.hpp), since our stage has no door into the one that is loaded
/// (entropy_door.hpp). Slower, and the same pixels.
[[nodiscard]] bool photo_packs_are_recoded() noexcept;

/// The fixed head as bytes, its checksum missing.
[[nodiscard]] std::array<std::byte, photo_pack_head::bytes> as_bytes(const photo_pack_head& head) noexcept;

}  // namespace leat::pixels

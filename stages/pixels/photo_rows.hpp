// Writes and reads the rows of a photo pack, docs/internals/photo-pack.md. Reading uses the vector instructions that the processor has, chosen at
// the first call. All ways of reading give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::pixels {

/// Bytes behind a row that reading it may read, and does not use.
inline constexpr std::size_t photo_row_slack_bytes = 32;

/// Appends a row.
///   blocks         64 values each, in natural order, one MCU after the other
///   component_of   of each block of an MCU, `mcu_blocks` of them
void write_photo_row(const std::int16_t* blocks, std::uint32_t block_count, const std::uint8_t* component_of,
                     int mcu_blocks, std::vector<std::byte>& to);

/// A row that is being read. Plain data: libjpeg's jumps may skip it.
struct photo_row {
  // Scratch, set once by set_scratch().
  std::uint8_t* lengths;  // of each block's bitmap, in nibbles
  std::uint8_t* sizes;    // of each value above 1, less 1; 255: wide
  std::int8_t* values;    // wide ones are 0
  std::uint32_t block_count;

  // Of the row that has been begun.
  const std::uint8_t* maps;
  const std::uint8_t* dc;
  const std::uint8_t* wide;
  const std::uint8_t* wide_dc;
  std::uint32_t map_at;  // in nibbles
  std::uint32_t value_at;
  std::uint32_t value_count;
  std::uint32_t wide_at;  // the next value that is wide
  std::uint32_t block;
  int dc_sum[3];

  [[nodiscard]] static std::size_t scratch_bytes(std::uint32_t block_count) noexcept;
  void set_scratch(std::uint8_t* memory, std::uint32_t blocks) noexcept;

  /// Passes over blocks.
  void skip(const std::uint8_t* component_of, int mcu_blocks, std::uint32_t mcus) noexcept;
};

/// One instruction set's way of reading.
struct photo_row_reading {
  /// Begins a row. False where its counts contradict each other, so that what follows stays in bounds.
  bool (*begin)(photo_row& row, std::span<const std::uint8_t> bytes);
  /// The next MCU, all 64 values of each block.
  void (*decode)(photo_row& row, const std::uint8_t* component_of, int mcu_blocks, std::int16_t* const* to);
  const char* name;
};

/// Whether `begin` would take a row, for decoders elsewhere: what they find by counting in one of its streams lies in another then.
[[nodiscard]] bool photo_row_is_sound(std::span<const std::uint8_t> bytes, std::uint32_t block_count) noexcept;

/// All that this processor can, the fastest first, the plain one last.
[[nodiscard]] std::span<const photo_row_reading> photo_row_readings() noexcept;

}  // namespace leat::pixels

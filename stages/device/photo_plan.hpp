// What a device has to know to decode a photo pack, worked out on the host: which rows of MCUs, which columns of them, how samples become
// pixels, with which weights they are resampled; and the rows' bytes, which are checked here.
#pragma once

#include "stages/device/photo_batch.hpp"
#include "stages/pixels/geometry.hpp"
#include "stages/pixels/photo_layout.hpp"
#include "stages/pixels/picture_info.hpp"
#include "stages/pixels/resample.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace leat::stages {

/// One photo's.
///   on_device            but for where its tables lie
///   first_row, end_row   MCU rows that are decoded; none where the row is padding alone
///   scratch_bytes        of the device, a multiple of 16
///   across, down         what its tables are of
struct photo_plan {
  photo_on_device on_device = {};
  std::uint32_t first_row = 0;
  std::uint32_t end_row = 0;
  std::uint64_t scratch_bytes = 0;
  pixels::axis across;
  pixels::axis down;
};

/// The most scratch of one photo, so that numbers in kernels stay within 32 bits.
inline constexpr std::uint64_t photo_scratch_bytes_max = std::uint64_t{1} << 30;

/// Nothing where a photo needs more scratch than that: it is decoded on the host then.
///   how          of `decimation`
///   drawn        as picture_decoder makes it; mirrored where drawn.flip says so
///   decimation   1, 2, 4 or 8
[[nodiscard]] std::optional<photo_plan> plan_photo(const pixels::photo_layout& how, const pixels::picture_info& info,
                                                   const pixels::geometry& drawn, int decimation);

/// What a photo's slot says to the host alone, at photo_slot_bytes.
///   carried_bytes   of all rows of the pack: they lie in one piece, of which photo_slot::rows is the first that is decoded; 0: others
///                   are not there
///   head_bytes      of the pack before its rows, which then lie before them here too
///   first_row_at    of the first row that is decoded, counted from the first of the pack
struct carried_pack {
  std::uint32_t carried_bytes;
  std::uint32_t head_bytes;
  std::uint32_t first_row_at;
  std::uint32_t unused;
};

/// The same of a JPEG file whose whole picture another decoder puts into three planes. Nothing also where the row is padding alone.
[[nodiscard]] std::optional<photo_plan> plan_jpeg(const pixels::picture_info& info, const pixels::geometry& drawn);

/// Writes the slot of a JPEG file. False where it is too small.
[[nodiscard]] bool write_jpeg_slot(const photo_plan& plan, std::span<const std::byte> file,
                                   std::span<std::byte> slot) noexcept;

/// Which rows of MCUs a slot has: those that are decoded, all of the pack with its head before them, or none.
enum class slot_rows : std::uint8_t { decoded, all, none };

/// Writes the slot of a photo.
///   what      none: the pack's rows are not looked at, and the slot has room for those that are decoded
///   slot      aligned to 16 bytes
///   returns   false where the slot is too small, or where a row that is needed has another checksum than it should, or contradicts itself:
///             the host's decoder says what there is to say then. What is in the slot means nothing
[[nodiscard]] bool write_photo_slot(const photo_plan& plan, const pixels::photo_pack_view& pack,
                                    std::span<std::byte> slot, slot_rows what = slot_rows::decoded) noexcept;

/// Says that the slot's row is the pixels that begin at photo_slot_bytes.
void write_pixels_slot(std::span<std::byte> slot) noexcept;

}  // namespace leat::stages

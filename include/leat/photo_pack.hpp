// Photo packs: a JPEG photograph's coefficients without their Huffman codes, which decode several times faster, to the same pixels;
// and back into the same file, byte for byte. The format is docs/photo-pack.md; leat::image reads packs as it reads JPEG.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace leat {

/// The most bytes of a JPEG that is packed.
inline constexpr std::size_t photo_pack_jpeg_bytes_max = std::size_t{16} << 20;

/// Packs a JPEG, unpacks it again and compares: what it returns gives the file back. Packed are baseline files of one scan in grey or
/// three colours.
///   verify   false: it is not unpacked, which takes a third less time. What coding it again would write otherwise is then packed too, with
///            the right pixels where packs are decoded by rows (`leat doctor` says if not; then it is corrupt), and unpack_photo() refuses it: do
///            not throw the JPEG away
///   throws   error{errc::unsupported} why it has to stay a JPEG: another process (progressive, arithmetic), four colours, another
///            format, too large, bits that coding it again would write otherwise; error{errc::format} a damaged or cut file
///   Thread: any
[[nodiscard]] std::vector<std::byte> pack_photo(std::span<const std::byte> jpeg, bool verify = true);

/// The JPEG that was packed.
///   throws   error{errc::format} no pack, or a damaged one; error{errc::unsupported} a later version of the format
///   Thread: any
[[nodiscard]] std::vector<std::byte> unpack_photo(std::span<const std::byte> pack);

/// Whether the bytes begin as a pack does, of whatever version.
[[nodiscard]] bool is_photo_pack(std::span<const std::byte> bytes) noexcept;

}  // namespace leat

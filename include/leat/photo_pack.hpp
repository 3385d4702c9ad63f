// Photo packs: a JPEG without its Huffman codes. It decodes faster, to the same pixels, and can be unpacked to the same
// file, byte for byte. leat::image reads packs as it reads JPEG. The format is docs/internals/photo-pack.md.
#pragma once

#include <leat/compiler.hpp>

#include <cstddef>
#include <span>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

/// The most bytes of a JPEG that can be packed: 16 MiB.
inline constexpr std::size_t photo_pack_jpeg_bytes_max = std::size_t{16} << 20;

/// Packs a baseline JPEG of one scan, in grey or three colours.
///   verify   true (default): unpack it again and compare, so that unpack_photo() gives the same file. false: do not,
///            which takes a third less time. A file that unpacking would give back with other bits is then packed as
///            well, and unpack_photo() refuses it: keep the JPEG. Its pixels are right where packs are decoded by rows;
///            `leat doctor` says if they are not, and then it is corrupt
///   throws   error{errc::unsupported} why it has to stay a JPEG: progressive or arithmetic coding, four colours,
///            another format, too large, bits that unpacking would not give back; error{errc::format} a damaged or cut
///            file
///   Thread: any
[[nodiscard]] std::vector<std::byte> pack_photo(std::span<const std::byte> jpeg, bool verify = true);

/// The JPEG that was packed.
///   throws   error{errc::format} no pack, or a damaged one; error{errc::unsupported} a later version of the format
///   Thread: any
[[nodiscard]] std::vector<std::byte> unpack_photo(std::span<const std::byte> pack);

/// Whether the bytes begin as a pack of any version does.
[[nodiscard]] bool is_photo_pack(std::span<const std::byte> bytes) noexcept;

}  // namespace leat
#pragma GCC visibility pop

// One 512-byte header block of a tar archive, and the records of a pax extended header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace leat::datasets {

inline constexpr std::uint64_t tar_block_bytes = 512;

/// Bytes that `bytes` of content take in the archive: whole blocks.
[[nodiscard]] constexpr std::uint64_t tar_padded(std::uint64_t bytes) noexcept {
  return (bytes + tar_block_bytes - 1) / tar_block_bytes * tar_block_bytes;
}

/// What a header block says.
///   type         '0' a file (also '\0' and '7'), '1' hard link, '2' symbolic link, '5' directory, 'L' 'K' GNU long
///                name and link, 'x' 'g' pax, 'S' GNU sparse ...
///   size_bytes   of the content that follows; links and directories have none, whatever the field says
struct tar_header {
  std::string name;
  std::string link_name;
  char type = '0';
  std::uint64_t size_bytes = 0;

  [[nodiscard]] bool is_file() const noexcept { return type == '0' || type == '\0' || type == '7'; }
};

enum class tar_block : std::uint8_t {
  header,
  zeros,    ///< all zero: the end of the archive
  damaged,  ///< the checksum is wrong, or a number is no number
};

/// Reads one block into `header`.
///   block     tar_block_bytes long
///   reason    set when the block is damaged
///   source    POSIX.1-1988 ustar; GNU tar manual, "Basic Tar Format" (base-256 numbers); both signed and unsigned
///             checksums are taken, as all readers do
[[nodiscard]] tar_block read_tar_block(std::span<const std::byte> block, tar_header& header, std::string& reason);

/// The records of a pax header that matter to us.
struct pax_records {
  std::optional<std::string> path;
  std::optional<std::string> link_path;
  std::optional<std::uint64_t> size_bytes;
  bool sparse = false;  ///< GNU.sparse.*, SCHILY.realsize: the content is not the file's bytes one to one

  /// Takes from `other` what it has: a later record wins.
  void update(const pax_records& other);
};

/// Reads "length key=value\n" records.
///   returns   false with a reason where they are damaged
///   source    POSIX.1-2001 pax, "pax Extended Header"
[[nodiscard]] bool read_pax_records(std::string_view text, pax_records& records, std::string& reason);

}  // namespace leat::datasets

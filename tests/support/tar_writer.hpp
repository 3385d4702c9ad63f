// Tar archives made in memory, well-formed and otherwise, with the place of each part known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::testing {

/// What a name longer than 100 bytes becomes.
enum class tar_dialect : std::uint8_t {
  ustar,  ///< split at a slash into prefix and name; a name that cannot be throws
  gnu,    ///< a member of type 'L' before the member
  pax     ///< a member of type 'x' with a record "path"
};

/// Where a member lies in the archive.
struct tar_place {
  std::uint64_t header_offset = 0;  ///< of its first block, the extended headers included
  std::uint64_t data_offset = 0;
  std::uint64_t data_bytes = 0;
};

/// A member, with all that can be strange about one.
struct tar_entry {
  std::string name;
  std::span<const std::byte> contents = {};
  char type = '0';
  std::string link_name = {};
  /// Written in the header instead of the number of bytes that follow.
  std::optional<std::uint64_t> claimed_bytes = {};
  bool base256 = false;      ///< numbers as GNU writes large ones; sizes from 8 GiB up are so in the gnu dialect anyway
  bool size_in_pax = false;  ///< the size stands in a record, the header says 0; pax writes sizes from 8 GiB up so
  std::vector<std::pair<std::string, std::string>> pax_records = {};  ///< more of them, in this order
  bool wrong_checksum = false;
  bool signed_checksum = false;  ///< as some old writers computed it
};

/// Appends members one after the other. Deterministic: times are 0, owners are root, modes 0644 and 0755.
///   throws   std::invalid_argument for what the dialect cannot write
///   source   POSIX.1-2001 pax, "ustar Interchange Format" and "pax Extended Header"; GNU tar manual, "Basic Tar Format"
class tar_writer {
 public:
  explicit tar_writer(tar_dialect dialect = tar_dialect::gnu) : dialect_(dialect) {}

  tar_place add(const tar_entry& entry);
  tar_place add_file(std::string name, std::span<const std::byte> contents);
  tar_place add_file(std::string name, std::string_view contents);
  tar_place add_directory(std::string name);  ///< a slash is appended where it has none
  tar_place add_symbolic_link(std::string name, std::string target);
  tar_place add_hard_link(std::string name, std::string target);
  /// A file of `hole_bytes` zeros that are not stored, then `contents`: type 'S' in the gnu dialect, GNU.sparse.* 1.0
  /// records in pax; ustar has none.
  tar_place add_sparse_file(std::string name, std::uint64_t hole_bytes, std::span<const std::byte> contents);
  /// Records that hold for all members behind them (type 'g').
  tar_place add_global_pax(const std::vector<std::pair<std::string, std::string>>& records);
  /// Anything, not padded.
  void add_raw(std::span<const std::byte> bytes);

  /// Bytes so far: no end mark yet.
  [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return bytes_.size(); }

  /// Ends the archive with two zero blocks, padded to a multiple of `record_blocks` blocks, and gives it away.
  [[nodiscard]] std::vector<std::byte> finish(std::size_t record_blocks = 20);

 private:
  using block = std::vector<std::byte>;

  void add_extension(char type, std::string_view name, std::string_view contents);
  void add_padded(std::span<const std::byte> contents);
  [[nodiscard]] block header(const tar_entry& entry, std::string_view name, std::uint64_t size_bytes) const;

  const tar_dialect dialect_;
  std::vector<std::byte> bytes_;
};

/// The bytes of a text.
[[nodiscard]] std::span<const std::byte> bytes_of_text(std::string_view text) noexcept;

}  // namespace leat::testing

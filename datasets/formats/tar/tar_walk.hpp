// From header to header through a tar archive, without its bodies. The walk asks for bytes and never reads any itself:
// its caller may walk hundreds of shards at once on one thread, or one in memory.
#pragma once

#include "datasets/formats/tar/tar_header.hpp"

#include <leat/error.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace leat::datasets {

/// A member of an archive, of any type, long names and pax records applied.
///   link_name       where a link leads
///   header_offset   of its first header block, the extended ones included
///   cut             the archive ends before the content does
///   begins_archive  an end marker lies before it: the file holds concatenated archives
struct tar_member {
  std::string name;
  std::string link_name;
  char type = '0';
  bool is_file = false;
  std::uint64_t header_offset = 0;
  std::uint64_t data_offset = 0;
  std::uint64_t size_bytes = 0;
  bool cut = false;
  bool begins_archive = false;
};

/// What to do at an end marker.
enum class at_end_marker : std::uint8_t {
  stop,  ///< end there, and look for more than zeros behind it
  go_on  ///< go on behind it, as GNU tar's --ignore-zeros
};

class tar_walk {
 public:
  /// Bytes that must be at hand before the walk can go on.
  struct wanted {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };

  /// The archive turns out to end here, where it was opened with more bytes: what comes of a stream is known at its end.
  void ends_at(std::uint64_t file_bytes) noexcept;

  enum class result : std::uint8_t {
    member,  ///< member() is the next one
    wants,   ///< feed() it wants() first
    end      ///< the archive's end: its marker, which is a zero block, the file's end, or a cut
  };

  /// The bytes behind the end marker at which the walk has stopped.
  enum class behind : std::uint8_t {
    nothing,  ///< zeros: writers fill up their last record
    archive,  ///< a header: archives that were concatenated
    other     ///< bytes that are no header, or more zeros than are looked at
  };

  /// `path` is for messages; the walk starts at `offset`, which must be a header's.
  tar_walk(std::string path, std::uint64_t file_bytes, std::uint64_t offset = 0,
           at_end_marker what = at_end_marker::stop);

  /// The buffer that next() may look at, until the next feed(): bytes of the file from `offset` on.
  void feed(std::uint64_t offset, std::span<const std::byte> bytes) noexcept;

  /// Goes to the next member.
  ///   throws   error{errc::format} a damaged header, with path and offset; error{errc::unsupported} sparse members,
  ///            volumes of a multi-volume archive, and archives that are compressed
  [[nodiscard]] result next();

  [[nodiscard]] const wanted& wants() const noexcept { return wants_; }
  [[nodiscard]] const tar_member& member() const noexcept { return member_; }

  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return file_bytes_; }
  /// Where the next header lies.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

  /// Set at the end when the file ends within a header: what is missing behind it is unknown.
  [[nodiscard]] bool cut_in_header() const noexcept { return cut_in_header_; }
  /// Whether the walk came to an end marker.
  [[nodiscard]] bool has_end_marker() const noexcept { return marker_.has_value(); }
  /// After the end: the offset of the end marker at which the walk stopped, what lies behind it, and at which offset.
  [[nodiscard]] std::uint64_t end_marker() const noexcept { return marker_.value_or(file_bytes_); }
  [[nodiscard]] behind behind_end() const noexcept { return behind_; }
  [[nodiscard]] std::uint64_t behind_offset() const noexcept { return scan_; }

 private:
  [[nodiscard]] std::optional<std::span<const std::byte>> at(std::uint64_t offset, std::uint64_t bytes);
  [[nodiscard]] bool take_extension(const tar_header& header, std::uint64_t offset);
  void take_member(tar_header& header, std::uint64_t offset);
  [[noreturn]] void fail(errc code, std::uint64_t offset, const std::string& what) const;
  [[noreturn]] void fail_at_start(std::span<const std::byte> block) const;
  [[nodiscard]] result cut(std::uint64_t offset);
  void forget_extensions();
  [[nodiscard]] bool pass_zeros(std::uint64_t until);
  [[nodiscard]] result look_behind_end();

  std::string path_;
  std::uint64_t file_bytes_;
  std::uint64_t position_;
  std::uint64_t buffer_offset_ = 0;
  std::span<const std::byte> buffer_;
  wanted wants_;
  tar_member member_;
  pax_records global_;
  // Of the member to come.
  std::optional<std::uint64_t> first_header_;
  std::optional<std::string> long_name_;
  std::optional<std::string> long_link_;
  pax_records local_;
  std::optional<std::uint64_t> end_;
  bool cut_in_header_ = false;
  const at_end_marker at_marker_;
  std::optional<std::uint64_t> marker_;
  bool passing_ = false;  // In the zeros behind a marker; scan_ is the position.
  std::uint64_t scan_ = 0;
  behind behind_ = behind::nothing;
  bool after_marker_ = false;
};

}  // namespace leat::datasets

// The index of a shard's photo packs: what a plan has to know of each before it is read, so that it reads the rows of a crop and no
// others. It is the shard's last member, which WebDataset skips: docs/internals/photo-pack.md, "Index of a shard".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// The member's name.
inline constexpr std::string_view photo_places_member = "__leat__/photos";

/// Bytes, or rows: [first, end).
struct photo_range {
  std::uint32_t first = 0;
  std::uint32_t end = 0;

  friend bool operator==(const photo_range&, const photo_range&) = default;
};

/// One pack. It is what somebody wrote: a plan reads by it, and what was read is checked by the pack's own checksums.
struct photo_place {
  static constexpr std::size_t marks_max = 44;

  std::uint32_t block = 0;       ///< of the archive, of 512 bytes, at which the member's content begins
  std::uint32_t bytes = 0;       ///< of the pack
  std::uint32_t head_bytes = 0;  ///< of them, those before the rows
  std::uint16_t width = 0;       ///< of the photograph as it is stored, in pixels
  std::uint16_t height = 0;
  std::uint16_t mcu_rows = 0;
  std::uint8_t mcu_height = 0;   ///< in pixels
  std::uint8_t orientation = 1;  ///< EXIF's, 1 to 8
  /// Mark k is where row (k + 1) x rows_per_mark() begins, counted from the first row's begin, in units of a 256th, rounded down.
  std::array<std::uint8_t, marks_max> marks = {};

  [[nodiscard]] std::uint64_t offset() const noexcept { return std::uint64_t{block} * 512; }
  /// The least number of rows for which the marks suffice.
  [[nodiscard]] std::uint32_t rows_per_mark() const noexcept {
    return static_cast<std::uint32_t>((mcu_rows + marks_max) / (marks_max + 1));
  }
  /// Sets the marks.
  ///   ends   of each row, counted from the first row's begin
  void mark(std::span<const std::uint32_t> ends) noexcept;
  /// Where rows lie, counted from the pack's begin: no less than they have, and more where marks are coarse.
  ///   rows   not empty, within mcu_rows
  [[nodiscard]] photo_range bytes_of(photo_range rows) const noexcept;
  /// Whether the numbers go together.
  [[nodiscard]] bool is_sound() const noexcept;

  friend bool operator==(const photo_place&, const photo_place&) = default;
};
static_assert(sizeof(photo_place) == 64);

/// The member's content.
[[nodiscard]] std::vector<std::byte> as_member(std::span<const photo_place> places);
[[nodiscard]] std::uint64_t photo_places_bytes(std::size_t places) noexcept;

/// The sound places of a member, by their blocks. Nothing where it is damaged or of another version.
[[nodiscard]] std::optional<std::vector<photo_place>> parse_photo_places(std::span<const std::byte> content);

}  // namespace leat::datasets

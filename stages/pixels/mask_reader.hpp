// A mask that follows a picture: numbers of a PNG, an array or shapes, of which each pixel of the row gets the nearest one.
#pragma once

#include "base/outcome.hpp"
#include "stages/pixels/mask_shapes.hpp"
#include "stages/pixels/placed_picture.hpp"
#include "stages/pixels/png_reader.hpp"
#include "stages/pixels/scratch.hpp"

#include <leat/tensor.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace leat::pixels {

/// Colours that stand for classes. Immutable.
class colour_classes {
 public:
  ///   throws   error{errc::usage} for a colour that is there twice
  explicit colour_classes(const std::vector<std::array<std::uint8_t, 3>>& of);
  [[nodiscard]] bool empty() const noexcept { return sorted_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return sorted_.size(); }
  /// -1: none.
  [[nodiscard]] int find(const std::uint8_t* rgb) const noexcept;

 private:
  struct entry {
    std::uint32_t colour;
    int number;
  };
  std::vector<entry> sorted_;
};

/// Numbers that lie in memory, [height, width], line after line.
struct mask_array {
  dtype type = dtype::u8;
  int width = 0;
  int height = 0;
};

///   type       of the row: u8, u16, i32 or i64; f32, of depths, where the array has f32 or f64
///   ignore     of pixels that show nothing of the picture, a value of the type
///   colours    of RGB
///   array      the bytes are these numbers; none: they are a PNG file
///   shapes     it is painted of them, on 0, and no bytes are looked at; they are read in scratch memory
///   scaled     sizes may differ
///   is_depth   it is of measures: grey, and no indexes of a palette
struct mask_reading {
  dtype type = dtype::u8;
  std::int64_t ignore = 255;
  const colour_classes* colours = nullptr;
  std::optional<mask_array> array = std::nullopt;
  const shape_source* shapes = nullptr;
  bool scaled = false;
  bool is_depth = false;
};

/// Objects that get a plane each.
///   objects   their numbers from 0, ascending: plane i is of objects[i]
///   whole     of PNG and arrays it is known how many objects there are: a number above that is corrupt. As many shapes of objects as
///             that have to be there
struct mask_planes {
  std::span<const std::int64_t> objects;
  std::optional<std::size_t> whole = std::nullopt;
};

/// Whether a mask can have this type.
[[nodiscard]] bool is_mask_type(dtype type) noexcept;

/// One thread's reader of masks, and its scratch memory.
class mask_reader {
 public:
  explicit mask_reader(scratch_budget& budget) : arena_(budget), png_(arena_) {}

  /// Fills a row.
  ///   row       of where.geometry's row, dense; unspecified unless the outcome is ok
  ///   returns   corrupt: another size than the picture's, damage, a number that the type has not, a colour that is none of
  ///             `colours`; unsupported: another format, RGB without colours, colours of a depth; over_budget, no_memory, cancelled as picture_decoder
  outcome<void> read(std::span<const std::byte> encoded, const placed_picture& where, const mask_reading& how,
                     std::span<std::byte> row, const std::atomic<bool>* stop);

  /// Fills planes of a row: 1 where the object is, 0 elsewhere. Of PNG and arrays object i is number i + 1, and how.ignore none.
  ///   how       of u8 for shapes, u16 for others
  ///   rows      of where.geometry's row, one plane after another; those behind the last object become 0
  ///   returns   how many objects the mask has; or as above
  outcome<std::size_t> read_planes(std::span<const std::byte> encoded, const placed_picture& where,
                                   const mask_reading& how, const mask_planes& planes, std::span<std::byte> rows,
                                   const std::atomic<bool>* stop);

 private:
  struct opened;
  outcome<opened> open(std::span<const std::byte> encoded, const placed_picture& where, const mask_reading& how,
                       const mask_planes* planes) const;

  scratch_arena arena_;
  png_reader png_;
  std::vector<pixel_run> runs_;  // of one mask
};

}  // namespace leat::pixels

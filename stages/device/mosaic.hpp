// Rows of a batch that become mosaics of four of its pictures, with the masks and boxes that follow them: on the host in place, after collate;
// pictures that a device makes by an operation there (mosaic_operation.hpp), which is told here what to do.
#pragma once

#include "stages/batch/batch_layout.hpp"
#include "stages/batch/batch_state.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/batch/tiled_rows.hpp"

#include <leat/transforms.hpp>

#include <absl/container/inlined_vector.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace leat::pixels {
struct placed_picture;
}

namespace leat::stages {

[[nodiscard]] bool is_mosaic(const batch_mix& how) noexcept;

/// A row that is no mosaic is its own upper left tile, and the centre is its lower right corner.
///   x, y   of the centre
struct drawn_mosaic {
  int x = 0;
  int y = 0;
  bool is_one = false;
};

/// A function of its arguments alone.
[[nodiscard]] drawn_mosaic draw_mosaic(double probability, std::uint64_t seed, std::uint32_t epoch, std::uint64_t draw,
                                       int height, int width) noexcept;

/// The rows of a batch in a circle: those behind one are its partners.
void draw_circle(std::uint64_t seed, std::uint32_t epoch, std::uint64_t batch, std::span<std::uint32_t> rows) noexcept;

/// Pixels of a row, [left, right) x [top, bottom).
struct pixel_box {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;

  friend bool operator==(const pixel_box&, const pixel_box&) = default;
};

/// The smallest box that has all pixels of the row that show some of the picture; the row, where none does.
[[nodiscard]] pixel_box shown_box(const pixels::placed_picture& of) noexcept;

/// A tile: pixel (x, y) of it is pixel (x + dx, y + dy) of the row that it shows.
struct mosaic_tile {
  pixel_box at;
  int dx = 0;
  int dy = 0;
};

/// The upper left, upper right, lower left and lower right tile; `shown` of the rows that they show.
[[nodiscard]] std::array<mosaic_tile, 4> tiles_around(int x, int y, const std::array<pixel_box, 4>& shown, int height,
                                                      int width) noexcept;

/// How the pixels of a row lie.
struct pixel_planes {
  std::size_t planes = 1;
  int height = 0;
  int width = 0;
  std::size_t pixel_bytes = 0;  ///< of one plane
};

/// Writes a tile. What lies left of `from` is as its right edge, above it as its lower one, and the other way round: where a tile
/// reaches beyond what is shown, there is fill.
///   to, from   may be one row, of the upper left tile
void write_tile(const pixel_planes& how, const mosaic_tile& tile, std::byte* to, const std::byte* from) noexcept;

/// Before outputs are laid out: of padded boxes, all are kept until tiles are made.
void keep_further_boxes(std::span<const std::unique_ptr<field_program>> programs);

/// Adds `mix.tiles` and `mix.center`, a hidden one of a pixel_box for each picture, which decode() fills, and what a device is told of
/// pictures that it makes.
///   outputs   of the programs, one after another
///   throws    error{errc::usage} as leat::mosaic() says
void add_mosaic_outputs(std::vector<output_spec>& outputs, std::span<const std::unique_ptr<field_program>> programs,
                        const batch_mix& how);

/// The hidden one; none where rows become no mosaics.
[[nodiscard]] std::optional<std::size_t> output_of_shown(const batch_layout& layout) noexcept;

/// Bytes of the room of a ragged output of these by those of its rows: each of them in four mosaics, and as it was.
inline constexpr std::size_t mosaic_ragged_times = 5;
[[nodiscard]] bool is_tiled_ragged(const field_program& program, std::size_t output) noexcept;

/// Makes whole batches. Refers to the layout, which the loader keeps.
class mosaic_maker {
 public:
  /// layout    with the outputs that add_mosaic_outputs() has added
  mosaic_maker(const batch_layout& layout, std::span<const std::unique_ptr<field_program>> programs, double probability,
               std::uint64_t seed, std::size_t threads);

  /// Bytes of scratch for each thread.
  [[nodiscard]] static std::size_t scratch_bytes(const batch_layout& layout,
                                                 std::span<const std::unique_ptr<field_program>> programs) noexcept;

  /// Of a collated batch in host memory.
  ///   stop   checked at every row
  /// Thread: `thread`, one batch at a time per thread.
  void make(batch::state& batch, std::size_t thread, const std::atomic<bool>& stop);

 private:
  struct pixels_of {
    std::size_t output = 0;
    std::size_t picture = 0;  // that it follows, or is
    pixel_planes how;
  };
  struct boxes_of {
    std::vector<std::size_t> outputs;  // the first has the boxes; without their count
    std::optional<std::size_t> count;  // the output that has it, of padded rows
    std::size_t further = 0;           // likewise: the one that has the boxes behind those of a row
    std::size_t picture = 0;
    tiled_boxes rules;
  };
  struct row_of {
    drawn_mosaic drawn;
    std::array<std::uint32_t, 4> tiles{};
  };
  struct thread_state {
    std::vector<std::uint32_t> circle;
    std::vector<row_of> rows;
    std::vector<std::size_t> first_box;  // of each row, as they were
    std::vector<std::size_t> box_count;
    std::vector<std::byte> saved;  // the first rows of the circle, or the boxes of padded rows, as they were
  };

  [[nodiscard]] std::array<mosaic_tile, 4> tiles_of(const batch::state& batch, const thread_state& own, std::size_t row,
                                                    std::size_t picture) const;
  void move_pixels(const pixels_of& which, batch::state& batch, thread_state& own, const std::atomic<bool>& stop) const;
  void write_tiles(const pixels_of& which, batch::state& batch, const thread_state& own) const;
  struct moved_list;
  struct further_boxes;
  [[nodiscard]] absl::InlinedVector<moved_list, 6> lists_as_they_were(const boxes_of& which, batch::state& batch,
                                                                      thread_state& own) const;
  void move_boxes(const boxes_of& which, batch::state& batch, thread_state& own) const;

  const batch_layout& layout_;
  const double probability_;
  const std::uint64_t seed_;
  int height_ = 0;
  int width_ = 0;
  std::size_t tiles_output_ = 0;
  std::size_t center_output_ = 0;
  std::size_t shown_output_ = 0;
  std::vector<pixels_of> pixels_;
  std::vector<pixels_of> made_;  // by a device: the outputs that say how
  std::vector<boxes_of> boxes_;
  std::vector<thread_state> threads_;
};

}  // namespace leat::stages

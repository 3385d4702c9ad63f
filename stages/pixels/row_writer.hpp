// From the lines of a resampled picture to its row: passes of colour, store, and the box that is erased.
#pragma once

#include "base/outcome.hpp"
#include "stages/pixels/colour/kernels.hpp"
#include "stages/pixels/colour/neighbours.hpp"
#include "stages/pixels/colour/tables.hpp"
#include "stages/pixels/line_sink.hpp"
#include "stages/pixels/recipe.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/pixels/store.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace leat::pixels {

/// Writes one row. Without passes each line is stored as it comes. With passes lines are planar, and there are as few sweeps over the
/// picture as its statistics allow: passes known beforehand are applied to each line while it lies in the cache, successive tables are
/// combined into one, and a last table is combined with store.
class row_writer final : public line_sink {
 public:
  /// The arguments outlive this.
  ///   passes   null or empty: none
  row_writer(const store& how, const recipe* passes, int height, int width, std::byte* row) noexcept;

  /// The layout of the lines that it takes.
  [[nodiscard]] layout line_order() const noexcept {
    return passes_ == nullptr && !is_planar_ ? store_.order : layout::nchw;
  }
  /// Lines come as three planes whatever the row's layout is.
  void take_planar() noexcept { is_planar_ = true; }
  [[nodiscard]] std::size_t scratch_bytes() const noexcept;
  /// The most that a chain's rows can want.
  [[nodiscard]] static std::size_t scratch_bytes_most(const pipeline& steps) noexcept;

  /// False where the arena has not been reserved for it. Throws what a user's lookup throws.
  [[nodiscard]] bool start(scratch_arena& arena);
  void take(const std::uint8_t* line, int y) noexcept override;
  /// Call it after all lines. Throws what a user's function throws.
  ///   returns   corrupt: an edit has said so
  [[nodiscard]] stages::outcome<void> finish();

 private:
  /// What is done to a line in a sweep.
  struct line_step {
    enum class kind : std::uint8_t { map, scale, saturate, turn_hue, grey, permute };
    kind what = kind::map;
    int number = 0;  // of the table, or of the order
    double value = 0;
    float part = 0;
  };
  /// A table that is a multiplication and an addition: faster where vectors do it.
  struct scaling {
    float factor = 1;
    float part = 0;
  };
  /// What a sweep measures of the picture, for the pass behind it.
  enum class wanted : std::uint8_t { nothing, grey, counts, range };

  [[nodiscard]] static bool wants_picture(const recipe& passes) noexcept;
  [[nodiscard]] static bool has(pass_kind what, const recipe& passes) noexcept;
  [[nodiscard]] static bool makes_another(const recipe& passes) noexcept;
  [[nodiscard]] static std::size_t scratch_bytes_of(const recipe& passes, int height, int width) noexcept;

  void plan_sweep();
  void add_line_step(const colour_pass& pass) noexcept;
  void add_table(const colour_pass& pass);
  void flush_table() noexcept;
  [[nodiscard]] bool learn_curves(const colour_pass& pass) noexcept;
  [[nodiscard]] wanted range_or_counts() const noexcept;
  void sweep_line(std::uint8_t* line, int y) noexcept;
  void end_sweep() noexcept;
  [[nodiscard]] stages::outcome<void> change(const colour_pass& pass);
  void begin_mix(const colour_pass& pass) noexcept;
  void add_to_mix(const colour_pass& pass) noexcept;
  void operate(const colour_pass& pass) noexcept;
  void erase() noexcept;

  const store& store_;
  const recipe* passes_;
  const int height_;
  const int width_;
  std::byte* const row_;
  bool is_planar_ = false;

  picture picture_;
  picture warped_;                 // where there are warps and the like, the other picture: one is read and one is made
  std::uint8_t* mixed_ = nullptr;  // what a mix is of
  float* sums_ = nullptr;          // of a mix
  std::uint8_t* line_ = nullptr;   // where no picture is kept
  table* tables_ = nullptr;        // of the sweep
  value_counts* counts_ = nullptr;  // four parts; after a sweep the first is all
  void* neighbour_scratch_ = nullptr;
  void* elements_ = nullptr;  // of the row's type, for each value of each channel

  std::size_t next_ = 0;  // pass
  std::array<line_step, 2 * recipe::passes_max + 1> steps_;
  std::size_t step_count_ = 0;
  int table_count_ = 0;
  table table_;  // not yet applied to what the lines hold
  bool has_table_ = false;
  std::optional<scaling> scaling_;  // what table_ is, where it is one
  wanted wanted_ = wanted::nothing;
  bool to_row_ = false;
  bool counts_known_ = false;  // of what the picture holds, without table_
  bool range_known_ = false;
  std::uint64_t grey_sum_ = 0;
  value_range range_;
};

}  // namespace leat::pixels

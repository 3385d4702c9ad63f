// A TIFF's samples as numbers, for pictures of more than 8 bits or of many channels.
#pragma once

#include "stages/pixels/scratch.hpp"
#include "stages/pixels/tiff_blocks.hpp"
#include "stages/pixels/wide_reader.hpp"

#include <optional>

namespace leat::pixels {

/// Numbers as they are stored, white where 0 is white among them. Alpha is left out.
class wide_tiff_reader final : public wide_reader {
 public:
  explicit wide_tiff_reader(scratch_arena& arena) : arena_(arena), tiff_(arena) {}

  /// unsupported: a palette, since its numbers are no measure.
  outcome<wide_info> open(std::span<const std::byte> encoded, const std::atomic<bool>* stop) override;
  [[nodiscard]] std::size_t scratch_bytes(const rectangle& region) override;
  outcome<void> start(const rectangle& region) override;
  /// corrupt: a whole number of 32 bits that f32 does not hold.
  outcome<const float*> read() override;
  void stop_reading() noexcept override { tiff_.stop_reading(); }

 private:
  template <class Element>
  [[nodiscard]] std::optional<double> convert(const std::byte* from) noexcept;
  [[nodiscard]] std::size_t line_values() const noexcept {
    return static_cast<std::size_t>(region_.width) * static_cast<std::size_t>(page_.channels());
  }

  scratch_arena& arena_;
  tiff_blocks tiff_;
  tiff_layout page_;
  rectangle region_;
  float* line_ = nullptr;
};

}  // namespace leat::pixels

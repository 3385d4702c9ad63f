// A PNG's samples as they are stored, for pictures of more than 8 bits.
#pragma once

#include "stages/pixels/png_reader.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/pixels/wide_reader.hpp"

namespace leat::pixels {

/// Of palettes the indexes. Alpha is dropped.
class wide_png_reader final : public wide_reader {
 public:
  explicit wide_png_reader(scratch_arena& arena) : arena_(arena), png_(arena) {}

  outcome<wide_info> open(std::span<const std::byte> encoded, const std::atomic<bool>* stop) override;
  [[nodiscard]] std::size_t scratch_bytes(const rectangle& region) override;
  outcome<void> start(const rectangle& region) override;
  outcome<const float*> read() override;

 private:
  [[nodiscard]] std::size_t line_values(const rectangle& region) const noexcept {
    return static_cast<std::size_t>(region.width) * static_cast<std::size_t>(samples_.channels);
  }

  scratch_arena& arena_;
  png_reader png_;
  png_samples samples_;
  rectangle region_;
  lines some_{};  // what png_ has given; `taken_` of them are read
  int taken_ = 0;
  float* line_ = nullptr;
};

}  // namespace leat::pixels

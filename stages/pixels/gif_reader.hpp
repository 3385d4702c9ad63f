// The first frame of a GIF, on its screen.
#pragma once

#include "stages/pixels/gif_headers.hpp"
#include "stages/pixels/picture_reader.hpp"
#include "stages/pixels/scratch.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace leat::pixels {

/// One thread's GIF decoder. The pixels are those of Pillow's convert("RGB"): transparency is dropped where nothing is
/// behind it, and what lies beside the frame has the transparent colour, or the first. The frame is decoded whole, so that damage in it is found
/// whatever the crop; what is behind it is not looked at.
class gif_reader final : public picture_reader {
 public:
  explicit gif_reader(scratch_arena& arena) : arena_(arena) {}

  stages::outcome<void> open(std::span<const std::byte> encoded, const picture_info& info, const reading& how) override;
  [[nodiscard]] std::size_t scratch_bytes(const rectangle& region, int decimation) override;
  stages::outcome<void> start(const rectangle& region, int decimation) override;
  stages::outcome<lines> read() override;

 private:
  [[nodiscard]] std::size_t frame_bytes() const noexcept {
    return static_cast<std::size_t>(layout_.frame.width) * static_cast<std::size_t>(layout_.frame.height);
  }

  scratch_arena& arena_;
  gif_layout layout_;
  std::optional<rgb_colour> background_;  // where a colour is transparent
  const std::atomic<bool>* stop_ = nullptr;
  rectangle region_;
  std::uint8_t* frame_ = nullptr;  // numbers of colours, in the order in which they come
  std::uint8_t* line_ = nullptr;
  int next_row_ = 0;
};

}  // namespace leat::pixels

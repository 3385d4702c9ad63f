// Small JPEGs of samples' pictures, for pages.
#pragma once

#include "stages/pixels/picture_decoder.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/pixels/store.hpp"

#include <leat/samples.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace leat::tools {

inline constexpr int thumbnail_side_max = 96;

/// A file, and its size in pixels.
struct thumbnail {
  std::vector<std::uint8_t> jpeg;
  int width = 0;
  int height = 0;
};

/// Thread: one at a time.
class thumbnailer {
 public:
  ///   host_bytes_max   the budget that a loader would have: a picture that takes more to decode has none
  explicit thumbnailer(std::size_t host_bytes_max);

  /// Of a sample's first picture; what is there of one that lost its end. Nothing where it has none, or that does not decode.
  [[nodiscard]] std::optional<thumbnail> of(const dataset& samples, std::uint64_t sample);

 private:
  pixels::scratch_budget budget_;
  pixels::picture_decoder decoder_;
  const pixels::store store_ = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
};

}  // namespace leat::tools

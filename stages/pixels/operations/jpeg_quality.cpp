// jpeg_quality: what a picture is after it was a JPEG. Entropy coding loses nothing and is left out; everything else is as
// libjpeg-turbo encodes (4:2:0, the slow integer transform) and decodes (fancy upsampling), bit for bit.
#include "stages/pixels/operations/kernels.hpp"
#include "stages/pixels/operations/operation.hpp"

namespace leat::pixels {
namespace {

constexpr std::array<std::uint8_t, 64> luma_table = {
    16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
    69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
    81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99};
constexpr std::array<std::uint8_t, 64> chroma_table = {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99,
                                                       24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99,
                                                       99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
                                                       99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99};

// jpeg_set_quality(), with values that a baseline file holds.
std::array<std::int32_t, 64> quantisation(const std::array<std::uint8_t, 64>& base, int quality) noexcept {
  const int scale = quality < 50 ? 5000 / quality : 200 - quality * 2;
  std::array<std::int32_t, 64> made{};
  for (std::size_t i = 0; i < 64; ++i) made[i] = std::clamp((base[i] * scale + 50) / 100, 1, 255);
  return made;
}

struct jpeg_quality_rules {
  using step = transforms::jpeg_quality;
  static constexpr bool in_place = true;

  static void check(const step& what, number_check& to) { to.range("quality", what.quality, 1, 100); }
  static drawn_numbers draw(const step& what, random_draws& draws) {
    const auto more = static_cast<std::uint64_t>(what.quality[1] - what.quality[0]);
    return {what.quality[0] + static_cast<double>(draws.below(more + 1))};
  }

  static std::size_t scratch_bytes(const step&, int height, int width) { return jpeg_planes(height, width).bytes(); }
  static void apply(const step&, const operation_run& run) {
    const auto quality = static_cast<int>(run.numbers[0]);
    recode_as_jpeg(run.to, quantisation(luma_table, quality), quantisation(chroma_table, quality), run.scratch);
  }
  static transform drawn(const step&, const drawn_numbers& n) {
    return step{{static_cast<int>(n[0]), static_cast<int>(n[0])}};
  }
};

}  // namespace

operation jpeg_quality_operation() { return make_operation<jpeg_quality_rules>(); }

}  // namespace leat::pixels

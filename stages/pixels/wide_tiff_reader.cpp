#include "stages/pixels/wide_tiff_reader.hpp"

#include "base/text.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace leat::pixels {

outcome<wide_info> wide_tiff_reader::open(std::span<const std::byte> encoded, const std::atomic<bool>* stop) {
  const outcome<tiff_layout> page = tiff_.open(encoded, stop);
  if (!page) return page.error();
  page_ = *page;
  if (page_.photometric == tiff_palette) return stages::unsupported("a TIFF of a palette, whose numbers are indexes");
  return wide_info{.what = format::tiff,
                   .width = page_.width,
                   .height = page_.height,
                   .channels = page_.channels(),
                   .bits = page_.bits,
                   .kind = page_.kind,
                   .alpha = page_.alpha};
}

std::size_t wide_tiff_reader::scratch_bytes(const rectangle& region) {
  region_ = region;
  return tiff_.scratch_bytes(region) + scratch_arena::rounded(line_values() * sizeof(float));
}

outcome<void> wide_tiff_reader::start(const rectangle& region) {
  region_ = region;
  line_ = arena_.take_array<float>(line_values());
  if (line_ == nullptr) return stages::unsupported("TIFF: out of scratch memory");
  return tiff_.start(region);
}

// Returns a number that f32 does not hold, if there is one.
template <class Element>
std::optional<double> wide_tiff_reader::convert(const std::byte* from) noexcept {
  const auto channels = static_cast<std::size_t>(page_.channels());
  const std::size_t pixel_bytes = static_cast<std::size_t>(page_.samples) * sizeof(Element);
  const std::size_t run = page_.alpha ? channels : line_values();  // of samples beside one another
  std::optional<double> wrong;
  for (float* to = line_; to != line_ + line_values(); to += run, from += pixel_bytes) {
    for (std::size_t i = 0; i < run; ++i) {
      Element element;
      std::memcpy(&element, from + i * sizeof element, sizeof element);
      to[i] = static_cast<float>(element);
      if constexpr (std::is_integral_v<Element> && sizeof(Element) == 4) {
        if (static_cast<double>(to[i]) != static_cast<double>(element)) wrong = static_cast<double>(element);
      }
    }
  }
  return wrong;
}

outcome<const float*> wide_tiff_reader::read() {
  const outcome<const std::byte*> from = tiff_.read();
  if (!from) return from.error();
  const std::optional<double> wrong = [&] {
    const bool is_signed = page_.kind == sample_kind::signed_whole;
    if (page_.kind == sample_kind::real) return convert<float>(*from);
    if (page_.bits == 8) return is_signed ? convert<std::int8_t>(*from) : convert<std::uint8_t>(*from);
    if (page_.bits == 16) return is_signed ? convert<std::int16_t>(*from) : convert<std::uint16_t>(*from);
    return is_signed ? convert<std::int32_t>(*from) : convert<std::uint32_t>(*from);
  }();
  if (wrong) {
    tiff_.stop_reading();
    return stages::corrupt(str_cat("the whole number ", static_cast<std::int64_t>(*wrong),
                                   " of 32 bits, which f32 does not hold: up to 16777216 all are exact"));
  }
  return static_cast<const float*>(line_);
}

}  // namespace leat::pixels

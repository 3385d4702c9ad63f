#include "datasets/formats/tar/photo_places.hpp"

#include "base/crc32c.hpp"

#include <algorithm>
#include <cstring>

namespace leat::datasets {
namespace {

constexpr std::string_view magic = "leatphot";
constexpr std::uint32_t version = 1;
constexpr std::size_t header_bytes = 24;
constexpr std::size_t sum_at = 20;
constexpr std::size_t place_bytes = 64;
constexpr std::size_t marks_at = place_bytes - photo_place::marks_max;
constexpr std::uint32_t units = 256;
// Behind the rows: zeros, so that vectors may read past the last one.
constexpr std::uint32_t slack_bytes = 32;

// A fuzzer cannot guess checksums, and is to reach what lies behind them.
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
constexpr bool sums_count = false;
#else
constexpr bool sums_count = true;
#endif

void put(std::byte* to, std::uint32_t value, unsigned bytes) noexcept {
  for (unsigned i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(value >> 8 * i);
}

std::uint32_t get(const std::byte* from, unsigned bytes) noexcept {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) value |= std::to_integer<std::uint32_t>(from[i]) << 8 * i;
  return value;
}

std::uint32_t sum_of(std::span<const std::byte> content) noexcept {
  return crc32c(content.first(sum_at)) ^ crc32c(content.subspan(header_bytes));
}

std::uint32_t unit_of(const photo_place& place) noexcept {
  return (place.bytes - place.head_bytes - slack_bytes + units - 1) / units;
}

}  // namespace

void photo_place::mark(std::span<const std::uint32_t> ends) noexcept {
  marks = {};
  const std::uint32_t unit = unit_of(*this);
  for (std::uint32_t k = 1; k * rows_per_mark() < mcu_rows && unit != 0; ++k) {
    marks[k - 1] = static_cast<std::uint8_t>(ends[k * rows_per_mark() - 1] / unit);
  }
}

photo_range photo_place::bytes_of(photo_range rows) const noexcept {
  const std::uint32_t unit = unit_of(*this);
  const std::uint32_t all = bytes - head_bytes - slack_bytes;
  const std::uint32_t first = rows.first / rows_per_mark();
  const std::uint32_t end = (rows.end + rows_per_mark() - 1) / rows_per_mark();
  const bool to_the_last = end * rows_per_mark() >= mcu_rows;
  return {head_bytes + (first == 0 ? 0 : std::min(marks[first - 1] * unit, all)),
          head_bytes + (to_the_last ? all : std::min((marks[end - 1] + 1U) * unit, all))};
}

bool photo_place::is_sound() const noexcept {
  const bool has_rows = mcu_rows != 0 && (mcu_height == 8 || mcu_height == 16 || mcu_height == 32) && width != 0 &&
                        (std::uint32_t{height} + mcu_height - 1) / mcu_height == mcu_rows;
  const bool has_bytes = bytes >= slack_bytes && head_bytes <= bytes - slack_bytes;
  if (!has_rows || !has_bytes || orientation < 1 || orientation > 8) return false;
  const std::size_t used = (mcu_rows - 1) / rows_per_mark();
  return std::is_sorted(marks.begin(), marks.begin() + static_cast<std::ptrdiff_t>(used));
}

std::uint64_t photo_places_bytes(std::size_t places) noexcept { return header_bytes + place_bytes * places; }

std::vector<std::byte> as_member(std::span<const photo_place> places) {
  std::vector<std::byte> content(photo_places_bytes(places.size()));
  std::byte* to = content.data();
  std::memcpy(to, magic.data(), magic.size());
  put(to + 8, version, 4);
  put(to + 12, place_bytes, 4);
  put(to + 16, static_cast<std::uint32_t>(places.size()), 4);
  to += header_bytes;
  for (const photo_place& each : places) {
    put(to, each.block, 4);
    put(to + 4, each.bytes, 4);
    put(to + 8, each.head_bytes, 4);
    put(to + 12, each.width, 2);
    put(to + 14, each.height, 2);
    put(to + 16, each.mcu_rows, 2);
    put(to + 18, each.mcu_height, 1);
    put(to + 19, each.orientation, 1);
    std::memcpy(to + marks_at, each.marks.data(), photo_place::marks_max);
    to += place_bytes;
  }
  put(content.data() + sum_at, sum_of(content), 4);
  return content;
}

std::optional<std::vector<photo_place>> parse_photo_places(std::span<const std::byte> content) {
  const std::byte* from = content.data();
  if (content.size() < header_bytes || std::memcmp(from, magic.data(), magic.size()) != 0) return std::nullopt;
  const std::uint64_t count = get(from + 16, 4);
  const bool is_known = get(from + 8, 4) == version && get(from + 12, 4) == place_bytes;
  if (!is_known || content.size() != header_bytes + place_bytes * count) return std::nullopt;
  if (sums_count && get(from + sum_at, 4) != sum_of(content)) return std::nullopt;
  std::vector<photo_place> places;
  places.reserve(count);
  for (from += header_bytes; from != content.data() + content.size(); from += place_bytes) {
    photo_place each{.block = get(from, 4),
                     .bytes = get(from + 4, 4),
                     .head_bytes = get(from + 8, 4),
                     .width = static_cast<std::uint16_t>(get(from + 12, 2)),
                     .height = static_cast<std::uint16_t>(get(from + 14, 2)),
                     .mcu_rows = static_cast<std::uint16_t>(get(from + 16, 2)),
                     .mcu_height = static_cast<std::uint8_t>(get(from + 18, 1)),
                     .orientation = static_cast<std::uint8_t>(get(from + 19, 1))};
    std::memcpy(each.marks.data(), from + marks_at, photo_place::marks_max);
    if (each.is_sound()) places.push_back(each);
  }
  std::sort(places.begin(), places.end(), [](const photo_place& a, const photo_place& b) { return a.block < b.block; });
  return places;
}

}  // namespace leat::datasets

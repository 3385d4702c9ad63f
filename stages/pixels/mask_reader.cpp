#include "stages/pixels/mask_reader.hpp"

#include "base/text.hpp"
#include "base/with_type.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory_resource>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace leat::pixels {
namespace {

std::uint32_t packed(const std::uint8_t* rgb) noexcept {
  return std::uint32_t{rgb[0]} << 16 | std::uint32_t{rgb[1]} << 8 | rgb[2];
}

std::string text_of(std::uint32_t colour) { return str_cat(colour >> 16, "/", colour >> 8 & 0xFF, "/", colour & 0xFF); }

// The pixels of a mask that are looked at, and what each line of the row shows.
struct view {
  const pixel_run* runs;  // of each line of the row
  warp_matrix from_row;   // to a place among these pixels
  int row_width = 0;
  int row_height = 0;
};

template <class To>
struct plane {
  const To* first = nullptr;
  int width = 0;
  int height = 0;

  [[nodiscard]] const To* line(std::int64_t y) const noexcept {
    return first + std::clamp<std::int64_t>(y, 0, height - 1) * width;
  }
  [[nodiscard]] std::int64_t column(std::int64_t x) const noexcept { return std::clamp<std::int64_t>(x, 0, width - 1); }
};

constexpr double one = 4294967296.0;  // 32 binary digits behind the point, as warper has them

std::int64_t fixed(double place) noexcept { return static_cast<std::int64_t>(std::nearbyint(place * one)); }

// Whether sums of fixed() hold every place.
bool fits(const warp_matrix& m, int width, int height) noexcept {
  const auto is_small = [&](std::size_t row) {
    return std::abs(m[row]) * width + std::abs(m[row + 1]) * height + std::abs(m[row + 2]) < 2147483647.0;
  };
  return is_small(0) && is_small(3);
}

// One line, from its first pixel that shows something.
template <class To>
void look_up_line(const view& of, const plane<To>& from, int y, std::int64_t* columns, To* to) noexcept {
  const warp_matrix& m = of.from_row;
  const pixel_run run = of.runs[y];
  const double middle = y + 0.5;
  const double first = run.begin + 0.5;
  const double x0 = m[0] * first + (m[1] * middle + m[2]);
  const double y0 = m[3] * first + (m[4] * middle + m[5]);
  const bool is_affine = m[6] == 0 && m[7] == 0 && m[8] == 1 && fits(m, of.row_width, of.row_height);
  if (!is_affine) {
    const double w0 = m[6] * first + (m[7] * middle + m[8]);
    for (int x = run.begin; x < run.end; ++x) {
      const double along = x - run.begin;
      const double w = w0 + m[6] * along;
      const double px = std::clamp((x0 + m[0] * along) / w, 0.0, from.width - 1.0);
      const double py = std::clamp((y0 + m[3] * along) / w, 0.0, from.height - 1.0);
      to[x] = from.line(static_cast<std::int64_t>(py))[static_cast<std::int64_t>(px)];
    }
    return;
  }
  const std::int64_t step_x = fixed(m[0]);
  const std::int64_t step_y = fixed(m[3]);
  std::int64_t at_x = fixed(x0);
  std::int64_t at_y = fixed(y0);
  if (step_y == 0) {  // along a line of the mask
    const To* const line = from.line(at_y >> 32);
    for (int x = run.begin; x < run.end; ++x, at_x += step_x) columns[x] = from.column(at_x >> 32);
    for (int x = run.begin; x < run.end; ++x) to[x] = line[columns[x]];
    return;
  }
  // Places are on a line, so that all are inside where both ends are; those of the picture's edge may be rounded beyond it.
  const auto is_inside = [&](std::int64_t px, std::int64_t py) {
    return px >= 0 && py >= 0 && px >> 32 < from.width && py >> 32 < from.height;
  };
  const std::int64_t steps = run.end - 1 - run.begin;
  if (is_inside(at_x, at_y) && is_inside(at_x + steps * step_x, at_y + steps * step_y)) {
    for (int x = run.begin; x < run.end; ++x, at_x += step_x, at_y += step_y) {
      to[x] = from.first[(at_y >> 32) * from.width + (at_x >> 32)];
    }
    return;
  }
  for (int x = run.begin; x < run.end; ++x, at_x += step_x, at_y += step_y) {
    to[x] = from.line(at_y >> 32)[from.column(at_x >> 32)];
  }
}

template <class To>
void look_up(const view& of, const plane<To>& from, std::int64_t ignore, std::int64_t* columns, To* row) noexcept {
  for (int y = 0; y < of.row_height; ++y, row += of.row_width) {
    const pixel_run run = of.runs[y];
    std::fill(row, row + run.begin, static_cast<To>(ignore));
    std::fill(row + run.end, row + of.row_width, static_cast<To>(ignore));
    if (run.begin < run.end) look_up_line(of, from, y, columns, row);
  }
}

// The part of the mask that is looked at: a line's places lie between those of its ends.
rectangle region_of(const warp_matrix& m, const pixel_run* runs, int row_height, int width, int height) noexcept {
  double left = width;
  double top = height;
  double right = 0;
  double bottom = 0;
  bool any = false;
  for (int y = 0; y < row_height; ++y) {
    if (runs[y].begin == runs[y].end) continue;
    any = true;
    for (const int x : {runs[y].begin, runs[y].end - 1}) {
      const auto [px, py, w] = seen_from(m, x + 0.5, y + 0.5);
      left = std::min(left, px / w);
      right = std::max(right, px / w);
      top = std::min(top, py / w);
      bottom = std::max(bottom, py / w);
    }
  }
  if (!any) return {};
  const auto pixel = [](double place, int side) { return static_cast<int>(std::clamp(place, 0.0, side - 1.0)); };
  const int x = pixel(left - 1, width);
  const int y = pixel(top - 1, height);
  return {x, y, pixel(right + 1, width) - x + 1, pixel(bottom + 1, height) - y + 1};
}

// Numbers of one line, as the row's type has them. Returns the first that it has not, by its place in the line.
template <class To, class From>
std::optional<int> convert(const std::byte* line, int count, To* to) noexcept {
  if constexpr (std::is_same_v<To, From>) {
    std::memcpy(to, line, static_cast<std::size_t>(count) * sizeof(To));
    return std::nullopt;
  }
  for (int i = 0; i < count; ++i) {
    From value{};
    std::memcpy(&value, line + static_cast<std::size_t>(i) * sizeof value, sizeof value);
    if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
      if (!std::in_range<To>(value)) return i;
    } else if constexpr (std::is_integral_v<To>) {
      return i;  // A measure is no whole number.
    }
    to[i] = static_cast<To>(value);
  }
  return std::nullopt;
}

template <class To>
std::optional<int> convert_colours(const std::uint8_t* line, int count, const colour_classes& classes,
                                   To* to) noexcept {
  std::uint32_t last = ~std::uint32_t{0};
  To number{};
  for (int i = 0; i < count; ++i) {
    const std::uint8_t* const rgb = line + std::ptrdiff_t{3} * i;
    if (packed(rgb) != last) {
      const int found = classes.find(rgb);
      if (found < 0) return i;
      last = packed(rgb);
      number = static_cast<To>(found);
    }
    to[i] = number;
  }
  return std::nullopt;
}

stages::failure out_of_scratch() {
  return stages::unsupported("more scratch memory was needed than had been reserved");
}

std::string_view kind_of(const mask_reading& how) noexcept { return how.is_depth ? "depth" : "mask"; }

// What the file says of itself; or why its numbers are none of a mask.
outcome<picture_info> look_at_png(std::span<const std::byte> encoded, const mask_reading& how, bool of_objects,
                                  png_samples& samples) {
  outcome<picture_info> info = peek(encoded, look_for::size);
  if (!info) return info;
  if (info->what != format::png) {
    return stages::unsupported(str_cat("a ", kind_of(how),
                                       how.is_depth ? " is a PNG or an array" : " is a PNG, an array, or COCO's JSON",
                                       ", since numbers have to stay what they are; this is ", name(info->what)));
  }
  samples = samples_of(encoded);
  if (how.is_depth && (samples.channels == 3 || samples.is_palette)) {
    return stages::unsupported(
        str_cat("a depth is grey, and this PNG is ", samples.is_palette ? "of a palette" : "RGB"));
  }
  if (samples.channels != 3) return info;
  if (samples.bits == 16) return stages::unsupported("RGB of 16 bits, which colors() has none of");
  if (of_objects) return stages::unsupported("RGB, and objects are numbers: a PNG of grey, or of a palette");
  if (how.colours == nullptr || how.colours->empty()) {
    return stages::unsupported(
        "RGB: which number a colour stands for has to be said: mask::colors({{0, 0, 0}, {128, 0, 0}, ...})");
  }
  return info;
}

std::string sizes_of(int width, int height) { return str_cat(width, " x ", height); }

// Reads one mask to a plane of the row's type, and looks it up.
template <class To>
class one_mask {
 public:
  one_mask(scratch_arena& arena, png_reader& png, std::vector<pixel_run>& runs, const placed_picture& where,
           const mask_reading& how)
      : arena_(arena), png_(png), runs_(runs), where_(where), how_(how) {}

  outcome<void> fill(std::span<const std::byte> encoded, const picture_info& info, const png_samples& samples, To* row,
                     const std::atomic<bool>* stop) {
    outcome<void> made = begin(encoded, info, false, 0, stop);
    if (!made) return made;
    std::pmr::monotonic_buffer_resource memory(shapes_, shapes_bytes_, std::pmr::null_memory_resource());
    mask_shapes shapes(&memory);
    if (how_.shapes != nullptr) {
      made = how_.shapes->read(shapes);
      if (made) made = paint(shapes, info.height, stop);
    } else {
      made = is_png() ? read_png(samples, region_, pixels_) : read_array(encoded, region_, pixels_, stop);
    }
    if (made) show(row, how_.ignore);
    return made;
  }

  outcome<std::size_t> fill_planes(std::span<const std::byte> encoded, const picture_info& info,
                                   const png_samples& samples, const mask_planes& planes, std::uint8_t* rows,
                                   const std::atomic<bool>* stop) {
    const std::size_t row_pixels = pixels_of(where_.geometry.row_width, where_.geometry.row_height);
    const bool is_stored = how_.shapes == nullptr;
    has_planes_ = true;
    outcome<void> made = begin(encoded, info, is_stored, is_stored ? row_pixels * sizeof(To) : 0, stop);
    if (!made) return made.error();
    if (!is_stored) {
      if constexpr (std::is_same_v<To, std::uint8_t>) return paint_planes(info.height, planes, rows, stop);
      return out_of_scratch();
    }
    made = is_png() ? read_png(samples, region_, pixels_) : read_array(encoded, region_, pixels_, stop);
    if (!made) return made.error();
    std::int64_t largest = 0;
    for (const To number : std::span(pixels_, pixels_of(region_.width, region_.height))) {
      const auto value = static_cast<std::int64_t>(number);
      if (value != how_.ignore) largest = std::max(largest, value);
    }
    if (planes.whole && static_cast<std::uint64_t>(largest) > *planes.whole) {
      return stages::corrupt(
          str_cat("number ", largest, " is of no box, of which there are ", *planes.whole, ": box i has number i + 1"));
    }
    auto* const numbers = arena_.take_array<To>(row_pixels);
    if (numbers == nullptr) return out_of_scratch();
    show(numbers, 0);
    const std::span<const std::int64_t> objects = planes.objects;
    std::int64_t last = 0;
    std::uint8_t* plane = nullptr;
    for (std::size_t i = 0; i < row_pixels; ++i) {
      const auto number = static_cast<std::int64_t>(numbers[i]);
      if (number == 0 || number == how_.ignore) continue;
      if (number != last) {
        const auto found = std::lower_bound(objects.begin(), objects.end(), number - 1);
        plane = found == objects.end() || *found != number - 1
                    ? nullptr
                    : rows + static_cast<std::size_t>(found - objects.begin()) * row_pixels;
        last = number;
      }
      if (plane != nullptr) plane[i] = 1;
    }
    return static_cast<std::size_t>(largest);
  }

 private:
  static std::size_t pixels_of(int width, int height) noexcept {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  }
  [[nodiscard]] bool is_png() const noexcept { return !how_.array && how_.shapes == nullptr; }

  // Takes memory for a region of the mask.
  //   whole   of all of it; otherwise of what the row shows
  outcome<void> begin(std::span<const std::byte> encoded, const picture_info& info, bool whole, std::size_t more_bytes,
                      const std::atomic<bool>* stop) {
    const picture_geometry& geometry = where_.geometry;
    if (is_png()) {
      outcome<void> opened = png_.open(encoded, info, {.stop = stop, .as_stored = true});
      if (!opened) return opened;
    }
    const std::size_t table_bytes = static_cast<std::size_t>(geometry.row_width) * sizeof(std::int64_t);
    from_row_ = geometry.matrix;
    if (info.width != geometry.picture_width || info.height != geometry.picture_height) {
      const double across = static_cast<double>(info.width) / geometry.picture_width;
      const double down = static_cast<double>(info.height) / geometry.picture_height;
      from_row_ = followed({across, 0, 0, 0, down, 0, 0, 0, 1}, from_row_);
    }
    runs_.clear();
    for (int y = 0; y < geometry.row_height; ++y) runs_.push_back(shown_in_line(where_, y));
    region_ = region_of(from_row_, runs_.data(), geometry.row_height, info.width, info.height);
    if (region_.width == 0) region_ = {0, 0, 1, 1};  // Damage is found all the same.
    if (whole) region_ = {0, 0, info.width, info.height};
    const std::size_t plane_bytes = pixels_of(region_.width, region_.height) * sizeof(To);
    marks_bytes_ = how_.shapes != nullptr ? plane_bytes / sizeof(To) : 0;
    shapes_bytes_ = how_.shapes != nullptr ? how_.shapes->bytes() : 0;
    outcome<void> reserved =
        arena_.reserve((is_png() ? png_.scratch_bytes(region_, 1) : 0) + scratch_arena::rounded(table_bytes) +
                       scratch_arena::rounded(plane_bytes) + scratch_arena::rounded(marks_bytes_) +
                       scratch_arena::rounded(shapes_bytes_) + scratch_arena::rounded(more_bytes));
    if (!reserved) return reserved;
    pixels_ = static_cast<To*>(arena_.take(plane_bytes));
    columns_ = arena_.take_array<std::int64_t>(static_cast<std::size_t>(geometry.row_width));
    marks_ = arena_.take_array<std::uint8_t>(marks_bytes_);
    shapes_ = arena_.take(shapes_bytes_);
    if (pixels_ == nullptr || columns_ == nullptr || marks_ == nullptr || shapes_ == nullptr) return out_of_scratch();
    std::fill_n(marks_, marks_bytes_, std::uint8_t{0});
    from_row_ =
        followed({1, 0, -static_cast<double>(region_.x), 0, 1, -static_cast<double>(region_.y), 0, 0, 1}, from_row_);
    return {};
  }

  // What the row shows of the region.
  void show(To* row, std::int64_t outside) const noexcept {
    const picture_geometry& geometry = where_.geometry;
    look_up({runs_.data(), from_row_, geometry.row_width, geometry.row_height},
            plane<To>{pixels_, region_.width, region_.height}, outside, columns_, row);
  }

  // Each object by itself.
  outcome<std::size_t> paint_planes(int picture_height, const mask_planes& planes, std::uint8_t* rows,
                                    const std::atomic<bool>* stop) {
    std::pmr::monotonic_buffer_resource memory(shapes_, shapes_bytes_, std::pmr::null_memory_resource());
    mask_shapes shapes(&memory);
    const outcome<void> read = how_.shapes->read(shapes);
    if (!read) return read.error();
    if (planes.whole && shapes.objects != *planes.whole) {
      return stages::corrupt(
          str_cat("has ", shapes.objects, " segmentations, and there are ", *planes.whole, " boxes"));
    }
    const std::size_t row_pixels = pixels_of(where_.geometry.row_width, where_.geometry.row_height);
    const auto* each = shapes.all.data();
    const auto* const end = each + shapes.all.size();
    for (std::size_t i = 0; i < planes.objects.size(); ++i) {
      if (stop != nullptr && stop->load(std::memory_order_relaxed)) return stages::cancelled();
      const auto object = static_cast<std::uint32_t>(planes.objects[i]);
      while (each != end && each->object < object) ++each;  // Shapes stand in the order of their objects.
      bool is_painted = false;
      for (; each != end && each->object == object; ++each) {
        if (!std::exchange(is_painted, true)) std::fill_n(pixels_, marks_bytes_, To{0});
        paint_one(shapes, *each, picture_height, 1);
      }
      if (is_painted) show(rows + i * row_pixels, 0);
    }
    return shapes.objects;
  }

  outcome<void> read_png(const png_samples& samples, const rectangle& region, To* to) {
    outcome<void> started = png_.start(region, 1);
    if (!started) return started;
    for (int y = 0; y < region.height;) {
      const outcome<lines> some = png_.read();
      if (!some) return some.error();
      for (int i = 0; i < some->count; ++i, ++y, to += region.width) {
        const std::uint8_t* const line = some->first + static_cast<std::size_t>(i) * some->stride;
        const auto* const bytes = reinterpret_cast<const std::byte*>(line);
        std::optional<int> wrong;
        if (samples.channels == 3) {
          wrong = convert_colours(line, region.width, *how_.colours, to);
          if (!wrong) continue;
          return stages::corrupt(str_cat("colour ", text_of(packed(line + std::ptrdiff_t{3} * *wrong)), " at ",
                                         place_text(region, *wrong, y), " is none of the ", how_.colours->size(),
                                         " of colors()"));
        }
        wrong = samples.bits == 16 ? convert<To, std::uint16_t>(bytes, region.width, to)
                                   : convert<To, std::uint8_t>(bytes, region.width, to);
        if (wrong) {
          std::uint16_t value = 0;
          std::memcpy(&value, bytes + static_cast<std::size_t>(*wrong) * sizeof value, sizeof value);
          return does_not_fit(str_cat(value), region, *wrong, y);
        }
      }
    }
    return {};
  }

  outcome<void> read_array(std::span<const std::byte> encoded, const rectangle& region, To* to,
                           const std::atomic<bool>* stop) {
    const mask_array& array = *how_.array;
    outcome<void> made;
    with_type(array.type, [&](auto zero) {
      using from = decltype(zero);
      const std::size_t stride = static_cast<std::size_t>(array.width) * sizeof(from);
      for (int y = 0; y < region.height && made; ++y, to += region.width) {
        if (stop != nullptr && stop->load(std::memory_order_relaxed)) {
          made = stages::cancelled();
          return;
        }
        const std::byte* const line = encoded.data() + static_cast<std::size_t>(region.y + y) * stride +
                                      static_cast<std::size_t>(region.x) * sizeof(from);
        if (const std::optional<int> wrong = convert<To, from>(line, region.width, to)) {
          from value{};
          std::memcpy(&value, line + static_cast<std::size_t>(*wrong) * sizeof value, sizeof value);
          made = does_not_fit(std::to_string(value), region, *wrong, y);
        }
      }
    });
    return made;
  }

  outcome<void> paint(const mask_shapes& shapes, int picture_height, const std::atomic<bool>* stop) {
    std::fill_n(pixels_, marks_bytes_, To{0});
    for (const bool are_ignored : {true, false}) {
      for (const mask_shape& each : shapes.all) {
        if (each.is_ignored != are_ignored) continue;
        if (stop != nullptr && stop->load(std::memory_order_relaxed)) return stages::cancelled();
        const std::int64_t number = are_ignored ? how_.ignore : each.number;
        if (!has_number(number)) {
          return stages::corrupt(
              str_cat("category ", number, " is none of ", leat::name(how_.type), "; mask::as() says another type"));
        }
        paint_one(shapes, each, picture_height, static_cast<To>(number));
      }
    }
    return {};
  }
  void paint_one(const mask_shapes& shapes, const mask_shape& shape, int picture_height, To number) noexcept {
    paint_shape(shapes, shape, picture_height, region_, marks_, [&](int x, int begin, int end) {
      To* at = pixels_ + static_cast<std::ptrdiff_t>(begin - region_.y) * region_.width + (x - region_.x);
      for (int y = begin; y < end; ++y, at += region_.width) *at = number;
    });
  }

  static bool has_number(std::int64_t number) noexcept {
    if constexpr (std::is_integral_v<To>) return std::in_range<To>(number);
    return true;
  }

  static std::string place_text(const rectangle& region, int x, int y) {
    return str_cat("line ", region.y + y, ", pixel ", region.x + x);
  }
  [[nodiscard]] outcome<void> does_not_fit(const std::string& value, const rectangle& region, int x, int y) const {
    return stages::corrupt(str_cat("number ", value, " at ", place_text(region, x, y), " is none of ",
                                   leat::name(how_.type),
                                   how_.is_depth ? ", as the first sample's are"
                                   : has_planes_ ? ", which numbers of objects are"
                                                 : "; mask::as() says another type"));
  }

  scratch_arena& arena_;
  png_reader& png_;
  std::vector<pixel_run>& runs_;
  const placed_picture& where_;
  const mask_reading& how_;
  // Of the mask that is read.
  bool has_planes_ = false;
  rectangle region_{};
  warp_matrix from_row_{};  // to a place in the region
  To* pixels_ = nullptr;
  std::int64_t* columns_ = nullptr;
  std::uint8_t* marks_ = nullptr;
  std::size_t marks_bytes_ = 0;
  void* shapes_ = nullptr;
  std::size_t shapes_bytes_ = 0;
};

}  // namespace

colour_classes::colour_classes(const std::vector<std::array<std::uint8_t, 3>>& of) {
  for (const auto& rgb : of) sorted_.push_back({packed(rgb.data()), static_cast<int>(sorted_.size())});
  std::sort(sorted_.begin(), sorted_.end(), [](const entry& a, const entry& b) { return a.colour < b.colour; });
  for (std::size_t i = 1; i < sorted_.size(); ++i) {
    if (sorted_[i].colour != sorted_[i - 1].colour) continue;
    throw error(errc::usage, str_cat("colour ", text_of(sorted_[i].colour), " stands for two classes"));
  }
}

int colour_classes::find(const std::uint8_t* rgb) const noexcept {
  const std::uint32_t colour = packed(rgb);
  const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), colour,
                                   [](const entry& each, std::uint32_t wanted) { return each.colour < wanted; });
  return at != sorted_.end() && at->colour == colour ? at->number : -1;
}

bool is_mask_type(dtype type) noexcept {
  return type == dtype::u8 || type == dtype::u16 || type == dtype::i32 || type == dtype::i64;
}

// What is known of a mask before it is read.
struct mask_reader::opened {
  picture_info info;
  png_samples samples;
};

outcome<mask_reader::opened> mask_reader::open(std::span<const std::byte> encoded, const placed_picture& where,
                                               const mask_reading& how, const mask_planes* planes) const {
  opened made;
  auto& [info, samples] = made;
  if (how.shapes != nullptr) {
    info.width = where.geometry.picture_width;
    info.height = where.geometry.picture_height;
  } else if (how.array) {
    info.width = how.array->width;
    info.height = how.array->height;
  } else {
    const outcome<picture_info> found = look_at_png(encoded, how, planes != nullptr, samples);
    if (!found) return found.error();
    info = *found;
  }
  const picture_geometry& picture = where.geometry;
  if (!how.scaled && (info.width != picture.picture_width || info.height != picture.picture_height)) {
    return stages::corrupt(str_cat("a ", kind_of(how), " of ", sizes_of(info.width, info.height),
                                   " pixels, and its picture has ",
                                   sizes_of(picture.picture_width, picture.picture_height), "; ",
                                   planes != nullptr && planes->whole
                                       ? "masks of boxes are of its size: scale the file to it, by the nearest pixel"
                                       : str_cat(kind_of(how), "::scaled() lays it over the picture all the same")));
  }
  return made;
}

outcome<std::size_t> mask_reader::read_planes(std::span<const std::byte> encoded, const placed_picture& where,
                                              const mask_reading& how, const mask_planes& planes,
                                              std::span<std::byte> rows, const std::atomic<bool>* stop) {
  const arena_use use(arena_);
  const outcome<opened> found = open(encoded, where, how, &planes);
  if (!found) return found.error();
  std::fill(rows.begin(), rows.end(), std::byte{0});
  auto* const first = reinterpret_cast<std::uint8_t*>(rows.data());
  if (how.shapes != nullptr) {
    return one_mask<std::uint8_t>(arena_, png_, runs_, where, how)
        .fill_planes(encoded, found->info, found->samples, planes, first, stop);
  }
  return one_mask<std::uint16_t>(arena_, png_, runs_, where, how)
      .fill_planes(encoded, found->info, found->samples, planes, first, stop);
}

outcome<void> mask_reader::read(std::span<const std::byte> encoded, const placed_picture& where,
                                const mask_reading& how, std::span<std::byte> row, const std::atomic<bool>* stop) {
  const arena_use use(arena_);
  const outcome<opened> found = open(encoded, where, how, nullptr);
  if (!found) return found.error();
  const auto fill = [&](auto zero) {
    using to = decltype(zero);
    return one_mask<to>(arena_, png_, runs_, where, how)
        .fill(encoded, found->info, found->samples, reinterpret_cast<to*>(row.data()), stop);
  };
  switch (how.type) {
    case dtype::u16:
      return fill(std::uint16_t{});
    case dtype::i32:
      return fill(std::int32_t{});
    case dtype::i64:
      return fill(std::int64_t{});
    case dtype::f32:
      return fill(float{});
    default:
      return fill(std::uint8_t{});
  }
}

}  // namespace leat::pixels

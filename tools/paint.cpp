#include "tools/paint.hpp"

#include "base/random.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

namespace leat::tools {
namespace {

void leave_if(const std::stop_token& stop) {
  if (stop.stop_requested()) throw error(errc::cancelled, "stopped while painting");
}

// --- Textures: periodic squares of mean 0 and deviation 1, in units of 1/2048 -------------------------------------

constexpr std::uint32_t texture_bits = 8;
constexpr std::uint32_t texture_size = 1U << texture_bits;
constexpr std::uint32_t texture_mask = texture_size - 1;
constexpr float texture_unit = 2048;

using texture_plane = std::vector<float>;

texture_plane empty_plane() { return texture_plane(std::size_t{texture_size} * texture_size); }

float& at(texture_plane& plane, std::uint32_t x, std::uint32_t y) {
  return plane[((y & texture_mask) << texture_bits) | (x & texture_mask)];
}

// Adds one octave of value noise: random numbers on a grid of cells_x x cells_y, smoothly joined.
void add_octave(texture_plane& plane, std::uint32_t cells_x, std::uint32_t cells_y, float amplitude,
                random_draws& draws) {
  std::vector<float> grid(std::size_t{cells_x} * cells_y);
  for (float& value : grid) value = static_cast<float>(draws.uniform(-1, 1)) * amplitude;
  const auto step = [](std::uint32_t position, std::uint32_t cells) {
    const std::uint32_t width = texture_size / cells;
    const float t = static_cast<float>(position % width) / static_cast<float>(width);
    return std::pair{position / width, t * t * (3 - 2 * t)};
  };
  for (std::uint32_t y = 0; y < texture_size; ++y) {
    const auto [row, v] = step(y, cells_y);
    const float* const upper = &grid[std::size_t{row} * cells_x];
    const float* const lower = &grid[std::size_t{(row + 1) % cells_y} * cells_x];
    for (std::uint32_t x = 0; x < texture_size; ++x) {
      const auto [column, u] = step(x, cells_x);
      const std::uint32_t next = (column + 1) % cells_x;
      const float top = upper[column] + (upper[next] - upper[column]) * u;
      const float bottom = lower[column] + (lower[next] - lower[column]) * u;
      at(plane, x, y) += top + (bottom - top) * v;
    }
  }
}

// 1/f noise: each octave twice as fine and `decay` as strong. A stretch draws it out along x, as fur and wood are.
texture_plane cloud(std::uint32_t cells, float decay, std::uint32_t stretch, random_draws& draws) {
  texture_plane plane = empty_plane();
  float amplitude = 1;
  for (; cells <= texture_size; cells *= 2, amplitude *= decay)
    add_octave(plane, std::max(cells / stretch, 2U), cells, amplitude, draws);
  return plane;
}

// Ridges where the noise crosses zero: cracks, veins, bark.
texture_plane ridges(random_draws& draws) {
  texture_plane plane = cloud(8, 0.55F, 1, draws);
  for (float& value : plane) value = -std::sqrt(std::abs(value));
  return plane;
}

// The distance to the nearest of many points, as pebbles and skin have it.
texture_plane pebbles(std::uint32_t cells, random_draws& draws) {
  std::vector<std::pair<float, float>> points(std::size_t{cells} * cells);
  for (auto& [x, y] : points) {
    x = static_cast<float>(draws.uniform());
    y = static_cast<float>(draws.uniform());
  }
  texture_plane plane = empty_plane();
  const float width = static_cast<float>(texture_size) / static_cast<float>(cells);
  for (std::uint32_t y = 0; y < texture_size; ++y) {
    for (std::uint32_t x = 0; x < texture_size; ++x) {
      const float u = static_cast<float>(x) / width;
      const float v = static_cast<float>(y) / width;
      const auto column = static_cast<std::uint32_t>(u);
      const auto row = static_cast<std::uint32_t>(v);
      float nearest = 9, second = 9;
      for (std::uint32_t j = 0; j < 3; ++j) {
        for (std::uint32_t i = 0; i < 3; ++i) {
          const std::uint32_t cell = (row + cells + j - 1) % cells * cells + (column + cells + i - 1) % cells;
          const float dx = static_cast<float>(column + i) - 1 + points[cell].first - u;
          const float dy = static_cast<float>(row + j) - 1 + points[cell].second - v;
          const float distance = dx * dx + dy * dy;
          if (distance < nearest) {
            second = std::exchange(nearest, distance);
          } else {
            second = std::min(second, distance);
          }
        }
      }
      at(plane, x, y) = std::min(std::sqrt(second) - std::sqrt(nearest), 0.5F);
    }
  }
  return plane;
}

// Threads over and under, bent a little.
texture_plane weave(random_draws& draws) {
  texture_plane bend = cloud(4, 0.5F, 1, draws);
  texture_plane plane = cloud(32, 0.7F, 1, draws);
  const auto wave = [](float t) {  // a parabola for each half of a period of 1
    t -= std::floor(t);
    return t < 0.5F ? 16 * t * (0.5F - t) : -16 * (t - 0.5F) * (1 - t);
  };
  for (std::uint32_t y = 0; y < texture_size; ++y) {
    for (std::uint32_t x = 0; x < texture_size; ++x) {
      const float shift = at(bend, x, y) * 0.3F;
      const float over = wave(static_cast<float>(x) / 8 + shift);
      const float under = wave(static_cast<float>(y) / 8 + shift);
      at(plane, x, y) = at(plane, x, y) * 0.6F + over * under + 0.5F * over;
    }
  }
  return plane;
}

// Courses of bricks with joints.
texture_plane bricks(random_draws& draws) {
  texture_plane plane = cloud(16, 0.75F, 1, draws);
  std::vector<float> tones(64);
  for (float& tone : tones) tone = static_cast<float>(draws.uniform(-0.7, 0.7));
  for (std::uint32_t y = 0; y < texture_size; ++y) {
    for (std::uint32_t x = 0; x < texture_size; ++x) {
      const std::uint32_t course = y / 16;
      const std::uint32_t along = (x + (course % 2) * 16) & texture_mask;
      const bool joint = y % 16 < 2 || along % 32 < 2;
      at(plane, x, y) = at(plane, x, y) * 0.4F + (joint ? -1.5F : tones[(course * 8 + along / 32) % 64]);
    }
  }
  return plane;
}

std::vector<std::int16_t> normalised(const texture_plane& plane) {
  double sum = 0, squares = 0;
  for (const float value : plane) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  const double mean = sum / static_cast<double>(plane.size());
  const double deviation = std::sqrt(squares / static_cast<double>(plane.size()) - mean * mean);
  std::vector<std::int16_t> levels;
  levels.reserve(plane.size());
  for (const float value : plane) {
    const double level = (static_cast<double>(value) - mean) / deviation * static_cast<double>(texture_unit);
    levels.push_back(static_cast<std::int16_t>(std::clamp(level, -16000.0, 16000.0)));
  }
  return levels;
}

enum texture_kind : std::uint32_t { smooth, rough, fur, cracked, pebbled, fine_pebbled, woven, brick, texture_kinds };

// --- What is in a picture ------------------------------------------------------------------------------------------

struct rgb {
  float red, green, blue;
};

enum class shape : std::uint8_t { disc, box, lens };

struct class_look {
  const char* name;
  std::array<rgb, 4> colours;
  shape leaf_shape;
  std::array<texture_kind, 2> textures;
};

// In the order of their names, so that a class's number is its folder's number.
constexpr std::array<class_look, 10> looks{{
    {"autumn", {{{196, 92, 30}, {168, 44, 24}, {214, 160, 48}, {92, 56, 32}}}, shape::lens, {cracked, rough}},
    {"coral", {{{240, 128, 112}, {248, 190, 160}, {60, 150, 160}, {220, 80, 110}}}, shape::disc, {pebbled, smooth}},
    {"dusk", {{{92, 64, 140}, {50, 44, 96}, {226, 132, 92}, {150, 84, 130}}}, shape::box, {smooth, brick}},
    {"forest", {{{44, 84, 40}, {28, 52, 34}, {96, 120, 52}, {84, 66, 44}}}, shape::lens, {fur, rough}},
    {"glacier", {{{214, 230, 240}, {150, 190, 214}, {240, 244, 248}, {96, 130, 156}}}, shape::box, {cracked, smooth}},
    {"lagoon",
     {{{30, 150, 170}, {16, 96, 150}, {110, 200, 196}, {230, 220, 180}}},
     shape::disc,
     {smooth, fine_pebbled}},
    {"meadow", {{{128, 180, 60}, {90, 150, 50}, {224, 210, 70}, {150, 190, 220}}}, shape::lens, {fur, fur}},
    {"orchid", {{{190, 70, 170}, {230, 150, 220}, {110, 40, 120}, {90, 140, 70}}}, shape::disc, {smooth, woven}},
    {"sand", {{{214, 184, 136}, {188, 152, 104}, {236, 216, 176}, {140, 112, 80}}}, shape::disc, {rough, fine_pebbled}},
    {"slate", {{{104, 112, 122}, {70, 78, 88}, {150, 156, 160}, {128, 108, 96}}}, shape::box, {brick, woven}},
}};

// One object: where it lies, and how its surface looks.
struct leaf {
  shape outline = shape::disc;
  float x = 0, y = 0;     // centre, pixels
  float half_length = 0;  // along (cosine, sine)
  float half_width = 0;
  float cosine = 1, sine = 0;
  float wobble = 0;  // how far the outline wanders, pixels

  rgb colour{};
  rgb second{};  // added once per deviation of the coarse texture
  std::uint32_t fine = 0, coarse = 0;
  std::array<std::uint32_t, 2> origin{};             // of the fine texture, 16.16 texels
  std::array<std::int32_t, 2> along_x{}, along_y{};  // its steps per pixel
  float fine_strength = 0, coarse_strength = 0;
  float light = 1, light_x = 0, light_y = 0;  // brightness at the centre, and its change per pixel
};

struct span_of_row {
  float from, to;
};

// Where a row at distance dy from the centre lies inside an ellipse.
span_of_row ellipse_row(float dy, float length, float width, float cosine, float sine) {
  const float p = 1 / (length * length), q = 1 / (width * width);
  const float a = cosine * cosine * p + sine * sine * q;
  const float b = cosine * sine * (p - q) * dy;
  const float c = (sine * sine * p + cosine * cosine * q) * dy * dy - 1;
  const float root = b * b - a * c;
  if (root <= 0) return {1, 0};
  const float half = std::sqrt(root);
  return {(-b - half) / a, (-b + half) / a};
}

// Where |slope dx + offset| <= limit.
span_of_row band_row(float slope, float offset, float limit) {
  if (std::abs(slope) < 1e-4F) return std::abs(offset) <= limit ? span_of_row{-1e5F, 1e5F} : span_of_row{1, 0};
  const float first = (-limit - offset) / slope, second = (limit - offset) / slope;
  return {std::min(first, second), std::max(first, second)};
}

span_of_row both(span_of_row first, span_of_row second) {
  return {std::max(first.from, second.from), std::min(first.to, second.to)};
}

span_of_row row_of(const leaf& l, float dy) {
  switch (l.outline) {
    case shape::disc:
      return ellipse_row(dy, l.half_length, l.half_width, l.cosine, l.sine);
    case shape::box:
      return both(band_row(l.cosine, l.sine * dy, l.half_length), band_row(-l.sine, l.cosine * dy, l.half_width));
    case shape::lens: {
      // What two discs have in common.
      const float radius = (l.half_length * l.half_length + l.half_width * l.half_width) / (2 * l.half_width);
      const float apart = radius - l.half_width;
      const auto disc = [&](float sign) {
        const float cx = -l.sine * apart * sign, cy = l.cosine * apart * sign;
        span_of_row row = ellipse_row(dy - cy, radius, radius, 1, 0);
        row.from += cx;
        row.to += cx;
        return row;
      };
      return both(disc(1), disc(-1));
    }
  }
  return {1, 0};
}

// All that is drawn for one picture, so that paint() reads as a recipe.
class scene {
 public:
  scene(std::uint64_t seed, std::uint32_t class_index, std::uint32_t index, std::uint32_t width, std::uint32_t height)
      : draws_(seed, class_index, index, "photo"),
        look_(looks[class_index % looks.size()]),
        variant_(class_index / static_cast<std::uint32_t>(looks.size())),
        width_(static_cast<float>(width)),
        height_(static_cast<float>(height)),
        sun_(direction()) {
    // How busy the picture is: photographs of 500 x 375 have between 1 and 9 bits per pixel. Two draws are two
    // statements, here and below: in one expression compilers may choose which comes first.
    detail_ = between(0.15F, 1.3F);
    detail_ *= between(0.6F, 1.5F);
    soft = between(0, 1);
    grain = between(0.2F, 1.0F) * (0.5F + 2.6F * detail_);
    exposure = between(0.8F, 1.15F);
    const float size = std::sqrt(width_ * height_);
    add_ground(size);
    const float smallest = size * between(0.012F, 0.05F);
    const float largest = size * between(0.2F, 0.5F);
    const auto count = static_cast<std::uint32_t>(between(30, 110) * (0.5F + detail_));
    for (std::uint32_t i = 0; i < count; ++i) add_leaf(smallest, largest);
  }

  std::vector<leaf> leaves;  // from back to front; the first two are sky and ground
  float horizon = 0;         // row
  float soft = 0;            // 0 sharp, 1 soft
  float grain = 0;           // deviation of the sensor's noise, levels
  float exposure = 1;
  std::array<float, 2> shadow{};  // where shadows fall, pixels

  [[nodiscard]] std::uint32_t word() { return draws_.bits(); }

 private:
  float between(float from, float to) { return from + (to - from) * static_cast<float>(draws_.uniform()); }

  std::array<float, 2> direction() {
    for (;;) {
      const float x = between(-1, 1), y = between(-1, 1);
      const float square = x * x + y * y;
      if (square > 1 || square < 0.01F) continue;
      const float length = std::sqrt(square);
      return {x / length, y / length};
    }
  }

  rgb colour() {
    rgb c{};
    if (draws_.below(100) < 72) {
      // A class's later colours are rarer.
      const std::uint64_t pick = std::min(draws_.below(4), draws_.below(4));  // the same in either order
      c = look_.colours[(pick + variant_) % look_.colours.size()];
    } else {
      c = looks[draws_.below(looks.size())].colours[draws_.below(4)];
    }
    const float shade = between(0.6F, 1.25F);
    return {c.red * shade + between(-22, 22), c.green * shade + between(-22, 22), c.blue * shade + between(-22, 22)};
  }

  void give_surface(leaf& l, float size) {
    l.colour = colour();
    const rgb other = colour();
    const float blend = between(0, 0.22F);
    l.second = {(other.red - l.colour.red) * blend, (other.green - l.colour.green) * blend,
                (other.blue - l.colour.blue) * blend};
    l.fine = draws_.below(100) < 60 ? look_.textures[draws_.below(2)]
                                    : static_cast<std::uint32_t>(draws_.below(texture_kinds));
    l.coarse = static_cast<std::uint32_t>(draws_.below(2));
    const std::array<float, 2> turn = direction();
    const float texels_per_pixel = between(0.35F, 1.3F);
    const auto fixed = [](float value) { return static_cast<std::int32_t>(value * 65536); };
    l.along_x = {fixed(turn[0] * texels_per_pixel), fixed(turn[1] * texels_per_pixel)};
    l.along_y = {fixed(-turn[1] * texels_per_pixel), fixed(turn[0] * texels_per_pixel)};
    l.origin = {draws_.bits(), draws_.bits()};
    l.fine_strength = detail_ * between(0.03F, 0.31F);
    l.coarse_strength = between(0.02F, 0.14F);
    l.light = between(0.85F, 1.15F);
    const float fall = between(0.05F, 0.35F) / size;
    l.light_x = sun_[0] * fall;
    l.light_y = sun_[1] * fall;
  }

  void add_ground(float size) {
    horizon = height_ * between(-0.2F, 1.0F);
    const float length = size * between(0.004F, 0.02F);
    shadow = {-sun_[0] * length, -sun_[1] * length};
    for (int i = 0; i < 2; ++i) {
      leaf l;
      l.x = width_ / 2;
      l.y = height_ / 2;
      give_surface(l, size);
      if (i == 0) {  // The sky, or a wall out of focus.
        l.fine = smooth;
        l.fine_strength *= 0.35F;
      }
      leaves.push_back(l);
    }
  }

  void add_leaf(float smallest, float largest) {
    leaf l;
    l.outline = draws_.below(100) < 70 ? look_.leaf_shape : static_cast<shape>(draws_.below(3));
    // Radii by r^-3: u is the share of leaves that are smaller.
    const float ratio = smallest / largest;
    const float radius = smallest / std::sqrt(1 - between(0, 1) * (1 - ratio * ratio));
    const float slender = l.outline == shape::lens ? between(0.15F, 0.6F) : between(0.45F, 1);
    l.half_length = radius * between(1, 1.5F);
    l.half_width = l.half_length * slender;
    const std::array<float, 2> turn = direction();
    l.cosine = turn[0];
    l.sine = turn[1];
    l.x = between(-0.05F, 1.05F) * width_;
    l.y = between(-0.05F, 1.05F) * height_;
    l.wobble = radius * between(0, 0.07F);
    give_surface(l, radius * 2);
    leaves.push_back(l);
  }

  random_draws draws_;
  const class_look& look_;
  std::uint32_t variant_;
  float width_, height_;
  float detail_ = 0;
  std::array<float, 2> sun_;
};

// --- Painting ------------------------------------------------------------------------------------------------------

// A texture between its texels, at a 16.16 position.
inline float texel(const std::int16_t* texture, std::uint32_t u, std::uint32_t v) {
  const std::uint32_t x = u >> 16, y = v >> 16;
  const auto part_x = static_cast<std::int32_t>((u >> 8) & 255), part_y = static_cast<std::int32_t>((v >> 8) & 255);
  const std::int16_t* const upper = texture + ((y & texture_mask) << texture_bits);
  const std::int16_t* const lower = texture + (((y + 1) & texture_mask) << texture_bits);
  const std::uint32_t left = x & texture_mask, right = (x + 1) & texture_mask;
  const std::int32_t top = upper[left] * (256 - part_x) + upper[right] * part_x;
  const std::int32_t bottom = lower[left] * (256 - part_x) + lower[right] * part_x;
  return static_cast<float>((top >> 8) * (256 - part_y) + (bottom >> 8) * part_y) * (1 / (256 * texture_unit));
}

constexpr std::uint8_t full_light = 255;

// Which leaf is seen where, and where shadow lies on it.
void lay_leaves(const scene& s, const std::int16_t* wander, std::uint32_t width, std::uint32_t height,
                painter::scratch& work, const std::stop_token& stop) {
  const auto row_start = [width](std::uint32_t y) { return static_cast<std::ptrdiff_t>(std::size_t{y} * width); };
  work.leaf_of_pixel.assign(std::size_t{width} * height, 0);
  work.light_of_pixel.assign(std::size_t{width} * height, full_light);
  const auto ground_from = static_cast<std::uint32_t>(std::clamp(s.horizon, 0.0F, static_cast<float>(height)));
  std::fill(work.leaf_of_pixel.begin() + row_start(ground_from), work.leaf_of_pixel.end(), std::uint16_t{1});

  // Calls paint(y, from, to) for each row of a leaf moved by (dx, dy).
  const auto rows = [&](const leaf& l, float dx, float dy, auto&& paint) {
    const float reach = std::max(l.half_length, l.half_width) * 1.5F + l.wobble;
    const float limit = static_cast<float>(height);
    const auto top = static_cast<std::uint32_t>(std::clamp(l.y + dy - reach, 0.0F, limit));
    const auto bottom = static_cast<std::uint32_t>(std::clamp(l.y + dy + reach + 1, 0.0F, limit));
    for (std::uint32_t y = top; y < bottom; ++y) {
      const float from_centre = static_cast<float>(y) + 0.5F - l.y - dy;
      span_of_row row = row_of(l, from_centre);
      if (row.from >= row.to) continue;
      const std::uint32_t line = static_cast<std::uint32_t>(static_cast<std::int32_t>(from_centre * 2)) + l.origin[0];
      const auto edge = [&](std::uint32_t side) {
        return static_cast<float>(wander[((line & texture_mask) << texture_bits) | side]) * l.wobble / texture_unit;
      };
      const float right_end = static_cast<float>(width);
      const auto from = static_cast<std::uint32_t>(std::clamp(l.x + dx + row.from + edge(0), 0.0F, right_end));
      const auto to = static_cast<std::uint32_t>(std::clamp(l.x + dx + row.to + edge(64), 0.0F, right_end));
      if (from < to) paint(row_start(y), from, to);
    }
  };
  for (std::size_t i = 2; i < s.leaves.size(); ++i) {
    leave_if(stop);
    const leaf& l = s.leaves[i];
    rows(l, s.shadow[0], s.shadow[1], [&](std::ptrdiff_t start, std::uint32_t from, std::uint32_t to) {
      for (std::uint32_t x = from; x < to; ++x) {
        std::uint8_t& light = work.light_of_pixel[static_cast<std::size_t>(start) + x];
        light = static_cast<std::uint8_t>(light * 5 / 8);
      }
    });
    rows(l, 0, 0, [&](std::ptrdiff_t start, std::uint32_t from, std::uint32_t to) {
      std::fill(work.leaf_of_pixel.begin() + start + from, work.leaf_of_pixel.begin() + start + to,
                static_cast<std::uint16_t>(i));
      std::fill(work.light_of_pixel.begin() + start + from, work.light_of_pixel.begin() + start + to, full_light);
    });
  }
}

}  // namespace

std::string paint_class_name(std::uint32_t class_index) {
  std::string name = looks[class_index % looks.size()].name;
  const std::size_t round = class_index / looks.size();
  if (round > 0) name += "-" + std::to_string(round + 1);
  return name;
}

painter::painter(const std::stop_token& stop) {
  random_draws draws(0, 0, 0, "textures");
  textures_.resize(texture_kinds);
  const auto keep = [&](std::size_t kind, const texture_plane& plane) {
    textures_[kind] = normalised(plane);
    leave_if(stop);
  };
  keep(smooth, cloud(4, 0.55F, 1, draws));
  keep(rough, cloud(8, 0.85F, 1, draws));
  keep(fur, cloud(32, 0.8F, 8, draws));
  keep(cracked, ridges(draws));
  keep(pebbled, pebbles(16, draws));
  keep(fine_pebbled, pebbles(48, draws));
  keep(woven, weave(draws));
  keep(brick, bricks(draws));
  // Sums of four uniform numbers: near enough to a bell, deviation 74.
  grain_.resize(1U << 16);
  for (std::int8_t& level : grain_) {
    int sum = 0;
    const std::uint32_t bits = draws.bits();
    for (int i = 0; i < 4; ++i) sum += static_cast<int>((bits >> (8 * i)) & 255);
    level = static_cast<std::int8_t>(std::clamp((sum - 510) / 2, -127, 127));
  }
}

void painter::paint(std::uint64_t seed, std::uint32_t class_index, std::uint32_t index, canvas& out, scratch& work,
                    const std::stop_token& stop) const {
  const std::uint32_t width = out.width, height = out.height;
  const std::size_t pixels = std::size_t{width} * height;
  scene s(seed, class_index, index, width, height);
  lay_leaves(s, textures_[smooth].data(), width, height, work, stop);

  // Each pixel once: runs of one leaf share its numbers.
  work.colour.resize(pixels * 3);
  for (std::uint32_t y = 0; y < height; ++y) {
    leave_if(stop);
    const std::uint16_t* const leaf_of = &work.leaf_of_pixel[std::size_t{y} * width];
    const std::uint8_t* const light_of = &work.light_of_pixel[std::size_t{y} * width];
    float* to = &work.colour[std::size_t{y} * width * 3];
    for (std::uint32_t x = 0; x < width;) {
      const std::uint16_t number = leaf_of[x];
      std::uint32_t end = x + 1;
      while (end < width && leaf_of[end] == number) ++end;
      const leaf& l = s.leaves[number];
      const std::int16_t* const fine = textures_[l.fine].data();
      const std::int16_t* const coarse = textures_[l.coarse].data();
      const auto position = [&](std::size_t axis) {
        return l.origin[axis] + static_cast<std::uint32_t>(l.along_x[axis]) * x +
               static_cast<std::uint32_t>(l.along_y[axis]) * y;
      };
      std::uint32_t u = position(0), v = position(1);
      const float dx = static_cast<float>(x) - l.x, dy = static_cast<float>(y) - l.y;
      float light = (l.light + dx * l.light_x + dy * l.light_y) * s.exposure;
      const float light_step = l.light_x * s.exposure;
      for (; x < end; ++x) {
        const float near = texel(fine, u, v);
        const float far = texel(coarse, u >> 3, v >> 3);
        const float value = std::clamp(light, 0.35F, 1.6F) * (1 + near * l.fine_strength + far * l.coarse_strength) *
                            (static_cast<float>(light_of[x]) * (1.0F / full_light));
        *to++ = (l.colour.red + l.second.red * far) * value;
        *to++ = (l.colour.green + l.second.green * far) * value;
        *to++ = (l.colour.blue + l.second.blue * far) * value;
        light += light_step;
        u += static_cast<std::uint32_t>(l.along_x[0]);
        v += static_cast<std::uint32_t>(l.along_x[1]);
      }
    }
  }

  // The lens: three taps down, three across; its softness is the picture's. It also smooths the outlines.
  const float side = 0.10F + 0.15F * s.soft;
  const float middle = 1 - 2 * side;
  const std::size_t stride = std::size_t{width} * 3;
  work.blurred.resize(stride);
  out.rgb.resize(pixels * 3);
  for (std::uint32_t y = 0; y < height; ++y) {
    leave_if(stop);
    const float* const here = &work.colour[y * stride];
    const float* const above = &work.colour[(y > 0 ? y - 1 : 0) * stride];
    const float* const below = &work.colour[std::min(y + 1, height - 1) * stride];
    float* const line = work.blurred.data();
    for (std::size_t i = 0; i < stride; ++i) line[i] = here[i] * middle + (above[i] + below[i]) * side;
    std::uint8_t* const to = &out.rgb[y * stride];
    const float noise = s.grain / 74;
    const std::uint32_t grain_at = s.word();
    for (std::size_t i = 0; i < stride; ++i) {
      const float left = line[i >= 3 ? i - 3 : i], right = line[i + 3 < stride ? i + 3 : i];
      // Most of the noise is the same in red, green and blue.
      const auto pixel = static_cast<std::uint32_t>(i / 3);
      const float common = static_cast<float>(grain_[(grain_at + pixel) & 0xffff]);
      const float own = static_cast<float>(grain_[((grain_at >> 16) + static_cast<std::uint32_t>(i)) & 0xffff]);
      const float level = line[i] * middle + (left + right) * side + (common + own * 0.35F) * noise;
      to[i] = static_cast<std::uint8_t>(std::clamp(level + 0.5F, 0.0F, 255.0F));
    }
  }
}

const painter& shared_painter(const std::stop_token& stop) {
  static const painter painter_of_process(stop);
  return painter_of_process;
}

}  // namespace leat::tools

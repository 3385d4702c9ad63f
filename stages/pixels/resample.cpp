#include "stages/pixels/resample.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <iterator>

namespace leat::pixels {
namespace {

double triangle(double x) noexcept {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

// Keys' cubic with a = -0.5, in the order of operations that gives Pillow's last bits.
double cubic(double x) noexcept {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

// The filter over one output: where it stands and how far it reaches. Antialiased: it widens as the picture shrinks.
struct reach {
  double scale;
  double filter_scale;
  double support;

  explicit reach(const axis& a) noexcept
      : scale((a.end - a.begin) / static_cast<double>(a.outputs)),
        filter_scale(std::max(scale, 1.0)),
        support((a.how == filter::bicubic ? 2.0 : 1.0) * filter_scale) {}

  [[nodiscard]] double center(const axis& a, std::int64_t output) const noexcept {
    return a.begin + (static_cast<double>(output) + 0.5) * scale;
  }
  [[nodiscard]] int begin(double center) const noexcept {
    return std::max(0, static_cast<int>(std::max(center - support + 0.5, 0.0)));
  }
  [[nodiscard]] int end(const axis& a, double center) const noexcept {
    return static_cast<int>(std::min(center + support + 0.5, static_cast<double>(a.inputs)));
  }
};

// Pillow's nearest neighbour adds the step from output to output. Exactly between two inputs the accumulated rounding
// decides, so we add as well. Beyond any real size the loop would only take time.
struct nearest_walk {
  double position;
  double step;
  std::int64_t output = 0;

  explicit nearest_walk(const axis& a) noexcept : step((a.end - a.begin) / static_cast<double>(a.outputs)) {
    position = a.begin + step * 0.5;
    constexpr std::int64_t walk_max = 1 << 20;
    if (a.first > walk_max) {
      position += step * static_cast<double>(a.first);
      output = a.first;
    }
    while (output < a.first) next();
  }
  void next() noexcept {
    position += step;
    ++output;
  }
  [[nodiscard]] int input(const axis& a) const noexcept {
    return std::clamp(static_cast<int>(position), 0, a.inputs - 1);
  }
};

std::int32_t fixed_point(double weight) noexcept {
  constexpr double one = 1 << weight_bits;
  return static_cast<std::int32_t>(weight < 0 ? -0.5 + weight * one : 0.5 + weight * one);
}

// Calls each(output, first input, inputs) with their weights in `exact`, which sum to 1. Not of nearest.
template <class Each>
void weigh_all(const axis& a, double* exact, const Each& each) noexcept {
  const reach r(a);
  const auto weigh = a.how == filter::bicubic ? cubic : triangle;
  const double inverse = 1.0 / r.filter_scale;
  for (int i = 0; i < a.count; ++i) {
    const double center = r.center(a, a.first + i);
    const int begin = r.begin(center);
    const int used = r.end(a, center) - begin;
    assert(used > 0);
    double sum = 0;
    for (int t = 0; t < used; ++t) {
      exact[t] = weigh((t + begin - center + 0.5) * inverse);
      sum += exact[t];
    }
    if (sum != 0.0) {
      for (int t = 0; t < used; ++t) exact[t] /= sum;
    }
    each(i, begin, used);
  }
}

}  // namespace

axis_needs needs_of(const axis& a) noexcept {
  assert(a.count > 0 && a.inputs > 0);
  if (a.how == filter::nearest) {
    nearest_walk walk(a);
    axis_needs needs{walk.input(a), 0, 1};
    for (int i = 1; i < a.count; ++i) walk.next();
    needs.end = walk.input(a) + 1;
    return needs;
  }
  const reach r(a);
  axis_needs needs{r.begin(r.center(a, a.first)), r.end(a, r.center(a, a.first + a.count - 1)), 0};
  needs.taps_max =
      static_cast<int>(std::min(std::ceil(r.support) * 2 + 1, static_cast<double>(needs.end - needs.begin)));
  return needs;
}

std::size_t axis_table::scratch_bytes(const axis& a) noexcept {
  const auto count = static_cast<std::size_t>(a.count);
  const auto taps = static_cast<std::size_t>(needs_of(a).taps_max);
  return 2 * scratch_arena::rounded(count * sizeof(std::int32_t)) +
         scratch_arena::rounded(count * taps * sizeof(std::int32_t)) + scratch_arena::rounded(taps * sizeof(double));
}

std::size_t axis_table::grouped_scratch_bytes(const axis& a) noexcept {
  const auto count =
      (static_cast<std::size_t>(a.count) + line_table::group - 1) / line_table::group * line_table::group;
  const auto taps = static_cast<std::size_t>(needs_of(a).taps_max);
  return scratch_arena::rounded(count * sizeof(std::int32_t)) +
         scratch_arena::rounded(count * taps * sizeof(std::int32_t));
}

bool axis_table::build(const axis& a, scratch_arena& arena) noexcept {
  const axis_needs needs = needs_of(a);
  count = a.count;
  taps_max = needs.taps_max;
  const auto entries = static_cast<std::size_t>(count);
  first = arena.take_array<std::int32_t>(entries);
  taps = arena.take_array<std::int32_t>(entries);
  weights = arena.take_array<std::int32_t>(entries * static_cast<std::size_t>(taps_max));
  auto* const exact = arena.take_array<double>(static_cast<std::size_t>(taps_max));
  if (first == nullptr || taps == nullptr || weights == nullptr || exact == nullptr) return false;
  fill(a, exact);
  return true;
}

void axis_table::fill(const axis& a, double* exact) const noexcept {
  const axis_needs needs = needs_of(a);
  if (a.how == filter::nearest) {
    nearest_walk walk(a);
    for (int i = 0; i < count; ++i, walk.next()) {
      first[i] = walk.input(a) - needs.begin;
      taps[i] = 1;
      weights[i] = 1 << weight_bits;
    }
    return;
  }

  weigh_all(a, exact, [&](int i, int begin, int used) {
    std::int32_t* const out = weights + static_cast<std::size_t>(i) * static_cast<std::size_t>(taps_max);
    for (int t = 0; t < used; ++t) out[t] = fixed_point(exact[t]);
    // Weights that round to nothing cost a multiplication each and change no bit.
    while (used > 1 && out[used - 1] == 0) --used;
    int leading = 0;
    while (leading < used - 1 && out[leading] == 0) ++leading;
    if (leading > 0) std::copy(out + leading, out + used, out);
    first[i] = begin + leading - needs.begin;
    taps[i] = used - leading;
  });
}

std::size_t exact_table::scratch_bytes(const axis& a) noexcept {
  const auto count = static_cast<std::size_t>(a.count);
  const auto taps = static_cast<std::size_t>(needs_of(a).taps_max);
  return 2 * scratch_arena::rounded(count * sizeof(std::int32_t)) +
         scratch_arena::rounded(count * taps * sizeof(double)) + scratch_arena::rounded(taps * sizeof(double));
}

bool exact_table::build(const axis& a, scratch_arena& arena) noexcept {
  const axis_needs needs = needs_of(a);
  taps_max = needs.taps_max;
  const auto count = static_cast<std::size_t>(a.count);
  first = arena.take_array<std::int32_t>(count);
  taps = arena.take_array<std::int32_t>(count);
  weights = arena.take_array<double>(count * static_cast<std::size_t>(taps_max));
  auto* const exact = arena.take_array<double>(static_cast<std::size_t>(taps_max));
  if (first == nullptr || taps == nullptr || weights == nullptr || exact == nullptr) return false;
  if (a.how == filter::nearest) {
    nearest_walk walk(a);
    for (int i = 0; i < a.count; ++i, walk.next()) {
      first[i] = walk.input(a) - needs.begin;
      taps[i] = 1;
      weights[i] = 1;
    }
    return true;
  }
  weigh_all(a, exact, [&](int i, int begin, int used) {
    // An infinity or a NaN without a weight is not looked at.
    while (used > 1 && exact[used - 1] == 0) --used;
    int leading = 0;
    while (leading < used - 1 && exact[leading] == 0) ++leading;
    std::copy(exact + leading, exact + used,
              weights + static_cast<std::size_t>(i) * static_cast<std::size_t>(taps_max));
    first[i] = begin + leading - needs.begin;
    taps[i] = used - leading;
  });
  return true;
}

line_table axis_table::grouped(int inputs, scratch_arena& arena) const noexcept {
  constexpr auto group = static_cast<std::size_t>(line_table::group);
  const int widest = *std::max_element(taps, taps + count);
  const std::size_t groups = (static_cast<std::size_t>(count) + group - 1) / group;
  auto* const firsts = arena.take_array<std::int32_t>(groups * group);
  auto* const grouped = arena.take_array<std::int32_t>(groups * group * static_cast<std::size_t>(widest));
  if (firsts == nullptr || grouped == nullptr) return {};
  std::memset(grouped, 0, groups * group * static_cast<std::size_t>(widest) * sizeof(std::int32_t));
  for (std::size_t i = 0; i < groups * group; ++i) {
    const auto from = std::min(i, static_cast<std::size_t>(count) - 1);
    // At the far edge the zeros stand in front: every output looks at `widest` inputs that exist.
    const int leading = std::max(0, first[from] + widest - inputs);
    firsts[i] = first[from] - leading;
    if (from != i) continue;
    std::int32_t* to =
        grouped + (i / group * static_cast<std::size_t>(widest) + static_cast<std::size_t>(leading)) * group;
    to += i % group;
    const std::int32_t* const weight = weights + i * static_cast<std::size_t>(taps_max);
    for (int t = 0; t < taps[i]; ++t, to += group) *to = weight[t];
  }
  return {.count = count, .taps = widest, .first = firsts, .weights = grouped};
}

namespace {

// The outputs of one axis that lie inside the scaled box, and where in the row they begin.
struct overlap {
  std::int64_t first;
  int at;
  int count;

  overlap(std::int64_t crop, int wanted, std::int64_t there) noexcept
      : first(std::clamp<std::int64_t>(crop, 0, there)),
        at(static_cast<int>(std::min<std::int64_t>(first - crop, wanted))),
        count(static_cast<int>(std::max<std::int64_t>(0, std::min(crop + wanted, there) - first))) {}
};

axis make_axis(int box_begin, int box_size, std::int64_t scaled, const overlap& part, filter how, int by, double shift,
               int& origin) noexcept {
  // Exact: `by` is a power of two, and the shift a multiple of its inverse.
  const double begin = static_cast<double>(box_begin) / by + shift;
  const double end = (static_cast<double>(box_begin) + box_size) / by + shift;
  origin = static_cast<int>(begin);
  return {.inputs = static_cast<int>(std::ceil(end)) - origin,
          .begin = begin - origin,
          .end = end - origin,
          .outputs = scaled,
          .first = part.first,
          .count = part.count,
          .how = how};
}

}  // namespace

std::int64_t padded_axis::source(int i) const noexcept {
  const std::int64_t at = first + i;
  if (at >= 0 && at < size) return at;
  if (how == padding_mode::constant) return -1;
  if (how == padding_mode::edge || size == 1) return std::clamp<std::int64_t>(at, 0, size - 1);
  const std::int64_t period = 2 * (size - 1);
  const std::int64_t folded = (at % period + period) % period;
  return std::min(folded, period - folded);
}

std::pair<std::int64_t, std::int64_t> padded_axis::reached() const noexcept {
  std::int64_t begin = size;
  std::int64_t end = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t at = source(i);
    if (at < 0) continue;
    begin = std::min(begin, at);
    end = std::max(end, at + 1);
  }
  return {std::min(begin, end), end};
}

namespace {

// What is made of the picture itself, where the rest of the row is put around it.
geometry without_padding(const geometry& drawn, const padded_axis& across, const padded_axis& down) noexcept {
  const auto [left, right] = across.reached();
  const auto [top, low] = down.reached();
  // Nothing of the picture: the row is fill alone.
  if (left == right || top == low) return drawn;
  geometry inner = drawn;
  inner.crop_x = left;
  inner.crop_y = top;
  inner.out_width = static_cast<int>(right - left);
  inner.out_height = static_cast<int>(low - top);
  return inner;
}

}  // namespace

resampler::resampler(const geometry& drawn, const decimated& by) noexcept
    : drawn_(drawn), down_first_(goes_down_first(drawn)) {
  if (drawn.warp) {
    plan_warp(by);
    return;
  }
  if (drawn.pads_otherwise()) {
    padded_ = drawn;
    pad_across_ = {drawn.crop_x, drawn.out_width, drawn.scaled_width, drawn.padding};
    pad_down_ = {drawn.crop_y, drawn.out_height, drawn.scaled_height, drawn.padding};
    drawn_ = without_padding(drawn, pad_across_, pad_down_);
  }
  plan(by);
}

// The region is resampled as a picture of its own.
void resampler::plan_warp(const decimated& by) noexcept {
  warp_ = drawn_.warp;
  const fused_plan looked_at = plan_fused(*warp_, by.by, by.shift_x, by.shift_y);
  warp_from_ = looked_at.from;
  geometry inner{.box = {0, 0, looked_at.across.count, looked_at.down.count}, .how = drawn_.how, .fill = drawn_.fill};
  inner.scaled_width = inner.out_width = looked_at.across.shrunk_to;
  inner.scaled_height = inner.out_height = looked_at.down.shrunk_to;
  drawn_ = inner;
  down_first_ = goes_down_first(inner);
  warped_ = {nullptr, inner.out_height, inner.out_width};
  is_copied_ = inner.box.width == inner.scaled_width && inner.box.height == inner.scaled_height;
  line_bytes_ = static_cast<std::size_t>(inner.out_width) * 3;
  if (is_copied_) {
    region_ = {looked_at.across.begin, looked_at.down.begin, inner.box.width, inner.box.height};
    return;
  }
  plan({});
  region_.x += looked_at.across.begin;
  region_.y += looked_at.down.begin;
}

void resampler::plan(const decimated& by) noexcept {
  const geometry& drawn = drawn_;
  line_bytes_ = ring_line_bytes_ = static_cast<std::size_t>(drawn.out_width) * 3;
  const overlap across(drawn.crop_x, drawn.out_width, drawn.scaled_width);
  const overlap down(drawn.crop_y, drawn.out_height, drawn.scaled_height);
  at_x_ = across.at;
  at_y_ = down.at;
  if (across.count == 0 || down.count == 0) {
    at_y_ = drawn.out_height;  // nothing but padding
    return;
  }
  int x = 0;
  int y = 0;
  horizontal_ = make_axis(drawn.box.x, drawn.box.width, drawn.scaled_width, across, drawn.how, by.by, by.shift_x, x);
  vertical_ = make_axis(drawn.box.y, drawn.box.height, drawn.scaled_height, down, drawn.how, by.by, by.shift_y, y);
  const axis_needs columns = needs_of(horizontal_);
  const axis_needs rows = needs_of(vertical_);
  region_ = {x + columns.begin, y + rows.begin, columns.end - columns.begin, rows.end - rows.begin};
  rows_.taps_max = rows.taps_max;
  if (down_first_) ring_line_bytes_ = static_cast<std::size_t>(region_.width) * 3 + line_slack_bytes;
}

std::size_t resampler::scratch_bytes() const noexcept {
  std::size_t bytes = scratch_arena::rounded(line_bytes_);
  if (warp_) {
    const std::size_t looked_up = scratch_arena::rounded(static_cast<std::size_t>(warp_->out_width) * 3) +
                                  scratch_arena::rounded(line_bytes_ * static_cast<std::size_t>(warped_.height));
    if (is_copied_) return looked_up;
    bytes += looked_up;
  }
  if (padded_) {
    const auto width = static_cast<std::size_t>(padded_->out_width);
    const auto height = static_cast<std::size_t>(padded_->out_height);
    bytes += scratch_arena::rounded(width * 3) + scratch_arena::rounded(width * sizeof(std::int32_t)) +
             scratch_arena::rounded(height * sizeof(std::int64_t));
  }
  if (region_.width == 0) return bytes;
  const auto taps = static_cast<std::size_t>(rows_.taps_max);
  bytes += axis_table::scratch_bytes(horizontal_) + axis_table::grouped_scratch_bytes(horizontal_);
  bytes += axis_table::scratch_bytes(vertical_);
  bytes += scratch_arena::rounded(taps * ring_line_bytes_) + scratch_arena::rounded(taps * sizeof(const std::uint8_t*));
  if (down_first_) bytes += scratch_arena::rounded(ring_line_bytes_);
  return bytes;
}

bool resampler::start(scratch_arena& arena, layout order, line_sink& to) noexcept {
  order_ = warp_ ? layout::nchw : order;
  to_ = &to;
  if (warp_) {
    warped_line_ = arena.take_array<std::uint8_t>(static_cast<std::size_t>(warp_->out_width) * 3);
    warped_.first = arena.take_array<std::uint8_t>(line_bytes_ * static_cast<std::size_t>(warped_.height));
    if (warped_line_ == nullptr || warped_.first == nullptr) return false;
    if (is_copied_) return true;
  }
  line_ = arena.take_array<std::uint8_t>(line_bytes_);
  if (line_ == nullptr) return false;
  if (padded_) {
    padded_line_ = arena.take_array<std::uint8_t>(static_cast<std::size_t>(padded_->out_width) * 3);
    columns_of_ = arena.take_array<std::int32_t>(static_cast<std::size_t>(padded_->out_width));
    rows_of_ = arena.take_array<std::int64_t>(static_cast<std::size_t>(padded_->out_height));
    if (padded_line_ == nullptr || columns_of_ == nullptr || rows_of_ == nullptr) return false;
    for (int y = 0; y < padded_->out_height; ++y) rows_of_[y] = pad_down_.source(y);
    for (int x = 0; x < padded_->out_width; ++x) {
      // Both the row and the line that is made are mirrored.
      const std::int64_t source = pad_across_.source(padded_->flip ? padded_->out_width - 1 - x : x);
      const auto made = static_cast<std::int32_t>(source - drawn_.crop_x);
      columns_of_[x] = source < 0 ? -1 : padded_->flip ? drawn_.out_width - 1 - made : made;
    }
  }
  if (region_.width > 0) {
    axis_table columns;
    if (!columns.build(horizontal_, arena) || !rows_.build(vertical_, arena)) return false;
    columns_ = columns.grouped(region_.width, arena);
    if (columns_.first == nullptr) return false;
    const auto taps = static_cast<std::size_t>(rows_.taps_max);
    ring_ = arena.take_array<std::uint8_t>(taps * ring_line_bytes_);
    taps_ = arena.take_array<const std::uint8_t*>(taps);
    if (ring_ == nullptr || taps_ == nullptr) return false;
    if (down_first_) {
      resampled_down_ = arena.take_array<std::uint8_t>(ring_line_bytes_);
      if (resampled_down_ == nullptr) return false;
      // What is read beyond the last pixel has no weight.
      std::memset(ring_, 0, taps * ring_line_bytes_);
      std::memset(resampled_down_, 0, ring_line_bytes_);
    } else if (columns_.count < drawn_.out_width) {
      // Columns outside the box are never written again.
      std::memset(ring_, 0, taps * line_bytes_);
    }
  }
  std::memset(line_, 0, line_bytes_);
  if (padded_) {
    fill_lines();
    if (region_.width == 0) emitted_ = drawn_.out_height;
  }
  while (emitted_ < at_y_) emit(line_);
  return true;
}

// A line of the region to one of the row.
void resampler::resample_across(const std::uint8_t* line, std::uint8_t* to) const noexcept {
  const std::ptrdiff_t pixel = order_ == layout::nchw ? 1 : 3;
  const std::ptrdiff_t plane = order_ == layout::nchw ? drawn_.out_width : 1;
  const int at = drawn_.flip ? drawn_.out_width - 1 - at_x_ : at_x_;
  resample_line(line, columns_, {to + at * pixel, drawn_.flip ? -pixel : pixel, plane});
}

void resampler::push(const std::uint8_t* line) noexcept {
  assert(pushed_ < region_.height);
  if (is_copied_) {
    split_line(line, static_cast<std::size_t>(region_.width), warped_.line(pushed_++));
    return;
  }
  const auto ring_line = [&](int input) {
    return ring_ + static_cast<std::size_t>(input % rows_.taps_max) * ring_line_bytes_;
  };
  const std::size_t used_bytes = down_first_ ? static_cast<std::size_t>(region_.width) * 3 : line_bytes_;
  if (down_first_) {
    std::memcpy(ring_line(pushed_), line, used_bytes);
  } else {
    resample_across(line, ring_line(pushed_));
  }
  ++pushed_;
  const auto give = [&](const std::uint8_t* down) {
    if (!down_first_) return emit(down);
    resample_across(down, line_);
    emit(line_);
  };
  std::uint8_t* const made_here = down_first_ ? resampled_down_ : line_;
  for (; made_ < rows_.count && rows_.first[made_] + rows_.taps[made_] <= pushed_; ++made_) {
    const int taps = rows_.taps[made_];
    const std::int32_t* const weights =
        rows_.weights + static_cast<std::size_t>(made_) * static_cast<std::size_t>(rows_.taps_max);
    if (taps == 1 && weights[0] == 1 << weight_bits) {
      give(ring_line(rows_.first[made_]));
      continue;
    }
    for (int t = 0; t < taps; ++t) taps_[t] = ring_line(rows_.first[made_] + t);
    resample_lines(taps_, weights, taps, used_bytes, made_here);
    give(made_here);
  }
}

void resampler::finish() noexcept {
  assert(pushed_ == region_.height && (is_copied_ || made_ == rows_.count));
  if (warp_) return look_up();
  if (emitted_ == drawn_.out_height) return;
  std::memset(line_, 0, line_bytes_);
  while (emitted_ < drawn_.out_height) emit(line_);
}

void resampler::look_up() noexcept {
  // Of a picture without pixels all places lie outside.
  const warper from({.from = warp_from_, .how = warp_->how, .fill = drawn_.fill}, warped_, warp_->out_height,
                    warp_->out_width);
  for (int y = 0; y < warp_->out_height; ++y) {
    from.line(y, warped_line_);
    to_->take(warped_line_, y);
  }
}

void resampler::emit(const std::uint8_t* line) noexcept {
  if (warp_) {
    std::memcpy(warped_.line(emitted_++), line, line_bytes_);
    return;
  }
  if (padded_) return emit_padded(line);
  to_->take(line, emitted_++);
}

// To each line of the row that comes from this one.
void resampler::emit_padded(const std::uint8_t* line) noexcept {
  const std::int64_t made = drawn_.crop_y + emitted_++;
  const int width = padded_->out_width;
  const bool planar = order_ == layout::nchw;
  for (int c = 0; c < 3; ++c) {
    std::uint8_t* to = padded_line_ + (planar ? c * width : c);
    const std::uint8_t* const from = line + (planar ? c * drawn_.out_width : c);
    const int step = planar ? 1 : 3;
    const std::uint8_t fill = padded_->fill[static_cast<std::size_t>(c)];
    for (int x = 0; x < width; ++x, to += step) *to = columns_of_[x] < 0 ? fill : from[columns_of_[x] * step];
  }
  if (padded_->padding == padding_mode::constant) {
    return to_->take(padded_line_, static_cast<int>(made - pad_down_.first));
  }
  for (int y = 0; y < padded_->out_height; ++y) {
    if (rows_of_[y] == made) to_->take(padded_line_, y);
  }
}

// Lines without anything of the picture.
void resampler::fill_lines() noexcept {
  const bool is_all = region_.width == 0;
  const auto width = static_cast<std::size_t>(padded_->out_width);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t x = 0; x < width; ++x) {
      padded_line_[order_ == layout::nchw ? c * width + x : x * 3 + c] = padded_->fill[c];
    }
  }
  for (int y = 0; y < padded_->out_height; ++y) {
    if (is_all || rows_of_[y] < 0) to_->take(padded_line_, y);
  }
}

}  // namespace leat::pixels

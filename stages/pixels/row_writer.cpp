#include "stages/pixels/row_writer.hpp"

#include "base/random.hpp"
#include "stages/pixels/normal_draws.hpp"
#include "stages/pixels/operations/operation.hpp"
#include "stages/pixels/pass_table.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace leat::pixels {
namespace {

namespace tr = transforms;

constexpr std::size_t count_parts = 4;

// Of a pass that looks at neighbours.
neighbour_step step_of(const colour_pass& pass) noexcept {
  return {.kernel = pass.what == pass_kind::gaussian_blur ? pass.number : 0, .value = pass.value};
}

std::size_t neighbour_bytes(const recipe& passes, int height, int width) noexcept {
  std::size_t bytes = 0;
  for (const colour_pass& pass : passes.drawn()) {
    if (pass.what == pass_kind::operation) {
      bytes = std::max(bytes, operation_of(pass.of->what)->scratch_bytes(pass.of->what, height, width));
    }
    if (pass.what != pass_kind::gaussian_blur && pass.what != pass_kind::sharpness) continue;
    bytes = std::max(bytes, neighbour_filter::scratch_bytes(step_of(pass), height, width));
  }
  return bytes;
}

// The key of one line of one channel of an operation's numbers.
std::uint32_t line_key(std::uint32_t operation, int channel, int y) noexcept {
  const std::array<char, 6> bytes = {'/',
                                     static_cast<char>(channel),
                                     static_cast<char>(y & 0xFF),
                                     static_cast<char>(y >> 8 & 0xFF),
                                     static_cast<char>(y >> 16 & 0xFF),
                                     'y'};
  return operation_key(std::string_view(bytes.data(), bytes.size()), operation);
}

}  // namespace

row_writer::row_writer(const store& how, const recipe* passes, int height, int width, std::byte* row) noexcept
    : store_(how),
      passes_(passes == nullptr || passes->empty() ? nullptr : passes),
      height_(height),
      width_(width),
      row_(row) {}

bool row_writer::wants_picture(const recipe& passes) noexcept {
  return std::any_of(passes.drawn().begin(), passes.drawn().end(), [](const colour_pass& pass) {
    return pass.reach() == pass_reach::statistics || pass.reach() == pass_reach::picture;
  });
}

bool row_writer::has(pass_kind what, const recipe& passes) noexcept {
  return std::any_of(passes.drawn().begin(), passes.drawn().end(),
                     [what](const colour_pass& pass) { return pass.what == what; });
}

bool row_writer::makes_another(const recipe& passes) noexcept {
  return std::any_of(passes.drawn().begin(), passes.drawn().end(), [](const colour_pass& pass) {
    return pass.what == pass_kind::warp ||
           (pass.what == pass_kind::operation && !operation_of(pass.of->what)->in_place);
  });
}

std::size_t row_writer::scratch_bytes_of(const recipe& passes, int height, int width) noexcept {
  if (passes.count == 0) return 0;
  const std::size_t line_bytes = static_cast<std::size_t>(width) * 3;
  std::size_t bytes = scratch_arena::rounded((passes.count + 1) * sizeof(table));
  bytes += scratch_arena::rounded(std::size_t{3} * 256 * sizeof(float));
  if (!wants_picture(passes)) return bytes + scratch_arena::rounded(line_bytes);
  const std::size_t values = line_bytes * static_cast<std::size_t>(height);
  const std::size_t picture_bytes = scratch_arena::rounded(values);
  bytes += makes_another(passes) ? 2 * picture_bytes : picture_bytes;
  if (has(pass_kind::mix_begin, passes)) bytes += picture_bytes + scratch_arena::rounded(values * sizeof(float));
  bytes += scratch_arena::rounded(count_parts * sizeof(value_counts));
  return bytes + scratch_arena::rounded(neighbour_bytes(passes, height, width));
}

std::size_t row_writer::scratch_bytes() const noexcept {
  return passes_ == nullptr ? 0 : scratch_bytes_of(*passes_, height_, width_);
}

std::size_t row_writer::scratch_bytes_most(const pipeline& steps) noexcept {
  return scratch_bytes_of(steps.all_passes(), steps.out_height(), steps.out_width());
}

bool row_writer::start(scratch_arena& arena) {
  if (passes_ == nullptr || passes_->count == 0) {
    to_row_ = true;
    return true;
  }
  const std::size_t line_bytes = static_cast<std::size_t>(width_) * 3;
  tables_ = arena.take_array<table>(passes_->count + 1);
  elements_ = arena.take(std::size_t{3} * 256 * sizeof(float));
  if (tables_ == nullptr || elements_ == nullptr) return false;
  if (!wants_picture(*passes_)) {
    line_ = arena.take_array<std::uint8_t>(line_bytes);
    if (line_ == nullptr) return false;
  } else {
    picture_ = {arena.take_array<std::uint8_t>(line_bytes * static_cast<std::size_t>(height_)), height_, width_};
    if (makes_another(*passes_)) {
      warped_ = {arena.take_array<std::uint8_t>(line_bytes * static_cast<std::size_t>(height_)), height_, width_};
      if (warped_.first == nullptr) return false;
    }
    if (has(pass_kind::mix_begin, *passes_)) {
      mixed_ = arena.take_array<std::uint8_t>(line_bytes * static_cast<std::size_t>(height_));
      sums_ = arena.take_array<float>(line_bytes * static_cast<std::size_t>(height_));
      if (mixed_ == nullptr || sums_ == nullptr) return false;
    }
    counts_ = arena.take_array<value_counts>(count_parts);
    if (picture_.first == nullptr || counts_ == nullptr) return false;
    neighbour_scratch_ = arena.take(neighbour_bytes(*passes_, height_, width_));
    if (neighbour_scratch_ == nullptr) return false;
  }
  plan_sweep();
  return true;
}

void row_writer::take(const std::uint8_t* line, int y) noexcept {
  if (passes_ == nullptr) return store_line(store_, line_order(), line, y, height_, width_, row_);
  if (to_row_ && step_count_ == 0) {
    if (has_table_) return store_line_by(store_, elements_, line, y, height_, width_, row_);
    return store_line(store_, layout::nchw, line, y, height_, width_, row_);
  }
  std::uint8_t* const own = picture_.first != nullptr ? picture_.line(y) : line_;
  std::memcpy(own, line, static_cast<std::size_t>(width_) * 3);
  sweep_line(own, y);
}

stages::outcome<void> row_writer::finish() {
  if (passes_ == nullptr) return {};
  neighbour_filter neighbours;
  while (!to_row_) {
    end_sweep();
    const colour_pass& pass = passes_->passes[next_];
    bool filters = false;
    std::optional<warper> warps;
    if (pass.what == pass_kind::contrast) {
      const std::uint64_t pixels = static_cast<std::uint64_t>(height_) * static_cast<std::uint64_t>(width_);
      table_ = identity_table();
      const float mean = mean_of(grey_sum_, pixels);
      append(table_, contrast_curve(pass.value, mean));
      has_table_ = true;
      scaling_ = {static_cast<float>(pass.value), mean * static_cast<float>(1.0 - pass.value)};
      ++next_;
    } else if (pass.what == pass_kind::edit) {
      stages::outcome<void> changed = change(pass);
      if (!changed) return changed;
      counts_known_ = range_known_ = false;
      ++next_;
    } else if (pass.what == pass_kind::warp) {
      warps.emplace(warp_of(pass), picture_);
      std::swap(picture_, warped_);
      counts_known_ = range_known_ = false;
      ++next_;
    } else if (pass.what == pass_kind::operation) {
      operate(pass);
      counts_known_ = range_known_ = false;
      ++next_;
    } else if (pass.what == pass_kind::mix_begin) {
      begin_mix(pass);
      ++next_;
    } else if (pass.what == pass_kind::mix_add) {
      add_to_mix(pass);
      counts_known_ = range_known_ = false;
      ++next_;
    } else if (pass.reach() == pass_reach::picture) {
      neighbours.start(step_of(pass), picture_, neighbour_scratch_);
      filters = true;
      counts_known_ = range_known_ = false;
      ++next_;
    }
    plan_sweep();
    for (int y = 0; y < height_; ++y) {
      std::uint8_t* const line = picture_.line(y);
      if (filters) neighbours.line(y, line);
      if (warps) warps->line(y, line);
      sweep_line(line, y);
    }
  }
  if (passes_->erased) erase();
  return {};
}

// As many passes as can be done line by line, up to one that needs to know the whole picture.
void row_writer::plan_sweep() {
  step_count_ = 0;
  table_count_ = 0;
  wanted_ = wanted::nothing;
  for (; next_ < passes_->count; ++next_) {
    const colour_pass& pass = passes_->passes[next_];
    switch (pass.reach()) {
      case pass_reach::table:
        add_table(pass);
        break;
      case pass_reach::pixel:
        flush_table();
        add_line_step(pass);
        counts_known_ = range_known_ = false;
        break;
      case pass_reach::statistics:
        if (pass.what == pass_kind::contrast) {
          flush_table();
          wanted_ = wanted::grey;
          grey_sum_ = 0;
          return;
        }
        if (step_count_ == 0 && learn_curves(pass)) break;
        wanted_ = range_or_counts();
        if (wanted_ == wanted::counts) std::memset(static_cast<void*>(counts_), 0, count_parts * sizeof(value_counts));
        range_.clear();
        return;
      case pass_reach::picture:
        flush_table();
        return;
    }
  }
  to_row_ = true;
  if (store_.channels == 1) flush_table();  // Grey is made of what the table has made of all channels.
  if (has_table_) make_element_table(store_, table_, elements_);
}

void row_writer::add_line_step(const colour_pass& pass) noexcept {
  line_step& step = steps_[step_count_++];
  step = {.number = pass.number, .value = pass.value};
  switch (pass.what) {
    case pass_kind::saturation:
      step.what = line_step::kind::saturate;
      break;
    case pass_kind::hue:
      step.what = line_step::kind::turn_hue;
      break;
    case pass_kind::grayscale:
      step.what = line_step::kind::grey;
      break;
    case pass_kind::channel_permutation:
      step.what = line_step::kind::permute;
      break;
    case pass_kind::brightness:
    case pass_kind::contrast:
    case pass_kind::gamma:
    case pass_kind::invert:
    case pass_kind::posterize:
    case pass_kind::solarize:
    case pass_kind::solarize_add:
    case pass_kind::autocontrast:
    case pass_kind::equalize:
    case pass_kind::sharpness:
    case pass_kind::gaussian_blur:
    case pass_kind::lookup:
    case pass_kind::edit:
    case pass_kind::warp:
    case pass_kind::mix_begin:
    case pass_kind::mix_add:
    case pass_kind::operation:
      assert(false && "this pass is of more than a pixel");
  }
}

void row_writer::add_table(const colour_pass& pass) {
  scaling_.reset();
  if (!has_table_ && pass.what == pass_kind::brightness) scaling_ = {static_cast<float>(pass.value), 0};
  if (!has_table_) table_ = identity_table();
  has_table_ = true;
  append_pass(table_, pass, passes_->key);
}

void row_writer::flush_table() noexcept {
  if (!has_table_) return;
  if (scaling_) {
    steps_[step_count_++] = {.what = line_step::kind::scale, .value = scaling_->factor, .part = scaling_->part};
  } else {
    steps_[step_count_++] = {.what = line_step::kind::map, .number = table_count_};
    tables_[table_count_++] = table_;
  }
  if (counts_known_) counts_[0] = pushed_through(table_, counts_[0]);
  range_known_ = false;
  has_table_ = false;
}

// autocontrast and equalize follow from the values that the picture holds, and the tables not yet applied.
bool row_writer::learn_curves(const colour_pass& pass) noexcept {
  const bool equalizes = pass.what == pass_kind::equalize;
  const table before = has_table_ ? table_ : identity_table();
  const bool range_will_do = range_known_ && !equalizes && is_ascending(before);
  if (!counts_known_ && !range_will_do) return false;
  table made;
  value_counts counts;
  if (counts_known_) counts = pushed_through(before, counts_[0]);
  for (std::size_t c = 0; c < 3; ++c) {
    if (equalizes) {
      made.values[c] = equalize_curve(counts[c]);
    } else if (counts_known_) {
      const auto is_there = [](std::uint32_t count) { return count != 0; };
      const auto first = std::find_if(counts[c].begin(), counts[c].end(), is_there) - counts[c].begin();
      const auto last = counts[c].rend() - std::find_if(counts[c].rbegin(), counts[c].rend(), is_there) - 1;
      made.values[c] = autocontrast_curve(static_cast<int>(first), static_cast<int>(last));
    } else {
      made.values[c] = autocontrast_curve(before.values[c][range_.least_of(c)], before.values[c][range_.most_of(c)]);
    }
  }
  table_ = before;
  append(table_, made);
  has_table_ = true;
  scaling_.reset();
  return true;
}

// Extremes are found faster than counts, and are enough for an autocontrast behind tables that ascend.
row_writer::wanted row_writer::range_or_counts() const noexcept {
  bool ascending = !has_table_ || is_ascending(table_);
  for (std::size_t i = next_; i < passes_->count; ++i) {
    switch (passes_->passes[i].what) {
      case pass_kind::brightness:
      case pass_kind::gamma:
      case pass_kind::posterize:
        break;
      case pass_kind::invert:
      case pass_kind::solarize:
      case pass_kind::solarize_add:
      case pass_kind::lookup:
        ascending = false;
        break;
      case pass_kind::autocontrast:
        if (!ascending) return wanted::counts;
        break;
      case pass_kind::equalize:
        return wanted::counts;
      default:
        return wanted::range;
    }
  }
  return wanted::range;
}

void row_writer::sweep_line(std::uint8_t* line, int y) noexcept {
  const plane_line values{line, static_cast<std::size_t>(width_)};
  for (std::size_t i = 0; i < step_count_; ++i) {
    const line_step& step = steps_[i];
    switch (step.what) {
      case line_step::kind::map:
        map_line(values, tables_[step.number]);
        break;
      case line_step::kind::scale:
        scale_line(values, static_cast<float>(step.value), step.part);
        break;
      case line_step::kind::saturate:
        saturate_line(values, step.value);
        break;
      case line_step::kind::turn_hue:
        turn_hue_line(values, step.value);
        break;
      case line_step::kind::grey:
        grey_line(values);
        break;
      case line_step::kind::permute:
        permute_line(values, step.number);
        break;
    }
  }
  switch (wanted_) {
    case wanted::nothing:
      break;
    case wanted::grey:
      grey_sum_ += sum_grey_line(values);
      break;
    case wanted::counts:
      count_line(values, counts_);
      break;
    case wanted::range:
      widen_range_line(values, range_);
      break;
  }
  if (!to_row_) return;
  if (has_table_) {
    store_line_by(store_, elements_, line, y, height_, width_, row_);
  } else {
    store_line(store_, layout::nchw, line, y, height_, width_, row_);
  }
}

void row_writer::end_sweep() noexcept {
  if (wanted_ == wanted::range) range_known_ = true;
  if (wanted_ != wanted::counts) return;
  for (std::size_t part = 1; part < count_parts; ++part) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t v = 0; v < 256; ++v) counts_[0][c][v] += counts_[part][c][v];
    }
  }
  counts_known_ = true;
}

stages::outcome<void> row_writer::change(const colour_pass& pass) {
  draws numbers = as_draws(draws_of(pass, passes_->key));
  const planes pixels{.first = picture_.first,
                      .height = height_,
                      .width = width_,
                      .line_step = static_cast<std::ptrdiff_t>(picture_.line_bytes()),
                      .plane_step = width_};
  std::string reason = pass.of->what.get_if<tr::edit>()->change(numbers, pixels);
  if (!reason.empty()) return stages::corrupt(std::move(reason));
  return {};
}

void row_writer::operate(const colour_pass& pass) noexcept {
  const operation& what = *operation_of(pass.of->what);
  const picture from = picture_;
  if (!what.in_place) std::swap(picture_, warped_);
  what.apply(pass.of->what, {.from = from,
                             .to = picture_,
                             .numbers = pass.from,
                             .scratch = neighbour_scratch_,
                             .seed = passes_->key.seed,
                             .epoch = passes_->key.epoch,
                             .draw = passes_->key.draw,
                             .operation = pass.of->operation});
}

// Each product and each sum is rounded to f32, as tensors of torch are.
void row_writer::begin_mix(const colour_pass& pass) noexcept {
  const std::size_t values = picture_.line_bytes() * static_cast<std::size_t>(height_);
  std::memcpy(mixed_, picture_.first, values);
  const auto weight = static_cast<float>(pass.value);
  for (std::size_t i = 0; i < values; ++i) sums_[i] = weight * static_cast<float>(mixed_[i]);
}

void row_writer::add_to_mix(const colour_pass& pass) noexcept {
  const std::size_t values = picture_.line_bytes() * static_cast<std::size_t>(height_);
  const auto weight = static_cast<float>(pass.value);
  std::uint8_t* const made = picture_.first;
  if (pass.number == 0) {
    for (std::size_t i = 0; i < values; ++i) sums_[i] += weight * static_cast<float>(made[i]);
    std::memcpy(made, mixed_, values);
    return;
  }
  // Weights that sum to 1 may round to a little more.
  const auto sum_of = [&](std::size_t i) {
    return static_cast<int>(std::min(sums_[i] + weight * static_cast<float>(made[i]), 255.0F));
  };
  const auto share = static_cast<float>(pass.from[0]);
  if (share == 1) {
    for (std::size_t i = 0; i < values; ++i) made[i] = static_cast<std::uint8_t>(sum_of(i));
    return;
  }
  // Pillow's Image.blend().
  for (std::size_t i = 0; i < values; ++i) {
    const float moved = share * static_cast<float>(sum_of(i) - mixed_[i]);
    made[i] = static_cast<std::uint8_t>(static_cast<float>(mixed_[i]) + moved);
  }
}

void row_writer::erase() noexcept {
  const rectangle& box = passes_->erased->box;
  const chain_step& step = *passes_->erased->of;
  const auto& what = *step.what.get_if<tr::random_erasing>();
  const std::size_t element = size_bytes(store_.type);
  const bool planar = store_.order == layout::nchw;
  const auto width = static_cast<std::size_t>(width_);
  const auto plane = width * static_cast<std::size_t>(height_);
  for (std::size_t c = 0; c < static_cast<std::size_t>(store_.channels); ++c) {
    for (int y = box.y; y < box.y + box.height; ++y) {
      normal_draws noise(
          {passes_->key.seed, passes_->key.epoch, passes_->key.draw, line_key(step.operation, static_cast<int>(c), y)});
      for (int x = box.x; x < box.x + box.width; ++x) {
        const std::size_t pixel = static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x);
        const std::size_t at = planar ? c * plane + pixel : pixel * 3 + c;
        store_number(store_, what.noise ? noise.next() : static_cast<float>(what.value[c]), row_ + at * element);
      }
    }
  }
}

}  // namespace leat::pixels

#include "stages/pixels/wide_resampler.hpp"

#include <cassert>
#include <cstring>

namespace leat::pixels {

wide_resampler::wide_resampler(const geometry& drawn, int channels) noexcept
    : channels_(static_cast<std::size_t>(channels)) {
  const resampler plan(drawn, {});
  region_ = plan.region();
  if (region_.width == 0) return;
  horizontal_ = plan.horizontal();
  vertical_ = plan.vertical();
  part_ = {plan.at_x(), plan.at_y(), horizontal_.count, vertical_.count};
  taps_max_ = needs_of(vertical_).taps_max;
  line_values_ = static_cast<std::size_t>(part_.width) * channels_;
}

std::size_t wide_resampler::scratch_bytes() const noexcept {
  if (region_.width == 0) return 0;
  return exact_table::scratch_bytes(horizontal_) + exact_table::scratch_bytes(vertical_) +
         scratch_arena::rounded(static_cast<std::size_t>(taps_max_) * line_values_ * sizeof(float)) +
         scratch_arena::rounded(line_values_ * sizeof(double)) + scratch_arena::rounded(line_values_ * sizeof(float));
}

bool wide_resampler::start(scratch_arena& arena, wide_sink& to) noexcept {
  to_ = &to;
  if (!columns_.build(horizontal_, arena) || !rows_.build(vertical_, arena)) return false;
  ring_ = arena.take_array<float>(static_cast<std::size_t>(taps_max_) * line_values_);
  sums_ = arena.take_array<double>(line_values_);
  line_ = arena.take_array<float>(line_values_);
  return ring_ != nullptr && sums_ != nullptr && line_ != nullptr;
}

void wide_resampler::resample_across(const float* line, float* to) const noexcept {
  const std::size_t channels = channels_;
  for (int i = 0; i < part_.width; ++i, to += channels) {
    const float* const from = line + static_cast<std::size_t>(columns_.first[i]) * channels;
    const double* const weights =
        columns_.weights + static_cast<std::size_t>(i) * static_cast<std::size_t>(columns_.taps_max);
    const int taps = columns_.taps[i];
    if (taps == 1 && weights[0] == 1) {
      std::memcpy(to, from, channels * sizeof(float));
      continue;
    }
    for (std::size_t c = 0; c < channels; ++c) {
      double sum = 0;
      const float* at = from + c;
      for (int t = 0; t < taps; ++t, at += channels) sum += static_cast<double>(*at) * weights[t];
      to[c] = static_cast<float>(sum);
    }
  }
}

void wide_resampler::push(const float* line) noexcept {
  assert(pushed_ < region_.height);
  const auto ring_line = [&](int input) { return ring_ + static_cast<std::size_t>(input % taps_max_) * line_values_; };
  resample_across(line, ring_line(pushed_));
  ++pushed_;
  for (; made_ < part_.height && rows_.first[made_] + rows_.taps[made_] <= pushed_; ++made_) {
    const int first = rows_.first[made_];
    const int taps = rows_.taps[made_];
    const double* const weights =
        rows_.weights + static_cast<std::size_t>(made_) * static_cast<std::size_t>(rows_.taps_max);
    const int y = part_.y + made_;
    if (taps == 1 && weights[0] == 1) {
      to_->take(ring_line(first), y);
      continue;
    }
    // Line by line, so that the loops are over neighbours in memory. The order of the sums is that of one pixel after another.
    for (int t = 0; t < taps; ++t) {
      const float* const from = ring_line(first + t);
      const double weight = weights[t];
      if (t == 0) {
        for (std::size_t x = 0; x < line_values_; ++x) sums_[x] = static_cast<double>(from[x]) * weight;
      } else {
        for (std::size_t x = 0; x < line_values_; ++x) sums_[x] += static_cast<double>(from[x]) * weight;
      }
    }
    for (std::size_t x = 0; x < line_values_; ++x) line_[x] = static_cast<float>(sums_[x]);
    to_->take(line_, y);
  }
}

}  // namespace leat::pixels

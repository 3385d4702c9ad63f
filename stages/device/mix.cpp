#include "stages/device/mix.hpp"

#include "base/portable_math.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "stages/state/digest.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace leat {

void batch_mix::describe(description& out) const {
  if (what == kind::none) return;
  if (what == batch_mix::kind::mosaic) {
    out.add("mix", "mosaic");
    out.add("mix.probability", alpha);
    return;
  }
  out.add("mix", what == kind::mixup ? "mixup" : "cutmix");
  out.add("mix.alpha", alpha);
}

}  // namespace leat

namespace leat::stages {
namespace {

constexpr double alpha_max = 100;
constexpr std::string_view weight_name = "mix.weight";

std::string_view name_of(const batch_mix& how) { return how.what == batch_mix::kind::mixup ? "mixup" : "cutmix"; }

double portable_power(double base, double exponent) {
  if (base <= 0) return 0;
  const double logarithm = exponent * pixels::portable_log(base);
  return logarithm < -690 ? 0 : pixels::portable_exp(logarithm);
}

// Beta(alpha, alpha). Below 1 as Johnk, "Erzeugung von betaverteilten und gammaverteilten Zufallszahlen", Metrika 8, 1964:
// u^(1/a) / (u^(1/a) + v^(1/a)) of pairs whose sum is at most 1. From 1 on by rejection under the density's maximum, which
// is at one half.
double draw_beta(random_draws& draws, double alpha) {
  for (;;) {
    const double u = draws.uniform();
    const double v = draws.uniform();
    if (alpha >= 1) {
      if (v <= portable_power(4 * u * (1 - u), alpha - 1)) return u;
      continue;
    }
    const double x = portable_power(u, 1 / alpha);
    const double y = portable_power(v, 1 / alpha);
    if (x + y > 1) continue;
    if (x + y > 0) return x / (x + y);
    // Both too small for a double: their ratio is not.
    if (u == 0 || v == 0) continue;
    const double ratio = (pixels::portable_log(v) - pixels::portable_log(u)) / alpha;
    return ratio > 690 ? 0 : ratio < -690 ? 1 : 1 / (1 + pixels::portable_exp(ratio));
  }
}

/// What tells an operation on the device how rows are mixed: mix_row [rows].
constexpr std::string_view mixed_rows = "mix.rows";

std::string partner_name(const output_spec& label) { return label.name + ".partner"; }

// What mixing needs to know of pictures.
picture_batch picture_of(const output_spec& output) {
  const bool planes = *output.axes == layout::nchw;
  return {.height = static_cast<std::uint32_t>(output.row_shape[planes ? 1 : 0]),
          .width = static_cast<std::uint32_t>(output.row_shape[planes ? 2 : 1]),
          .type = output.type,
          .order = *output.axes};
}

std::size_t largest_picture(const batch_layout& layout) noexcept {
  std::size_t largest = 0;
  for (const batch_layout::output_place& place : layout.outputs()) {
    if (place.spec.axes) largest = std::max(largest, place.spec.row_bytes());
  }
  return largest;
}

}  // namespace

drawn_mix draw_mix(const batch_mix& how, std::uint64_t seed, std::uint32_t epoch, std::uint64_t draw,
                   std::uint32_t height, std::uint32_t width) {
  drawn_mix drawn;
  if (how.what == batch_mix::kind::none) return drawn;
  random_draws draws(seed, epoch, draw, name_of(how));
  const double own = draw_beta(draws, how.alpha);
  if (how.what == batch_mix::kind::mixup) {
    drawn.row.own = static_cast<float>(own);
    drawn.row.other = 1.0F - drawn.row.own;  // as a trainer will compute it
    drawn.weight = drawn.row.own;
    return drawn;
  }
  const auto center_x = static_cast<std::int64_t>(draws.below(width));
  const auto center_y = static_cast<std::int64_t>(draws.below(height));
  const double half = 0.5 * std::sqrt(1 - own);
  const auto half_width = static_cast<std::int64_t>(half * width);
  const auto half_height = static_cast<std::int64_t>(half * height);
  const auto from = [](std::int64_t center, std::int64_t reach) {
    return static_cast<std::uint16_t>(std::max<std::int64_t>(center - reach, 0));
  };
  const auto to = [](std::int64_t center, std::int64_t reach, std::uint32_t end) {
    return static_cast<std::uint16_t>(std::min<std::int64_t>(center + reach, end));
  };
  mix_row& row = drawn.row;
  row.left = from(center_x, half_width);
  row.right = to(center_x, half_width, width);
  row.top = from(center_y, half_height);
  row.bottom = to(center_y, half_height, height);
  const double area = static_cast<double>(row.right - row.left) * static_cast<double>(row.bottom - row.top);
  drawn.weight = static_cast<float>(1 - area / (static_cast<double>(width) * height));
  return drawn;
}

void add_mix_outputs(std::vector<output_spec>& outputs, const batch_mix& how) {
  if (how.what == batch_mix::kind::none) return;
  if (!(how.alpha > 0 && how.alpha <= alpha_max)) {
    throw error(errc::usage,
                str_cat(name_of(how), " with alpha = ", how.alpha, "; give more than 0 and at most ", alpha_max));
  }
  const output_spec* first = nullptr;
  bool on_device = false;
  std::vector<output_spec> added;
  for (output_spec& each : outputs) {
    if (each.label) {
      added.push_back({.name = partner_name(each), .type = each.type, .row_shape = each.row_shape});
    }
    if (each.unmixed) {
      const std::string_view why = each.axes
                                       ? "only pictures of 8 bits and three channels are mixed; take those"
                                       : "several pictures in one output are not mixed; give each a field of its own";
      throw error(errc::usage, str_cat(name_of(how), " of '", each.name, "': ", why, ", or leave mix out"));
    }
    if (!each.axes) continue;
    const picture_batch picture = picture_of(each);
    if (picture.type == dtype::u8) {
      throw error(errc::usage,
                  str_cat(name_of(how), " mixes floats, and '", each.name, "' is u8; take it as f32, f16 or bf16"));
    }
    if (std::max(picture.height, picture.width) > std::numeric_limits<std::uint16_t>::max()) {
      throw error(errc::usage, str_cat(name_of(how), " of '", each.name, "': more than 65535 pixels to a side"));
    }
    if (first == nullptr) first = &each;
    if (how.what == batch_mix::kind::cutmix &&
        (picture.height != picture_of(*first).height || picture.width != picture_of(*first).width)) {
      throw error(errc::usage,
                  str_cat("cutmix needs pictures of one size; '", first->name, "' and '", each.name, "' differ"));
    }
    if (each.made_by != nullptr) {
      each.made_from.emplace_back(mixed_rows);
      on_device = true;
    }
  }
  if (first == nullptr) throw error(errc::usage, str_cat(name_of(how), " without a picture among the fields"));
  for (output_spec& each : added) outputs.push_back(std::move(each));
  outputs.push_back({.name = std::string(weight_name), .type = dtype::f32});
  if (on_device) {
    outputs.push_back({.name = std::string(mixed_rows),
                       .type = dtype::u8,
                       .row_shape = {static_cast<std::int64_t>(sizeof(mix_row))}});
  }
}

mixer::mixer(const batch_layout& layout, std::span<const std::unique_ptr<field_program>> programs, const batch_mix& how,
             std::uint64_t seed, bool digests, std::size_t threads)
    : layout_(layout),
      how_(how),
      seed_(seed),
      digests_(digests),
      threads_(how.what == batch_mix::kind::none ? 0 : threads) {
  const auto places = layout_.outputs();
  for (thread_state& own : threads_) {
    own.made.resize(digests_ ? places.size() : 0);
    for (std::size_t s = 0; s < own.made.size(); ++s) {
      const output_spec& spec = places[s].spec;
      if (spec.made_by == nullptr) continue;
      own.made[s].resize(scratch_behind(spec.row_bytes()) + spec.made_by->make_row_bytes());
    }
  }
  if (is_mosaic(how)) {
    mosaics_.emplace(layout, programs, how.alpha, seed, threads);
    return;
  }
  const auto first =
      std::find_if(places.begin(), places.end(), [](const auto& place) { return place.spec.axes.has_value(); });
  if (first == places.end()) return;
  height_ = picture_of(first->spec).height;
  width_ = picture_of(first->spec).width;
  for (thread_state& own : threads_) {
    own.rows.resize(layout_.rows_max());
    own.row.resize(largest_picture(layout_));
  }
}

std::size_t mixer::scratch_bytes(const batch_layout& layout, std::span<const std::unique_ptr<field_program>> programs,
                                 const batch_mix& how, bool digests) noexcept {
  if (how.what == batch_mix::kind::none) return 0;
  const std::size_t made = digests ? layout.made_row_bytes() : 0;
  return made + (is_mosaic(how) ? mosaic_maker::scratch_bytes(layout, programs) : largest_picture(layout));
}

void mixer::mix(batch::state& batch, std::size_t thread, const std::atomic<bool>& stop) {
  thread_state& own = threads_[thread];
  if (batch.rows == 0) return;
  if (mosaics_) {
    mosaics_->make(batch, thread, stop);
  } else {
    mix_rows(batch, own, stop);
  }
  if (digests_) add_digest(batch, own, stop);
}

void mixer::mix_rows(batch::state& batch, thread_state& own, const std::atomic<bool>& stop) const {
  const std::uint32_t rows = batch.rows;
  std::byte* const base = batch.memory.data();
  const auto places = layout_.outputs();
  const auto fill = [&](std::string_view name, auto&& row_of) {
    const std::optional<std::size_t> output = layout_.find(name);
    if (!output) return;
    const batch_layout::output_place& place = places[*output];
    for (std::uint32_t r = 0; r < rows; ++r) row_of(r, base + place.offset + r * place.row_bytes);
  };

  for (std::uint32_t r = 0; r < rows; ++r) {
    own.rows[r] = draw_mix(how_, seed_, batch.picks[r].epoch, batch.picks[r].draw, height_, width_);
  }
  const auto put = [&](std::string_view name, auto drawn_mix::* what) {
    fill(name,
         [&](std::uint32_t r, std::byte* to) { std::memcpy(to, &(own.rows[r].*what), sizeof(own.rows[r].*what)); });
  };
  put(weight_name, &drawn_mix::weight);
  put(mixed_rows, &drawn_mix::row);
  for (const batch_layout::output_place& place : places) {
    if (place.spec.label) {
      fill(partner_name(place.spec), [&](std::uint32_t r, std::byte* to) {
        std::memcpy(to, base + place.offset + partner_of(r, rows) * place.row_bytes, place.row_bytes);
      });
    }
    if (place.spec.axes && place.spec.made_by == nullptr) mix_in_place(place, batch, own, stop);
  }
}

// Each row is mixed with the next row as it was before mixing, and the last row with the first.
void mixer::mix_in_place(const batch_layout::output_place& place, batch::state& batch, thread_state& own,
                         const std::atomic<bool>& stop) const {
  std::byte* const tensor = batch.memory.data() + place.offset;
  const picture_batch picture = picture_of(place.spec);
  std::memcpy(own.row.data(), tensor, place.row_bytes);
  for (std::uint32_t r = 0; r < batch.rows && !stop.load(std::memory_order_relaxed); ++r) {
    const std::uint32_t next = partner_of(r, batch.rows);
    const std::byte* const partner = next == 0 ? own.row.data() : tensor + next * place.row_bytes;
    mix_picture(picture, own.rows[r].row, tensor + r * place.row_bytes, partner);
  }
}

// Over the bytes that the trainer sees, whether the host or a device makes them.
void mixer::add_digest(batch::state& batch, thread_state& own, const std::atomic<bool>& stop) const {
  const std::byte* const base = batch.memory.data();
  const auto places = layout_.outputs();
  std::vector<digest> rows;
  absl::InlinedVector<row_output, 8> outputs;
  for (std::uint32_t r = 0; r < batch.rows; ++r) {
    if (stop.load(std::memory_order_relaxed)) return;
    outputs.clear();
    for (std::size_t s = 0; s < places.size(); ++s) {
      const batch_layout::output_place& place = places[s];
      const output_spec& spec = place.spec;
      if (spec.of_batch || !spec.digested || (place.hidden && !spec.ragged)) continue;
      if (spec.ragged) {
        const std::span<const std::byte> own_bytes = batch.ragged_row(place, r);
        outputs.push_back({spec.name, spec.type, spec.ragged_shape(own_bytes.size()), own_bytes});
        continue;
      }
      std::span<const std::byte> bytes{base + place.offset + r * place.row_bytes, place.row_bytes};
      if (spec.made_by != nullptr) {
        absl::InlinedVector<const std::byte*, 4> from;
        for (const std::size_t other : place.made_from) {
          if (places[other].spec.name != mixed_rows) from.push_back(base + places[other].offset);
        }
        const std::span<std::byte> made = own.made[s];
        std::byte* const scratch = made.data() + scratch_behind(spec.row_bytes());
        spec.made_by->make_row(from, r, made.data(), scratch);
        if (!mosaics_) {
          spec.made_by->make_row(from, partner_of(r, batch.rows), own.row.data(), scratch);
          mix_picture(picture_of(spec), own.rows[r].row, made.data(), own.row.data());
        }
        bytes = made.first(spec.row_bytes());
      }
      outputs.push_back({spec.name, spec.type, spec.row_shape, bytes});
    }
    rows.push_back(row_digest(batch.ids[r], outputs));
  }
  batch.content = batch_digest(batch.epoch, batch.index, rows);
}

}  // namespace leat::stages

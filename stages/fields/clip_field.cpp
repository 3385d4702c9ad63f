// clip: pictures of several members of a sample in one output.
#include "base/random.hpp"
#include "base/text.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/slots.hpp"

#include <leat/clip.hpp>
#include <leat/error.hpp>

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {
namespace stages {
namespace {

constexpr std::int64_t frames_max = 1024;

// Takes the digits at its begin off `text`, and returns them without leading zeros.
std::string_view take_number(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

// By bytes: letters beyond ASCII come last, whether or not a char has a sign.
bool is_before(char a, char b) { return static_cast<unsigned char>(a) < static_cast<unsigned char>(b); }

// frame9 before frame10.
bool comes_before(std::string_view a, std::string_view b) {
  const auto starts_with_digit = [](std::string_view text) { return text.front() >= '0' && text.front() <= '9'; };
  const std::pair<std::string_view, std::string_view> whole(a, b);
  while (!a.empty() && !b.empty()) {
    if (starts_with_digit(a) && starts_with_digit(b)) {
      const std::string_view x = take_number(a);
      const std::string_view y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a.front() != b.front()) return is_before(a.front(), b.front());
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole.first < whole.second;  // "01" and "1"
}

// The fields of a dataset that may be frames, of each camera in their order, and which of them a row has.
class clip_frames {
 public:
  clip_frames(std::vector<std::vector<std::uint16_t>> cameras, const clip_options& how, std::string_view group)
      : cameras_(std::move(cameras)), how_(how), operation_(operation_key(group, operation_key("clip start/"))) {
    for (const std::vector<std::uint16_t>& all : cameras_) {
      std::vector<std::int32_t>& places = places_.emplace_back();
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (places.size() <= all[i]) places.resize(all[i] + std::size_t{1}, none);
        places[all[i]] = static_cast<std::int32_t>(i);
      }
    }
  }

  /// Of the row's frame `number` of the camera.
  [[nodiscard]] std::uint16_t field_of(std::size_t camera, std::int64_t number, const pick& row, std::uint64_t seed,
                                       std::span<const datasets::part> parts) const {
    const std::vector<std::uint16_t>& all = cameras_[camera];
    std::int64_t at = std::min(start_of(row, seed, parts) + number * how_.stride, std::ssize(all) - 1);
    if (how_.missing == missing_frame::repeat_last) at = std::max<std::int64_t>(last_there(camera, at, parts), 0);
    return all[static_cast<std::size_t>(at)];
  }
  /// Of all rows; the first is that of a row which begins where it may first.
  [[nodiscard]] std::vector<std::uint16_t> fields_of(std::size_t camera, std::int64_t number) const {
    const std::vector<std::uint16_t>& all = cameras_[camera];
    const std::int64_t last = std::ssize(all) - 1;
    const std::int64_t from = std::min(how_.first + number * how_.stride, last);
    const std::int64_t behind = (how_.frames - 1 - number) * how_.stride;
    const std::int64_t to = how_.random_start ? std::max(from, last - behind) : from;
    std::vector<std::uint16_t> fields;
    for (std::int64_t i = from; i <= to; ++i) fields.push_back(all[static_cast<std::size_t>(i)]);
    if (how_.missing != missing_frame::repeat_last) return fields;
    for (std::int64_t i = from - 1; i >= 0; --i) fields.push_back(all[static_cast<std::size_t>(i)]);
    return fields;
  }

  /// Whether a row may begin at several frames.
  [[nodiscard]] bool varies() const noexcept {
    return how_.random_start && std::all_of(cameras_.begin(), cameras_.end(),
                                            [&](const auto& all) { return starts_of(std::ssize(all)) > 1; });
  }

 private:
  static constexpr std::int32_t none = -1;

  // Of a row of so many frames.
  [[nodiscard]] std::int64_t starts_of(std::int64_t length) const noexcept {
    return length - std::int64_t{how_.frames - 1} * how_.stride - how_.first;
  }

  // The last frame of the camera that the sample has, up to `most`; or none.
  [[nodiscard]] std::int64_t last_there(std::size_t camera, std::int64_t most,
                                        std::span<const datasets::part> parts) const {
    const std::vector<std::int32_t>& places = places_[camera];
    std::int64_t last = none;
    for (const datasets::part& each : parts) {
      const std::int64_t place = each.field < places.size() ? places[each.field] : none;
      if (place <= most) last = std::max(last, place);
    }
    return last;
  }
  [[nodiscard]] std::int64_t start_of(const pick& row, std::uint64_t seed,
                                      std::span<const datasets::part> parts) const {
    if (!how_.random_start) return how_.first;
    std::int64_t length = std::numeric_limits<std::int64_t>::max();
    for (std::size_t camera = 0; camera < cameras_.size(); ++camera) {
      length = std::min(length, last_there(camera, std::ssize(cameras_[camera]) - 1, parts) + 1);
    }
    const std::int64_t starts = starts_of(length);
    if (starts <= 1) return how_.first;
    random_draws draws(seed, row.epoch, row.draw, operation_);
    return how_.first + static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(starts)));
  }

  std::vector<std::vector<std::uint16_t>> cameras_;
  std::vector<std::vector<std::int32_t>> places_;  // of each camera: where in it a field stands
  clip_options how_;
  std::uint32_t operation_;
};

// The picture of one frame.
//   frames   not null: it picks of several fields
class frame_program final : public field_program, picking_facet {
 public:
  frame_program(std::unique_ptr<field_program> inner, bool is_first, std::shared_ptr<const clip_frames> frames,
                std::size_t camera, std::int64_t number)
      : field_program({inner->outputs().begin(), inner->outputs().end()},
                      {inner->reads().begin(), inner->reads().end()}, inner->facts()),
        inner_(std::move(inner)),
        frames_(std::move(frames)),
        camera_(camera),
        number_(number) {
    facts_.names_member = true;
    if (!is_first) {
      facts_.scratch_of_previous = true;
      facts_.scratch_bytes = 0;
      facts_.warning.clear();
    }
    facets_ = inner_->facets();
    maker_ = &inner_->maker();
    if (frames_ == nullptr) return;
    reads_ = frames_->fields_of(camera_, number_);
    facets_.picking = this;
    facets_.sharing = nullptr;  // Others of the same fields pick other ones.
  }

  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget& budget) const override {
    return inner_->make_scratch(budget);
  }
  outcome<void> decode(field_scratch& scratch, const decode_input& input, std::span<row_target> rows) const override {
    return inner_->decode(scratch, input, rows);
  }
  std::uint16_t field_of(const pick& row, std::uint64_t seed, std::span<const datasets::part> parts) const override {
    return frames_->field_of(camera_, number_, row, seed, parts);
  }
  bool varies() const noexcept override { return frames_->varies(); }

 private:
  std::unique_ptr<field_program> inner_;
  std::shared_ptr<const clip_frames> frames_;
  std::size_t camera_;
  std::int64_t number_;
};

class clip_model final : public field_model {
 public:
  clip_model(const image& of, const clip_options& how)
      : of_(of.get().group.empty() ? of.together(of.get().name) : of),
        how_(how),
        patterns_(datasets::expand_braces(of.get().member)) {}

  const std::string& name() const noexcept override { return of_.get().name; }
  void describe(description& out) const override {
    out.add("kind", "clip");
    out.add("frames", how_.frames);
    out.add("stride", how_.stride);
    out.add("first", how_.first);
    out.add("random_start", how_.random_start);
    out.add("per_frame", how_.per_frame);
    out.add("missing", how_.missing == missing_frame::corrupt ? "corrupt" : "repeat_last");
    field(of_).model().describe(out);
  }
  void bind(const datasets::dataset_model& dataset, finished_by finished,
            std::vector<std::unique_ptr<field_program>>& out) const override {
    refuse_nvjpeg_of_slots("clip", name(), "clips", of_);
    std::vector<std::vector<std::uint16_t>> cameras;
    for (const std::string& pattern : patterns_) cameras.push_back(frames_in(dataset, pattern));
    const bool picks = how_.random_start || how_.missing == missing_frame::repeat_last;
    if (picks) check_alike(dataset, cameras);
    const auto all = std::make_shared<const clip_frames>(cameras, how_, of_.get().group);
    std::vector<field> fields;
    for (std::size_t camera = 0; camera < cameras.size(); ++camera) {
      for (int frame = 0; frame < how_.frames; ++frame) {
        const std::uint16_t field = all->fields_of(camera, frame).front();
        image one = of_.from(dataset.fields()[field].name);
        if (how_.per_frame) one = one.together(str_cat(of_.get().group, "/", fields.size()));
        fields.emplace_back(one);
      }
    }
    std::vector<std::unique_ptr<field_program>> slots = bind_slots(name(), fields, dataset, finished);
    const auto frames = static_cast<std::size_t>(how_.frames);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      slots[i] = std::make_unique<frame_program>(std::move(slots[i]), i == 0, picks ? all : nullptr, i / frames,
                                                 static_cast<std::int64_t>(i % frames));
    }
    dimensions axes;
    if (datasets::has_braces(of_.get().member)) axes.push_back(std::ssize(cameras));
    axes.push_back(how_.frames);
    add_slots(name(), std::move(slots), out, {.axes = axes});
  }

 private:
  [[nodiscard]] std::vector<std::uint16_t> frames_in(const datasets::dataset_model& dataset,
                                                     const std::string& pattern) const {
    std::vector<std::uint16_t> found;
    for (std::size_t f = 0; f < dataset.fields().size(); ++f) {
      const std::string& member = dataset.fields()[f].name;
      if (member == pattern || ::fnmatch(pattern.c_str(), member.c_str(), 0) == 0) {
        found.push_back(static_cast<std::uint16_t>(f));
      }
    }
    if (found.empty()) throw_no_field(dataset, pattern, name());
    std::sort(found.begin(), found.end(), [&](std::uint16_t a, std::uint16_t b) {
      return comes_before(dataset.fields()[a].name, dataset.fields()[b].name);
    });
    const std::int64_t last = how_.first + std::int64_t{how_.frames - 1} * how_.stride;
    if (how_.missing == missing_frame::corrupt && last >= std::ssize(found)) {
      throw error(errc::usage,
                  str_cat("clip '", name(), "' wants frame ", last, " of '", pattern, "', counted from 0, and ",
                          found.size(), found.size() == 1 ? " member is" : " members are",
                          " called so; take fewer; a program can have missing_frame::repeat_last"));
    }
    return found;
  }

  static bool has_pixels(const field_info& of) { return of.kind == field_kind::tensor && of.shape.size() > 1; }

  // A frame that is drawn is read as another one that the field was bound to, so that rows of tensors are of one shape.
  void check_alike(const datasets::dataset_model& dataset,
                   const std::vector<std::vector<std::uint16_t>>& cameras) const {
    for (const std::vector<std::uint16_t>& all : cameras) {
      const field_info& first = dataset.fields()[all.front()];
      for (const std::uint16_t field : all) {
        const field_info& each = dataset.fields()[field];
        if (!has_pixels(each) && !has_pixels(first)) continue;
        if (each.kind == first.kind && each.type == first.type && each.shape == first.shape) continue;
        throw error(errc::usage, str_cat("clip '", name(), "' may read '", each.name, "' in the place of '", first.name,
                                         "', and their arrays differ in type or shape; leave random_start and "
                                         "repeat_last out"));
      }
    }
  }

  image of_;
  clip_options how_;
  std::vector<std::string> patterns_;
};

}  // namespace
}  // namespace stages

clip::operator field() const {
  const auto refuse = [&](std::string_view what, std::int64_t number, std::string_view give) {
    throw error(errc::usage, str_cat("clip '", of_.get().name, "': ", what, " ", number, "; give ", give));
  };
  if (how_.frames < 1 || how_.frames > stages::frames_max) refuse("frames", how_.frames, "1 to 1024");
  if (how_.stride < 1) refuse("stride", how_.stride, "1 or more");
  if (how_.first < 0) refuse("first", how_.first, "0 or more");
  const std::int64_t cameras = std::ssize(datasets::expand_braces(of_.get().member));
  if (cameras * how_.frames > stages::frames_max) {
    refuse("frames of all cameras together", cameras * how_.frames, "at most 1024");
  }
  return field(std::make_shared<stages::clip_model>(of_, how_));
}

}  // namespace leat

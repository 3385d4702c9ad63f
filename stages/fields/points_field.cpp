// points: key points of a picture, which follow it.
#include "base/text.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/following.hpp"
#include "stages/fields/target_numbers.hpp"

#include <leat/error.hpp>
#include <leat/targets.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace leat {
namespace stages {
namespace {

// What a thread keeps for points.
class points_scratch final : public field_scratch {
 public:
  explicit points_scratch(pixels::scratch_budget& budget) : arena(budget) {}

  pixels::scratch_arena arena;
};

class points_program final : public following_program {
 public:
  points_program(const points::settings& settings, const datasets::dataset_model& dataset, std::uint16_t field,
                 std::optional<dtype> stored)
      : following_program(
            settings.picture, dataset, field,
            {{.name = settings.name, .type = dtype::f32, .row_shape = {settings.visibility ? 3 : 2}, .ragged = true}}),
        settings_(settings),
        stored_(stored),
        width_(settings.visibility ? 3 : 2) {
    facts_.encoded_bytes_max = bytes_max_or_any(settings.bytes_max, settings.name);
    facts_.scratch_bytes = lists_scratch_bytes(dataset.fields()[field], stored, facts_.encoded_bytes_max, 1);
  }

  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget& budget) const override {
    return std::make_unique<points_scratch>(budget);
  }

 private:
  std::size_t made_bytes(std::size_t, std::size_t encoded_bytes) const override {
    return elements_max(stored_, encoded_bytes) / width_ * width_ * sizeof(float);
  }

  outcome<void> make_rows(field_scratch& scratch, const decode_input&, std::span<const std::byte> encoded,
                          const pixels::placed_picture& where, std::span<row_target> rows) const override {
    if (encoded.size() > facts_.encoded_bytes_max) {
      return corrupt(too_many_bytes(encoded.size(), facts_.encoded_bytes_max));
    }
    list_memory memory(static_cast<points_scratch&>(scratch).arena);
    outcome<void> found = memory.reserve(numbers_max(encoded, stored_), 1);
    if (!found) return found;
    std::pmr::vector<double> numbers(memory.get());
    const std::string_view text(reinterpret_cast<const char*>(encoded.data()), encoded.size());
    inner_lists lists;
    found = stored_ ? read_elements(encoded, *stored_, numbers) : read_list(text, settings_.key, numbers, &lists);
    if (!found) return found;
    if (numbers.size() % width_ != 0 || lists.length % width_ != 0) {
      return corrupt(str_cat("has ", lists.length != 0 ? lists.length : numbers.size(), " numbers",
                             lists.length != 0 ? " in a list" : "", "; a point has ", width_,
                             width_ == 2 ? ", and 3 with visibility()" : ""));
    }
    row_target& row = rows.front();
    if (numbers.size() * sizeof(float) > row.bytes.size()) {
      return corrupt(str_cat("has more points than the ", row.bytes.size() / sizeof(float) / width_,
                             " that its row has room for"));
    }
    const std::size_t count = numbers.size() / width_;
    const auto object = static_cast<std::size_t>(settings_.object_points);
    if (object != 0 && count % object != 0) {
      return corrupt(str_cat("has ", count, " points; objects of flip_pairs() have ", object));
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<const double> stored = std::span<const double>(numbers).subspan(i * width_, width_);
      if (auto wrong = not_finite(stored, i, "point")) return corrupt(std::move(*wrong));
      const std::array<float, 3> made = place(stored, where);
      std::memcpy(row.bytes.data() + place_of(i, where) * width_ * sizeof(float), made.data(), width_ * sizeof(float));
    }
    row.used = numbers.size() * sizeof(float);
    return {};
  }

  [[nodiscard]] std::array<float, 3> place(std::span<const double> stored, const pixels::placed_picture& where) const {
    if (width_ == 3 && stored[2] == 0) return {0, 0, 0};
    const auto at = pixels::place_in_row(where, stored[0], stored[1]);
    if (width_ == 2) {
      constexpr float none = std::numeric_limits<float>::quiet_NaN();
      return at ? std::array{static_cast<float>((*at)[0]), static_cast<float>((*at)[1]), 0.0F}
                : std::array{none, none, none};
    }
    if (!at || !pixels::is_shown(where, (*at)[0], (*at)[1])) return {0, 0, 0};
    return {static_cast<float>((*at)[0]), static_cast<float>((*at)[1]), static_cast<float>(stored[2])};
  }

  // The number of the point that point i becomes.
  [[nodiscard]] std::size_t place_of(std::size_t i, const pixels::placed_picture& where) const {
    const auto object = static_cast<std::size_t>(settings_.object_points);
    if (!where.geometry.mirrored || object == 0) return i;
    const std::size_t begin = i / object * object;
    const auto number = static_cast<int>(i - begin);
    for (const auto& [a, b] : settings_.flip_pairs) {
      if (number == a) return begin + static_cast<std::size_t>(b);
      if (number == b) return begin + static_cast<std::size_t>(a);
    }
    return i;
  }

  points::settings settings_;
  std::optional<dtype> stored_;  // none: text
  std::size_t width_;
};

class points_model final : public one_program_field {
 public:
  explicit points_model(points::settings settings) : settings_(std::move(settings)) {}

  const std::string& name() const noexcept override { return settings_.name; }
  void describe(description& out) const override {
    out.add("kind", "points");
    out.add("member", settings_.member);
    out.add("follows", settings_.picture);
    if (!settings_.key.empty()) out.add("key", settings_.key);
    if (settings_.visibility) out.add("visibility", settings_.visibility);
    if (settings_.object_points != 0) out.add("object_points", settings_.object_points);
    for (const auto& [a, b] : settings_.flip_pairs) out.add("flip_pair", str_cat(a, "/", b));
    if (settings_.bytes_max) out.add("bytes_max", std::uint64_t{*settings_.bytes_max});
  }
  std::unique_ptr<field_program> program(const datasets::dataset_model& dataset, finished_by) const override {
    check_pairs();
    const std::uint16_t field = field_of_target(dataset, settings_.member, settings_.name);
    const field_info& info = dataset.fields()[field];
    if (info.kind == field_kind::picture) throw_wrong_kind(info, settings_.name);
    const std::optional<dtype> stored = stored_type_of(info);
    if (stored && (!has_numbers(*stored) || !settings_.key.empty())) throw_wrong_kind(info, settings_.name);
    return std::make_unique<points_program>(settings_, dataset, field, stored);
  }

 private:
  void check_pairs() const {
    const auto refuse = [&](const std::string& why) {
      throw error(errc::usage,
                  str_cat("points '", settings_.name, "': flip_pairs(", settings_.object_points, "): ", why));
    };
    if (settings_.object_points < 0) refuse("an object has at least one point");
    std::vector<int> seen;
    for (const auto& [a, b] : settings_.flip_pairs) {
      for (const int each : {a, b}) {
        if (each < 0 || each >= settings_.object_points) refuse(str_cat("there is no point ", each, " in an object"));
        if (std::find(seen.begin(), seen.end(), each) != seen.end()) refuse(str_cat("point ", each, " is there twice"));
        seen.push_back(each);
      }
    }
  }

  points::settings settings_;
};

}  // namespace
}  // namespace stages

points::operator field() const { return field(std::make_shared<stages::points_model>(settings_)); }

}  // namespace leat

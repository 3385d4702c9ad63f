// boxes: boxes of things in a picture, which follow it.
#include "base/text.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/batch/tiled_rows.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/following.hpp"
#include "stages/fields/mask_scratch.hpp"
#include "stages/fields/target_numbers.hpp"
#include "stages/pixels/iou_crop.hpp"
#include "stages/pixels/placed_quad.hpp"

#include <leat/error.hpp>
#include <leat/targets.hpp>

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <optional>
#include <utility>

namespace leat {
namespace stages {
namespace {

constexpr std::array<std::string_view, 6> format_names{"xyxy", "xywh", "cxcywh", "yolo", "cxcywhr", "xyxyxyxy"};

bool is_rotated(box_format how) noexcept { return how == box_format::cxcywhr || how == box_format::xyxyxyxy; }

constexpr std::size_t stored_numbers_max = 8;
// Of a box, as it is stored and in the row.
std::size_t stored_numbers(box_format how) noexcept {
  return how == box_format::cxcywhr ? 5 : how == box_format::xyxyxyxy ? stored_numbers_max : 4;
}
std::size_t row_numbers(box_format how) noexcept { return is_rotated(how) ? 8 : 4; }

constexpr std::int64_t most_max = 1'000'000;

// A list of numbers beside the boxes, one for each.
//   key   of JSON; empty: yolo's classes
struct list_beside {
  std::string key;
  std::string output;
  dtype type = dtype::i64;
};

// What a thread keeps for boxes.
class boxes_scratch final : public mask_scratch {
 public:
  explicit boxes_scratch(pixels::scratch_budget& budget) : arena(budget) {}

  pixels::scratch_arena arena;
};

// The numbers of a sample's boxes, and of each list beside them; one of the two, by its type.
struct stored_boxes {
  struct list {
    explicit list(std::pmr::memory_resource* memory) : whole(memory), real(memory) {}
    std::pmr::vector<std::int64_t> whole;
    std::pmr::vector<double> real;
  };

  stored_boxes(std::pmr::memory_resource* memory, std::size_t lists) : numbers(memory) {
    for (std::size_t i = 0; i < lists; ++i) beside.emplace_back(memory);
  }

  std::pmr::vector<double> numbers;
  absl::InlinedVector<list, 4> beside;
};

// A box in the row.
//   center   of the stored one, in the picture
struct made_box {
  std::array<float, stored_numbers_max> numbers{};
  std::array<double, 2> center{};
  double area = 0;
  double whole_area = 0;
};

pixels::box upright_hull(const pixels::quadrilateral& of) {
  pixels::box hull{of[0][0], of[0][1], of[0][0], of[0][1]};
  for (const auto& [x, y] : of) {
    hull = {std::min(hull.left, x), std::min(hull.top, y), std::max(hull.right, x), std::max(hull.bottom, y)};
  }
  return hull;
}

std::vector<list_beside> lists_beside(const boxes::settings& settings) {
  std::vector<list_beside> lists;
  if (!settings.labels.empty() || settings.how == box_format::yolo) {
    lists.push_back({settings.labels, settings.name + ".labels", dtype::i64});
  }
  for (const auto& [key, type] : settings.more) lists.push_back({key, str_cat(settings.name, ".", key), type});
  return lists;
}

template <class Number>
void write(row_target& row, std::size_t at, Number number) {
  std::memcpy(row.bytes.data() + at * sizeof number, &number, sizeof number);
}

class boxes_program final : public following_program, tiling_facet, boxing_facet {
 public:
  boxes_program(const boxes::settings& settings, const datasets::dataset_model& dataset, std::uint16_t field,
                std::optional<dtype> stored)
      : following_program(settings.picture, dataset, field, outputs_of(settings)),
        settings_(settings),
        lists_(lists_beside(settings)),
        stored_(stored),
        box_numbers_(stored_numbers(settings.how)),
        box_bytes_(row_numbers(settings.how) * sizeof(float)) {
    facts_.encoded_bytes_max = bytes_max_or_any(settings.bytes_max, settings.name);
    facets_.boxing = this;
    facets_.tiling = this;
    facts_.scratch_bytes =
        lists_scratch_bytes(dataset.fields()[field], stored, facts_.encoded_bytes_max, 1 + lists_.size());
  }

  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget& budget) const override {
    auto made = std::make_unique<boxes_scratch>(budget);
    if (settings_.masks.empty()) return made;
    made->reader.emplace(budget);
    made->kept.reserve(static_cast<std::size_t>(*settings_.most));
    return made;
  }

  std::string why_not_tiled() const override {
    return is_rotated(settings_.how) ? "the corners of rotated boxes are not cut; give upright ones" : "";
  }
  void keep_further_boxes() override {
    if (!settings_.most || further_bytes_ != 0) return;
    for (std::size_t o = 0; o < padded_outputs() - 1; ++o) {
      further_bytes_ += outputs_[o].row_bytes() / static_cast<std::size_t>(*settings_.most);
    }
    outputs_.insert(
        outputs_.begin() + static_cast<std::ptrdiff_t>(padded_outputs()),
        {.name = settings_.name + ".further", .type = dtype::u8, .ragged = true, .hidden = true, .digested = false});
  }
  std::optional<tiled_boxes> boxes_of_tiles() const override {
    return tiled_boxes{.area_min = settings_.min_area,
                       .visible_min = settings_.min_visible,
                       .center_inside = settings_.center_inside,
                       .most = static_cast<std::size_t>(settings_.most.value_or(0)),
                       .fill = settings_.fill};
  }

 private:
  static std::vector<output_spec> outputs_of(const boxes::settings& settings) {
    std::vector<output_spec> outputs;
    const auto add = [&](std::string name, dtype type, const dimensions& shape) {
      dimensions row;
      if (settings.most) row.push_back(*settings.most);
      for (const std::int64_t extent : shape) row.push_back(extent);
      outputs.push_back({.name = std::move(name), .type = type, .row_shape = row, .ragged = !settings.most});
    };
    add(settings.name, dtype::f32, {static_cast<std::int64_t>(row_numbers(settings.how))});
    add(settings.name + ".kept", dtype::i64, {});
    for (const list_beside& each : lists_beside(settings)) add(each.output, each.type, {});
    if (settings.most) outputs.push_back({.name = settings.name + ".count", .type = dtype::i64});
    return outputs;
  }
  std::size_t made_bytes(std::size_t output, std::size_t encoded_bytes) const override {
    // In text "0,0,1,1," and the like, in a list that may have no lists in it.
    const std::size_t most =
        stored_ ? encoded_bytes / (box_numbers_ * size_bytes(*stored_)) : (encoded_bytes + 1) / (2 * box_numbers_);
    return most * (output == padded_outputs() ? further_bytes_ : outputs_[output].row_bytes());
  }
  // The boxes, their numbers in the sample, the lists beside them, and the count.
  std::size_t padded_outputs() const noexcept { return 3 + lists_.size(); }

  // Shares stay shares, whose picture is one by one: how large it is shows when it is decoded. Of rotated ones it is the upright hull.
  outcome<void> boxes_of(field_scratch& scratch, std::span<const std::byte> encoded, std::span<const row_target> rows,
                         std::vector<pixels::box>& made, pixels::picture_boxes& out) const override {
    const std::span<const std::byte> value = value_of(encoded, rows);
    made.clear();
    list_memory memory(static_cast<boxes_scratch&>(scratch).arena);
    std::optional<stored_boxes> all;
    const outcome<void> found = read_sample(value, memory, all);
    if (!found) return found;
    const std::size_t count = all->numbers.size() / box_numbers_;
    if (count > pixels::boxes_seen_max) {
      return corrupt(str_cat("has ", count, " boxes", settings_.key.empty() ? "" : str_cat(" in '", settings_.key, "'"),
                             ", and random_iou_crop looks at ", pixels::boxes_seen_max,
                             " at most; leave out those that are too small to see, or leave out the crop"));
    }
    made.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<const double> numbers = std::span(all->numbers).subspan(i * box_numbers_, box_numbers_);
      if (auto wrong = not_finite(numbers, i, "box")) return corrupt(std::move(*wrong));
      if (is_rotated(settings_.how)) {
        const outcome<pixels::quadrilateral> stored = quad_of(numbers, i);
        if (!stored) return stored.error();
        made.push_back(upright_hull(*stored));
      } else {
        const outcome<pixels::box> stored = box_of(numbers, i, {.picture_width = 1, .picture_height = 1});
        if (!stored) return stored.error();
        made.push_back(*stored);
      }
    }
    out = {.all = made, .in_shares = settings_.how == box_format::yolo};
    return {};
  }

  outcome<void> make_rows(field_scratch& scratch, const decode_input&, std::span<const std::byte> encoded,
                          const pixels::placed_picture& where, std::span<row_target> rows) const override {
    auto& own = static_cast<boxes_scratch&>(scratch);
    list_memory memory(own.arena);
    std::optional<stored_boxes> all;
    const outcome<void> found = read_sample(encoded, memory, all);
    if (!found) return found;
    const std::size_t count = all->numbers.size() / box_numbers_;
    for (std::size_t i = 0; i < lists_.size(); ++i) {
      const std::size_t numbers = std::max(all->beside[i].whole.size(), all->beside[i].real.size());
      if (numbers == count) continue;
      return corrupt(str_cat("has ", count, " boxes, and ", numbers,
                             lists_[i].key == settings_.labels ? " labels in '" : " numbers in '", lists_[i].key, "'"));
    }
    const std::size_t room = rows[0].bytes.size() / box_bytes_;
    own.kept.clear();
    own.boxes = count;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const outcome<made_box> made =
          make_box(std::span(all->numbers).subspan(i * box_numbers_, box_numbers_), i, where);
      if (!made) return made.error();
      if (made->area == 0 || made->area < settings_.min_area || made->area < settings_.min_visible * made->whole_area) {
        continue;
      }
      if (settings_.center_inside && !pixels::is_inside(where, made->center[0], made->center[1])) continue;
      if (kept == room && settings_.most) {
        if (further_bytes_ != 0) add_further(rows[padded_outputs()], *made, i, *all);
        continue;
      }
      if (kept == room) return corrupt(str_cat("has more boxes than the ", room, " that its row has room for"));
      std::memcpy(rows[0].bytes.data() + kept * box_bytes_, made->numbers.data(), box_bytes_);
      write(rows[1], kept, static_cast<std::int64_t>(i));
      for (std::size_t list = 0; list < lists_.size(); ++list) {
        use_beside(list, *all, i, [&](auto number) { write(rows[2 + list], kept, number); });
      }
      if (!settings_.masks.empty()) own.kept.push_back(static_cast<std::int64_t>(i));
      ++kept;
    }
    if (settings_.most) {
      fill(rows.first(padded_outputs()), kept);
      return {};
    }
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].used = kept * outputs_[i].row_bytes();
    return {};
  }

  void add_further(row_target& row, const made_box& box, std::size_t i, const stored_boxes& all) const {
    assert(row.used + further_bytes_ <= row.bytes.size());
    const auto add = [&](const auto& number) {
      std::memcpy(row.bytes.data() + row.used, &number, sizeof number);
      row.used += sizeof number;
    };
    for (std::size_t n = 0; n < row_numbers(settings_.how); ++n) add(box.numbers[n]);
    add(static_cast<std::int64_t>(i));
    for (std::size_t list = 0; list < lists_.size(); ++list) use_beside(list, all, i, add);
  }

  // Calls use(number) with what box i has in a list, in the list's type.
  template <class Use>
  void use_beside(std::size_t list, const stored_boxes& all, std::size_t i, const Use& use) const {
    if (lists_[list].type == dtype::f32) {
      use(static_cast<float>(all.beside[list].real[i]));
    } else {
      use(all.beside[list].whole[i]);
    }
  }

  // What is behind the boxes of a padded row, and how many there are.
  void fill(std::span<row_target> rows, std::size_t kept) const {
    for (std::size_t o = 0; o + 1 < rows.size(); ++o) {
      const std::size_t each = o == 0 ? row_numbers(settings_.how) : 1;
      const auto end = static_cast<std::size_t>(*settings_.most) * each;
      for (std::size_t i = kept * each; i < end; ++i) {
        if (outputs_[o].type == dtype::f32) {
          write(rows[o], i, static_cast<float>(settings_.fill));
        } else {
          write(rows[o], i, settings_.fill);
        }
      }
    }
    write(rows.back(), 0, static_cast<std::int64_t>(kept));
  }

  //   memory   of the lists of `out`
  outcome<void> read_sample(std::span<const std::byte> encoded, list_memory& memory,
                            std::optional<stored_boxes>& out) const {
    if (encoded.size() > facts_.encoded_bytes_max) {
      return corrupt(too_many_bytes(encoded.size(), facts_.encoded_bytes_max));
    }
    const outcome<void> reserved =
        memory.reserve((1 + lists_.size()) * numbers_max(encoded, stored_), 1 + 2 * lists_.size());
    if (!reserved) return reserved;
    return read(encoded, out.emplace(memory.get(), lists_.size()));
  }

  outcome<void> read(std::span<const std::byte> encoded, stored_boxes& own) const {
    const std::string_view text(reinterpret_cast<const char*>(encoded.data()), encoded.size());
    if (settings_.how == box_format::yolo) return read_lines(text, own);
    inner_lists lists;
    outcome<void> made =
        stored_ ? read_elements(encoded, *stored_, own.numbers) : read_list(text, settings_.key, own.numbers, &lists);
    if (!made) return made;
    if (lists.count != 0 && own.numbers.size() != 0 && lists.length != box_numbers_) {
      return corrupt(str_cat("has boxes of ", lists.length, " numbers; a box has ", box_numbers_));
    }
    if (own.numbers.size() % box_numbers_ != 0) {
      return corrupt(str_cat("has ", own.numbers.size(), " numbers; a box has ", box_numbers_));
    }
    for (std::size_t i = 0; i < lists_.size() && made; ++i) {
      made = lists_[i].type == dtype::f32 ? read_measures(text, lists_[i].key, own.beside[i].real)
                                          : read_list(text, lists_[i].key, own.beside[i].whole, nullptr);
    }
    return made;
  }

  // Numbers that an f32 can have: lists may hold NaN and Infinity, as Python writes them.
  static outcome<void> read_measures(std::string_view text, const std::string& key, std::pmr::vector<double>& to) {
    outcome<void> read = read_list(text, key, to, nullptr);
    if (!read) return read;
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (std::isfinite(to[i]) && converted<float>(to[i])) continue;
      return corrupt(str_cat("member '", key, "': element ", i, " is ", to[i], ", which is no finite f32"));
    }
    return read;
  }

  // "class cx cy width height", a box a line.
  outcome<void> read_lines(std::string_view text, stored_boxes& own) const {
    const std::size_t most = numbers_max(text);
    std::pmr::vector<std::int64_t>& labels = own.beside.front().whole;
    own.numbers.reserve(most);
    labels.reserve(most);
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      std::array<double, 5> read{};
      row_writer<double> to{.at = reinterpret_cast<std::byte*>(read.data()), .room = read.size()};
      if (const auto wrong = read_text(line, to)) return corrupt(str_cat("line ", number, ": ", *wrong));
      if (to.count == 0) continue;
      if (to.count != read.size()) {
        return corrupt(str_cat("line ", number, " has ", to.count, " numbers; a box has a class and 4"));
      }
      const std::optional<std::int64_t> label = converted<std::int64_t>(read[0]);
      if (!label) return corrupt(str_cat("line ", number, ": the class ", read[0], " is no whole number"));
      labels.push_back(*label);
      own.numbers.insert(own.numbers.end(), read.begin() + 1, read.end());
    }
    return {};
  }

  // Box i of the sample. It has no area where nothing is left of it.
  outcome<made_box> make_box(std::span<const double> all, std::size_t i, const pixels::placed_picture& where) const {
    if (auto wrong = not_finite(all, i, "box")) return corrupt(std::move(*wrong));
    made_box made;
    if (is_rotated(settings_.how)) {
      const outcome<pixels::quadrilateral> stored = quad_of(all, i);
      if (!stored) return stored.error();
      const pixels::placed_quad placed = pixels::place_quad(where, *stored);
      for (std::size_t k = 0; k < made.numbers.size(); ++k) {
        made.numbers[k] = static_cast<float>(placed.in_row[k / 2][k % 2]);
      }
      for (const auto& corner : *stored) {
        made.center[0] += corner[0] / 4;
        made.center[1] += corner[1] / 4;
      }
      made.area = placed.area;
      made.whole_area = placed.whole_area;
      return made;
    }
    const outcome<pixels::box> stored = box_of(all, i, where.geometry);
    if (!stored) return stored.error();
    made.center = {0.5 * (stored->left + stored->right), 0.5 * (stored->top + stored->bottom)};
    const pixels::placed_box placed = pixels::place_box(where, *stored);
    const pixels::box& in_row = placed.in_row;
    made.numbers = {static_cast<float>(in_row.left), static_cast<float>(in_row.top), static_cast<float>(in_row.right),
                    static_cast<float>(in_row.bottom)};
    const bool is_there = made.numbers[2] > made.numbers[0] && made.numbers[3] > made.numbers[1];
    made.area = is_there ? in_row.area() : 0;
    made.whole_area = placed.whole_area;
    return made;
  }

  // In pixels of the stored picture.
  outcome<pixels::quadrilateral> quad_of(std::span<const double> all, std::size_t i) const {
    if (settings_.how == box_format::cxcywhr) {
      if (all[2] < 0 || all[3] < 0) return corrupt(element_text("box", i, all) + " has a negative size");
      return pixels::rotated_box(all[0], all[1], all[2], all[3], all[4]);
    }
    pixels::quadrilateral corners;
    for (std::size_t k = 0; k < all.size(); ++k) corners[k / 2][k % 2] = all[k];
    if (pixels::sides_cross(corners)) {
      return corrupt(element_text("box", i, all) + " has sides that cross; its corners go round it");
    }
    return corners;
  }
  outcome<pixels::box> box_of(std::span<const double> all, std::size_t i, const picture_geometry& picture) const {
    double a = all[0];
    double b = all[1];
    double c = all[2];
    double d = all[3];
    if (settings_.how == box_format::xyxy) {
      if (c < a) return corrupt(element_text("box", i, all) + " has its right edge left of its left one");
      if (d < b) return corrupt(element_text("box", i, all) + " has its lower edge above its upper one");
      return pixels::box{a, b, c, d};
    }
    if (c < 0 || d < 0) return corrupt(element_text("box", i, all) + " has a negative size");
    if (settings_.how == box_format::yolo) {
      constexpr double most = 1.01;  // Rounded shares are taken.
      if (a < 1 - most || b < 1 - most || a > most || b > most || c > most || d > most) {
        return corrupt(element_text("box", i, all) + " is not in shares of the picture's sides, which are 0 to 1");
      }
      a *= picture.picture_width;
      c *= picture.picture_width;
      b *= picture.picture_height;
      d *= picture.picture_height;
    }
    if (settings_.how != box_format::xywh) {
      a -= c / 2;
      b -= d / 2;
    }
    return pixels::box{a, b, a + c, b + d};
  }

  boxes::settings settings_;
  std::vector<list_beside> lists_;
  std::optional<dtype> stored_;    // none: text
  std::size_t box_numbers_;        // stored
  std::size_t box_bytes_;          // in the row
  std::size_t further_bytes_ = 0;  // of each box that padded rows keep behind the others; 0: of none
};

class boxes_model final : public field_model {
 public:
  explicit boxes_model(boxes::settings settings) : settings_(std::move(settings)) {}

  const std::string& name() const noexcept override { return settings_.name; }
  void describe(description& out) const override {
    out.add("kind", "boxes");
    out.add("member", settings_.member);
    out.add("follows", settings_.picture);
    out.add("format", format_names[static_cast<std::size_t>(settings_.how)]);
    if (!settings_.key.empty()) out.add("key", settings_.key);
    if (!settings_.labels.empty()) out.add("labels", settings_.labels);
    if (settings_.min_area != 0) out.add("min_area", settings_.min_area);
    if (settings_.min_visible != 0) out.add("min_visible", settings_.min_visible);
    if (settings_.center_inside) out.add("center_inside", true);
    if (settings_.bytes_max) out.add("bytes_max", std::uint64_t{*settings_.bytes_max});
    for (const auto& [key, type] : settings_.more) out.add("with", str_cat(key, " ", leat::name(type)));
    if (settings_.most) out.add("padded", str_cat(*settings_.most, " with ", settings_.fill));
    if (!settings_.masks.empty()) out.add("masks", settings_.masks);
  }
  void bind(const datasets::dataset_model& dataset, finished_by,
            std::vector<std::unique_ptr<field_program>>& out) const override {
    out.push_back(bound(dataset));
    if (!settings_.masks.empty()) out.push_back(masks_of_boxes(settings_, dataset));
  }

 private:
  [[nodiscard]] std::unique_ptr<field_program> bound(const datasets::dataset_model& dataset) const {
    if (!(settings_.min_area >= 0)) refuse(str_cat("min_area(", settings_.min_area, "): square pixels, from 0 on"));
    if (!(settings_.min_visible >= 0 && settings_.min_visible <= 1)) {
      refuse(str_cat("min_visible(", settings_.min_visible, "): a share, from 0 to 1"));
    }
    const bool is_yolo = settings_.how == box_format::yolo;
    if (is_yolo && !settings_.key.empty()) refuse("key() is of JSON, and yolo's boxes are lines; leave it out");
    const auto check_list = [&](std::string_view call) {
      if (is_yolo) refuse(str_cat(call, " is of JSON, and yolo's lines have their classes in front; leave it out"));
      if (settings_.key.empty())
        refuse(str_cat(call, " is a key of the object that has the boxes; say their key() too"));
    };
    if (!settings_.labels.empty()) check_list("labels()");
    for (const auto& [key, type] : settings_.more) {
      check_list(str_cat("with(\"", key, "\")"));
      if (key.empty()) refuse("with(\"\"): give it the key of a list");
      if (type != dtype::i64 && type != dtype::f32) {
        refuse(str_cat("with(\"", key, "\") of ", leat::name(type), "; it has i64 or f32"));
      }
    }
    if (settings_.most && (*settings_.most < 1 || *settings_.most > most_max)) {
      refuse(str_cat("padded(", *settings_.most, "): from 1 to ", most_max, " boxes"));
    }
    if (!settings_.masks.empty() && !settings_.most) {
      refuse("masks() are rows of one size; say padded() too, how many boxes a row has");
    }
    const std::uint16_t field = field_of_target(dataset, settings_.member, settings_.name);
    const field_info& info = dataset.fields()[field];
    if (info.kind == field_kind::picture) throw_wrong_kind(info, settings_.name);
    const std::optional<dtype> stored = stored_type_of(info);
    if (stored && (!has_numbers(*stored) || is_yolo || !settings_.key.empty())) throw_wrong_kind(info, settings_.name);
    return std::make_unique<boxes_program>(settings_, dataset, field, stored);
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw error(errc::usage, str_cat("boxes '", settings_.name, "': ", why));
  }

  boxes::settings settings_;
};

}  // namespace
}  // namespace stages

boxes::operator field() const { return field(std::make_shared<stages::boxes_model>(settings_)); }

}  // namespace leat

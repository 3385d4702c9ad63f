// mask and depth: numbers of a picture's pixels, which follow it.
#include "base/text.hpp"
#include "datasets/formats/arrays/npy_header.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/batch/tiled_rows.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/first_value.hpp"
#include "stages/fields/following.hpp"
#include "stages/fields/mask_scratch.hpp"
#include "stages/fields/number_list.hpp"
#include "stages/fields/segmentation.hpp"
#include "stages/fields/target_numbers.hpp"
#include "stages/pixels/mask_reader.hpp"
#include "stages/pixels/picture_format.hpp"
#include "stages/plan/lowering.hpp"

#include <leat/error.hpp>
#include <leat/targets.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace leat {
namespace stages {
namespace {

// zlib, libpng and lines of a photograph's width; the numbers of a mask of two megapixels.
constexpr std::size_t mask_scratch_bytes = std::size_t{2} << 20;

constexpr std::int64_t instances_max = 65'535;

bool is_real(dtype type) noexcept { return type == dtype::f32 || type == dtype::f64; }

// How numbers lie in an array; nothing where it is none of a mask.
std::optional<pixels::mask_array> array_of(dtype type, const dimensions& shape, bool is_depth) {
  dimensions sides;
  for (const std::int64_t extent : shape) {
    if (extent != 1 || shape.size() == 2) sides.push_back(extent);
  }
  const bool fits = is_depth ? is_real(type) || type == dtype::u8 || type == dtype::u16 : !is_real(type);
  if (sides.size() != 2 || !has_numbers(type) || !fits) return std::nullopt;
  constexpr std::int64_t side_max = pixels::side_max;
  if (sides[0] < 1 || sides[1] < 1 || sides[0] > side_max || sides[1] > side_max) return std::nullopt;
  return pixels::mask_array{type, static_cast<int>(sides[1]), static_cast<int>(sides[0])};
}

std::string is_no_mask(dtype type, const dimensions& shape, bool is_depth) {
  return str_cat("an array of ", leat::name(type), " ", to_string(shape),
                 is_depth ? " is no depth: that is u8, u16, f32 or f64" : " is no mask: that is whole numbers",
                 ", [height, width] or with one channel");
}

dimensions sides_in(const datasets::npy_header& header) {
  dimensions shape;
  for (const std::uint64_t axis : header.shape) {
    if (shape.size() == dimensions::rank_max) break;  // No mask in any case.
    shape.push_back(static_cast<std::int64_t>(axis));
  }
  return shape;
}

/// What a mask's member holds.
///   is_npy   .npy files, each of a size of its own
///   array    rows of a tensor; none: PNG files, unless is_npy
struct stored_mask {
  bool is_npy = false;
  std::optional<pixels::mask_array> array;
  dtype type = dtype::u8;  // of the first sample's numbers
};

// A number that few have: of u8 the one that torchvision's datasets ignore, of u16 the largest.
std::int64_t usual_ignore(dtype type) noexcept { return type == dtype::u16 ? 65'535 : 255; }

// The same of a sample whose numbers are objects: arrays of other types may have as many objects as they like.
//   returns   0, which is no object: none is ignored
std::int64_t usual_ignore_of_objects(std::span<const std::byte> encoded,
                                     const std::optional<pixels::mask_array>& array) {
  if (array) return array->type == dtype::u8 || array->type == dtype::u16 ? usual_ignore(array->type) : 0;
  if (pixels::format_of(encoded) != pixels::format::png) return 0;  // Shapes; or refused for what it is.
  return usual_ignore(pixels::samples_of(encoded).bits == 16 ? dtype::u16 : dtype::u8);
}

bool is_json(std::span<const std::byte> value) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(value.data()), value.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

// The shapes of a sample's JSON.
class json_shapes final : public pixels::shape_source {
 public:
  json_shapes(std::string_view json, const picture_geometry& picture) : json_(json), picture_(picture) {}

  std::size_t bytes() const override { return segmentation_bytes_max(json_); }
  outcome<void> read(pixels::mask_shapes& to) const override {
    return read_segmentation(json_, picture_.picture_width, picture_.picture_height, to);
  }

 private:
  std::string_view json_;
  const picture_geometry& picture_;
};

// What numbers of shapes take of a usual sample: 16 bytes for each, which has some six letters.
std::size_t shapes_bytes_of(const field_info& member, const mask::settings& settings) {
  if (member.kind != field_kind::text && member.kind != field_kind::bytes) return 0;
  return 3 * usual_bytes(member, settings.bytes_max.value_or(std::numeric_limits<std::size_t>::max()));
}

///   of_boxes   its planes are of the boxes that the program before it has kept
class mask_program final : public following_program, tiling_facet {
 public:
  mask_program(const mask::settings& settings, const datasets::dataset_model& dataset, std::uint16_t field,
               const stored_mask& stored, bool of_boxes = false)
      : following_program(settings.picture, dataset, field, outputs_of(settings, stored, of_boxes)),
        most_(settings.instances),
        ignore_(settings.ignore),
        of_boxes_(of_boxes),
        stored_(stored),
        is_depth_(settings.is_depth),
        colours_(settings.colors),
        how_{.type = outputs_.front().type,
             .ignore = settings.is_depth ? 0 : settings.ignore.value_or(usual_ignore(outputs_.front().type)),
             .colours = &colours_,
             .array = stored.array,
             .scaled = settings.scaled,
             .is_depth = settings.is_depth} {
    facts_.encoded_bytes_max = bytes_max_or_any(settings.bytes_max, settings.name);
    facts_.scratch_bytes = mask_scratch_bytes + shapes_bytes_of(dataset.fields()[field], settings);
    facts_.scratch_of_previous = of_boxes;
    facts_.names_member = of_boxes;
    facets_.tiling = this;
    if (!most_ || of_boxes) return;
    first_objects_.resize(static_cast<std::size_t>(*most_));
    std::iota(first_objects_.begin(), first_objects_.end(), std::int64_t{0});
  }

  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget& budget) const override {
    auto made = std::make_unique<mask_scratch>();
    made->reader.emplace(budget);
    return made;
  }

  std::string why_not_tiled() const override {
    if (!most_) return "";
    return of_boxes_ ? "planes of instances are of one picture; leave .masks() out"
                     : "planes of instances are of one picture; take a mask of numbers";
  }
  std::optional<tiled_boxes> boxes_of_tiles() const override { return std::nullopt; }

 private:
  static std::vector<output_spec> outputs_of(const mask::settings& settings, const stored_mask& stored, bool of_boxes) {
    if (!settings.instances) return {{.name = settings.name, .type = type_of(settings, stored)}};
    std::vector<output_spec> outputs{{.name = settings.name, .type = dtype::u8}};
    if (!of_boxes) outputs.push_back({.name = settings.name + ".count", .type = dtype::i64});
    return outputs;
  }
  static dtype type_of(const mask::settings& settings, const stored_mask& stored) {
    if (settings.is_depth) return is_real(stored.type) ? dtype::f32 : dtype::u16;
    return settings.type ? *settings.type : pixels::is_mask_type(stored.type) ? stored.type : dtype::i64;
  }
  void take_size(int height, int width) override {
    outputs_.front().row_shape = most_ ? dimensions{*most_, height, width} : dimensions{height, width};
    if (!most_) return;
    facts_.scratch_bytes += static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * sizeof(std::uint16_t);
  }
  outcome<void> make_rows(field_scratch& scratch, const decode_input& input, std::span<const std::byte> encoded,
                          const pixels::placed_picture& where, std::span<row_target> rows) const override {
    if (encoded.size() > facts_.encoded_bytes_max) {
      return corrupt(too_many_bytes(encoded.size(), facts_.encoded_bytes_max));
    }
    pixels::mask_reading how = how_;
    if (stored_.is_npy) {
      try {
        const datasets::npy_header header = datasets::read_npy_header(outputs_.front().name, encoded);
        how.array = array_of(header.type, sides_in(header), is_depth_);
        if (!how.array) return corrupt(is_no_mask(header.type, sides_in(header), is_depth_));
        encoded = encoded.subspan(header.data_offset, header.data_bytes);
      } catch (const error& failure) {
        return corrupt(failure.what());
      }
    }
    if (how.array) {
      const std::size_t bytes = static_cast<std::size_t>(how.array->width) *
                                static_cast<std::size_t>(how.array->height) * size_bytes(how.array->type);
      if (encoded.size() != bytes) return corrupt(str_cat("holds ", encoded.size(), " bytes, and its array ", bytes));
    }
    auto& own = static_cast<mask_scratch&>(scratch);
    const json_shapes shapes({reinterpret_cast<const char*>(encoded.data()), encoded.size()}, where.geometry);
    if (!how.array && !is_depth_ && is_json(encoded)) how.shapes = &shapes;
    if (!most_) return own.reader->read(encoded, where, how, rows.front().bytes, input.stop);
    how.type = how.shapes != nullptr ? dtype::u8 : dtype::u16;
    how.ignore = ignore_.value_or(usual_ignore_of_objects(encoded, how.array));
    pixels::mask_planes planes{.objects = first_objects_};
    if (of_boxes_) {
      planes = {.objects = own.kept, .whole = own.boxes};
      if (static_cast<std::uint64_t>(how.ignore) <= own.boxes) how.ignore = 0;  // That number has a box.
    }
    const outcome<std::size_t> objects =
        own.reader->read_planes(encoded, where, how, planes, rows.front().bytes, input.stop);
    if (!objects) return objects.error();
    if (of_boxes_) return {};
    const std::int64_t count = std::min(static_cast<std::int64_t>(*objects), *most_);
    std::memcpy(rows[1].bytes.data(), &count, sizeof count);
    return {};
  }

  std::optional<std::int64_t> most_;    // planes of a row; none: it is a mask of numbers
  std::optional<std::int64_t> ignore_;  // that the user has said
  bool of_boxes_;
  std::vector<std::int64_t> first_objects_;  // 0, 1, ... of as many planes
  stored_mask stored_;
  bool is_depth_;
  pixels::colour_classes colours_;
  pixels::mask_reading how_;
};

class mask_model final : public one_program_field {
 public:
  explicit mask_model(mask::settings settings) : settings_(std::move(settings)) {}

  const std::string& name() const noexcept override { return settings_.name; }
  void describe(description& out) const override {
    out.add("kind", settings_.is_depth ? "depth" : "mask");
    out.add("member", settings_.member);
    out.add("follows", settings_.picture);
    if (settings_.ignore) out.add("ignore", *settings_.ignore);
    if (settings_.type) out.add("type", leat::name(*settings_.type));
    for (const auto& rgb : settings_.colors) out.add("color", str_cat(rgb[0], "/", rgb[1], "/", rgb[2]));
    if (settings_.scaled) out.add("scaled", settings_.scaled);
    if (settings_.instances) out.add("instances", *settings_.instances);
    if (settings_.bytes_max) out.add("bytes_max", std::uint64_t{*settings_.bytes_max});
  }
  std::unique_ptr<field_program> program(const datasets::dataset_model& dataset, finished_by) const override {
    if (settings_.type && !pixels::is_mask_type(*settings_.type)) {
      refuse(str_cat("a mask of ", leat::name(*settings_.type), "; it has u8, u16, i32 or i64"));
    }
    check_instances();
    std::unique_ptr<field_program> made = bound(dataset, false);
    check_numbers(settings_.instances ? dtype::u16 : made->outputs().front().type);
    return made;
  }

  [[nodiscard]] std::unique_ptr<field_program> bound(const datasets::dataset_model& dataset, bool of_boxes) const {
    const std::uint16_t field = field_of_target(dataset, settings_.member, settings_.name);
    return std::make_unique<mask_program>(settings_, dataset, field, stored_in(dataset, field), of_boxes);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw error(errc::usage, str_cat(settings_.is_depth ? "depth '" : "mask '", settings_.name, "': ", why));
  }

  void check_instances() const {
    if (!settings_.instances) return;
    if (*settings_.instances < 1 || *settings_.instances > instances_max) {
      refuse(str_cat("instances(", *settings_.instances, "): from 1 to ", instances_max, " planes"));
    }
    if (settings_.type) refuse("instances() makes planes of u8, 0 and 1; leave as() out");
    if (!settings_.colors.empty()) refuse("instances() are of numbers, and colors() of classes; leave one out");
  }

  void check_numbers(dtype type) const {
    with_type(type, [&](auto zero) {
      using number = decltype(zero);
      if (settings_.ignore && !converted<number>(*settings_.ignore)) {
        refuse(str_cat("ignore(", *settings_.ignore, ") is none of ", leat::name(type)));
      }
      if (!settings_.colors.empty() && !converted<number>(static_cast<std::int64_t>(settings_.colors.size()) - 1)) {
        refuse(str_cat(settings_.colors.size(), " colors() are more than the numbers of ", leat::name(type)));
      }
    });
  }

  [[nodiscard]] stored_mask stored_in(const datasets::dataset_model& dataset, std::uint16_t field) const {
    const field_info& info = dataset.fields()[field];
    if (info.kind == field_kind::tensor) {
      const auto array = array_of(info.type, info.shape, settings_.is_depth);
      if (!array) refuse(is_no_mask(info.type, info.shape, settings_.is_depth));
      return {.array = array, .type = info.type};
    }
    const bool is_text = info.kind == field_kind::text && !settings_.is_depth;
    if (info.kind != field_kind::picture && info.kind != field_kind::bytes && !is_text) {
      throw_wrong_kind(info, settings_.name);
    }
    stored_mask stored;
    if (holds_npy_files(dataset, field)) {
      stored.is_npy = true;
      if (!settings_.type) stored.type = first_npy(dataset, field).type;
      return stored;
    }
    if (settings_.type || settings_.is_depth || is_text || lower(dataset, field).is_awaited) return stored;
    static_cast<void>(look_at_first_values(
        dataset, field,
        [&](std::span<const std::byte> bytes) -> std::string {
          if (pixels::format_of(bytes) != pixels::format::png) return "no PNG";
          if (pixels::samples_of(bytes).bits == 16) stored.type = dtype::u16;
          return "";
        },
        16));
    return stored;
  }

  mask::settings settings_;
};

}  // namespace

std::unique_ptr<field_program> masks_of_boxes(const boxes::settings& of, const datasets::dataset_model& dataset) {
  mask::settings settings;
  settings.name = of.name + ".masks";
  settings.member = of.masks;
  settings.picture = of.picture;
  settings.instances = of.most;
  return mask_model(std::move(settings)).bound(dataset, true);
}

}  // namespace stages

mask::operator field() const { return field(std::make_shared<stages::mask_model>(settings_)); }

}  // namespace leat

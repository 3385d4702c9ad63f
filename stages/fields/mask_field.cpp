// mask and depth: numbers of a picture's pixels, which follow it.
#include "base/text.hpp"
#include "datasets/formats/arrays/npy_header.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/first_value.hpp"
#include "stages/fields/following.hpp"
#include "stages/fields/number_list.hpp"
#include "stages/fields/segmentation.hpp"
#include "stages/pixels/mask_reader.hpp"
#include "stages/pixels/picture_format.hpp"
#include "stages/plan/lowering.hpp"

#include <leat/error.hpp>
#include <leat/targets.hpp>

#include <optional>
#include <utility>

namespace leat {
namespace stages {
namespace {

// zlib, libpng and lines of a photograph's width; the numbers of a mask of two megapixels.
constexpr std::size_t mask_scratch_bytes = std::size_t{2} << 20;

class mask_scratch final : public field_scratch {
 public:
  explicit mask_scratch(pixels::scratch_budget& budget) : reader(budget) {}
  pixels::mask_reader reader;
  pixels::mask_shapes shapes;
};

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

// A number that few have: of u8 the one that torchvision's datasets ignore, of instances the largest.
std::int64_t usual_ignore(dtype type) noexcept { return type == dtype::u16 ? 65'535 : 255; }

bool is_json(std::span<const std::byte> value) noexcept {
  const std::string_view text(reinterpret_cast<const char*>(value.data()), value.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

class mask_program final : public following_program {
 public:
  mask_program(const mask::settings& settings, const datasets::dataset_model& dataset, std::uint16_t field,
               const stored_mask& stored)
      : following_program(settings.picture, dataset, field,
                          {{.name = settings.name, .type = type_of(settings, stored)}}),
        stored_(stored),
        is_depth_(settings.is_depth),
        colours_(settings.colors),
        how_{.type = outputs_.front().type,
             .ignore = settings.is_depth ? 0 : settings.ignore.value_or(usual_ignore(outputs_.front().type)),
             .colours = &colours_,
             .array = stored.array,
             .scaled = settings.scaled,
             .is_depth = settings.is_depth} {
    facts_.scratch_bytes = mask_scratch_bytes;
  }

  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget& budget) const override {
    return std::make_unique<mask_scratch>(budget);
  }

 private:
  static dtype type_of(const mask::settings& settings, const stored_mask& stored) {
    if (settings.is_depth) return is_real(stored.type) ? dtype::f32 : dtype::u16;
    return settings.type ? *settings.type : pixels::is_mask_type(stored.type) ? stored.type : dtype::i64;
  }
  void take_size(int height, int width) override { outputs_.front().row_shape = {height, width}; }
  outcome<void> make_rows(field_scratch& scratch, const decode_input& input, std::span<const std::byte> encoded,
                          const pixels::placed_picture& where, std::span<row_target> rows) const override {
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
    if (!how.array && !is_depth_ && is_json(encoded)) {
      const std::string_view text(reinterpret_cast<const char*>(encoded.data()), encoded.size());
      const picture_geometry& picture = where.geometry;
      outcome<void> read = read_segmentation(text, picture.picture_width, picture.picture_height, own.shapes);
      if (!read) return read;
      how.shapes = &own.shapes;
    }
    return own.reader.read(encoded, where, how, rows.front().bytes, input.stop);
  }

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
  }
  std::unique_ptr<field_program> program(const datasets::dataset_model& dataset, finished_by) const override {
    if (settings_.type && !pixels::is_mask_type(*settings_.type)) {
      refuse(str_cat("a mask of ", leat::name(*settings_.type), "; it has u8, u16, i32 or i64"));
    }
    const std::uint16_t field = field_of_target(dataset, settings_.member, settings_.name);
    auto made = std::make_unique<mask_program>(settings_, dataset, field, stored_in(dataset, field));
    check_numbers(made->outputs().front().type);
    return made;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw error(errc::usage, str_cat(settings_.is_depth ? "depth '" : "mask '", settings_.name, "': ", why));
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
}  // namespace stages

mask::operator field() const { return field(std::make_shared<stages::mask_model>(settings_)); }

}  // namespace leat

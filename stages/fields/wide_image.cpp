#include "stages/fields/wide_image.hpp"

#include "base/text.hpp"
#include "io/arena/budget_refusal.hpp"
#include "stages/device/finish_pictures.hpp"
#include "stages/pixels/placed_picture.hpp"
#include "stages/pixels/recipe.hpp"
#include "stages/pixels/wide_decoder.hpp"

#include <leat/error.hpp>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace leat::stages {
namespace {

// Readers of a photograph's width, and the lines of a resampling of it.
constexpr std::size_t wide_scratch_bytes = std::size_t{4} << 20;

// A band or spectrum has as many.
constexpr int wide_channels_max = 4096;

bool is_fraction(dtype type) noexcept { return type == dtype::f32 || type == dtype::f16 || type == dtype::bf16; }

class wide_checks {
 public:
  explicit wide_checks(const image::settings& settings) : settings_(settings) {}

  void all() const {
    if (settings_.bits != 8 && settings_.bits != 16 && settings_.bits != 32) {
      refuse(str_cat("bits(", settings_.bits, "): give 8, 16 or 32"));
    }
    if (settings_.channels < 1 || settings_.channels > wide_channels_max) {
      refuse(str_cat("channels(", settings_.channels, "): give 1 to ", wide_channels_max));
    }
    for (const transform& step : settings_.steps) check(step);
    if (settings_.rounding == pixel_rounding::fused) of_8_bits("rounding(fused)");
    if (settings_.exif_orientation) of_8_bits("exif_orientation()");
    if (settings_.background) of_8_bits("background()");
    if (settings_.truncated == truncated_jpeg::accept) of_8_bits("truncated()");
    if (settings_.decoder == jpeg_decoder::nvjpeg) of_8_bits("decoder(nvjpeg)");
    if (settings_.stored) of_8_bits("stored()");
    check_type();
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw error(errc::usage, str_cat("image '", settings_.name, "': ", why));
  }
  [[noreturn]] void of_8_bits(std::string_view what) const {
    refuse(str_cat(what, settings_.bits == 8 ? " is of pictures with 1 or 3 channels only" : " is of 8 bits only",
                   "; leave it out, or ",
                   settings_.bits == 8 ? str_cat("channels(", settings_.channels) : str_cat("bits(", settings_.bits),
                   ")"));
  }

  void check(const transform& step) const {
    const bool looks = std::holds_alternative<transforms::random_iou_crop>(step.what());
    if (looks || !pixels::is_geometry_step(step)) of_8_bits(step.name());
    std::visit(
        [&]<class Step>(const Step& each) {
          bool pads_otherwise = false;
          if constexpr (requires { each.fill; }) pads_otherwise = each.fill != std::array<int, 3>{};
          if constexpr (requires { each.mode; }) {
            pads_otherwise = pads_otherwise || each.mode != padding_mode::constant;
          }
          if (pads_otherwise) of_8_bits(str_cat(step.name(), " with padding other than 0"));
        },
        step.what());
  }

  void check_type() const {
    const dtype type = wide_type(settings_);
    const bool fits = is_fraction(type) || (settings_.bits == 8 && type == dtype::u8) ||
                      (settings_.bits == 16 && (type == dtype::u16 || type == dtype::i16 || type == dtype::i32)) ||
                      (settings_.bits == 32 && type == dtype::i32);
    if (!fits) {
      refuse(str_cat("as(", leat::name(type), "): give f32, f16, bf16",
                     settings_.bits == 8    ? " or u8"
                     : settings_.bits == 16 ? ", u16, i16 or i32"
                                            : " or i32"));
    }
    if (!is_fraction(type) && settings_.statistics) {
      refuse(str_cat("normalize() makes fractions, which ", leat::name(type), " has none of; use f32, f16 or bf16"));
    }
    if (!is_fraction(type) && settings_.white) refuse("white() scales fractions; add as(f32), or leave it out");
    if (settings_.statistics && settings_.channels != 1 && settings_.channels != 3) {
      refuse("normalize() has the mean and deviation of 1 or 3 channels");
    }
    if (settings_.statistics) {
      const auto& [means, deviations] = *settings_.statistics;
      for (const double mean : means) {
        if (!std::isfinite(mean)) refuse(str_cat("normalize() with mean ", mean, ": must be finite"));
      }
      for (const double deviation : deviations) {
        if (deviation > 0 && std::isfinite(deviation)) continue;
        refuse(str_cat("normalize() with deviation ", deviation, ": must be finite and above 0"));
      }
    }
  }

  const image::settings& settings_;
};

class wide_image_scratch final : public field_scratch {
 public:
  explicit wide_image_scratch(pixels::scratch_budget& budget) : decoder(budget) {}
  pixels::wide_decoder decoder;
};

class wide_image_program final : public field_program, drawing_facet, leading_facet {
 public:
  wide_image_program(const image::settings& settings, std::vector<std::uint16_t> fields)
      : field_program({}, std::move(fields)),
        pipeline_(settings.steps),
        store_{.type = wide_type(settings),
               .order = settings.order,
               .channels = settings.channels,
               .white = settings.white,
               .statistics = settings.statistics},
        bits_(settings.bits),
        pixels_max_(settings.pixels_max),
        group_(settings.group) {
    const std::int64_t height = pipeline_.out_height();
    const std::int64_t width = pipeline_.out_width();
    const std::int64_t channels = settings.channels;
    if (static_cast<std::uint64_t>(height) * static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(channels) >
        picture_elements_max) {
      throw io::budget_refusal(str_cat("image '", settings.name, "' of ", height, " x ", width, " pixels of ", channels,
                                       " channels: a picture may have ", picture_elements_max,
                                       " elements; give it a smaller size"));
    }
    output_spec output{.name = settings.name, .type = store_.type};
    output.row_shape =
        settings.order == layout::nchw ? dimensions{channels, height, width} : dimensions{height, width, channels};
    output.axes = settings.order;
    output.picture = true;
    output.unmixed = true;
    outputs_.push_back(std::move(output));
    facts_.scratch_bytes = wide_scratch_bytes;
    if (pipeline_.random() || !group_.empty()) facets_.drawing = this;
    if (!group_.empty()) pipeline_ = pipeline_.as_view(group_);
    facets_.leading = this;
  }

  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget& budget) const override {
    return std::make_unique<wide_image_scratch>(budget);
  }

  outcome<void> decode(field_scratch& scratch, const decode_input& input, std::span<row_target> rows) const override {
    auto& own = static_cast<wide_image_scratch&>(scratch);
    const outcome<pixels::wide_decoded> made =
        own.decoder.decode(input.encoded, pipeline_, {.seed = input.seed, .epoch = input.epoch, .draw = input.draw},
                           bits_, store_, pixels_max_, rows.front().bytes.data(), input.stop);
    if (!made) return made.error();
    if (input.geometry != nullptr) {
      *input.geometry = pixels::geometry_of(made->drawn, made->drawn.from_row(), made->width, made->height, 1);
    }
    return {};
  }

  int row_height() const noexcept override { return pipeline_.out_height(); }
  int row_width() const noexcept override { return pipeline_.out_width(); }
  void place(const decode_input& input, const picture_geometry& of, pixels::placed_picture& out) const override {
    pixels::place(pipeline_, {.seed = input.seed, .epoch = input.epoch, .draw = input.draw}, of, out);
  }

  void set_view(std::uint32_t number) override { pipeline_ = pipeline_.as_view(number); }
  std::string_view group() const noexcept override { return group_; }
  bool varies() const noexcept override { return pipeline_.varies(); }
  std::vector<double> geometry_probes() const override { return pixels::geometry_probes(pipeline_, false); }

 private:
  pixels::pipeline pipeline_;
  pixels::wide_store store_;
  int bits_;
  std::int64_t pixels_max_;
  const std::string group_;
};

}  // namespace

dtype wide_type(const image::settings& settings) noexcept {
  if (settings.typed || settings.statistics) return settings.type;
  return settings.bits == 16 ? dtype::u16 : settings.type;
}

std::unique_ptr<field_program> make_wide_image(const image::settings& settings, std::vector<std::uint16_t> fields) {
  wide_checks(settings).all();
  return std::make_unique<wide_image_program>(settings, std::move(fields));
}

}  // namespace leat::stages

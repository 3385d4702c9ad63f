// image: a picture, decoded straight into its row.
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/formats/arrays/npy_header.hpp"
#include "datasets/model/model.hpp"
#include "io/arena/budget_refusal.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/device/photo_operation.hpp"
#include "stages/device/photo_plan.hpp"
#include "stages/device/picture_operation.hpp"
#include "stages/device/write_program.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/first_value.hpp"
#include "stages/fields/following.hpp"
#include "stages/fields/photo_reach.hpp"
#include "stages/fields/user_failure.hpp"
#include "stages/fields/wide_image.hpp"
#include "stages/pixels/array_pixels.hpp"
#include "stages/pixels/orientation.hpp"
#include "stages/pixels/photo_pack_layout.hpp"
#include "stages/pixels/picture_decoder.hpp"
#include "stages/pixels/picture_format.hpp"
#include "stages/pixels/picture_info.hpp"
#include "stages/pixels/placed_picture.hpp"
#include "stages/pixels/plain_jpeg.hpp"
#include "stages/pixels/png_reader.hpp"
#include "stages/pixels/recipe.hpp"
#include "stages/pixels/row_writer.hpp"
#include "stages/pixels/store.hpp"
#include "stages/plan/lowering.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

namespace leat {
namespace stages {
namespace {

// Enough for a photograph of a few megapixels: crop rows, coefficient tables and libjpeg's own buffers. Larger pictures, progressive
// ones above all, take more, out of the part of the budget that is kept for them.
constexpr std::size_t usual_scratch_bytes = std::size_t{4} << 20;

// For each further view: tables and lines of its resampling.
constexpr std::size_t usual_view_scratch_bytes = std::size_t{256} << 10;

// A row that decode() was asked for.
//   decoding   whether the device decodes it; none: it was not to
//   passes     steps of colour that the device does, and the host's
struct left_row {
  std::optional<bool> decoding = std::nullopt;
  std::size_t passes_left = 0;
  std::size_t passes_done = 0;
  bool is_pack = false;

  [[nodiscard]] bool is_decoded_there() const noexcept { return decoding.value_or(false); }
};

// What a decode thread keeps for pictures.
class image_scratch final : public field_scratch {
 public:
  explicit image_scratch(pixels::scratch_budget& budget) : decoder(budget) {}
  pixels::picture_decoder decoder;
  std::vector<pixels::picture_row> rows;  // of one decode
  std::vector<left_row> left;             // of each program that shares it
  pixels::recipe colour;                  // of a picture that is decoded elsewhere
};

// Passes that the host does whatever is asked for.
bool has_host_passes(const pixels::pipeline& steps) {
  const pixels::recipe all = steps.all_passes();
  return all.host_count() != 0;
}

dimensions shape_of(const datasets::npy_header& header) {
  dimensions shape;
  for (const std::uint64_t axis : header.shape) {
    if (shape.size() == dimensions::rank_max) break;  // No picture in any case.
    shape.push_back(static_cast<std::int64_t>(axis));
  }
  return shape;
}

outcome<pixels::array_pixels> pixels_in(const dimensions& shape, dtype type, const pixels::array_reading& how) {
  outcome<pixels::array_pixels> made = pixels::pixels_of(shape, type, how);
  return made ? made : corrupt(str_cat("an array of ", to_string(shape), " ", made.reason()));
}

// Nothing crops or scales.
bool keeps_size(const std::vector<transform>& steps) {
  return std::none_of(steps.begin(), steps.end(), [](const transform& step) {
    return pixels::is_geometry_step(step) && step.get_if<transforms::random_flip>() == nullptr;
  });
}

// What the member holds where it holds arrays.
//   all   rows of one shape; none: .npy files, each with a shape of its own
struct arrays_of_pixels {
  pixels::array_reading how;
  std::optional<pixels::array_pixels> all;

  friend bool operator==(const arrays_of_pixels&, const arrays_of_pixels&) = default;
};

// Rows of a tensor have a size where the user's steps leave it open.
std::vector<transform> steps_of(const image::settings& settings, const std::optional<arrays_of_pixels>& arrays) {
  std::vector<transform> steps = settings.steps;
  if (arrays && arrays->all && keeps_size(steps)) {
    steps.insert(steps.begin(), transforms::center_crop{arrays->all->height, arrays->all->width});
  }
  return steps;
}

class image_program final : public field_program,
                            choosing_facet,
                            drawing_facet,
                            sharing_facet,
                            leaving_facet,
                            leading_facet,
                            looking_facet,
                            keeping_facet {
 public:
  image_program(const image::settings& settings, std::vector<std::uint16_t> fields,
                std::optional<arrays_of_pixels> arrays, finished_by finished)
      : field_program({}, std::move(fields)),
        arrays_(std::move(arrays)),
        pipeline_(steps_of(settings, arrays_), settings.rounding),
        store_(pixels::store::from(settings.type, settings.order, settings.statistics, settings.channels)),
        options_{.exif_orientation = settings.exif_orientation,
                 .pixels_max = settings.pixels_max,
                 .accept_cut = settings.truncated == truncated_jpeg::accept,
                 .background = settings.background,
                 .array = arrays_ ? arrays_->all : std::nullopt,
                 .decimate = settings.decimate.value_or(pipeline_.geometry_is_random())},
        colour_scratch_bytes_(pixels::row_writer::scratch_bytes_most(pipeline_)),
        group_(settings.group),
        nvjpeg_(settings.decoder == jpeg_decoder::nvjpeg) {
    output_spec output{.name = settings.name, .type = settings.type};
    const std::int64_t height = pipeline_.out_height();
    const std::int64_t width = pipeline_.out_width();
    // Finished on the host or on the device: what a program can load must not depend on where it runs.
    if (!fits_a_picture(static_cast<std::uint64_t>(height), static_cast<std::uint64_t>(width))) {
      throw io::budget_refusal(str_cat("image '", settings.name, "' of ", height, " x ", width,
                                       " pixels: a picture may have ", picture_elements_max / 3,
                                       " of them; give it a smaller size"));
    }
    const std::int64_t channels = settings.channels;
    output.row_shape =
        settings.order == layout::nchw ? dimensions{channels, height, width} : dimensions{height, width, channels};
    const transforms::random_erasing* const erasing = pipeline_.erasing();
    if (erasing != nullptr && erasing->noise && settings.type == dtype::u8) {
      throw error(errc::usage, str_cat("image '", settings.name,
                                       "': random_erasing with noise writes numbers around 0, which u8 has none of; "
                                       "give it a value, or use f32, f16 or bf16"));
    }
    if (erasing != nullptr && !erasing->noise && settings.type == dtype::u8) {
      for (const double value : erasing->value) {
        if (value >= 0 && value <= 255 && value == std::floor(value)) continue;
        throw error(errc::usage, str_cat("image '", settings.name, "': random_erasing with ", value,
                                         ": an element of u8 is a whole number from 0 to 255"));
      }
    }
    const bool edits = has_host_passes(pipeline_);
    // u8 without colour is what crosses the bus in any case.
    const bool by_device = finished != finished_by::host && (settings.type != dtype::u8 || pipeline_.has_colour());
    if (nvjpeg_ && (edits || pipeline_.is_fused())) {
      throw error(errc::usage,
                  str_cat("image '", settings.name, "': ", spelled(option_id::jpeg_decoder, "nvjpeg"),
                          " with an edit, a mix, noise or damage, or fused rounding, which are the host's: leave it "
                          "out, or decode with ",
                          spelled(option_id::jpeg_decoder, "turbo")),
                  option_id::jpeg_decoder);
    }
    if (finished == finished_by::host) passes_stay_ = "pictures are finished on the host";
    const bool photos = finished == finished_by::device_decoding;
    leaves_packs_ = photos;
    const bool slots = photos || (nvjpeg_ && finished != finished_by::host);
    output.axes = settings.order;
    output.picture = true;
    output.unmixed = channels == 1;
    const picture_batch how =
        pictures_of(store_, static_cast<std::uint32_t>(height), static_cast<std::uint32_t>(width));
    if (by_device && pipeline_.has_colour()) programs_ = layout_of(pipeline_);
    if (slots) {
      photos_ = by_device ? std::make_shared<photo_operation>(how, programs_, nvjpeg_)
                          : std::make_shared<photo_operation>(how.height, how.width, settings.order, nvjpeg_);
      output.made_by = photos_;
    } else if (by_device) {
      output.made_by = std::make_shared<picture_operation>(how, programs_);
    }
    const std::string beside = settings.name + (programs_ ? ".steps" : ".mirrored");
    if (by_device) output.made_from = {beside};
    if (output.made_by != nullptr) store_ = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
    options_.leave_flip = options_.leave_colour = by_device;
    if (by_device && !edits) colour_scratch_bytes_ = 0;
    outputs_.push_back(std::move(output));
    if (by_device) {
      output_spec said{.name = beside, .type = dtype::u8};
      if (programs_) said.row_shape = {static_cast<std::int64_t>(programs_->record_bytes)};
      outputs_.push_back(std::move(said));
    }
    // What a fused row is looked up in has usually up to twice its sides.
    if (pipeline_.is_fused()) colour_scratch_bytes_ += std::size_t{12} * static_cast<std::size_t>(height * width);
    facts_.scratch_bytes = usual_scratch_bytes + colour_scratch_bytes_;
    facts_.recodes_packs = pixels::photo_packs_are_recoded();
    facets_.choosing = this;
    // One that draws nothing is compared with the others of its group all the same.
    if (pipeline_.random() || !group_.empty()) facets_.drawing = this;
    facets_.sharing = this;
    facets_.leaving = this;
    if (!group_.empty()) pipeline_ = pipeline_.as_view(group_);
    facets_.leading = this;
    if (photos_ != nullptr) facets_.keeping = this;
    if (pipeline_.looks_at_boxes() != nullptr) facets_.looking = this;
  }

  std::size_t scratch_bytes_beside() const override { return usual_view_scratch_bytes + colour_scratch_bytes_; }
  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget& budget) const override {
    return std::make_unique<image_scratch>(budget);
  }

  outcome<void> decode(field_scratch& scratch, const decode_input& input, std::span<row_target> rows) const override {
    if (nvjpeg_ && photos_ == nullptr) {
      throw error(errc::unsupported,
                  str_cat("image '", outputs_.front().name, "': ", spelled(option_id::jpeg_decoder, "nvjpeg"),
                          " decodes on a device, and this row is to be "
                          "made on the host, where its pixels would be others"));
    }
    if (keeps_ && input.boxes == nullptr) return keep_value(input, rows.back());
    if (facets_.looking != nullptr && input.boxes == nullptr) {
      throw error(errc::usage, str_cat("image '", outputs_.front().name,
                                       "': random_iou_crop looks at boxes, which it is not given here"));
    }
    try {
      auto& own = static_cast<image_scratch&>(scratch);
      const outcome<npy_picture> npy = npy_of(input);
      if (!npy) return npy.error();
      left_row left = leave_to_device(own, input, rows);
      if (!left.is_decoded_there()) {
        const auto result = own.decoder.decode(npy->encoded, pipeline_, key_of(input, input.boxes), store_,
                                               options_of(*npy), begin_pixels(rows), input.stop);
        if (!result) return result.error();
        note_geometry(result->drawn, result->from_row(), result->info, input.geometry);
        leave_steps(*result->colour, result->colour_done, result->to_mirror, rows, left);
      }
      count(left);
      return {};
    } catch (...) {
      if (!pipeline_.calls_functions()) throw;
      throw_from_user(input, outputs_.front().name, "a function of its transforms");
    }
  }

  wanted_bytes bytes_wanted(const datasets::part& of, std::uint64_t seed, std::uint32_t epoch,
                            std::uint64_t draw) const override {
    // Which rows a crop leaves, boxes say, and they are not read yet.
    if (of.photo == nullptr || facets_.looking != nullptr || carries(of.where.stored_bytes)) {
      return wanted_bytes::all_of(of);
    }
    const datasets::photo_range rows =
        photo_bytes_wanted(*of.photo, pipeline_, {.seed = seed, .epoch = epoch, .draw = draw}, options_);
    return {.head_bytes = of.photo->head_bytes, .first = rows.first, .end = rows.end};
  }

  /// Before it is shared. A value out of a block comes before its sample's boxes, which may lie in another: it is kept in the batch until
  /// decode() is asked again, with boxes.
  void keep_values(const datasets::dataset_model& dataset) {
    const bool in_blocks =
        std::any_of(reads_.begin(), reads_.end(), [&](std::uint16_t field) { return lower(dataset, field).in_blocks; });
    keeps_ = facets_.looking != nullptr && in_blocks && staging_row_bytes_of(dataset, *this) == 0;
    if (!keeps_) return;
    outputs_.push_back(kept_value_of(outputs_.front().name));
  }
  /// Likewise.
  void warn(std::string of) { facts_.warning = std::move(of); }

  const std::string& boxes_field() const noexcept override { return pipeline_.looks_at_boxes()->boxes; }
  int row_height() const noexcept override { return pipeline_.out_height(); }
  int row_width() const noexcept override { return pipeline_.out_width(); }
  void place(const decode_input& input, const picture_geometry& of, pixels::placed_picture& out) const override {
    pixels::place(pipeline_, key_of(input, input.boxes), of, out);
  }

  void carry_packs(bool carried) noexcept override { carries_packs_.store(carried, std::memory_order_relaxed); }
  bool decode_held(field_scratch& scratch, const decode_input& input, std::span<row_target> rows) const override {
    try {
      left_row left{.decoding = true, .is_pack = true};
      if (!leave_pack(static_cast<image_scratch&>(scratch), input, rows, slot_rows::none, left)) return false;
      count(left);
      return true;
    } catch (...) {
      if (!pipeline_.calls_functions()) throw;
      throw_from_user(input, outputs_.front().name, "a function of its transforms");
    }
  }

  std::optional<decodes_left> decodes_left_to_device() const override {
    if (photos_ == nullptr) return std::nullopt;
    return decodes_left{.packs = leaves_packs_,
                        .packs_to_device = left_.load(std::memory_order_relaxed),
                        .packs_to_host = not_left_.load(std::memory_order_relaxed),
                        .jpegs_to_device = jpegs_left_.load(std::memory_order_relaxed),
                        .jpegs_to_host = jpegs_not_left_.load(std::memory_order_relaxed)};
  }

  std::optional<passes_left> passes_left_to_device() const override {
    if (!pipeline_.has_colour()) return std::nullopt;
    return passes_left{.to_device = passes_left_.load(std::memory_order_relaxed),
                       .to_host = passes_done_.load(std::memory_order_relaxed),
                       .why_host = passes_stay_};
  }

  void set_view(std::uint32_t number) override { pipeline_ = pipeline_.as_view(number); }
  std::string_view group() const noexcept override { return group_; }
  bool varies() const noexcept override { return pipeline_.varies(); }
  std::vector<double> geometry_probes() const override {
    return pixels::geometry_probes(pipeline_, options_.exif_orientation);
  }
  bool decodes_with(const field_program& first) const override {
    const auto* const other = dynamic_cast<const image_program*>(&first);
    return other != nullptr && other->nvjpeg_ == nvjpeg_ && !(nvjpeg_ && photos_ != nullptr) &&
           other->reads_ == reads_ && other->keeps_ == keeps_ && other->arrays_ == arrays_ &&
           other->options_.exif_orientation == options_.exif_orientation &&
           other->options_.pixels_max == options_.pixels_max && other->options_.accept_cut == options_.accept_cut &&
           other->options_.background == options_.background;
  }
  bool decode_together(field_scratch& scratch, const decode_input& input,
                       std::span<const decode_share> all) const override {
    auto& own = static_cast<image_scratch&>(scratch);
    const outcome<npy_picture> npy = npy_of(input);
    if (!npy) return false;
    try {
      own.rows.clear();
      own.left.clear();
      for (const decode_share& each : all) {
        const auto& program = static_cast<const image_program&>(*each.program);
        if (program.facets_.looking != nullptr && each.boxes == nullptr) return false;  // decode() says so
        decode_input its = input;
        its.boxes = each.boxes;
        its.geometry = each.geometry;
        own.left.push_back(program.leave_to_device(own, its, each.rows));
        if (own.left.back().is_decoded_there()) continue;
        own.rows.push_back({.steps = &program.pipeline_,
                            .key = key_of(input, each.boxes),
                            .how = &program.store_,
                            .options = program.options_of(*npy),
                            .row = program.begin_pixels(each.rows)});
      }
      if (!own.rows.empty() && !own.decoder.decode_rows(npy->encoded, own.rows, input.stop)) return false;
      const pixels::picture_row* made = own.rows.data();
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (own.left[i].is_decoded_there()) continue;
        note_geometry(made->drawn, pixels::followed(made->drawn.from_row(), made->colour->from_row()), made->info,
                      all[i].geometry);
        static_cast<const image_program&>(*all[i].program)
            .leave_steps(*made->colour, made->colour_done, made->to_mirror, all[i].rows, own.left[i]);
        ++made;
      }
      for (std::size_t i = 0; i < all.size(); ++i) {
        static_cast<const image_program&>(*all[i].program).count(own.left[i]);
      }
      return true;
    } catch (...) {
      const bool calls = std::any_of(all.begin(), all.end(), [](const decode_share& each) {
        return static_cast<const image_program&>(*each.program).pipeline_.calls_functions();
      });
      if (!calls) throw;
      return false;  // The decode of each alone says whose it was.
    }
  }

 private:
  static pixels::draw_key key_of(const decode_input& input, const pixels::picture_boxes* boxes) noexcept {
    return {.seed = input.seed, .epoch = input.epoch, .draw = input.draw, .boxes = boxes};
  }

  // The member's bytes; of a .npy those of its elements, and how they lie.
  struct npy_picture {
    std::span<const std::byte> encoded;
    std::optional<pixels::array_pixels> array;
  };
  outcome<npy_picture> npy_of(const decode_input& input) const {
    if (!arrays_ || arrays_->all) return npy_picture{input.encoded, options_.array};
    try {
      const datasets::npy_header header = datasets::read_npy_header(outputs_.front().name, input.encoded);
      const outcome<pixels::array_pixels> array = pixels_in(shape_of(header), header.type, arrays_->how);
      if (!array) return array.error();
      return npy_picture{input.encoded.subspan(header.data_offset, header.data_bytes), *array};
    } catch (const error& failure) {
      return corrupt(failure.what());
    }
  }
  pixels::decode_options options_of(const npy_picture& npy) const {
    pixels::decode_options options = options_;
    options.array = npy.array;
    return options;
  }

  // Puts what the device decodes into the row as it is. What it does not is to be decoded, from begin_pixels() on.
  left_row leave_to_device(image_scratch& own, const decode_input& input, std::span<row_target> rows) const {
    left_row left;
    if (photos_ == nullptr || arrays_) return left;
    const pixels::format what = pixels::format_of(input.encoded);
    left.is_pack = what == pixels::format::photo_pack;
    if (nvjpeg_ && what == pixels::format::jpeg) {
      left.decoding = leave_jpeg(own, input, rows, left);
    } else if (leaves_packs_ && left.is_pack) {
      left.decoding = (carries(input.encoded.size()) && leave_pack(own, input, rows, slot_rows::all, left)) ||
                      leave_pack(own, input, rows, slot_rows::decoded, left);
    }
    return left;
  }
  // Of a pack that is longer than its slot no row can carry all.
  bool carries(std::uint64_t pack_bytes) const {
    return carries_packs_.load(std::memory_order_relaxed) && pack_bytes <= outputs_.front().decoded_row_bytes();
  }
  std::byte* begin_pixels(std::span<row_target> rows) const {
    const std::span<std::byte> row = own_row(rows);
    if (photos_ == nullptr) return row.data();
    write_pixels_slot(row);
    return row.data() + photo_slot_bytes;
  }
  // Where a decode is shared, the first of several slots is given the whole row.
  std::span<std::byte> own_row(std::span<row_target> rows) const {
    return rows.front().bytes.first(outputs_.front().decoded_row_bytes());
  }

  // By headers and sizes alone, so that every run decides alike.
  bool leave_jpeg(image_scratch& own, const decode_input& input, std::span<row_target> rows, left_row& left) const {
    const pixels::byte_span file = pixels::plain_jpeg(input.encoded);
    if (file.empty()) return false;
    const auto info =
        pixels::peek(file, options_.exif_orientation ? pixels::look_for::orientation : pixels::look_for::size);
    if (!info || std::int64_t{info->width} * info->height > options_.pixels_max) return false;
    const auto [width, height] = pixels::orientation(info->orientation).size(info->width, info->height);
    const pixels::draw_key key = key_of(input, input.boxes);
    pixels::geometry drawn = pipeline_.compile(width, height, key, info->orientation);
    if (drawn.is_of_host()) return false;
    pipeline_.draw_colour(key, own.colour);
    const bool to_mirror = options_.leave_flip && drawn.flip && !own.colour.sees_sides();
    if (to_mirror) drawn.flip = false;
    const std::optional<photo_plan> plan = plan_jpeg(*info, drawn);
    if (!plan || plan->scratch_bytes > photos_->photo_scratch_bytes() || !write_jpeg_slot(*plan, file, own_row(rows))) {
      return false;
    }
    leave_steps(own.colour, 0, to_mirror, rows, left);
    note_geometry(input, *info);
    return true;
  }

  // Checks it. What is edited is decoded here.
  bool leave_pack(image_scratch& own, const decode_input& input, std::span<row_target> rows, slot_rows what,
                  left_row& left) const {
    const pixels::draw_key key = key_of(input, input.boxes);
    pipeline_.draw_colour(key, own.colour);
    pixels::decode_options options = options_;
    options.leave_flip = options_.leave_flip && !own.colour.sees_sides();
    const std::optional<pixels::undecoded_photo> photo =
        own.colour.host_count() == 0 ? own.decoder.look_at_photo(input.encoded, pipeline_, key, options, input.stop)
                                     : std::nullopt;
    const std::optional<photo_plan> plan =
        photo ? plan_photo(photo->layout, photo->info, photo->drawn, photo->decimation) : std::nullopt;
    if (!plan || plan->scratch_bytes > photos_->photo_scratch_bytes() ||
        !write_photo_slot(*plan, photo->layout.pack, own_row(rows), what)) {
      return false;
    }
    leave_steps(own.colour, 0, photo->to_mirror, rows, left);
    note_geometry(input, photo->info);
    return true;
  }

  void note_geometry(const pixels::geometry& drawn, const pixels::warp_matrix& from_row,
                     const pixels::picture_info& info, picture_geometry* to) const {
    if (to == nullptr) return;
    *to =
        pixels::geometry_of(drawn, from_row, info.width, info.height, options_.exif_orientation ? info.orientation : 1);
  }
  // Of what the device decodes.
  void note_geometry(const decode_input& input, const pixels::picture_info& info) const {
    if (input.geometry == nullptr) return;
    *input.geometry = pixels::geometry_of(pipeline_, key_of(input, input.boxes), info.width, info.height,
                                          options_.exif_orientation ? info.orientation : 1);
  }

  // Says what is left to the device. Throws what a user's lookup throws.
  void leave_steps(const pixels::recipe& colour, std::size_t done, bool to_mirror, std::span<row_target> rows,
                   left_row& left) const {
    if (programs_) {
      write_program(*programs_, colour, done, to_mirror, rows[1].bytes);
    } else if (options_.leave_flip) {
      rows[1].bytes[0] = std::byte{to_mirror};
    }
    const std::size_t all = colour.count + (colour.erased ? 1 : 0);
    left.passes_done = programs_ ? done : all;
    left.passes_left = all - left.passes_done;
  }
  // Of a row that is made: what throws before that is made once more, or is no row.
  void count(const left_row& left) const {
    const auto add = [](std::atomic<std::uint64_t>& to, std::size_t what) {
      if (what != 0) to.fetch_add(what, std::memory_order_relaxed);
    };
    add(passes_left_, left.passes_left);
    add(passes_done_, left.passes_done);
    if (!left.decoding) return;
    add(left.is_pack ? (*left.decoding ? left_ : not_left_) : (*left.decoding ? jpegs_left_ : jpegs_not_left_), 1);
  }

  std::optional<arrays_of_pixels> arrays_;  // none: the member holds encoded pictures
  pixels::pipeline pipeline_;
  pixels::store store_;
  pixels::decode_options options_;
  std::size_t colour_scratch_bytes_;
  const std::string group_;
  const bool nvjpeg_;
  bool keeps_ = false;
  bool leaves_packs_ = false;
  std::atomic<bool> carries_packs_ = false;
  std::string_view passes_stay_ =
      "an edit, a mix, noise or damage, and what comes before it, is the host's";  // why some are done here
  std::optional<program_layout> programs_;         // none: nothing but mirroring is left to a device
  std::shared_ptr<const photo_operation> photos_;  // null: all is decoded here
  mutable std::atomic<std::uint64_t> passes_left_ = 0;
  mutable std::atomic<std::uint64_t> passes_done_ = 0;
  mutable std::atomic<std::uint64_t> left_ = 0;
  mutable std::atomic<std::uint64_t> not_left_ = 0;
  mutable std::atomic<std::uint64_t> jpegs_left_ = 0;
  mutable std::atomic<std::uint64_t> jpegs_not_left_ = 0;
};

// Doubles are written with the fewest digits that tell them apart.
std::string text_of(double value) {
  std::array<char, 32> digits{};
  const std::to_chars_result end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), end.ptr};
}
std::string_view text_of(filter how) {
  constexpr std::string_view names[] = {"nearest", "bilinear", "bicubic"};
  return names[static_cast<std::size_t>(how)];
}
std::string text_of(const transforms::random_resized_crop& step) {
  return str_cat("random_resized_crop to ", step.height, " x ", step.width, ", scale ", text_of(step.scale[0]), " to ",
                 text_of(step.scale[1]), ", ratio ", text_of(step.ratio[0]), " to ", text_of(step.ratio[1]), ", ",
                 text_of(step.how));
}
std::string text_of(const transforms::resize& step) {
  return step.shorter_side != 0 ? str_cat("resize of the shorter side to ", step.shorter_side, ", ", text_of(step.how))
                                : str_cat("resize to ", step.height, " x ", step.width, ", ", text_of(step.how));
}
// Saved runs without it pad with zeros.
template <class Step>
std::string padding_of(const Step& step) {
  constexpr std::string_view modes[] = {"constant", "edge", "reflect"};
  std::string text;
  if (step.fill != std::array<int, 3>{}) {
    text = str_cat(", fill ", step.fill[0], "/", step.fill[1], "/", step.fill[2]);
  }
  if (step.mode != padding_mode::constant) text += str_cat(", ", modes[static_cast<std::size_t>(step.mode)]);
  return text;
}
std::string text_of(const transforms::center_crop& step) {
  constexpr std::string_view corners[] = {"", ", top left", ", top right", ", bottom left", ", bottom right"};
  return str_cat("center_crop to ", step.height, " x ", step.width, padding_of(step),
                 corners[static_cast<std::size_t>(step.position)]);
}
std::string text_of(const transforms::random_crop& step) {
  return str_cat("random_crop to ", step.height, " x ", step.width, ", padding ", step.padding, padding_of(step));
}
std::string text_of(const transforms::random_flip& step) {
  return str_cat("random_flip with probability ", text_of(step.probability));
}
// Saved runs have crops, resizes and flips in the words above; colour is written as parse_transforms() reads it.
std::string description_of(const transform& step) {
  return std::visit(
      [&]<class Step>(const Step& each) {
        if constexpr (requires { text_of(each); }) {
          return text_of(each);
        } else {
          return to_string(step);
        }
      },
      step.what());
}

class image_model final : public one_program_field {
 public:
  explicit image_model(image::settings settings) : settings_(std::move(settings)) {}

  const std::string& name() const noexcept override { return settings_.name; }
  void describe(description& out) const override {
    out.add("kind", "image");
    out.add("member", settings_.member);
    std::size_t number = 0;
    for (const transform& step : settings_.steps) {
      out.add(str_cat("step ", ++number), description_of(step));
    }
    out.add("type", leat::name(reads_wide(settings_) ? wide_type(settings_) : settings_.type));
    out.add("layout", settings_.order == layout::nchw ? "nchw" : "nhwc");
    if (settings_.statistics) {
      for (const double mean : settings_.statistics->mean) out.add("mean", mean);
      for (const double deviation : settings_.statistics->deviation) out.add("deviation", deviation);
    }
    out.add("exif_orientation", settings_.exif_orientation);
    out.add("decimate",
            settings_.decimate.value_or(!keeps_size(settings_.steps) &&
                                        pixels::pipeline(settings_.steps, settings_.rounding).geometry_is_random()));
    // Saved runs without it are exact.
    if (settings_.rounding == pixel_rounding::fused) out.add("rounding", "fused");
    out.add("pixels_max", settings_.pixels_max);
    // Saved runs without it refuse.
    if (settings_.truncated == truncated_jpeg::accept) out.add("truncated", "accept");
    // Saved runs without it drop alpha.
    if (settings_.background) {
      for (const std::uint8_t channel : *settings_.background) out.add("background", std::uint64_t{channel});
    }
    // Saved runs without them take arrays as their shape says.
    if (settings_.stored) out.add("stored", *settings_.stored == layout::nchw ? "nchw" : "nhwc");
    if (settings_.white) out.add("white", *settings_.white);
    // Saved runs without it are numbered.
    if (!settings_.group.empty()) out.add("together", settings_.group);
    // Saved runs without it have three.
    if (settings_.channels != 3) out.add("channels", settings_.channels);
    // Saved runs without it have 8.
    if (settings_.bits != 8) out.add("bits", settings_.bits);
    // Saved runs without it are turbo's.
    if (settings_.decoder == jpeg_decoder::nvjpeg) out.add("decoder", "nvjpeg");
  }
  bool needs_nvjpeg() const noexcept override { return settings_.decoder == jpeg_decoder::nvjpeg; }
  std::unique_ptr<field_program> program(const datasets::dataset_model& dataset, finished_by finished) const override {
    if (settings_.channels == 1) refuse_nvjpeg("of grey pictures, which are made on the host");
    std::vector<std::string_view> names{settings_.member};
    if (settings_.member == "jpg") {
      const std::span<const std::string_view> any = datasets::picture_names();
      names.assign(any.begin(), any.end());
    }
    std::vector<std::uint16_t> fields = find_fields(dataset, names);
    if (fields.empty()) throw_no_field(dataset, settings_.member, settings_.name);
    const std::uint16_t first = fields.front();
    std::erase_if(fields, [&](std::uint16_t field) { return holds_no_pictures(dataset, field); });
    if (fields.empty()) throw_wrong_kind(dataset.fields()[first], settings_.name);
    std::optional<arrays_of_pixels> arrays = arrays_in(dataset, fields.front());
    if (reads_wide(settings_)) {
      if (arrays) {
        throw error(errc::usage, str_cat("image '", settings_.name, "' of '", dataset.fields()[fields.front()].name,
                                         "': bits() and channels() read PNG and TIFF, and this is an array; "
                                         "leat::array reads it as it is"));
      }
      return make_wide_image(settings_, std::move(fields));
    }
    if (arrays) {
      fields.resize(1);
      refuse_nvjpeg("of arrays, which are decoded already");
    } else {
      std::erase_if(fields, [&](std::uint16_t field) { return arrays_in(dataset, field).has_value(); });
    }
    std::string warning = arrays ? std::string() : numbers_lost(dataset, fields.front());
    // Devices finish three channels.
    auto made = std::make_unique<image_program>(settings_, std::move(fields), std::move(arrays),
                                                settings_.channels == 1 ? finished_by::host : finished);
    if (!warning.empty()) made->warn(std::move(warning));
    made->keep_values(dataset);
    return made;
  }

 private:
  // Nothing where the member may hold encoded pictures.
  [[nodiscard]] std::optional<arrays_of_pixels> arrays_in(const datasets::dataset_model& dataset,
                                                          std::uint16_t field) const {
    const field_info& info = dataset.fields()[field];
    const pixels::array_reading how{settings_.stored, settings_.white};
    if (info.kind == field_kind::tokens) throw_wrong_kind(info, settings_.name);
    if (holds_npy_files(dataset, field)) {
      const datasets::npy_header first = first_npy(dataset, field);
      static_cast<void>(checked(info, pixels_in(shape_of(first), first.type, how)));
      return arrays_of_pixels{how, std::nullopt};
    }
    if (info.kind != field_kind::tensor) return std::nullopt;
    if (info.type == dtype::u8 && info.shape.size() == 1 && has_encoded_pictures(dataset, field)) return std::nullopt;
    return arrays_of_pixels{how, checked(info, pixels_in(info.shape, info.type, how))};
  }
  [[nodiscard]] pixels::array_pixels checked(const field_info& info, const outcome<pixels::array_pixels>& made) const {
    if (made) return *made;
    throw error(errc::usage, str_cat("image '", settings_.name, "' of '", info.name, "': ", made.reason(),
                                     "; leat::array reads them as they are"));
  }
  static bool has_encoded_pictures(const datasets::dataset_model& dataset, std::uint16_t field,
                                   std::uint64_t samples = samples_looked_at) {
    if (lower(dataset, field).is_awaited) return true;
    return look_at_first_values(
               dataset, field,
               [](std::span<const std::byte> bytes) -> std::string {
                 return pixels::is_read(pixels::format_of(bytes)) ? "" : "no picture";
               },
               samples)
        .empty();
  }
  // What becomes of a PNG of numbers: a mask or a depth, most likely. Looks at one sample of a member that is called so.
  [[nodiscard]] std::string numbers_lost(const datasets::dataset_model& dataset, std::uint16_t field) const {
    const std::string& member = settings_.member;
    if (!(member == "png" || member.ends_with(".png")) || lower(dataset, field).is_awaited) return {};
    std::string_view what;
    std::string_view also;
    static_cast<void>(look_at_first_values(
        dataset, field,
        [&](std::span<const std::byte> bytes) -> std::string {
          if (pixels::format_of(bytes) != pixels::format::png) return "no PNG";
          const pixels::png_samples samples = pixels::samples_of(bytes);
          what = samples.is_palette                            ? "indexes of a palette become its colours"
                 : samples.bits == 16 && samples.channels == 1 ? "of 16 bits of grey the lower 8 are dropped"
                                                               : "";
          if (samples.bits == 16) also = ", and .bits(16) the picture's";
          return "";
        },
        1));
    if (what.empty()) return {};
    return str_cat("image '", settings_.name, "' of '", member, "': ", what, "; leat::mask{\"", member,
                   "\"}.follows(...) keeps the numbers", also);
  }
  // Texts, numbers, and bytes that are elements of another type. A name promises a kind, and a column of a table has that of its first
  // value: pictures among the next ones are pictures. Other bytes may be any.
  static bool holds_no_pictures(const datasets::dataset_model& dataset, std::uint16_t field) {
    constexpr std::uint64_t samples = 16;
    const field_info& info = dataset.fields()[field];
    if (info.kind == field_kind::bytes) return info.type != dtype::u8;
    const bool is_other = info.kind == field_kind::text || info.kind == field_kind::label;
    return is_other && dataset.size() != 0 && !has_encoded_pictures(dataset, field, samples);
  }
  void refuse_nvjpeg(std::string_view why) const {
    if (settings_.decoder != jpeg_decoder::nvjpeg) return;
    throw error(errc::usage,
                str_cat("image '", settings_.name, "': ", spelled(option_id::jpeg_decoder, "nvjpeg"), " ", why,
                        "; leave it out"),
                option_id::jpeg_decoder);
  }

  image::settings settings_;
};

}  // namespace
}  // namespace stages

image::image(std::string name) { settings_.name = settings_.member = std::move(name); }

image image::from(std::string member) const {
  image changed = *this;
  changed.settings_.member = std::move(member);
  return changed;
}
image image::apply(transform step) const {
  image changed = *this;
  changed.settings_.steps.push_back(std::move(step));
  return changed;
}
image image::random_resized_crop(int size, std::array<double, 2> scale, std::array<double, 2> ratio, filter how) const {
  return apply(
      transforms::random_resized_crop{.height = size, .width = size, .scale = scale, .ratio = ratio, .how = how});
}
image image::resize(int shorter_side, filter how) const {
  return apply(transforms::resize{.shorter_side = shorter_side, .height = 0, .width = 0, .how = how});
}
image image::resize(int height, int width, filter how) const {
  return apply(transforms::resize{.shorter_side = 0, .height = height, .width = width, .how = how});
}
image image::letterbox(int size, int fill) const {
  return apply(transforms::letterbox{.height = size, .width = size, .fill = {fill, fill, fill}});
}
image image::longest_side(int size, filter how) const {
  return apply(transforms::longest_side{.size = size, .how = how});
}
image image::smallest_side(int size, filter how) const {
  return apply(transforms::smallest_side{.size = size, .how = how});
}
image image::random_scale(std::array<double, 2> factor) const { return apply(transforms::random_scale{factor}); }
image image::pad_to(transforms::pad_to how) const { return apply(how); }
image image::center_crop(int size) const { return apply(transforms::center_crop{.height = size, .width = size}); }
image image::random_crop(int size, int padding) const {
  return apply(transforms::random_crop{.height = size, .width = size, .padding = padding});
}
image image::random_flip(double probability) const {
  return apply(transforms::random_flip{.probability = probability});
}
image image::augment(std::string_view steps) const {
  image changed = *this;
  for (transform& step : parse_transforms(steps)) changed.settings_.steps.push_back(std::move(step));
  return changed;
}
image image::brightness(std::array<double, 2> factor) const { return apply(transforms::brightness{factor}); }
image image::contrast(std::array<double, 2> factor) const { return apply(transforms::contrast{factor}); }
image image::saturation(std::array<double, 2> factor) const { return apply(transforms::saturation{factor}); }
image image::hue(std::array<double, 2> shift) const { return apply(transforms::hue{shift}); }
image image::gamma(std::array<double, 2> exponent) const { return apply(transforms::gamma{exponent}); }
image image::color_jitter(double brightness, double contrast, double saturation, double hue) const {
  return apply(transforms::color_jitter{brightness, contrast, saturation, hue});
}
image image::grayscale() const { return apply(transforms::grayscale{}); }
image image::invert() const { return apply(transforms::invert{}); }
image image::posterize(int bits) const { return apply(transforms::posterize{bits}); }
image image::solarize(int threshold) const { return apply(transforms::solarize{threshold}); }
image image::autocontrast() const { return apply(transforms::autocontrast{}); }
image image::equalize() const { return apply(transforms::equalize{}); }
image image::sharpness(std::array<double, 2> factor) const { return apply(transforms::sharpness{factor}); }
image image::gaussian_blur(int kernel, std::array<double, 2> sigma) const {
  return apply(transforms::gaussian_blur{kernel, sigma});
}
image image::channel_permutation() const { return apply(transforms::channel_permutation{}); }
image image::lookup(std::string name, std::function<table(draws&)> make) const {
  return apply(transforms::lookup{std::move(name), std::move(make)});
}
image image::edit(std::string name, std::function<std::string(draws&, planes)> change) const {
  return apply(transforms::edit{std::move(name), std::move(change)});
}
image image::rotate(double degrees) const { return rotate(degrees, degrees); }
image image::rotate(double from, double to) const { return apply(transforms::rotate{.degrees = {from, to}}); }
image image::affine(transforms::affine how) const { return apply(how); }
image image::perspective(double distortion) const { return apply(transforms::perspective{.distortion = distortion}); }
image image::vertical_flip() const { return apply(transforms::vertical_flip{}); }
image image::rand_augment(transforms::rand_augment how) const { return apply(how); }
image image::trivial_augment(transforms::trivial_augment how) const { return apply(how); }
image image::auto_augment(learned_policy policy) const { return apply(transforms::auto_augment{.policy = policy}); }
image image::random_apply(double probability, std::vector<transform> steps) const {
  return apply(transforms::random_apply{probability, std::move(steps)});
}
image image::one_of(std::vector<transform> steps, std::vector<double> weights) const {
  return apply(transforms::one_of{std::move(steps), std::move(weights)});
}
image image::in_random_order(std::vector<transform> steps) const {
  return apply(transforms::in_random_order{std::move(steps)});
}
image image::random_erasing(double probability, std::array<double, 2> scale, std::array<double, 2> ratio,
                            double value) const {
  return apply(transforms::random_erasing{probability, scale, ratio, {value, value, value}});
}

image image::normalize(const normalization& statistics) const {
  image changed = *this;
  changed.settings_.statistics = statistics;
  return changed;
}
image image::as(dtype type) const {
  image changed = *this;
  changed.settings_.type = type;
  changed.settings_.typed = true;
  return changed;
}
image image::as(layout order) const {
  image changed = *this;
  changed.settings_.order = order;
  return changed;
}
image image::truncated(truncated_jpeg how) const {
  image changed = *this;
  changed.settings_.truncated = how;
  return changed;
}
image image::background(int red, int green, int blue) const {
  image changed = *this;
  std::array<std::uint8_t, 3>& colour = changed.settings_.background.emplace();
  const std::array<int, 3> wanted{red, green, blue};
  for (std::size_t c = 0; c < wanted.size(); ++c) {
    if (wanted[c] < 0 || wanted[c] > 255) {
      throw error(errc::usage, str_cat("image '", settings_.name, "': background with ", wanted[c],
                                       ": a channel is a number from 0 to 255"));
    }
    colour[c] = static_cast<std::uint8_t>(wanted[c]);
  }
  return changed;
}
image image::exif_orientation(bool on) const {
  image changed = *this;
  changed.settings_.exif_orientation = on;
  return changed;
}
image image::stored(layout order) const {
  image changed = *this;
  changed.settings_.stored = order;
  return changed;
}
image image::white(double number) const {
  if (!(number > 0) || !std::isfinite(number)) {
    throw error(errc::usage, str_cat("image '", settings_.name, "': white with ", number, ": a number above 0"));
  }
  image changed = *this;
  changed.settings_.white = number;
  return changed;
}
image image::rounding(pixel_rounding how) const {
  image changed = *this;
  changed.settings_.rounding = how;
  return changed;
}
image image::decimate(bool on) const {
  image changed = *this;
  changed.settings_.decimate = on;
  return changed;
}
image image::decoder(jpeg_decoder which) const {
  image changed = *this;
  changed.settings_.decoder = which;
  return changed;
}
image image::pixels_max(std::int64_t pixels) const {
  image changed = *this;
  changed.settings_.pixels_max = pixels;
  return changed;
}
image image::together(std::string group) const {
  if (group.empty()) throw error(errc::usage, str_cat("image '", settings_.name, "': together() with no name"));
  image changed = *this;
  changed.settings_.group = std::move(group);
  return changed;
}
image::operator field() const { return field(std::make_shared<stages::image_model>(settings_)); }

}  // namespace leat

// leat show: a contact sheet of a batch, each picture as the trainer will see it beside its original.
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/views/token_windows.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/pixels/orientation.hpp"
#include "stages/pixels/picture_decoder.hpp"
#include "stages/pixels/recipe.hpp"
#include "stages/plan/run_spec.hpp"
#include "stages/run/loader_parts.hpp"
#include "tools/arguments.hpp"
#include "tools/array_picture.hpp"
#include "tools/batch_files.hpp"
#include "tools/class_counts.hpp"
#include "tools/draw_targets.hpp"
#include "tools/fields.hpp"
#include "tools/human.hpp"
#include "tools/jpeg_encode.hpp"
#include "tools/order_choice.hpp"
#include "tools/output.hpp"
#include "tools/pixels_back.hpp"
#include "tools/row_text.hpp"
#include "tools/sheet.hpp"
#include "tools/sources.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"
#include "tools/where_option.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>

#include <sys/mman.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

struct show_arguments {
  std::vector<std::string> sources;
  std::string out;
  picture_options pictures;
  window_options windows;
  order_options order;
  order_choice choice;
  open_options opening;
  std::string where;
  std::uint32_t epoch = 0;
  std::uint64_t batch = 0;
  std::optional<std::uint64_t> sample;  // each step of it instead of a batch
  std::uint32_t threads = 0;
  std::uint64_t host_bytes_max = 0;  // the loader's choice
};

// Originals that are larger are on no page as they are, and of smaller ones a page may have no use for a yet smaller JPEG.
constexpr std::size_t original_bytes_max = std::size_t{400} << 10;
constexpr std::size_t original_bytes_small = std::size_t{12} << 10;
// Of an array's row and of a window of tokens.
constexpr std::int64_t numbers_max = 12;
constexpr std::int64_t tokens_max = 48;

/// The loader's journal, in memory: it knows why a sample is not in the batch.
class journal_in_memory {
 public:
  journal_in_memory() : fd_(::memfd_create("journal", MFD_CLOEXEC)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
  journal_in_memory(const journal_in_memory&) = delete;
  journal_in_memory& operator=(const journal_in_memory&) = delete;
  ~journal_in_memory() { ::close(fd_); }

  [[nodiscard]] std::string path() const { return str_cat("/proc/self/fd/", fd_); }

  [[nodiscard]] std::map<std::uint64_t, std::string> reasons() const {
    std::map<std::uint64_t, std::string> found;
    std::ifstream lines(path());
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json entry = nlohmann::json::parse(line);
      found[entry.at("sample").get<std::uint64_t>()] = entry.at("reason").get<std::string>();
    }
    return found;
  }

 private:
  int fd_;
};

/// The batch, and what should have been in it.
///   words   "first batch", "batch 4 of epoch 1"
struct shown_batch {
  std::string words = "first batch";
  std::vector<pick> planned;
  std::optional<batch> delivered;
  std::map<std::uint64_t, std::string> reasons;

  /// The row of planned sample number `place`: rows stand in the order of the plan, without those left out.
  [[nodiscard]] std::vector<std::optional<std::size_t>> rows() const {
    std::vector<std::optional<std::size_t>> found(planned.size());
    std::size_t row = 0;
    for (std::size_t place = 0; delivered && place < planned.size() && row < delivered->ids().size(); ++place) {
      if (delivered->ids()[row] == planned[place].sample) found[place] = row++;
    }
    return found;
  }
};

shown_batch load_shown(const dataset& samples, const show_arguments& arguments, const chosen_fields& fields,
                       interruption& stop) {
  const journal_in_memory journal;
  loader_options options;
  set_order(options, arguments.order, arguments.pictures, arguments.choice, arguments.sources.size());
  options.prefetch_batches = 1;
  options.decode_threads = arguments.threads;
  options.host_bytes_max = arguments.host_bytes_max;
  options.on_corrupt = corrupt_policy::skip;
  options.unreadable_max = options.batch_size;  // Each is shown with its reason.
  options.journal = journal.path();
  const stages::batch_place place{arguments.epoch, arguments.batch};
  shown_batch shown;
  if (place.epoch != 0 || place.index != 0) shown.words = str_cat("batch ", place.index, " of epoch ", place.epoch);
  const stages::run_spec run(samples, fields.all, options);
  if (run.batches(place.epoch) == 0) return shown;

  stages::loader_parts parts;
  parts.only = place;
  loader train = set_up([&] { return stages::make_loader(samples, options, fields.all, parts); });
  for (const std::string& each : train.plan().warnings) complain("show", str_cat("warning: ", each));
  run.pick_rows(place.epoch, place.index, shown.planned);
  const std::stop_callback stopping(stop.token(), [&train] { train.stop(); });
  shown.delivered = train.next_blocking();
  shown.reasons = journal.reasons();
  return shown;
}

// The bytes of the member that the picture field takes: the first that the sample has.
std::vector<std::byte> read_picture(const dataset& samples, std::uint64_t sample, const std::string& field) {
  std::vector<std::string> names{field};
  if (field == "jpg") names.assign(datasets::picture_names().begin(), datasets::picture_names().end());
  for (const std::string& name : names) {
    try {
      return samples.read(sample, name);
    } catch (const error& failure) {
      if (failure.code() != errc::not_found || &name == &names.back()) throw;
    }
  }
  return {};
}

/// Decodes once more what the loader has decoded, to see what it drew.
class onlooker {
 public:
  onlooker(const show_arguments& arguments, const image::settings& settings)
      : key_{.seed = arguments.order.seed, .epoch = 0, .draw = 0},
        settings_(settings),
        steps_(settings.steps, settings.rounding),
        options_{.exif_orientation = settings.exif_orientation,
                 .pixels_max = settings.pixels_max,
                 .accept_cut = settings.truncated == truncated_jpeg::accept,
                 .background = settings.background,
                 .decimate = settings.decimate.value_or(steps_.geometry_is_random())},
        budget_(arguments.host_bytes_max != 0 ? arguments.host_bytes_max : host_bytes_usual),
        decoder_(budget_) {}

  /// What was drawn behind the crop, step by step: "rotate from (...), brightness(1.25)". Empty where that is nothing.
  std::string steps_of(const pick& of) {
    key_.draw = of.draw;
    key_.epoch = of.epoch;
    pixels::recipe drawn;
    steps_.draw_steps(key_, drawn);
    std::string text;
    for (const pixels::colour_pass& pass : drawn.drawn()) {
      str_append(text, text.empty() ? "" : ", ", pixels::text_of(pass));
    }
    if (drawn.erased) str_append(text, text.empty() ? "" : ", ", drawn.erased->of->what.name());
    return text;
  }

  /// Fills in original, box, outline, flip and decimation, as far as the bytes allow.
  void look_at(const pick& of, std::vector<std::byte> encoded, sheet_cell& cell) {
    const pixels::outcome<pixels::picture_info> info =
        pixels::peek(encoded, options_.exif_orientation ? pixels::look_for::orientation : pixels::look_for::size);
    if (!info) return;
    const pixels::orientation turn(info->orientation);
    std::tie(cell.original.width, cell.original.height) = turn.size(info->width, info->height);
    key_.draw = of.draw;
    key_.epoch = of.epoch;
    std::vector<std::byte> row(store_.row_bytes(steps_.out_height(), steps_.out_width()));
    const pixels::outcome<pixels::decoded> drawn =
        decoder_.decode(encoded, steps_, key_, store_, options_, row.data(), nullptr);
    if (drawn) {
      cell.box = seen_part(drawn->drawn);
      if (drawn->drawn.warp || drawn->colour->from_row() != pixels::identity_matrix)
        cell.outline = outline_of(drawn->from_row());
      cell.flipped = drawn->drawn.flip;
      cell.decimation = drawn->decimation;
    }
    cell.original.media_type = pixels::media_type(info->what);
    // The page shows files as they are stored: of one that the trainer sees turned it has the small one alone.
    const bool turned = !turn.upright();
    if (turned || encoded.size() > original_bytes_small) shrink(encoded, cell.original, turned);
    if (!turned && encoded.size() <= original_bytes_max) cell.original.file = std::move(encoded);
  }

  /// A cell for the picture as it was cropped and for each step of colour that was drawn, and one for the row.
  ///   throws   error{errc::corrupt} for a picture that cannot be decoded
  void add_steps(const pick& of, const std::vector<std::byte>& encoded, sheet_cell cell,
                 std::vector<sheet_cell>& cells) {
    key_.draw = of.draw;
    key_.epoch = of.epoch;
    pixels::recipe drawn;
    steps_.draw_colour(key_, drawn);
    pixels::recipe some = drawn;
    some.erased.reset();
    some.count = 0;
    const dimensions size{steps_.out_height(), steps_.out_width(), 3};
    cell.seen = made(encoded, some, store_, size);
    look_at(of, encoded, cell);
    std::string first = "cropped, scaled and flipped";
    if (settings_.rounding == pixel_rounding::fused) {
      pixels::recipe all;
      steps_.draw_steps(key_, all);
      for (const pixels::colour_pass& pass : all.drawn()) {
        if (pass.what == pixels::pass_kind::warp) str_append(first, ", ", pixels::text_of(pass));
      }
    }
    cell.texts.emplace_back("step 0", std::move(first));
    cells.push_back(cell);
    sheet_cell next{.sample = cell.sample, .name = cell.name};
    for (std::size_t k = 0; k < drawn.count; ++k) {
      some.add(drawn.passes[k]);
      next.seen = made(encoded, some, store_, size);
      next.texts = {{str_cat("step ", k + 1), pixels::text_of(drawn.passes[k])},
                    {"drawn by", drawn.passes[k].of->name}};
      cells.push_back(next);
    }
    const auto as_delivered = pixels::store::from(settings_.type, settings_.order, settings_.statistics);
    next.seen =
        made(encoded, drawn, as_delivered, settings_.order == layout::nchw ? dimensions{3, size[0], size[1]} : size);
    next.texts = {{"row", str_cat(name(settings_.type), settings_.statistics ? ", normalised" : "", ", and back")}};
    if (drawn.erased) {
      const pixels::rectangle& box = drawn.erased->box;
      next.texts.emplace_back("erased", str_cat(box.width, " × ", box.height, " at ", box.x, ", ", box.y));
    }
    cells.push_back(next);
  }

 private:
  // What the passes make of it, as the trainer sees it.
  rgb_picture made(std::span<const std::byte> encoded, const pixels::recipe& passes, const pixels::store& how,
                   const dimensions& shape) {
    const pixels::outcome<pixels::picture_info> info =
        pixels::peek(encoded, options_.exif_orientation ? pixels::look_for::orientation : pixels::look_for::size);
    if (!info) throw error(errc::corrupt, info.reason());
    const auto [width, height] = pixels::orientation(info->orientation).size(info->width, info->height);
    std::vector<std::byte> row(how.row_bytes(steps_.out_height(), steps_.out_width()));
    const pixels::outcome<pixels::decoded> decoded =
        decoder_.decode(encoded, steps_.compile(width, height, key_), how, options_, row.data(), nullptr, &passes);
    if (!decoded) throw error(errc::corrupt, decoded.reason());
    image::settings as = settings_;
    as.type = how.type;
    as.order = how.order;
    if (how.type == dtype::u8) as.statistics.reset();
    return pixels_back(as, shape, row);
  }

  // The row's frame in the original's pixels.
  static crop_box seen_part(pixels::geometry drawn) {
    drawn.flip = false;
    drawn.warp.reset();
    const pixels::warp_matrix m = drawn.from_row();
    return {.x = m[2], .y = m[5], .width = drawn.out_width * m[0], .height = drawn.out_height * m[4]};
  }

  // Likewise through warps, as far as it lies before the horizon.
  [[nodiscard]] std::vector<std::array<double, 2>> outline_of(const pixels::warp_matrix& from_row) const {
    constexpr double horizon = 1e-3;
    const double right = steps_.out_width();
    const double low = steps_.out_height();
    const std::array<std::array<double, 3>, 4> seen = {
        pixels::seen_from(from_row, 0, 0), pixels::seen_from(from_row, right, 0),
        pixels::seen_from(from_row, right, low), pixels::seen_from(from_row, 0, low)};
    std::vector<std::array<double, 2>> corners;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const std::array<double, 3>& a = seen[i];
      const std::array<double, 3>& b = seen[(i + 1) % seen.size()];
      if (a[2] >= horizon) corners.push_back({a[0] / a[2], a[1] / a[2]});
      if ((a[2] >= horizon) == (b[2] >= horizon)) continue;
      const double part = (horizon - a[2]) / (b[2] - a[2]);
      corners.push_back({(a[0] + part * (b[0] - a[0])) / horizon, (a[1] + part * (b[1] - a[1])) / horizon});
    }
    return corners;
  }

  void shrink(std::span<const std::byte> encoded, original_picture& original, bool whatever_it_takes) {
    const int side = std::max(original.width, original.height);
    const auto scaled = [side](int length) {
      const auto pixels = static_cast<std::int64_t>(length) * std::min(side, original_side_max) / side;
      return static_cast<int>(std::max<std::int64_t>(pixels, 1));
    };
    pixels::geometry whole;
    whole.box = {0, 0, original.width, original.height};
    whole.scaled_width = whole.out_width = scaled(original.width);
    whole.scaled_height = whole.out_height = scaled(original.height);
    std::vector<std::byte> rgb(store_.row_bytes(whole.out_height, whole.out_width));
    const pixels::decode_options how{.exif_orientation = options_.exif_orientation,
                                     .pixels_max = options_.pixels_max,
                                     .accept_cut = options_.accept_cut,
                                     .background = options_.background,
                                     .decimate = true};
    if (!decoder_.decode(encoded, whole, store_, how, rgb.data(), nullptr)) return;
    std::vector<std::uint8_t> file;
    encode_jpeg({reinterpret_cast<const std::uint8_t*>(rgb.data()), rgb.size()},
                static_cast<std::uint32_t>(whole.out_width), static_cast<std::uint32_t>(whole.out_height),
                {.quality = 75, .chroma = jpeg_chroma::yuv420}, file);
    const auto bytes = std::as_bytes(std::span(file));
    if (whatever_it_takes || bytes.size() < encoded.size()) original.small.assign(bytes.begin(), bytes.end());
  }

  pixels::draw_key key_;
  const image::settings settings_;
  const pixels::pipeline steps_;
  const pixels::decode_options options_;
  const pixels::store store_ = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  pixels::scratch_budget budget_;
  pixels::picture_decoder decoder_;
};

bool ends_with(std::string_view path, std::string_view end) {
  return path.size() > end.size() && path.substr(path.size() - end.size()) == end;
}

// "daisy (3)", "3", "0.25": the label as a person would say it.
std::vector<std::string> labels_by_row(const dataset& samples, const std::string& name, const shown_batch& shown) {
  std::vector<std::string> labels;
  if (name.empty() || !shown.delivered) return labels;
  for (const auto& label : labels_of((*shown.delivered)[name])) labels.push_back(label_text(samples, label));
  return labels;
}

/// What the samples are called on the page: "train.bin at offset 2048: tokens 1,024 to 1,088", or their own names.
class namer {
 public:
  namer(const dataset& samples, std::uint64_t seed)
      : samples_(samples),
        of_windows_(samples.size() != 0 && samples.model()->window_of(0).of != nullptr),
        seed_(seed) {}

  [[nodiscard]] std::string operator()(const pick& row) const {
    if (!of_windows_) return samples_.name(row.sample);
    const datasets::window_number at = samples_.model()->window_of(row.sample);
    const datasets::token_window window =
        at.of->window(at.number, {.seed = seed_, .draw = row.draw, .epoch = row.epoch});
    return str_cat(at.of->sources()[window.source]->file_name(window.file), " at offset ", window.offset, ": tokens ",
                   count_text(window.first), " to ", count_text(window.first + window.tokens - 1));
  }
  [[nodiscard]] bool of_windows() const noexcept { return of_windows_; }

 private:
  const dataset& samples_;
  bool of_windows_;
  const std::uint64_t seed_;
};

/// Puts a sheet together, cell by cell.
class sheet_maker {
 public:
  sheet_maker(const dataset& samples, const namer& names, const show_arguments& arguments, const chosen_fields& fields,
              const shown_batch& shown)
      : samples_(samples),
        names_(names),
        fields_(fields),
        shown_(shown),
        rows_(shown.rows()),
        class_label_(class_label_of(fields.labels)),
        labels_(labels_by_row(samples, class_label_, shown)) {
    for (const image& field : fields.pictures) onlookers_.push_back(std::make_unique<onlooker>(arguments, field.get()));
  }

  /// The cells of planned sample number `place`: one per picture field, or one without a picture.
  void add_cells(std::size_t place, std::vector<sheet_cell>& cells) {
    const sheet_cell common = about(place);
    if (fields_.pictures.empty()) cells.push_back(common);
    for (std::size_t k = 0; k < fields_.pictures.size(); ++k) cells.push_back(with_picture(place, k, common));
  }

 private:
  sheet_cell about(std::size_t place) const {
    sheet_cell cell;
    cell.sample = shown_.planned[place].sample;
    cell.name = names_(shown_.planned[place]);
    const std::optional<std::size_t> row = rows_[place];
    if (!row) {
      const auto reason = shown_.reasons.find(cell.sample);
      cell.problem = reason == shown_.reasons.end() ? "not in the batch" : reason->second;
      if (const auto known = samples_.label(cell.sample)) cell.label = label_text(samples_, *known);
      return cell;
    }
    if (*row < labels_.size()) cell.label = labels_[*row];
    for (const std::string& output : shown_.delivered->outputs()) add_field(output, *row, cell);
    return cell;
  }

  // Every output of the batch but the pictures and the class is a text, and one of numbers a drawing besides.
  void add_field(const std::string& name, std::size_t row, sheet_cell& cell) const {
    const auto is_in = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const bool is_picture = std::any_of(fields_.pictures.begin(), fields_.pictures.end(),
                                        [&](const image& each) { return each.get().name == name; });
    // Where rows of unequal length begin.
    const bool is_offsets = name.ends_with(".offsets");
    // They are drawn over the picture.
    const bool is_target = is_in(fields_.masks) || is_target_box(name);
    if (is_picture || is_offsets || is_target || name == class_label_) return;
    const batch& delivered = *shown_.delivered;
    if (is_in(fields_.labels) && delivered[name].shape.size() == 1) {
      cell.texts.emplace_back(name, element_text(delivered[name], row));
    } else if (is_in(fields_.arrays) || is_in(fields_.labels)) {
      cell.texts.emplace_back(name, numbers_text(delivered[name], row, numbers_max));
      if (std::optional<rgb_picture> drawn = draw_row(delivered[name], row)) {
        cell.drawings.emplace_back(name, std::move(*drawn));
      }
    } else if (is_in(fields_.windows)) {
      cell.texts.emplace_back(name, numbers_text(delivered[name], row, tokens_max));
    } else {
      cell.texts.emplace_back(name, bytes_or_text(delivered.bytes(name, row)));
    }
  }

  // Boxes, what came of which and of what class.
  [[nodiscard]] bool is_target_box(std::string_view name) const {
    return std::any_of(fields_.boxes.begin(), fields_.boxes.end(), [&](const std::string& each) {
      return name == each || name == each + ".kept" || name == each + ".labels";
    });
  }

  void add_targets(std::size_t row, sheet_cell& cell) const {
    const batch& delivered = *shown_.delivered;
    for (const std::string& each : fields_.masks)
      draw_mask(delivered[each].type, delivered.bytes(each, row), *cell.seen);
    for (const std::string& each : fields_.boxes) {
      const std::span<const std::string> outputs = delivered.outputs();
      const bool has_labels = std::find(outputs.begin(), outputs.end(), each + ".labels") != outputs.end();
      const std::vector<drawn_box> found =
          boxes_in(delivered.bytes(each, row),
                   has_labels ? delivered.bytes(each + ".labels", row) : std::span<const std::byte>());
      draw_boxes(found, *cell.seen);
      cell.texts.emplace_back(each, text_of(found));
    }
  }

  sheet_cell with_picture(std::size_t place, std::size_t k, sheet_cell cell) {
    const image::settings& settings = fields_.pictures[k].get();
    if (fields_.pictures.size() > 1) str_append(cell.name, "  ", settings.name);
    if (const std::optional<std::size_t> row = rows_[place]) {
      const dimensions all = (*shown_.delivered)[settings.name].shape;
      cell.seen = pixels_back(settings, {all[1], all[2], all[3]}, shown_.delivered->bytes(settings.name, *row));
      if (k == 0) add_targets(*row, cell);
    }
    try {
      if (std::string steps = onlookers_[k]->steps_of(shown_.planned[place]); !steps.empty()) {
        cell.texts.emplace_back("drawn", std::move(steps));
      }
      onlookers_[k]->look_at(shown_.planned[place], read_picture(samples_, cell.sample, settings.name), cell);
    } catch (const error& failure) {
      // The sample's own trouble, which the loader has met too.
      if (cell.problem.empty()) cell.problem = failure.what();
    }
    return cell;
  }

  const dataset& samples_;
  const namer& names_;
  const chosen_fields& fields_;
  const shown_batch& shown_;
  const std::vector<std::optional<std::size_t>> rows_;
  const std::string class_label_;
  const std::vector<std::string> labels_;
  std::vector<std::unique_ptr<onlooker>> onlookers_;
};

std::string_view window_words(window_order order) {
  switch (order) {
    case window_order::shifted:
      return "shifted";
    case window_order::tiled:
      return "tiled";
    case window_order::random:
      return "random";
  }
  return "";
}

// What is shown of a sample, by what it is.
void add_contents(const show_arguments& arguments, const chosen_fields& fields, std::vector<std::string>& facts) {
  const picture_options& pictures = arguments.pictures;
  if (!fields.pictures.empty()) {
    facts.push_back(str_cat(pictures.train ? "train" : "eval", ", ", pictures.size, " × ", pictures.size, " ",
                            name(pictures.type), " ", pictures.order == layout::nchw ? "nchw" : "nhwc"));
    for (const transform& each : pictures.augment) facts.push_back(to_string(each));
  }
  if (!fields.arrays.empty()) {
    facts.push_back(str_cat("of arrays the first ", numbers_max, " numbers of each row"));
  }
  if (!fields.windows.empty()) {
    facts.push_back(str_cat("windows of ", counted(arguments.windows.length, "token", "tokens"), ", ",
                            window_words(arguments.windows.order), ": of each the first ", tokens_max));
  }
}

std::vector<std::string> facts_of(const namer& names, const dataset& samples, const show_arguments& arguments,
                                  const chosen_fields& fields, const shown_batch& shown) {
  std::vector<std::string> facts = {str_cat(shown.words, ": ", count_text(shown.planned.size()), " of ",
                                            names.of_windows() ? counted(samples.size(), "window", "windows")
                                                               : counted(samples.size(), "sample", "samples")),
                                    words_of(arguments.order, arguments.pictures, arguments.choice)};
  add_contents(arguments, fields, facts);
  if (!shown.reasons.empty()) facts.push_back(counted(shown.reasons.size(), "corrupt sample", "corrupt samples"));
  return facts;
}

// One sample, step by step.
sheet sheet_of_sample(const dataset& samples, const show_arguments& arguments, const chosen_fields& fields) {
  const std::uint64_t sample = *arguments.sample;
  if (sample >= samples.size()) {
    throw error(errc::usage,
                str_cat("--sample ", sample, ": there are ", count_text(samples.size()), "; give a number below that"));
  }
  if (fields.pictures.empty()) throw error(errc::usage, "--sample shows the steps of pictures, and there are none");
  // What a loader refuses of the fields is refused here.
  loader_options options;
  set_order(options, arguments.order, arguments.pictures, arguments.choice, arguments.sources.size());
  static_cast<void>(stages::run_spec(samples, fields.all, options));
  const pick of{.sample = sample, .draw = sample, .epoch = arguments.epoch};
  sheet shown;
  shown.facts = {str_cat("sample ", sample, " in epoch ", arguments.epoch, ", seed ", arguments.order.seed)};
  add_contents(arguments, fields, shown.facts);
  for (const image& field : fields.pictures) {
    sheet_cell cell{.sample = sample, .name = samples.name(sample)};
    if (fields.pictures.size() > 1) str_append(cell.name, "  ", field.get().name);
    try {
      onlooker(arguments, field.get())
          .add_steps(of, read_picture(samples, sample, field.get().name), cell, shown.cells);
    } catch (const error& failure) {
      if (failure.code() != errc::corrupt) throw;
      throw error(failure.code(), str_cat("corrupt sample ", sample, " (", cell.name, "): ", failure.what()));
    }
  }
  return shown;
}

int show(const show_arguments& arguments, interruption& stop) {
  const bool png = ends_with(arguments.out, ".png");
  if (!png && !ends_with(arguments.out, ".html") && !ends_with(arguments.out, ".htm")) {
    throw error(errc::usage,
                str_cat("-o '", arguments.out, "' is neither .html (a page) nor .png (a plain grid); name it so"));
  }
  const output_kind kind = png ? output_kind::grid : output_kind::page;
  output_file::check(arguments.out, kind, "-o");
  const auto leave = [&] { complain("show", str_cat("stopped by ", stop.name(), "; nothing was written")); };
  const dataset opened = open_sources(arguments.sources, stop, leave, advise_loading,
                                      {.tokens = arguments.windows.files(),
                                       .opening = arguments.opening,
                                       .one_by_one = !arguments.choice.mixture.empty(),
                                       .images = arguments.pictures.images});
  tell_notes("show", opened);
  const chosen_fields fields = [&] {
    const leaving_at_once leaving(stop, leave);
    return fields_of(opened, arguments.pictures, arguments.windows);
  }();
  for (const std::string& each : fields.warnings) complain("show", each);
  const dataset samples = set_up([&] {
    return samples_where(samples_for_order(arguments.choice, fields), arguments.where, arguments.opening.index);
  });

  sheet shown;
  try {
    const status_line drawing([](const terminal& screen, std::size_t) { return screen.dim("  drawing the batch"); });
    if (arguments.sample) {
      shown = sheet_of_sample(samples, arguments, fields);
    } else {
      const shown_batch drawn = load_shown(samples, arguments, fields, stop);
      const namer names(samples, arguments.order.seed);
      shown.facts = facts_of(names, samples, arguments, fields, drawn);
      sheet_maker maker(samples, names, arguments, fields, drawn);
      for (std::size_t place = 0; place < drawn.planned.size(); ++place) {
        if (stop.requested()) throw error(errc::cancelled, "stopped");
        maker.add_cells(place, shown.cells);
      }
    }
    shown.title = str_cat(shown_source(arguments.sources.front()), arguments.sources.size() > 1 ? " and more" : "");
  } catch (const error& failure) {
    if (!stop.requested() || failure.code() != errc::cancelled) throw;
    leave();
    return stop.exit_code();
  }

  std::vector<std::byte> grid;
  std::string page;
  {
    // Encoding may take a second in which nobody looks at `stop`. Nothing of ours is open or on the disk yet: leave at once.
    const std::stop_callback leaving(stop.token(), [&] {
      leave();
      std::_Exit(stop.exit_code());
    });
    if (png) {
      grid = sheet_png(shown);
    } else {
      page = sheet_html(shown);
    }
  }
  output_file file(arguments.out, kind, output_file::appears::when_closed);
  if (png) {
    file.write(grid);
  } else {
    file.write(page);
  }
  file.close();
  print(str_cat(arguments.out, ": ", shown.facts.front(), "\n"));
  return exit_done;
}

}  // namespace

void add_show(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<show_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("show", "draw the first batch, or any, as the trainer will see it");
  add_sources(app, arguments->sources);
  add_text(app, "-o,--out", arguments->out, "FILE",
           "sheet.html: a page, with originals and crops; sheet.png: a plain grid")
      ->required();
  add_number(app, "--epoch", arguments->epoch, 0, "whose batch, counted from 0 (0)");
  CLI::Option* const batch = add_number(app, "--batch", arguments->batch, 0, "of that epoch, counted from 0 (0)");
  auto sample = std::make_shared<std::uint64_t>(0);
  CLI::Option* const of_sample = add_number(
      app, "--sample", *sample, 0, "instead of a batch: each step of one sample's pictures, with what was drawn");
  of_sample->excludes(batch);
  add_order_options(app, arguments->order);
  add_order_choice(app, arguments->choice);
  add_picture_options(app, arguments->pictures);
  CLI::Option* const tokens = add_window_options(app, arguments->windows);
  add_token_output_option(app, arguments->windows, tokens);
  add_opening_options(app, arguments->opening);
  add_where(app, arguments->where);
  add_number(app, "--threads", arguments->threads, 1, "that decode (one per core, as far as the budget goes)", 1024);
  add_bytes(app, "--host-bytes-max", arguments->host_bytes_max,
            "memory for loading (512MiB, or half of what there is)");
  app.footer(
      "  leat show photos -o sheet.html\n"
      "  leat show photos -o sheet.png --transform eval --batch-size 16\n"
      "  leat show photos -o sheet.html --order balanced:cls --seed 7 --epoch 3 --batch 417\n"
      "  leat show photos -o steps.html --augment simclr --sample 17 --epoch 3\n"
      "  leat show train.bin --tokens 64 -o windows.html");
  app.callback([arguments, sample, of_sample, &chosen] {
    if (of_sample->count() > 0) arguments->sample = *sample;
    chosen = [arguments](interruption& stop) { return show(*arguments, stop); };
  });
}

}  // namespace leat::tools

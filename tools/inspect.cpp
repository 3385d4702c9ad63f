// leat inspect: what is in there.
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "tools/arguments.hpp"
#include "tools/chunk_text.hpp"
#include "tools/class_counts.hpp"
#include "tools/decoded_samples.hpp"
#include "tools/first_values.hpp"
#include "tools/human.hpp"
#include "tools/inspect_references.hpp"
#include "tools/large_pictures.hpp"
#include "tools/output.hpp"
#include "tools/picture_survey.hpp"
#include "tools/run_record.hpp"
#include "tools/sources.hpp"
#include "tools/status_line.hpp"
#include "tools/subcommand.hpp"
#include "tools/text_tokens.hpp"
#include "tools/transcoding.hpp"
#include "tools/where_option.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/open_tokens.hpp>
#include <leat/tokenizer.hpp>

#include <absl/strings/numbers.h>
#include <absl/strings/str_format.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using datasets::dataset_model;

// A gain of packing that is worth a word.
constexpr double pack_gain_said = 1.15;

struct inspect_arguments {
  std::vector<std::string> sources;
  std::optional<dtype> tokens;  // the sources are files of tokens
  open_options opening;
  std::string where;
  std::uint64_t host_bytes_max = host_bytes_usual;
  bool decode = false;
  bool json = false;
  std::string tokenizer;
  std::string field;
  std::string references;  // a file to write
  asked_for asked;
};

/// Samples by the bytes that lie in files for them.
struct size_histogram {
  struct bucket {
    std::uint64_t from = 0;  // bytes
    std::uint64_t to = 0;    // exclusive
    std::uint64_t samples = 0;
  };
  std::vector<bucket> buckets;
  std::uint64_t least = 0;
  std::uint64_t median = 0;
  std::uint64_t most = 0;
};

// In text; JSON has them all.
constexpr std::size_t classes_shown = 12;
constexpr std::size_t defects_shown = 8;

bool lie_alike(const extent& a, const extent& b) noexcept {
  return a.source == b.source && a.file == b.file && a.offset == b.offset && a.stored_bytes == b.stored_bytes;
}

/// Bytes of the values of a field, expanded, in all samples.
///   is_exact   false: they are picked out of records, which have these bytes
struct field_bytes {
  std::uint64_t total = 0;
  bool is_exact = true;
};

/// What samples are made of.
///   of_sample   bytes as they are loaded, expanded; of what is picked out of a record the record's, once
///   of_field    by dataset_model::fields()
///   stored      bytes in files: of a block that several samples share each sample's part
struct sample_bytes {
  std::vector<std::uint64_t> of_sample;
  std::vector<field_bytes> of_field;
  std::uint64_t stored = 0;
};

// Of the parts of a sample: the bytes of this part's whole field that lie in files.
std::uint64_t stored_share(const datasets::part& part, std::uint64_t value_bytes, const datasets::part_list& parts) {
  if (!part.is_in_block()) return part.where.stored_bytes;
  const auto chunks =
      std::count_if(parts.begin(), parts.end(), [&](const datasets::part& each) { return each.field == part.field; });
  const double of_all = static_cast<double>(part.where.decoded_bytes) * static_cast<double>(chunks);
  if (of_all == 0) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(part.where.stored_bytes) * static_cast<double>(value_bytes) /
                                    of_all);
}

sample_bytes sizes_of(const dataset& samples) {
  const dataset_model& model = *samples.model();
  sample_bytes found;
  found.of_sample.resize(samples.size());
  found.of_field.resize(model.fields().size());
  // What lies in no file.
  for (std::uint16_t i = 0; i < found.of_field.size(); ++i) {
    if (model.forms(i).only(datasets::forms_made)) found.of_field[i].total = model.fields()[i].bytes_total;
  }
  datasets::part_list parts;
  for (std::uint64_t sample = 0; sample < samples.size(); ++sample) {
    parts.clear();
    model.parts(sample, parts);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const datasets::part& part = parts[i];
      if (part.is_made()) continue;
      const field_info& field = model.fields()[part.field];
      const datasets::value_size value = datasets::size_of_value(field, part.field, parts);
      // Of several fields that are picked out of one record, the record: they follow one another.
      const bool is_counted = i > 0 && lie_alike(parts[i - 1].where, part.where);
      if (!is_counted || part.is_in_block()) found.stored += stored_share(part, value.bytes, parts);
      const bool is_first = std::none_of(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i),
                                         [&](const datasets::part& each) { return each.field == part.field; });
      if (!is_first) continue;
      field_bytes& of_field = found.of_field[part.field];
      of_field.total += value.bytes;
      of_field.is_exact = of_field.is_exact && value.is_exact;
      if (value.is_exact || !is_counted) found.of_sample[sample] += value.bytes;
    }
  }
  return found;
}

// What the table of extents shows of a sample, without a byte of it: pictures of nothing.
std::optional<std::string> empty_picture(const dataset_model& model, std::uint64_t sample, datasets::part_list& parts) {
  parts.clear();
  model.parts(sample, parts);
  for (const datasets::part& part : parts) {
    const field_info& field = model.fields()[part.field];
    if (field.kind == field_kind::picture && !part.is_made() && part.where.stored_bytes == 0)
      return str_cat(field.name, ": empty: zero bytes");
  }
  return std::nullopt;
}

// Steps of two, or of the root of two where that is too coarse to see anything: at least a few rows, and fewer than 20.
size_histogram histogram_of(std::vector<std::uint64_t> sizes) {
  size_histogram shown;
  if (sizes.empty()) return shown;
  std::sort(sizes.begin(), sizes.end());
  shown.least = sizes.front();
  shown.median = sizes[sizes.size() / 2];
  shown.most = sizes.back();
  const double octaves = std::log2(static_cast<double>(shown.most + 1) / static_cast<double>(shown.least + 1));
  const double per_octave = octaves > 9 ? 1 : octaves > 4 ? 2 : 4;
  const auto edge = [&](int step) {
    return static_cast<std::uint64_t>(std::llround(std::exp2(static_cast<double>(step) / per_octave)));
  };
  const auto step_of = [&](std::uint64_t bytes) {
    if (bytes == 0) return -1;
    int step = static_cast<int>(std::floor(std::log2(static_cast<double>(bytes)) * per_octave));
    while (edge(step + 1) <= bytes) ++step;
    while (step > 0 && edge(step) > bytes) --step;
    return step;
  };
  const auto lower = [&](int step) { return step < 0 ? 0 : edge(step); };
  const int last = step_of(shown.most);
  for (int step = step_of(shown.least); step <= last; ++step) {
    // Neighbouring edges fall together among the smallest numbers.
    if (lower(step) < lower(step + 1)) shown.buckets.push_back({lower(step), lower(step + 1), 0});
  }
  auto bucket = shown.buckets.begin();
  for (const std::uint64_t size : sizes) {
    while (size >= bucket->to) ++bucket;
    ++bucket->samples;
  }
  return shown;
}

const char* word(field_kind kind) {
  switch (kind) {
    case field_kind::picture:
      return "picture";
    case field_kind::label:
      return "label";
    case field_kind::text:
      return "text";
    case field_kind::bytes:
      return "bytes";
    case field_kind::tensor:
      return "tensor";
    case field_kind::tokens:
      return "tokens";
  }
  return "bytes";
}

// "f32 [3, 224, 224]"; of tokens their number, too.
std::string type_text(const field_info& field) {
  std::string text(name(field.type));
  if (field.kind == field_kind::tokens) {
    return str_cat(text, ", ", counted(field.bytes_total / size_bytes(field.type), "token", "tokens"));
  }
  if (field.shape.empty()) return text;
  std::string shape;
  for (const std::int64_t extent : field.shape) str_append(shape, shape.empty() ? "" : ", ", extent);
  return str_cat(text, " [", shape, "]");
}

bool has_type(const field_info& field) { return field.kind == field_kind::tensor || field.kind == field_kind::tokens; }

std::uint64_t files_of(const dataset& samples) {
  std::uint64_t files = 0;
  for (const auto& source : samples.model()->sources()) files += source->files();
  return files;
}

struct known_defect {
  std::uint64_t sample = 0;
  std::string name;
  std::string reason;
};

std::vector<known_defect> defects_of(const dataset& samples) {
  const dataset_model& model = *samples.model();
  std::vector<known_defect> all;
  datasets::part_list parts;
  for (std::uint64_t sample = 0; sample < samples.size(); ++sample) {
    if (const std::optional<datasets::defect> found = model.defect_of(sample)) {
      all.push_back({sample, samples.name(sample), found->reason});
    } else if (const std::optional<std::string> reason = empty_picture(model, sample, parts)) {
      all.push_back({sample, samples.name(sample), *reason});
    }
  }
  return all;
}

/// All that is told, in either form.
struct findings {
  dataset samples;
  std::vector<field_info> fields;
  std::vector<first_value> first;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<field_bytes> of_field;  // by dataset_model::fields()
  size_histogram sizes;
  class_counts classes;
  std::vector<known_defect> defects;
  picture_survey pictures;
  jpeg_survey jpegs;
  large_pictures large;
  std::optional<decoded_samples> decoded = std::nullopt;
  std::optional<token_survey> tokens = std::nullopt;
};

findings look_through(dataset samples, std::size_t host_bytes_max, bool decode, measuring_progress& so_far) {
  findings found{.samples = samples,
                 .fields = samples.fields(),
                 .first = first_values(samples, host_bytes_max),
                 .files = files_of(samples),
                 .bytes = 0,
                 .of_field = {},
                 .sizes = {},
                 .classes = {},
                 .defects = {},
                 .pictures = survey_pictures(samples),
                 .jpegs = survey_jpegs(samples),
                 .large = find_large_pictures(samples, host_bytes_max, so_far)};
  sample_bytes bytes = sizes_of(samples);
  found.bytes = bytes.stored;
  found.of_field = std::move(bytes.of_field);
  found.sizes = histogram_of(std::move(bytes.of_sample));
  found.classes = classes_of(samples);
  found.defects = defects_of(samples);
  if (decode) found.decoded = decode_all(samples, host_bytes_max, so_far);
  return found;
}

// Null of a column, which is a number kept with the dataset.
const first_value* first_of(const findings& found, const field_info& field) {
  if (field.column) return nullptr;
  const auto first = std::find_if(found.first.begin(), found.first.end(),
                                  [&](const first_value& each) { return each.field == field.name; });
  return first == found.first.end() ? nullptr : &*first;
}

nlohmann::ordered_json formats_json(const picture_survey& found) {
  nlohmann::ordered_json formats = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < found.count.size(); ++i) {
    if (found.count[i] > 0) formats[std::string(name(static_cast<pixels::format>(i)))] = found.count[i];
  }
  return formats;
}

nlohmann::ordered_json as_json(const findings& found) {
  using json = nlohmann::ordered_json;
  json fields = json::array();
  for (std::size_t i = 0; i < found.fields.size(); ++i) {
    const field_info& each = found.fields[i];
    json field = {{"name", each.name}, {"kind", word(each.kind)}, {"column", each.column}, {"samples", each.samples}};
    if (!each.column && found.of_field[i].is_exact) {
      field["bytes"] = found.of_field[i].total;
      field["bytes_max"] = each.bytes_max;
      field["bytes_mean"] =
          static_cast<double>(found.of_field[i].total) / static_cast<double>(std::max<std::uint64_t>(each.samples, 1));
    } else if (!each.column) {
      field["record_bytes_max"] = each.bytes_max;  // Its own bytes are known once a record is read.
    }
    if (!each.column && each.expands() && found.of_field[i].is_exact) field["stored_bytes"] = each.bytes_total;
    if (each.chunked) {
      field["chunk_bytes_max"] = each.decoded_block_bytes_max;
      field["chunk_stored_bytes_max"] = each.stored_block_bytes_max;
      field["chunk"] = std::vector<std::int64_t>(each.chunk.begin(), each.chunk.end());
      field["filters"] = each.filters;
      field["chunks_of_sample"] = chunks_of_sample(each);
    }
    if (each.column && each.type != dtype::i64) field["dtype"] = name(each.type);
    if (const first_value* const first = first_of(found, each)) {
      field["mode"] = first->mode;
      if (!first->how.empty()) field["how"] = first->how;
      if (first->sample) {
        field["first"] = {{"sample", *first->sample}, {"shows", first->shows}, {"failure", first->failure}};
      }
    }
    if (!each.column && has_type(each)) {
      field["dtype"] = name(each.type);
      field["shape"] = std::vector<std::int64_t>(each.shape.begin(), each.shape.end());
    }
    fields.push_back(std::move(field));
  }
  json classes = json::array();
  for (const auto& [number, count] : found.classes.samples) {
    classes.push_back({{"class", number}, {"name", class_name(found.samples, number)}, {"samples", count}});
  }
  json sizes = json::array();
  for (const size_histogram::bucket& each : found.sizes.buckets) {
    sizes.push_back({{"from", each.from}, {"to", each.to}, {"samples", each.samples}});
  }
  json defects = json::array();
  for (const known_defect& each : found.defects) {
    defects.push_back({{"sample", each.sample}, {"name", each.name}, {"reason", each.reason}});
  }
  json large = json::array();
  for (const large_picture& each : found.large.over) {
    large.push_back({{"sample", each.sample}, {"name", each.name}, {"bytes", each.bytes}});
  }
  json decoded = json::object();
  if (found.decoded) {
    json damaged = json::array();
    for (const undecoded_sample& each : found.decoded->damaged) {
      damaged.push_back({{"sample", each.sample},
                         {"name", each.name},
                         {"field", each.field},
                         {"kind", each.kind},
                         {"reason", each.reason}});
    }
    decoded = {{"looked_at", found.decoded->looked_at}, {"damaged", damaged}};
  }
  const dataset_memory memory = found.samples.memory();
  json whole = {
      {"samples", found.samples.size()},
      {"files", found.files},
      {"bytes", found.bytes},
      {"fields", fields},
      {"class_label", found.classes.label},
      {"classes", classes},
      {"classes_looked_at", found.classes.looked_at},
      {"size_histogram", sizes},
      {"sample_bytes", {{"min", found.sizes.least}, {"median", found.sizes.median}, {"max", found.sizes.most}}},
      {"memory",
       {{"extents", memory.extents},
        {"files", memory.files},
        {"columns", memory.columns},
        {"data", memory.data},
        {"total", memory.total()}}},
      {"pictures",
       {{"looked_at", found.pictures.looked_at},
        {"formats", formats_json(found.pictures)},
        {"refused", found.pictures.refused()},
        {"grey_of_16_bits", found.pictures.deep_grey},
        {"palettes", found.pictures.palettes}}},
      {"jpegs",
       {{"looked_at", found.jpegs.looked_at},
        {"not_baseline", found.jpegs.not_baseline},
        {"measured", found.jpegs.measured},
        {"speed_up", found.jpegs.speed_up},
        {"saving", found.jpegs.saving()},
        {"as_photo_packs",
         {{"measured", found.jpegs.packs.measured},
          {"bytes", found.jpegs.packs.bytes},
          {"speed_up", found.jpegs.packs.speed_up}}}}},
      {"large_pictures",
       {{"host_bytes_max", found.large.host_bytes_max},
        {"looked_at", found.large.looked_at},
        {"over_budget", large},
        {"host_bytes_enough", found.large.host_bytes_enough}}},
      {"decoded", decoded},
      {"notes", notes_of(found.samples)},
      {"defects", defects},
      {"defects_looked_for", {{"samples", found.samples.size()}, {"contents", found.decoded.has_value()}}}};
  if (found.tokens) whole["tokens"] = as_json(*found.tokens);
  return whole;
}

std::string heading(const terminal& screen, std::string_view text) { return str_cat("\n", screen.bold(text), "\n"); }

std::string fields_text(const terminal& screen, const findings& found) {
  std::size_t name_columns = 5;
  for (const field_info& each : found.fields) name_columns = std::max(name_columns, columns_of(each.name));
  const int width = static_cast<int>(name_columns);
  std::string text = str_cat(
      "\n", screen.bold(absl::StrFormat("%-*s", width + 2, "field")),
      screen.dim(absl::StrFormat("  %-8s %14s %12s %12s %12s", "kind", "samples", "in all", "mean", "largest")), "\n");
  for (std::size_t i = 0; i < found.fields.size(); ++i) {
    const field_info& each = found.fields[i];
    text += absl::StrFormat("  %-*s  %-8s %14s", width, one_line(each.name), word(each.kind), count_text(each.samples));
    if (each.column) {
      str_append(text, " ", screen.dim("  kept with the dataset"),
                 each.type == dtype::i64 ? std::string() : str_cat("  ", name(each.type)), "\n");
    } else if (!found.of_field[i].is_exact) {
      str_append(text, " ", screen.dim(str_cat("  within records of at most ", bytes_text(each.bytes_max))), "\n");
    } else {
      const std::uint64_t total = found.of_field[i].total;
      text += absl::StrFormat(" %12s %12s %12s", bytes_text(total),
                              bytes_text(total / std::max<std::uint64_t>(each.samples, 1)), bytes_text(each.bytes_max));
      str_append(text, has_type(each) ? "  " + type_text(each) : std::string());
      if (each.expands()) str_append(text, "  ", screen.dim(str_cat("stored in ", bytes_text(each.bytes_total))));
      text += "\n";
    }
  }
  return text;
}

// How each field lies, and its first value: what a batch would get.
std::string first_values_text(const terminal& screen, const findings& found) {
  std::size_t name_columns = 0;
  std::size_t how_columns = 0;
  for (const first_value& each : found.first) {
    name_columns = std::max(name_columns, columns_of(each.field));
    how_columns = std::max(how_columns, each.how.size());
  }
  std::string text;
  for (const first_value& each : found.first) {
    if (!each.sample) continue;
    text += absl::StrFormat("  %-*s  %-7s  %-*s", static_cast<int>(name_columns), one_line(each.field), each.mode,
                            static_cast<int>(how_columns), each.how);
    str_append(text, how_columns == 0 ? "" : "  ", one_line(each.shows), each.shows.empty() ? "" : "  ");
    if (!each.failure.empty()) text += screen.warning(str_cat("not decoded: ", one_line(each.failure)));
    while (text.ends_with(' ')) text.pop_back();
    text += '\n';
  }
  return text.empty() ? text : str_cat(heading(screen, "how fields lie, and the first value of each"), text);
}

std::string sizes_text(const terminal& screen, const findings& found) {
  constexpr std::size_t bar_columns = 36;
  std::uint64_t most = 1;
  for (const size_histogram::bucket& each : found.sizes.buckets) most = std::max(most, each.samples);
  std::string text = heading(screen, "sizes of samples");
  for (const size_histogram::bucket& each : found.sizes.buckets) {
    const double share = static_cast<double>(each.samples) / static_cast<double>(most);
    // What is there is seen, however little it is.
    const double visible = each.samples > 0 ? std::max(share, 0.13 / static_cast<double>(bar_columns)) : 0;
    text += absl::StrFormat("  %9s to %9s  %s %s\n", bytes_text(each.from), bytes_text(each.to),
                            bar_text(screen, bar_columns, visible, bar_rest::blank),
                            each.samples > 0 ? count_text(each.samples) : "");
  }
  str_append(text, "  ",
             screen.dim(str_cat("smallest ", bytes_text(found.sizes.least), ", median ", bytes_text(found.sizes.median),
                                ", largest ", bytes_text(found.sizes.most))),
             "\n");
  return text;
}

std::string classes_text(const terminal& screen, const findings& found) {
  const std::size_t count = found.classes.samples.size();
  std::string text = heading(screen, str_cat(counted(count, "class", "classes"), " by ", found.classes.label));
  if (found.classes.looked_at < found.samples.size()) {
    str_append(text, "  ",
               screen.dim(str_cat("as seen in ", count_text(found.classes.looked_at), " samples, evenly spread")),
               "\n");
  }
  std::size_t name_columns = 8;
  std::size_t shown = 0;
  for (const auto& [number, samples] : found.classes.samples) {
    if (++shown > classes_shown) break;
    name_columns = std::max(name_columns, columns_of(class_name(found.samples, number)));
  }
  shown = 0;
  for (const auto& [number, samples] : found.classes.samples) {
    if (++shown > classes_shown) {
      str_append(text, "  ",
                 screen.dim(str_cat("... and ", count_text(count - classes_shown), " more; --json has them all")),
                 "\n");
      break;
    }
    const std::string name = one_line(class_name(found.samples, number));
    text +=
        absl::StrFormat("  %5d  %s%s %10s\n", number, name,
                        std::string(name_columns - std::min(name_columns, columns_of(name)), ' '), count_text(samples));
  }
  return text;
}

// "980 JPEG, 12 PNG", of those that are read or of the others.
std::string format_counts(const picture_survey& found, bool read) {
  std::string text;
  for (std::size_t i = 0; i < found.count.size(); ++i) {
    const auto what = static_cast<pixels::format>(i);
    if (found.count[i] == 0 || pixels::is_read(what) != read) continue;
    str_append(text, text.empty() ? "" : ", ", count_text(found.count[i]), " ",
               what == pixels::format::unknown ? "of no known format" : name(what));
  }
  return text;
}

std::string pictures_text(const terminal& screen, const findings& found) {
  if (found.pictures.looked_at == 0) return {};
  std::string text = heading(screen, "pictures by content");
  if (found.pictures.samples < found.samples.size()) {
    str_append(text, "  ",
               screen.dim(str_cat("as seen in ", count_text(found.pictures.samples), " samples, evenly spread")), "\n");
  }
  const std::string read = format_counts(found.pictures, true);
  if (!read.empty()) str_append(text, "  ", read, "\n");
  if (const std::uint64_t deep = found.pictures.deep_grey; deep != 0) {
    str_append(
        text, "  ", counted(deep, "PNG is", "PNGs are"),
        " of 16-bit grey: the upper byte of each pixel is taken; a mask (--mask) keeps the numbers, and .bits(16) "
        "the picture's\n");
  }
  if (const std::uint64_t palettes = found.pictures.palettes; palettes != 0) {
    str_append(text, "  ", counted(palettes, "PNG has", "PNGs have"),
               " a palette: its colours are taken; a mask (--mask) keeps the indexes\n");
  }
  if (found.pictures.refused() == 0) return text;
  str_append(text, "  ", screen.warning(str_cat("not read: ", format_counts(found.pictures, false))),
             ": corrupt samples when they are loaded\n");
  return text;
}

// Nothing where all are baseline: there is nothing to be done then.
std::string jpegs_text(const terminal& screen, const jpeg_survey& found) {
  if (found.not_baseline == 0) return {};
  std::string text = heading(screen, "JPEGs that are not baseline");
  str_append(text, "  ", count_text(found.not_baseline), " of ", count_text(found.looked_at), " looked at");
  if (found.measured > 0) {
    text += absl::StrFormat("; as baseline they decode %.1f times as fast (measured on %u)", found.speed_up,
                            static_cast<unsigned>(found.measured));
  }
  if (found.saving() > 0) {
    text += absl::StrFormat(":\n  `leat pack --transcode` would save %.0f %% of all decoding", 100 * found.saving());
  }
  return text + "\n";
}

// Nothing where too little would be gained to be worth the room.
std::string packs_text(const terminal& screen, const jpeg_survey::pack_gain& found) {
  if (found.measured == 0 || found.speed_up < pack_gain_said) return {};
  return str_cat(
      heading(screen, "as photo packs"),
      absl::StrFormat(
          "  `leat pack --photos fast`: %.1f times as many training crops for each CPU-second, the same pixels,\n  and "
          "%.2f times the bytes (measured on %u baseline JPEGs)\n",
          found.speed_up, found.bytes, static_cast<unsigned>(found.measured)));
}

// Nothing where all of them can be decoded.
std::string large_text(const terminal& screen, const large_pictures& found) {
  if (found.over.empty()) return {};
  std::string text = heading(screen, screen.warning(counted(found.over.size(), "picture that will be corrupt",
                                                            "pictures that will be corrupt")));
  str_append(text, "  to decode one takes more than a quarter of --host-bytes-max, ", bytes_text(found.host_bytes_max),
             "; ", bytes_text(found.host_bytes_enough), " would do\n");
  for (std::size_t i = 0; i < std::min(found.over.size(), defects_shown); ++i) {
    str_append(text, "  ", one_line(found.over[i].name), ": ", bytes_text(found.over[i].bytes), "\n");
  }
  if (found.over.size() > defects_shown) str_append(text, "  ", screen.dim("... --json has them all"), "\n");
  return text +
         "  progressive JPEGs take little once `leat pack --transcode` has written them anew, and PNGs where they are "
         "stored "
         "without interlacing\n";
}

// What decoding every sample has found.
std::string decoded_text(const terminal& screen, const decoded_samples& found) {
  const std::string all = counted(found.looked_at, "sample", "samples");
  if (found.damaged.empty()) return heading(screen, str_cat(all, " decoded whole, none damaged"));
  std::string text =
      heading(screen, screen.warning(str_cat(all, " decoded whole: ", count_text(found.damaged.size()), " damaged")));
  for (std::size_t i = 0; i < std::min(found.damaged.size(), defects_shown); ++i) {
    const undecoded_sample& each = found.damaged[i];
    str_append(text, "  ", one_line(each.name), each.field.empty() ? "" : ", ", one_line(each.field), ": ",
               one_line(each.reason), "\n");
  }
  if (found.damaged.size() > defects_shown) str_append(text, "  ", screen.dim("... --json has them all"), "\n");
  return text;
}

// What is found without decoding, and that it is no more than that.
std::string damage_text(const terminal& screen, const findings& found) {
  const std::string looked =
      str_cat("looked at: where ", found.samples.size() == 1 ? "the sample lies" : "all samples lie",
              " and how long they are", found.decoded ? "" : "; what is in them was not decoded: --decode does that");
  if (found.defects.empty())
    return str_cat(
        heading(screen, found.decoded && !found.decoded->damaged.empty() ? "no further damage seen" : "no damage seen"),
        "  ", screen.dim(looked), "\n");
  std::string text =
      heading(screen, screen.warning(counted(found.defects.size(), "damaged sample", "damaged samples")));
  for (std::size_t i = 0; i < std::min(found.defects.size(), defects_shown); ++i) {
    str_append(text, "  ", one_line(found.defects[i].name), ": ", one_line(found.defects[i].reason), "\n");
  }
  if (found.defects.size() > defects_shown) str_append(text, "  ", screen.dim("... --json has them all"), "\n");
  return str_cat(text, "  ", screen.dim(looked), "\n");
}

std::string as_text(const findings& found) {
  const terminal screen = terminal::of(stdout);
  const dataset_memory memory = found.samples.memory();
  std::string text =
      str_cat("\n  ", screen.bold(counted(found.samples.size(), "sample", "samples")), " in ",
              counted(found.files, "file", "files"), ", ", bytes_text(found.bytes), "\n  ",
              screen.dim(str_cat("the table of them takes ", bytes_text(memory.total()), " of memory")), "\n");
  text += fields_text(screen, found) + first_values_text(screen, found) + chunks_text(screen, found.fields);
  if (!found.sizes.buckets.empty()) text += sizes_text(screen, found);
  if (!found.classes.samples.empty()) text += classes_text(screen, found);
  text += pictures_text(screen, found);
  text += jpegs_text(screen, found.jpegs) + packs_text(screen, found.jpegs.packs);
  text += large_text(screen, found.large);
  if (found.tokens) text += as_text(screen, *found.tokens, found.samples);
  if (found.decoded) text += decoded_text(screen, *found.decoded);
  text += damage_text(screen, found);
  const std::vector<std::string> notes = notes_of(found.samples);
  if (!notes.empty()) text += heading(screen, "notes");
  for (const std::string& note : notes) str_append(text, "  ", one_line(note), "\n");
  return text + "\n";
}

std::string advise_looking(dtype type) { return str_cat("--token-type ", name(type), " looks at it as tokens"); }

// The pictures are what takes long: a look or a decode each.
std::string progress(const terminal& screen, std::size_t columns, const measuring_progress& so_far) {
  const std::uint64_t pictures = so_far.pictures;
  if (pictures == 0) return screen.dim("  looking through the samples");
  const std::uint64_t measured = so_far.measured;
  const std::string end = str_cat("  looking at samples: ", count_text(measured), " of ", count_text(pictures));
  const double share = static_cast<double>(measured) / static_cast<double>(pictures);
  return bar_line(screen, columns, share, end);
}

int inspect(const inspect_arguments& arguments, interruption& stop) {
  const auto leave = [&] { complain("inspect", str_cat("stopped by ", stop.name())); };
  const dataset opened =
      open_sources(arguments.sources, stop, leave, advise_looking,
                   {.tokens = arguments.tokens ? std::optional(token_options{.type = arguments.tokens}) : std::nullopt,
                    .opening = arguments.opening});
  const dataset samples = [&] {
    const leaving_at_once leaving(stop, leave);
    return samples_where(opened, arguments.where, arguments.opening.index);
  }();
  std::optional<tokenizer> words;
  if (!arguments.tokenizer.empty()) words = as_named([&] { return tokenizer::open(arguments.tokenizer); });
  const findings found = [&] {
    const std::stop_callback leaving(stop.token(), [&] {
      leave();
      std::_Exit(stop.exit_code());  // Nothing was written, nothing is lost.
    });
    measuring_progress so_far;
    const status_line shown(
        [&so_far](const terminal& screen, std::size_t columns) { return progress(screen, columns, so_far); });
    findings seen = look_through(samples, arguments.host_bytes_max, arguments.decode, so_far);
    if (words) {
      seen.tokens = survey_tokens(text_field_of(samples, arguments.field), *words, arguments.tokenizer,
                                  arguments.host_bytes_max, so_far);
    }
    return seen;
  }();
  if (!arguments.references.empty())
    write_references(arguments.sources, arguments.opening, arguments.references, stop.token());
  print(arguments.json ? report_text(as_json(found), arguments.asked) : as_text(found));
  return found.decoded && !found.decoded->damaged.empty() ? exit_failed : exit_done;
}

}  // namespace

void add_inspect(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<inspect_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("inspect", "say what is in a source: samples, fields, sizes, classes, damage");
  add_sources(app, arguments->sources);
  add_choice(
      app, "--token-type", arguments->tokens,
      {{"u16", std::optional(dtype::u16)}, {"u32", std::optional(dtype::u32)}, {"i32", std::optional(dtype::i32)}},
      "the sources are files of tokens, of this type where no header says it");
  add_opening_options(app, arguments->opening);
  add_where(app, arguments->where);
  add_bytes(app, "--host-bytes-max", arguments->host_bytes_max,
            "the memory that a loader would have, for pictures that take too much (512MiB)");
  CLI::Option* const words =
      add_text(app, "--tokenizer", arguments->tokenizer, "FILE",
               "tokens of each text, by tokenizer.json, tokenizer.model, or cl100k_base.tiktoken and the like");
  add_text(app, "--field", arguments->field, "NAME", "of --tokenizer: which holds the texts (the only one, or text)")
      ->needs(words);
  app.add_flag("--decode", arguments->decode,
               "read and decode every sample whole, and name what is damaged; the exit status is 1 if any is");
  add_text(
      app, "--references", arguments->references, "FILE",
      "write a JSON that says where the chunks of HDF5 or Zarr lie, as kerchunk does, for programs that use fsspec")
      ->excludes(app.get_option("--where"));
  app.add_flag("--json", arguments->json, "all of it, as one JSON object");
  app.footer(
      "  leat inspect photos\n  leat inspect 'train-{000..127}.tar' --json\n  leat inspect photos --decode\n"
      "  leat inspect corpus.jsonl --tokenizer tokenizer.json");
  app.callback([arguments, &app, &chosen] {
    arguments->asked = asked_of(app);
    chosen = [arguments](interruption& stop) { return inspect(*arguments, stop); };
  });
}

}  // namespace leat::tools

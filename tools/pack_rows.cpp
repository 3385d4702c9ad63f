#include "tools/pack_rows.hpp"

#include "base/text.hpp"
#include "datasets/files/raw_files.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/row_reader.hpp"
#include "datasets/views/shuffle.hpp"
#include "io/files/source.hpp"
#include "tools/npy.hpp"
#include "tools/output.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

constexpr std::uint64_t window_bytes = std::uint64_t{16} << 20;
// Reads that are made ready at once.
constexpr std::uint64_t window_rows_max = 4096;

/// What lies in a record: the dataset's fields, then its columns.
struct row_layout {
  std::vector<field_info> fields;  // columns too
  std::vector<datasets::row_place> places;
  std::uint64_t bytes = 0;
};

[[noreturn]] void refuse(const field_info& field, const char* why) {
  throw error(errc::usage, str_cat("the field '", field.name, "' ", why,
                                   ", and --to npy and --to records write rows of one dtype and shape; leave "
                                   "out --to for tar shards"));
}

row_layout layout_of(const dataset& from) {
  row_layout layout;
  for (field_info& field : from.fields()) {
    if (field.column) {
      field.bytes_max = size_bytes(field.type);
    } else if (field.kind == field_kind::tokens) {
      throw error(errc::usage,
                  str_cat("the field '", field.name, "' is tokens; their files need no packing: copy them"));
    } else if (field.kind != field_kind::tensor) {
      refuse(field, "has samples of any size");
    }
    if (field.samples != from.size()) refuse(field, "is missing in some samples");
    layout.places.push_back({static_cast<std::uint16_t>(layout.fields.size()), layout.bytes, field.bytes_max});
    layout.bytes += field.bytes_max;
    layout.fields.push_back(std::move(field));
  }
  if (layout.fields.empty()) throw error(errc::usage, "the source has no field");
  return layout;
}

std::string shape_json(const dimensions& shape) {
  std::string text;
  for (const std::int64_t extent : shape) str_append(text, text.empty() ? "" : ", ", extent);
  return "[" + text + "]";
}

std::string records_json(const row_layout& layout, std::uint64_t records) {
  std::string fields;
  for (const field_info& field : layout.fields) {
    str_append(fields, fields.empty() ? "" : ",\n            ", R"({"name": )", json_text(field.name),
               R"(, "dtype": ")", name(field.type), R"(", "shape": )", shape_json(field.shape), "}");
  }
  return str_cat("{\"fields\": [", fields, "],\n \"records\": ", records, ",\n \"header_bytes\": 0}\n");
}

void check_name(const std::string& path, bool overwrite) {
  if (overwrite || !datasets::file_exists(path)) return;
  throw error(errc::usage, str_cat(path, " is there already; remove it, or give --overwrite"));
}

std::string header_of(const row_layout& layout, std::uint64_t samples) {
  if (layout.fields.size() > 1) {
    throw error(errc::usage, str_cat("a .npy holds one array, and the source has the fields '", layout.fields[0].name,
                                     "' and '", layout.fields[1].name, "'; --to records holds both"));
  }
  dimensions shape;
  shape.push_back(static_cast<std::int64_t>(samples));
  for (const std::int64_t extent : layout.fields.front().shape) shape.push_back(extent);
  // On a page: rows that are pages are then read straight to their place in the batch.
  return npy_header(layout.fields.front().type, shape, io::alignment_max_bytes);
}

}  // namespace

datasets::pack_result pack_rows(const dataset& from, const std::string& out, row_format to,
                                const datasets::pack_options& how) {
  const row_layout layout = layout_of(from);
  const std::string extension = to == row_format::npy ? ".npy" : ".bin";
  if (!out.ends_with(extension)) {
    throw error(errc::usage, str_cat("OUT '", out, "' is one file whose name ends in ", extension, "; name it so"));
  }
  const std::string header = to == row_format::npy ? header_of(layout, from.size()) : std::string();
  const std::string description = datasets::with_extension(out, ".json");
  check_name(out, how.overwrite);
  if (to == row_format::records) check_name(description, how.overwrite);

  const std::vector<std::uint64_t> order =
      how.shuffle ? datasets::shuffled(from.size(), how.seed, "pack") : std::vector<std::uint64_t>{};
  const std::uint64_t rows_max = std::clamp<std::uint64_t>(window_bytes / layout.bytes, 1, window_rows_max);
  datasets::row_reader reader(*from.model(), layout.places, layout.bytes);
  output_file file(out, output_kind::packed, output_file::appears::when_closed);
  file.write(header, how.stop);
  std::vector<std::uint64_t> samples;
  std::vector<std::byte> records;
  for (std::uint64_t first = 0; first < from.size(); first += samples.size()) {
    samples.clear();
    for (std::uint64_t i = first; i < std::min(first + rows_max, from.size()); ++i) {
      samples.push_back(how.shuffle ? order[i] : i);
    }
    records.resize(samples.size() * layout.bytes);
    datasets::reading_unchanged(*from.model(), [&] { reader.read(samples, records, how.stop); });
    file.write(records, how.stop);
    const std::uint64_t done = first + samples.size();
    if (how.progress) how.progress({.samples = done, .samples_total = from.size(), .bytes = done * layout.bytes});
  }
  datasets::check_unchanged(*from.model());
  file.close();
  if (to == row_format::records) {
    output_file beside(description, output_kind::packed, output_file::appears::when_closed);
    beside.write(records_json(layout, from.size()), how.stop);
    beside.close();
  }
  datasets::pack_result made;
  made.shards.push_back({out, from.size(), header.size() + from.size() * layout.bytes});
  made.samples = from.size();
  return made;
}

}  // namespace leat::tools

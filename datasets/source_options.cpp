#include "datasets/source_options.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <array>
#include <initializer_list>
#include <string>

namespace leat::datasets {
namespace {

using enum source_format;

constexpr std::array<std::string_view, static_cast<std::size_t>(tokens) + 1> names = {"a folder of pictures",
                                                                                      "tar shards",
                                                                                      ".npy",
                                                                                      ".npz",
                                                                                      "HDF5",
                                                                                      "Zarr",
                                                                                      "Parquet",
                                                                                      "Arrow",
                                                                                      "TFRecord",
                                                                                      "MDS",
                                                                                      "JSONL",
                                                                                      "CSV",
                                                                                      "LMDB",
                                                                                      "raw records",
                                                                                      "tokens"};

constexpr std::string_view name_of(source_format what) noexcept { return names[static_cast<std::size_t>(what)]; }

/// Formats as bits.
struct formats {
  std::uint32_t bits = 0;

  constexpr formats(std::initializer_list<source_format> all) {
    for (const source_format each : all) bits |= 1U << static_cast<unsigned>(each);
  }
  [[nodiscard]] constexpr bool has(source_format what) const noexcept {
    return (bits >> static_cast<unsigned>(what) & 1U) != 0;
  }
};

struct option_of_formats {
  std::string_view name;  ///< as errors have it; the command has its own (tools/flags.cpp)
  formats taken_by;
  bool (*is_asked)(const open_options&);
};

constexpr option_of_formats all_options[] = {
    {"tar_options::ignore_zeros", {tar}, [](const open_options& asked) { return asked.tar.ignore_zeros; }},
    {"index_options::use",
     {pictures, tar},
     [](const open_options& asked) {
       return asked.index.use == index_use::rebuild || asked.index.use == index_use::trust;
     }},
    {"array_options::window", {hdf5, zarr}, [](const open_options& asked) { return asked.arrays.window != 0; }},
    {"array_options::stride", {hdf5, zarr}, [](const open_options& asked) { return asked.arrays.stride != 1; }},
    {"array_options::samples",
     {hdf5, zarr},
     [](const open_options& asked) { return asked.arrays.samples != array_options::sample::automatic; }},
    {"table_options::fields",
     {parquet, arrow, tfrecord, mds, jsonl, csv},
     [](const open_options& asked) { return !asked.tables.fields.empty(); }},
    {"table_options::columns",
     {parquet, arrow, tfrecord, mds, jsonl, csv},
     [](const open_options& asked) { return !asked.tables.columns.empty(); }},
    {"table_options::path_column",
     {jsonl, csv},
     [](const open_options& asked) { return !asked.tables.path_column.empty(); }},
    {"table_options::root", {jsonl, csv}, [](const open_options& asked) { return !asked.tables.root.empty(); }},
    {"table_options::types", {jsonl, csv}, [](const open_options& asked) { return !asked.tables.types.empty(); }},
    {"table_options::checksums",
     {parquet, tfrecord, mds},
     [](const open_options& asked) { return asked.tables.checksums; }},
    {"lmdb_options::database", {lmdb}, [](const open_options& asked) { return !asked.lmdb.database.empty(); }},
};

std::string names_of(const formats& of) {
  std::string text;
  for (std::size_t number = 0; number < names.size(); ++number) {
    if (of.has(static_cast<source_format>(number))) str_append(text, text.empty() ? "" : ", ", names[number]);
  }
  const std::size_t last = text.rfind(", ");
  return last == std::string::npos ? text : text.replace(last, 2, " and ");
}

}  // namespace

void refuse_options(source_format what, const open_options& asked, std::string_view source) {
  for (const option_of_formats& each : all_options) {
    if (each.taken_by.has(what) || !each.is_asked(asked)) continue;
    throw error(errc::usage, str_cat(source, ": ", each.name, " is of ", names_of(each.taken_by), ", and this is ",
                                     name_of(what), "; leave it out"));
  }
}

void refuse_options(source_format what, const table_options& asked, std::string_view source) {
  open_options all;
  all.tables = asked;
  refuse_options(what, all, source);
}

}  // namespace leat::datasets

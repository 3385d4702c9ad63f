// The formats that leat reads: one line each, of which openers, messages, the command's help and the checks of options are made.
#pragma once

#include <leat/open.hpp>
#include <leat/open_tables.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace leat::datasets {

class file_bytes;
class input_files;

/// What a source turns out to be.
enum class source_format : std::uint8_t {
  pictures,
  tar,
  npy,
  npz,
  hdf5,
  zarr,
  parquet,
  arrow,
  tfrecord,
  mds,
  jsonl,
  csv,
  text,
  lmdb,
  records,
  tokens,
  raw  ///< a .bin that nothing describes
};

/// Options of open_options, as bits: which a format takes.
enum source_option : std::uint32_t {
  no_option = 0,
  ignore_zeros = 1U << 0,
  index_use_of_source = 1U << 1,
  window_option = 1U << 2,
  stride_option = 1U << 3,
  samples_option = 1U << 4,
  fields_of_table = 1U << 5,
  columns_of_table = 1U << 6,
  path_column_option = 1U << 7,
  root_option = 1U << 8,
  types_option = 1U << 9,
  checksums_option = 1U << 10,
  database_option = 1U << 11,
  text_option = 1U << 12
};

/// A file that is looked at.
///   name     in `files`
///   called   what it is called where it came from
///   start    its first bytes
///   file     null if it could not be opened
struct file_look {
  const input_files& files;
  const std::string& name;
  const std::string& called;
  std::span<const std::byte> start;
  const file_bytes* file = nullptr;
};

///   name       in sentences
///   given_as   what else is said of it where formats are listed; may be empty
///   options    of source_option, that it takes
///   begins     whether a file is of this format by its first bytes; null: they do not tell
///   is_called  the same by its name and by the files beside it, asked where no format's first bytes tell
///   open       opens files of it; null where a folder is one, or a source of shards
///   chooses    it looks at open_options::arrays.fields itself; of others fields are left out when they are open
/// What people read of it, in docs/reference/formats.md and in the manual page:
///   opener     the function that opens no other format
///   recognised_by, fields, reads, refuses
///              how it is told from others; fields and columns of its samples; versions, codecs and types that are read;
///              what is refused or left out
struct format {
  source_format what;
  std::string_view name;
  std::string_view given_as = {};
  std::uint32_t options = no_option;
  bool (*begins)(const file_look&) = nullptr;
  bool (*is_called)(const file_look&) = nullptr;
  dataset (*open)(const input_files&, const open_options&) = nullptr;
  bool chooses = false;
  std::string_view opener = {};
  std::string_view recognised_by = {};
  std::string_view fields = {};
  std::string_view reads = {};
  std::string_view refuses = {};
};

/// In the order in which files are compared with them.
[[nodiscard]] std::span<const format> formats() noexcept;
[[nodiscard]] const format& format_of(source_format what) noexcept;
/// "folders of pictures, tar shards, .npy, ... and tokens (.bin)".
[[nodiscard]] std::string formats_text();

/// What is asked of tables, wherever in the options it stands.
[[nodiscard]] table_options table_options_of(const open_options& options);

/// Looks into the file unless its name ends in .tar. What cannot be read is `tar`: opening it reports the error.
[[nodiscard]] source_format format_of_file(const std::string& path);
/// The same of a file of any source. What cannot be read at all is thrown.
///   called   what it is called where it came from, if another of that name made `name` longer; its ending is looked at
[[nodiscard]] source_format format_of_file(const input_files& files, const std::string& name,
                                           const std::string& called);
[[nodiscard]] source_format format_of_file(const input_files& files, const std::string& name);

/// Refuses what is asked for and `what` does not take: an option is never passed over in silence.
///   source   its path, for the error
///   throws   error{errc::usage} naming the option, the formats that take it, and this one
void refuse_options(source_format what, const open_options& asked, std::string_view source);
/// The same of a function that opens tables only.
void refuse_options(source_format what, const table_options& asked, std::string_view source);

}  // namespace leat::datasets

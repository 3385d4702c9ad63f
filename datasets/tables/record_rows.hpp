// Samples whose values lie anywhere in one file, one by one: what formats of tables and records find out, and the dataset of it.
#pragma once

#include "datasets/files/coded_file.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/model/columns.hpp"
#include "datasets/model/value_blocks.hpp"
#include "datasets/model/value_picker.hpp"
#include "datasets/model/value_place.hpp"
#include "io/files/file_table.hpp"
#include "io/files/source.hpp"

#include <leat/samples.hpp>
#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// Values that lie in the file as they are, that are picked out of the samples' records, or that lie in blocks.
///   extension   that packing gives them; empty: the name
///   places      one for each sample; none where they are picked out of record_table::records
///   files       if values lie in files of their own, each sample's index in record_table::more_files
///   packed      of those in blocks; they have no places
///   picker      takes them out of what lies there
///   type, shape of field_kind::tensor; of bytes that are elements, their type
struct record_field {
  std::string name;
  field_kind kind = field_kind::bytes;
  std::string extension = {};
  std::vector<value_place> places = {};
  std::vector<std::uint32_t> files = {};
  std::shared_ptr<const value_picker> picker = {};
  std::shared_ptr<const value_blocks> packed = {};
  dtype type = dtype::u8;
  dimensions shape = {};
};

/// Numbers that are kept in memory, a column.
///   bytes     instead of `whole`, floats of `type`, dense
///   reals     instead of these, numbers that have no type of their own
///   missing   samples without a value, ascending
struct record_numbers {
  std::string name;
  dtype type = dtype::i64;
  std::vector<std::int64_t> whole = {};
  std::vector<std::byte> bytes = {};
  std::vector<double> reals = {};
  std::vector<std::uint64_t> missing = {};
};

///   title          the file, as it is called in names of samples
///   watch          over `files`; null: nobody looks whether they changed here
///   changed        of a file that its writers change in place: what they have changed, asked with each batch, as dataset_model::changed()
///   file           its number in `files`
///   records        one for each sample, where fields are picked out of them
///   coded          blocks that the records lie in, where the file is compressed; offsets are then of what it becomes. Null: it is not
///   names          where each sample's key lies: 48 bits of the offset, 16 of its length. Empty: a sample is called by its number
///   more_files     beside the table's own
///   more_from      where these are, if not where the table is
///   files_elsewhere, source_elsewhere   these as they were placed; null where they are among `files`
///   classes        of a column of `numbers`
struct record_table {
  std::string format;
  std::string title;
  std::shared_ptr<const io::file_table> files = {};
  std::shared_ptr<const io::source_description> source = {};
  std::shared_ptr<const file_staleness> watch = {};
  std::function<std::optional<std::string>()> changed = {};
  std::uint32_t file = 0;
  std::uint64_t samples = 0;
  std::vector<record_field> fields = {};
  std::vector<record_numbers> numbers = {};
  std::vector<value_place> records = {};
  std::shared_ptr<const coded_blocks> coded = {};
  std::vector<std::uint64_t> names = {};
  std::vector<sized_file> more_files = {};
  std::shared_ptr<const input_files> more_from = {};
  std::shared_ptr<const io::file_table> files_elsewhere = {};
  std::shared_ptr<const io::source_description> source_elsewhere = {};
  std::shared_ptr<const class_names> classes = {};
  std::vector<std::string> notes = {};
};

/// What a value is, by its first bytes: a picture, and the extension of its format; else bytes.
struct value_kind {
  field_kind kind = field_kind::bytes;
  std::string_view extension = {};
};
[[nodiscard]] value_kind kind_of_value(std::span<const std::byte> start);
/// Likewise of a value that may be text: UTF-8 without control characters.
///   is_whole   it is all of the value, and no part of it that may end within a character
[[nodiscard]] value_kind kind_of_bytes_or_text(std::span<const std::byte> start, bool is_whole);

/// The first of these records; empty where there is none, or it has more than 64 MiB.
[[nodiscard]] std::vector<std::byte> first_record(const file_bytes& file, std::span<const value_place> places);

/// Sets a field's kind and extension by its first value.
void find_kind_of_values(const file_bytes& file, record_field& field);

[[nodiscard]] dataset record_rows(record_table table);

}  // namespace leat::datasets

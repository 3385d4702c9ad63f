// Columns of tables whose values are texts: numbers as they are written, or classes.
#pragma once

#include "base/hash_map.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/tables/record_rows.hpp"

#include <leat/open_tables.hpp>
#include <leat/samples.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::datasets {

/// Texts of rows, with few distinct ones.
class few_texts {
 public:
  static constexpr std::size_t texts_max = 65'536;
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// Adds the next row's. False if it is one distinct text too many.
  [[nodiscard]] bool add(std::string_view text);
  void add_missing() { numbers_.push_back(none); }

  [[nodiscard]] std::size_t rows() const noexcept { return numbers_.size(); }
  [[nodiscard]] const std::vector<std::string>& texts() const noexcept { return texts_; }
  /// Appends each row's number among `sorted`, which has all of the texts.
  void append_to(record_numbers& into, const std::vector<std::string>& sorted) const;

 private:
  std::vector<std::string> texts_;
  std::vector<std::uint32_t> numbers_;
  hash_map<std::string, std::uint32_t> known_;
};

/// All distinct texts, sorted.
///   name     of the column, in the file of this path
///   throws   error{errc::limit} more than few_texts::texts_max
[[nodiscard]] std::vector<std::string> sorted_texts(std::span<const few_texts* const> of, std::string_view name,
                                                    const std::string& path);
[[noreturn]] void refuse_texts(std::string_view name, const std::string& path);

/// For tables whose fields are picked: keeps only the fields and columns that were asked for. A column whose values are numbers
/// in all tables holds numbers, real ones unless all are whole; any other column holds classes.
///   tables   one for each file
///   throws   error{errc::not_found} a name that no table has
void keep_what_was_asked(std::span<record_table> tables, const input_files& from, const table_options& options);

/// A note of a second column of classes.
[[nodiscard]] std::string note_of_more_classes(std::string_view column, std::string_view other);

/// A note of lists that have a null in them, which no number stands for: these rows lack the field.
///   count, first   how many, and the first one's row
[[nodiscard]] std::string note_of_lists_with_nulls(std::string_view path, std::string_view column, std::uint64_t count,
                                                   std::uint64_t first);

/// A note of arrays that are not of the shape that the Hub's metadata say.
[[nodiscard]] std::string note_of_misshapen_arrays(std::string_view path, std::string_view column,
                                                   std::string_view shape, std::uint64_t count, std::uint64_t first);

/// Replaces the field that has the paths of files by a field of these files: "jpg", of pictures, or "file".
///   from        of a table at an address: its files are asked for there
///   elsewhere   those that tables on a disk name at addresses, and those below a root that is signed; made by the first table that names one
///   throws      error{errc::not_found} no such field, or a file that is not there; error{errc::usage} a table at an address that names a file
///               of a disk, and one on a disk that names both; error{errc::unsupported} an address of another kind, as gs:// is
void follow_paths(record_table& table, const file_bytes& file, const input_files& from,
                  std::shared_ptr<const input_files>& elsewhere, const table_options& options);

/// Adds columns of texts, numbered over all tables.
///   texts   of each table: columns' names, and each row's text
void add_class_columns(std::span<record_table> tables,
                       std::span<const std::vector<std::pair<std::string, few_texts>>> texts);

/// The tables one after another.
[[nodiscard]] dataset join_tables(std::vector<record_table> tables, const input_files& from,
                                  std::span<const sized_file> sized);

}  // namespace leat::datasets

// Rows of fixed size in files, found by arithmetic: arrays and records. No memory per sample.
#pragma once

#include "io/files/file_table.hpp"
#include "io/files/source.hpp"

#include <leat/samples.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace leat::datasets {

class file_staleness;

/// Samples that lie in one file.
struct dense_run {
  std::uint32_t file = 0;
  std::uint64_t samples = 0;
  std::vector<std::uint64_t> offsets = {};  ///< of each field's first row
};

/// What a format found out by reading headers.
///   fields     name, kind, type, shape; sizes are filled in by dense_rows()
///   strides    of each field, bytes from one row to the next
struct dense_table {
  std::shared_ptr<const io::file_table> files = {};
  std::shared_ptr<const io::source_description> source = {};  ///< of the same files
  std::shared_ptr<const file_staleness> watch = {};  ///< of the same files; null: nobody looks whether they changed
  std::vector<field_info> fields = {};
  std::vector<std::uint64_t> strides = {};
  std::vector<dense_run> runs = {};
  std::vector<column_values> columns = {};
  std::vector<std::string> notes = {};
};

/// Bytes of one row.
///   throws   error{errc::format} with `where` when it is more than a file can have
[[nodiscard]] std::uint64_t row_bytes(dtype type, const dimensions& shape, const std::string& where);

///   throws   error{errc::limit} for a row of more than 1 TiB
[[nodiscard]] dataset dense_rows(dense_table table);

}  // namespace leat::datasets

// array_bytes SOURCE ARRAY: the values of one array of an HDF5 file or a Zarr folder, or of a column of MDS, for scripts/conformance to
// compare.
//
// Each field that the array becomes (a compound has one for each member) is a line
//
//     field KIND DTYPE ROWS SHAPE NAME      SHAPE: 3x224x224, or "-" for a single element; KIND "column" for integers that are a column
//
// and for each row the number of its bytes, as 8 bytes little-endian, and the bytes; of a column the 8 bytes of an i64. Before them, a
// line "note TEXT" for each of dataset::notes(). A refusal goes to stderr with exit status 1.
#include "base/text.hpp"

#include <leat/error.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_tables.hpp>
#include <leat/samples.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat {
namespace {

void write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) {
    throw error(errc::io, "array_bytes: stdout takes no more");
  }
}

void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void write_number(std::uint64_t number) { write(std::as_bytes(std::span(&number, 1))); }

dataset open_source(const std::string& source, const array_options& options) {
  if (std::filesystem::exists(source + "/index.json")) return open_mds(source, {.fields = options.fields});
  return std::filesystem::is_directory(source) ? open_zarr(source, options) : open_hdf5(source, options);
}

std::string text_of(const dimensions& shape) {
  std::string text;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) str_append(text, axis == 0 ? "" : "x", shape[axis]);
  return text.empty() ? "-" : text;
}

// Rows that share blocks are read in one window where each by itself would expand them again and again.
std::vector<std::byte> read_at_once(const std::string& source, const field_info& field, std::uint64_t rows) {
  constexpr std::uint64_t expanded_bytes_max = std::uint64_t{16} << 20;
  if (!field.expands() || field.decoded_block_bytes_max * rows < expanded_bytes_max) return {};
  return open_source(source, {.fields = {field.name}, .window = rows, .threads = 1}).read(0, field.name);
}

void write_arrays(const std::string& source, const dataset& samples) {
  for (std::string note : samples.notes()) {
    for (char& each : note) each = each == '\n' ? ' ' : each;
    write(str_cat("note ", note, "\n"));
  }
  for (const field_info& each : samples.fields()) {
    write(str_cat("field ",
                  each.column                       ? "column"
                  : each.kind == field_kind::tensor ? "tensor"
                                                    : "bytes",
                  " ", name(each.type), " ", samples.size(), " ", text_of(each.shape), " ", each.name, "\n"));
    const std::vector<std::byte> whole = read_at_once(source, each, samples.size());
    for (std::uint64_t row = 0; row < samples.size(); ++row) {
      if (!whole.empty()) {
        const std::size_t row_bytes = whole.size() / samples.size();
        write_number(row_bytes);
        write(std::span(whole).subspan(row * row_bytes, row_bytes));
        continue;
      }
      if (each.column) {
        write_number(static_cast<std::uint64_t>(samples.column(row, each.name).value()));
        continue;
      }
      const std::vector<std::byte> bytes = samples.read(row, each.name);
      write_number(bytes.size());
      write(bytes);
    }
  }
}

}  // namespace
}  // namespace leat

int main(int count, char** arguments) {
  if (count != 3) {
    std::fputs("array_bytes SOURCE ARRAY\n", stderr);
    return 2;
  }
  try {
    const std::string source = arguments[1];
    leat::write_arrays(source, leat::open_source(source, {.fields = {arguments[2]}, .threads = 1}));
    return std::fflush(stdout) == 0 ? 0 : 2;
  } catch (const leat::error& refusal) {
    std::fprintf(stderr, "%s\n", refusal.what());
    return 1;
  } catch (const std::exception& other) {
    std::fprintf(stderr, "array_bytes: not a leat::error: %s\n", other.what());
    return 3;
  }
}

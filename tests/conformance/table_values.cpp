// table_values SOURCE COLUMN: the values of one column of a table (Parquet, Arrow, CSV, LMDB, TFRecord ...), for scripts/conformance to compare.
//
// A line
//
//     KIND DTYPE ROWS NAME      KIND: "column" of numbers that are kept, "values" of bytes, texts and lists
//
// and for each row the number of its bytes, as 8 bytes little-endian, and the bytes; of a column those of an i64 or, where DTYPE is one of
// floats, of an f64. A row without a value has 2^64 - 1 instead of a number of bytes. A refusal goes to stderr with exit status 1.
#include "base/text.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/read_part.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/samples.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace leat {
namespace {

constexpr std::uint64_t missing = ~std::uint64_t{0};

void write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) {
    throw error(errc::io, "table_values: stdout takes no more");
  }
}

template <class Number>
void write_number(Number number) {
  write(std::as_bytes(std::span(&number, 1)));
}

void write_column(const datasets::dataset_model& model, std::size_t column) {
  for (std::uint64_t row = 0; row < model.size(); ++row) {
    const std::optional<datasets::column_value> value = model.column(row, column);
    write_number(value ? std::uint64_t{8} : missing);
    if (value) std::visit([](auto number) { write_number(number); }, *value);
  }
}

void write_values(const datasets::dataset_model& model, std::uint16_t field) {
  datasets::blocking_sources sources;
  std::vector<std::byte> bytes;
  datasets::part_list parts;
  const datasets::need wanted{.field = field};
  for (std::uint64_t row = 0; row < model.size(); ++row) {
    parts.clear();
    model.parts(row, {&wanted, 1}, parts);
    if (parts.empty()) {
      write_number(missing);
      continue;
    }
    bytes.clear();
    datasets::append_field(model, row, field, {parts.data(), parts.size()}, sources, bytes);
    write_number(std::uint64_t{bytes.size()});
    write(bytes);
  }
}

void write_one(const std::string& source, const std::string& name) {
  const dataset samples = open({source}, {.arrays = {.fields = {name}}, .tables = {.threads = 1}});
  const datasets::dataset_model& model = *samples.model();
  for (const field_info& each : samples.fields()) {
    const std::string line =
        str_cat(each.column ? "column " : "values ", leat::name(each.type), " ", samples.size(), " ", each.name, "\n");
    write(std::as_bytes(std::span(line)));
    if (each.column) {
      write_column(model, *model.find_column(each.name));
    } else {
      write_values(model, *model.find_field(each.name));
    }
  }
}

}  // namespace
}  // namespace leat

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: table_values SOURCE COLUMN\n", stderr);
    return 2;
  }
  try {
    leat::write_one(argv[1], argv[2]);
    return std::fflush(stdout) == 0 ? 0 : 2;
  } catch (const leat::error& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "table_values: %s\n", failure.what());
    return 2;
  }
}

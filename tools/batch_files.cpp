#include "tools/batch_files.hpp"

#include "base/text.hpp"
#include "tools/npy.hpp"

#include <leat/error.hpp>

#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;

template <class Number>
json numbers_of(const tensor& values) {
  const std::span<Number> all = values.as<Number>();
  const auto rows = static_cast<std::size_t>(values.shape[0]);
  json list = json::array();
  if (values.shape.size() == 1) {
    for (const Number value : all) list.push_back(value);
    return list;
  }
  const std::size_t length = rows == 0 ? 0 : all.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    json vector = json::array();
    for (const Number value : all.subspan(row * length, length)) vector.push_back(value);
    list.push_back(std::move(vector));
  }
  return list;
}

}  // namespace

json labels_of(const tensor& values) {
  switch (values.type) {
    case dtype::u8:
      return numbers_of<std::uint8_t>(values);
    case dtype::i8:
      return numbers_of<std::int8_t>(values);
    case dtype::u16:
      return numbers_of<std::uint16_t>(values);
    case dtype::i16:
      return numbers_of<std::int16_t>(values);
    case dtype::u32:
      return numbers_of<std::uint32_t>(values);
    case dtype::i32:
      return numbers_of<std::int32_t>(values);
    case dtype::u64:
      return numbers_of<std::uint64_t>(values);
    case dtype::i64:
      return numbers_of<std::int64_t>(values);
    case dtype::f32:
      return numbers_of<float>(values);
    case dtype::f64:
      return numbers_of<double>(values);
    case dtype::f16:
    case dtype::bf16:
    case dtype::boolean:
      break;
  }
  return json::array();  // No label is of these types.
}

batch_lines::batch_lines(const std::string& path, bool rows, std::string label, std::uint64_t bytes)
    : file_(path == "-" ? output_file::standard_output() : output_file::continued(path, output_kind::batches, bytes)),
      rows_(rows),
      label_(std::move(label)) {
  file_.keep();
}

void batch_lines::append(const batch& delivered, const std::stop_token& stop) {
  json line;
  line["epoch"] = delivered.epoch();
  line["batch"] = delivered.index();
  line["ids"] = std::vector<std::uint64_t>(delivered.ids().begin(), delivered.ids().end());
  line["labels"] = label_.empty() ? json::array() : labels_of(delivered[label_]);
  if (const std::optional<digest> content = delivered.content_digest()) line["digest"] = content->hex();
  if (rows_) {
    json rows = json::array();
    for (const digest& row : delivered.row_digests()) rows.push_back(row.hex());
    line["rows"] = std::move(rows);
  }
  file_.write(json_text(line) + "\n", stop);
}

void check_npy_files(const std::string& directory, std::uint32_t epochs) {
  std::error_code failure;
  const std::filesystem::file_status there = std::filesystem::status(directory, failure);
  if (!std::filesystem::exists(there)) return;
  if (!std::filesystem::is_directory(there)) {
    throw error(errc::usage, str_cat("--npy ", directory, " is no directory; name one, or one that is to be made"));
  }
  for (std::filesystem::directory_iterator each(directory, failure), end; !failure && each != end;
       each.increment(failure)) {
    // <epoch>-<batch>-<output>.npy
    const std::string name = each->path().filename().string();
    const std::vector<std::string> parts = absl::StrSplit(name, absl::MaxSplits('-', 2));
    std::uint32_t epoch = 0;
    std::uint64_t batch = 0;
    if (parts.size() != 3 || !name.ends_with(".npy") || !absl::SimpleAtoi(parts[0], &epoch) || epoch >= epochs ||
        !absl::SimpleAtoi(parts[1], &batch)) {
      continue;
    }
    check_replaces_own_kind(str_cat(directory, "/", name), output_kind::array);
  }
  if (!failure && ::access(directory.c_str(), W_OK | X_OK) == 0) return;
  throw error(errc::io, str_cat("cannot write into ", directory, ": ",
                                failure ? failure.message() : std::generic_category().message(errno),
                                "; give --npy a directory that you may write"));
}

void write_npy_files(const std::string& directory, const batch& delivered, const std::stop_token& stop) {
  for (const std::string& output : delivered.outputs()) {
    std::string name = output;
    std::replace(name.begin(), name.end(), '/', '_');
    write_npy(str_cat(directory, "/", delivered.epoch(), "-", delivered.index(), "-", name, ".npy"), delivered[output],
              stop);
  }
}

}  // namespace leat::tools

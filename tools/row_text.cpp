#include "tools/row_text.hpp"

#include "base/text.hpp"
#include "tools/batch_files.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string_view>

namespace leat::tools {

std::string label_text(const dataset& samples, const nlohmann::ordered_json& label) {
  if (!label.is_number_integer()) return label.dump();
  const auto number = label.get<std::int64_t>();
  const bool named = number >= 0 && static_cast<std::size_t>(number) < samples.classes().size();
  return named ? str_cat(samples.classes()[static_cast<std::size_t>(number)], " (", number, ")") : absl::StrCat(number);
}

std::string text_of(std::span<const std::byte> bytes) {
  constexpr std::size_t text_bytes_max = 2000;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), text_bytes_max));
  return str_cat(text, bytes.size() > text_bytes_max ? " ..." : "");
}

std::string numbers_text(const tensor& rows, std::size_t row, std::int64_t most) {
  std::string text(name(rows.type));
  dimensions shape;
  for (std::size_t axis = 1; axis < rows.shape.size(); ++axis) {
    str_append(text, axis == 1 ? " [" : ", ", rows.shape[axis]);
    shape.push_back(rows.shape[axis]);
  }
  if (!shape.empty()) text += "]";
  tensor first = rows;
  const std::int64_t there = shape.elements();
  first.shape = {std::min<std::int64_t>(there, most)};
  first.strides = {1};
  first.data = static_cast<std::byte*>(rows.data) + row * static_cast<std::size_t>(there) * size_bytes(rows.type);
  std::string_view separator = ": ";
  for (const auto& number : labels_of(first)) {
    str_append(text, separator, number.dump());
    separator = ", ";
  }
  return there > most ? text + " ..." : text;
}

}  // namespace leat::tools

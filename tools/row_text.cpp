#include "tools/row_text.hpp"

#include "base/half.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace leat::tools {
namespace {

// Calls `take` with the element in its own type; halves are floats.
template <class Take>
auto take_element(const tensor& values, std::size_t index, Take&& take) {
  const std::byte* const at = static_cast<const std::byte*>(values.data) + index * size_bytes(values.type);
  const auto as = [at]<class Number>(Number value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (values.type) {
    case dtype::u8:
      return take(as(std::uint8_t{}));
    case dtype::i8:
      return take(as(std::int8_t{}));
    case dtype::u16:
      return take(as(std::uint16_t{}));
    case dtype::i16:
      return take(as(std::int16_t{}));
    case dtype::u32:
      return take(as(std::uint32_t{}));
    case dtype::i32:
      return take(as(std::int32_t{}));
    case dtype::u64:
      return take(as(std::uint64_t{}));
    case dtype::i64:
      return take(as(std::int64_t{}));
    case dtype::f16:
      return take(f16_value(as(std::uint16_t{})));
    case dtype::bf16:
      return take(bf16_value(as(std::uint16_t{})));
    case dtype::f32:
      return take(as(float{}));
    case dtype::f64:
      return take(as(double{}));
    case dtype::boolean:
      break;
  }
  return take(as(std::uint8_t{}));
}

std::string float_text(double value) {
  std::string text = absl::StrFormat("%.4g", value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";  // not of 1e+10, inf and nan
  return text;
}

}  // namespace

std::string element_text(const tensor& values, std::size_t index) {
  return take_element(values, index, [](auto value) {
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      return float_text(static_cast<double>(value));
    } else {
      return absl::StrCat(value);
    }
  });
}

double element_value(const tensor& values, std::size_t index) {
  return take_element(values, index, [](auto value) { return static_cast<double>(value); });
}

std::string label_text(const dataset& samples, const nlohmann::ordered_json& label) {
  if (label.is_number_float()) return float_text(label.get<double>());
  if (!label.is_number_integer()) return label.dump();
  const auto number = label.get<std::uint64_t>();  // of a negative one behind all classes
  const bool is_named = number < samples.classes().size();
  return is_named ? str_cat(samples.classes()[number], " (", number, ")") : label.dump();
}

std::string text_of(std::span<const std::byte> bytes) {
  constexpr std::size_t text_bytes_max = 2000;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), text_bytes_max));
  return str_cat(text, bytes.size() > text_bytes_max ? " ..." : "");
}

std::string bytes_or_text(std::span<const std::byte> bytes) {
  constexpr std::size_t bytes_shown = 16;
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool printable = std::none_of(all.begin(), all.end(), [](char each) {
    const auto code = static_cast<unsigned char>(each);
    return code < 0x20 && each != '\n' && each != '\t' && each != '\r';
  });
  if (printable && !first_invalid_utf8(bytes)) return text_of(bytes);
  std::string text = str_cat(bytes_text(bytes.size()), ":");
  for (const std::byte each : bytes.first(std::min(bytes.size(), bytes_shown))) {
    text += absl::StrFormat(" %02x", std::to_integer<unsigned>(each));
  }
  return bytes.size() > bytes_shown ? text + " ..." : text;
}

std::string numbers_text(const tensor& rows, std::size_t row, std::int64_t most) {
  std::string text(name(rows.type));
  dimensions shape;
  for (std::size_t axis = 1; axis < rows.shape.size(); ++axis) {
    str_append(text, axis == 1 ? " [" : ", ", rows.shape[axis]);
    shape.push_back(rows.shape[axis]);
  }
  if (!shape.empty()) text += "]";
  const std::int64_t there = shape.elements();
  const std::int64_t shown = std::min(there, most);
  for (std::int64_t k = 0; k < shown; ++k) {
    str_append(text, k == 0 ? ": " : ", ",
               element_text(rows, row * static_cast<std::size_t>(there) + static_cast<std::size_t>(k)));
  }
  return there > most ? text + " ..." : text;
}

}  // namespace leat::tools

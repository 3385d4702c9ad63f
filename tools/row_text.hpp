// What a row of a batch holds, in words for a person.
#pragma once

#include <leat/samples.hpp>
#include <leat/tensor.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace leat::tools {

/// "tabby (281)" where the dataset names its classes, else the number.
[[nodiscard]] std::string label_text(const dataset& samples, const nlohmann::ordered_json& label);

/// The beginning of a text; of what is no text how many bytes there are, and the first of them.
[[nodiscard]] std::string bytes_or_text(std::span<const std::byte> bytes);
[[nodiscard]] std::string text_of(std::span<const std::byte> bytes);

/// An element, as it is stored: floats with 4 digits, "0.3333", "1.0".
[[nodiscard]] std::string element_text(const tensor& values, std::size_t index);
/// Its value: for drawing, where 64 bits of an integer are more than a screen has.
[[nodiscard]] double element_value(const tensor& values, std::size_t index);

/// "f32 [3, 64, 64]: 0.25, 0.5, 1.0 ...": the first numbers of a row.
[[nodiscard]] std::string numbers_text(const tensor& rows, std::size_t row, std::int64_t most);

}  // namespace leat::tools

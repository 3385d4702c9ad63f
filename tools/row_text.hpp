// What a row of a batch holds, in words for a person.
#pragma once

#include <leat/dataset.hpp>
#include <leat/tensor.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace leat::tools {

/// "tabby (281)" where the dataset names its classes, else the number.
[[nodiscard]] std::string label_text(const dataset& samples, const nlohmann::ordered_json& label);

/// The beginning of a text.
[[nodiscard]] std::string text_of(std::span<const std::byte> bytes);

/// "f32 [3, 64, 64]: 0.25, 0.5, 1 ...": the first numbers of a row.
[[nodiscard]] std::string numbers_text(const tensor& rows, std::size_t row, std::int64_t most);

}  // namespace leat::tools

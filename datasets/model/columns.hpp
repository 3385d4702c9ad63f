// Numbers that are kept beside the samples: a dataset's columns, and the classes that one of them numbers.
#pragma once

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace leat::datasets {

/// A value of a column: a whole number or a real one.
using column_value = std::variant<std::int64_t, double>;
/// The number, if it is a whole one that a std::int64_t holds, whatever it is stored as.
[[nodiscard]] std::optional<std::int64_t> whole_of(const column_value& value) noexcept;
[[nodiscard]] double real_of(const column_value& value) noexcept;
/// Its digits: of a real number as few as give the same number again.
[[nodiscard]] std::string text_of(const column_value& value);
/// Writes it as an element of `type`, which is i64 or a type of floats.
void store(const column_value& value, dtype type, std::byte* to) noexcept;

class columns_facet {
 public:
  [[nodiscard]] virtual std::span<const std::string> column_names() const noexcept = 0;
  /// A sample's value in it; nullopt where this sample has none (the parts of a concatenation need not share their columns:
  /// then the field of that name may be there instead).
  [[nodiscard]] virtual std::optional<column_value> column(std::uint64_t sample, std::size_t column) const = 0;
  /// i64 of whole numbers; else what the real ones are stored as.
  [[nodiscard]] virtual dtype column_type(std::size_t column) const = 0;
  /// How many samples have no value in it.
  [[nodiscard]] virtual std::uint64_t column_gaps(std::size_t column) const = 0;

 protected:
  ~columns_facet() = default;
};

/// Names of classes.
///   column   whose numbers they name, and dataset::label() gives
struct class_names {
  std::vector<std::string> names = {};
  std::string column = "cls";
};

}  // namespace leat::datasets

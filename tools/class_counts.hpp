// Which label is a sample's class, and how many samples each class has.
#pragma once

#include <leat/dataset.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace leat::tools {

/// The label that is a class: by its name, or the only one that there is. A number that tells samples apart is none. Empty: there is none.
[[nodiscard]] std::string class_label_of(const std::vector<std::string>& labels);

/// What may be a class: the dataset's own, or what is called so. A field or a column.
[[nodiscard]] std::optional<field_info> class_field_of(const dataset& samples);
/// Whether so many different numbers, of so many samples, tell samples apart: prices, lengths, ids. Never of the dataset's own class.
[[nodiscard]] bool is_no_class(const dataset& samples, const std::string& label, std::uint64_t different,
                               std::uint64_t looked_at);

/// Samples by class number.
///   label       the field or column that has it; empty where there is none
///   looked_at   samples whose class was looked at: all where the source itself knows them, else some, evenly spread
struct class_counts {
  std::string label = {};
  std::map<std::int64_t, std::uint64_t> samples = {};
  std::uint64_t looked_at = 0;
};

/// Reads labels that are fields. Damaged samples are not counted.
[[nodiscard]] class_counts classes_of(const dataset& samples);

/// By dataset::classes(), or its number.
[[nodiscard]] std::string class_name(const dataset& samples, std::int64_t number);

}  // namespace leat::tools

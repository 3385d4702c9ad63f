#include "stages/order/columns.hpp"

#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/value_sizes.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/order/order_error.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <string>

namespace leat::stages {
namespace {

[[noreturn]] void throw_none(std::string_view order, std::uint64_t sample, std::string_view name) {
  throw order_error(order, "sample ", sample, " has no '", name, "'; leave it out (subset())");
}

std::vector<std::int64_t> values_of(const datasets::dataset_model& model, std::size_t column, std::string_view name,
                                    std::string_view order) {
  std::vector<std::int64_t> values(model.size());
  for (std::uint64_t sample = 0; sample < values.size(); ++sample) {
    const std::optional<datasets::column_value> value = model.column(sample, column);
    if (!value) throw_none(order, sample, name);
    const std::optional<std::int64_t> whole = datasets::whole_of(*value);
    if (!whole) {
      throw order_error(order, "'", name, "' of sample ", sample, " is ", datasets::text_of(*value),
                        ", which is no whole number; give a column of those");
    }
    values[sample] = *whole;
  }
  return values;
}

std::string names_of(const datasets::dataset_model& model, bool fields, std::string_view wanted) {
  std::vector<std::string> names(model.columns().begin(), model.columns().end());
  if (fields) {
    for (const field_info& field : model.fields()) names.push_back(field.name);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return (text.empty() ? "none" : text) + did_you_mean(wanted, names);
}

}  // namespace

std::vector<std::int64_t> column_values_of(const dataset& samples, std::string_view column, std::string_view order) {
  const datasets::dataset_model& model = *samples.model();
  if (const std::optional<std::size_t> found = model.find_column(column)) {
    return values_of(model, *found, column, order);
  }
  const std::string remedy = model.find_field(column)
                                 ? str_cat("; it is a field: samples.with_column(\"", column,
                                           "\", read_column(samples, \"", column, "\")) reads it once")
                                 : "";
  throw order_error(order, "the dataset has no column '", column, "'; it has ", names_of(model, false, column), remedy);
}

std::vector<std::uint64_t> lengths_of(const dataset& samples, std::string_view length, std::string_view order,
                                      std::span<const field> fields, const counting& how) {
  const datasets::dataset_model& model = *samples.model();
  std::vector<std::uint64_t> lengths;
  if (const std::optional<std::size_t> column = model.find_column(length)) {
    const std::vector<std::int64_t> values = values_of(model, *column, length, order);
    lengths.resize(values.size());
    for (std::size_t sample = 0; sample < values.size(); ++sample) {
      if (values[sample] < 0) {
        throw order_error(order, "the length of sample ", sample, " is ", values[sample], "; give lengths from 0 on");
      }
      lengths[sample] = static_cast<std::uint64_t>(values[sample]);
    }
    return lengths;
  }
  for (const leat::field& each : fields) {
    if (each.model().name() != length) continue;
    if (const auto counts = each.model().counts(samples.model(), how)) return {counts->begin(), counts->end()};
  }
  const std::optional<std::uint16_t> field = model.find_field(length);
  if (!field || model.forms(*field).any_of(datasets::forms_made)) {
    throw order_error(order, "the dataset has no column '", length,
                      "', and no field of this name whose bytes are stored; it has ", names_of(model, true, length));
  }
  lengths = datasets::value_sizes(model, *field);
  std::replace(lengths.begin(), lengths.end(), datasets::damaged_value, std::uint64_t{0});
  const auto none = std::find(lengths.begin(), lengths.end(), datasets::no_value);
  if (none != lengths.end()) throw_none(order, static_cast<std::uint64_t>(none - lengths.begin()), length);
  return lengths;
}

}  // namespace leat::stages

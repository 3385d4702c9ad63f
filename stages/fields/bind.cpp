#include "stages/fields/bind.hpp"

#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "stages/batch/field_model.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>

#include <limits>

namespace leat {

field::field(std::shared_ptr<const stages::field_model> model) : model_(std::move(model)) {}
const std::string& field::name() const noexcept { return model_->name(); }

namespace stages {

std::vector<std::uint16_t> find_fields(const datasets::dataset_model& dataset,
                                       std::span<const std::string_view> names) {
  std::vector<std::uint16_t> found;
  for (const std::string_view name : names) {
    if (const auto field = dataset.find_field(name)) found.push_back(*field);
  }
  return found;
}

void throw_no_field(const datasets::dataset_model& dataset, std::string_view member, std::string_view output) {
  std::string text = str_cat("the dataset has no field '", member, "'; it has");
  std::string_view separator = " ";
  std::vector<std::string> names;
  for (const field_info& info : dataset.fields()) {
    str_append(text, separator, info.name);
    names.push_back(info.name);
    separator = ", ";
  }
  for (const std::string& column : dataset.columns()) {
    str_append(text, separator, column, " (a column)");
    names.push_back(column);
    separator = ", ";
  }
  const std::string meant = did_you_mean(member, names);
  if (!meant.empty()) {
    text += meant;
  } else if (output == member && !dataset.fields().empty()) {
    str_append(text, "; .from(\"", dataset.fields().front().name, "\") reads one under a name of your own");
  }
  throw error(errc::usage, text);
}

void throw_wrong_kind(const field_info& member, std::string_view output) {
  const auto what = [&]() -> std::string {
    switch (member.kind) {
      case field_kind::picture:
        return "pictures; leat::image reads them";
      case field_kind::tokens:
        return "tokens; leat::tokens reads them";
      case field_kind::tensor:
        return str_cat("rows of ", name(member.type), "; leat::array reads them");
      case field_kind::label:
        return "numbers; leat::label reads them";
      case field_kind::text:
        return "texts; leat::text reads them";
      case field_kind::bytes:
        break;
    }
    if (member.type != dtype::u8) return str_cat("lists of ", name(member.type), "; leat::sequence reads them");
    return "bytes; leat::bytes reads them";
  };
  throw error(errc::usage, str_cat("field '", output, "': the member '", member.name, "' holds ", what()));
}

std::size_t bytes_max_or_any(std::optional<std::size_t> bytes_max, std::string_view name) {
  if (bytes_max == std::size_t{0}) {
    throw error(errc::usage, str_cat("field '", name, "': bytes_max(0) leaves room for no byte; say at least 1"));
  }
  return bytes_max.value_or(std::numeric_limits<std::size_t>::max());
}

std::string too_many_bytes(std::size_t bytes, std::size_t bytes_max) {
  return str_cat("has ", bytes, " bytes, and bytes_max() says at most ", bytes_max);
}

}  // namespace stages
}  // namespace leat

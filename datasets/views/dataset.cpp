// The handle: checks what it is asked and passes it on to the model.
#include "base/text.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/read_part.hpp"

#include <leat/error.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

namespace leat {
namespace {

void check_sample(const datasets::dataset_model& model, std::uint64_t sample) {
  if (sample >= model.size()) {
    throw error(errc::usage,
                str_cat("sample ", sample, " was asked for; the data set has ", model.size(), ", numbered from 0"));
  }
}

std::string names_of_present(const datasets::dataset_model& model, const datasets::part_list& present) {
  std::string names;
  for (const datasets::part& each : present) {
    str_append(names, names.empty() ? "" : ", ", model.fields()[each.field].name);
  }
  return names;
}

// The field of that name; without one, the first the sample has.
std::optional<std::uint16_t> choose_field(const datasets::dataset_model& model, std::string_view name,
                                          const datasets::part_list& present) {
  if (!name.empty()) return model.find_field(name);
  if (!present.empty()) return present.front().field;
  return std::nullopt;
}

}  // namespace

dataset::dataset(std::shared_ptr<const datasets::dataset_model> model) noexcept : model_(std::move(model)) {
  assert(model_);
}

std::uint64_t dataset::size() const noexcept { return model_->size(); }

std::vector<field_info> dataset::fields() const {
  std::vector<field_info> all(model_->fields().begin(), model_->fields().end());
  for (std::size_t number = 0; number < model_->columns().size(); ++number) {
    field_info column;
    column.name = model_->columns()[number];
    column.kind = field_kind::label;
    column.column = true;
    column.type = model_->column_type(number);
    column.samples = model_->size() - model_->column_gaps(number);
    all.push_back(std::move(column));
  }
  return all;
}

const std::vector<std::string>& dataset::classes() const noexcept { return model_->classes(); }
const std::vector<std::string>& dataset::notes() const noexcept { return model_->notes(); }
dataset_memory dataset::memory() const { return model_->memory(); }

std::optional<std::int64_t> dataset::label(std::uint64_t sample) const {
  return column(sample, model_->class_column());
}

std::optional<std::int64_t> dataset::column(std::uint64_t sample, std::string_view name) const {
  check_sample(*model_, sample);
  const std::optional<std::size_t> found = model_->find_column(name);
  const std::optional<datasets::column_value> value = found ? model_->column(sample, *found) : std::nullopt;
  return value ? datasets::whole_of(*value) : std::nullopt;
}

std::optional<double> dataset::number(std::uint64_t sample, std::string_view name) const {
  check_sample(*model_, sample);
  const std::optional<std::size_t> found = model_->find_column(name);
  const std::optional<datasets::column_value> value = found ? model_->column(sample, *found) : std::nullopt;
  return value ? std::optional(datasets::real_of(*value)) : std::nullopt;
}

std::string dataset::name(std::uint64_t sample) const {
  check_sample(*model_, sample);
  return model_->name(sample);
}

std::vector<std::byte> dataset::read(std::uint64_t sample, std::string_view field) const {
  check_sample(*model_, sample);
  datasets::part_list present;
  model_->parts(sample, present);
  const std::optional<std::uint16_t> chosen = choose_field(*model_, field, present);
  const auto is_chosen = [&](const datasets::part& each) { return each.field == chosen; };
  if (std::none_of(present.begin(), present.end(), is_chosen)) {
    const std::string names = names_of_present(*model_, present);
    throw error(errc::not_found, str_cat(model_->name(sample), ": the sample has no field '", field, "'; it has ",
                                         names.empty() ? "none" : names));
  }
  if (const std::optional<datasets::defect> defect = model_->defect_of(sample)) {
    throw error(errc::corrupt, str_cat(model_->name(sample), ": ", defect->reason));
  }
  std::vector<std::byte> bytes;
  datasets::blocking_sources sources;
  datasets::append_field(*model_, sample, *chosen, {present.data(), present.size()}, sources, bytes);
  return bytes;
}

}  // namespace leat

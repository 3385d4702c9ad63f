// The handle: checks what it is asked and passes it on to the model.
#include "base/text.hpp"
#include "datasets/blocking_source.hpp"
#include "datasets/model.hpp"
#include "datasets/read_part.hpp"

#include <leat/dataset.hpp>
#include <leat/error.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <cassert>
#include <future>
#include <utility>

namespace leat {
namespace {

void check_sample(const datasets::dataset_model& model, std::uint64_t sample) {
  if (sample >= model.size()) {
    throw error(errc::usage,
                str_cat("sample ", sample, " was asked for; the data set has ", model.size(), ", numbered from 0"));
  }
}

std::string names_of_present(const datasets::dataset_model& model, std::uint64_t sample,
                             const datasets::part_list& present) {
  std::string names;
  const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  for (const datasets::part& each : present) add(model.fields()[each.field].name);
  for (std::uint16_t field = 0; field < model.fields().size(); ++field) {
    if (model.origin(field) != datasets::field_origin::extents && model.makes(sample, field)) {
      add(model.fields()[field].name);
    }
  }
  return names;
}

// The field of that name; without one, the first the sample has.
std::optional<std::uint16_t> choose_field(const datasets::dataset_model& model, std::uint64_t sample,
                                          std::string_view name, const datasets::part_list& present) {
  if (!name.empty()) return model.find_field(name);
  if (!present.empty()) return present.front().field;
  for (std::uint16_t field = 0; field < model.fields().size(); ++field) {
    if (model.origin(field) != datasets::field_origin::extents && model.makes(sample, field)) return field;
  }
  return std::nullopt;
}

std::vector<std::byte> read_extents(const datasets::dataset_model& model, std::uint64_t sample, std::uint16_t field,
                                    const datasets::part_list& present) {
  std::vector<std::byte> bytes;
  datasets::blocking_sources sources;
  datasets::append_field(model, sample, field, {present.data(), present.size()}, sources, bytes);
  return bytes;
}

std::vector<std::byte> fetch_here(const datasets::dataset_model& model, std::uint64_t sample, std::uint16_t field) {
  boost::asio::io_context here;
  std::future<std::vector<std::byte>> result =
      boost::asio::co_spawn(here, model.fetch(sample, field), boost::asio::use_future);
  here.run();
  return result.get();
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
    column.samples = model_->column_samples(number);
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
  const std::optional<std::uint16_t> chosen = choose_field(*model_, sample, field, present);
  const auto is_chosen = [&](const datasets::part& each) { return each.field == *chosen; };
  const bool from_call = chosen && model_->origin(*chosen) != datasets::field_origin::extents;
  const bool has =
      chosen && (from_call ? model_->makes(sample, *chosen) : std::any_of(present.begin(), present.end(), is_chosen));
  if (!has) {
    const std::string names = names_of_present(*model_, sample, present);
    throw error(errc::not_found, str_cat(model_->name(sample), ": the sample has no field '", field, "'; it has ",
                                         names.empty() ? "none" : names));
  }
  if (const std::optional<datasets::defect> defect = model_->defect_of(sample)) {
    throw error(errc::corrupt, str_cat(model_->name(sample), ": ", defect->reason));
  }
  if (!from_call) return read_extents(*model_, sample, *chosen, present);
  if (model_->origin(*chosen) == datasets::field_origin::awaited) return fetch_here(*model_, sample, *chosen);
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = model_->produce(sample, *chosen, scratch);
  return {bytes.begin(), bytes.end()};
}

}  // namespace leat

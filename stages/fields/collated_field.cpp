// collated: a function of the user's that makes one tensor of a whole batch.
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/copy_row.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace leat {
namespace stages {
namespace {

class collated_program final : public field_program {
 public:
  collated_program(std::vector<output_spec> outputs, std::uint16_t field, collated::function function)
      : outputs_(std::move(outputs)), fields_{field}, function_(std::move(function)) {}

  std::span<const output_spec> outputs() const override { return outputs_; }
  std::span<const std::uint16_t> reads() const override { return fields_; }
  std::size_t ragged_bytes(std::size_t output, std::size_t encoded_bytes) const override {
    return output == 0 ? encoded_bytes : 0;
  }
  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget&) const override {
    return std::make_unique<field_scratch>();
  }
  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    row_target& row = rows.front();
    if (input.encoded.size() > row.bytes.size()) {
      return corrupt(
          str_cat("holds ", input.encoded.size(), " bytes where the dataset promised at most ", row.bytes.size()));
    }
    if (!copy_row(input.encoded, row.bytes.data(), input.stop)) return cancelled();
    row.used = input.encoded.size();
    return {};
  }

  bool finishes() const override { return true; }
  void finish(finished_rows& batch) const override {
    std::vector<std::span<const std::byte>> rows;
    rows.reserve(batch.rows());
    for (std::uint32_t row = 0; row < batch.rows(); ++row) rows.push_back(batch.row(0, row));
    const std::span<std::byte> target = batch.room(1);
    dimensions shape;
    try {
      shape = function_(rows, {.samples = batch.samples(), .epoch = batch.epoch(), .index = batch.index()}, target);
    } catch (...) {
      std::throw_with_nested(error(errc::callback, str_cat(place(batch), ": its function threw")));
    }
    std::size_t room = target.size() / size_bytes(outputs_[1].type);  // elements
    const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    const auto too_large = [&] {
      return error(errc::callback, str_cat(place(batch), ": its function made a tensor of more than the ",
                                           target.size(), " bytes that it has"));
    };
    if (!is_empty && room == 0) throw too_large();
    for (const std::int64_t extent : shape) {
      if (extent < 0 || (!is_empty && static_cast<std::size_t>(extent) > room)) throw too_large();
      if (!is_empty) room /= static_cast<std::size_t>(extent);
    }
    batch.made(1, shape);
  }

 private:
  [[nodiscard]] std::string place(const finished_rows& batch) const {
    return str_cat("field '", outputs_[1].name, "', batch ", batch.index(), " of epoch ", batch.epoch());
  }

  std::vector<output_spec> outputs_;
  std::vector<std::uint16_t> fields_;
  collated::function function_;
};

class collated_model final : public field_model {
 public:
  collated_model(output_spec output, std::string member, std::string described_as, collated::function function)
      : output_(std::move(output)),
        member_(std::move(member)),
        described_as_(std::move(described_as)),
        function_(std::move(function)) {}

  const std::string& name() const noexcept override { return output_.name; }
  void describe(description& out) const override {
    out.add("kind", "collated");
    out.add("member", member_);
    out.add("type", leat::name(output_.type));
    out.add("bytes_max", output_.of_batch_bytes);  // the function sees how large its target is
    if (described_as_.empty()) {
      out.add_unnamed("function", "name it: .described_as(\"...\"), another name whenever it writes other bytes");
    } else {
      out.add("function", described_as_);
    }
  }
  std::unique_ptr<field_program> bind(const datasets::dataset_model& dataset, finished_by) const override {
    const std::optional<std::uint16_t> field = dataset.find_field(member_);
    if (!field) throw_no_field(dataset, member_, output_.name);
    std::vector<output_spec> outputs{
        {.name = output_.name + ".rows", .type = dtype::u8, .ragged = true, .hidden = true}, output_};
    return std::make_unique<collated_program>(std::move(outputs), *field, function_);
  }

 private:
  output_spec output_;
  std::string member_;
  std::string described_as_;
  collated::function function_;
};

}  // namespace
}  // namespace stages

collated::collated(std::string name, dtype type, std::size_t bytes_max, function make)
    : name_(std::move(name)), member_(name_), type_(type), bytes_max_(bytes_max), make_(std::move(make)) {
  if (!make_) throw error(errc::usage, str_cat("field '", name_, "': the function is empty"));
  constexpr std::size_t most = std::size_t{1} << 47;
  if (bytes_max == 0 || bytes_max > most) {
    throw error(errc::usage, str_cat("field '", name_, "': ", bytes_max,
                                     " bytes for the tensor of a batch; give those of the largest that there may be"));
  }
}
collated collated::from(std::string member) const {
  collated changed = *this;
  changed.member_ = std::move(member);
  return changed;
}
collated collated::described_as(std::string name) const {
  collated changed = *this;
  changed.described_as_ = std::move(name);
  return changed;
}
collated::operator field() const {
  return field(std::make_shared<stages::collated_model>(
      stages::output_spec{.name = name_, .type = type_, .ragged = true, .of_batch = true, .of_batch_bytes = bytes_max_},
      member_, described_as_, make_));
}

}  // namespace leat

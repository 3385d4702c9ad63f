// custom: the user's own decoding.
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/user_failure.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>

namespace leat {
namespace stages {
namespace {

class custom_program final : public field_program {
 public:
  custom_program(output_spec output, std::vector<std::uint16_t> fields, custom::function decode)
      : outputs_{std::move(output)}, fields_(std::move(fields)), decode_(std::move(decode)) {}

  std::span<const output_spec> outputs() const override { return outputs_; }
  std::span<const std::uint16_t> reads() const override { return fields_; }
  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget&) const override {
    return std::make_unique<field_scratch>();
  }

  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    const sample_context context{.sample = input.sample,
                                 .draw = input.draw,
                                 .epoch = input.epoch,
                                 .seed = input.seed,
                                 .label = input.dataset->label(input.sample)};
    std::string reason;
    try {
      reason = decode_(input.encoded, context, rows.front().bytes);
    } catch (...) {
      throw_from_user(input, outputs_.front().name, "its function");
    }
    if (!reason.empty()) return corrupt(std::move(reason));
    return {};
  }

 private:
  std::vector<output_spec> outputs_;
  std::vector<std::uint16_t> fields_;
  custom::function decode_;
};

class custom_model final : public field_model {
 public:
  custom_model(output_spec output, std::string member, std::string described_as, custom::function decode)
      : output_(std::move(output)),
        member_(std::move(member)),
        described_as_(std::move(described_as)),
        decode_(std::move(decode)) {}

  const std::string& name() const noexcept override { return output_.name; }
  void describe(description& out) const override {
    out.add("kind", "custom");
    out.add("member", member_);
    out.add("type", leat::name(output_.type));
    for (const std::int64_t extent : output_.row_shape) out.add("axis", extent);
    if (described_as_.empty()) {
      out.add_unnamed("function", "name it: .described_as(\"...\"), another name whenever it writes other bytes");
    } else {
      out.add("function", described_as_);
    }
  }
  std::unique_ptr<field_program> bind(const datasets::dataset_model& dataset, finished_by) const override {
    const std::string_view names[] = {member_};
    std::vector<std::uint16_t> fields = find_fields(dataset, names);
    if (fields.empty()) throw_no_field(dataset, member_, output_.name);
    return std::make_unique<custom_program>(output_, std::move(fields), decode_);
  }

 private:
  output_spec output_;
  std::string member_;
  std::string described_as_;
  custom::function decode_;
};

}  // namespace
}  // namespace stages

custom::custom(std::string name, dtype type, dimensions row_shape, function decode)
    : name_(std::move(name)), member_(name_), type_(type), row_shape_(row_shape), decode_(std::move(decode)) {
  if (!decode_) throw error(errc::usage, str_cat("field '", name_, "': the function is empty"));
  for (const std::int64_t extent : row_shape_) {
    if (extent <= 0) {
      throw error(errc::usage,
                  str_cat("field '", name_, "': an axis of a row has ", extent, " elements; give each at least one"));
    }
  }
}
custom custom::from(std::string member) const {
  custom changed = *this;
  changed.member_ = std::move(member);
  return changed;
}
custom custom::described_as(std::string name) const {
  custom changed = *this;
  changed.described_as_ = std::move(name);
  return changed;
}
custom::operator field() const {
  return field(std::make_shared<stages::custom_model>(
      stages::output_spec{.name = name_, .type = type_, .row_shape = row_shape_, .ragged = false}, member_,
      described_as_, decode_));
}

}  // namespace leat

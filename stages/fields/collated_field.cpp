// collated: a function of the user's that makes tensors of a whole batch, of one member or of several.
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/member_rows.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace leat {
namespace stages {
namespace {

// The first of as many programs as there are members.
class collated_program final : public member_rows_program, finishing_facet {
 public:
  collated_program(const std::string& kept, std::uint16_t field, std::vector<output_spec> made, std::size_t members,
                   collated::function_of_rows function)
      : member_rows_program(kept, field, true, made),
        made_(std::move(made)),
        members_(members),
        function_(std::move(function)) {
    facets_.finishing = this;
  }

  void finish(finished_rows& batch) const override {
    std::vector<std::vector<std::span<const std::byte>>> rows(members_);
    for (std::size_t member = 0; member < members_; ++member) {
      const std::size_t output = output_of_member(member, made_.size());
      for (std::uint32_t row = 0; row < batch.rows(); ++row) rows[member].push_back(batch.row(output, row));
    }
    const std::vector<std::span<const std::span<const std::byte>>> members(rows.begin(), rows.end());
    std::vector<collated_tensor> tensors;
    for (std::size_t i = 0; i < made_.size(); ++i) tensors.push_back({.bytes = batch.room(i + 1), .shape = {}});
    try {
      function_(
          {.members = members, .context = {.samples = batch.samples(), .epoch = batch.epoch(), .index = batch.index()}},
          tensors);
    } catch (...) {
      std::throw_with_nested(error(errc::callback, str_cat(place(batch, 0), ": its function threw")));
    }
    for (std::size_t i = 0; i < made_.size(); ++i) {
      check_room(batch, i, tensors[i]);
      batch.made(i + 1, tensors[i].shape);
    }
  }

 private:
  [[nodiscard]] std::string place(const finished_rows& batch, std::size_t output) const {
    return str_cat("field '", made_[output].name, "', batch ", batch.index(), " of epoch ", batch.epoch());
  }
  void check_room(const finished_rows& batch, std::size_t output, const collated_tensor& made) const {
    std::size_t room = made.bytes.size() / size_bytes(made_[output].type);  // elements
    const bool is_empty = std::find(made.shape.begin(), made.shape.end(), 0) != made.shape.end();
    bool fits = is_empty || room != 0;
    for (const std::int64_t extent : made.shape) {
      fits = fits && extent >= 0 && (is_empty || static_cast<std::size_t>(extent) <= room);
      if (!is_empty && fits) room /= static_cast<std::size_t>(extent);
    }
    if (fits) return;
    throw error(errc::callback, str_cat(place(batch, output), ": its function made a tensor of more than the ",
                                        made.bytes.size(), " bytes that it has"));
  }

  std::vector<output_spec> made_;
  std::size_t members_;
  collated::function_of_rows function_;
};

class collated_model final : public field_model {
 public:
  collated_model(const std::vector<collated_output>& outputs, std::vector<std::string> members,
                 std::string described_as, collated::function_of_rows function)
      : members_(std::move(members)), described_as_(std::move(described_as)), function_(std::move(function)) {
    for (const collated_output& each : outputs) {
      outputs_.push_back(
          {.name = each.name, .type = each.type, .ragged = true, .of_batch = true, .of_batch_bytes = each.bytes_max});
    }
  }

  const std::string& name() const noexcept override { return outputs_.front().name; }
  void describe(description& out) const override {
    out.add("kind", "collated");
    for (const std::string& member : members_) out.add("member", member);
    for (const output_spec& output : outputs_) {
      if (outputs_.size() > 1) out.add("output", output.name);
      out.add("type", leat::name(output.type));
      out.add("bytes_max", output.of_batch_bytes);  // the function sees how large its target is
    }
    describe_function(described_as_, out);
  }
  void bind(const datasets::dataset_model& dataset, finished_by,
            std::vector<std::unique_ptr<field_program>>& out) const override {
    const std::vector<std::uint16_t> fields = fields_of(dataset, members_, name());
    out.push_back(
        std::make_unique<collated_program>(name() + ".rows", fields.front(), outputs_, fields.size(), function_));
    for (std::size_t i = 1; i < fields.size(); ++i) {
      out.push_back(std::make_unique<member_rows_program>(str_cat(name(), ".rows.", i), fields[i], true));
    }
  }

 private:
  std::vector<output_spec> outputs_;
  std::vector<std::string> members_;
  std::string described_as_;
  collated::function_of_rows function_;
};

void check_outputs(const std::vector<collated_output>& outputs) {
  if (outputs.empty()) throw error(errc::usage, "a collated field without an output; give at least one");
  constexpr std::size_t most = std::size_t{1} << 47;
  for (const collated_output& output : outputs) {
    if (output.bytes_max != 0 && output.bytes_max <= most) continue;
    throw error(errc::usage, str_cat("field '", output.name, "': ", output.bytes_max,
                                     " bytes for the tensor of a batch; give those of the largest that there may be"));
  }
}

}  // namespace
}  // namespace stages

collated::collated(std::string name, dtype type, std::size_t bytes_max, function make)
    : outputs_{{.name = name, .type = type, .bytes_max = bytes_max}},
      members_{std::move(name)},
      takes_one_member_(true) {
  if (!make) throw error(errc::usage, str_cat("field '", members_.front(), "': the function is empty"));
  stages::check_outputs(outputs_);
  make_ = [make = std::move(make)](const collated_rows& rows, std::span<collated_tensor> tensors) {
    tensors.front().shape = make(rows.members.front(), rows.context, tensors.front().bytes);
  };
}
collated::collated(std::vector<collated_output> outputs, function_of_rows make)
    : outputs_(std::move(outputs)), make_(std::move(make)) {
  stages::check_outputs(outputs_);
  members_ = {outputs_.front().name};
  if (!make_) throw error(errc::usage, str_cat("field '", members_.front(), "': the function is empty"));
}
collated collated::from(std::string member) const {
  return from(std::initializer_list<std::string>{std::move(member)});
}
collated collated::from(std::initializer_list<std::string> members) const {
  if (members.size() == 0 || (members.size() > 1 && takes_one_member_)) {
    throw error(errc::usage, str_cat("field '", outputs_.front().name, "' of ", members.size(),
                                     " members: collated(outputs, function) has a function that takes several"));
  }
  collated changed = *this;
  changed.members_ = members;
  return changed;
}
collated collated::described_as(std::string name) const {
  collated changed = *this;
  changed.described_as_ = std::move(name);
  return changed;
}
collated::operator field() const {
  return field(std::make_shared<stages::collated_model>(outputs_, members_, described_as_, make_));
}

}  // namespace leat

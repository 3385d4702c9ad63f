// custom: the user's own decoding, of one member or of several.
#include "base/random.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/member_rows.hpp"
#include "stages/fields/user_failure.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>

#include <absl/container/inlined_vector.h>

#include <utility>

namespace leat {
namespace stages {
namespace {

sample_context context_of(const decode_input& input) {
  return {.sample = input.sample,
          .draw = input.draw,
          .epoch = input.epoch,
          .seed = input.seed,
          .label = input.dataset->label(input.sample)};
}

output_spec spec_of(const custom_output& output) {
  output_spec spec{.name = output.name, .type = output.type, .row_shape = output.row_shape};
  spec.ragged = output.bytes_max != 0;
  spec.row_bytes_max = output.bytes_max;
  return spec;
}

// Calls the user's function, which fills `rows`: why the sample is corrupt, or "".
std::string call(const custom::function_of_rows& decode, const std::string& name, const decode_input& input,
                 std::span<const std::span<const std::byte>> members, std::span<row_target> rows,
                 std::span<const output_spec> outputs) {
  absl::InlinedVector<custom_row, 4> made;
  for (const row_target& each : rows) made.push_back({.bytes = each.bytes, .used = 0});
  custom_sample sample{.members = members,
                       .context = context_of(input),
                       .random = as_draws(random_draws(input.seed, input.epoch, input.draw, str_cat("custom ", name))),
                       .picture = input.geometry};
  std::string reason;
  try {
    reason = decode(sample, {made.data(), made.size()});
  } catch (...) {
    throw_from_user(input, name, "its function");
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!outputs[i].ragged || !reason.empty()) continue;
    if (made[i].used > rows[i].bytes.size() || made[i].used % outputs[i].row_bytes() != 0) {
      return str_cat("its function says that a row of '", outputs[i].name, "' has ", made[i].used,
                     " bytes; it has elements of ", outputs[i].row_bytes(), " bytes, and room for ",
                     rows[i].bytes.size());
    }
    rows[i].used = made[i].used;
  }
  return reason;
}

class custom_program final : public field_program, ragged_facet {
 public:
  custom_program(std::vector<output_spec> outputs, std::uint16_t field, custom::function decode,
                 custom::function_of_rows decode_rows)
      : field_program(std::move(outputs), {field}), decode_(std::move(decode)), decode_rows_(std::move(decode_rows)) {
    facts_.calls_function = true;
    facets_.ragged = this;
  }

  std::size_t ragged_bytes(std::size_t output, std::size_t) const override { return outputs_[output].row_bytes_max; }

  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    std::string reason;
    if (decode_rows_) {
      const std::span<const std::byte> members[] = {input.encoded};
      reason = call(decode_rows_, outputs_.front().name, input, members, rows, outputs_);
    } else {
      try {
        reason = decode_(input.encoded, context_of(input), rows.front().bytes);
      } catch (...) {
        throw_from_user(input, outputs_.front().name, "its function");
      }
    }
    if (!reason.empty()) return corrupt(std::move(reason));
    return {};
  }

 private:
  custom::function decode_;
  custom::function_of_rows decode_rows_;
};

// The first of as many programs as there are members: it makes the rows when all of them are there, and the picture that it may
// follow.
class custom_of_members final : public member_rows_program, checking_facet, following_facet {
 public:
  ///   picture   that it follows; empty: none
  custom_of_members(const std::string& kept, std::uint16_t field, std::vector<output_spec> made, std::size_t members,
                    std::string picture, custom::function_of_rows decode)
      : member_rows_program(kept, field, false, made),
        made_(std::move(made)),
        members_(members),
        picture_(std::move(picture)),
        decode_(std::move(decode)) {
    facts_.calls_function = true;
    facets_.checking = this;
    if (!picture_.empty()) facets_.following = this;
  }

  const std::string& leader() const noexcept override { return picture_; }
  void follow(const leading_facet&) override {}
  // Only check() has all members.
  outcome<void> make(field_scratch&, const decode_input&, const picture_geometry&,
                     std::span<row_target>) const override {
    return {};
  }

  std::optional<std::string> check(const decode_input& input, std::span<row_target> rows) const override {
    absl::InlinedVector<std::span<const std::byte>, 4> members;
    for (std::size_t i = 0; i < members_; ++i) {
      const row_target& kept = rows[output_of_member(i, made_.size())];
      members.push_back(kept.bytes.first(kept.used));
    }
    const std::string& name = made_.front().name;
    std::string reason =
        call(decode_, name, input, {members.data(), members.size()}, rows.subspan(1, made_.size()), made_);
    if (reason.empty()) return std::nullopt;
    return str_cat(name, ": ", reason);
  }

 private:
  std::vector<output_spec> made_;
  std::size_t members_;
  std::string picture_;
  custom::function_of_rows decode_;
};

class custom_model final : public field_model {
 public:
  custom_model(const std::vector<custom_output>& outputs, std::vector<std::string> members, std::string picture,
               std::string described_as, custom::function decode, custom::function_of_rows decode_rows)
      : members_(std::move(members)),
        picture_(std::move(picture)),
        described_as_(std::move(described_as)),
        decode_(std::move(decode)),
        decode_rows_(std::move(decode_rows)) {
    for (const custom_output& each : outputs) outputs_.push_back(spec_of(each));
  }

  const std::string& name() const noexcept override { return outputs_.front().name; }
  void describe(description& out) const override {
    out.add("kind", "custom");
    for (const std::string& member : members_) out.add("member", member);
    if (!picture_.empty()) out.add("follows", picture_);
    for (const output_spec& output : outputs_) {
      if (outputs_.size() > 1) out.add("output", output.name);
      out.add("type", leat::name(output.type));
      for (const std::int64_t extent : output.row_shape) out.add("axis", extent);
      if (output.ragged) out.add("bytes_max", std::uint64_t{output.row_bytes_max});
    }
    describe_function(described_as_, out);
  }
  void bind(const datasets::dataset_model& dataset, finished_by,
            std::vector<std::unique_ptr<field_program>>& out) const override {
    if (!picture_.empty() && !decode_rows_) {
      throw error(errc::usage, str_cat("field '", name(), "' follows '", picture_,
                                       "', and its function takes one member: custom(outputs, function) has one that "
                                       "is told where the picture lies"));
    }
    const std::vector<std::uint16_t> fields = fields_of(dataset, members_, name());
    if (fields.size() == 1 && picture_.empty()) {
      out.push_back(std::make_unique<custom_program>(outputs_, fields.front(), decode_, decode_rows_));
      return;
    }
    const auto kept = [&](std::size_t member) { return str_cat(name(), ".member.", member); };
    out.push_back(
        std::make_unique<custom_of_members>(kept(0), fields.front(), outputs_, fields.size(), picture_, decode_rows_));
    for (std::size_t i = 1; i < fields.size(); ++i) {
      out.push_back(std::make_unique<member_rows_program>(kept(i), fields[i], false));
    }
  }

 private:
  std::vector<output_spec> outputs_;
  std::vector<std::string> members_;
  std::string picture_;
  std::string described_as_;
  custom::function decode_;
  custom::function_of_rows decode_rows_;
};

void check_outputs(const std::vector<custom_output>& outputs) {
  if (outputs.empty()) throw error(errc::usage, "a custom field without an output; give at least one");
  for (const custom_output& output : outputs) {
    for (const std::int64_t extent : output.row_shape) {
      if (extent > 0) continue;
      throw error(errc::usage, str_cat("field '", output.name, "': an axis of a row has ", extent,
                                       " elements; give each at least one"));
    }
  }
}

}  // namespace
}  // namespace stages

custom::custom(std::string name, dtype type, dimensions row_shape, function decode)
    : outputs_{{.name = name, .type = type, .row_shape = row_shape}},
      members_{std::move(name)},
      decode_(std::move(decode)) {
  if (!decode_) throw error(errc::usage, str_cat("field '", members_.front(), "': the function is empty"));
  stages::check_outputs(outputs_);
}
custom::custom(std::vector<custom_output> outputs, function_of_rows decode)
    : outputs_(std::move(outputs)), decode_rows_(std::move(decode)) {
  stages::check_outputs(outputs_);
  members_ = {outputs_.front().name};
  if (!decode_rows_) throw error(errc::usage, str_cat("field '", members_.front(), "': the function is empty"));
}
custom custom::from(std::string member) const { return from(std::initializer_list<std::string>{std::move(member)}); }
custom custom::from(std::initializer_list<std::string> members) const {
  if (members.size() == 0 || (members.size() > 1 && !decode_rows_)) {
    throw error(errc::usage, str_cat("field '", outputs_.front().name, "' of ", members.size(),
                                     " members: custom(outputs, function) has a function that takes several"));
  }
  custom changed = *this;
  changed.members_ = members;
  return changed;
}
custom custom::described_as(std::string name) const {
  custom changed = *this;
  changed.described_as_ = std::move(name);
  return changed;
}
custom::operator field() const {
  return field(
      std::make_shared<stages::custom_model>(outputs_, members_, picture_, described_as_, decode_, decode_rows_));
}

}  // namespace leat

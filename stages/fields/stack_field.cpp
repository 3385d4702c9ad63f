// stack and columns: the rows of several fields beside one another in one output.
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/device/slots_operation.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/slots.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>

#include <absl/container/inlined_vector.h>

#include <fnmatch.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {
namespace stages {
namespace {

constexpr std::string_view steps_suffix = ".steps";

// One field's slot of the row. The first has the whole row as its output, the others write into that.
class slot_program final : public field_program {
 public:
  ///   outputs   as many as those of `inner`
  slot_program(std::vector<output_spec> outputs, std::unique_ptr<field_program> inner)
      : field_program(std::move(outputs), {inner->reads().begin(), inner->reads().end()}, inner->facts()),
        inner_(std::move(inner)) {
    // Its row is a part of one, which neither a read nor a cut of a block goes to.
    facts_.verbatim = false;
    facts_.crop = nullptr;
    facets_.choosing = inner_->facets().choosing;
    facets_.drawing = inner_->facets().drawing;
    facets_.sharing = inner_->facets().sharing;
    facets_.leaving = inner_->facets().leaving;
    maker_ = &inner_->maker();
    facets_.leading = inner_->facets().leading;
    facets_.looking = inner_->facets().looking;
    facets_.picking = inner_->facets().picking;
  }

  std::size_t bytes_copied(std::size_t encoded_bytes) const override { return inner_->bytes_copied(encoded_bytes); }
  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget& budget) const override {
    return inner_->make_scratch(budget);
  }
  outcome<void> decode(field_scratch& scratch, const decode_input& input, std::span<row_target> rows) const override {
    absl::InlinedVector<row_target, 2> slots;
    for (std::size_t o = 0; o < rows.size(); ++o) {
      slots.push_back({.bytes = rows[o].bytes.first(inner_->outputs()[o].decoded_row_bytes())});
    }
    return inner_->decode(scratch, input, {slots.data(), slots.size()});
  }

 private:
  std::unique_ptr<field_program> inner_;
};

std::string text_of(const output_spec& output) { return str_cat(name(output.type), " ", to_string(output.row_shape)); }

// Its row as decode() writes it.
output_spec as_written(output_spec of) {
  if (of.made_by == nullptr) return of;
  of.type = dtype::u8;
  of.row_shape = {static_cast<std::int64_t>(of.decoded_row_bytes())};
  of.made_by.reset();
  of.made_from.clear();
  return of;
}

}  // namespace

std::vector<std::unique_ptr<field_program>> bind_slots(const std::string& name, const std::vector<field>& fields,
                                                       const datasets::dataset_model& dataset, finished_by finished) {
  std::vector<std::unique_ptr<field_program>> slots;
  for (const field& each : fields) {
    const std::size_t before = slots.size();
    each.model().bind(dataset, finished, slots);
    const output_spec& output = slots.back()->outputs().front();
    const std::size_t outputs = 1 + output.made_from.size();
    if (slots.back()->facets().following != nullptr) {
      throw error(errc::usage, str_cat("stack '", name, "': the field '", each.name(),
                                       "' follows a picture; give the loader such fields beside the stack"));
    }
    if (slots.back()->facets().looking != nullptr && slots.back()->outputs().size() != outputs) {
      throw error(errc::usage,
                  str_cat("'", name,
                          "': random_iou_crop in views() needs shards that are not compressed, "
                          "and the pictures of '",
                          each.name(), "' lie in compressed blocks; give the loader an image field for each view"));
    }
    if (slots.size() != before + 1 || slots.back()->outputs().size() != outputs || output.ragged ||
        slots.back()->finishes()) {
      throw error(errc::usage, str_cat("stack '", name, "': the field '", each.name(),
                                       "' has rows of any length, or several outputs; fields of a stack have one "
                                       "output of a fixed shape"));
    }
    const output_spec& first = slots.front()->outputs().front();
    if (output.type != first.type || output.row_shape != first.row_shape) {
      throw error(errc::usage,
                  str_cat("stack '", name, "': rows of '", each.name(), "' are ", text_of(output), " and those of '",
                          fields.front().name(), "' ", text_of(first), "; a stack has one dtype and shape"));
    }
    if (output.row_shape.size() + 2 > dimensions::rank_max) {
      throw error(errc::unsupported, str_cat("stack '", name, "' of rows of ", text_of(output), ": a batch has up to ",
                                             dimensions::rank_max, " axes"));
    }
  }
  return slots;
}

void refuse_nvjpeg_of_slots(std::string_view kind, const std::string& name, std::string_view what, const image& of) {
  if (of.get().decoder != jpeg_decoder::nvjpeg) return;
  throw error(errc::usage,
              str_cat(kind, " '", name, "': ", spelled(option_id::jpeg_decoder, "nvjpeg"),
                      " decodes one picture for a row, and ", what, " have several; leave it out"),
              option_id::jpeg_decoder);
}

void add_slots(const std::string& name, std::vector<std::unique_ptr<field_program>> slots,
               std::vector<std::unique_ptr<field_program>>& out, const slots_layout& how) {
  const std::vector<output_spec> of_slot(slots.front()->outputs().begin(), slots.front()->outputs().end());
  const output_spec& first = of_slot.front();
  const auto count = static_cast<std::int64_t>(slots.size());
  std::vector<output_spec> whole{{.name = name,
                                  .type = first.type,
                                  .copied = first.copied,
                                  .picture = first.picture,
                                  .unmixed = first.axes.has_value(),
                                  .lies_apart = how.lie_apart}};
  for (const std::int64_t extent : how.axes.empty() ? dimensions{count} : how.axes) {
    whole.front().row_shape.push_back(extent);
  }
  for (const std::int64_t extent : first.row_shape) whole.front().row_shape.push_back(extent);
  const std::size_t said_bytes = of_slot.size() > 1 ? of_slot.back().row_bytes() : 0;
  if (said_bytes != 0) {
    whole.push_back({.name = name + std::string(steps_suffix),
                     .type = dtype::u8,
                     .row_shape = {count * static_cast<std::int64_t>(said_bytes)}});
    whole.front().made_from = {whole.back().name};
  }
  if (first.made_by != nullptr) {
    assert(first.made_from.size() == of_slot.size() - 1 && of_slot.size() <= 2);
    whole.front().made_by = std::make_shared<slots_operation>(
        slots_operation::slot{.by = first.made_by, .said_bytes = said_bytes, .made_bytes = first.row_bytes()},
        static_cast<std::uint32_t>(count));
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    std::vector<output_spec> outputs = whole;
    for (std::size_t o = 0; i != 0 && o < outputs.size(); ++o) {
      outputs[o] = as_written(of_slot[o]);
      outputs[o].name = str_cat(name, "[", i, "]", o == 0 ? std::string_view() : steps_suffix);
      outputs[o].axes.reset();
      outputs[o].lies_apart = how.lie_apart;
      outputs[o].slot = {.of = whole[o].name, .number = i};
    }
    out.push_back(std::make_unique<slot_program>(std::move(outputs), std::move(slots[i])));
  }
}

namespace {

// Whether one operation can make the rows of all.
bool are_made_alike(const std::vector<std::unique_ptr<field_program>>& slots) {
  const auto made_by = [](const auto& slot) { return slot->outputs().front().made_by.get(); };
  const device_operation* const first = made_by(slots.front());
  return std::all_of(slots.begin(), slots.end(), [&](const auto& slot) {
    const device_operation* const by = made_by(slot);
    if (by == nullptr || first == nullptr) return by == first;
    return first->is_like(*by) && !by->reads_host();
  });
}

class stack_model final : public field_model {
 public:
  stack_model(std::string name, std::vector<field> fields) : name_(std::move(name)), fields_(std::move(fields)) {}

  const std::string& name() const noexcept override { return name_; }
  void describe(description& out) const override {
    out.add("kind", "stack");
    for (const field& each : fields_) {
      out.add("field", each.name());
      each.model().describe(out);
    }
  }
  void bind(const datasets::dataset_model& dataset, finished_by finished,
            std::vector<std::unique_ptr<field_program>>& out) const override {
    auto slots = bind_slots(name_, fields_, dataset, finished);
    if (!are_made_alike(slots)) slots = bind_slots(name_, fields_, dataset, finished_by::host);
    add_slots(name_, std::move(slots), out);
  }

 private:
  std::string name_;
  std::vector<field> fields_;
};

class columns_model final : public field_model {
 public:
  columns_model(std::string name, std::vector<std::string> members, dtype type)
      : name_(std::move(name)), members_(std::move(members)), type_(type) {}

  const std::string& name() const noexcept override { return name_; }
  void describe(description& out) const override {
    out.add("kind", "columns");
    for (const std::string& member : members_) out.add("member", member);
    out.add("type", leat::name(type_));
  }
  void bind(const datasets::dataset_model& dataset, finished_by,
            std::vector<std::unique_ptr<field_program>>& out) const override {
    std::vector<field> fields;
    for (const std::string& member : members_of(dataset)) fields.emplace_back(label(member).as(type_));
    add_slots(name_, bind_slots(name_, fields, dataset, finished_by::host), out);
  }

 private:
  [[nodiscard]] std::vector<std::string> members_of(const datasets::dataset_model& dataset) const {
    std::vector<std::string> found;
    for (const std::string& member : members_) {
      const std::size_t before = found.size();
      if (member.find_first_of("*?[") == std::string::npos || dataset.find_field(member) ||
          dataset.find_column(member)) {
        found.push_back(member);
        continue;
      }
      const auto add = [&](const std::string& name) {
        const bool is_new = std::find(found.begin(), found.end(), name) == found.end();
        if (is_new && ::fnmatch(member.c_str(), name.c_str(), 0) == 0) found.push_back(name);
      };
      for (const field_info& each : dataset.fields()) add(each.name);
      for (const std::string& each : dataset.columns()) add(each);
      if (found.size() == before) throw_no_field(dataset, member, name_);
    }
    return found;
  }

  std::string name_;
  std::vector<std::string> members_;
  dtype type_;
};

}  // namespace
}  // namespace stages

stack::stack(std::string name, std::vector<field> fields) : name_(std::move(name)), fields_(std::move(fields)) {
  if (fields_.empty()) throw error(errc::usage, str_cat("stack '", name_, "' of no field; give at least one"));
}
stack::operator field() const { return field(std::make_shared<stages::stack_model>(name_, fields_)); }

columns::columns(std::string name, std::vector<std::string> members, dtype type)
    : name_(std::move(name)), members_(std::move(members)), type_(type) {
  if (members_.empty()) throw error(errc::usage, str_cat("columns '", name_, "' of no column; name at least one"));
}
columns::operator field() const { return field(std::make_shared<stages::columns_model>(name_, members_, type_)); }

}  // namespace leat

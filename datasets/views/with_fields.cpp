// A dataset with some of its fields.
#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "datasets/files/sample_counts.hpp"
#include "datasets/views/passed_on.hpp"
#include "datasets/views/renamed.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace datasets {
namespace {

constexpr std::int32_t left_out = -1;

class with_fields_model final : public dataset_model, passed_on<with_fields_model>, columns_facet, joined_facet {
 public:
  ///   fields, columns   by their numbers in the whole, in the order in which they are wanted
  with_fields_model(std::shared_ptr<const dataset_model> whole, std::vector<std::uint16_t> fields,
                    std::vector<std::size_t> columns, std::span<const std::pair<std::string, std::string>> names = {})
      : whole_(std::move(whole)),
        inner_(std::move(fields)),
        inner_column_(std::move(columns)),
        outer_(whole_->fields().size() + whole_->columns().size(), left_out) {
    for (std::size_t number = 0; number < inner_.size(); ++number) {
      outer_[inner_[number]] = static_cast<std::int32_t>(number);
    }
    for (std::size_t number = 0; number < inner_column_.size(); ++number) {
      outer_[whole_->fields().size() + inner_column_[number]] = static_cast<std::int32_t>(inner_.size() + number);
      columns_.push_back(whole_->columns()[inner_column_[number]]);
    }
    if (whole_->counts() != nullptr) counts_.emplace(*whole_->counts(), outer_);
    begin_as(*whole_);
    fields_.clear();
    forms_.clear();
    for (const std::uint16_t each : inner_) {
      fields_.push_back(whole_->fields()[each]);
      forms_.push_back(whole_->forms(each));
    }
    facets_.columns = this;
    facets_.counts = counts_ ? &*counts_ : nullptr;
    if (!find_column(class_column()) && !find_field(class_column())) {
      classes_ = std::make_shared<class_names>(class_names{{}, classes_->column});
    }
    if (facets_.joined != nullptr) facets_.joined = this;
    pass_on(whole_->facets(), facets_);
    if (!names.empty()) rename(names);
  }

  std::uint64_t size() const noexcept override { return whole_->size(); }
  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    absl::InlinedVector<need, 8> inner;
    for (const need& wanted : needs) {
      inner.push_back(wanted);
      inner.back().field = inner_[wanted.field];
    }
    const std::size_t before = out.size();
    whole_->parts(sample, inner, out);
    renumber(out, before);
  }
  std::span<const std::string> column_names() const noexcept override { return columns_; }
  std::optional<column_value> column(std::uint64_t sample, std::size_t column) const override {
    return whole_->column(sample, inner_column_[column]);
  }
  dtype column_type(std::size_t column) const override { return whole_->column_type(inner_column_[column]); }
  std::uint64_t column_gaps(std::size_t column) const override { return whole_->column_gaps(inner_column_[column]); }
  std::string name(std::uint64_t sample) const override { return whole_->name(sample); }

  std::vector<std::shared_ptr<const dataset_model>> joined() const override {
    std::vector<std::shared_ptr<const dataset_model>> parts = whole_->joined();
    for (std::shared_ptr<const dataset_model>& each : parts) each = with_names_of(std::move(each));
    return parts;
  }

  void describe(description& out) const override {
    whole_->describe(out);
    std::string names;
    for (const field_info& each : fields_) str_append(names, names.empty() ? "" : ",", each.name);
    for (const std::string& each : columns_) str_append(names, names.empty() ? "" : ",", each);
    out.add("with fields", names);
  }
  dataset_memory memory() const override { return whole_->memory(); }

 private:
  friend class passed_on<with_fields_model>;
  [[nodiscard]] place at(std::uint64_t sample) const noexcept { return {*whole_, sample}; }
  [[nodiscard]] std::uint16_t inner_field(const place&, std::uint16_t field) const noexcept { return inner_[field]; }
  [[nodiscard]] part inner_part(const place&, part outer) const noexcept {
    outer.field = inner_[outer.field];
    return outer;
  }
  void renumber(part_list& out, std::size_t from) const noexcept {
    for (std::size_t i = from; i < out.size(); ++i) out[i].field = static_cast<std::uint16_t>(outer_[out[i].field]);
  }

  // The chosen fields and columns that a part of a concatenation has.
  [[nodiscard]] std::shared_ptr<const dataset_model> with_names_of(std::shared_ptr<const dataset_model> part) const {
    std::vector<std::uint16_t> fields;
    std::vector<std::size_t> columns;
    for (const field_info& each : fields_) {
      if (const auto found = part->find_field(each.name)) fields.push_back(*found);
    }
    for (const std::string& each : columns_) {
      if (const auto found = part->find_column(each)) columns.push_back(*found);
    }
    return std::make_shared<with_fields_model>(std::move(part), std::move(fields), std::move(columns));
  }

  // Parts of a concatenation keep their names, and so are not shown.
  void rename(std::span<const std::pair<std::string, std::string>> names) {
    facets_.joined = nullptr;
    for (const auto& [before, after] : names) {
      for (field_info& each : fields_) {
        if (each.name == before) each.name = after;
      }
      for (std::string& each : columns_) {
        if (each == before) each = after;
      }
      if (class_column() == before) {
        classes_ = std::make_shared<class_names>(class_names{classes_->names, after});
      }
    }
  }

  std::shared_ptr<const dataset_model> whole_;
  std::vector<std::uint16_t> inner_;       // by our number
  std::vector<std::size_t> inner_column_;  // likewise
  std::vector<std::int32_t> outer_;        // by the whole's number, columns behind fields
  std::vector<std::string> columns_;
  std::optional<sample_counts> counts_;
};

}  // namespace

dataset renamed(const dataset& samples, std::span<const std::pair<std::string, std::string>> names) {
  if (names.empty()) return samples;
  const dataset_model& model = *samples.model();
  const auto is_there = [&](const std::string& name) { return model.find_field(name) || model.find_column(name); };
  for (const auto& [before, after] : names) {
    if (!is_there(before)) throw error(errc::usage, str_cat("rename: there is no field '", before, "'"));
    const bool is_free = !is_there(after) && std::count_if(names.begin(), names.end(),
                                                           [&](const auto& each) { return each.second == after; }) == 1;
    if (after.empty() || !is_free) {
      throw error(errc::usage, str_cat("rename of '", before, "' to '", after, "': another field has this name"));
    }
  }
  std::vector<std::uint16_t> fields(model.fields().size());
  std::vector<std::size_t> columns(model.columns().size());
  std::iota(fields.begin(), fields.end(), std::uint16_t{0});
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  return dataset(std::make_shared<with_fields_model>(samples.model(), std::move(fields), std::move(columns), names));
}

}  // namespace datasets

dataset dataset::with_fields(std::span<const std::string> names) const {
  std::vector<std::uint16_t> fields;
  std::vector<std::size_t> columns;
  const auto add = [](auto& to, auto number) {
    if (std::find(to.begin(), to.end(), number) == to.end()) to.push_back(number);
  };
  for (const std::string& name : names) {
    bool found = false;
    const auto take = [&](std::string_view which) {
      if (const auto field = model_->find_field(which)) add(fields, *field), found = true;
      if (const auto column = model_->find_column(which)) add(columns, *column), found = true;
    };
    take(name);
    if (name == datasets::picture_names().front()) {
      for (const std::string_view picture : datasets::picture_names()) take(picture);
    }
    if (found) continue;
    std::vector<std::string> there;
    std::string text;
    for (const field_info& each : this->fields()) {
      str_append(text, text.empty() ? "" : ", ", each.name);
      there.push_back(each.name);
    }
    throw error(errc::usage,
                str_cat("no field '", name, "'; there is ", text.empty() ? "none" : text, did_you_mean(name, there)));
  }
  return dataset(std::make_shared<datasets::with_fields_model>(model_, std::move(fields), std::move(columns)));
}

}  // namespace leat

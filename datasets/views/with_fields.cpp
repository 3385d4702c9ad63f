// A dataset with some of its fields.
#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "datasets/files/sample_counts.hpp"
#include "datasets/model/model.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <utility>

namespace leat {
namespace datasets {
namespace {

constexpr std::int32_t left_out = -1;

class with_fields_model final : public dataset_model {
 public:
  ///   fields, columns   by their numbers in the whole, in the order in which they are wanted
  with_fields_model(std::shared_ptr<const dataset_model> whole, std::vector<std::uint16_t> fields,
                    std::vector<std::size_t> columns)
      : whole_(std::move(whole)),
        inner_(std::move(fields)),
        inner_column_(std::move(columns)),
        outer_(whole_->fields().size() + whole_->columns().size(), left_out) {
    for (std::size_t number = 0; number < inner_.size(); ++number) {
      outer_[inner_[number]] = static_cast<std::int32_t>(number);
      fields_.push_back(whole_->fields()[inner_[number]]);
    }
    for (std::size_t number = 0; number < inner_column_.size(); ++number) {
      outer_[whole_->fields().size() + inner_column_[number]] = static_cast<std::int32_t>(inner_.size() + number);
      columns_.push_back(whole_->columns()[inner_column_[number]]);
    }
    if (whole_->counts() != nullptr) counts_.emplace(*whole_->counts(), outer_);
  }

  std::uint64_t size() const noexcept override { return whole_->size(); }
  std::span<const field_info> fields() const noexcept override { return fields_; }
  std::span<const std::shared_ptr<const io::source_description>> sources() const noexcept override {
    return whole_->sources();
  }
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
  part_forms forms(std::uint16_t field) const noexcept override { return whole_->forms(inner_[field]); }
  std::span<const std::byte> produce(std::uint64_t sample, std::uint16_t field,
                                     std::vector<std::byte>& scratch) const override {
    return whole_->produce(sample, inner_[field], scratch);
  }
  boost::asio::awaitable<std::vector<std::byte>> fetch(std::uint64_t sample, std::uint16_t field) const override {
    return whole_->fetch(sample, inner_[field]);
  }
  std::optional<value_fault> expand(std::uint64_t sample, const part& of, std::span<const std::byte> stored,
                                    std::span<std::byte>& decoded) const override {
    return whole_->expand(sample, inner_part(of), stored, decoded);
  }
  std::optional<value_fault> take_value(std::uint64_t sample, const part& of, std::span<const std::byte> decoded,
                                        std::span<std::byte>& bytes) const override {
    return whole_->take_value(sample, inner_part(of), decoded, bytes);
  }
  void copy_box(std::uint64_t sample, const part& of, const box* within, std::span<const std::byte> decoded,
                std::span<std::byte> bytes) const override {
    whole_->copy_box(sample, inner_part(of), within, decoded, bytes);
  }

  std::span<const std::string> columns() const noexcept override { return columns_; }
  std::optional<column_value> column(std::uint64_t sample, std::size_t column) const override {
    return whole_->column(sample, inner_column_[column]);
  }
  dtype column_type(std::size_t column) const override { return whole_->column_type(inner_column_[column]); }
  std::uint64_t column_samples(std::size_t column) const override {
    return whole_->column_samples(inner_column_[column]);
  }
  const std::vector<std::string>& classes() const noexcept override {
    const std::string_view numbers = class_column();
    return find_column(numbers) || find_field(numbers) ? whole_->classes() : dataset_model::classes();
  }
  std::string_view class_column() const noexcept override { return whole_->class_column(); }
  const std::vector<std::string>& notes() const noexcept override { return whole_->notes(); }
  std::string name(std::uint64_t sample) const override { return whole_->name(sample); }
  std::vector<member_path> members(std::uint64_t sample, std::span<const std::uint16_t> wanted,
                                   blocking_sources& from) const override {
    std::vector<std::uint16_t> inner;
    for (const std::uint16_t field : wanted) inner.push_back(inner_[field]);
    return whole_->members(sample, inner, from);
  }
  sample_blocks blocks() const override { return whole_->blocks(); }
  std::uint64_t defects() const noexcept override { return whole_->defects(); }
  std::optional<defect> defect_of(std::uint64_t sample) const override { return whole_->defect_of(sample); }
  guard guarded() const noexcept override { return whole_->guarded(); }
  std::optional<std::string> changed(guard at) const override { return whole_->changed(at); }
  window_number window_of(std::uint64_t sample) const override { return whole_->window_of(sample); }
  const sample_counts* counts() const noexcept override { return counts_ ? &*counts_ : nullptr; }
  std::uint64_t header_offset(std::uint64_t sample, const extent& part) const override {
    return whole_->header_offset(sample, part);
  }

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
  [[nodiscard]] part inner_part(part of) const noexcept {
    of.field = inner_[of.field];
    return of;
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

  std::shared_ptr<const dataset_model> whole_;
  std::vector<std::uint16_t> inner_;       // by our number
  std::vector<std::size_t> inner_column_;  // likewise
  std::vector<std::int32_t> outer_;        // by the whole's number, columns behind fields
  std::vector<field_info> fields_;
  std::vector<std::string> columns_;
  std::optional<sample_counts> counts_;
};

}  // namespace
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

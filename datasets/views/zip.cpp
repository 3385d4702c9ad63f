// Datasets of one length side by side: a sample has the fields of all.
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/describe.hpp"

#include <leat/error.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <utility>

namespace leat {
namespace datasets {
namespace {

class zip_model final : public dataset_model,
                        columns_facet,
                        blocks_facet,
                        expanding_facet,
                        making_facet,
                        staleness_facet,
                        defects_facet,
                        packing_facet {
 public:
  explicit zip_model(std::span<const dataset> sides) {
    for (const dataset& each : sides) add(*each.model(), each);
    if (sides_.empty()) throw error(errc::usage, "zip of no dataset; give at least one");
    facets_.columns = this;
    facets_.packing = this;
  }

  std::uint64_t size() const noexcept override { return sides_.front().model->size(); }
  std::span<const std::string> column_names() const noexcept override { return columns_; }

  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    for (const side& each : sides_) {
      absl::InlinedVector<need, 8> inner;
      for (const need& wanted : needs) {
        if (!each.has_field(wanted.field)) continue;
        inner.push_back(wanted);
        inner.back().field = each.inner(wanted.field);
      }
      if (inner.empty()) continue;
      const std::size_t before = out.size();
      each.model->parts(sample, inner, out);
      for (std::size_t i = before; i < out.size(); ++i) {
        out[i].field = static_cast<std::uint16_t>(out[i].field + each.first_field);
        out[i].where.source += each.first_source;
      }
    }
  }
  std::span<const std::byte> produce(std::uint64_t sample, std::uint16_t field,
                                     std::vector<std::byte>& scratch) const override {
    const side& of = of_field(field);
    return of.model->produce(sample, of.inner(field), scratch);
  }
  boost::asio::awaitable<std::vector<std::vector<std::byte>>> fetch(std::uint64_t sample,
                                                                    std::vector<std::uint16_t> fields) const override {
    const side& of = of_field(fields.front());  // A group has fields of one side.
    for (std::uint16_t& field : fields) field = of.inner(field);
    return of.model->fetch(sample, std::move(fields));
  }
  std::uint16_t fetch_group(std::uint64_t sample, std::uint16_t field) const override {
    const side& of = of_field(field);
    return static_cast<std::uint16_t>(of.first_field + of.model->fetch_group(sample, of.inner(field)));
  }
  std::optional<value_fault> expand(std::uint64_t sample, const part& of, std::span<const std::byte> stored,
                                    std::span<std::byte>& decoded) const override {
    return of_field(of.field).model->expand(sample, inner_part(of), stored, decoded);
  }
  std::optional<value_fault> take_value(std::uint64_t sample, const part& of, std::span<const std::byte> decoded,
                                        std::span<std::byte>& bytes) const override {
    return of_field(of.field).model->take_value(sample, inner_part(of), decoded, bytes);
  }
  void copy_box(std::uint64_t sample, const part& of, const box* within, std::span<const std::byte> decoded,
                std::span<std::byte> bytes) const override {
    of_field(of.field).model->copy_box(sample, inner_part(of), within, decoded, bytes);
  }

  std::optional<column_value> column(std::uint64_t sample, std::size_t column) const override {
    const side& of = of_column(column);
    return of.model->column(sample, column - of.first_column);
  }
  dtype column_type(std::size_t column) const override {
    const side& of = of_column(column);
    return of.model->column_type(column - of.first_column);
  }
  std::uint64_t column_gaps(std::size_t column) const override {
    const side& of = of_column(column);
    return of.model->column_gaps(column - of.first_column);
  }

  std::string name(std::uint64_t sample) const override { return sides_.front().model->name(sample); }
  // Blocks are of one side: the first whose samples share any.
  sample_blocks blocks() const override {
    for (const side& each : sides_) {
      sample_blocks found = each.model->blocks();
      if (!found.empty()) return found;
    }
    return {};
  }

  std::uint64_t defects() const noexcept override {
    std::uint64_t most = 0;
    for (const side& each : sides_) most += each.model->defects();
    return std::min(most, size());
  }
  std::optional<defect> defect_of(std::uint64_t sample) const override {
    for (const side& each : sides_) {
      std::optional<defect> found = each.model->defect_of(sample);
      if (!found) continue;
      // What is excluded may lie in no source.
      if (found->source < each.model->sources().size()) found->source += each.first_source;
      return found;
    }
    return std::nullopt;
  }
  staleness_check staleness_checks() const noexcept override {
    staleness_check most = staleness_check::none;
    for (const side& each : sides_) most = std::max(most, each.model->staleness_checks());
    return most;
  }
  std::optional<std::string> changed(staleness_check at) const override {
    for (const side& each : sides_) {
      if (each.model->staleness_checks() < at) continue;
      if (std::optional<std::string> found = each.model->changed(at)) return found;
    }
    return std::nullopt;
  }
  std::vector<member_path> members(std::uint64_t sample, std::span<const std::uint16_t> fields,
                                   blocking_sources& /*sources*/) const override {
    return members_by_name(sample, fields);
  }
  std::uint64_t header_offset(std::uint64_t sample, const extent& part) const override {
    const auto of = std::find_if(sides_.rbegin(), sides_.rend(),
                                 [&](const side& each) { return part.source >= each.first_source; });
    extent inner = part;
    inner.source -= of->first_source;
    return of->model->header_offset(sample, inner);
  }

  void describe(description& out) const override {
    describe_model(out, "zip", *this);
    for (const side& each : sides_) each.model->describe(out);
  }
  dataset_memory memory() const override {
    std::vector<std::shared_ptr<const dataset_model>> models;
    for (const side& each : sides_) models.push_back(each.model);
    return memory_of(models);
  }

 private:
  struct side {
    std::shared_ptr<const dataset_model> model;
    std::uint32_t first_source = 0;
    std::size_t first_field = 0;
    std::size_t first_column = 0;

    [[nodiscard]] bool has_field(std::uint16_t field) const noexcept {
      return field >= first_field && field - first_field < model->fields().size();
    }
    [[nodiscard]] std::uint16_t inner(std::uint16_t field) const noexcept {
      return static_cast<std::uint16_t>(field - first_field);
    }
  };

  void add(const dataset_model& model, const dataset& from) {
    if (!sides_.empty() && model.size() != size()) {
      throw error(errc::usage, str_cat("zip of ", size(), " and ", model.size(),
                                       " samples; datasets side by side have as many: subset() takes some of them"));
    }
    const auto check_name = [&](const std::string& name) {
      if (!find_field(name) && !find_column(name)) return;
      throw error(errc::usage,
                  str_cat("zip: two datasets have a field '", name, "'; with_fields() leaves it out of one of them"));
    };
    for (const field_info& each : model.fields()) check_name(each.name);
    for (const std::string& each : model.columns()) check_name(each);
    sides_.push_back({.model = from.model(),
                      .first_source = static_cast<std::uint32_t>(sources_.size()),
                      .first_field = fields_.size(),
                      .first_column = columns_.size()});
    fields_.insert(fields_.end(), model.fields().begin(), model.fields().end());
    columns_.insert(columns_.end(), model.columns().begin(), model.columns().end());
    sources_.insert(sources_.end(), model.sources().begin(), model.sources().end());
    notes_.insert(notes_.end(), model.notes().begin(), model.notes().end());
    for (std::size_t field = 0; field < model.fields().size(); ++field) {
      forms_.push_back(model.forms(static_cast<std::uint16_t>(field)));
    }
    // Names of classes, of the first that has any.
    if (classes().empty() && !model.classes().empty()) {
      classes_ = std::make_shared<class_names>(class_names{model.classes(), std::string(model.class_column())});
    }
    const model_facets& theirs = model.facets();
    if (theirs.blocks != nullptr) facets_.blocks = this;
    if (theirs.expanding != nullptr) facets_.expanding = this;
    if (theirs.making != nullptr) facets_.making = this;
    if (theirs.staleness != nullptr) facets_.staleness = this;
    if (theirs.defects != nullptr) facets_.defects = this;
  }

  [[nodiscard]] const side& of_field(std::uint16_t field) const noexcept {
    return *std::find_if(sides_.begin(), sides_.end(), [&](const side& each) { return each.has_field(field); });
  }
  [[nodiscard]] const side& of_column(std::size_t column) const noexcept {
    return *std::find_if(sides_.rbegin(), sides_.rend(), [&](const side& each) {
      return column >= each.first_column && column - each.first_column < each.model->columns().size();
    });
  }
  [[nodiscard]] part inner_part(part of) const noexcept {
    const side& side_of = of_field(of.field);
    of.field = side_of.inner(of.field);
    of.where.source -= side_of.first_source;
    return of;
  }

  std::vector<side> sides_;
  std::vector<std::string> columns_;
};

}  // namespace
}  // namespace datasets

dataset zip(std::span<const dataset> parts) { return dataset(std::make_shared<datasets::zip_model>(parts)); }
dataset zip(std::initializer_list<dataset> parts) { return zip(std::span(parts.begin(), parts.size())); }

}  // namespace leat

// Datasets one after the other as one.
#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/describe.hpp"
#include "datasets/views/passed_on.hpp"
#include "datasets/views/token_windows.hpp"

#include <leat/error.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace leat {
namespace datasets {
namespace {

class concat_model final : public dataset_model,
                           passed_on<concat_model>,
                           columns_facet,
                           blocks_facet,
                           staleness_facet,
                           defects_facet,
                           joined_facet {
 public:
  explicit concat_model(std::span<const dataset> parts) {
    facets_.columns = this;
    facets_.joined = this;
    join_classes(parts);
    for (const dataset& each : parts) add(each);
  }

  std::uint64_t size() const noexcept override { return ends_.empty() ? 0 : ends_.back(); }

  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    const place here = at(sample);
    absl::InlinedVector<need, 8> inner;
    for (const need& wanted : needs) {
      const std::int32_t field = here.of.inner_field[wanted.field];
      if (field < 0) continue;
      inner.push_back(wanted);
      inner.back().field = static_cast<std::uint16_t>(field);
    }
    const std::size_t before = out.size();
    here.model.parts(here.sample, inner, out);
    renumber(here.of, out, before);
  }

  std::span<const std::string> column_names() const noexcept override { return columns_; }
  std::optional<column_value> column(std::uint64_t sample, std::size_t column) const override {
    const place here = at(sample);
    const std::int32_t inner = here.of.inner_column[column];
    if (inner < 0) return std::nullopt;
    const std::optional<column_value> value = here.model.column(here.sample, static_cast<std::size_t>(inner));
    const std::vector<std::int64_t>& class_numbers = here.of.class_numbers;
    if (!value || class_numbers.empty() || columns_[column] != classes_->column) return value;
    const std::int64_t* const number = std::get_if<std::int64_t>(&*value);
    if (number == nullptr || *number < 0) return value;
    if (static_cast<std::uint64_t>(*number) >= class_numbers.size()) return value;
    return class_numbers[static_cast<std::size_t>(*number)];
  }

  // Parts that differ have the type that holds the values of both.
  dtype column_type(std::size_t column) const override {
    std::optional<dtype> type;
    for (const joined_part& part : parts_) {
      if (part.inner_column[column] < 0 || part.model->size() == 0) continue;
      const dtype inner = part.model->column_type(static_cast<std::size_t>(part.inner_column[column]));
      type = !type || *type == inner ? inner : dtype::f64;
    }
    return type.value_or(dtype::i64);
  }
  std::uint64_t column_gaps(std::size_t column) const override {
    std::uint64_t gaps = 0;
    for (const joined_part& part : parts_) {
      const std::int32_t inner = part.inner_column[column];
      gaps += inner < 0 ? part.model->size() : part.model->column_gaps(static_cast<std::size_t>(inner));
    }
    return gaps;
  }

  std::string name(std::uint64_t sample) const override {
    const place here = at(sample);
    return here.model.name(here.sample);
  }

  std::uint64_t defects() const noexcept override { return defects_; }
  std::optional<defect> defect_of(std::uint64_t sample) const override {
    const place here = at(sample);
    std::optional<defect> found = here.model.defect_of(here.sample);
    if (found && found->source < here.of.outer_source.size()) found->source = here.of.outer_source[found->source];
    return found;
  }

  // A part whose samples share none has a block for each sample.
  sample_blocks blocks() const override {
    sample_blocks all(size());
    bool any = false;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::uint64_t begin = i == 0 ? 0 : ends_[i - 1];
      const sample_blocks inner = parts_[i].model->blocks();
      any = any || !inner.empty();
      for (std::uint64_t block = 0; block < inner.size(); ++block) all.begin_block(begin + inner.first(block));
      for (std::uint64_t sample = begin; inner.empty() && sample < ends_[i]; ++sample) all.begin_block(sample);
    }
    return any ? all : sample_blocks();
  }

  staleness_check staleness_checks() const noexcept override { return staleness_checks_; }
  std::optional<std::string> changed(staleness_check at) const override {
    for (const joined_part& part : parts_) {
      if (part.model->staleness_checks() < at) continue;
      if (std::optional<std::string> what = part.model->changed(at)) return what;
    }
    return std::nullopt;
  }

  std::vector<std::shared_ptr<const dataset_model>> joined() const override {
    std::vector<std::shared_ptr<const dataset_model>> models;
    for (const joined_part& part : parts_) models.push_back(part.model);
    return models;
  }

  void describe(description& out) const override {
    constexpr std::size_t parts_named_max = 8;
    describe_model(out, "concat", *this);
    out.add("parts", parts_.size());
    hasher hash;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      description part;
      parts_[i].model->describe(part);
      hash.add(part.digest());
      const std::string key = str_cat("part ", i);
      if (parts_.size() <= parts_named_max) out.add(key, part);
      if (parts_.size() > parts_named_max) {
        for (const description::unnamed_part& each : part.unnamed()) {
          out.add_unnamed(str_cat(key, ".", each.key), each.remedy);
        }
      }
    }
    if (parts_.size() > parts_named_max) out.add("all parts", hash.finish());
  }

  dataset_memory memory() const override { return memory_of(joined()); }

 private:
  struct joined_part {
    std::shared_ptr<const dataset_model> model;
    std::vector<std::int32_t> inner_field;   // By the whole's number; -1: it has no such field.
    std::vector<std::uint16_t> outer_field;  // By its own number.
    std::vector<std::int32_t> inner_column;
    std::vector<std::uint32_t> outer_source;
    std::vector<std::int64_t> class_numbers;  // The whole's, by its own; empty: they are the same.
  };
  friend class passed_on<concat_model>;
  struct place {
    const joined_part& of;
    const dataset_model& model;
    std::uint64_t sample;
  };

  place at(std::uint64_t sample) const noexcept {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), sample);
    const auto index = static_cast<std::size_t>(end - ends_.begin());
    return {parts_[index], *parts_[index].model, sample - (index == 0 ? 0 : ends_[index - 1])};
  }

  static std::uint16_t inner_field(const place& at, std::uint16_t field) noexcept {
    assert(at.of.inner_field[field] >= 0);
    return static_cast<std::uint16_t>(at.of.inner_field[field]);
  }

  static part inner_part(const place& at, part outer) noexcept {
    const std::vector<std::uint32_t>& sources = at.of.outer_source;
    outer.field = inner_field(at, outer.field);
    outer.where.source =
        static_cast<std::uint32_t>(std::find(sources.begin(), sources.end(), outer.where.source) - sources.begin());
    return outer;
  }

  static void renumber(const joined_part& of, part_list& out, std::size_t from) noexcept {
    for (std::size_t i = from; i < out.size(); ++i) {
      out[i].field = of.outer_field[out[i].field];
      if (!out[i].is_made()) out[i].where.source = of.outer_source[out[i].where.source];
    }
  }

  void join_classes(std::span<const dataset> parts) {
    const std::vector<std::string>* first = nullptr;
    class_names joined;
    bool differ = false;
    std::set<std::string> names;
    for (const dataset& each : parts) {
      if (each.classes().empty()) continue;
      if (first == nullptr) {
        first = &each.classes();
        joined.column = each.model()->class_column();
      }
      if (each.model()->class_column() != joined.column) {
        throw error(errc::usage,
                    str_cat("concat: classes are numbers of the column '", joined.column, "' in one part and of '",
                            each.model()->class_column(), "' in another; open them apart"));
      }
      differ = differ || each.classes() != *first;
      names.insert(each.classes().begin(), each.classes().end());
    }
    if (first == nullptr) return;
    if (!differ) {
      joined.names = *first;
      classes_ = std::make_shared<class_names>(std::move(joined));
      return;
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const dataset_model& model = *parts[i].model();
      if (!model.classes().empty() || model.size() == 0) continue;
      if (!model.find_column(joined.column) && !model.find_field(joined.column)) continue;
      throw error(errc::usage,
                  str_cat("concat: the parts name different classes, which gives them new numbers, and part ", i,
                          " has class numbers without names that cannot follow; give it class names, or "
                          "join parts of equal classes"));
    }
    joined.names.assign(names.begin(), names.end());
    classes_ = std::make_shared<class_names>(std::move(joined));
  }

  void add(const dataset& added) {
    joined_part part;
    part.model = added.model();
    add_fields(part);
    add_columns(part);
    for (const auto& source : part.model->sources()) {
      // A source that two parts share is connected once.
      const auto known = std::find(sources_.begin(), sources_.end(), source);
      part.outer_source.push_back(static_cast<std::uint32_t>(known - sources_.begin()));
      if (known == sources_.end()) sources_.push_back(source);
    }
    if (!part.model->classes().empty() && part.model->classes() != classes()) {
      for (const std::string& name : part.model->classes()) {
        // Sorted: as soon as two parts differ, they come from a set.
        part.class_numbers.push_back(std::lower_bound(classes().begin(), classes().end(), name) - classes().begin());
      }
    }
    defects_ += part.model->defects();
    staleness_checks_ = std::max(staleness_checks_, part.model->staleness_checks());
    if (defects_ > 0) facets_.defects = this;
    if (staleness_checks_ != staleness_check::none) facets_.staleness = this;
    if (part.model->facets().blocks != nullptr) facets_.blocks = this;
    pass_on(part.model->facets(), facets_);
    notes_.insert(notes_.end(), part.model->notes().begin(), part.model->notes().end());
    ends_.push_back(size() + part.model->size());
    parts_.push_back(std::move(part));
  }

  void add_fields(joined_part& part) {
    const std::span<const field_info> inner = part.model->fields();
    for (std::uint16_t number = 0; number < inner.size(); ++number) {
      const field_info& field = inner[number];
      std::optional<std::uint16_t> known = find_field(field.name);
      if (!known) {
        if (fields_.size() >= std::numeric_limits<std::uint16_t>::max()) {
          throw error(errc::limit, "concat: more than 65,536 different fields");
        }
        known = static_cast<std::uint16_t>(fields_.size());
        fields_.push_back(field);
        forms_.push_back(part.model->forms(number));
        for (joined_part& before : parts_) before.inner_field.push_back(-1);
      } else {
        check_same(field, *known);
        if (const auto kind = joined_kind(field, fields_[*known])) {
          fields_[*known].kind = *kind;
          fields_[*known].type = dtype::u8;
        }
        if (field.kind == field_kind::tokens) check_same_windows(*part.model, *known);
        field_info& whole = fields_[*known];
        const std::uint64_t whole_read_max = whole.read_bytes_max();
        forms_[*known] |= part.model->forms(number);
        whole.samples += field.samples;
        whole.bytes_max = std::max(whole.bytes_max, field.bytes_max);
        whole.bytes_total += field.bytes_total;
        whole.alignment = std::min(whole.alignment, field.alignment);
        // Where only one of them expands, the other's bytes are as stored, and no fewer are read.
        const bool expands = whole.expands() || field.expands();
        whole.stored_block_bytes_max = expands ? std::max(whole_read_max, field.read_bytes_max()) : 0;
        whole.decoded_block_bytes_max = std::max(whole.decoded_block_bytes_max, field.decoded_block_bytes_max);
        whole.expand_bytes_max = std::max(whole.expand_bytes_max, field.expand_bytes_max);
        whole.chunked = whole.chunked || field.chunked;
        whole.blocks_max = std::max(whole.blocks_max, field.blocks_max);
        if (!(whole.chunk == field.chunk)) whole.chunk = {};
        if (whole.filters != field.filters) whole.filters.clear();
      }
      part.outer_field.push_back(*known);
    }
    part.inner_field.assign(fields_.size(), -1);
    for (std::size_t number = 0; number < part.outer_field.size(); ++number) {
      part.inner_field[part.outer_field[number]] = static_cast<std::int32_t>(number);
    }
  }

  // Of values that are characters, or any bytes, in both, where they are called otherwise: a class that is a number here and a text there.
  static std::optional<field_kind> joined_kind(const field_info& a, const field_info& b) noexcept {
    const auto is_of_bytes = [](const field_info& each) {
      return each.kind == field_kind::label ||
             ((each.kind == field_kind::text || each.kind == field_kind::bytes) && each.type == dtype::u8);
    };
    if (a.kind == b.kind || !is_of_bytes(a) || !is_of_bytes(b)) return std::nullopt;
    return a.kind == field_kind::bytes || b.kind == field_kind::bytes ? field_kind::bytes : field_kind::text;
  }

  void check_same(const field_info& field, std::uint16_t known) const {
    const field_info& whole = fields_[known];
    if (joined_kind(field, whole)) return;
    if (field.kind != whole.kind || field.type != whole.type || !(field.shape == whole.shape)) {
      throw error(errc::usage,
                  str_cat("concat: the field '", field.name,
                          "' differs in kind, dtype or shape between the parts; give one of them another name"));
    }
  }

  // A loader's field asks the first sample how windows were cut, and takes the answer for all samples.
  void check_same_windows(const dataset_model& added, std::uint16_t known) const {
    for (const joined_part& before : parts_) {
      if (before.inner_field[known] < 0 || before.model->size() == 0 || added.size() == 0) continue;
      const token_windows* const theirs = before.model->window_of(0).of;
      const token_windows* const ours = added.window_of(0).of;
      if (theirs == nullptr && ours == nullptr) return;
      if (theirs != nullptr && ours != nullptr && theirs->rule() == ours->rule()) return;
      throw error(errc::usage,
                  str_cat("concat: the field '", fields_[known].name,
                          "' was cut into windows by another rule, or not at all, in one of the parts; give all of "
                          "them to cut_windows() with the same length, windows and documents, or join them uncut"));
    }
  }

  void add_columns(joined_part& part) {
    const std::span<const std::string> inner = part.model->columns();
    for (const std::string& name : inner) {
      if (find_column(name)) continue;
      columns_.push_back(name);
      for (joined_part& before : parts_) before.inner_column.push_back(-1);
    }
    part.inner_column.assign(columns_.size(), -1);
    for (std::size_t number = 0; number < inner.size(); ++number) {
      part.inner_column[*find_column(inner[number])] = static_cast<std::int32_t>(number);
    }
  }

  std::vector<joined_part> parts_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::string> columns_;
  std::uint64_t defects_ = 0;
  staleness_check staleness_checks_ = staleness_check::none;
};

}  // namespace
}  // namespace datasets

dataset concat(std::span<const dataset> parts) {
  if (parts.empty()) throw error(errc::usage, "concat: no data set was given");
  if (parts.size() == 1) return parts.front();
  return dataset(std::make_shared<datasets::concat_model>(parts));
}

dataset concat(std::initializer_list<dataset> parts) {
  return concat(std::span<const dataset>(parts.begin(), parts.size()));
}

}  // namespace leat

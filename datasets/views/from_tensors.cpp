// Tensors in memory: a row is a sample, and nothing is copied before it is needed.
#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/files/integers.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/column_table.hpp"
#include "datasets/tables/describe.hpp"

#include <leat/error.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <limits>
#include <utility>

namespace leat {
namespace datasets {
namespace {

// Tensors of more bytes are described by the name that they are given: a digest of them takes longer than a loader does to start.
constexpr std::uint64_t digested_bytes_max = std::uint64_t{64} << 20;

class tensor_model final : public dataset_model, making_facet {
 public:
  tensor_model(std::vector<named_tensor> tensors, std::shared_ptr<const void> owner, std::vector<std::string> classes,
               std::string described_as)
      : owner_(std::move(owner)),
        described_as_(std::move(described_as)),
        columns_(columns_of(tensors), rows_of(tensors)) {
    for (named_tensor& each : tensors) {
      if (is_column(each.values)) continue;
      if (find_field(each.name)) {
        throw error(errc::usage, str_cat("from_tensors: the tensor '", each.name, "' is given twice"));
      }
      field_info field;
      field.name = each.name;
      field.kind = field_kind::tensor;
      field.type = each.values.type;
      for (std::size_t axis = 1; axis < each.values.shape.size(); ++axis) {
        field.shape.push_back(each.values.shape[axis]);
      }
      field.samples = columns_.samples();
      field.bytes_max = static_cast<std::uint64_t>(field.shape.elements()) * size_bytes(field.type);
      field.bytes_total = field.samples * field.bytes_max;
      fields_.push_back(std::move(field));
      data_.push_back(static_cast<const std::byte*>(each.values.data));
    }
    forms_.assign(fields_.size(), part_form::produced);
    facets_.columns = &columns_;
    classes_ = std::make_shared<class_names>(class_names{std::move(classes)});
    facets_.making = this;
  }

  std::uint64_t size() const noexcept override { return columns_.samples(); }

  void parts(std::uint64_t, std::span<const need> needs, part_list& out) const override {
    for (const need& wanted : needs) out.push_back({.field = wanted.field, .form = part_form::produced});
  }
  std::span<const std::byte> produce(std::uint64_t sample, std::uint16_t field,
                                     std::vector<std::byte>&) const override {
    return {data_[field] + sample * fields_[field].bytes_max, fields_[field].bytes_max};
  }

  std::string name(std::uint64_t sample) const override { return str_cat("row ", sample); }

  void describe(description& out) const override {
    describe_model(out, "tensors", *this);
    columns_.describe(out);
    if (!described_as_.empty()) out.add("tensors", described_as_);
    if (memory().data > digested_bytes_max) {
      if (described_as_.empty()) {
        out.add_unnamed("tensors",
                        "name them: the last argument of from_tensors(), another name whenever their bytes change");
      }
      return;
    }
    for (std::size_t field = 0; field < fields_.size(); ++field) {
      hasher hash;
      hash.add(std::span(data_[field], fields_[field].bytes_total));
      out.add(str_cat("data ", fields_[field].name), hash.finish());
    }
  }

  dataset_memory memory() const override {
    dataset_memory held;
    held.columns = columns_.memory_bytes();
    for (const field_info& field : fields_) held.data += field.bytes_total;
    return held;
  }

 private:
  static bool is_column(const tensor& values) noexcept { return values.shape.size() == 1; }

  static std::uint64_t rows_of(const std::vector<named_tensor>& tensors) {
    if (tensors.empty()) throw error(errc::usage, "from_tensors: no tensor was given");
    for (const named_tensor& each : tensors) check(each, tensors.front());
    return static_cast<std::uint64_t>(tensors.front().values.shape[0]);
  }

  static void check(const named_tensor& each, const named_tensor& first) {
    const tensor& values = each.values;
    const auto refuse = [&](const char* why) {
      throw error(errc::usage, str_cat("from_tensors: the tensor '", each.name, "' ", why));
    };
    if (values.where != host) refuse("is not in host memory; copy it there, or feed it without a loader");
    if (values.shape.empty()) refuse("is a scalar; its first axis would be the samples");
    if (!values.strides.empty() && values.shape.elements() > 0 && !(values.strides == dense_strides(values.shape))) {
      refuse("is not dense: its strides skip elements; make it contiguous");
    }
    if (values.data == nullptr && values.shape.elements() > 0) refuse("has no data");
    if (first.values.shape.empty() || values.shape[0] != first.values.shape[0]) {
      throw error(errc::usage, str_cat("from_tensors: the tensor '", each.name, "' has ", values.shape[0], " rows, '",
                                       first.name, "' has ", first.values.shape.empty() ? 0 : first.values.shape[0]));
    }
  }

  static std::vector<column_values> columns_of(const std::vector<named_tensor>& tensors) {
    static_cast<void>(rows_of(tensors));  // Checked before anything is read.
    std::vector<column_values> columns;
    for (const named_tensor& each : tensors) {
      if (!is_column(each.values)) continue;
      const auto bytes = static_cast<std::size_t>(each.values.shape.elements()) * size_bytes(each.values.type);
      columns.push_back(column_of(each.name, each.values.type,
                                  std::span(static_cast<const std::byte*>(each.values.data), bytes),
                                  str_cat("from_tensors: the tensor '", each.name, "'")));
    }
    return columns;
  }

  std::shared_ptr<const void> owner_;  // The user's memory, for as long as somebody may read rows of it.
  std::string described_as_;
  column_table columns_;
  std::vector<const std::byte*> data_;
};

}  // namespace
}  // namespace datasets

dataset from_tensors(std::vector<named_tensor> tensors, std::shared_ptr<const void> owner,
                     std::vector<std::string> classes, std::string described_as) {
  return dataset(std::make_shared<datasets::tensor_model>(std::move(tensors), std::move(owner), std::move(classes),
                                                          std::move(described_as)));
}

}  // namespace leat

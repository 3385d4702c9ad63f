// array: rows of a fixed dtype and shape, as they are stored.
#include "base/text.hpp"
#include "datasets/formats/arrays/npy_header.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/copy_row.hpp"
#include "stages/fields/first_value.hpp"
#include "stages/plan/array_crop.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace stages {
namespace {

// A row is a part of what is stored.
class array_crop_program final : public field_program {
 public:
  array_crop_program(output_spec output, std::uint16_t field, array_crop crop)
      : outputs_{std::move(output)}, fields_{field}, crop_(std::move(crop)) {}

  std::span<const output_spec> outputs() const override { return outputs_; }
  std::span<const std::uint16_t> reads() const override { return fields_; }
  const array_crop* crop() const override { return &crop_; }
  wanted_bytes bytes_wanted(const datasets::part& of, std::uint64_t seed, std::uint32_t epoch,
                            std::uint64_t draw) const override {
    // Of another size it is not the row, which decode() will say.
    if (of.where.stored_bytes != crop_.row_bytes()) return field_program::bytes_wanted(of, seed, epoch, draw);
    const array_crop::byte_range slab = crop_.slab_of(crop_.box_of(seed, epoch, draw));
    return {.first = slab.first, .end = slab.first + slab.bytes};
  }
  bool random() const override { return crop_.random(); }
  void set_view(std::uint32_t number) override { crop_.set_view(number); }
  std::size_t bytes_copied(std::size_t) const override { return outputs_.front().row_bytes(); }
  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget&) const override {
    return std::make_unique<field_scratch>();
  }

  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    const datasets::box box = crop_.box_of(input.seed, input.epoch, input.draw);
    if (crop_.copy(box, input.encoded, rows.front().bytes)) return {};
    return corrupt(str_cat("holds ", input.encoded.size(), " bytes where a row has ", crop_.row_bytes()));
  }

 private:
  std::vector<output_spec> outputs_;
  std::vector<std::uint16_t> fields_;
  array_crop crop_;
};

class array_program final : public field_program {
 public:
  array_program(output_spec output, std::uint16_t field) : outputs_{std::move(output)}, fields_{field} {}

  std::span<const output_spec> outputs() const override { return outputs_; }
  std::span<const std::uint16_t> reads() const override { return fields_; }
  bool verbatim() const override { return true; }
  std::size_t bytes_copied(std::size_t encoded_bytes) const override { return encoded_bytes; }
  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget&) const override {
    return std::make_unique<field_scratch>();
  }

  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    const std::span<std::byte> row = rows.front().bytes;
    if (input.encoded.size() != row.size()) {
      return corrupt(str_cat("holds ", input.encoded.size(), " bytes where a row has ", row.size()));
    }
    if (!copy_row(input.encoded, row.data(), input.stop)) return cancelled();
    return {};
  }

 private:
  std::vector<output_spec> outputs_;
  std::vector<std::uint16_t> fields_;
};

std::string text_of(const datasets::npy_header& header) {
  std::string shape;
  for (const std::uint64_t axis : header.shape) str_append(shape, shape.empty() ? "" : ", ", axis);
  return str_cat(name(header.type), " [", shape, "]");
}

// A .npy file a sample. All are of the first one's dtype and shape.
class npy_member_program final : public field_program {
 public:
  npy_member_program(output_spec output, std::uint16_t field, datasets::npy_header first,
                     std::optional<array_crop> crop)
      : outputs_{std::move(output)}, fields_{field}, first_(std::move(first)), crop_(std::move(crop)) {}

  std::span<const output_spec> outputs() const override { return outputs_; }
  std::span<const std::uint16_t> reads() const override { return fields_; }
  bool random() const override { return crop_ && crop_->random(); }
  void set_view(std::uint32_t number) override {
    if (crop_) crop_->set_view(number);
  }
  std::size_t bytes_copied(std::size_t) const override { return outputs_.front().row_bytes(); }
  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget&) const override {
    return std::make_unique<field_scratch>();
  }

  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    datasets::npy_header header;
    try {
      header = datasets::read_npy_header(outputs_.front().name, input.encoded);
    } catch (const error& failure) {
      return corrupt(failure.what());
    }
    if (header.type != first_.type || header.shape != first_.shape) {
      return corrupt(str_cat("is an array of ", text_of(header), ", and the first sample's is ", text_of(first_)));
    }
    const std::span<const std::byte> values = input.encoded.subspan(header.data_offset, header.data_bytes);
    const std::span<std::byte> row = rows.front().bytes;
    if (crop_) {
      if (crop_->copy(crop_->box_of(input.seed, input.epoch, input.draw), values, row)) return {};
      return corrupt(str_cat("holds ", values.size(), " bytes where a row has ", crop_->row_bytes()));
    }
    if (!copy_row(values, row.data(), input.stop)) return cancelled();
    return {};
  }

 private:
  std::vector<output_spec> outputs_;
  std::vector<std::uint16_t> fields_;
  datasets::npy_header first_;
  std::optional<array_crop> crop_;
};

// Floats of a column.
class array_column_program final : public field_program {
 public:
  array_column_program(output_spec output, std::size_t column) : outputs_{std::move(output)}, column_(column) {}

  std::span<const output_spec> outputs() const override { return outputs_; }
  std::span<const std::uint16_t> reads() const override { return {}; }
  bool required(std::uint64_t) const override { return false; }
  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget&) const override {
    return std::make_unique<field_scratch>();
  }

  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    const std::optional<datasets::column_value> value = input.dataset->column(input.sample, column_);
    if (!value) return corrupt("has no value in the column");
    datasets::store(*value, outputs_.front().type, rows.front().bytes.data());
    return {};
  }

 private:
  std::vector<output_spec> outputs_;
  std::size_t column_;
};

class array_model final : public field_model {
 public:
  array_model(std::string name, std::string member, array_cut cut)
      : name_(std::move(name)), member_(std::move(member)), cut_(std::move(cut)) {}

  const std::string& name() const noexcept override { return name_; }
  void describe(description& out) const override {
    out.add("kind", "array");
    out.add("member", member_);
    cut_.describe(out);
  }
  std::unique_ptr<field_program> bind(const datasets::dataset_model& dataset, finished_by) const override {
    const std::optional<std::uint16_t> field = dataset.find_field(member_);
    if (!field) {
      const std::optional<std::size_t> column = dataset.find_column(member_);
      if (!column) throw_no_field(dataset, member_, name_);
      return of_column(dataset, *column);
    }
    const field_info& info = dataset.fields()[*field];
    if (holds_npy_files(dataset, *field)) return of_npy_members(dataset, *field);
    if (info.kind != field_kind::tensor) {
      throw error(errc::usage, str_cat("the field '", member_,
                                       "' has no rows of a fixed dtype and shape, which an array "
                                       "is; leat::bytes(\"",
                                       member_, "\") takes it as it is"));
    }
    if (!cut_.is_whole()) {
      array_crop crop(cut_, info.type, info.shape, name_);
      output_spec output{.name = name_, .type = info.type, .row_shape = crop.shape(), .copied = true};
      return std::make_unique<array_crop_program>(std::move(output), *field, std::move(crop));
    }
    return std::make_unique<array_program>(
        output_spec{.name = name_, .type = info.type, .row_shape = info.shape, .copied = true}, *field);
  }

 private:
  [[nodiscard]] std::unique_ptr<field_program> of_npy_members(const datasets::dataset_model& dataset,
                                                              std::uint16_t field) const {
    datasets::npy_header first = first_npy(dataset, field);
    if (first.shape.size() >= dimensions::rank_max) {
      throw error(errc::unsupported,
                  str_cat("the field '", member_, "' has arrays of ", first.shape.size(),
                          " axes, and a batch has one more; leat has up to ", dimensions::rank_max, ": reshape them"));
    }
    if (!cut_.is_whole() && first.data_bytes == 0) {
      throw error(errc::usage,
                  str_cat("the field '", member_, "' has arrays without an element, of which nothing is cut"));
    }
    dimensions shape;
    for (const std::uint64_t axis : first.shape) shape.push_back(static_cast<std::int64_t>(axis));
    std::optional<array_crop> crop;
    if (!cut_.is_whole()) crop.emplace(cut_, first.type, shape, name_);
    output_spec output{
        .name = name_, .type = first.type, .row_shape = crop ? crop->shape() : std::move(shape), .copied = true};
    return std::make_unique<npy_member_program>(std::move(output), field, std::move(first), std::move(crop));
  }
  [[nodiscard]] std::unique_ptr<field_program> of_column(const datasets::dataset_model& dataset,
                                                         std::size_t column) const {
    const dtype type = dataset.column_type(column);
    if (type == dtype::i64) {
      throw error(errc::usage, str_cat("'", member_, "' is a column of integers, no rows of an array; leat::label(\"",
                                       member_, "\") reads it"));
    }
    if (!cut_.is_whole()) {
      throw error(errc::usage, str_cat(name_, ": a part of '", member_, "', of which each sample has one number"));
    }
    return std::make_unique<array_column_program>(output_spec{.name = name_, .type = type, .copied = true}, column);
  }

  std::string name_;
  std::string member_;
  array_cut cut_;
};

array_cut cut_of(const std::vector<std::array<std::int64_t, 3>>& slices, std::vector<std::int64_t> size, bool random) {
  array_cut cut{.slices = {}, .size = std::move(size), .random = random};
  for (const auto& [axis, first, count] : slices) cut.slices.push_back({axis, first, count});
  return cut;
}

}  // namespace
}  // namespace stages

array::array(std::string name) : name_(std::move(name)), member_(name_) {}
array array::cropped(std::vector<std::int64_t> shape, bool random) const {
  if (shape.empty())
    throw error(errc::usage, str_cat(name_, ": a crop without a shape; give elements along the last axes"));
  if (!crop_.empty()) throw error(errc::usage, str_cat(name_, ": two crops; give one, or slices and one crop"));
  array changed = *this;
  changed.crop_ = std::move(shape);
  changed.random_ = random;
  return changed;
}
array array::random_crop(std::vector<std::int64_t> shape) const { return cropped(std::move(shape), true); }
array array::center_crop(std::vector<std::int64_t> shape) const { return cropped(std::move(shape), false); }
array array::slice(std::int64_t axis, std::int64_t first, std::int64_t count) const {
  if (!crop_.empty()) throw error(errc::usage, str_cat(name_, ": a slice after a crop; slice first"));
  array changed = *this;
  changed.slices_.push_back({axis, first, count});
  return changed;
}
array array::from(std::string member) const {
  array changed = *this;
  changed.member_ = std::move(member);
  return changed;
}
array::operator field() const {
  return field(std::make_shared<stages::array_model>(name_, member_, stages::cut_of(slices_, crop_, random_)));
}

}  // namespace leat

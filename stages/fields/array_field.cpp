// array: rows of a fixed dtype and shape, as they are stored or with steps.
#include "base/text.hpp"
#include "datasets/formats/arrays/npy_header.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/array_steps.hpp"
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
class array_crop_program final : public field_program, choosing_facet, drawing_facet {
 public:
  array_crop_program(output_spec output, std::uint16_t field, array_crop crop)
      : field_program({std::move(output)}, {field}), crop_(std::move(crop)) {
    facts_.crop = &crop_;
    facets_.choosing = this;
    if (crop_.random()) facets_.drawing = this;
  }

  wanted_bytes bytes_wanted(const datasets::part& of, std::uint64_t seed, std::uint32_t epoch,
                            std::uint64_t draw) const override {
    // Of another size it is not the row, which decode() will say.
    if (of.where.stored_bytes != crop_.row_bytes()) return wanted_bytes::all_of(of);
    const array_crop::byte_range slab = crop_.slab_of(crop_.box_of(seed, epoch, draw));
    return {.first = slab.first, .end = slab.first + slab.bytes};
  }
  void set_view(std::uint32_t number) override { crop_.set_view(number); }
  bool varies() const noexcept override { return crop_.varies(); }
  std::size_t bytes_copied(std::size_t) const override { return outputs_.front().row_bytes(); }

  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    const datasets::box box = crop_.box_of(input.seed, input.epoch, input.draw);
    if (crop_.copy(box, input.encoded, rows.front().bytes)) return {};
    return corrupt(str_cat("holds ", input.encoded.size(), " bytes where a row has ", crop_.row_bytes()));
  }

 private:
  array_crop crop_;
};

class array_program final : public field_program {
 public:
  array_program(output_spec output, std::uint16_t field)
      : field_program({std::move(output)}, {field}, {.verbatim = true}) {}

  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    const std::span<std::byte> row = rows.front().bytes;
    if (input.encoded.size() != row.size()) {
      return corrupt(str_cat("holds ", input.encoded.size(), " bytes where a row has ", row.size()));
    }
    if (!copy_row(input.encoded, row.data(), input.stop)) return cancelled();
    return {};
  }
};

std::string text_of(const datasets::npy_header& header) {
  std::string shape;
  for (const std::uint64_t axis : header.shape) str_append(shape, shape.empty() ? "" : ", ", axis);
  return str_cat(name(header.type), " [", shape, "]");
}

// Rows that are .npy files, all of the first one's dtype and shape, and rows with steps.
//   file   the first of the .npy files; none: the member is the row as it is stored
//   walk   none: the part is taken as it is
struct array_source {
  std::optional<datasets::npy_header> file;
  std::optional<array_crop> crop;
  std::optional<array_walk> walk;
};

class array_made_program final : public field_program, drawing_facet {
 public:
  array_made_program(output_spec output, std::uint16_t field, array_source from)
      : field_program({std::move(output)}, {field}), from_(std::move(from)) {
    if ((from_.crop && from_.crop->random()) || (from_.walk && from_.walk->random())) facets_.drawing = this;
  }

  void set_view(std::uint32_t number) override {
    if (from_.crop) from_.crop->set_view(number);
    if (from_.walk) from_.walk->set_view(number);
  }
  bool varies() const noexcept override {
    return (from_.crop && from_.crop->varies()) || (from_.walk && from_.walk->varies());
  }
  std::size_t bytes_copied(std::size_t) const override { return outputs_.front().row_bytes(); }
  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget&) const override {
    return std::make_unique<part_scratch>();
  }

  outcome<void> decode(field_scratch& scratch, const decode_input& input, std::span<row_target> rows) const override {
    std::span<const std::byte> values = input.encoded;
    if (from_.file) {
      try {
        const datasets::npy_header header = datasets::read_npy_header(outputs_.front().name, input.encoded);
        if (header.type != from_.file->type || header.shape != from_.file->shape) {
          return corrupt(
              str_cat("is an array of ", text_of(header), ", and the first sample's is ", text_of(*from_.file)));
        }
        values = input.encoded.subspan(header.data_offset, header.data_bytes);
      } catch (const error& failure) {
        return corrupt(failure.what());
      }
    }
    const std::span<std::byte> row = rows.front().bytes;
    if (!from_.walk) return take(input, values, row);
    if (from_.crop) {
      std::vector<std::byte>& part = static_cast<part_scratch&>(scratch).part;
      part.resize(static_cast<std::size_t>(from_.crop->shape().elements()) * from_.walk->stored_bytes());
      outcome<void> taken = take(input, values, part);
      if (!taken) return taken;
      values = part;
    }
    if (values.size() != from_.walk->row_bytes()) return wrong_size(values.size(), from_.walk->row_bytes());
    return from_.walk->write(values, row, input.seed, input.epoch, input.draw, input.stop);
  }

 private:
  struct part_scratch final : field_scratch {
    std::vector<std::byte> part;
  };
  static failure wrong_size(std::size_t found, std::size_t wanted) {
    return corrupt(str_cat("holds ", found, " bytes where a row has ", wanted));
  }
  outcome<void> take(const decode_input& input, std::span<const std::byte> values, std::span<std::byte> to) const {
    if (from_.crop) {
      if (from_.crop->copy(from_.crop->box_of(input.seed, input.epoch, input.draw), values, to)) return {};
      return wrong_size(values.size(), from_.crop->row_bytes());
    }
    if (!copy_row(values, to.data(), input.stop)) return cancelled();
    return {};
  }

  array_source from_;
};

// Floats of a column.
class array_column_program final : public field_program {
 public:
  array_column_program(output_spec output, std::size_t column) : field_program({std::move(output)}), column_(column) {}

  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    const std::optional<datasets::column_value> value = input.dataset->column(input.sample, column_);
    if (!value) return corrupt("has no value in the column");
    datasets::store(*value, outputs_.front().type, rows.front().bytes.data());
    return {};
  }

 private:
  std::size_t column_;
};

class array_model final : public one_program_field {
 public:
  array_model(std::string name, std::string member, array_cut cut, array_steps steps)
      : name_(std::move(name)), member_(std::move(member)), cut_(std::move(cut)), steps_(std::move(steps)) {}

  const std::string& name() const noexcept override { return name_; }
  void describe(description& out) const override {
    out.add("kind", "array");
    out.add("member", member_);
    cut_.describe(out);
    steps_.describe(out);
  }
  std::unique_ptr<field_program> program(const datasets::dataset_model& dataset, finished_by) const override {
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
    if (!steps_.empty()) return made_of(*field, info.type, info.shape, std::nullopt);
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
    const dtype type = first.type;
    return made_of(field, type, shape, std::move(first));
  }
  [[nodiscard]] std::unique_ptr<field_program> made_of(std::uint16_t field, dtype type, const dimensions& row,
                                                       std::optional<datasets::npy_header> file) const {
    array_source from{.file = std::move(file), .crop = {}, .walk = {}};
    output_spec output{.name = name_, .type = type, .row_shape = row, .copied = true};
    if (!cut_.is_whole()) output.row_shape = from.crop.emplace(cut_, type, row, name_).shape();
    if (!steps_.empty()) {
      const array_walk& walk = from.walk.emplace(steps_, type, output.row_shape, name_);
      output.type = walk.type();
      output.row_shape = walk.shape();
    }
    return std::make_unique<array_made_program>(std::move(output), field, std::move(from));
  }
  [[nodiscard]] std::unique_ptr<field_program> of_column(const datasets::dataset_model& dataset,
                                                         std::size_t column) const {
    const dtype type = dataset.column_type(column);
    if (type == dtype::i64) {
      throw error(errc::usage, str_cat("'", member_, "' is a column of integers, no rows of an array; leat::label(\"",
                                       member_, "\") reads it"));
    }
    if (!cut_.is_whole() || !steps_.empty()) {
      throw error(errc::usage,
                  str_cat(name_, ": a part or steps of '", member_,
                          "', of which each sample has one number; leat::label(\"", member_, "\") has as()"));
    }
    return std::make_unique<array_column_program>(output_spec{.name = name_, .type = type, .copied = true}, column);
  }

  std::string name_;
  std::string member_;
  array_cut cut_;
  array_steps steps_;
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
array array::flip(std::int64_t axis) const {
  array changed = *this;
  changed.flips_.push_back({.axis = axis, .probability = 1, .random = false});
  return changed;
}
array array::random_flip(std::int64_t axis, double probability) const {
  array changed = *this;
  changed.flips_.push_back({.axis = axis, .probability = probability, .random = true});
  return changed;
}
array array::normalize(double mean, double deviation) const { return normalize({mean}, {deviation}, 0); }
array array::normalize(std::vector<double> mean, std::vector<double> deviation, std::int64_t axis) const {
  if (statistics_) throw error(errc::usage, str_cat(name_, ": two normalize(); give one"));
  array changed = *this;
  changed.statistics_ = {std::move(mean), std::move(deviation), axis};
  return changed;
}
array array::as(dtype type) const {
  array changed = *this;
  changed.type_ = type;
  return changed;
}
array array::transpose(std::vector<std::int64_t> order) const {
  if (order.empty()) throw error(errc::usage, str_cat(name_, ": transpose without an order; give each axis once"));
  if (!order_.empty()) throw error(errc::usage, str_cat(name_, ": two transpose(); give one"));
  array changed = *this;
  changed.order_ = std::move(order);
  return changed;
}
array array::from(std::string member) const {
  array changed = *this;
  changed.member_ = std::move(member);
  return changed;
}
array::operator field() const {
  stages::array_steps steps{.flips = {}, .statistics = {}, .type = type_, .order = order_};
  for (const auto& [axis, probability, random] : flips_) steps.flips.push_back({axis, probability, random});
  if (statistics_) steps.statistics = {statistics_->mean, statistics_->deviation, statistics_->axis};
  return field(
      std::make_shared<stages::array_model>(name_, member_, stages::cut_of(slices_, crop_, random_), std::move(steps)));
}

}  // namespace leat

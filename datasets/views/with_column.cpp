// A dataset with one column more; and where its integers come from.
#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/files/integers.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/column_table.hpp"
#include "datasets/tables/read_part.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <utility>

namespace leat {
namespace datasets {
namespace {

class with_column_model final : public dataset_model, columns_facet {
 public:
  with_column_model(std::shared_ptr<const dataset_model> whole, column_values added)
      : whole_(std::move(whole)), added_(one(std::move(added)), whole_->size()) {
    names_.assign(whole_->columns().begin(), whole_->columns().end());
    names_.push_back(added_.column_names().front());
    begin_as(*whole_);
    facets_.columns = this;
    facets_.counts = nullptr;  // Columns are counted too.
  }

  std::uint64_t size() const noexcept override { return whole_->size(); }
  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    whole_->parts(sample, needs, out);
  }
  std::span<const std::string> column_names() const noexcept override { return names_; }
  std::optional<column_value> column(std::uint64_t sample, std::size_t column) const override {
    return is_added(column) ? added_.column(sample, 0) : whole_->column(sample, column);
  }
  dtype column_type(std::size_t column) const override {
    return is_added(column) ? added_.column_type(0) : whole_->column_type(column);
  }
  std::uint64_t column_gaps(std::size_t column) const override {
    return is_added(column) ? 0 : whole_->column_gaps(column);
  }
  std::string name(std::uint64_t sample) const override { return whole_->name(sample); }
  void describe(description& out) const override {
    whole_->describe(out);
    added_.describe(out);
  }
  dataset_memory memory() const override {
    dataset_memory held = whole_->memory();
    held.columns += added_.memory_bytes();
    return held;
  }

 private:
  [[nodiscard]] bool is_added(std::size_t column) const noexcept { return column + 1 == names_.size(); }
  static std::vector<column_values> one(column_values added) {
    std::vector<column_values> columns;
    columns.push_back(std::move(added));
    return columns;
  }

  std::shared_ptr<const dataset_model> whole_;
  column_table added_;
  std::vector<std::string> names_;
};

// As a label is written: one integer, with white space around it.
std::optional<std::int64_t> integer_in(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) return std::nullopt;
  text = text.substr(begin, text.find_last_not_of(blank) + 1 - begin);
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class Stored>
std::optional<std::int64_t> stored_integer(std::span<const std::byte> bytes) {
  Stored value;
  if (bytes.size() != sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  if (!std::in_range<std::int64_t>(value)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> value_of(const field_info& field, std::span<const std::byte> bytes) {
  if (field.kind != field_kind::tensor) {
    return integer_in({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  switch (field.type) {
    case dtype::u8:
    case dtype::boolean:
      return stored_integer<std::uint8_t>(bytes);
    case dtype::i8:
      return stored_integer<std::int8_t>(bytes);
    case dtype::u16:
      return stored_integer<std::uint16_t>(bytes);
    case dtype::i16:
      return stored_integer<std::int16_t>(bytes);
    case dtype::u32:
      return stored_integer<std::uint32_t>(bytes);
    case dtype::i32:
      return stored_integer<std::int32_t>(bytes);
    case dtype::u64:
      return stored_integer<std::uint64_t>(bytes);
    case dtype::i64:
      return stored_integer<std::int64_t>(bytes);
    default:
      return std::nullopt;
  }
}

[[noreturn]] void throw_bad(const dataset_model& model, std::uint64_t sample, std::string_view name,
                            std::string_view what) {
  throw error(errc::corrupt,
              str_cat("read_column '", name, "': sample ", sample, ", ", model.name(sample), ", ", what));
}

class column_reader {
 public:
  column_reader(const dataset_model& model, std::uint16_t field) : model_(model), field_(field) {}

  /// Appends those of samples first..end-1.
  void read(std::uint64_t first, std::uint64_t end, std::vector<std::int64_t>& to) {
    const std::string& name = model_.fields()[field_].name;
    const need wanted[] = {{.field = field_}};
    const bool expands = model_.forms(field_).any_of(forms_expanded);
    std::vector<std::size_t> ends;
    std::vector<part> pieces;
    std::size_t bytes = 0;
    for (std::uint64_t sample = first; sample < end; ++sample) {
      if (const std::optional<defect> damage = model_.defect_of(sample))
        throw_bad(model_, sample, name, damage->reason);
      parts_.clear();
      model_.parts(sample, wanted, parts_);
      if (parts_.empty()) throw_bad(model_, sample, name, "lacks it");
      const value_size size = size_of_value(model_.fields()[field_], field_, parts_);
      if (size.is_exact && size.bytes > integer_bytes_max) {
        throw_bad(model_, sample, name, str_cat("has ", size.bytes, " bytes and is no integer"));
      }
      if (!expands) {
        bytes += size.bytes;
        pieces.insert(pieces.end(), parts_.begin(), parts_.end());
      }
      if (expands) {
        bytes_.resize(bytes);
        append_field(model_, sample, field_, {parts_.data(), parts_.size()}, sources_, bytes_);
        bytes = bytes_.size();
      }
      ends.push_back(bytes);
    }
    bytes_.resize(bytes);
    std::map<std::uint32_t, std::vector<blocking_source::request>> of_source;
    std::size_t at = 0;
    for (const part& each : pieces) {
      of_source[each.where.source].push_back(
          {each.where.file, each.where.offset, std::span(bytes_).subspan(at, each.where.stored_bytes)});
      at += each.where.stored_bytes;
    }
    for (const auto& [source, requests] : of_source) sources_.of(*model_.sources()[source]).read(requests);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::optional<std::int64_t> value =
          value_of(model_.fields()[field_], std::span(bytes_).subspan(begin, ends[i] - begin));
      if (!value) throw_bad(model_, first + i, name, "is no integer");
      to.push_back(*value);
      begin = ends[i];
    }
  }

 private:
  static constexpr std::uint64_t integer_bytes_max = 64;

  const dataset_model& model_;
  std::uint16_t field_;
  blocking_sources sources_{opening_loop::traffic::many};
  part_list parts_;
  std::vector<std::byte> bytes_;
};

}  // namespace
}  // namespace datasets

dataset dataset::with_column(std::string name, std::vector<std::int64_t> values) const {
  return with_column(column_values{.name = std::move(name), .values = std::move(values)});
}

dataset dataset::with_column(column_values added) const {
  if (model_->find_column(added.name)) {
    throw error(errc::usage, str_cat("with_column: the dataset has a column '", added.name, "' already"));
  }
  return dataset(std::make_shared<datasets::with_column_model>(model_, std::move(added)));
}

std::vector<std::int64_t> read_column(const dataset& samples, std::string_view name) {
  constexpr std::uint64_t samples_at_once = 4096;
  const datasets::dataset_model& model = *samples.model();
  std::vector<std::int64_t> values;
  values.reserve(samples.size());
  if (const std::optional<std::size_t> column = model.find_column(name)) {
    for (std::uint64_t sample = 0; sample < samples.size(); ++sample) {
      const std::optional<datasets::column_value> value = model.column(sample, *column);
      if (!value) datasets::throw_bad(model, sample, name, "lacks it");
      const std::optional<std::int64_t> whole = datasets::whole_of(*value);
      if (!whole) datasets::throw_bad(model, sample, name, "is no integer");
      values.push_back(*whole);
    }
    return values;
  }
  const std::optional<std::uint16_t> field = model.find_field(name);
  if (!field) {
    std::vector<std::string> names;
    std::string text;
    for (const field_info& each : samples.fields()) {
      text += (text.empty() ? "" : ", ") + each.name;
      names.push_back(each.name);
    }
    throw error(errc::usage, str_cat("read_column: the dataset has no field '", name, "'; it has ", text,
                                     did_you_mean(name, names)));
  }
  if (model.forms(*field).any_of(datasets::forms_made)) {
    for (std::uint64_t sample = 0; sample < samples.size(); ++sample) {
      const std::optional<std::int64_t> value = datasets::value_of(model.fields()[*field], samples.read(sample, name));
      if (!value) datasets::throw_bad(model, sample, name, "is no integer");
      values.push_back(*value);
    }
    return values;
  }
  datasets::column_reader reader(model, *field);
  for (std::uint64_t first = 0; first < samples.size(); first += samples_at_once) {
    reader.read(first, std::min(samples.size(), first + samples_at_once), values);
  }
  return values;
}

}  // namespace leat

// sequence: one-dimensional rows of any length, as they are or filled up to one.
#include "base/text.hpp"
#include "datasets/formats/arrays/npy_header.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/number_list.hpp"
#include "stages/fields/padded_row.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace leat {
namespace stages {
namespace {

/// What is stored of a row.
///   type     of its elements; without it they are text
///   is_npy   or it is a .npy file, whose header says the type
struct stored_row {
  std::optional<dtype> type;
  bool is_npy = false;

  [[nodiscard]] std::size_t elements_max(std::size_t bytes) const {
    return is_npy ? bytes : stages::elements_max(type, bytes);
  }
};

class sequence_program final : public field_program, ragged_facet {
 public:
  ///   are_known   how many elements a row has is known before it is read
  sequence_program(const sequence::settings& settings, std::uint16_t field, stored_row stored, bool are_known)
      : field_program({}, {field}, {.encoded_bytes_max = bytes_max_or_any(settings.bytes_max, settings.name)}),
        settings_(settings),
        stored_(stored),
        bytes_max_(facts_.encoded_bytes_max) {
    facets_.ragged = this;
    const std::size_t multiple = settings_.padding ? static_cast<std::size_t>(settings_.padding->multiple) : 0;
    outputs_.push_back({.name = settings_.name,
                        .type = settings_.type,
                        .ragged = true,
                        .pad_multiple = multiple,
                        .narrowed = settings_.padding && !are_known});
    if (!settings_.padding) return;
    if (settings_.padding->max != 0) length_max_ = static_cast<std::size_t>(settings_.padding->max);
    outputs_.push_back({.name = settings_.name + ".length", .type = dtype::i64});
    if (settings_.mask) {
      outputs_.push_back({.name = settings_.name + ".mask",
                          .type = dtype::boolean,
                          .ragged = true,
                          .pad_multiple = multiple,
                          .narrowed = !are_known});
    }
  }

  std::size_t ragged_bytes(std::size_t output, std::size_t encoded_bytes) const override {
    return std::min(stored_.elements_max(encoded_bytes), length_max_) * size_bytes(outputs_[output].type);
  }

  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    if (input.encoded.size() > bytes_max_) return corrupt(too_many_bytes(input.encoded.size(), bytes_max_));
    std::optional<std::string> reason;
    with_type(settings_.type, [&](auto zero) { reason = fill<decltype(zero)>(input.encoded, rows); });
    if (reason) return corrupt(std::move(*reason));
    return {};
  }

 private:
  template <class To>
  std::optional<std::string> fill(std::span<const std::byte> encoded, std::span<row_target> rows) const {
    const std::span<std::byte> bytes = rows.front().bytes;
    row_writer<To> row{.at = bytes.data(), .room = bytes.size() / sizeof(To)};
    if (auto reason = read(encoded, row)) return reason;
    if (row.count > length_max_ && !settings_.truncate) {
      return str_cat("has ", row.count, " elements, more than ", length_max_, "; sequence::truncate() cuts it");
    }
    const std::size_t length = std::min(row.count, length_max_);
    // Of padded rows this is a substitute, since the batch has room for all that were planned.
    if (length > row.room)
      return str_cat("has ", length, " elements, more than the ", row.room, " of its batch's rows");
    rows.front().used = length * sizeof(To);
    if (settings_.padding) pad<To>(rows, length);
    return std::nullopt;
  }

  template <class To>
  std::optional<std::string> read(std::span<const std::byte> encoded, row_writer<To>& row) const {
    if (stored_.is_npy) return read_npy(encoded, row);
    if (stored_.type) return read_stored(encoded, *stored_.type, row);
    return read_text(std::string_view(reinterpret_cast<const char*>(encoded.data()), encoded.size()), row);
  }

  template <class To>
  std::optional<std::string> read_npy(std::span<const std::byte> encoded, row_writer<To>& row) const {
    datasets::npy_header header;
    try {
      header = datasets::read_npy_header(settings_.member, encoded);
    } catch (const error& failure) {
      return failure.what();
    }
    if (header.shape.size() != 1)
      return str_cat("is an array of ", header.shape.size(), " axes, and a sequence has one; leat::array takes it");
    if (!has_numbers(header.type)) return str_cat("has elements of ", leat::name(header.type));
    return read_stored(encoded.subspan(header.data_offset, header.data_bytes), header.type, row);
  }

  template <class To>
  void pad(std::span<row_target> rows, std::size_t length) const {
    const std::span<std::byte> bytes = rows[0].bytes;
    const To value = static_cast<To>(settings_.padding->value);
    std::byte* const at = bytes.data();
    const std::size_t elements = bytes.size() / sizeof value;
    for (std::size_t i = length; i < elements; ++i) std::memcpy(at + i * sizeof value, &value, sizeof value);
    write_length(rows, length, settings_.mask);
  }

  sequence::settings settings_;
  stored_row stored_;
  std::size_t bytes_max_;
  std::size_t length_max_ = std::numeric_limits<std::size_t>::max();
};

class sequence_model final : public one_program_field {
 public:
  explicit sequence_model(sequence::settings settings) : settings_(std::move(settings)) {}

  const std::string& name() const noexcept override { return settings_.name; }
  void describe(description& out) const override {
    out.add("kind", "sequence");
    out.add("member", settings_.member);
    out.add("type", leat::name(settings_.type));
    if (settings_.stored) out.add("stored", leat::name(*settings_.stored));
    if (settings_.bytes_max) out.add("bytes_max", std::uint64_t{*settings_.bytes_max});
    if (!settings_.padding) return;
    out.add("padding", str_cat("to a multiple of ", settings_.padding->multiple, ", at most ", settings_.padding->max,
                               settings_.truncate ? ", cut" : "", settings_.mask ? ", mask" : ""));
    out.add("padding.value", settings_.padding->value);
  }
  std::unique_ptr<field_program> program(const datasets::dataset_model& dataset, finished_by) const override {
    check();
    const std::optional<std::uint16_t> field = dataset.find_field(settings_.member);
    if (!field) throw_no_field(dataset, settings_.member, settings_.name);
    const field_info& info = dataset.fields()[*field];
    if (info.kind == field_kind::picture) throw_wrong_kind(info, settings_.name);
    stored_row stored{
        .type = settings_.stored,
        .is_npy = !settings_.stored && info.kind == field_kind::bytes && datasets::is_npy_member(info.name)};
    if (!stored.type && !stored.is_npy) stored.type = stored_type_of(info);
    if (stored.type && !has_numbers(*stored.type)) refuse_type(*stored.type);
    const bool are_known =
        stored.type && dataset.forms(*field).only(datasets::part_form::stored | datasets::forms_in_blocks);
    check_lengths(are_known);
    return std::make_unique<sequence_program>(settings_, *field, stored, are_known);
  }

 private:
  [[noreturn]] static void refuse_type(dtype type) {
    throw error(errc::usage, str_cat("a sequence of ", leat::name(type), "; it has u8 to i64, f32 or f64"));
  }
  void check() const {
    if (!has_numbers(settings_.type)) refuse_type(settings_.type);
    if ((settings_.mask || settings_.truncate) && !settings_.padding) {
      throw error(errc::usage, "sequence::mask() and truncate() are of rows that are filled up; call pad() too");
    }
    if (!settings_.padding) return;
    constexpr std::int64_t length_max = std::int64_t{1} << 40;
    const sequence::padding& how = *settings_.padding;
    if (how.max < 0 || how.max > length_max || how.multiple < 1 || how.multiple > length_max) {
      throw error(errc::usage, str_cat("sequence::pad({.multiple = ", how.multiple, ", .max = ", how.max,
                                       "}): both are 1 or more; max is the longest row that there may be"));
    }
    if (how.max == 0 && settings_.truncate) {
      throw error(errc::usage, "sequence::truncate() cuts rows to pad({.max}), which is not given");
    }
    bool fits = false;
    with_type(settings_.type, [&](auto zero) { fits = converted<decltype(zero)>(how.value).has_value(); });
    if (!fits)
      throw error(errc::usage,
                  str_cat("sequence::pad(): the value ", how.value, " is none of ", leat::name(settings_.type)));
  }

  void check_lengths(bool are_known) const {
    if (are_known || !settings_.padding || settings_.padding->max != 0) return;
    throw error(errc::usage, str_cat("sequence(\"", settings_.name, "\").pad(): how many elements '", settings_.member,
                                     "' has is known only when it is read; say the longest row that there may be, "
                                     ".pad({.max = 2048}), and with .truncate() longer ones are cut to that"));
  }

  sequence::settings settings_;
};

}  // namespace
}  // namespace stages

sequence::sequence(std::string name) {
  settings_.name = std::move(name);
  settings_.member = settings_.name;
}
sequence sequence::from(std::string member) const {
  sequence changed = *this;
  changed.settings_.member = std::move(member);
  return changed;
}
sequence sequence::as(dtype type) const {
  sequence changed = *this;
  changed.settings_.type = type;
  return changed;
}
sequence sequence::stored(dtype type) const {
  sequence changed = *this;
  changed.settings_.stored = type;
  return changed;
}
sequence sequence::bytes_max(std::size_t most) const {
  sequence changed = *this;
  changed.settings_.bytes_max = most;
  return changed;
}
sequence sequence::pad(padding how) const {
  sequence changed = *this;
  changed.settings_.padding = how;
  return changed;
}
sequence sequence::truncate() const {
  sequence changed = *this;
  changed.settings_.truncate = true;
  return changed;
}
sequence sequence::mask() const {
  sequence changed = *this;
  changed.settings_.mask = true;
  return changed;
}
sequence::operator field() const { return field(std::make_shared<stages::sequence_model>(settings_)); }

}  // namespace leat

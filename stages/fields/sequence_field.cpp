// sequence: one-dimensional rows of any length, as they are, filled up to one, or as pieces of packed rows.
#include "base/text.hpp"
#include "datasets/formats/arrays/npy_header.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/each_value.hpp"
#include "datasets/tables/value_sizes.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/number_list.hpp"
#include "stages/fields/packed_pieces.hpp"
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

/// The elements of a sample whose pieces are made.
struct sequence_scratch final : field_scratch {
  token_list elements;
  std::optional<std::uint64_t> sample;  // whose they are: its next piece has the same
};

class sequence_program final : public field_program, ragged_facet, packable_facet, finishing_facet, fetching_facet {
 public:
  ///   are_known   how many elements a row has is known before it is read
  sequence_program(const sequence::settings& settings, std::uint16_t field, stored_row stored, bool are_known)
      : field_program({}, {field}, {.encoded_bytes_max = bytes_max_or_any(settings.bytes_max, settings.name)}),
        settings_(settings),
        stored_(stored),
        are_known_(are_known),
        bytes_max_(facts_.encoded_bytes_max) {
    facets_.ragged = this;
    if (settings_.packed) facets_.packable = this;
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

  void pack(const rank_packing& by, bool with_places) override {
    std::optional<std::int64_t> fill;
    if (settings_.padding) fill = static_cast<std::int64_t>(settings_.padding->value);
    packed_.emplace(by, str_cat("sequence '", settings_.name, "'"), settings_.name, settings_.type, fill);
    with_places_ = with_places;
    outputs_.clear();
    packed_->add_outputs(outputs_, with_places);
    facets_.finishing = this;
    if (packed_->may_fetch()) facets_.fetching = this;
  }
  void leave_unpacked() const override {
    throw error(errc::usage, str_cat("sequence '", settings_.name,
                                     "': packed() is for an order that packs; give packed(length) as the order, or "
                                     "leave it out"));
  }
  bool fetches(std::uint64_t sample) const override { return packed_->fetches(sample); }
  void finish(finished_rows& all) const override { packed_->finish(all, with_places_); }

  std::unique_ptr<field_scratch> make_scratch(pixels::scratch_budget&) const override {
    return std::make_unique<sequence_scratch>();
  }
  std::size_t ragged_bytes(std::size_t output, std::size_t encoded_bytes) const override {
    if (packed_ && output != 0) return 0;
    return std::min(stored_.elements_max(encoded_bytes), length_max_) * size_bytes(outputs_[output].type);
  }

  outcome<void> decode(field_scratch& scratch, const decode_input& input, std::span<row_target> rows) const override {
    if (packed_) return decode_piece(static_cast<sequence_scratch&>(scratch), input, rows.front());
    if (input.encoded.size() > bytes_max_) return corrupt(too_many_bytes(input.encoded.size(), bytes_max_));
    std::optional<std::string> reason;
    with_type(settings_.type, [&](auto zero) { reason = fill<decltype(zero)>(input.encoded, rows); });
    if (reason) return corrupt(std::move(*reason));
    return {};
  }

  /// The dtype of elements whose number is known before they are read.
  [[nodiscard]] std::optional<dtype> stored_in_index() const { return are_known_ ? stored_.type : std::nullopt; }
  /// How many elements there are; nothing where they are none, which decode() says.
  [[nodiscard]] std::optional<std::size_t> count(std::span<const std::byte> encoded) const {
    row_writer<std::int32_t> none;
    if (encoded.size() > bytes_max_ || read(encoded, none)) return std::nullopt;
    return none.count;
  }

 private:
  /// What is wrong with them; nothing if nothing is.
  [[nodiscard]] std::optional<failure> read_all(std::span<const std::byte> encoded, token_list& to) const {
    if (encoded.size() > bytes_max_) return corrupt(too_many_bytes(encoded.size(), bytes_max_));
    to.resize(stored_.elements_max(encoded.size()));
    row_writer<std::int32_t> elements{.at = reinterpret_cast<std::byte*>(to.data()), .room = to.size()};
    if (auto reason = read(encoded, elements)) return corrupt(std::move(*reason));
    to.resize(elements.count);
    return std::nullopt;
  }
  outcome<void> decode_piece(sequence_scratch& own, const decode_input& input, row_target& to) const {
    if (facets_.fetching != nullptr && fetches(input.sample)) {
      const auto shared =
          long_.of(*input.dataset, reads_, input.sample, input.encoded,
                   [this](std::span<const std::byte> encoded, token_list& all) { return read_all(encoded, all); });
      if (shared->wrong) return *shared->wrong;
      return packed_->write(shared->ids, input, to);
    }
    if (own.sample != input.sample) {
      own.sample.reset();
      if (auto wrong = read_all(input.encoded, own.elements)) return std::move(*wrong);
      own.sample = input.sample;
    }
    return packed_->write(own.elements, input, to);
  }

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
  bool are_known_;
  std::size_t bytes_max_;
  std::size_t length_max_ = std::numeric_limits<std::size_t>::max();
  std::optional<packed_pieces> packed_;
  bool with_places_ = false;
  mutable long_texts long_;
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
    if (settings_.packed) {
      out.add("packed",
              settings_.padding ? str_cat("with ", settings_.padding->value) : std::string("with the order's pad"));
      return;
    }
    if (!settings_.padding) return;
    out.add("padding", str_cat("to a multiple of ", settings_.padding->multiple, ", at most ", settings_.padding->max,
                               settings_.truncate ? ", cut" : "", settings_.mask ? ", mask" : ""));
    out.add("padding.value", settings_.padding->value);
  }
  /// Of packed rows: of stored elements as many as their index says; lists of text are read.
  std::shared_ptr<const row_counts> counts(const std::shared_ptr<const datasets::dataset_model>& samples,
                                           const counting& how) const override {
    if (!settings_.packed) return nullptr;
    const std::unique_ptr<sequence_program> row = bound(*samples);
    auto counts = std::make_shared<row_counts>(samples->size());
    const auto keep = [&](std::uint64_t sample, std::uint64_t count) {
      if (count > std::numeric_limits<std::uint32_t>::max()) {
        throw error(errc::unsupported, str_cat("sequence '", settings_.name, "': sample ", sample, " has ", count,
                                               " elements; packed rows take samples of less than 2^32"));
      }
      (*counts)[sample] = static_cast<std::uint32_t>(count);
    };
    if (const std::optional<dtype> stored = row->stored_in_index()) {
      const std::vector<std::uint64_t> sizes = datasets::value_sizes(*samples, row->reads().front());
      for (std::uint64_t sample = 0; sample < sizes.size(); ++sample) {
        const std::uint64_t bytes = sizes[sample];
        const bool is_row =
            bytes != datasets::no_value && bytes != datasets::damaged_value && bytes % size_bytes(*stored) == 0;
        keep(sample, is_row ? bytes / size_bytes(*stored) : 1);
      }
      return counts;
    }
    datasets::for_each_value(*samples, row->reads(), how.bytes_max, [&]() -> datasets::value_use {
      return [&](std::uint64_t sample, const datasets::seen_value& value) {
        if (value.unreadable != nullptr && how.raises) throw error(*value.unreadable);
        keep(sample, value.bytes ? row->count(*value.bytes).value_or(1) : 1);
      };
    });
    return counts;
  }

 private:
  std::unique_ptr<field_program> program(const datasets::dataset_model& dataset, finished_by) const override {
    return bound(dataset);
  }
  [[nodiscard]] std::unique_ptr<sequence_program> bound(const datasets::dataset_model& dataset) const {
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

  [[noreturn]] static void refuse_type(dtype type) {
    throw error(errc::usage, str_cat("a sequence of ", leat::name(type), "; it has u8 to i64, f32 or f64"));
  }
  void check() const {
    if (!has_numbers(settings_.type)) refuse_type(settings_.type);
    if (settings_.packed) return check_packed();
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

  void check_packed() const {
    const auto refuse = [&](std::string_view why) {
      throw error(errc::usage, str_cat("sequence('", settings_.name, "').packed(): ", why));
    };
    if (settings_.type != dtype::i32 && settings_.type != dtype::i64) refuse("packed rows are i32 or i64; call as()");
    if (settings_.mask || settings_.truncate) {
      refuse("rows are of one length by their order; leave mask() and truncate() out");
    }
    if (!settings_.padding) return;
    if (settings_.padding->max != 0 || settings_.padding->multiple != 1) {
      refuse("the order says how long rows are; of pad() give a value alone");
    }
    if (!converted<std::int64_t>(settings_.padding->value)) refuse("the value of pad() is no whole number");
  }
  void check_lengths(bool are_known) const {
    if (settings_.packed || are_known || !settings_.padding || settings_.padding->max != 0) return;
    throw error(errc::usage, str_cat("sequence(\"", settings_.name, "\").pad(): how many elements '", settings_.member,
                                     "' has is known only when it is read; say the longest row that there may be, "
                                     ".pad({.max = 2048}), and with .truncate() longer ones are cut to that"));
  }

  sequence::settings settings_;
};

}  // namespace
}  // namespace stages

sequence::operator field() const { return field(std::make_shared<stages::sequence_model>(settings_)); }

}  // namespace leat

// label: a number, or a few, from text, from JSON or from the dataset's own classes.
#include "base/half.hpp"
#include "base/numbers.hpp"
#include "base/parse_json.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/fields/bind.hpp"
#include "stages/fields/number_list.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

namespace leat {
namespace stages {
namespace {

// A number as it was written: integers stay exact, and none is ever wrapped.
struct number {
  bool integral = false;
  bool negative = false;
  bool too_large = false;       // for any type we have
  std::uint64_t magnitude = 0;  // of an integer
  double real = 0;
};

number number_from(std::int64_t whole) {
  const auto bits = static_cast<std::uint64_t>(whole);
  return {.integral = true,
          .negative = whole < 0,
          .magnitude = whole < 0 ? 0 - bits : bits,
          .real = static_cast<double>(whole)};
}

number number_from(std::uint64_t whole) {
  return {.integral = true, .magnitude = whole, .real = static_cast<double>(whole)};
}

// 3.0 is a whole number, however it is written; beyond 2^53 a double cannot tell.
number number_from(double real) {
  constexpr double exact_max = 9007199254740992.0;
  if (std::trunc(real) == real && std::abs(real) <= exact_max) {
    number whole = number_from(static_cast<std::int64_t>(real));
    whole.real = real;  // -0.0 stays one
    return whole;
  }
  return {.too_large = std::isfinite(real) && std::abs(real) > exact_max, .real = real};
}

bool parse(std::string_view text, number& out) {
  if (const auto whole = parse_signed(text)) {
    out = number_from(*whole);
  } else if (const auto large = parse_unsigned(text)) {
    out = number_from(*large);
  } else if (const auto real = parse_real(text)) {
    out = number_from(*real);
    // Infinity is a number where somebody wrote it, and an overflow where nobody did.
    if (std::isinf(*real) && text.find_first_of("iI") == std::string_view::npos) out.too_large = true;
  } else {
    return false;
  }
  return true;
}

std::string does_not_fit(const number& value, dtype type) {
  return str_cat(value.integral ? str_cat(value.negative ? "-" : "", value.magnitude) : str_cat(value.real),
                 " does not fit the label's type, ", leat::name(type));
}

template <class Integer>
std::optional<std::string> store_integer(const number& value, dtype type, std::byte* to) {
  if (!value.integral && !value.too_large) {
    return str_cat(value.real, " is no whole number; take the label as f32 or f64");
  }
  using limits = std::numeric_limits<Integer>;
  const std::uint64_t most = value.negative
                                 ? (std::is_signed_v<Integer> ? static_cast<std::uint64_t>(limits::max()) + 1 : 0)
                                 : static_cast<std::uint64_t>(limits::max());
  if (!value.integral || value.magnitude > most) return does_not_fit(value, type);
  const auto stored = static_cast<Integer>(value.negative ? 0 - value.magnitude : value.magnitude);
  std::memcpy(to, &stored, sizeof stored);
  return std::nullopt;
}

std::optional<std::string> store(const number& value, dtype type, std::byte* to) {
  switch (type) {
    case dtype::u8:
      return store_integer<std::uint8_t>(value, type, to);
    case dtype::i8:
      return store_integer<std::int8_t>(value, type, to);
    case dtype::u16:
      return store_integer<std::uint16_t>(value, type, to);
    case dtype::i16:
      return store_integer<std::int16_t>(value, type, to);
    case dtype::u32:
      return store_integer<std::uint32_t>(value, type, to);
    case dtype::i32:
      return store_integer<std::int32_t>(value, type, to);
    case dtype::u64:
      return store_integer<std::uint64_t>(value, type, to);
    case dtype::i64:
      return store_integer<std::int64_t>(value, type, to);
    case dtype::f32: {
      const bool overflow = std::isfinite(value.real) && std::abs(value.real) > std::numeric_limits<float>::max();
      if (overflow || (std::isinf(value.real) && value.too_large)) return does_not_fit(value, type);
      const auto stored = static_cast<float>(value.real);
      std::memcpy(to, &stored, sizeof stored);
      return std::nullopt;
    }
    case dtype::f64:
      if (std::isinf(value.real) && value.too_large) return does_not_fit(value, type);
      std::memcpy(to, &value.real, sizeof value.real);
      return std::nullopt;
    case dtype::f16:
    case dtype::bf16:
    case dtype::boolean:
      break;
  }
  return "is of a type that labels do not have";
}

// An element of a row of numbers.
number element_at(dtype type, const std::byte* at) {
  number found;
  const bool is_plain = with_type(type, [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    using wide = std::conditional_t<std::is_floating_point_v<decltype(value)>, double,
                                    std::conditional_t<std::is_signed_v<decltype(value)>, std::int64_t, std::uint64_t>>;
    found = number_from(static_cast<wide>(value));
  });
  if (is_plain) return found;
  if (type == dtype::boolean) return number_from(std::uint64_t{*at != std::byte{0}});
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return number_from(static_cast<double>(type == dtype::f16 ? f16_value(bits) : bf16_value(bits)));
}

// The first characters of what somebody wrote, for a message.
std::string quoted(std::string_view text) {
  std::string shown;
  for (const char letter : text.substr(0, 40)) shown.push_back(is_printable(letter) ? letter : '.');
  return str_cat("'", shown, text.size() > 40 ? "..." : "", "'");
}

class label_program final : public field_program {
 public:
  ///   stored   of a field of numbers: its elements' type
  label_program(const label::settings& settings, dtype type, std::vector<std::uint16_t> fields,
                std::optional<dtype> stored, std::optional<std::size_t> column)
      // Parts of a concatenation may know their classes where others have a member.
      : field_program({}, std::move(fields), {.required = !column}),
        settings_(settings),
        type_(type),
        stored_(stored),
        column_(column) {
    output_spec output{.name = settings_.name, .type = type_, .copied = reads_.empty(), .label = true};
    if (settings_.length) output.row_shape.push_back(*settings_.length);
    outputs_.push_back(std::move(output));
  }

  outcome<void> decode(field_scratch&, const decode_input& input, std::span<row_target> rows) const override {
    std::byte* const row = rows.front().bytes.data();
    if (!input.present) {
      const auto value = column_ ? input.dataset->column(input.sample, *column_) : std::nullopt;
      if (!value) return corrupt("has no class, neither as a member nor as a column", corrupt_kinds::incomplete);
      return finish(store(std::visit([](auto given) { return number_from(given); }, *value), type_, row));
    }
    if (stored_) return decode_elements(*stored_, input.encoded, row);
    std::string_view text(reinterpret_cast<const char*>(input.encoded.data()), input.encoded.size());
    text = text.substr(0, text.find_last_not_of('\0') + 1);  // Of text of a fixed length.
    return settings_.json_key.empty() ? decode_text(text, row) : decode_json(text, row);
  }

 private:
  static outcome<void> finish(std::optional<std::string> problem) {
    if (problem) return corrupt(std::move(*problem));
    return {};
  }

  outcome<void> decode_elements(dtype stored, std::span<const std::byte> elements, std::byte* row) const {
    const std::size_t wanted = static_cast<std::size_t>(settings_.length.value_or(1));
    const std::size_t each = size_bytes(stored);
    if (elements.size() != wanted * each) {
      return corrupt(str_cat("holds ", elements.size(), " bytes where ", wanted, " of ", leat::name(stored),
                             wanted == 1 ? " is" : " are", " wanted"));
    }
    for (std::size_t i = 0; i < wanted; ++i) {
      const number value = element_at(stored, elements.data() + i * each);
      if (auto problem = store(value, type_, row + i * size_bytes(type_))) return corrupt(std::move(*problem));
    }
    return {};
  }

  outcome<void> decode_text(std::string_view text, std::byte* row) const {
    const std::int64_t wanted = settings_.length.value_or(1);
    std::int64_t found = 0;
    for (const std::string_view word : words_of(text, " \t\r\n,;[]")) {
      number value;
      if (!parse(word, value)) return corrupt(str_cat(quoted(text), " is no number"));
      if (found < wanted) {
        if (auto problem = store(value, type_, row + static_cast<std::size_t>(found) * size_bytes(type_))) {
          return corrupt(std::move(*problem));
        }
      }
      ++found;
    }
    if (found == wanted) return {};
    return corrupt(str_cat(quoted(text), " holds ", found, " numbers where ", wanted, " are wanted"),
                   text.empty() ? corrupt_kinds::empty : corrupt_kinds::damaged);
  }

  outcome<void> decode_json(std::string_view text, std::byte* row) const {
    nlohmann::json object;
    try {
      object = parse_json(text);
    } catch (const error& wrong) {
      return corrupt(str_cat(quoted(text), " is no JSON: ", wrong.what()));
    }
    if (!object.is_object() || !object.contains(settings_.json_key)) {
      return corrupt(str_cat("the JSON has no member '", settings_.json_key, "'"), corrupt_kinds::incomplete);
    }
    const nlohmann::json& member = object[settings_.json_key];
    const std::size_t wanted = static_cast<std::size_t>(settings_.length.value_or(1));
    const bool is_list = member.is_array();
    if (is_list != settings_.length.has_value() || (is_list && member.size() != wanted)) {
      return corrupt(str_cat(
          "member '", settings_.json_key, "' is ", member.type_name(), is_list ? str_cat(" of ", member.size()) : "",
          " where ", settings_.length ? str_cat("a list of ", wanted, " numbers is") : "one number is", " wanted"));
    }
    for (std::size_t i = 0; i < wanted; ++i) {
      const nlohmann::json& item = is_list ? member[i] : member;
      number value;
      if (item.is_boolean()) {
        value = number_from(std::int64_t{item.get<bool>()});
      } else if (item.is_number_unsigned()) {
        value = number_from(item.get<std::uint64_t>());
      } else if (item.is_number_integer()) {
        value = number_from(item.get<std::int64_t>());
      } else if (item.is_number_float()) {
        value = number_from(item.get<double>());
      } else {
        return corrupt(str_cat("member '", settings_.json_key, "' is ", item.type_name(), ", not a number"));
      }
      if (auto problem = store(value, type_, row + i * size_bytes(type_))) {
        return corrupt(std::move(*problem));
      }
    }
    return {};
  }

  label::settings settings_;
  dtype type_;
  std::optional<dtype> stored_;
  std::optional<std::size_t> column_;
};

class label_model final : public one_program_field {
 public:
  explicit label_model(label::settings settings) : settings_(std::move(settings)) {
    const dtype type = settings_.type.value_or(dtype::i64);
    if (type == dtype::f16 || type == dtype::bf16 || type == dtype::boolean) {
      throw error(errc::usage,
                  str_cat("label '", settings_.name, "' as ", leat::name(type), ": labels are integers, f32 or f64"));
    }
    if (settings_.length && *settings_.length <= 0) {
      throw error(errc::usage, str_cat("label '", settings_.name, "': a vector of ", *settings_.length,
                                       " numbers; give at least one"));
    }
  }

  const std::string& name() const noexcept override { return settings_.name; }
  void describe(description& out) const override {
    out.add("kind", "label");
    out.add("member", settings_.member);
    out.add("type", leat::name(settings_.type.value_or(dtype::i64)));
    // Asked for, it holds for a column of floats, too, which otherwise gives floats.
    if (settings_.type == dtype::i64) out.add("as", "i64");
    if (settings_.length) out.add("vector", *settings_.length);
    if (!settings_.json_key.empty()) out.add("key", settings_.json_key);
  }
  std::unique_ptr<field_program> program(const datasets::dataset_model& dataset, finished_by) const override {
    const std::string_view names[] = {settings_.member};
    std::vector<std::uint16_t> fields = find_fields(dataset, names);
    std::optional<std::size_t> column;
    if (settings_.json_key.empty() && !settings_.length) column = dataset.find_column(settings_.member);
    if (fields.empty() && !column) throw_no_field(dataset, settings_.member, settings_.name);
    std::optional<dtype> stored;
    dtype known = column ? label_type(dataset.column_type(*column)) : dtype::i64;
    if (!fields.empty()) {
      const field_info& info = dataset.fields()[fields.front()];
      check(info);
      if (!info.characters) stored = stored_type_of(info);
      if (stored || info.kind == field_kind::label) known = widest(known, stored.value_or(info.type));
    }
    return std::make_unique<label_program>(settings_, settings_.type.value_or(known), std::move(fields), stored,
                                           column);
  }

 private:
  // What can be no number in any sample is told before the first one is read.
  void check(const field_info& info) const {
    if (info.kind == field_kind::picture || info.kind == field_kind::tokens) throw_wrong_kind(info, settings_.name);
    if (info.kind != field_kind::tensor || info.characters) return;
    const std::string what = str_cat("label '", settings_.name, "': the member '", info.name, "' has rows of ");
    if (!settings_.json_key.empty()) throw error(errc::usage, what + "numbers, in which there is no key()");
    const std::int64_t wanted = settings_.length.value_or(1);
    const std::int64_t held = info.shape.elements();
    if (held == wanted) return;
    throw error(errc::usage, str_cat(what, held, held == 1 ? " number" : " numbers", ", and the label has ", wanted,
                                     "; leat::array reads them", info.shape.size() == 1 ? ", or .vector()" : ""));
  }
  // Numbers are i64, or floats where one of the two is.
  static dtype widest(dtype a, dtype b) noexcept {
    const auto is_real = [](dtype type) { return type == dtype::f64 || label_type(type) == dtype::f32; };
    if (!is_real(a) && !is_real(b)) return dtype::i64;
    if (!is_real(a) || !is_real(b)) return label_type(is_real(a) ? a : b);
    return a == dtype::f64 || b == dtype::f64 ? dtype::f64 : dtype::f32;
  }
  static dtype label_type(dtype stored) noexcept {
    return stored == dtype::f16 || stored == dtype::bf16 ? dtype::f32 : stored;
  }

  label::settings settings_;
};

}  // namespace
}  // namespace stages

label::label(std::string name) { settings_.name = settings_.member = std::move(name); }

label label::from(std::string member) const {
  label changed = *this;
  changed.settings_.member = std::move(member);
  return changed;
}
label label::as(dtype type) const {
  label changed = *this;
  changed.settings_.type = type;
  return changed;
}
label label::vector(std::int64_t length) const {
  label changed = *this;
  changed.settings_.length = length;
  return changed;
}
label label::key(std::string json_key) const {
  label changed = *this;
  changed.settings_.json_key = std::move(json_key);
  return changed;
}
label::operator field() const { return field(std::make_shared<stages::label_model>(settings_)); }

}  // namespace leat

#include "tools/checked_samples.hpp"

#include "base/cores_quota.hpp"
#include "base/corrupt_kind.hpp"
#include "base/half.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/joint_reads.hpp"
#include "stages/fields/number_list.hpp"
#include "stages/pixels/picture_decoder.hpp"
#include "stages/state/digest.hpp"
#include "tools/class_counts.hpp"
#include "tools/fields.hpp"
#include "tools/where_option.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace leat::tools {
namespace {

// Samples that a thread takes at a time: many reads in flight for a drive, and little memory.
constexpr std::uint64_t portion_samples = 32;

// To which pictures are shrunk. At 224 a check takes 1.4 times as long as at 112, beside which deviations are 2 % larger
// (500 photographs). No picture is made larger.
constexpr int side_max = 112;

/// What a sample of this dataset has to have, and what its fields are to this check.
struct expected_fields {
  std::vector<std::uint16_t> wanted;  ///< fields that a loader's batch would hold; pictures not among them
  std::vector<std::uint16_t> pictures;
  bool any_picture = false;  ///< one of `pictures` does
  std::vector<bool> is_text;
  std::optional<std::uint16_t> label;  ///< a field that is read
  std::optional<std::size_t> column;   ///< or kept with the dataset
};

/// What a loader of this budget takes of a value. Where the largest fits beside the quarter that is for decoding, whatever there
/// is, and else a quarter, as planner::leave_out_above() has it. A batch holds a value that is no picture once more.
std::uint64_t value_bytes_max(const datasets::dataset_model& model, const expected_fields& expected,
                              std::size_t host_bytes_max) {
  std::uint64_t largest = 0;
  for (const std::uint16_t field : expected.pictures) {
    largest = std::max<std::uint64_t>(largest, model.fields()[field].bytes_max);
  }
  for (const std::uint16_t field : expected.wanted) {
    largest = std::max<std::uint64_t>(largest, 2 * std::uint64_t{model.fields()[field].bytes_max});
  }
  const std::uint64_t quarter = pixels::scratch_budget::sample_bytes_max(host_bytes_max);
  return largest <= host_bytes_max - quarter ? ~std::uint64_t{0} : quarter;
}

struct sums_of_label {
  std::uint64_t whole = 0;
  std::uint64_t other = 0;
};

expected_fields expect(const chosen_fields* chosen, const dataset& samples, const std::string& label) {
  const datasets::dataset_model& model = *samples.model();
  expected_fields expected;
  expected.is_text.resize(model.fields().size());
  if (!label.empty()) {
    expected.label = model.find_field(label);
    expected.column = model.find_column(label);  // Parts of a concatenation may have the one or the other.
  }
  if (chosen == nullptr) return expected;
  for (const std::vector<std::string>* names : {&chosen->labels, &chosen->texts, &chosen->arrays}) {
    for (const std::string& each : *names) {
      const std::optional<std::uint16_t> field = model.find_field(each);
      if (!field) continue;  // a column
      expected.wanted.push_back(*field);
      expected.is_text[*field] = names == &chosen->texts;
    }
  }
  expected.any_picture = chosen->pictures.size() == 1;
  for (std::uint16_t i = 0; i < model.fields().size(); ++i) {
    if (model.fields()[i].kind != field_kind::picture) continue;
    const bool is_chosen = std::any_of(chosen->pictures.begin(), chosen->pictures.end(),
                                       [&](const image& each) { return each.get().member == model.fields()[i].name; });
    if (expected.any_picture || is_chosen) expected.pictures.push_back(i);
  }
  return expected;
}

template <class Number>
bool any_not_finite(std::span<const std::byte> bytes) {
  bool found = false;
  for (std::size_t i = 0; i + sizeof(Number) <= bytes.size(); i += sizeof(Number)) {
    Number value;
    std::memcpy(&value, bytes.data() + i, sizeof value);
    found |= !std::isfinite(value);
  }
  return found;
}

// By the exponent: all of its bits are set.
bool any_not_finite(std::span<const std::byte> bytes, std::uint16_t exponent) {
  bool found = false;
  for (std::size_t i = 0; i + 2 <= bytes.size(); i += 2) {
    std::uint16_t value = 0;
    std::memcpy(&value, bytes.data() + i, sizeof value);
    found |= (value & exponent) == exponent;
  }
  return found;
}

bool has_not_finite(dtype type, std::span<const std::byte> bytes) {
  switch (type) {
    case dtype::f32:
      return any_not_finite<float>(bytes);
    case dtype::f64:
      return any_not_finite<double>(bytes);
    case dtype::f16:
      return any_not_finite(bytes, 0x7C00);
    case dtype::bf16:
      return any_not_finite(bytes, 0x7F80);
    default:
      return false;
  }
}

// As a label of i64 reads it.
std::optional<std::int64_t> whole_number(const field_info& field, std::span<const std::byte> bytes) {
  std::int64_t value = 0;
  stages::row_writer<std::int64_t> row{.at = reinterpret_cast<std::byte*>(&value), .room = 1};
  const std::optional<dtype> stored = stages::stored_type_of(field);
  if (stored && !stages::has_numbers(*stored)) return std::nullopt;
  const std::optional<std::string> wrong =
      stored ? stages::read_stored(bytes, *stored, row)
             : stages::read_text(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), row);
  if (wrong || row.count != 1) return std::nullopt;
  return value;
}

// Of a value under its name. They are summed up, so that no order of fields and columns matters: that of two sets may differ.
std::uint64_t hash_of(std::string_view name, dtype type, std::span<const std::byte> bytes) {
  const stages::row_output value{
      .name = name, .type = type, .shape = {static_cast<std::int64_t>(bytes.size())}, .bytes = bytes};
  const digest whole = stages::row_digest(0, {&value, 1});
  std::uint64_t hash = 0;
  std::memcpy(&hash, whole.bytes.data(), sizeof hash);
  return hash;
}

// 1 and 1.0 are the same number.
std::uint64_t hash_of(std::string_view name, const datasets::column_value& value) {
  if (const std::optional<std::int64_t> whole = datasets::whole_of(value)) {
    return hash_of(name, dtype::i64, std::as_bytes(std::span(&*whole, 1)));
  }
  const double real = datasets::real_of(value);
  return hash_of(name, dtype::f64, std::as_bytes(std::span(&real, 1)));
}

/// Fields that the dataset `expects` are not read where a part of theirs has more than `value_bytes_max`.
datasets::joint_limits limits_of(const datasets::dataset_model& model, const expected_fields& expects,
                                 std::uint64_t value_bytes_max) {
  datasets::joint_limits limits{.value_bytes_max = value_bytes_max};
  limits.limited.resize(model.fields().size());
  for (const std::vector<std::uint16_t>* const fields : {&expects.wanted, &expects.pictures}) {
    for (const std::uint16_t field : *fields) limits.limited[field] = true;
  }
  return limits;
}

/// Of an array's numbers.
struct number_range {
  std::uint64_t samples = 0;
  double least = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();

  void add(const number_range& other) noexcept {
    samples += other.samples;
    least = std::min(least, other.least);
    largest = std::max(largest, other.largest);
  }
  template <class Stored, class Value>
  void take(std::span<const std::byte> bytes, const Value& value_of) noexcept {
    // In their own type and without a branch, so that the loop is vector code; of floats, whose order matters to a compiler, in lanes.
    using number = decltype(value_of(Stored()));
    constexpr number most = std::numeric_limits<number>::max();
    constexpr number fewest = std::numeric_limits<number>::lowest();
    constexpr std::size_t lanes = std::is_floating_point_v<number> ? 16 : 1;
    std::array<number, lanes> low;
    std::array<number, lanes> high;
    low.fill(most);
    high.fill(fewest);
    const auto look_at = [&](std::size_t at, std::size_t lane) {
      Stored stored;
      std::memcpy(&stored, bytes.data() + at * sizeof stored, sizeof stored);
      const number value = value_of(stored);
      // Neither is so of a NaN, nor both of an infinity.
      low[lane] = value < low[lane] && value >= fewest ? value : low[lane];
      high[lane] = value > high[lane] && value <= most ? value : high[lane];
    };
    const std::size_t count = bytes.size() / sizeof(Stored);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      for (std::size_t lane = 0; lane < lanes; ++lane) look_at(i + lane, lane);
    }
    for (; i < count; ++i) look_at(i, 0);
    const number lowest = *std::min_element(low.begin(), low.end());
    const number highest = *std::max_element(high.begin(), high.end());
    // Any finite value has moved one of them, and the other is then right as it is.
    if (lowest == most && highest == fewest) return;
    least = std::min(least, static_cast<double>(lowest));
    largest = std::max(largest, static_cast<double>(highest));
  }
  void take(dtype type, std::span<const std::byte> bytes) noexcept {
    const auto as_it_is = [](auto value) { return value; };
    ++samples;
    switch (type) {
      case dtype::boolean:
      case dtype::u8:
        return take<std::uint8_t>(bytes, as_it_is);
      case dtype::i8:
        return take<std::int8_t>(bytes, as_it_is);
      case dtype::u16:
        return take<std::uint16_t>(bytes, as_it_is);
      case dtype::i16:
        return take<std::int16_t>(bytes, as_it_is);
      case dtype::u32:
        return take<std::uint32_t>(bytes, as_it_is);
      case dtype::i32:
        return take<std::int32_t>(bytes, as_it_is);
      case dtype::u64:
        return take<std::uint64_t>(bytes, as_it_is);
      case dtype::i64:
        return take<std::int64_t>(bytes, as_it_is);
      case dtype::f16:
        return take<std::uint16_t>(bytes, [](std::uint16_t bits) { return f16_value(bits); });
      case dtype::bf16:
        return take<std::uint16_t>(bytes, [](std::uint16_t bits) { return bf16_value(bits); });
      case dtype::f32:
        return take<float>(bytes, as_it_is);
      case dtype::f64:
        return take<double>(bytes, as_it_is);
      default:
        return;
    }
  }
};

/// The first number of a row of tokens that is not below `end`, and its place.
struct strange_token {
  std::int64_t token = 0;
  std::size_t place = 0;
};
template <class Token>
std::optional<strange_token> first_beyond(std::span<const std::byte> bytes, std::uint64_t end) {
  for (std::size_t i = 0; i + sizeof(Token) <= bytes.size(); i += sizeof(Token)) {
    Token token;
    std::memcpy(&token, bytes.data() + i, sizeof token);
    if (std::cmp_less(token, 0) || !std::cmp_less(token, end)) {
      return strange_token{static_cast<std::int64_t>(token), i / sizeof(Token)};
    }
  }
  return std::nullopt;
}
std::optional<strange_token> first_beyond(dtype type, std::span<const std::byte> bytes, std::uint64_t end) {
  switch (type) {
    case dtype::u8:
      return first_beyond<std::uint8_t>(bytes, end);
    case dtype::u16:
      return first_beyond<std::uint16_t>(bytes, end);
    case dtype::i16:
      return first_beyond<std::int16_t>(bytes, end);
    case dtype::u32:
      return first_beyond<std::uint32_t>(bytes, end);
    case dtype::i32:
      return first_beyond<std::int32_t>(bytes, end);
    case dtype::i64:
      return first_beyond<std::int64_t>(bytes, end);
    default:
      return std::nullopt;
  }
}

/// What one thread needs to look at samples.
class looker {
 public:
  looker(const datasets::dataset_model& model, const expected_fields& expected, const check_settings& how)
      : ranges(model.fields().size()),
        model_(model),
        expected_(expected),
        vocabulary_(how.vocabulary),
        budget_(pixels::scratch_budget::sample_bytes_max(how.host_bytes_max) + pixels::scratch_arena::base_bytes,
                how.host_bytes_max),
        decoder_(budget_),
        row_(store_.row_bytes(side_max, side_max)) {}

  std::vector<sample_fault> faults;
  pixel_sums pixels;
  sums_of_label labels;
  std::vector<std::uint64_t> without_number;  ///< samples whose label is no whole number
  std::vector<number_range> ranges;           ///< by field: of arrays

  void look_at(const datasets::joint_reads::one& of, datasets::joint_reads& from, checked_sample& found) {
    sample_ = of.sample;
    if (model_.defects() != 0) {
      if (const std::optional<datasets::defect> known = model_.defect_of(sample_)) {
        return add({}, known->kind, known->reason);
      }
    }
    const std::size_t faults_before = faults.size();
    look_for_missing(of);
    const bool has_picture = std::any_of(of.parts.begin(), of.parts.end(),
                                         [&](const datasets::part& each) { return is_picture(each.field); });
    for (std::size_t i = 0; i < of.parts.size(); ++i) {
      if (i > 0 && of.parts[i].field == of.parts[i - 1].field) continue;
      look_at_field(of, i, from, has_picture, found);
    }
    const std::span<const std::string> columns = model_.columns();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::optional<datasets::column_value> number = model_.column(sample_, i);
      if (!number) continue;
      (expected_.column == i ? found.label : found.rest) += hash_of(columns[i], *number);
      if (expected_.column != i) continue;
      // One that is not whole is no class.
      if (const std::optional<std::int64_t> whole = datasets::whole_of(*number)) take_class(*whole, found);
    }
    found.is_read = faults.size() == faults_before && found.bytes != 0;
  }

 private:
  [[nodiscard]] const field_info& info(std::uint16_t field) const { return model_.fields()[field]; }
  [[nodiscard]] bool is_picture(std::uint16_t field) const { return info(field).kind == field_kind::picture; }

  void add(std::string field, corrupt_kind kind, std::string reason) {
    faults.push_back({sample_, std::move(field), std::string(kind.name), std::move(reason)});
  }

  static void take_class(std::int64_t number, checked_sample& found) {
    found.cls = number;
    found.has_class = true;
  }

  void look_for_missing(const datasets::joint_reads::one& of) {
    const auto has = [&](std::uint16_t field) {
      return std::any_of(of.parts.begin(), of.parts.end(),
                         [&](const datasets::part& each) { return each.field == field; });
    };
    const auto miss = [&](const std::string& field) {
      add(field, corrupt_kinds::incomplete, str_cat("the sample has no field '", field, "'"));
    };
    for (const std::uint16_t field : expected_.wanted) {
      if (!has(field)) miss(info(field).name);
    }
    if (expected_.any_picture) {
      if (std::none_of(expected_.pictures.begin(), expected_.pictures.end(), has)) {
        miss(info(expected_.pictures.front()).name);
      }
      return;
    }
    for (const std::uint16_t field : expected_.pictures) {
      if (!has(field)) miss(info(field).name);
    }
  }

  void look_at_field(const datasets::joint_reads::one& of, std::size_t part, datasets::joint_reads& from,
                     bool has_picture, checked_sample& found) {
    const std::uint16_t field = of.parts[part].field;
    if (const std::optional<std::uint64_t> over = from.bytes_over(of, part)) {
      return add(info(field).name, corrupt_kinds::over_budget,
                 str_cat("takes ", bytes_text(*over, rounding::up), ", and the budget has ",
                         bytes_text(from.limits().value_bytes_max), " for a value, a quarter; --host-bytes-max of ",
                         bytes_text(4 * *over, rounding::up), " would do"));
    }
    try {
      const std::span<const std::byte> bytes = from.field_of(of, part);
      const bool is_label = expected_.label == field;
      if (has_picture ? is_picture(field) : !is_label) {
        const stages::row_output value{.name = {}, .shape = {static_cast<std::int64_t>(bytes.size())}, .bytes = bytes};
        found.content = stages::chain_digest(found.content, stages::row_digest(0, {&value, 1}));
        found.bytes += bytes.size();
        found.rest += hash_of(info(field).name, dtype::u8, {});
      } else {
        (is_label ? found.label : found.rest) += hash_of(info(field).name, dtype::u8, bytes);
      }
      if (is_picture(field)) {
        look_at_picture(field, bytes, found);
      } else if (is_label) {
        look_at_label(field, bytes, found);
      } else if (expected_.is_text[field] && first_invalid_utf8(bytes)) {
        add(info(field).name, corrupt_kinds::damaged,
            str_cat("byte ", *first_invalid_utf8(bytes), " begins no UTF-8 character"));
      } else if (info(field).kind == field_kind::tokens && vocabulary_ != 0) {
        look_at_tokens(field, bytes);
      }
      if (info(field).kind != field_kind::tensor || info(field).characters) return;
      ranges[field].take(info(field).type, bytes);
      if (has_not_finite(info(field).type, bytes)) {
        faults.push_back({sample_, info(field).name, std::string(not_finite), "holds a NaN or an infinity"});
      }
    } catch (const error& failure) {
      if (failure.code() == errc::limit || failure.code() == errc::changed) throw;
      add(info(field).name, failure.code() == errc::corrupt ? corrupt_kinds::damaged : corrupt_kinds::unreadable,
          failure.what());
    }
  }

  void look_at_tokens(std::uint16_t field, std::span<const std::byte> bytes) {
    if (const std::optional<strange_token> strange = first_beyond(info(field).type, bytes, vocabulary_)) {
      faults.push_back(
          {sample_, info(field).name, std::string(not_in_vocabulary),
           str_cat("token ", strange->token, " at place ", strange->place, "; the vocabulary has ", vocabulary_)});
    }
  }

  void look_at_label(std::uint16_t field, std::span<const std::byte> bytes, checked_sample& found) {
    if (const std::optional<std::int64_t> number = whole_number(info(field), bytes)) {
      take_class(*number, found);
      ++labels.whole;
    } else {
      without_number.push_back(sample_);
      ++labels.other;
    }
  }

  void look_at_picture(std::uint16_t field, std::span<const std::byte> encoded, checked_sample& found) {
    const auto looked = pixels::peek(encoded, pixels::look_for::size);
    const auto fail = [&](const stages::failure& why) {
      if (why.kind == stages::outcome_kind::no_memory) throw error(errc::limit, why.reason);
      add(info(field).name, why.counted_as(), why.reason);
    };
    if (!looked) return fail(looked.error());
    const int width = std::min(looked->width, side_max);
    const int height = std::min(looked->height, side_max);
    const pixels::geometry drawn{.box = {0, 0, looked->width, looked->height},
                                 .scaled_width = width,
                                 .scaled_height = height,
                                 .out_width = width,
                                 .out_height = height};
    const auto decoded = decoder_.decode(encoded, drawn, store_, {.decimate = true}, row_.data(), nullptr);
    if (!decoded) return fail(decoded.error());
    const auto across = static_cast<std::size_t>(width);
    const auto down = static_cast<std::size_t>(height);
    const std::span<const std::byte> rgb(row_.data(), 3 * across * down);
    add_pixels(rgb);
    if (found.has_picture) return;
    found.has_picture = true;
    found.width = static_cast<std::uint32_t>(looked->width);
    found.height = static_cast<std::uint32_t>(looked->height);
    const std::optional<picture_key> key = key_of(rgb, across, down);
    found.is_flat = !key;
    if (key) found.key = *key;
  }

  void add_pixels(std::span<const std::byte> rgb) {
    const std::uint64_t count = rgb.size() / 3;
    std::array<std::uint64_t, 3> sum{};
    std::array<std::uint64_t, 3> squares{};
    // In lanes of 16 pixels, which is vector code; of side_max x side_max pixels no lane's sum has more than 32 bits.
    static_assert(std::uint64_t{side_max} * side_max / 16 * 255 * 255 < std::uint64_t{1} << 32U);
    constexpr std::size_t lanes = 48;
    std::array<std::uint32_t, lanes> sum_of_lane{};
    std::array<std::uint32_t, lanes> squares_of_lane{};
    std::size_t i = 0;
    for (; i + lanes <= rgb.size(); i += lanes) {
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const auto value = std::to_integer<std::uint16_t>(rgb[i + lane]);
        sum_of_lane[lane] += value;
        squares_of_lane[lane] += static_cast<std::uint16_t>(value * value);
      }
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      sum[lane % 3] += sum_of_lane[lane];
      squares[lane % 3] += squares_of_lane[lane];
    }
    for (; i < rgb.size(); ++i) {
      const auto value = std::to_integer<std::uint32_t>(rgb[i]);
      sum[i % 3] += value;
      squares[i % 3] += std::uint64_t{value * value};
    }
    ++pixels.pictures;
    for (std::size_t channel = 0; channel < 3; ++channel) {
      pixels.mean[channel] += (sum[channel] * 65536 + count / 2) / count;
      pixels.squares[channel] += (squares[channel] * 65536 + count / 2) / count;
    }
  }

  const datasets::dataset_model& model_;
  const expected_fields& expected_;
  const std::uint64_t vocabulary_;
  pixels::scratch_budget budget_;
  pixels::picture_decoder decoder_;
  const pixels::store store_ = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  std::vector<std::byte> row_;
  std::uint64_t sample_ = 0;
};

// Of texts: where most are whole numbers, the others are what a loader refuses. Where they are not, there are no classes.
void settle_labels(checked_samples& found, const sums_of_label& labels, const std::vector<std::uint64_t>& others) {
  if (labels.whole <= labels.other) {
    if (labels.other != 0) found.label.clear();
    return;
  }
  for (const std::uint64_t sample : others) {
    found.faults.push_back({sample, found.label, std::string(corrupt_kinds::damaged.name), "is no whole number"});
    found.all[sample].is_read = false;
  }
}

// Numbers that tell samples apart are no classes.
void settle_classes(checked_samples& found) {
  std::vector<std::int64_t> numbers;
  for (const checked_sample& each : found.all) {
    if (each.has_class) numbers.push_back(each.cls);
  }
  const std::uint64_t looked_at = numbers.size();
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  if (!found.label.empty() && is_no_class(found.samples, found.label, numbers.size(), looked_at)) found.label.clear();
  if (!found.label.empty()) return;
  for (checked_sample& each : found.all) {
    each.has_class = false;
    each.rest += std::exchange(each.label, 0);  // A column as any other.
  }
}

// By one thread, in the order of the samples: no sum depends on how many there are.
void add_columns(checked_samples& found) {
  const datasets::dataset_model& model = *found.samples.model();
  const std::uint64_t count = found.samples.size();
  for (std::size_t column = 0; column < model.columns().size(); ++column) {
    number_facts facts{.name = model.columns()[column]};
    double squares = 0;  // of what is beside the mean: Welford, Technometrics 4 (1962)
    std::uint64_t numbers = 0;
    for (std::uint64_t sample = 0; sample < count; ++sample) {
      const std::optional<datasets::column_value> value = model.column(sample, column);
      if (!value) continue;
      ++facts.samples;
      const double number = datasets::real_of(*value);
      if (!std::isfinite(number)) {
        ++facts.not_a_number;
        continue;
      }
      facts.least = std::min(facts.least.value_or(number), number);
      facts.largest = std::max(facts.largest.value_or(number), number);
      const double beside = number - facts.mean;
      facts.mean += beside / static_cast<double>(++numbers);
      squares += beside * (number - facts.mean);
    }
    facts.missing = count - facts.samples;
    if (numbers != 0) facts.deviation = std::sqrt(squares / static_cast<double>(numbers));
    found.numbers.push_back(std::move(facts));
  }
}

void add_arrays(checked_samples& found, std::span<const number_range> ranges) {
  const std::span<const field_info> fields = found.samples.model()->fields();
  for (std::size_t field = 0; field < fields.size(); ++field) {
    const number_range& of = ranges[field];
    if (fields[field].kind != field_kind::tensor || of.samples == 0) continue;
    number_facts facts{.name = fields[field].name, .is_array = true, .samples = of.samples};
    facts.missing = found.samples.size() - of.samples;
    facts.not_a_number = static_cast<std::uint64_t>(std::count_if(
        found.faults.begin(), found.faults.end(),
        [&](const sample_fault& each) { return each.kind == not_finite && each.field == fields[field].name; }));
    if (of.least <= of.largest) {
      facts.least = of.least;
      facts.largest = of.largest;
    }
    found.numbers.push_back(std::move(facts));
  }
}

}  // namespace

void pixel_sums::add(const pixel_sums& other) noexcept {
  pictures += other.pictures;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    mean[channel] += other.mean[channel];
    squares[channel] += other.squares[channel];
  }
}

std::array<double, 3> pixel_sums::means() const noexcept {
  std::array<double, 3> of{};
  for (std::size_t i = 0; i < 3 && pictures != 0; ++i) {
    of[i] = static_cast<double>(mean[i]) / (65536.0 * 255.0 * static_cast<double>(pictures));
  }
  return of;
}

std::array<double, 3> pixel_sums::deviations() const noexcept {
  std::array<double, 3> of{};
  const std::array<double, 3> mean_of = means();
  for (std::size_t i = 0; i < 3 && pictures != 0; ++i) {
    const double square = static_cast<double>(squares[i]) / (65536.0 * 255.0 * 255.0 * static_cast<double>(pictures));
    of[i] = std::sqrt(std::max(0.0, square - mean_of[i] * mean_of[i]));
  }
  return of;
}

checked_samples check_samples(const dataset& opened, const check_settings& how, measuring_progress& so_far) {
  const std::vector<field_info> fields = opened.fields();
  // Shards of tokens and documents are compared as they are.
  const bool is_tokens =
      std::any_of(fields.begin(), fields.end(), [](const field_info& each) { return each.kind == field_kind::tokens; });
  if (how.vocabulary != 0 && !is_tokens) {
    std::string kinds;
    for (const field_info& each : fields) str_append(kinds, kinds.empty() ? "" : ", ", each.name);
    throw error(errc::usage, str_cat("--vocabulary is of tokens, and the source has none, but ", kinds,
                                     "; leave it out, or check files of tokens (leat tokens writes them)"));
  }
  std::optional<chosen_fields> chosen;
  if (!is_tokens) chosen = fields_of(opened, {});
  checked_samples found{.samples = samples_where(chosen ? chosen->samples : opened, how.where, how.index),
                        .strays = chosen ? chosen->strays : 0};
  if (chosen) found.warnings = chosen->warnings;
  if (const std::optional<field_info> label = class_field_of(found.samples)) found.label = label->name;
  const expected_fields expected = expect(chosen ? &*chosen : nullptr, found.samples, found.label);
  const datasets::dataset_model& model = *found.samples.model();
  const std::uint64_t value_max = value_bytes_max(model, expected, how.host_bytes_max);
  const std::uint64_t count = found.samples.size();
  found.all.resize(count);
  so_far.measured = 0;
  so_far.pictures = count;

  sums_of_label labels;
  std::vector<std::uint64_t> without_number;
  std::vector<number_range> ranges(model.fields().size());
  std::mutex mutex;
  std::atomic<std::uint64_t> next = 0;
  const auto wanted = how.threads == 0 ? working_cores() : how.threads;
  const auto used = static_cast<unsigned>(std::min<std::uint64_t>(wanted, count / portion_samples + 1));
  datasets::for_each_parallel(used, used, [&](std::size_t) {
    looker own(model, expected, how);
    datasets::joint_reads from(model, limits_of(model, expected, value_max));
    for (std::uint64_t first = 0; (first = next.fetch_add(portion_samples)) < count;) {
      const std::uint64_t end = std::min(first + portion_samples, count);
      for (std::uint64_t sample = first; sample < end;) {
        for (const datasets::joint_reads::one& each : from.read_from(sample, end)) {
          own.look_at(each, from, found.all[each.sample]);
          ++sample;
          ++so_far.measured;
        }
      }
    }
    const std::lock_guard lock(mutex);
    found.faults.insert(found.faults.end(), own.faults.begin(), own.faults.end());
    without_number.insert(without_number.end(), own.without_number.begin(), own.without_number.end());
    found.pixels.add(own.pixels);
    for (std::size_t field = 0; field < ranges.size(); ++field) ranges[field].add(own.ranges[field]);
    labels.whole += own.labels.whole;
    labels.other += own.labels.other;
  });
  settle_labels(found, labels, without_number);
  settle_classes(found);
  std::sort(found.faults.begin(), found.faults.end(), [](const sample_fault& a, const sample_fault& b) {
    return std::tie(a.sample, a.field, a.kind, a.reason) < std::tie(b.sample, b.field, b.kind, b.reason);
  });
  add_columns(found);
  add_arrays(found, ranges);
  return found;
}

}  // namespace leat::tools

#include "datasets/model/model.hpp"

#include "base/half.hpp"
#include "datasets/model/member_key.hpp"

#include <leat/error.hpp>

#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstring>

namespace leat::datasets {

namespace asio = boost::asio;

value_size size_of_value(const field_info& field, std::uint16_t number, std::span<const part> parts) noexcept {
  value_size size;
  for (const part& each : parts) {
    if (each.field != number) continue;
    switch (each.form) {
      case part_form::box:
        return {field.bytes_max};
      case part_form::value:
        size.bytes += each.value_bytes;
        size.is_exact = size.is_exact && !each.picked;
        break;
      case part_form::coded:
        size.bytes += each.where.decoded_bytes;
        size.is_exact = size.is_exact && each.value_bytes == each.where.decoded_bytes;
        break;
      case part_form::stored:
        size.bytes += each.where.decoded_bytes;
        break;
      case part_form::produced:
      case part_form::awaited:
        return {field.bytes_max, false};
    }
  }
  return size;
}

void dataset_model::parts(std::uint64_t sample, part_list& out) const {
  absl::InlinedVector<need, 16> all(fields().size());
  for (std::uint16_t field = 0; field < all.size(); ++field) all[field].field = field;
  parts(sample, {all.data(), all.size()}, out);
}

part_forms dataset_model::forms(std::uint16_t) const noexcept { return part_form::stored; }

std::span<const std::byte> dataset_model::produce(std::uint64_t, std::uint16_t, std::vector<std::byte>&) const {
  assert(false && "no part is produced");
  return {};
}

asio::awaitable<std::vector<std::byte>> dataset_model::fetch(std::uint64_t, std::uint16_t) const {
  assert(false && "no part is fetched");
  co_return std::vector<std::byte>{};
}

void dataset_model::describe(description& out) const {
  out.add_unnamed("dataset_model", "override dataset_model::describe()");
}

std::optional<column_value> dataset_model::column(std::uint64_t, std::size_t) const { return std::nullopt; }

dtype dataset_model::column_type(std::size_t) const { return dtype::i64; }

std::uint64_t dataset_model::column_samples(std::size_t) const { return size(); }

const std::vector<std::string>& dataset_model::classes() const noexcept {
  static const std::vector<std::string> none;
  return none;
}

std::string_view dataset_model::class_column() const noexcept { return "cls"; }

const std::vector<std::string>& dataset_model::notes() const noexcept {
  static const std::vector<std::string> none;
  return none;
}

std::vector<dataset_model::member_path> dataset_model::members(std::uint64_t sample,
                                                               std::span<const std::uint16_t> wanted,
                                                               blocking_sources&) const {
  std::vector<member_path> paths;
  for (const std::uint16_t field : wanted) {
    paths.push_back({name(sample), encode_field_name(fields()[field].name), false});
  }
  return paths;
}

std::optional<defect> dataset_model::defect_of(std::uint64_t) const { return std::nullopt; }

std::optional<std::string> dataset_model::changed(guard) const { return std::nullopt; }

void check_unchanged(const dataset_model& model) {
  if (model.guarded() == guard::none) return;
  if (const std::optional<std::string> what = model.changed(guard::epoch)) {
    throw error(errc::changed, "dataset changed: " + *what);
  }
}

std::vector<std::shared_ptr<const dataset_model>> dataset_model::joined() const { return {}; }

sample_blocks dataset_model::blocks() const { return {}; }

window_number dataset_model::window_of(std::uint64_t /*sample*/) const { return {}; }

std::optional<value_fault> dataset_model::expand(std::uint64_t sample, const part& of,
                                                 std::span<const std::byte> stored,
                                                 std::span<std::byte>& decoded) const {
  static_cast<void>(sample);
  static_cast<void>(of);
  static_cast<void>(stored);
  static_cast<void>(decoded);
  return "the data set does not say how these bytes are decoded";
}

void dataset_model::copy_box(std::uint64_t sample, const part& of, const box* within,
                             std::span<const std::byte> decoded, std::span<std::byte> bytes) const {
  static_cast<void>(sample);
  static_cast<void>(of);
  static_cast<void>(within);
  static_cast<void>(decoded);
  static_cast<void>(bytes);
  assert(false);
}

std::optional<value_fault> dataset_model::take_value(std::uint64_t sample, const part& of,
                                                     std::span<const std::byte> decoded,
                                                     std::span<std::byte>& bytes) const {
  copy_box(sample, of, nullptr, decoded, bytes);
  return std::nullopt;
}

std::uint64_t dataset_model::header_offset(std::uint64_t, const extent& part) const { return part.offset; }

std::optional<std::uint16_t> dataset_model::find_field(std::string_view name) const noexcept {
  const std::span<const field_info> all = fields();
  const auto found = std::find_if(all.begin(), all.end(), [&](const field_info& field) { return field.name == name; });
  if (found == all.end()) return std::nullopt;
  return static_cast<std::uint16_t>(found - all.begin());
}

std::optional<std::size_t> dataset_model::find_column(std::string_view name) const noexcept {
  const std::span<const std::string> all = columns();
  const auto found = std::find(all.begin(), all.end(), name);
  if (found == all.end()) return std::nullopt;
  return static_cast<std::size_t>(found - all.begin());
}

std::optional<std::int64_t> dataset_model::label(std::uint64_t sample) const {
  const std::optional<std::size_t> found = find_column(class_column());
  const std::optional<column_value> value = found ? column(sample, *found) : std::nullopt;
  return value ? whole_of(*value) : std::nullopt;
}

std::optional<std::int64_t> whole_of(const column_value& value) noexcept {
  if (const std::int64_t* const whole = std::get_if<std::int64_t>(&value)) return *whole;
  const double real = std::get<double>(value);
  constexpr double end = 9223372036854775808.0;  // 2^63
  if (!(real >= -end && real < end) || std::trunc(real) != real) return std::nullopt;
  return static_cast<std::int64_t>(real);
}

double real_of(const column_value& value) noexcept {
  return std::visit([](auto number) { return static_cast<double>(number); }, value);
}

std::string text_of(const column_value& value) {
  return std::visit(
      [](auto number) {
        std::array<char, 32> digits{};
        const auto [end, failure] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
        assert(failure == std::errc{});
        return std::string(digits.data(), end);
      },
      value);
}

void store(const column_value& value, dtype type, std::byte* to) noexcept {
  const auto put = [to](auto number) { std::memcpy(to, &number, sizeof number); };
  switch (type) {
    case dtype::f64:
      return put(real_of(value));
    case dtype::f32:
      return put(static_cast<float>(real_of(value)));
    case dtype::f16:
      return put(f16_bits(static_cast<float>(real_of(value))));
    case dtype::bf16:
      return put(bf16_bits(static_cast<float>(real_of(value))));
    default:
      assert(type == dtype::i64);
      return put(whole_of(value).value_or(0));
  }
}

static std::string_view last_name(std::string_view field_name) noexcept {
  return field_name.substr(field_name.find_last_of("./") + 1);
}

std::span<const std::string_view> picture_names() noexcept {
  static constexpr std::array<std::string_view, 14> names = {"jpg",  "jpeg", "png", "webp", "bmp",  "gif",   "tif",
                                                             "tiff", "ppm",  "pgm", "jpe",  "fjpg", "fjpeg", "fjpe"};
  return names;
}

bool is_photo_pack_name(std::string_view field_name) noexcept {
  const std::string_view last = last_name(field_name);
  return last == "fjpg" || last == "fjpeg" || last == "fjpe";
}

std::size_t reads_of_value_max(const field_info& field) noexcept { return is_photo_pack_name(field.name) ? 2 : 1; }

field_kind kind_of(std::string_view field_name) noexcept {
  constexpr std::array<std::string_view, 3> texts = {"txt", "text", "caption"};
  const std::string_view last = last_name(field_name);
  const std::span<const std::string_view> pictures = picture_names();
  if (std::find(pictures.begin(), pictures.end(), last) != pictures.end()) return field_kind::picture;
  if (last == "cls" || last == "cls2" || last == "index" || last == "id") return field_kind::label;
  if (std::find(texts.begin(), texts.end(), last) != texts.end()) return field_kind::text;
  return field_kind::bytes;
}

}  // namespace leat::datasets

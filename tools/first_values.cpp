#include "tools/first_values.hpp"

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "datasets/model/model.hpp"
#include "stages/pixels/picture_decoder.hpp"
#include "tools/human.hpp"
#include "tools/row_text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <span>
#include <string_view>

namespace leat::tools {
namespace {

// Samples that are asked whether they have a field.
constexpr std::uint64_t samples_asked_max = 10'000;
// Above that nothing is read only to be looked at.
constexpr std::uint64_t read_bytes_max = std::uint64_t{256} << 20;
constexpr std::size_t shown_bytes = 48;
constexpr std::int64_t shown_numbers = 4;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool has_controls(std::span<const std::byte> bytes) {
  return std::any_of(bytes.begin(), bytes.end(), [](std::byte each) {
    return each < std::byte{0x20} && each != std::byte{'\n'} && each != std::byte{'\r'} && each != std::byte{'\t'};
  });
}

// The beginning, not cut within a character.
std::string_view beginning(std::string_view text) {
  std::size_t end = std::min(text.size(), shown_bytes);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

void show_picture(std::span<const std::byte> encoded, std::size_t host_bytes_max, first_value& of) {
  const auto info = pixels::peek(encoded);
  if (!info) {
    of.failure = info.reason();
    return;
  }
  pixels::scratch_budget budget(
      pixels::scratch_budget::sample_bytes_max(host_bytes_max) + pixels::scratch_arena::base_bytes, host_bytes_max);
  pixels::picture_decoder decoder(budget);
  const pixels::pipeline steps({transforms::resize{.height = 8, .width = 8}});
  const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  std::vector<std::byte> row(how.row_bytes(8, 8));
  const auto result = decoder.decode(encoded, steps, {}, how, {}, row.data(), nullptr);
  of.shows = str_cat(name(info->what), ", ", info->width, " x ", info->height);
  if (!result) of.failure = result.reason();
}

// Elements of one dtype, in rows of a shape or of any length.
std::string elements_text(const field_info& field, std::span<std::byte> bytes) {
  const std::size_t element_bytes = size_bytes(field.type);
  tensor rows;
  rows.type = field.type;
  rows.data = bytes.data();
  rows.shape.push_back(1);
  if (field.kind == field_kind::tensor) {
    for (const std::int64_t extent : field.shape) rows.shape.push_back(extent);
  } else {
    rows.shape.push_back(static_cast<std::int64_t>(bytes.size() / element_bytes));
  }
  if (rows.bytes() != bytes.size()) return str_cat(bytes.size(), " bytes");
  return numbers_text(rows, 0, shown_numbers);
}

void show_value(const field_info& field, std::span<std::byte> bytes, std::size_t host_bytes_max, first_value& of) {
  switch (field.kind) {
    case field_kind::picture:
      return show_picture(bytes, host_bytes_max, of);
    case field_kind::tensor:
      of.shows = elements_text(field, bytes);
      return;
    case field_kind::text:
    case field_kind::label:
      if (first_invalid_utf8(bytes)) {
        of.failure = "no UTF-8";
        return;
      }
      break;
    case field_kind::bytes:
      if (field.type != dtype::u8) {
        of.shows = elements_text(field, bytes);
        return;
      }
      if (bytes.empty() || first_invalid_utf8(bytes) || has_controls(bytes)) {
        of.shows = counted(bytes.size(), "byte", "bytes");
        return;
      }
      break;
    case field_kind::tokens:
      return;
  }
  const std::string_view text = as_text(bytes);
  const std::string_view shown = beginning(text);
  of.shows = field.kind == field_kind::label ? one_line(shown) : str_cat("'", one_line(shown), "'");
  if (shown.size() < text.size()) str_append(of.shows, " ..., ", counted(text.size(), "byte", "bytes"));
}

//   number   of the part among those of its sample, which lie in their file's order: those of one record follow one another
std::string how_of(const field_info& field, const datasets::part_list& parts, std::size_t number) {
  const datasets::part& part = parts[number];
  if (!part.is_expanded()) return "";
  if (part.is_in_block()) return field.filters;
  const auto lies_there = [&](std::size_t other) {
    return other < parts.size() && parts[other].where.offset == part.where.offset &&
           parts[other].where.file == part.where.file && parts[other].where.source == part.where.source;
  };
  return (number > 0 && lies_there(number - 1)) || lies_there(number + 1) ? "picked out of a record" : "decoded";
}

void look_at(const dataset& samples, std::uint64_t sample, const datasets::part& part, std::size_t host_bytes_max,
             first_value& of) {
  const field_info& field = samples.model()->fields()[part.field];
  of.sample = sample;
  const std::uint64_t bytes = std::max(part.where.stored_bytes, part.where.decoded_bytes);
  if (field.kind == field_kind::tokens) return;
  if (bytes > read_bytes_max) {
    of.shows = str_cat("not read: ", bytes_text(bytes));
    return;
  }
  try {
    std::vector<std::byte> value = samples.read(sample, field.name);
    show_value(field, value, host_bytes_max, of);
  } catch (const error& why) {
    of.failure = why.what();
  }
}

}  // namespace

std::vector<first_value> first_values(const dataset& samples, std::size_t host_bytes_max) {
  const datasets::dataset_model& model = *samples.model();
  std::vector<first_value> all;
  std::size_t left = 0;
  for (std::size_t field = 0; field < model.fields().size(); ++field) {
    const bool is_read = !model.forms(static_cast<std::uint16_t>(field)).only(datasets::forms_made);
    first_value& each = all.emplace_back();
    each.field = model.fields()[field].name;
    if (!is_read) each.mode = "made";
    left += is_read ? 1 : 0;
  }
  datasets::part_list parts;
  for (std::uint64_t sample = 0; left != 0 && sample < std::min(samples.size(), samples_asked_max); ++sample) {
    if (model.defects() != 0 && model.defect_of(sample)) continue;  // They are told by themselves.
    parts.clear();
    model.parts(sample, parts);
    for (std::size_t number = 0; number < parts.size(); ++number) {
      const datasets::part& part = parts[number];
      first_value& of = all[part.field];
      if (of.sample || !of.mode.empty() || part.is_made()) continue;
      of.mode = part.is_in_block() ? "blocks" : "extents";
      of.how = how_of(model.fields()[part.field], parts, number);
      look_at(samples, sample, part, host_bytes_max, of);
      --left;
    }
  }
  return all;
}

}  // namespace leat::tools

#include "datasets/tables/seen_values.hpp"

#include "base/numbers.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>
#include <leat/open_tables.hpp>

#include <algorithm>
#include <cstdint>

namespace leat::datasets {

void seen_values::add(std::string_view written) {
  if (parse_signed(written) || parse_unsigned(written)) {
    whole = true;
  } else if (parse_real(written)) {
    real = true;
  } else {
    text = true;
  }
}

void seen_values::merge(const seen_values& more) noexcept {
  whole = whole || more.whole;
  real = real || more.real;
  text = text || more.text;
  other = other || more.other;
}

const dtype* wish_for(std::string_view name, std::span<const table_options::typed> wishes) noexcept {
  const auto found = std::find_if(wishes.begin(), wishes.end(), [&](const auto& each) { return each.name == name; });
  return found == wishes.end() ? nullptr : &found->type;
}

void set_kind(record_field& field, const seen_values& seen, std::span<const table_options::typed> wishes) {
  const dtype* const wish = wish_for(field.name, wishes);
  if (wish != nullptr) {
    field.kind = field_kind::label;
    field.type = *wish;
  } else if (seen.other) {
    field.kind = field_kind::bytes;
  } else if (seen.text || !seen.any()) {
    field.kind = field_kind::text;
  } else {
    field.kind = field_kind::label;
    field.type = seen.real ? dtype::f64 : dtype::i64;
  }
}

}  // namespace leat::datasets

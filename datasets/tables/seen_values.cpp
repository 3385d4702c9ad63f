#include "datasets/tables/seen_values.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>
#include <leat/open_tables.hpp>

#include <absl/strings/numbers.h>

#include <algorithm>
#include <cstdint>

namespace leat::datasets {

void seen_values::add(std::string_view written) {
  std::int64_t signed_value = 0;
  std::uint64_t unsigned_value = 0;
  double real_value = 0;
  const absl::string_view word = as_absl(written);
  if (absl::SimpleAtoi(word, &signed_value) || absl::SimpleAtoi(word, &unsigned_value)) {
    whole = true;
  } else if (absl::SimpleAtod(word, &real_value)) {
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

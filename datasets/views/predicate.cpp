#include "datasets/views/predicate.hpp"

#include "base/half.hpp"
#include "base/near_miss.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/formats/tar/photo_places.hpp"
#include "datasets/model/columns.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <compare>
#include <limits>
#include <span>
#include <system_error>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::string_view bytes_suffix = ".bytes";
constexpr std::string_view width_suffix = ".width";
constexpr std::string_view height_suffix = ".height";

bool is_picture(const field_info& field) noexcept { return field.kind == field_kind::picture; }

// The number that a column of this type would hold; itself, where that is too large for it: an infinity is another one.
double as_stored(double value, std::optional<dtype> type) noexcept {
  if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) return value;
  double stored = value;
  if (type == dtype::f32) stored = static_cast<double>(static_cast<float>(value));
  if (type == dtype::f16) stored = static_cast<double>(f16_value(f16_bits(static_cast<float>(value))));
  if (type == dtype::bf16) stored = static_cast<double>(bf16_value(bf16_bits(static_cast<float>(value))));
  return std::isfinite(stored) ? stored : value;
}

// Exact: most 64-bit numbers are no double.
std::partial_ordering order_of_numbers(std::int64_t a, double b) noexcept {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= 0x1p63) return std::partial_ordering::less;
  if (b < -0x1p63) return std::partial_ordering::greater;
  const double whole = std::floor(b);
  const auto below = static_cast<std::int64_t>(whole);
  if (a != below) return a <=> below;
  return whole < b ? std::partial_ordering::less : std::partial_ordering::equivalent;
}

template <class Value>
std::partial_ordering order_of_values(const Value& a, const Value& b) noexcept {
  const auto* const whole_a = std::get_if<std::int64_t>(&a);
  const auto* const whole_b = std::get_if<std::int64_t>(&b);
  const auto* const real_a = std::get_if<double>(&a);
  const auto* const real_b = std::get_if<double>(&b);
  if (whole_a != nullptr && whole_b != nullptr) return *whole_a <=> *whole_b;
  if (whole_a != nullptr && real_b != nullptr) return order_of_numbers(*whole_a, *real_b);
  if (real_a != nullptr && whole_b != nullptr) return 0 <=> order_of_numbers(*whole_b, *real_a);
  if (real_a != nullptr && real_b != nullptr) return *real_a <=> *real_b;
  const auto* const text_a = std::get_if<std::string_view>(&a);
  const auto* const text_b = std::get_if<std::string_view>(&b);
  if (text_a == nullptr || text_b == nullptr) return std::partial_ordering::unordered;
  return *text_a <=> *text_b;
}

// Behind the letter that begins there: its later bytes are 10xxxxxx.
std::size_t behind_letter(std::string_view text, std::size_t at) noexcept {
  ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) ++at;
  return at;
}

// The last * alone is tried again, so that many of them take no more than the product of both lengths.
bool is_as_pattern(std::string_view text, std::string_view pattern) noexcept {
  std::size_t t = 0;
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;
  std::size_t from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && pattern[p] == '?') {
      ++p;
      t = behind_letter(text, t);
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = from = behind_letter(text, from);
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

sample_predicate::sample_predicate(const dataset_model& model, parsed_predicate condition)
    : model_(model), condition_(std::move(condition)), root_(bind(condition_.root)) {}

bool sample_predicate::is_text(source from) noexcept {
  return from == source::text || from == source::class_name || from == source::name;
}

std::vector<std::string> sample_predicate::known_names() const {
  std::vector<std::string> names(model_.columns().begin(), model_.columns().end());
  if (!model_.classes().empty() && model_.find_column(model_.class_column())) names.emplace_back("class");
  names.insert(names.end(), {"name", "sample"});
  const std::span<const field_info> fields = model_.fields();
  const auto pictures = std::count_if(fields.begin(), fields.end(), is_picture);
  for (const char* const side : {"width", "height"}) {
    if (pictures != 0 && !model_.find_field(side) && !model_.find_column(side)) names.emplace_back(side);
  }
  for (const field_info& each : fields) {
    if (pictures > 1 && is_picture(each)) {
      names.insert(names.end(), {str_cat(each.name, width_suffix), str_cat(each.name, height_suffix)});
    }
    names.push_back(str_cat(each.name, bytes_suffix));
  }
  return names;
}

sample_predicate::operand sample_predicate::find(const std::string& name, std::size_t at) const {
  if (const std::optional<std::size_t> column = model_.find_column(name)) return {source::column, *column};
  if (name == "class" && !model_.classes().empty()) {
    if (const std::optional<std::size_t> column = model_.find_column(model_.class_column())) {
      return {source::class_name, *column};
    }
  }
  if (name == "name") return {source::name};
  if (name == "sample") return {source::sample};
  if ((name == "width" || name == "height") && !model_.find_field(name) &&
      std::any_of(model_.fields().begin(), model_.fields().end(), is_picture)) {
    return {name == "width" ? source::width : source::height, only_picture, at};
  }
  for (const auto& [suffix, from] : {std::pair(bytes_suffix, source::bytes), std::pair(width_suffix, source::width),
                                     std::pair(height_suffix, source::height)}) {
    if (!name.ends_with(suffix)) continue;
    const auto field = model_.find_field(std::string_view(name).substr(0, name.size() - suffix.size()));
    if (field && (from == source::bytes || is_picture(model_.fields()[*field]))) return {from, *field, at};
  }
  const std::vector<std::string> known = known_names();
  const std::string place = place_in_predicate(at, name);
  if (const std::optional<std::uint16_t> field = model_.find_field(name)) {
    const std::string remedy =
        model_.fields()[*field].kind == field_kind::label
            ? str_cat("make a column of it: with_column(\"", name, "\", read_column(samples, \"", name, "\"))")
            : str_cat("of a table name it with ", spelled(option_id::table_columns));
    throw error(errc::usage, str_cat(place, ": is a field, which has to be read; ", remedy, "; known without it are ",
                                     joined(known, ", ")));
  }
  throw error(errc::usage, str_cat(place, ": the dataset knows nothing of this name without reading; it knows ",
                                   joined(known, ", "), did_you_mean(name, known)));
}

std::optional<dtype> sample_predicate::type_of_column(const predicate_value& value) const {
  const std::optional<std::size_t> column = value.name() != nullptr ? model_.find_column(*value.name()) : std::nullopt;
  return column ? std::optional(model_.column_type(*column)) : std::nullopt;
}

// Of a column whose values became classes, because one of them is no number, a number would be compared with those of the classes.
void sample_predicate::check_numbers_of_classes(const predicate_value& column) const {
  if (column.name() == nullptr || *column.name() != model_.class_column()) return;
  const std::vector<std::string>& names = model_.classes();
  for (std::size_t i = 0; i < names.size(); ++i) {
    double number = 0;
    const char* const end = names[i].data() + names[i].size();
    const auto [read, failure] = std::from_chars(names[i].data(), end, number);
    if (failure != std::errc() || read != end || number == static_cast<double>(i)) continue;
    throw error(errc::usage, str_cat(place_in_predicate(column.at, *column.name()),
                                     ": its numbers are those of classes, and the class '", names[i], "' is number ", i,
                                     "; compare names, as class == '", names[i],
                                     "'; a table's column has numbers where all of its values are some"));
  }
}

sample_predicate::operand sample_predicate::bind(const predicate_value& value, std::optional<dtype> compared_as) {
  if (value.name() != nullptr) return find(*value.name(), value.at);
  const std::size_t which = literals_.size();
  if (const auto* const text = std::get_if<std::string>(&value.is)) {
    literals_.emplace_back(std::string_view(*text));
    return {source::text, which};
  }
  if (const auto* const real = std::get_if<double>(&value.is)) {
    literals_.emplace_back(as_stored(*real, compared_as));
  } else {
    literals_.emplace_back(std::get<std::int64_t>(value.is));
  }
  return {source::number, which};
}

void sample_predicate::bind_list(const predicate_node& node, bound_node& to) const {
  const bool wants_text = is_text(to.operands.front().from);
  const std::optional<dtype> type = type_of_column(node.values.front());
  for (std::size_t i = 1; i < node.values.size(); ++i) {
    const predicate_value& each = node.values[i];
    const auto* const text = std::get_if<std::string>(&each.is);
    if ((text != nullptr) != wants_text) {
      throw error(errc::usage,
                  str_cat(place_in_predicate(each.at, ""),
                          wants_text ? ": a text is expected, between quotes" : ": a number is expected here"));
    }
    if (text != nullptr) to.texts.emplace_back(*text);
    if (const auto* const whole = std::get_if<std::int64_t>(&each.is)) to.wholes.push_back(*whole);
    if (const auto* const real = std::get_if<double>(&each.is)) to.reals.push_back(as_stored(*real, type));
  }
  if (!wants_text) check_numbers_of_classes(node.values.front());
  std::sort(to.wholes.begin(), to.wholes.end());
  std::sort(to.texts.begin(), to.texts.end());
}

sample_predicate::bound_node sample_predicate::bind(const predicate_node& node) {
  bound_node bound{.kind = node.kind};
  for (const predicate_node& each : node.inner) bound.inner.push_back(bind(each));
  if (node.values.empty()) return bound;
  if (std::none_of(node.values.begin(), node.values.end(),
                   [](const predicate_value& each) { return each.name() != nullptr; })) {
    throw error(errc::usage, str_cat(place_in_predicate(node.values.front().at, ""),
                                     ": this compares nothing of a sample; a name is expected on one side"));
  }
  const predicate_value& first = node.values.front();
  if (node.kind == predicate_kind::among) {
    bound.operands.push_back(bind(first, std::nullopt));
    bind_list(node, bound);
    return bound;
  }
  for (std::size_t i = 0; i < node.values.size(); ++i) {
    const predicate_value& other = node.values[node.values.size() - 1 - i];
    bound.operands.push_back(bind(node.values[i], type_of_column(other)));
  }
  if (node.kind == predicate_kind::missing) return bound;
  for (std::size_t i = 0; i < 2; ++i) {
    if (bound.operands[1 - i].from == source::number) check_numbers_of_classes(node.values[i]);
  }
  const bool first_is_text = is_text(bound.operands[0].from);
  if (first_is_text != is_text(bound.operands[1].from)) {
    const bool is_class = first.name() != nullptr && *first.name() == model_.class_column();
    throw error(errc::usage,
                str_cat(place_in_predicate(first.at, ""), ": a number is compared with a text",
                        is_class && !model_.classes().empty() ? "; names of classes are compared with 'class'" : ""));
  }
  if (node.kind == predicate_kind::matches && !first_is_text) {
    throw error(errc::usage, str_cat(place_in_predicate(first.at, ""), ": 'matches' is of texts: name and class"));
  }
  return bound;
}

const part_list& sample_predicate::parts() {
  if (!std::exchange(has_parts_, true)) model_.parts(sample_, parts_);
  return parts_;
}

sample_predicate::known_value sample_predicate::value_of(const operand& of) {
  switch (of.from) {
    case source::number:
    case source::text:
      return literals_[of.which];
    case source::column:
    case source::class_name: {
      const std::optional<column_value> value = model_.column(sample_, of.which);
      if (!value) return {};
      if (of.from == source::class_name) {
        const std::optional<std::int64_t> number = whole_of(*value);
        const std::vector<std::string>& names = model_.classes();
        if (!number || !std::in_range<std::size_t>(*number) || static_cast<std::size_t>(*number) >= names.size())
          return {};
        return std::string_view(names[static_cast<std::size_t>(*number)]);
      }
      if (const auto* const whole = std::get_if<std::int64_t>(&*value)) return *whole;
      const double real = std::get<double>(*value);
      if (std::isnan(real)) return {};
      return as_stored(real, model_.column_type(of.which));
    }
    case source::name:
      if (!name_) name_ = model_.name(sample_);
      return std::string_view(*name_);
    case source::sample:
      return static_cast<std::int64_t>(sample_);
    case source::width:
    case source::height:
      return size_of(of);
    case source::bytes: {
      const part_list& all = parts();
      if (std::none_of(all.begin(), all.end(), [&](const part& each) { return each.field == of.which; })) return {};
      const auto field = static_cast<std::uint16_t>(of.which);
      const value_size size = size_of_value(model_.fields()[field], field, all);
      if (size.is_exact) return static_cast<std::int64_t>(size.bytes);
      throw error(errc::unsupported, str_cat("where: the bytes of '", model_.fields()[field].name, "' of sample ",
                                             sample_, " are not known before it is read; compare a column instead"));
    }
  }
  return {};
}

sample_predicate::known_value sample_predicate::size_of(const operand& of) {
  const auto side = [&](std::int64_t width, std::int64_t height) { return of.from == source::width ? width : height; };
  const part* found = nullptr;
  for (const part& each : parts()) {
    if (of.which == only_picture ? !is_picture(model_.fields()[each.field]) : each.field != of.which) continue;
    if (found != nullptr && found->field != each.field) {
      const std::string& one = model_.fields()[found->field].name;
      const std::string& other = model_.fields()[each.field].name;
      const std::string_view wanted = of.from == source::width ? width_suffix : height_suffix;
      throw error(errc::usage, str_cat(place_in_predicate(of.at, wanted.substr(1)), ": sample ", sample_,
                                       " has several pictures; say which, as ", one, wanted, " or ", other, wanted));
    }
    if (found == nullptr) found = &each;
  }
  if (found == nullptr) return {};
  if (found->photo != nullptr) return side(found->photo->width, found->photo->height);
  const asked_picture wanted{sample_, found->field};
  if (sizes_.empty()) {
    lacks_size_ = true;
    // Others of this sample were asked for last.
    const auto place = std::lower_bound(asked_.begin(), asked_.end(), wanted);
    if (place == asked_.end() || *place != wanted) asked_.insert(place, wanted);
    return {};
  }
  const auto place = std::lower_bound(asked_.begin(), asked_.end(), wanted);
  if (place == asked_.end() || *place != wanted) return {};
  const picture_size size = sizes_[static_cast<std::size_t>(place - asked_.begin())];
  if (size == picture_size()) return {};
  return side(size.width, size.height);
}

sample_predicate::truth sample_predicate::among(const bound_node& node) {
  const known_value value = value_of(node.operands.front());
  if (std::holds_alternative<std::monostate>(value)) return truth::unknown;
  const auto is_one = [&](const auto& of) { return order_of_values(value, known_value(of)) == 0; };
  bool found = false;
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) {
    found = std::binary_search(node.wholes.begin(), node.wholes.end(), *whole);
  } else if (const auto* const text = std::get_if<std::string_view>(&value)) {
    found = std::binary_search(node.texts.begin(), node.texts.end(), *text);
  } else {
    found = std::any_of(node.wholes.begin(), node.wholes.end(), is_one);
  }
  found = found || std::any_of(node.reals.begin(), node.reals.end(), is_one);
  return found ? truth::yes : truth::no;
}

sample_predicate::truth sample_predicate::compare(const bound_node& node) {
  const auto said = [](bool is_true) { return is_true ? truth::yes : truth::no; };
  if (node.kind == predicate_kind::among) return among(node);
  const known_value a = value_of(node.operands[0]);
  if (node.kind == predicate_kind::missing) return said(std::holds_alternative<std::monostate>(a));
  const known_value b = value_of(node.operands[1]);
  if (std::holds_alternative<std::monostate>(a) || std::holds_alternative<std::monostate>(b)) return truth::unknown;
  if (node.kind == predicate_kind::matches) {
    return said(is_as_pattern(std::get<std::string_view>(a), std::get<std::string_view>(b)));
  }
  const std::partial_ordering order = order_of_values(a, b);
  return said(node.kind == predicate_kind::equal  ? order == 0
              : node.kind == predicate_kind::less ? order < 0
                                                  : order <= 0);
}

sample_predicate::range sample_predicate::evaluate(const bound_node& node) {
  const auto negated = [](truth of) { return of == truth::unknown ? of : of == truth::no ? truth::yes : truth::no; };
  switch (node.kind) {
    case predicate_kind::all: {
      range of{truth::yes, truth::yes};
      for (const bound_node& each : node.inner) {
        const range one = evaluate(each);
        of = {std::min(of.least, one.least), std::min(of.most, one.most)};
        if (of.most == truth::no) break;
      }
      return of;
    }
    case predicate_kind::any: {
      range of{truth::no, truth::no};
      for (const bound_node& each : node.inner) {
        const range one = evaluate(each);
        of = {std::max(of.least, one.least), std::max(of.most, one.most)};
        if (of.least == truth::yes) break;
      }
      return of;
    }
    case predicate_kind::negation: {
      const range of = evaluate(node.inner.front());
      return {negated(of.most), negated(of.least)};
    }
    default: {
      lacks_size_ = false;
      const truth of = compare(node);
      return lacks_size_ ? range{truth::no, truth::yes} : range{of, of};
    }
  }
}

sample_predicate::verdict sample_predicate::holds(std::uint64_t sample) {
  sample_ = sample;
  has_parts_ = false;
  parts_.clear();
  name_.reset();
  const std::size_t asked = asked_.size();
  const range of = evaluate(root_);
  if (of.least != truth::yes && of.most == truth::yes) return verdict::open;
  asked_.resize(asked);  // It is decided without.
  return of.least == truth::yes ? verdict::yes : verdict::no;
}

}  // namespace leat::datasets

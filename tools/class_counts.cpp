#include "tools/class_counts.hpp"

#include "base/text.hpp"
#include "datasets/model/model.hpp"

#include <leat/error.hpp>
#include <leat/tensor.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>

namespace leat::tools {
namespace {

// Labels that are fields have to be read; so many take a second or two.
constexpr std::uint64_t labels_read_max = 20'000;
// Where each is in a block of its own that has to be expanded.
constexpr std::uint64_t labels_expanded_max = 2'000;
// More are no classes but numbers: prices, lengths.
constexpr std::size_t classes_max = 10'000;

bool is_whole_number(const field_info& field) {
  if (field.kind == field_kind::label) return field.type != dtype::f32 && field.type != dtype::f64;
  const bool is_integer =
      field.type != dtype::f16 && field.type != dtype::bf16 && field.type != dtype::f32 && field.type != dtype::f64;
  const bool is_one = std::all_of(field.shape.begin(), field.shape.end(), [](std::int64_t each) { return each == 1; });
  return field.kind == field_kind::tensor && is_integer && is_one && !field.characters;
}

// Evenly spread over the whole, as shards are often sorted by class.
std::vector<std::uint64_t> spread(std::uint64_t all, std::uint64_t most) {
  std::vector<std::uint64_t> chosen(std::min(all, most));
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    chosen[k] = static_cast<std::uint64_t>(static_cast<double>(k) * static_cast<double>(all) /
                                           static_cast<double>(chosen.size()));
  }
  return chosen;
}

void count(const dataset& samples, const std::string& name, class_counts& counts) {
  try {
    for (const std::int64_t number : read_column(samples, name)) ++counts.samples[number];
  } catch (const error&) {
    // One of them is damaged, or lacks it, or is no number: by halves, until only that is left out.
    if (samples.size() <= 1) return;
    const std::uint64_t half = samples.size() / 2;
    count(samples.slice(0, half), name, counts);
    count(samples.slice(half, samples.size() - half), name, counts);
  }
}

}  // namespace

std::string class_label_of(const std::vector<std::string>& labels) {
  for (const std::string_view name : {"cls", "label", "labels", "class", "target", "fine_label", "y"}) {
    if (std::find(labels.begin(), labels.end(), name) != labels.end()) return std::string(name);
  }
  const bool is_one = labels.size() == 1 && !labels.front().ends_with("id") && labels.front() != "ids";
  return is_one ? labels.front() : std::string();
}

std::optional<field_info> class_field_of(const dataset& samples) {
  const std::vector<field_info> fields = samples.fields();
  const std::string_view own = samples.model()->class_column();
  std::vector<std::string> labels;
  for (const field_info& each : fields) {
    if (each.name == own) return each;
    if (is_whole_number(each)) labels.push_back(each.name);
  }
  const std::string name = class_label_of(labels);
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const field_info& each) { return each.name == name; });
  return name.empty() || found == fields.end() ? std::nullopt : std::optional(*found);
}

bool is_no_class(const dataset& samples, const std::string& label, std::uint64_t different, std::uint64_t looked_at) {
  return label != samples.model()->class_column() && different > std::min<std::uint64_t>(classes_max, looked_at / 2);
}

class_counts classes_of(const dataset& samples) {
  class_counts counts;
  const std::optional<field_info> field = class_field_of(samples);
  if (!field) return counts;
  counts.label = field->name;
  if (field->column) {
    counts.looked_at = samples.size();
    for (std::uint64_t sample = 0; sample < samples.size(); ++sample) {
      if (const auto number = samples.column(sample, field->name)) ++counts.samples[*number];
    }
  } else {
    const std::vector<std::uint64_t> chosen =
        spread(samples.size(), field->expands() ? labels_expanded_max : labels_read_max);
    counts.looked_at = chosen.size();
    count(chosen.size() == samples.size() ? samples : samples.subset(chosen), field->name, counts);
  }
  if (is_no_class(samples, counts.label, counts.samples.size(), counts.looked_at)) return {};
  return counts;
}

std::string class_name(const dataset& samples, std::int64_t number) {
  const std::vector<std::string>& names = samples.classes();
  const bool named = number >= 0 && static_cast<std::size_t>(number) < names.size();
  return named ? names[static_cast<std::size_t>(number)] : str_cat(number);
}

}  // namespace leat::tools

#include "datasets/tables/hub_features.hpp"

#include "base/parse_json.hpp"
#include "base/text.hpp"

#include <leat/tensor.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace leat::datasets {
namespace {

using json = nlohmann::json;

// Of a row: more have no room in any value of a block.
constexpr std::int64_t elements_max = std::int64_t{1} << 31;

// {"shape": [2, 3], "dtype": "float32", "_type": "Array2D"}; null is an extent that rows choose.
void add_array(const json& feature, const std::string& path, hub_features& out) {
  const auto shape = feature.find("shape");
  if (shape == feature.end() || !shape->is_array()) return;
  hub_features::array found{.path = path, .axes = shape->size(), .shape = {}};
  std::uint64_t elements = 1;
  for (const json& each : *shape) {
    str_append(found.shape, found.shape.empty() ? "" : " x ", each.is_number() ? each.dump() : "any");
    const bool is_extent = each.is_number_integer() && each > 0 && each <= elements_max;
    if (is_extent) found.extents.push_back(each.get<std::int64_t>());
    if (is_extent && elements <= elements_max) elements *= each.get<std::uint64_t>();
  }
  const bool is_known = found.extents.size() == found.axes && elements <= elements_max;
  if (!is_known || found.axes >= dimensions::rank_max) found.extents.clear();
  out.arrays.push_back(std::move(found));
}

void add_features(const json& features, const std::string& above, hub_features& out) {
  if (!features.is_object()) return;
  for (const auto& [name, feature] : features.items()) {
    const std::string path = above.empty() ? name : str_cat(above, ".", name);
    if (!feature.is_object()) continue;
    const auto type = feature.find("_type");
    if (type == feature.end() || !type->is_string()) {
      add_features(feature, path, out);
    } else if (*type == "Image") {
      out.pictures.push_back(path);
    } else if (const auto kind = type->get<std::string>(); kind.starts_with("Array") && kind.ends_with("D")) {
      add_array(feature, path, out);
    } else if (*type == "ClassLabel") {
      hub_features::class_names labels{.path = path, .names = {}};
      const auto names = feature.find("names");
      for (const json& each : names != feature.end() && names->is_array() ? *names : json::array()) {
        if (each.is_string()) labels.names.push_back(each.get<std::string>());
      }
      out.labels.push_back(std::move(labels));
    }
  }
}

}  // namespace

bool hub_features::is_picture(std::string_view path) const noexcept {
  return std::find(pictures.begin(), pictures.end(), path) != pictures.end();
}

const hub_features::array* hub_features::array_of(std::string_view path) const noexcept {
  const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const array& each) { return each.path == path; });
  return found == arrays.end() ? nullptr : &*found;
}

const hub_features::class_names* hub_features::labels_of(std::string_view path) const noexcept {
  const auto found =
      std::find_if(labels.begin(), labels.end(), [&](const class_names& each) { return each.path == path; });
  return found == labels.end() ? nullptr : &*found;
}

hub_features read_hub_features(std::string_view text) {
  hub_features found;
  const json whole = parse_json_or_discard(text);
  if (!whole.is_object()) return found;
  const auto info = whole.find("info");
  if (info == whole.end() || !info->is_object()) return found;
  const auto features = info->find("features");
  if (features != info->end()) add_features(*features, "", found);
  return found;
}

}  // namespace leat::datasets

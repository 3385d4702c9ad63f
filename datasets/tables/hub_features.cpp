#include "datasets/tables/hub_features.hpp"

#include "base/parse_json.hpp"
#include "base/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace leat::datasets {
namespace {

using json = nlohmann::json;

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

#include "datasets/open/saved_set.hpp"

#include "base/parse_json.hpp"
#include "base/text.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/files/input_files.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace leat::datasets {
namespace {

using json = nlohmann::json;

constexpr std::uint64_t state_bytes_max = std::uint64_t{64} << 20;

std::string path_in(const std::string& folder, std::string_view name) {
  return folder.ends_with('/') ? str_cat(folder, name) : str_cat(folder, "/", name);
}

json read_json(const input_files& files, const std::string& path) {
  const std::unique_ptr<file_bytes> file = files.open(path);
  if (file->size() > state_bytes_max) throw error(errc::format, str_cat(path, ": it has ", file->size(), " bytes"));
  const std::vector<std::byte> content = file->read(0, file->size());
  return parse_json_or_discard({reinterpret_cast<const char*>(content.data()), content.size()});
}

// A folder of splits has folders, each of which is a set. Where one is not there, the list is another program's, or was left behind.
void refuse_splits(const input_files& files, const folder_test& has_folder, const std::string& folder,
                   const std::string& path) {
  const json splits = read_json(files, path);
  if (!splits.is_object() || !splits.contains("splits") || !splits["splits"].is_array()) return;
  std::string names;
  for (const json& each : splits["splits"]) {
    const std::string split = each.is_string() ? path_in(folder, each.get<std::string>()) : std::string();
    if (!has_folder(split)) return;
    str_append(names, names.empty() ? "" : ", ", split);
  }
  if (names.empty()) return;
  throw error(errc::usage,
              str_cat(folder, ": this has the splits of a set, each in a folder of its own; give one of ", names));
}

}  // namespace

std::optional<std::vector<std::string>> files_of_saved_set(const input_files& files, const folder_test& has_folder,
                                                           const std::string& folder) {
  if (const std::string splits = path_in(folder, "dataset_dict.json"); files.has(splits))
    refuse_splits(files, has_folder, folder, splits);
  const std::string path = path_in(folder, "state.json");
  if (!files.has(path)) return std::nullopt;
  const json state = read_json(files, path);
  if (!state.is_object() || !state.contains("_data_files")) return std::nullopt;  // a state.json of another program
  constexpr std::string_view indices = "_indices_data_files";
  if (state.contains(indices) && !state[indices].is_null() && !state[indices].empty()) {
    throw error(errc::unsupported, str_cat(path,
                                           ": its samples are chosen by an index beside them; call "
                                           "flatten_indices() before save_to_disk()"));
  }
  std::vector<std::string> names;
  const json& listed = state["_data_files"];
  for (const json& each : listed) {
    const bool has_name = each.is_object() && each.contains("filename") && each["filename"].is_string();
    const std::string name = has_name ? each["filename"].get<std::string>() : std::string();
    if (name.empty() || name.find('/') != std::string::npos) {
      throw error(errc::format, str_cat(path, ": it names no file beside it where it lists its files; was it edited?"));
    }
    names.push_back(path_in(folder, name));
  }
  if (!listed.is_array() || names.empty()) throw error(errc::format, str_cat(path, ": it lists no files"));
  return names;
}

}  // namespace leat::datasets

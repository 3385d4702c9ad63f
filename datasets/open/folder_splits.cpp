#include "datasets/open/folder_splits.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "datasets/files/coded_file.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/files/patterns.hpp"

#include <leat/error.hpp>

#include <fnmatch.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::uint64_t readme_bytes_max = std::uint64_t{4} << 20;

// The Hub's name of a split, by any of its names; empty: it is none.
std::string_view known_split(std::string_view word) {
  struct alias {
    std::string_view name;
    std::string_view of;
  };
  constexpr alias all[] = {{"train", "train"},      {"training", "train"}, {"validation", "validation"},
                           {"valid", "validation"}, {"val", "validation"}, {"dev", "validation"},
                           {"test", "test"},        {"testing", "test"},   {"eval", "test"},
                           {"evaluation", "test"}};
  std::string lower(word);
  for (char& each : lower) each = lower_case(each);
  for (const alias& each : all) {
    if (each.name == lower) return each.of;
  }
  return {};
}

std::string_view last_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Of "train_sft-00000-of-00012.parquet" what stands before the numbers: the name of a split, whatever it is.
std::string_view name_before_numbers(std::string_view name) {
  const std::size_t of = name.find("-of-");
  if (of == std::string_view::npos) return {};
  std::size_t begin = of;
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  return begin == of || begin < 2 || name[begin - 1] != '-' ? std::string_view() : name.substr(0, begin - 1);
}

// The split that a file's name says; empty: none.
std::string split_of_file(std::string_view name) {
  std::string found;
  const std::string_view stem = name.substr(0, name.find('.'));
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= stem.size(); ++at) {
    if (at < stem.size() && is_letter(stem[at])) continue;
    const std::string_view word = stem.substr(begin, at - begin);
    if (found.empty() && !known_split(word).empty()) found = word;
    begin = at + 1;
  }
  if (found.empty()) return found;
  const std::string_view before = name_before_numbers(name);
  return before.starts_with(found) ? std::string(before) : found;
}

bool is_data_file(std::string_view path) {
  constexpr std::string_view endings[] = {".parquet", ".arrow",    ".tar",       ".jsonl", ".ndjson", ".csv",
                                          ".tsv",     ".tfrecord", ".tfrecords", ".npz",   ".h5",     ".hdf5"};
  const std::string name = name_decoded(path);
  return std::any_of(std::begin(endings), std::end(endings),
                     [&](std::string_view each) { return name.ends_with(each); }) &&
         !last_of(path).starts_with("metadata.");
}

void add_file(std::vector<folder_split>& splits, const std::string& name, const std::string& path) {
  const auto known =
      std::find_if(splits.begin(), splits.end(), [&](const folder_split& each) { return each.name == name; });
  folder_split& to = known == splits.end() ? splits.emplace_back(folder_split{.name = name}) : *known;
  to.files.push_back(path);
}

std::vector<folder_split> splits_of_files(const source_folder& folder) {
  std::vector<folder_split> splits;
  std::size_t others = 0;
  for (const std::string& path : folder.files_in("")) {
    const std::string split = is_data_file(path) ? split_of_file(last_of(path)) : std::string();
    if (!split.empty()) add_file(splits, split, path);
    others += is_data_file(path) && split.empty() ? 1 : 0;
  }
  // One name among others says nothing.
  return splits.size() == 1 && others > 0 ? std::vector<folder_split>() : splits;
}

std::vector<folder_split> splits_of_folders(const source_folder& folder) {
  std::vector<folder_split> splits;
  for (const std::string& path : folder.folders_in()) {
    const std::string name(last_of(path));
    if (known_split(name).empty()) return {};
    splits.push_back({.name = name, .folder = path});
  }
  return splits;
}

// What README.md says of its files: lines between two "---", of YAML as the Hub writes it.
//   pattern   below the folder
struct configured_file {
  std::string configuration;
  std::string split;
  std::string pattern;
};

std::string_view stripped(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(blanks);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

std::string_view without_end(std::string_view text, std::string_view end) {
  return text.ends_with(end) ? text.substr(0, text.size() - end.size()) : text;
}

std::string unquoted(std::string_view text) {
  text = stripped(text);
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front()) {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

std::vector<configured_file> read_configurations(std::string_view readme) {
  std::vector<configured_file> found;
  std::string configuration;
  std::string split;
  bool is_inside = false;
  bool are_paths = false;
  std::size_t number = 0;
  for (std::size_t at = 0; at < readme.size();) {
    const std::size_t end = std::min(readme.find('\n', at), readme.size());
    std::string_view line = readme.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number++ == 0 ? line != "---" : line == "---") break;
    if (number == 1 || line.empty()) continue;
    const bool is_outermost = line.front() != ' ' && line.front() != '-';
    if (is_outermost) is_inside = line == "configs:";
    if (!is_inside || is_outermost) continue;
    line = stripped(line);
    const bool is_item = line.starts_with("- ");
    if (is_item) line.remove_prefix(2);
    const std::size_t colon = line.find(": ");
    const std::string_view key = colon != std::string_view::npos ? line.substr(0, colon) : without_end(line, ":");
    const std::string value = colon != std::string_view::npos ? unquoted(line.substr(colon + 2)) : std::string();
    if (key == "config_name") {
      configuration = value;
      split = "train";
    } else if (key == "split") {
      split = value;
    } else if (key == "path" || key == "data_files") {
      if (!value.empty()) found.push_back({configuration, split, value});
    } else if (is_item && are_paths && colon == std::string_view::npos && !line.ends_with(':')) {
      found.push_back({configuration, split, unquoted(line)});
    }
    are_paths = (are_paths && is_item && colon == std::string_view::npos) ||
                ((key == "path" || key == "data_files") && value.empty());
  }
  return found;
}

std::vector<folder_split> splits_of_readme(const source_folder& folder) {
  if (!folder.lists() || !folder.has("README.md")) return {};
  const std::string readme = str_cat(folder.path(), folder.path().ends_with('/') ? "" : "/", "README.md");
  const std::unique_ptr<input_files> files = folder.files_of_table(readme);
  const std::unique_ptr<file_bytes> file = files->open(readme);
  const std::vector<std::byte> bytes = file->read(0, std::min(file->size(), readme_bytes_max));
  const std::vector<configured_file> all =
      read_configurations({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const bool of_one = std::all_of(all.begin(), all.end(), [&](const configured_file& each) {
    return each.configuration == all.front().configuration;
  });
  std::vector<folder_split> splits;
  for (const configured_file& each : all) {
    const std::string name = of_one ? each.split : str_cat(each.configuration, "/", each.split);
    for (const std::string& path : folder.files_below()) {
      const std::string below(path_below(folder.path(), path));
      const bool is_named = below == each.pattern ||
                            ::fnmatch(each.pattern.c_str(), below.c_str(), FNM_PATHNAME) == 0 ||
                            below.starts_with(str_cat(without_end(each.pattern, "/**"), "/"));
      if (is_named) add_file(splits, name, path);
    }
  }
  return splits;
}

std::string names_of(const std::vector<folder_split>& splits) {
  std::string names;
  for (const folder_split& each : splits) str_append(names, names.empty() ? "" : ", ", each.name);
  return names;
}

}  // namespace

std::string_view path_below(const std::string& folder, std::string_view path) noexcept {
  return path.substr(std::min(path.size(), folder.size() + (folder.ends_with('/') ? 0 : 1)));
}

std::vector<folder_split> splits_of(const source_folder& folder) {
  if (std::vector<folder_split> said = splits_of_readme(folder); !said.empty()) return said;
  const std::vector<std::string> folders = folder.folders_in();
  if (std::vector<folder_split> named = splits_of_folders(folder); !named.empty()) return named;
  if (std::vector<folder_split> named = splits_of_files(folder); !named.empty()) return named;
  for (const std::string& path : folders) {
    if (last_of(path) == "data") return splits_of(*folder.below("data"));
  }
  return {};
}

std::optional<folder_split> choose_split(const source_folder& folder, const std::string& asked) {
  std::vector<folder_split> splits = splits_of(folder);
  if (splits.empty() && asked.empty()) return std::nullopt;
  if (asked.empty()) {
    if (splits.size() == 1) return std::move(splits.front());
    throw error(errc::usage,
                str_cat(folder.path(), ": this set has several splits: ", names_of(splits), "; say which one (",
                        spelled(option_id::split), ")"),
                option_id::split);
  }
  for (folder_split& each : splits) {
    if (each.name == asked) return std::move(each);
  }
  std::vector<folder_split*> alike;
  for (folder_split& each : splits) {
    const std::string_view known = known_split(asked);
    if (!known.empty() && known_split(each.name) == known) alike.push_back(&each);
  }
  if (alike.size() == 1) return std::move(*alike.front());
  throw error(errc::not_found, str_cat(folder.path(), ": no split '", asked, "'; it has ",
                                       splits.empty() ? std::string("no splits") : names_of(splits)));
}

void refuse_foreign_folder(const source_folder& folder) {
  const std::string& path = folder.path();
  const auto has_folder_ending = [&](std::string_view ending) {
    const std::vector<std::string> folders = folder.folders_in();
    return std::any_of(folders.begin(), folders.end(), [&](const std::string& each) { return each.ends_with(ending); });
  };
  const auto refuse = [&](std::string_view what) { throw error(errc::unsupported, str_cat(path, ": ", what)); };
  if (folder.has("index.json") && !folder.files_in(".bin").empty()) {
    refuse(
        "LitData (litdata.optimize()), which leat does not read; litdata.StreamingDataset does: write its samples as "
        "tar shards or MDS with it");
  }
  if (has_folder_ending("/_versions") || has_folder_ending(".lance")) {
    refuse("Lance, which leat does not read; lance.dataset(path).to_table() does: write it with pyarrow.parquet");
  }
  if (!folder.files_in(".orc").empty()) {
    refuse("ORC, which leat does not read; pyarrow.orc.read_table() does: write it with pyarrow.parquet");
  }
  if (folder.has("dataset_info.json") && folder.has("features.json")) {
    refuse(
        "TensorFlow Datasets; tfds.load() reads the folder, and leat its files: name those of one split, as "
        "'*-train.tfrecord-*'");
  }
}

}  // namespace leat::datasets

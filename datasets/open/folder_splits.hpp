// The splits of a folder, as the Hugging Face Hub finds them: train/ and test/, data/train-*.parquet, or what README.md says.
#pragma once

#include "datasets/open/source_folder.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// A split is a folder, or some files.
struct folder_split {
  std::string name;
  std::string folder = {};
  std::vector<std::string> files = {};
};

/// Empty for a folder that has none. README.md comes first, then folders, then files. Folders and files are splits by their names: a word of
/// them is train, validation, test or another name of these (`val`, `dev`, `eval`, …). Of folders all have to be.
///   source   huggingface.co/docs/hub/datasets-file-names-and-splits, datasets-manual-configuration
[[nodiscard]] std::vector<folder_split> splits_of(const source_folder& folder);

/// The split that is asked for, or the only one; nothing where the folder has none and none is asked for.
///   asked    "train", or "en/train" where README.md has several configurations; empty: none
///   throws   error{errc::usage} none is asked for and there are several, by name; error{errc::not_found} it has no such
[[nodiscard]] std::optional<folder_split> choose_split(const source_folder& folder, const std::string& asked);

/// What of the path of a file or folder stands behind that of a folder above it.
[[nodiscard]] std::string_view path_below(const std::string& folder, std::string_view path) noexcept;

/// Refuses a folder of a format that leat does not read, by its name: LitData, Lance, ORC, TensorFlow Datasets.
///   throws   error{errc::unsupported} with what to do
void refuse_foreign_folder(const source_folder& folder);

}  // namespace leat::datasets

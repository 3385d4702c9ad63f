// Folders that Hugging Face's datasets writes: Dataset.save_to_disk().
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace leat::datasets {

class input_files;

/// The Arrow files of such a folder, in the order in which its state.json names them. Nothing for another folder.
///   throws   error{errc::format} a state.json that says nothing usable; error{errc::unsupported} samples that are chosen by an index beside
///            them; error{errc::usage} the folder of a DatasetDict, with its splits
///   source   github.com/huggingface/datasets: Dataset.load_from_disk()
///   has_folder   whether there is a folder of this path
using folder_test = std::function<bool(const std::string& path)>;
[[nodiscard]] std::optional<std::vector<std::string>> files_of_saved_set(const input_files& files,
                                                                         const folder_test& has_folder,
                                                                         const std::string& folder);

}  // namespace leat::datasets

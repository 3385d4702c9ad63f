// Files of which some are compressed, as what they become: for formats that read their files in order.
#pragma once

#include "datasets/files/coded_file.hpp"
#include "datasets/files/input_files.hpp"

#include <map>
#include <memory>
#include <string>

namespace leat::datasets {

class decoded_files : public input_files {
 public:
  /// The file's points; null where it is not compressed.
  [[nodiscard]] virtual std::shared_ptr<const coded_file> coded(const std::string& name) const = 0;
};

/// Sizes of files are of what they become, but for those that place() gives.
///   from    outlives the result
///   coded   those among them that are compressed, by their names
[[nodiscard]] std::unique_ptr<const decoded_files> decoded_files_of(
    const input_files& from, std::map<std::string, std::shared_ptr<const coded_file>> coded);

}  // namespace leat::datasets

// Files of which some are compressed, as what they become: for formats that read their files in order.
#pragma once

#include "datasets/files/coded_file.hpp"
#include "datasets/files/input_files.hpp"

#include <memory>
#include <string>

namespace leat::datasets {

class decoded_files : public input_files {
 public:
  /// The file's points; null where it is not compressed.
  [[nodiscard]] virtual std::shared_ptr<const coded_file> coded(const std::string& name) const = 0;
};

/// Reads compressed files through, several at once. Sizes of files are of what they become, but for those that place() gives.
///   from      outlives the result
///   returns   null where no file's name is that of a compressed one
///   throws    as coded_file
[[nodiscard]] std::unique_ptr<const decoded_files> decode_files(const input_files& from);

}  // namespace leat::datasets

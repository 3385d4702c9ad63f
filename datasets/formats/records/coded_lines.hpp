// Compressed files of lines: where they can be entered and where their lines lie, by reading them through once.
#pragma once

#include "datasets/files/coded_file.hpp"
#include "datasets/files/decoded_files.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/files/lines.hpp"
#include "datasets/model/value_place.hpp"

#include <leat/index_options.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// Files of which some are compressed, and the lines of these by their names: places in what they become.
struct coded_lines {
  std::unique_ptr<const decoded_files> files;
  std::map<std::string, std::vector<value_place>> lines;
};

/// What finds the lines of a file.
///   path    of the file
///   start   the first 64 KiB of what it becomes; fewer where it has no more
///   throws  where it is no such file
using finder_of_lines =
    std::function<std::unique_ptr<line_finder>(const std::string& path, std::span<const std::byte> start)>;

/// Reads compressed files through, several at once, unless an index of an earlier run tells of them.
///   from      outlives the result
///   format    another one has other lines
///   returns   nothing in it where no file is compressed
///   throws    as coded_file, and what `finder` throws. Thread: it is called on several
[[nodiscard]] coded_lines read_coded_lines(const input_files& from, std::string_view format, const index_options& index,
                                           const finder_of_lines& finder);

}  // namespace leat::datasets

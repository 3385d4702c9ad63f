// leat inspect --references.
#pragma once

#include <leat/open.hpp>

#include <stop_token>
#include <string>
#include <vector>

namespace leat::tools {

/// Writes where the chunks of the source's arrays lie. The file appears when it is whole.
///   throws   error{errc::usage} more than one source; as datasets/write/references_writer.hpp, and output_file
void write_references(const std::vector<std::string>& sources, const open_options& opening, const std::string& path,
                      const std::stop_token& stop);

}  // namespace leat::tools

#include "tools/inspect_references.hpp"

#include "base/text.hpp"
#include "datasets/write/references_writer.hpp"
#include "tools/output.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>

#include <string_view>

namespace leat::tools {

void write_references(const std::vector<std::string>& sources, const open_options& opening, const std::string& path,
                      const std::stop_token& stop) {
  if (sources.size() != 1) {
    throw error(errc::usage,
                str_cat("--references: they are written of one source, and ", sources.size(), " were given; name one"));
  }
  const datasets::referable_arrays found = datasets::arrays_to_refer_to(sources.front(), opening.arrays.fields);
  output_file file(path, output_kind::references, output_file::appears::when_closed);
  datasets::write_references(found, [&](std::string_view text) { file.write(text, stop); });
  file.close();
}

}  // namespace leat::tools

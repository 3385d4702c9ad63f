#include "datasets/model/hidden_names.hpp"

#include "base/text.hpp"

namespace leat::datasets {

std::string hidden_files::text() const {
  if (folders + files == 0) return {};
  std::string text;
  if (folders > 0) str_append(text, folders, folders == 1 ? " hidden folder" : " hidden folders");
  if (files > 0) {
    str_append(text, folders > 0 ? " and " : "", files, files == 1 ? " hidden file" : " hidden files");
  }
  str_append(text, " (");
  for (std::size_t i = 0; i < names.size(); ++i) str_append(text, i > 0 ? ", " : "", names[i]);
  if (folders + files > names.size()) str_append(text, " and ", folders + files - names.size(), " more");
  str_append(text, ")");
  return text;
}

}  // namespace leat::datasets

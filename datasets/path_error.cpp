#include "datasets/path_error.hpp"

#include "base/text.hpp"
#include "io/read_error.hpp"

#include <cerrno>
#include <system_error>

namespace leat::datasets {

error path_error(int failure, const std::string& path, std::string_view advice) {
  if (failure != ENOENT && failure != ENOTDIR) return io::explain_open(failure, path);
  return {errc::not_found, str_cat(path, ": ", std::generic_category().message(failure), "; ", advice)};
}

}  // namespace leat::datasets

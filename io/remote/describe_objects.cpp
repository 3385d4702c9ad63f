#include "io/remote/describe_objects.hpp"

#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "io/remote/remote_source.hpp"

#include <leat/error.hpp>

#include <utility>
#include <vector>

namespace leat::io {

std::shared_ptr<const source_description> describe_objects(std::span<const std::string> addresses,
                                                           const remote_options& options) {
  std::vector<remote_object> objects;
  for (const std::string& each : addresses) {
    address where = parse_address(each);
    if (!where.tls && !options.allow_http) {
      throw error(errc::usage,
                  str_cat(where.shown,
                          ": what comes over http:// can be read and changed on its way; give https://, or "
                          "allow_http"));
    }
    objects.push_back({std::move(where)});
  }
  return std::make_shared<const remote_description>(std::move(objects), options);
}

}  // namespace leat::io

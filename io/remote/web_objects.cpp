#include "io/remote/web_objects.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "io/remote/remote_source.hpp"
#include "io/remote/s3.hpp"

#include <leat/error.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace leat {

// By this name a linker is told to take the component leat::remote (cmake/library.cmake).
[[gnu::visibility("default")]] extern const bool remote_is_linked;
const bool remote_is_linked = true;

}  // namespace leat

namespace leat::io {

std::shared_ptr<const source_description> describe_web_objects(std::span<const named_object* const> named,
                                                               const remote_options& options, caching how) {
  std::vector<remote_object> objects;
  objects.reserve(named.size());
  std::optional<s3_access> store;
  for (const named_object* const object : named) {
    const std::string& each = object->address;
    if (is_s3(each)) {
      const s3_name name = parse_s3_name(each);
      if (!store) store = find_s3_access(options);
      objects.push_back({.where = address_of(name, *store), .is_in_store = true});
      if (!object->etag.empty()) {
        objects.back().size_bytes = object->size_bytes;
        objects.back().listed_etag = object->etag;
      }
      continue;
    }
    address where = parse_address(each);
    if (!where.tls && !options.allow_http) {
      throw error(
          errc::usage,
          str_cat(where.shown, ": what comes over http:// can be read and changed on its way; give https://, or ",
                  spelled(option_id::allow_http)),
          option_id::allow_http);
    }
    objects.push_back({.where = std::move(where)});
  }
  return std::make_shared<const remote_description>(std::move(objects), options, retry_options(), std::move(store),
                                                    how);
}

void hand_on_facts(const source_description& from, std::uint32_t file, const source_description& to, std::uint32_t as) {
  const auto* const opened = dynamic_cast<const remote_description*>(&from);
  const auto* const other = dynamic_cast<const remote_description*>(&to);
  // A store that is registered keeps no facts.
  if (opened != nullptr && other != nullptr) other->take_facts(as, *opened, file);
}

}  // namespace leat::io

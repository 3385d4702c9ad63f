#include "io/remote/object_facts.hpp"

#include "base/hasher.hpp"
#include "io/remote/http_head.hpp"

#include <cstring>

namespace leat::io {

bool is_strong(const std::string& etag) { return etag.starts_with('"'); }

bool is_the_same(const object_facts& seen, const object_facts& expected) {
  if (seen.size_bytes != expected.size_bytes) return false;
  if (!seen.etag.empty() && !expected.etag.empty()) return seen.etag == expected.etag;
  return seen.last_modified.empty() || expected.last_modified.empty() || seen.last_modified == expected.last_modified;
}

std::uint64_t object_facts::version(const address& where) const {
  hasher all;
  all.add(unsigned_target(where.target));
  all.add(size_bytes);
  if (is_strong(etag)) {
    all.add("tag");
    all.add(etag);
  } else {
    // RFC 9110 8.8.2.2: times are told by the second, and one object may follow another within it.
    const std::optional<std::int64_t> changed = parse_http_date(last_modified);
    if (!changed || !told_unix_s || *told_unix_s - *changed < 2) return 0;
    all.add("time");
    all.add(last_modified);
  }
  const digest mixed = all.finish();
  std::uint64_t number = 0;
  std::memcpy(&number, mixed.bytes.data(), sizeof number);
  return number == 0 ? 1 : number;
}

}  // namespace leat::io

#include "io/remote/shared_store.hpp"

#include "base/clock.hpp"
#include "base/hash_map.hpp"
#include "base/per_process.hpp"
#include "base/text.hpp"

namespace leat::io {
namespace {

struct all_stores {
  mutex guard;
  hash_map<std::string, std::weak_ptr<shared_store>> by_server ABSL_GUARDED_BY(guard);
};
per_process<all_stores> stores;

}  // namespace

std::string server_name(const address& where) {
  return str_cat(where.tls ? "https://" : "http://", where.host_header());
}

std::string_view throttled_prefix(std::string_view target) {
  // A bucket, where that is in the path, and two folders.
  constexpr int folders_max = 3;
  const std::string_view path = target.substr(0, target.find('?'));
  std::size_t end = 0;
  for (int i = 0; i < folders_max; ++i) {
    const std::size_t next = path.find('/', end + 1);
    if (next == std::string_view::npos) break;
    end = next;
  }
  return path.substr(0, end);
}

std::shared_ptr<shared_store> store_at(const std::string& server) {
  all_stores& all = stores.get([](const all_stores*) { return std::make_unique<all_stores>(); });
  const mutex_lock lock(all.guard);
  std::weak_ptr<shared_store>& known = all.by_server[server];
  std::shared_ptr<shared_store> there = known.lock();
  if (!there) known = there = std::make_shared<shared_store>(now_ns());
  return there;
}

}  // namespace leat::io

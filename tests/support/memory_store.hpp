// A store of objects in memory, as a program registers one.
#pragma once

#include "base/mutex.hpp"

#include <leat/error.hpp>
#include <leat/object_store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::testing {

/// Thread: any.
class memory_store : public object_store {
 public:
  /// A further content under the same name is a new version.
  void put(std::string_view name, std::vector<std::byte> content) {
    const mutex_lock lock(mutex_);
    object& changed = objects_[std::string(name)];
    changed.content = std::move(content);
    ++changed.version;
  }

  boost::asio::awaitable<stored_object> look_at(const std::string& name) const override {
    const mutex_lock lock(mutex_);
    const object& found = find(name);
    co_return stored_object{.size_bytes = found.content.size(), .version = found.version};
  }
  boost::asio::awaitable<std::size_t> read(const std::string& name, std::uint64_t offset,
                                           std::span<std::byte> into) const override {
    const mutex_lock lock(mutex_);
    const std::vector<std::byte>& content = find(name).content;
    const std::uint64_t begin = std::min<std::uint64_t>(offset, content.size());
    const std::uint64_t bytes = std::min<std::uint64_t>(into.size(), content.size() - begin);
    std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(begin), bytes, into.begin());
    co_return bytes;
  }
  std::optional<std::vector<listed_object>> list(const std::string& prefix) const override {
    const mutex_lock lock(mutex_);
    std::vector<listed_object> found;
    for (const auto& [name, each] : objects_) {
      if (name.starts_with(prefix)) found.push_back({name, {each.content.size(), each.version}});
    }
    return found;
  }

 private:
  struct object {
    std::vector<std::byte> content;
    std::uint64_t version = 0;
  };
  [[nodiscard]] const object& find(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = objects_.find(name);
    if (found == objects_.end()) throw error(errc::not_found, "the store has no such object");
    return found->second;
  }

  mutable mutex mutex_;
  std::map<std::string, object> objects_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace leat::testing

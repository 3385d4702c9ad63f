#include "io/store/registered_stores.hpp"

#include "base/mutex.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <fnmatch.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <utility>

namespace leat {

std::optional<std::vector<listed_object>> object_store::list(const std::string&) const { return std::nullopt; }

namespace io {
namespace {

class registered_stores {
 public:
  void add(std::string_view scheme, std::shared_ptr<const object_store> store) {
    const mutex_lock lock(mutex_);
    if (!stores_.emplace(scheme, std::move(store)).second) {
      throw error(errc::usage, str_cat("register_store: '", scheme, "' has a store; give this one another name"));
    }
    any_.store(true, std::memory_order_release);
  }
  [[nodiscard]] std::shared_ptr<const object_store> find(std::string_view scheme) const {
    if (!any_.load(std::memory_order_acquire)) return nullptr;
    const mutex_lock lock(mutex_);
    const auto found = stores_.find(scheme);
    return found == stores_.end() ? nullptr : found->second;
  }

 private:
  std::atomic<bool> any_ = false;  // most programs register none
  mutable mutex mutex_;
  std::map<std::string, std::shared_ptr<const object_store>, std::less<>> stores_ ABSL_GUARDED_BY(mutex_);
};

// Leaked on purpose: a reader may outlive what a program destroys at its end.
registered_stores& stores() {
  static auto* const all = new registered_stores;
  return *all;
}

std::string_view scheme_of(std::string_view address) noexcept {
  const std::size_t end = address.find("://");
  return address.substr(0, end == std::string_view::npos ? 0 : end);
}

std::vector<listed_object> listed(const name_in_store& below, const std::string& shown) {
  std::optional<std::vector<listed_object>> names = below.store->list(below.name);
  if (!names) {
    throw error(errc::not_found,
                str_cat(shown, ": the store of ", below.scheme, " lists no objects; name them by braces, as ",
                        below.scheme, "train-{000..127}.tar, or override object_store::list()"));
  }
  // What it says is checked against what it was asked.
  std::erase_if(*names, [&](const listed_object& each) { return !each.name.starts_with(below.name); });
  std::sort(names->begin(), names->end(),
            [](const listed_object& one, const listed_object& other) { return one.name < other.name; });
  const auto is_same = [](const listed_object& one, const listed_object& other) { return one.name == other.name; };
  names->erase(std::unique(names->begin(), names->end(), is_same), names->end());
  return *std::move(names);
}

}  // namespace

name_in_store find_in_store(std::string_view address) {
  const std::string_view scheme = scheme_of(address);
  if (scheme.empty()) return {};
  std::shared_ptr<const object_store> store = stores().find(scheme);
  if (!store) return {};
  const std::size_t begin = scheme.size() + 3;
  return {std::move(store), std::string(address.substr(0, begin)), std::string(address.substr(begin))};
}

bool is_registered(std::string_view address) noexcept {
  const std::string_view scheme = scheme_of(address);
  return !scheme.empty() && stores().find(scheme) != nullptr;
}

bool is_scheme(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '+' || letter == '-';
  });
}

std::string listed_prefix(std::string_view pattern) {
  return std::string(pattern.substr(0, pattern.find_first_of("*?[\\")));
}

bool is_matched(const std::string& pattern, const std::string& name) noexcept {
  return !name.ends_with('/') && ::fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME) == 0;
}

std::vector<listed_object> list_store(const std::string& folder) {
  name_in_store below = find_in_store(folder);
  if (!below.name.empty() && !below.name.ends_with('/')) below.name += '/';
  std::vector<listed_object> found = listed(below, folder);
  for (listed_object& each : found) each.name.insert(0, below.scheme);
  return found;
}

std::vector<listed_object> match_in_store(const std::string& pattern) {
  name_in_store below = find_in_store(pattern);
  const std::string wanted = below.name;
  below.name = listed_prefix(wanted);
  std::vector<listed_object> found;
  for (listed_object& each : listed(below, pattern)) {
    if (!is_matched(wanted, each.name)) continue;
    each.name.insert(0, below.scheme);
    found.push_back(std::move(each));
  }
  if (found.empty()) throw error(errc::not_found, str_cat(pattern, ": no object matches; check the pattern"));
  return found;
}

}  // namespace io

void register_store(std::string_view scheme, std::shared_ptr<const object_store> store) {
  constexpr std::string_view own[] = {"http", "https", "s3", "file"};
  if (!io::is_scheme(scheme) || std::find(std::begin(own), std::end(own), scheme) != std::end(own)) {
    throw error(errc::usage, str_cat("register_store: '", scheme,
                                     "' is no name for a store; it takes lower-case letters, digits, '+' and '-', "
                                     "and http, https, s3 and file are leat's own"));
  }
  if (!store) throw error(errc::usage, str_cat("register_store: the store of '", scheme, "' is null"));
  io::stores().add(scheme, std::move(store));
}

}  // namespace leat

#include "io/remote/describe_objects.hpp"

#include "base/text.hpp"
#include "io/remote/web_objects.hpp"
#include "io/store/registered_stores.hpp"
#include "io/store/store_source.hpp"

#include <algorithm>

namespace leat::io {
namespace {

std::vector<const named_object*> pointers_to(std::span<const named_object> objects) {
  std::vector<const named_object*> all;
  all.reserve(objects.size());
  for (const named_object& each : objects) all.push_back(&each);
  return all;
}

std::vector<named_object> as_objects(std::vector<listed_object> listed) {
  std::vector<named_object> all;
  all.reserve(listed.size());
  for (listed_object& each : listed)
    all.push_back({std::move(each.name), each.facts.size_bytes, str_cat(each.facts.version)});
  return all;
}

}  // namespace

std::shared_ptr<const source_description> describe_objects(std::span<const named_object* const> objects,
                                                           const remote_options& options, caching how) {
  const auto is_stored = [](const named_object* each) { return is_registered(each->address); };
  if (std::none_of(objects.begin(), objects.end(), is_stored)) return describe_web_objects(objects, options, how);
  std::vector<std::string> addresses;
  for (const named_object* const each : objects) addresses.push_back(each->address);
  return std::make_shared<const store_description>(addresses);
}

std::shared_ptr<const source_description> describe_objects(std::span<const std::string> addresses,
                                                           const remote_options& options, caching how) {
  std::vector<named_object> objects;
  for (const std::string& each : addresses) objects.push_back({.address = each});
  return describe_objects(pointers_to(objects), options, how);
}

std::shared_ptr<const source_description> describe_objects(std::span<const named_object> objects,
                                                           const remote_options& options) {
  return describe_objects(pointers_to(objects), options);
}

std::vector<named_object> match_objects(const std::string& pattern, const remote_options& options) {
  return is_registered(pattern) ? as_objects(match_in_store(pattern)) : match_s3_objects(pattern, options);
}

std::vector<named_object> list_objects(const std::string& folder, const remote_options& options) {
  return is_registered(folder) ? as_objects(list_store(folder)) : list_s3_objects(folder, options);
}

}  // namespace leat::io

#include "datasets/files/listed_folder.hpp"

#include "base/text.hpp"
#include "datasets/files/remote_files.hpp"
#include "io/remote/address.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <utility>

namespace leat::datasets {
namespace {

bool may_be_folder(std::string_view address) {
  const std::string_view name = address.substr(address.rfind('/') + 1);
  return name.find('.') == std::string_view::npos || name.ends_with(".zarr");
}

}  // namespace

listed_folder::listed_folder(std::string path, std::vector<io::named_object> objects)
    : path_(std::move(path)), objects_(std::move(objects)) {}

std::vector<io::named_object>::const_iterator listed_folder::first_from(std::string_view address) const {
  return std::lower_bound(objects_.begin(), objects_.end(), address,
                          [](const io::named_object& each, std::string_view wanted) { return each.address < wanted; });
}

const io::named_object* listed_folder::find(std::string_view address) const {
  const auto found = first_from(address);
  return found != objects_.end() && found->address == address ? &*found : nullptr;
}

bool listed_folder::has_folder(std::string_view address) const {
  const std::string below = str_cat(address, "/");
  const auto found = first_from(below);
  return found != objects_.end() && found->address.starts_with(below);
}

bool listed_folder::has(std::string_view name) const { return find(str_cat(path_, "/", name)) != nullptr; }

std::vector<io::named_object> listed_folder::objects_in(std::string_view ending) const {
  std::vector<io::named_object> found;
  for (const io::named_object& each : objects_) {
    const std::string_view name = std::string_view(each.address).substr(path_.size() + 1);
    if (name.find('/') == std::string_view::npos && name.ends_with(ending) && !name.starts_with('.'))
      found.push_back(each);
  }
  return found;
}

std::vector<listed_file> listed_folder::files_below() const {
  std::vector<listed_file> files;
  files.reserve(objects_.size());
  for (const io::named_object& each : objects_) {
    // The folder itself may have an object that stands for it.
    if (each.address.size() == path_.size() + 1) continue;
    files.push_back({std::string_view(each.address).substr(path_.size() + 1), each.size_bytes});
  }
  return files;
}

bool is_unlisted_folder(const std::string& address) {
  const std::string shown = io::redacted(address);
  return !io::has_keys(address) && (shown.ends_with('/') || shown.ends_with(".zarr"));
}

listed_folder list_folder(const std::string& address, const remote_options& options) {
  const auto with_slash = [](const std::string& path) { return path.ends_with('/') ? path : str_cat(path, "/"); };
  if (!io::has_keys(address)) refuse_to_list(with_slash(io::redacted(address)));
  return *find_listed_folder({.address = with_slash(address)}, options);
}

std::optional<listed_folder> find_listed_folder(const io::named_object& named, const remote_options& options) {
  const std::string& address = named.address;
  // What a listing has told of is an object.
  if (!io::has_keys(address) || !named.etag.empty()) return std::nullopt;
  const bool is_told = address.ends_with('/');
  if (!is_told && !may_be_folder(address)) return std::nullopt;
  std::string path = is_told ? address.substr(0, address.size() - 1) : address;
  if (path.ends_with('/')) {
    throw error(errc::usage,
                str_cat(address, ": this names no folder; name one of the store's, as ", address, "train/"));
  }
  std::vector<io::named_object> objects;
  try {
    objects = io::list_objects(str_cat(path, "/"), options);
  } catch (const error& refused) {
    // Who may read objects need not be allowed to list them.
    const errc why = refused.code();
    if (is_told || (why != errc::permission && why != errc::not_found && why != errc::io)) throw;
  }
  if (!objects.empty()) return listed_folder(std::move(path), std::move(objects));
  if (!is_told) return std::nullopt;
  throw error(errc::not_found,
              str_cat(io::redacted(address), ": no object lies below it; check the bucket and the name"));
}

}  // namespace leat::datasets

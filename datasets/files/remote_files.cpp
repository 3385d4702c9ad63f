#include "datasets/files/remote_files.hpp"

#include "base/text.hpp"
#include "datasets/files/asked_files.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/files/listed_folder.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/files/raw_files.hpp"
#include "io/remote/address.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace leat::datasets {

address_parts parts_of(const std::string& address) {
  const std::size_t query = io::query_of(address);
  const std::size_t name = address.rfind('/', query) + 1;
  return {address.substr(0, name), address.substr(name, query - name), address.substr(query)};
}

std::vector<std::string> first_names(const io::source_description& source, std::size_t count) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) names.push_back(source.file_name(i));
  return names;
}

std::vector<found_object> with_companions(std::span<const io::named_object> objects, const names_beside& beside,
                                          const remote_options& options) {
  std::vector<found_object> all;
  std::vector<std::string> candidates;
  std::vector<std::size_t> owners;
  for (const io::named_object& named : objects) {
    const std::size_t query = io::query_of(named.address);
    all.push_back({.named = named});
    all.back().is_there = !named.address.substr(0, query).ends_with('/');
    for (std::string& each : beside(named.address.substr(0, query))) {
      each += named.address.substr(query);
      if (each == named.address) all.back().is_there = false;  // until it was seen
      candidates.push_back(std::move(each));
      owners.push_back(all.size() - 1);
    }
  }
  if (candidates.empty()) return all;
  const auto source = io::describe_objects(candidates, options);
  blocking_sources connected;
  std::vector<std::uint32_t> numbers(candidates.size());
  std::iota(numbers.begin(), numbers.end(), 0U);
  const auto there = connected.of(*source).look_for(numbers);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!there[i]) continue;
    found_object& owner = all[owners[i]];
    if (candidates[i] == owner.named.address) {
      owner.is_there = true;
    } else {
      owner.companions.push_back(candidates[i]);
    }
  }
  return all;
}

std::vector<io::named_object> find_objects(std::span<const std::string> patterns, const remote_options& options) {
  std::vector<io::named_object> objects;
  for (const std::string& pattern : patterns) {
    for (io::named_object& each : find_objects(pattern, options)) objects.push_back(std::move(each));
  }
  return objects;
}

bool is_remote(std::string_view source) noexcept { return io::is_address(source); }

void refuse_folder(const std::string& address) {
  const std::string shown = io::redacted(address);
  if (!shown.ends_with('/')) return;
  if (!io::has_keys(address)) refuse_to_list(shown);
  throw error(errc::usage, str_cat(shown, ": a folder, where files are named; name those in it, as ", shown, "*"));
}

void refuse_to_list(const std::string& shown) {
  throw error(errc::usage,
              str_cat(shown,
                      ": a folder is listed of s3:// only, and this server cannot be asked which files it has; "
                      "name them by braces, as ",
                      shown, "train-{000..127}.tar"));
}

bool are_remote(std::span<const std::string> patterns) {
  const auto remote = [](const std::string& each) { return is_remote(each); };
  const auto first = std::find_if(patterns.begin(), patterns.end(), remote);
  if (first == patterns.end()) return false;
  const auto path = std::find_if_not(patterns.begin(), patterns.end(), remote);
  if (path == patterns.end()) return true;
  throw error(errc::usage, str_cat(io::redacted(*first), " is an address, and ", *path,
                                   " a path; open the two apart, and leat::concat() them"));
}

std::unique_ptr<input_files> files_at(std::span<const std::string> patterns, const remote_options& options,
                                      const names_beside& beside) {
  if (!are_remote(patterns)) return files_on_disk_of(patterns);
  const std::vector<io::named_object> objects = find_objects(patterns, options);
  if (!beside) {
    for (const io::named_object& each : objects) refuse_folder(each.address);
    const auto source = io::describe_objects(objects, options);
    return files_of_source(source, first_names(*source, objects.size()));
  }
  const std::vector<found_object> all = with_companions(objects, beside, options);
  std::vector<io::named_object> together;
  for (const found_object& each : all) {
    if (each.is_there) {
      together.push_back(each.named);
    } else if (each.companions.empty()) {
      std::string looked_for;
      for (const std::string& name : beside(io::redacted(each.named.address)))
        str_append(looked_for, looked_for.empty() ? "" : ", ", name);
      throw error(errc::not_found, str_cat(io::redacted(each.named.address), ": none of ", looked_for,
                                           " is there, or may be read; check the name"));
    }
  }
  for (const found_object& each : all) {
    for (const std::string& companion : each.companions) together.push_back({.address = companion});
  }
  const auto source = io::describe_objects(together, options);
  std::vector<std::string> names;
  std::uint32_t number = 0;
  for (const found_object& each : all) {
    names.push_back(each.is_there ? source->file_name(number++) : io::redacted(each.named.address));
  }
  return files_of_source(source, std::move(names));
}

std::unique_ptr<input_files> files_named_by(const io::named_object& object, const remote_options& options) {
  const address_parts parts = parts_of(object.address);
  return files_asked_for(parts.folder + parts.query, options, {io::redacted(object.address)}, {&object, 1});
}

std::vector<io::named_object> find_objects(std::string_view pattern, const remote_options& options) {
  // parse_address() says what is wrong with it, without showing it.
  if (io::has_user(pattern)) static_cast<void>(io::parse_address(pattern));
  const std::size_t query = io::query_of(pattern);
  std::vector<io::named_object> all;
  for (std::string& each : expand_braces(pattern.substr(0, query))) {
    if (io::has_keys(pattern)) {
      if (each.find_first_of("*?[") == std::string::npos) {
        all.push_back({.address = std::move(each)});
        continue;
      }
      for (io::named_object& match : io::match_objects(each, options)) all.push_back(std::move(match));
      continue;
    }
    if (each.find('*') != std::string::npos) {
      throw error(errc::usage, str_cat(io::redacted(each),
                                       ": a server cannot be asked which files it has; name them by braces, as "
                                       "train-{000..127}.tar"));
    }
    all.push_back({.address = str_cat(each, pattern.substr(query))});
  }
  if (io::is_s3(pattern)) io::ask_for_facts(all, options);
  return all;
}

std::vector<std::string> expand_addresses(std::string_view pattern, const remote_options& options,
                                          std::string_view ending) {
  std::vector<std::string> addresses;
  for (io::named_object& each : find_objects(pattern, options)) {
    const std::optional<listed_folder> folder = find_listed_folder(each, options);
    if (!folder) {
      refuse_folder(each.address);
      addresses.push_back(std::move(each.address));
      continue;
    }
    const std::size_t before = addresses.size();
    for (const io::named_object& inside : ending.empty() ? folder->objects() : folder->objects_in(ending)) {
      if (!inside.address.ends_with('/')) addresses.push_back(inside.address);
    }
    if (addresses.size() > before) continue;
    throw error(errc::not_found, ending.empty() ? str_cat(folder->path(), "/: it has no object that is no folder")
                                                : str_cat(folder->path(), "/: it has no object *", ending,
                                                          " directly in it, and only these are wanted"));
  }
  return addresses;
}

}  // namespace leat::datasets

#include "datasets/remote_files.hpp"

#include "base/text.hpp"
#include "datasets/asked_files.hpp"
#include "datasets/blocking_source.hpp"
#include "datasets/formats.hpp"
#include "datasets/indexes_beside.hpp"
#include "datasets/input_files.hpp"
#include "datasets/listed_folder.hpp"
#include "datasets/parallel.hpp"
#include "datasets/patterns.hpp"
#include "datasets/raw_files.hpp"
#include "io/remote/address.hpp"
#include "io/remote/describe_objects.hpp"

#include <leat/error.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tar.hpp>

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

std::size_t query_of(std::string_view address) {
  return io::is_s3(address) ? address.size() : std::min(address.find('?'), address.size());
}

// What may lie beside a .bin and say what it holds.
std::vector<std::string> beside_bin(const std::string& path) {
  if (!path.ends_with(".bin")) return {};
  return {with_extension(path, ".json"), with_extension(path, ".idx")};
}

// An address in its parts: "https://h/set/", "a-000.tar", "?sig".
struct address_parts {
  std::string folder;
  std::string name;
  std::string query;
};
address_parts parts_of(const std::string& address) {
  const std::size_t query = query_of(address);
  const std::size_t name = address.rfind('/', query) + 1;
  return {address.substr(0, name), address.substr(name, query - name), address.substr(query)};
}

index_places indexes_of(std::span<const std::string> shards, const remote_options& options) {
  index_places places;
  std::vector<std::string> own;
  std::vector<std::string> theirs;
  absl::flat_hash_map<std::string, std::uint32_t> numbers;
  for (const std::string& each : shards) {
    const address_parts parts = parts_of(each);
    const std::string index = str_cat(parts.folder, index_name_of(parts.name), parts.query);
    const auto [known, is_new] = numbers.try_emplace(index, static_cast<std::uint32_t>(own.size()));
    if (is_new) own.push_back(index);
    places.own.push_back(known->second);
    places.shards.push_back(parts.name);
    theirs.push_back(str_cat(parts.folder, wds_index_name_of(parts.name), parts.query));
  }
  places.own_files = static_cast<std::uint32_t>(own.size());
  own.insert(own.end(), theirs.begin(), theirs.end());
  // There are the shards: an index that does not come is not waited for as long as these are. It is read once, and where the cache is full
  // shards would have to make room for it.
  remote_options impatient = options;
  impatient.patience = std::min<std::chrono::milliseconds>(options.patience, std::chrono::seconds(10));
  places.source = io::describe_objects(own, impatient, io::caching::none);
  return places;
}

std::vector<std::string> first_names(const io::source_description& source, std::size_t count) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) names.push_back(source.file_name(i));
  return names;
}

struct object {
  io::named_object named;
  source_format kind = source_format::tar;
  std::vector<std::string> companions = {};
  bool is_there = true;  // or only what lies beside it
};

// All that may lie beside them is looked for together.
std::vector<object> with_companions(std::span<const io::named_object> objects, const names_beside& beside,
                                    const remote_options& options) {
  std::vector<object> all;
  std::vector<std::string> candidates;
  std::vector<std::size_t> owners;
  for (const io::named_object& named : objects) {
    const std::size_t query = query_of(named.address);
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
    object& owner = all[owners[i]];
    if (candidates[i] == owner.named.address) {
      owner.is_there = true;
    } else {
      owner.companions.push_back(candidates[i]);
    }
  }
  return all;
}

// So many of them at a time are looked into.
std::vector<object> look_at(std::span<const io::named_object> objects, const remote_options& options) {
  constexpr unsigned together = 16;
  std::vector<object> all = with_companions(objects, beside_bin, options);
  std::vector<io::named_object> looked_at(objects.begin(), objects.end());
  for (const object& each : all) {
    for (const std::string& companion : each.companions) looked_at.push_back({.address = companion});
  }
  const auto source = io::describe_objects(looked_at, options);
  const std::vector<std::string> names = first_names(*source, objects.size());
  const std::unique_ptr<input_files> files = files_of_source(source, names);
  for_each_parallel(all.size(), together, [&](std::size_t i) {
    all[i].kind = format_of_file(*files, names[i], io::redacted(all[i].named.address));
  });
  return all;
}

std::vector<io::named_object> find_all(std::span<const std::string> patterns, const remote_options& options) {
  std::vector<io::named_object> objects;
  for (const std::string& pattern : patterns) {
    for (io::named_object& each : find_objects(pattern, options)) objects.push_back(std::move(each));
  }
  return objects;
}

}  // namespace

bool is_remote(std::string_view source) noexcept { return io::is_address(source); }

void refuse_folder(const std::string& address) {
  const std::string shown = io::redacted(address);
  if (!shown.ends_with('/')) return;
  if (!io::is_s3(address)) refuse_to_list(shown);
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
  const std::vector<io::named_object> objects = find_all(patterns, options);
  if (!beside) {
    for (const io::named_object& each : objects) refuse_folder(each.address);
    const auto source = io::describe_objects(objects, options);
    return files_of_source(source, first_names(*source, objects.size()));
  }
  const std::vector<object> all = with_companions(objects, beside, options);
  std::vector<io::named_object> together;
  for (const object& each : all) {
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
  for (const object& each : all) {
    for (const std::string& companion : each.companions) together.push_back({.address = companion});
  }
  const auto source = io::describe_objects(together, options);
  std::vector<std::string> names;
  std::uint32_t number = 0;
  for (const object& each : all) {
    names.push_back(each.is_there ? source->file_name(number++) : io::redacted(each.named.address));
  }
  return files_of_source(source, std::move(names));
}

std::unique_ptr<input_files> files_named_by(const io::named_object& object, const remote_options& options) {
  const address_parts parts = parts_of(object.address);
  return files_asked_for(parts.folder + parts.query, options, {io::redacted(object.address)}, {&object, 1});
}

dataset open_tables_at(std::span<const std::string> patterns, const table_options& options, const table_opener& open) {
  if (options.path_column.empty() || !are_remote(patterns)) return open(*files_at(patterns, options.remote), options);
  std::vector<dataset> parts;
  for (const io::named_object& each : find_all(patterns, options.remote)) {
    refuse_folder(each.address);
    parts.push_back(open(*files_named_by(each, options.remote), options));
  }
  return parts.size() == 1 ? parts.front() : concat(parts);
}

dataset open_shards_at(std::span<const std::string> patterns, const tar_options& options) {
  const std::vector<io::named_object> objects = find_all(patterns, options.remote);
  std::vector<std::string> shards;
  for (const io::named_object& each : objects) {
    refuse_folder(each.address);
    shards.push_back(each.address);
  }
  return open_shards_of_source(io::describe_objects(objects, options.remote), options,
                               [&] { return indexes_of(shards, options.remote); });
}

std::vector<io::named_object> find_objects(std::string_view pattern, const remote_options& options) {
  // parse_address() says what is wrong with it, without showing it.
  if (io::has_user(pattern)) static_cast<void>(io::parse_address(pattern));
  const std::size_t query = query_of(pattern);
  std::vector<io::named_object> all;
  for (std::string& each : expand_braces(pattern.substr(0, query))) {
    if (io::is_s3(pattern)) {
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

std::vector<dataset> open_objects(std::span<const io::named_object> objects, const remote_options& options,
                                  const kind_opener& open_kind, const shard_opener& open_shards) {
  const std::vector<object> all = look_at(objects, options);
  std::vector<dataset> parts;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    std::vector<io::named_object> together;
    std::vector<std::string> shards;
    for (; end < all.size() && all[end].kind == all[begin].kind; ++end) {
      together.push_back(all[end].named);
      shards.push_back(all[end].named.address);
    }
    for (std::size_t i = begin; i < end; ++i) {
      for (const std::string& companion : all[i].companions) together.push_back({.address = companion});
    }
    const std::shared_ptr<const io::source_description> source = io::describe_objects(together, options);
    if (all[begin].kind == source_format::tar) {
      parts.push_back(open_shards(source, [&] { return indexes_of(shards, options); }));
    } else {
      parts.push_back(open_kind(all[begin].kind, *files_of_source(source, first_names(*source, end - begin))));
    }
  }
  return parts;
}

}  // namespace leat::datasets

#include "datasets/open/open_objects.hpp"

#include "base/text.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/raw_files.hpp"
#include "datasets/formats/tar/indexes_beside.hpp"
#include "io/remote/address.hpp"
#include "io/remote/describe_objects.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace leat::datasets {
namespace {

// What may lie beside a .bin and say what it holds.
std::vector<std::string> beside_bin(const std::string& path) {
  if (!path.ends_with(".bin")) return {};
  return {with_extension(path, ".json"), with_extension(path, ".idx")};
}

struct looked_at {
  found_object found;
  source_format kind = source_format::tar;
};

// So many of them at a time are looked into.
std::vector<looked_at> look_at(std::span<const io::named_object> objects, const remote_options& options) {
  constexpr unsigned together = 16;
  std::vector<looked_at> all;
  std::vector<io::named_object> asked(objects.begin(), objects.end());
  for (found_object& each : with_companions(objects, beside_bin, options)) {
    for (const std::string& companion : each.companions) asked.push_back({.address = companion});
    all.push_back({.found = std::move(each)});
  }
  const auto source = io::describe_objects(asked, options);
  const std::vector<std::string> names = first_names(*source, objects.size());
  const std::unique_ptr<input_files> files = files_of_source(source, names);
  for_each_parallel(all.size(), together, [&](std::size_t i) {
    all[i].kind = format_of_file(*files, names[i], io::redacted(objects[i].address));
  });
  return all;
}

}  // namespace

std::vector<dataset> open_objects(std::span<const io::named_object> objects, const remote_options& options,
                                  const kind_opener& open_kind, const shard_opener& open_shards) {
  const std::vector<looked_at> all = look_at(objects, options);
  std::vector<dataset> parts;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    std::vector<io::named_object> together;
    std::vector<std::string> shards;
    for (; end < all.size() && all[end].kind == all[begin].kind; ++end) {
      together.push_back(all[end].found.named);
      shards.push_back(all[end].found.named.address);
    }
    for (std::size_t i = begin; i < end; ++i) {
      for (const std::string& companion : all[i].found.companions) together.push_back({.address = companion});
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

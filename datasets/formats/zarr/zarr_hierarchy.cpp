#include "datasets/formats/zarr/zarr_hierarchy.hpp"

#include "base/parse_json.hpp"
#include "base/text.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/formats/zarr/zarr_metadata.hpp"
#include "datasets/formats/zarr/zarr_shard.hpp"
#include "datasets/formats/zarr/zarr_store.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <deque>
#include <set>
#include <string_view>
#include <utility>

namespace leat::datasets {
namespace {

using json = nlohmann::json;

constexpr std::uint64_t chunks_max = std::uint64_t{1} << 24;  // 512 MiB of places
constexpr std::uint64_t files_max = std::uint64_t{1} << 24;

json parsed(const zarr_store& store, const std::string& key) {
  const std::vector<std::byte> content = store.metadata(key);
  const auto fail = [&](std::string_view why) {
    throw error(errc::format, str_cat(store.where(key), ": it is no JSON object", why, "; was it written to its end?"));
  };
  json found;
  try {
    found = parse_json({reinterpret_cast<const char*>(content.data()), content.size()});
  } catch (const error& wrong) {
    fail(str_cat(": ", wrong.what()));
  }
  if (!found.is_object()) fail("");
  return found;
}

std::uint64_t product(const std::vector<std::uint64_t>& values, std::uint64_t most, const std::string& where) {
  std::uint64_t all = 1;
  for (const std::uint64_t each : values) {
    if (each != 0 && all > most / each) {
      throw error(errc::limit,
                  str_cat(where, ": more than ", most, " chunks or files; write it anew with larger ones"));
    }
    all *= each;
  }
  return all;
}

std::vector<std::uint64_t> grid_of(const std::vector<std::uint64_t>& shape, const std::vector<std::uint64_t>& chunk) {
  std::vector<std::uint64_t> grid;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    grid.push_back(shape[axis] / chunk[axis] + (shape[axis] % chunk[axis] != 0));
  return grid;
}

std::vector<std::uint64_t> coordinates_of(std::uint64_t number, const std::vector<std::uint64_t>& grid) {
  std::vector<std::uint64_t> at(grid.size());
  for (std::size_t axis = grid.size(); axis-- > 0;) {
    at[axis] = number % grid[axis];
    number /= grid[axis];
  }
  return at;
}

/// The files of one array, and where its chunks lie in them.
class array_files {
 public:
  ///   path   of the array below the root
  array_files(zarr_store& store, const std::string& path, zarr_layout layout, unsigned threads)
      : store_(store), path_(path), layout_(std::move(layout)), threads_(threads) {}

  void add_to(zarr_contents& contents) {
    chunked_array& array = layout_.array;
    grid_ = grid_of(array.shape, array.chunk);
    const std::string where = store_.where(path_);
    array.places.resize(product(grid_, chunks_max, where));
    const std::vector<std::uint64_t> files = grid_of(array.shape, layout_.file_chunk);
    std::vector<zarr_object> objects(product(files, files_max, where));
    std::vector<std::vector<chunk_place>> inside(layout_.sharded ? objects.size() : 0);
    store_.expect(objects.size(), [&](std::uint64_t i) { return key_of(coordinates_of(i, files)); });
    for_each_parallel(objects.size(), threads_for_walking(threads_), [&](std::size_t i) {
      const std::string key = key_of(coordinates_of(i, files));
      objects[i] = store_.find(key);
      if (layout_.sharded && objects[i].is_there()) inside[i] = read_index(key, objects[i]);
    });
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (!objects[i].is_there()) continue;
      const std::vector<std::uint64_t> at = coordinates_of(i, files);
      const chunk_place all = place_of(key_of(at), objects[i], contents.files);
      if (layout_.sharded) {
        place_inside(at, all, inside[i]);
      } else {
        array.places[i] = all;
      }
    }
    contents.arrays.push_back(std::move(array));
  }

 private:
  std::string key_of(const std::vector<std::uint64_t>& coordinates) const {
    std::string key = path_.empty() ? layout_.prefix : str_cat(path_, "/", layout_.prefix);
    // Of a single number: version 3 has "c" for "c/0/0", version 2 "0".
    if (coordinates.empty() && !layout_.prefix.empty()) key.pop_back();
    if (coordinates.empty() && layout_.prefix.empty()) key += '0';
    for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
      if (axis != 0) key += layout_.separator;
      str_append(key, coordinates[axis]);
    }
    return key;
  }

  chunk_place place_of(const std::string& key, const zarr_object& object, std::vector<sized_file>& files) {
    const std::uint32_t file = store_.number_of_file(key, object, files);
    if (object.held == nullptr) return {.offset = object.offset, .bytes = object.bytes, .file = file};
    layout_.array.held_from = file;
    std::vector<std::byte>& held = layout_.array.held;
    const chunk_place place{.offset = held.size(), .bytes = object.bytes, .file = chunk_place::held};
    held.insert(held.end(), object.held, object.held + object.bytes);
    return place;
  }

  // Those of a shard's chunks that the array has.
  void place_inside(const std::vector<std::uint64_t>& shard, const chunk_place& all,
                    const std::vector<chunk_place>& inside) {
    const std::vector<std::uint64_t> in_shard = chunks_in_shard();
    for (std::size_t k = 0; k < inside.size(); ++k) {
      if (inside[k].offset == chunk_place::absent) continue;
      const std::vector<std::uint64_t> local = coordinates_of(k, in_shard);
      std::uint64_t number = 0;
      bool beyond = false;
      for (std::size_t axis = 0; axis < grid_.size(); ++axis) {
        const std::uint64_t coordinate = shard[axis] * in_shard[axis] + local[axis];
        beyond = beyond || coordinate >= grid_[axis];
        number = number * grid_[axis] + coordinate;
      }
      if (beyond) continue;
      layout_.array.places[number] = {
          .offset = all.offset + inside[k].offset, .bytes = inside[k].bytes, .file = all.file};
    }
  }

  std::vector<std::uint64_t> chunks_in_shard() const {
    std::vector<std::uint64_t> counts;
    for (std::size_t axis = 0; axis < layout_.file_chunk.size(); ++axis) {
      counts.push_back(layout_.file_chunk[axis] / layout_.array.chunk[axis]);
    }
    return counts;
  }

  std::vector<chunk_place> read_index(const std::string& key, const zarr_object& shard) const {
    const std::string where = store_.where(key);
    const std::uint64_t chunks = product(chunks_in_shard(), chunks_max, where);
    const std::uint64_t index_bytes = shard_index_bytes(chunks, layout_.index_filters);
    if (index_bytes > shard.bytes) {
      throw error(errc::format,
                  str_cat(where, ": a shard of ", shard.bytes, " bytes, whose index alone has ", index_bytes));
    }
    const std::uint64_t offset = layout_.index_at_end ? shard.bytes - index_bytes : 0;
    return parse_shard_index(store_.read(key, shard, offset, index_bytes), chunks, layout_.index_filters, shard.bytes,
                             str_cat(where, ": the index of the shard at offset ", offset));
  }

  zarr_store& store_;
  const std::string path_;
  zarr_layout layout_;
  const unsigned threads_;
  std::vector<std::uint64_t> grid_;  // chunks along each axis
};

std::string below(const std::string& group, std::string_view name) {
  return group.empty() ? std::string(name) : str_cat(group, "/", name);
}

std::string name_of_root(const std::string& title) {
  std::string name = title.ends_with('/') ? title.substr(0, title.size() - 1) : title;
  name = name.substr(name.rfind('/') + 1);
  for (const std::string_view ending : {".json", ".zarr"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  return name.empty() ? "array" : name;
}

}  // namespace

zarr_contents read_zarr(zarr_store& store, std::span<const std::string> wanted, unsigned threads) {
  constexpr std::ptrdiff_t depth_max = 64;
  zarr_contents contents;
  std::vector<std::string> there;
  std::set<std::string> guarded;  // keys of metadata
  std::deque<std::string> nodes{""};
  while (!nodes.empty()) {
    const std::string path = std::move(nodes.front());
    nodes.pop_front();
    if (std::count(path.begin(), path.end(), '/') > depth_max) {
      throw error(errc::limit,
                  str_cat(store.where(path), ": groups within groups, ", depth_max, " deep; does a link lead back?"));
    }
    const bool is_v3 = store.has(below(path, "zarr.json"));
    const bool is_v2_array = !is_v3 && store.has(below(path, ".zarray"));
    const std::string key = below(path, is_v3 ? "zarr.json" : ".zarray");
    const std::string metadata_key = store.metadata_key(key);
    json metadata;
    zarr_object read_from;  // as it was before it was read
    if (is_v3 || is_v2_array) {
      read_from = store.find(metadata_key);
      metadata = parsed(store, key);
    }
    if (is_v3 ? metadata.value("node_type", json()) != "array" : !is_v2_array) {
      for (const std::string& name : store.names_in(path)) nodes.push_back(below(path, name));
      continue;
    }
    const std::string name = path.empty() ? name_of_root(store.title()) : path;
    there.push_back(name);
    const bool is_wanted = std::find(wanted.begin(), wanted.end(), name) != wanted.end();
    if (!wanted.empty() && !is_wanted) continue;
    const std::string where = store.where(key);
    try {
      zarr_layout layout = is_v3 ? zarr_layout_v3(metadata, name, where) : zarr_layout_v2(metadata, name, where);
      array_files(store, path, std::move(layout), threads).add_to(contents);
      // Who writes an array anew with another shape or type may leave files of chunks as they are. What references have in
      // themselves is in memory.
      if (read_from.is_there() && read_from.held == nullptr && guarded.insert(metadata_key).second) {
        static_cast<void>(store.number_of_file(metadata_key, read_from, contents.files));
      }
    } catch (const zarr_not_read& refused) {
      const std::string said = str_cat(store.where(path), ": ", refused.why);
      if (is_wanted) throw error(errc::unsupported, said);
      contents.notes.push_back(str_cat("left out: ", said));
    } catch (const json::exception& odd) {
      throw error(errc::format, str_cat(where, ": ", odd.what()));
    }
  }
  for (const std::string& name : wanted) {
    if (std::find(there.begin(), there.end(), name) != there.end()) continue;
    std::string names;
    for (const std::string& each : there) str_append(names, names.empty() ? "" : ", ", each);
    throw error(errc::not_found,
                str_cat(store.title(), ": no array '", name, "'; it has ", names.empty() ? "none" : names));
  }
  return contents;
}

}  // namespace leat::datasets

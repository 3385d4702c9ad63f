#include "datasets/zarr_store.hpp"

#include "base/text.hpp"
#include "datasets/file_bytes.hpp"
#include "datasets/parallel.hpp"
#include "datasets/raw_files.hpp"
#include "datasets/zarr_metadata.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

using json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t metadata_bytes_max = std::uint64_t{64} << 20;
constexpr std::uint64_t chunks_max = std::uint64_t{1} << 24;  // 512 MiB of places
constexpr std::uint64_t files_max = std::uint64_t{1} << 24;

json parsed(const std::string& path) {
  const local_file file(path);
  if (file.size() > metadata_bytes_max)
    throw error(errc::format, str_cat(path, ": ", file.size(), " bytes of metadata"));
  const std::vector<std::byte> content = file.read(0, file.size());
  const char* const begin = reinterpret_cast<const char*>(content.data());
  json found = json::parse(begin, begin + content.size(), nullptr, false);
  if (!found.is_object())
    throw error(errc::format, str_cat(path, ": it is no JSON object; was it written to its end?"));
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
  array_files(const std::string& folder, zarr_layout layout, unsigned threads)
      : folder_(folder), layout_(std::move(layout)), threads_(threads) {}

  void add_to(zarr_contents& contents) {
    chunked_array& array = layout_.array;
    const std::vector<std::uint64_t> grid = grid_of(array.shape, array.chunk);
    const std::vector<std::uint64_t> files = grid_of(array.shape, layout_.file_chunk);
    array.places.resize(product(grid, chunks_max, folder_));
    // Of each file: its size, and of a shard its chunks.
    std::vector<std::optional<std::uint64_t>> sizes(product(files, files_max, folder_));
    std::vector<std::vector<chunk_place>> inside(layout_.sharded ? sizes.size() : 0);
    for_each_parallel(sizes.size(), threads_for_walking(threads_), [&](std::size_t i) {
      const std::string path = path_of(coordinates_of(i, files));
      std::error_code missing;
      const std::uintmax_t bytes = fs::file_size(path, missing);
      if (missing) {
        if (missing != std::errc::no_such_file_or_directory)
          throw error(errc::io, str_cat(path, ": ", missing.message()));
        return;  // never written
      }
      sizes[i] = bytes;
      if (layout_.sharded) inside[i] = read_index(path);
    });
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!sizes[i]) continue;
      const std::vector<std::uint64_t> at = coordinates_of(i, files);
      const auto number = static_cast<std::uint32_t>(contents.files.size());
      contents.files.push_back({path_of(at), *sizes[i]});
      if (!layout_.sharded) {
        array.places[i] = {.offset = 0, .bytes = *sizes[i], .file = number};
        continue;
      }
      const std::vector<std::uint64_t> in_shard = chunks_in_shard();
      for (std::size_t k = 0; k < inside[i].size(); ++k) {
        if (inside[i][k].offset == chunk_place::absent) continue;
        const std::vector<std::uint64_t> local = coordinates_of(k, in_shard);
        std::uint64_t place = 0;
        bool beyond = false;
        for (std::size_t axis = 0; axis < grid.size(); ++axis) {
          const std::uint64_t coordinate = at[axis] * in_shard[axis] + local[axis];
          beyond = beyond || coordinate >= grid[axis];
          place = place * grid[axis] + coordinate;
        }
        if (beyond) continue;
        array.places[place] = inside[i][k];
        array.places[place].file = number;
      }
    }
    contents.arrays.push_back(std::move(array));
  }

 private:
  std::string path_of(const std::vector<std::uint64_t>& coordinates) const {
    std::string key = layout_.prefix;
    for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
      if (axis != 0) key += layout_.separator;
      str_append(key, coordinates[axis]);
    }
    return str_cat(folder_, "/", key);
  }

  std::vector<std::uint64_t> chunks_in_shard() const {
    std::vector<std::uint64_t> counts;
    for (std::size_t axis = 0; axis < layout_.file_chunk.size(); ++axis) {
      counts.push_back(layout_.file_chunk[axis] / layout_.array.chunk[axis]);
    }
    return counts;
  }

  // Offset and bytes of each chunk, both ~0 for one that was never written.
  std::vector<chunk_place> read_index(const std::string& path) const {
    constexpr std::uint64_t entry_bytes = 16;
    constexpr std::uint64_t checksum_bytes = 4;
    const local_file file(path);
    const std::uint64_t chunks = product(chunks_in_shard(), chunks_max, path);
    const std::uint64_t index_bytes = chunks * entry_bytes + layout_.index_filters.size() * checksum_bytes;
    if (index_bytes > file.size()) {
      throw error(errc::format,
                  str_cat(path, ": a shard of ", file.size(), " bytes, whose index alone has ", index_bytes));
    }
    const std::uint64_t offset = layout_.index_at_end ? file.size() - index_bytes : 0;
    const std::vector<std::byte> stored = file.read(offset, index_bytes);
    std::vector<std::byte> index(chunks * entry_bytes);
    if (const auto reason = undo_filters(layout_.index_filters, 0, stored, index)) {
      throw error(errc::format, str_cat(path, ": the index of the shard at offset ", offset, " is damaged: ", *reason));
    }
    std::vector<chunk_place> places(chunks);
    for (std::uint64_t i = 0; i < chunks; ++i) {
      const auto begin = number_at<std::uint64_t>(index, i * entry_bytes);
      const auto bytes = number_at<std::uint64_t>(index, i * entry_bytes + 8);
      if (begin == chunk_place::absent && bytes == chunk_place::absent) continue;
      if (begin > file.size() || bytes > file.size() - begin) {
        throw error(errc::format, str_cat(path, ": the index of the shard at offset ", offset, " has a chunk of ",
                                          bytes, " bytes at offset ", begin, ", and the file has ", file.size()));
      }
      places[i] = {.offset = begin, .bytes = bytes};
    }
    return places;
  }

  const std::string folder_;
  zarr_layout layout_;
  const unsigned threads_;
};

struct node {
  std::string path;  // below the root
  std::string folder;
};

std::string name_of_root(const std::string& folder) {
  std::string name = fs::path(folder.ends_with('/') ? folder.substr(0, folder.size() - 1) : folder).filename().string();
  if (name.ends_with(".zarr")) name.resize(name.size() - 5);
  return name.empty() ? "array" : name;
}

// Folders below a group that are groups or arrays, by name.
void add_children(const node& group, std::deque<node>& nodes) {
  std::vector<std::string> names;
  std::error_code unreadable;
  for (fs::directory_iterator each(group.folder, unreadable), end; !unreadable && each != end;
       each.increment(unreadable)) {
    const std::string name = each->path().filename().string();
    if (is_zarr(str_cat(group.folder, "/", name))) names.push_back(name);
  }
  if (unreadable) throw error(errc::io, str_cat(group.folder, ": ", unreadable.message()));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    nodes.push_back({group.path.empty() ? name : str_cat(group.path, "/", name), str_cat(group.folder, "/", name)});
  }
}

}  // namespace

bool is_zarr(const std::string& folder) {
  return file_exists(folder + "/zarr.json") || file_exists(folder + "/.zgroup") || file_exists(folder + "/.zarray");
}

zarr_contents read_zarr(const std::string& folder, std::span<const std::string> wanted, unsigned threads) {
  constexpr std::size_t depth_max = 64;
  zarr_contents contents;
  std::vector<std::string> there;
  std::deque<node> nodes{{"", folder}};
  while (!nodes.empty()) {
    const node here = std::move(nodes.front());
    nodes.pop_front();
    if (std::count(here.path.begin(), here.path.end(), '/') > static_cast<std::ptrdiff_t>(depth_max)) {
      throw error(errc::limit,
                  str_cat(here.folder, ": groups within groups, ", depth_max, " deep; does a link lead back?"));
    }
    const bool is_v3 = file_exists(here.folder + "/zarr.json");
    const bool is_v2_array = !is_v3 && file_exists(here.folder + "/.zarray");
    const std::string metadata_path = here.folder + (is_v3 ? "/zarr.json" : "/.zarray");
    json metadata;
    if (is_v3 || is_v2_array) metadata = parsed(metadata_path);
    if (is_v3 ? metadata.value("node_type", json()) != "array" : !is_v2_array) {
      add_children(here, nodes);
      continue;
    }
    const std::string name = here.path.empty() ? name_of_root(folder) : here.path;
    there.push_back(name);
    const bool is_wanted = std::find(wanted.begin(), wanted.end(), name) != wanted.end();
    if (!wanted.empty() && !is_wanted) continue;
    try {
      zarr_layout layout =
          is_v3 ? zarr_layout_v3(metadata, name, metadata_path) : zarr_layout_v2(metadata, name, metadata_path);
      array_files(here.folder, std::move(layout), threads).add_to(contents);
    } catch (const zarr_not_read& refused) {
      const std::string said = str_cat(here.folder, ": ", refused.why);
      if (is_wanted) throw error(errc::unsupported, said);
      contents.notes.push_back(str_cat("left out: ", said));
    } catch (const json::exception& odd) {
      throw error(errc::format, str_cat(metadata_path, ": ", odd.what()));
    }
  }
  for (const std::string& name : wanted) {
    if (std::find(there.begin(), there.end(), name) != there.end()) continue;
    std::string names;
    for (const std::string& each : there) str_append(names, names.empty() ? "" : ", ", each);
    throw error(errc::not_found, str_cat(folder, ": no array '", name, "'; it has ", names.empty() ? "none" : names));
  }
  return contents;
}

}  // namespace leat::datasets

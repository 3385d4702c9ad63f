#include "datasets/write/index_writer.hpp"

#include "base/cores_quota.hpp"
#include "base/errno_words.hpp"
#include "base/text.hpp"
#include "base/unfinished_file.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/files/remote_files.hpp"
#include "datasets/formats/tar/shard_index_file.hpp"
#include "datasets/formats/tar/tar_index.hpp"
#include "io/files/file_description.hpp"
#include "io/files/file_table.hpp"
#include "io/remote/describe_objects.hpp"

#include <leat/error.hpp>
#include <leat/open_tar.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::uint32_t walking_loops_max = 8;

std::shared_ptr<const io::source_description> describe_paths(std::span<const std::string> paths) {
  auto files = std::make_shared<io::file_table>();
  for (const std::string& each : paths) files->add(each, io::file_table::unknown_size);
  files->finish();
  return std::make_shared<const io::file_description>(std::move(files));
}

void write(const std::string& path, std::span<const std::byte> content) {
  unfinished_file file(path);
  int problem = file.open();
  if (problem == 0) problem = file.write(content);
  if (problem == 0) problem = file.sync();
  if (problem == 0) problem = file.take_name(true);
  if (problem != 0) throw explain_write(path, problem);
}

}  // namespace

std::vector<written_index> write_indexes(std::span<const std::string> shards, const tar_options& options,
                                         const remote_options& remote, const std::string& folder) {
  const bool are_remote = !shards.empty() && is_remote(shards.front());
  if (are_remote && folder.empty()) {
    throw error(errc::usage,
                "an index of shards at addresses is written to a folder here, and copied beside them: name the folder");
  }
  tar_index_options how;
  if (options.shards_in_flight != 0) how.shards_in_flight = options.shards_in_flight;
  if (options.ignore_zeros) how.at_marker = at_end_marker::go_on;
  const auto source = are_remote ? io::describe_objects(shards, remote) : describe_paths(shards);
  std::vector<shard_index> indexes;
  {
    const opening_loop loops(
        opening_loop::traffic::many,
        std::clamp<std::uint32_t>(source->files(), 1, std::min(working_cores(), walking_loops_max)));
    indexes = index_tar_shards(*source, loops.connectors(), how);
  }
  std::map<std::string, std::vector<indexed_shard>> by_path;
  std::map<std::string, std::uint64_t> samples;
  for (std::uint32_t i = 0; i < source->files(); ++i) {
    const std::string path = source->file_name(i);
    const std::size_t name = path.rfind('/') + 1;  // npos + 1 is 0.
    const std::string index =
        str_cat(folder.empty() ? path.substr(0, name) : str_cat(folder, "/"), index_name_of(path.substr(name)));
    // Where they are opened from, shards have other paths.
    for (std::string& note : indexes[i].notes) {
      if (note.starts_with(path)) note.erase(0, path.size());
    }
    samples[index] += indexes[i].ends.size();
    by_path[index].push_back({path.substr(name), std::move(indexes[i])});
  }
  std::vector<written_index> written;
  for (const auto& [path, of] : by_path) {
    const std::vector<std::byte> content = write_shard_indexes(of, how.at_marker);
    write(path, content);
    written.push_back({path, of.size(), samples[path], content.size()});
  }
  return written;
}

}  // namespace leat::datasets

// Openers of leat::core: arrays, records and tokens that lie there as they are, tar shards, folders. They name no other format, so that a
// program which calls only these is linked with none.
#include "datasets/files/listed_folder.hpp"
#include "datasets/files/raw_files.hpp"
#include "datasets/files/remote_files.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/formats/tar/indexes_beside.hpp"
#include "datasets/open/named_files.hpp"

#include <leat/error.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_records.hpp>
#include <leat/open_tar.hpp>
#include <leat/open_tokens.hpp>
#include <leat/samples.hpp>
#include <leat/source_names.hpp>

#include <span>
#include <string>
#include <vector>

namespace leat {
namespace {

using datasets::files_at;
using datasets::named;

dataset open_shards_at(std::span<const std::string> patterns, const tar_options& options) {
  const std::vector<io::named_object> objects = datasets::find_objects(patterns, options.remote);
  std::vector<std::string> shards;
  for (const io::named_object& each : objects) {
    datasets::refuse_folder(each.address);
    shards.push_back(each.address);
  }
  return datasets::open_shards_of_source(io::describe_objects(objects, options.remote), options,
                                         [&] { return datasets::indexes_of(shards, options.remote); });
}

}  // namespace

dataset open_npy(const source_names& files, const npy_options& options) {
  return datasets::open_npy_files(*files_at(named(files, "open_npy", "train.npy"), options.remote), options);
}

dataset open_records(const source_names& files, const record_options& options) {
  const auto description = [](const std::string& path) { return std::vector{datasets::with_extension(path, ".json")}; };
  const auto& names = named(files, "open_records", "train.bin");
  return datasets::open_record_files(*files_at(names, options.remote, description));
}

dataset open_tokens(const source_names& files, const token_options& options) {
  const auto& names = named(files, "open_tokens", "train.bin");
  return datasets::open_token_files(*files_at(names, options.remote, datasets::beside_tokens), options);
}

dataset open_tar(const source_names& shards, const tar_options& options) {
  const auto& names = named(shards, "open_tar", "train-{000..127}.tar");
  return datasets::are_remote(names) ? open_shards_at(names, options) : datasets::open_shards_on_disk(names, options);
}

dataset open_folder(const std::string& folder, const folder_options& options) {
  if (folder.empty()) throw error(errc::usage, "a folder of pictures was asked for with an empty path");
  if (!datasets::is_remote(folder)) return datasets::open_pictures_in(folder, options);
  return datasets::open_listed_pictures(datasets::list_folder(folder, options.remote), options, options.remote);
}

}  // namespace leat

// Objects at addresses, each opened as what it is.
#pragma once

#include "datasets/files/remote_files.hpp"
#include "datasets/open/formats.hpp"

#include <leat/remote.hpp>
#include <leat/samples.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

class input_files;
struct index_places;

/// A dataset of files of one kind, out of whatever source.
///   shards   the same files, where they are tar shards
///   beside   where indexes of them may lie
using kind_opener = std::function<dataset(source_format kind, const input_files& files)>;
using shard_opener = std::function<dataset(std::shared_ptr<const io::source_description> shards,
                                           const std::function<index_places()>& beside)>;

/// Opens objects: neighbours of one kind together, in their order.
///   throws   as io::describe_objects(), and what the openers throw
[[nodiscard]] std::vector<dataset> open_objects(std::span<const io::named_object> objects,
                                                const remote_options& options, const kind_opener& open_kind,
                                                const shard_opener& open_shards);

}  // namespace leat::datasets

// NAME.index beside tar shards: what a walk over their headers has found, so that nobody has to walk again, wherever the shards are copied to.
//
//     header      magic, version, checksum of all that follows it
//     shards      of each its name, its size, and its samples: fields, places, damage, notes, photo packs
//
// It comes from where the shards come from, so it is looked at as what a stranger has written.
#pragma once

#include "datasets/formats/tar/tar_walk.hpp"
#include "datasets/formats/tar/webdataset.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// The index that a shard belongs to: "train-000012.tar" and its neighbours have "train.index", "000012.tar" has "shards.index".
///   shard   the last part of its path
[[nodiscard]] std::string index_name_of(std::string_view shard);

/// One shard of an index.
///   name   the last part of its path
struct indexed_shard {
  std::string name;
  shard_index index;
};

[[nodiscard]] std::vector<std::byte> write_shard_indexes(std::span<const indexed_shard> shards,
                                                         at_end_marker at_marker);

/// Places that lie in shards of the sizes that they are of; the parts are of file 0.
struct parsed_shard_indexes {
  at_end_marker at_marker = at_end_marker::stop;
  std::vector<indexed_shard> shards;
};
///   is_wanted   by name; others are looked at and left out
///   throws      error{errc::format}: it is none, of another version, or damaged
[[nodiscard]] parsed_shard_indexes parse_shard_indexes(
    std::span<const std::byte> bytes,
    const std::function<bool(std::string_view)>& is_wanted = [](std::string_view) { return true; });

/// DALI's index of one shard (tools/wds2idx.py), v1.1 and v1.2: "v1.2 N", then for each sample a line of "ext offset size name" for each
/// of its members, in v1.1 without the names. Members are taken as a walk takes them; those without names are all of their line's sample.
///   file_bytes   of the shard
///   throws       error{errc::format}: it is none, or has places that are not in such a shard
[[nodiscard]] shard_index parse_wds_index(std::string_view text, std::uint64_t file_bytes);
/// "a-000.tar" as "a-000.idx": what stands before the first dot of its name.
[[nodiscard]] std::string wds_index_name_of(std::string_view shard);

/// The parts of an index of file 0 as those of another number.
void renumber(shard_index& index, std::uint32_t file);

}  // namespace leat::datasets

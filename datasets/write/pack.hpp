// Writes any dataset as WebDataset shards.
#pragma once

#include "datasets/formats/tar/photo_places.hpp"

#include <leat/samples.hpp>
#include <leat/world.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

struct pack_progress {
  std::uint64_t samples = 0;
  std::uint64_t samples_total = 0;
  std::uint64_t bytes = 0;  ///< read from the source
};

/// What takes a member's place.
struct rewritten_member {
  std::string name;
  std::vector<std::byte> content;
};

using member_rewriter =
    std::function<std::optional<rewritten_member>(std::string_view member, std::span<const std::byte> content)>;

/// How samples become shards.
struct pack_options {
  bool shuffle = false;  ///< in an order drawn from the seed; else in the dataset's
  std::uint64_t seed = 0;
  /// For a pattern (%06d): a shard is full when one more sample would pass either. Both 0: 1 GiB per shard.
  std::uint64_t samples_per_shard = 0;
  std::uint64_t bytes_per_shard = 0;
  bool overwrite = false;  ///< shards of these names that are there are replaced, each when its successor is whole
  /// Goes on where an earlier run was stopped: shards that are there stay, from the first on up to one that is missing. They have to hold
  /// what this run would write (datasets/write/kept_shards.hpp says how far that is looked at). Not with `overwrite`.
  bool keep_finished = false;
  /// Rank r of W writes shards floor(r * n / W) to floor((r + 1) * n / W) of n: the ranks' shards are those of one process.
  leat::world world = {};
  bool skip_damaged = false;  ///< leave out samples known to be damaged, instead of an error
  /// Asked of each member, but for those of samples above 1 GiB: what to write in its place and under what name, or nothing to
  /// leave it as it is. It is left too if its sample has another member of that name. Called on several threads at once.
  member_rewriter rewrite = {};
  /// Asked in place of `rewrite`, if set, for the first sample of a shard that is there already: what it makes is compared and not written.
  /// For those whose `rewrite` counts what it makes.
  member_rewriter rewrite_to_compare = {};
  /// Asked of each member as it is written, but for those of samples that go through in portions: what a plan has to know of it, if it
  /// is a photo pack; `block` is filled in here. A shard with such members gets an index of them (datasets/formats/tar/photo_places.hpp).
  std::function<std::optional<photo_place>(std::span<const std::byte> content)> photo = {};
  std::function<void(const pack_progress&)> progress = {};  ///< called now and then, on the calling thread
  std::stop_token stop = {};                                ///< within reads, writes and waits for the disk
};

struct packed_shard {
  std::string path;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
};

struct pack_result {
  std::vector<packed_shard> shards;  ///< those that were kept first
  std::uint64_t kept = 0;            ///< shards that were there already
  std::uint64_t samples = 0;         ///< of all these shards
  std::uint64_t skipped = 0;
  std::vector<std::string> notes;  ///< what the user should know: shards of an earlier run that lie beside these
};

/// Packs `from` into the shards that `out` names: a brace list, p-{000000..000003}.tar, is exactly so many shards, as even
/// as can be; a pattern, p-%06d.tar, as many as it takes; a plain path, p.tar, is exactly one.
///
/// Members keep their path and extension: class folder and name for a folder, key and fields for shards. Dots inside a
/// name are written %2E and percent signs %25 (datasets/model/member_key.hpp). Columns become members of their own: a folder's
/// class number is `.cls`. Each shard appears under its name when it is complete and durable; killed at any moment, this
/// leaves whole shards and at most one .NAME.partial, which the next run uses up. A shard that is there already is an
/// error before anything is written, unless `overwrite` or `keep_finished` is set: any name of a list, any number of a pattern.
///
/// Many ranks pack together without communicating: each writes its own shards, and checks only their names for existing files.
/// The number of samples of a shard must be known beforehand, so `bytes_per_shard` cannot be used.
///
/// Memory: 16 MiB of samples at a time, 8 bytes per sample where shuffled.
///   throws   error{errc::usage} an invalid pattern, a shard that is there already, `bytes_per_shard` with many
///            ranks; error{errc::limit} disk full:
///            finished shards stay, the one begun is removed; error{errc::corrupt} a damaged sample, by name;
///            error{errc::changed} files of the source that have changed since it was opened, where a dataset looks: asked
///            before each shard gets its name;
///            error{errc::cancelled} on stop; what reading and writing throw
///   source   https://github.com/webdataset/webdataset; POSIX.1-2001 ustar and pax
pack_result pack(const dataset& from, std::string_view out, const pack_options& options);

}  // namespace leat::datasets

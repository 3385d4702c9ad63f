// Tar shards (WebDataset).
#pragma once

#include <leat/compiler.hpp>
#include <leat/index_options.hpp>
#include <leat/remote.hpp>
#include <leat/samples.hpp>
#include <leat/source_names.hpp>

#pragma GCC visibility push(default)
namespace leat {

/// How tar shards are opened.
///   ignore_zeros   true: read on behind the end marker of an archive, like GNU tar's --ignore-zeros, for files that
///                  `cat a.tar b.tar` made. false (default): what lies behind it is not read, and notes() mentions it
struct tar_options {
  unsigned shards_in_flight = 0;  ///< shards that are opened at the same time. 0 (default): 64
  bool ignore_zeros = false;
  index_options index = {};    ///< whether the list of members is kept for the next run
  remote_options remote = {};  ///< for shards at addresses
};

/// Tar shards of WebDataset. A sample is a run of members with one key: the path up to the first dot of the file name.
/// What follows the dot, in lower case, is the field. Members that are no regular files are skipped, and notes() counts
/// them. Shards are in the order given, those of a glob sorted. Compressed ones (.tar.gz, .tgz, .tar.zst) are read through
/// to open them, and samples share blocks of about a MiB (field_info::chunked); use shuffled_blocks() for these.
///   shards   paths, brace lists (a-{000..127}.tar, {train,val}.tar) and globs; or addresses: https:// with
///            brace lists, s3:// with globs too (docs/guides/object-storage.md). One call takes paths or addresses, not
///            both. So do the functions below
///   throws   error{errc::not_found} a shard is missing or a pattern matches none; error{errc::format} a damaged
///            header, with shard and offset; error{errc::unsupported} sparse members, by name, frames of
///            Zstandard of more than 256 MiB, and files of another kind. A field given twice, a hard link, and a shard
///            that ends inside a member are defects of one sample, and left to the loader's corrupt policy
///   source   webdataset/tariterators.py: base_plus_ext, group_by_keys; POSIX.1-2001 pax; GNU tar manual
[[nodiscard]] dataset open_tar(const source_names& shards, const tar_options& options = {});

}  // namespace leat
#pragma GCC visibility pop

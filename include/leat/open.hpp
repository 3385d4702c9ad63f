// Opens any source.
#pragma once

#include <leat/compiler.hpp>
#include <leat/index_options.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_lmdb.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tar.hpp>
#include <leat/remote.hpp>
#include <leat/samples.hpp>
#include <leat/source_names.hpp>

#include <string>

#pragma GCC visibility push(default)
namespace leat {

/// Options that open() gives to the function of the format. An option that a source does not take is refused by name.
///   tar      for tar shards
///   index    for shards and folders; tar.index is ignored
///   arrays   for HDF5 and Zarr; windows for .npy and .npz, too. If it sets windows or sample::array, all sources must be of these formats. Its
///            `fields` apply to every source, as dataset::with_fields()
///   tables   for Parquet, Arrow, TFRecord, MDS, JSONL and CSV. If it names no fields, those of `arrays` apply
///   lmdb     for LMDB
///   remote   for objects at addresses; those of `tar`, `arrays`, `tables` and `lmdb` are ignored
///   split    the split to open, of a folder that has several ("train", "test"). Empty (default): a folder with splits
///            is an error that lists them
struct open_options {
  tar_options tar = {};
  index_options index = {};
  array_options arrays = {};
  table_options tables = {};
  lmdb_options lmdb = {};
  remote_options remote = {};
  std::string split = {};
};

/// Opens any source, as the command does with its SOURCEs. Brace lists and globs name several; several become one
/// dataset, in their order.
///   folder    with *.tar: shards, sorted. With zarr.json, .zgroup or .zarray: Zarr. With data.mdb: LMDB. With an
///             index.json of shards: MDS. With metadata.jsonl or metadata.csv: the pictures that it lists. Else:
///             pictures, as open_folder()
///   file      what its first bytes and the files beside it say (.npy, .npz, HDF5, Parquet, Arrow, LMDB, TFRecord,
///             references, records, tokens), or its name (.jsonl, .csv, .tsv). Else: a tar shard
///   address   https://, http:// and s3:// are read by ranges; one that ends with a slash is a folder. See
///             docs/guides/object-storage.md
///   throws   as the functions that it calls; error{errc::not_found} says what was looked for; error{errc::unsupported}
///            an address that leat does not read (hf://), or a file of a kind that leat does not read;
///            error{errc::usage} a folder of classes together with one without, whose pictures would have no label; a
///            .bin file that nothing describes
[[nodiscard]] dataset open(const source_names& sources, const open_options& options = {});

}  // namespace leat
#pragma GCC visibility pop

// LMDB databases.
#pragma once

#include <leat/compiler.hpp>
#include <leat/remote.hpp>
#include <leat/samples.hpp>
#include <leat/source_names.hpp>

#include <string>

#pragma GCC visibility push(default)
namespace leat {

/// Values of LMDB databases (version 0.9), in the order of their keys: the field "value", which is of pictures if the
/// first value is one. Keys with a field and a number ("image-000000001", "label-000000001"; "256-00017") are samples
/// with these fields. A Datum of Caffe has "data" and "label"; msgpack and pickles have the members of the first value.
/// The key is the name of a sample. Keys about the set ("num-samples", "length", "__len__", ...) are left out. Opening
/// reads only pages of the tree.
///   environments   folders with data.mdb, or files, by paths, brace lists and globs; or addresses of either
///   database       the name of a database. Empty (default): the main one, or the only one
///   threads        threads that read the trees. 0 (default): chosen for the machine
///   remote         for databases at addresses
///   throws         error{errc::not_found} a file, or a database, with those that are there; error{errc::format}
///                  damage, with file and offset; error{errc::unsupported} databases with several values for a key, and
///                  files of another version, with what to do; error{errc::usage} several named databases, and none
///                  was asked for
///   limit          a program that writes to it during a run ends the run (errc::changed), since it may overwrite what
///                  is read
///   source         OpenLDAP, liblmdb 0.9
struct lmdb_options {
  std::string database = {};
  unsigned threads = 0;
  remote_options remote = {};
};
[[nodiscard]] dataset open_lmdb(const source_names& environments, const lmdb_options& options = {});

}  // namespace leat
#pragma GCC visibility pop

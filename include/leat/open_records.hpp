// Records of one size.
#pragma once

#include <leat/compiler.hpp>
#include <leat/remote.hpp>
#include <leat/samples.hpp>
#include <leat/source_names.hpp>

#pragma GCC visibility push(default)
namespace leat {

///   remote   for files at addresses
struct record_options {
  remote_options remote = {};
};

/// Records of one size, one after another in `name.bin`. `name.json` beside it describes them:
///
///     {"fields": [{"name": "x", "dtype": "f32", "shape": [3, 224, 224]}, {"name": "y", "dtype": "i64"}],
///      "records": 50000, "header_bytes": 0}
///
/// A record is the bytes of its fields in this order, without gaps, little-endian. Without "shape" a field is one
/// number, without "records" the file's size says how many there are, and "header_bytes" is 0. Each field is of
/// field_kind::tensor, for leat::array.
///   files    the .bin files, by path, brace list or glob; several follow one another and have the same fields
///   throws   error{errc::not_found} a file, or the JSON beside it; error{errc::format} names what is wrong in the
///            JSON, or sizes that do not fit together; error{errc::usage} files of different fields
[[nodiscard]] dataset open_records(const source_names& files, const record_options& options = {});

}  // namespace leat
#pragma GCC visibility pop

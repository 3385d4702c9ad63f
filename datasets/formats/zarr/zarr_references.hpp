// References to the chunks of a Zarr hierarchy, which may lie in any files: the JSON that kerchunk writes and fsspec reads.
#pragma once

#include "datasets/formats/zarr/zarr_store.hpp"

#include <leat/remote.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace leat::datasets {

class input_files;

/// Whether a file begins as references do: a JSON object with "refs", or with keys of Zarr's metadata.
[[nodiscard]] bool is_references(std::span<const std::byte> start);
/// The same of the first 64 KiB of a file.
[[nodiscard]] bool is_references(const std::string& path);

/// Of version 0 (an object of keys) and 1 ("refs", with "templates" that are names). Looks at the size of each file that is referred to.
/// One at an address is refused where a chunk of it is looked for.
///   path     of the JSON, against whose folder relative paths are taken
///   content  of it
///   throws   error{errc::format} what is no such JSON, with its key; error{errc::unsupported} "gen", other versions, templates that
///            compute
///   source   fsspec.github.io/kerchunk/spec.html; fsspec/implementations/reference.py
[[nodiscard]] std::unique_ptr<zarr_store> zarr_of_references(const std::string& path,
                                                             std::span<const std::byte> content);
/// The same of a file of a disk.
///   throws   error{errc::not_found}, error{errc::io}; error{errc::limit} more than 512 MiB
[[nodiscard]] std::unique_ptr<zarr_store> zarr_of_references(const std::string& path);
/// The same, where all of them may lie at addresses.
///   from   is set to where they lie, and outlives the result
[[nodiscard]] std::unique_ptr<zarr_store> zarr_of_references(const std::string& path, const remote_options& options,
                                                             std::shared_ptr<const input_files>& from);
/// The same of a file at an address, which refers to files there: relative to its folder, or by whole addresses.
///   from   has all of them, and outlives the result
[[nodiscard]] std::unique_ptr<zarr_store> zarr_of_references(const std::string& path, const input_files& from);

}  // namespace leat::datasets

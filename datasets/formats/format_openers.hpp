// The formats, each opened from files that may lie anywhere. They throw as the functions of <leat/dataset.hpp>.
#pragma once

#include "datasets/files/input_files.hpp"

#include <leat/open_arrays.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_lmdb.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tar.hpp>
#include <leat/open_tokens.hpp>
#include <leat/samples.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

class listed_folder;
struct index_places;

[[nodiscard]] dataset open_npy_files(const input_files& files, const npy_options& options);
[[nodiscard]] dataset open_npz_files(const input_files& files, const npy_options& options);
[[nodiscard]] dataset open_hdf5_files(const input_files& files, const hdf5_options& options);
[[nodiscard]] dataset open_arrow_files(const input_files& files, const table_options& options);
[[nodiscard]] dataset open_csv_files(const input_files& files, const table_options& options);
[[nodiscard]] dataset open_jsonl_files(const input_files& files, const table_options& options);
[[nodiscard]] dataset open_lmdb_files(const input_files& files, const lmdb_options& options);
/// The shards that the index.json of `folder` lists, which are among these.
[[nodiscard]] dataset open_mds_files(const input_files& files, const std::string& folder, const table_options& options);
[[nodiscard]] dataset open_text_files(const input_files& files, const table_options& options);
[[nodiscard]] dataset open_tfrecord_files(const input_files& files, const table_options& options);
[[nodiscard]] dataset open_parquet_files(const input_files& files, const table_options& options);
/// A hierarchy in a folder of a disk.
[[nodiscard]] dataset open_zarr_folder(const std::string& folder, const zarr_options& options);
/// One below `folder`, all of whose files are among these.
[[nodiscard]] dataset open_zarr_files(const input_files& files, const std::string& folder, const zarr_options& options);
/// Pictures of a folder of a disk.
[[nodiscard]] dataset open_pictures_in(const std::string& folder, const folder_options& options);
/// Those that a listing has told of.
[[nodiscard]] dataset open_listed_pictures(const listed_folder& folder, const folder_options& options,
                                           const remote_options& remote);
[[nodiscard]] dataset open_record_files(const input_files& files);
/// Tar shards of a disk, by patterns.
[[nodiscard]] dataset open_shards_on_disk(std::span<const std::string> patterns, const tar_options& options);
/// All files of a source that is no disk, as tar shards. An index of them is kept by their sizes and versions: where one is used, each file is
/// opened and no header read. index_use::trust is index_use::check here.
///   beside   where indexes may lie that others have written; asked where none is kept here, but for index_use::rebuild. Empty: nowhere
[[nodiscard]] dataset open_shards_of_source(std::shared_ptr<const io::source_description> shards,
                                            const tar_options& options,
                                            const std::function<index_places()>& beside = {});
[[nodiscard]] dataset open_token_files(const input_files& files, const token_options& options);

/// What the address of an environment of LMDB, or of tokens, may stand for.
[[nodiscard]] std::vector<std::string> beside_environment(const std::string& path);
[[nodiscard]] std::vector<std::string> beside_tokens(const std::string& path);

}  // namespace leat::datasets

// Where the keys of a Zarr hierarchy lead: to the files of a folder, or through references to parts of any files.
#pragma once

#include "datasets/files/input_files.hpp"
#include "datasets/tables/chunked_array.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace leat::datasets {

/// Not damaged: of a kind that is not read. In words, and what to do.
struct zarr_not_read {
  std::string why;
};

/// What a key stands for.
///   offset   in its file; chunk_place::absent: there is nothing
///   version  of its file, as sized_file::version
///   held     where it is in memory: `bytes` of them, as long as the store lives
struct zarr_object {
  std::uint64_t offset = chunk_place::absent;
  std::uint64_t bytes = 0;
  std::uint64_t version = 0;
  const std::byte* held = nullptr;

  [[nodiscard]] bool is_there() const noexcept { return held != nullptr || offset != chunk_place::absent; }
};

/// Keys have the form "train/images/0.0". A group is named by its path without a slash at either end; the root is "".
/// Thread: const members any, several at once.
class zarr_store {
 public:
  zarr_store() = default;
  zarr_store(const zarr_store&) = delete;
  zarr_store& operator=(const zarr_store&) = delete;
  virtual ~zarr_store() = default;

  /// What a person calls the whole: the folder, or the file of references.
  [[nodiscard]] virtual const std::string& title() const noexcept = 0;
  /// The same of a key; an empty one is the whole.
  [[nodiscard]] std::string where(const std::string& key) const;

  [[nodiscard]] virtual bool has(const std::string& key) const = 0;
  /// The content of a key that is there.
  ///   throws   error{errc::io}; error{errc::format} more than metadata_bytes_max
  [[nodiscard]] virtual std::vector<std::byte> metadata(const std::string& key) const = 0;
  /// The key whose content has that of `key`: itself, or the root's, which may have the metadata of all.
  [[nodiscard]] virtual std::string metadata_key(const std::string& key) const { return key; }
  /// What lies directly below a group and may be a group or an array, sorted.
  ///   throws   error{errc::unsupported} where nothing can be listed
  [[nodiscard]] virtual std::vector<std::string> names_in(const std::string& group) const = 0;

  /// Says which keys find() will be asked for, as input_files::expect().
  virtual void expect(std::uint64_t /*count*/, const std::function<std::string(std::uint64_t)>& /*key*/) const {}
  ///   throws   error{errc::io}; error{errc::not_found} a reference to a file that is not there; zarr_not_read one to what is no file
  [[nodiscard]] virtual zarr_object find(const std::string& key) const = 0;
  /// Bytes of an object that is there, from `offset` of it on; fewer where its file has fewer.
  [[nodiscard]] virtual std::vector<std::byte> read(const std::string& key, const zarr_object& object,
                                                    std::uint64_t offset, std::uint64_t bytes) const = 0;
  /// The number in `files`, which gets it where it is new, of the file that an object lies in. The same `files` at each call.
  [[nodiscard]] virtual std::uint32_t number_of_file(const std::string& key, const zarr_object& object,
                                                     std::vector<sized_file>& files) = 0;

  static constexpr std::uint64_t metadata_bytes_max = std::uint64_t{64} << 20;
};

/// Whether the folder is a group or an array of Zarr, version 2 or 3.
[[nodiscard]] bool is_zarr(const input_files& files, const std::string& folder);
/// The same of one on a disk.
[[nodiscard]] bool is_zarr(const std::string& folder);

/// Files below `folder` of any source: each key is one of them. Refers to `files`.
[[nodiscard]] std::unique_ptr<zarr_store> zarr_in_files(const input_files& files, const std::string& folder);

/// A folder: each key is a file in it.
[[nodiscard]] std::unique_ptr<zarr_store> zarr_in_folder(const std::string& folder);

}  // namespace leat::datasets

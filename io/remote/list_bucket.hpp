// All names of a bucket that begin alike, asked for in many places at once where they lie in folders.
#pragma once

#include "io/remote/s3_listing.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leat::io {

/// The folders [begin, end) of a list, and what the names of these begin with and the others' do not.
struct folder_group {
  std::string prefix;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Divides folders until there are `groups_max` groups of them, or one for each. A character is not cut.
///   folders   "train/n01440764/": UTF-8, sorted, each once, and none begins with another one
///   returns   in the order of the folders; of no folders none
[[nodiscard]] std::vector<folder_group> group_folders(std::span<const std::string> folders, std::size_t groups_max);

/// All objects whose keys begin with `prefix`, in the order of their bytes. Blocks. Where the first thousand show folders with many objects,
/// the folders are asked for (delimiter=/) and listed side by side, 32 requests at a time, in up to 128 groups; where a store answers with
/// something that this does not rest on, one page after another.
///   pages_max   answers; the rest is left out
///   throws      error{errc::permission}, error{errc::not_found}, error{errc::io}: what the store says, or a listing of something else than was
///               asked for, with a key twice, or without an end; error{errc::limit} more than ten million
[[nodiscard]] std::vector<s3_listed> list_bucket(const std::string& bucket, const std::string& prefix,
                                                 const s3_access& store, const remote_options& options,
                                                 std::uint64_t pages_max = ~std::uint64_t{0});

}  // namespace leat::io

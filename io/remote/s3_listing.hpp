// The names in a bucket, as ListObjectsV2 gives them.
#pragma once

#include "io/remote/s3.hpp"

#include <leat/remote.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat::io {

inline constexpr std::size_t s3_page_bytes_max = std::size_t{16} << 20;
inline constexpr std::size_t s3_names_max = 10'000'000;

///   etag   in its quotes, as answers have it; empty where none is told
struct s3_listed {
  std::string key;
  std::uint64_t size_bytes = 0;
  std::string etag = {};
};

/// One page of a listing.
///   folders   where it was asked for with a delimiter: "train/n01440764/", in which further objects lie
///   next      the token of the next page; empty on the last one
struct s3_page {
  std::vector<s3_listed> objects;
  std::vector<std::string> folders = {};
  std::string next = {};
};
/// Its keys are decoded where it says that they are encoded. Nothing where it is no such listing.
[[nodiscard]] std::optional<s3_page> parse_s3_page(std::string_view xml);

}  // namespace leat::io

// Recognises a file by its first bytes, for messages about files that were taken for something else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

enum class content_group : std::uint8_t {
  unknown,
  text,        ///< of any kind
  picture,     ///< of any format, whether leat decodes it or not
  compressed,  ///< one stream: gzip, zstd, bzip2, xz, lz4
  container,   ///< a format that holds data: zip, HDF5, Parquet ...
  foreign      ///< a format that does not hold training data
};

/// The kind of a file.
///   name   in words: "a JPEG", "gzip", "text, '<!DOCTYPE html>...'"; empty if the kind is not known
struct content_kind {
  content_group group = content_group::unknown;
  std::string name;
};

/// How many bytes content_of() looks at, if the file has so many.
inline constexpr std::size_t content_bytes = 512;

[[nodiscard]] content_kind content_of(std::span<const std::byte> start);

/// What to do with such a file that was given as a source, as the end of a sentence: "; give the folder that it lies in". Empty
/// if there is no advice.
[[nodiscard]] std::string advice_about(const content_kind& found);

/// The first `bytes` bytes of a file, or all if it has fewer; none if it cannot be read.
[[nodiscard]] std::vector<std::byte> start_of_file(const std::string& path, std::size_t bytes = content_bytes);

}  // namespace leat::datasets

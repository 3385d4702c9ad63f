// What a file is, judged by how it begins: for messages about one that was taken for something else.
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
  text,        ///< whatever it says
  picture,     ///< of any format, whether leat decodes it or not
  compressed,  ///< one stream: gzip, zstd, bzip2, xz, lz4
  container,   ///< of data, in a format of its own: zip, HDF5, Parquet ...
  foreign      ///< nothing that training data is kept in
};

/// What a file begins as.
///   name   as a person would say it: "a JPEG", "gzip", "text, '<!DOCTYPE html>...'"; empty where nothing is known
struct content_kind {
  content_group group = content_group::unknown;
  std::string name;
};

/// Bytes that content_of() wants to see, where there are so many.
inline constexpr std::size_t content_bytes = 512;

[[nodiscard]] content_kind content_of(std::span<const std::byte> start);

/// What to do about such a file where a source was expected, as the end of a sentence: "; give the folder that it lies in".
/// Empty where there is nothing to say.
[[nodiscard]] std::string advice_about(const content_kind& found);

/// The first bytes of a file, as many as `bytes`; none where it cannot be read.
[[nodiscard]] std::vector<std::byte> start_of_file(const std::string& path, std::size_t bytes = content_bytes);

}  // namespace leat::datasets

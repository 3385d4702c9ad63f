// The header of a .npy file: magic, version, and a Python dict literal.
#pragma once

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// What an array is.
///   shape         all axes, including the first
///   data_offset   of its first element from the magic on, in bytes
///   data_bytes    of all elements
struct npy_header {
  dtype type = dtype::u8;
  std::vector<std::uint64_t> shape;
  std::uint64_t data_offset = 0;
  std::uint64_t data_bytes = 0;

  /// Axes behind the first.
  [[nodiscard]] dimensions row_shape() const;
};

/// How a header starts: enough to know its length.
inline constexpr std::size_t npy_prefix_bytes = 12;
/// Of the literal. NumPy itself takes 10,000 characters unless told otherwise.
inline constexpr std::size_t npy_header_bytes_max = std::size_t{1} << 20;

/// Whether a file starts as a .npy does.
[[nodiscard]] bool is_npy(std::span<const std::byte> start) noexcept;

/// Reads bytes offset .. offset + bytes - 1 of the file, or what it has of them.
using byte_reader = std::function<std::vector<std::byte>(std::uint64_t offset, std::uint64_t bytes)>;

/// Understands the header at the start of what `read` reads.
///   where          names the file in errors
///   bytes_there    that the file (or the member of an archive) has in all
///   throws         error{errc::format}, error{errc::unsupported} as open_npy()
///   source         numpy.lib.format
[[nodiscard]] npy_header read_npy_header(const std::string& where, std::uint64_t bytes_there, const byte_reader& read);

/// The same of a whole file in memory.
[[nodiscard]] npy_header read_npy_header(const std::string& where, std::span<const std::byte> file);

/// Whether a field's values are .npy files, as shards of WebDataset have them: "ids.npy", or "npy".
[[nodiscard]] bool is_npy_member(std::string_view field) noexcept;

/// The dict alone, `data_offset` and the file's size left aside.
[[nodiscard]] npy_header parse_npy_dict(const std::string& where, std::string_view dict);

}  // namespace leat::datasets

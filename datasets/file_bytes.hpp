// A few bytes of a file for those who open datasets: headers, indexes. Read at once and waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// A regular file, open. Thread: one at a time.
class file_bytes {
 public:
  ///   throws   error{errc::not_found}, error{errc::permission}, error{errc::io}; error{errc::usage} for what is no regular
  ///            file
  explicit file_bytes(const std::string& path);
  file_bytes(const file_bytes&) = delete;
  file_bytes& operator=(const file_bytes&) = delete;
  ~file_bytes();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Fills `into`, or as much of it as the file has from there on; returns what it filled.
  ///   throws   error{errc::io} with path and offset
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) const;
  /// So many bytes, or what the file has of them.
  [[nodiscard]] std::vector<std::byte> read(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// A little-endian number at `offset` of `bytes`, which has it.
template <class T>
[[nodiscard]] T number_at(std::span<const std::byte> bytes, std::size_t offset);

}  // namespace leat::datasets

#include <bit>
#include <cassert>
#include <cstring>

namespace leat::datasets {

template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t offset) {
  static_assert(std::endian::native == std::endian::little, "files are little-endian, and read as they are");
  assert(offset + sizeof(T) <= bytes.size());
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

}  // namespace leat::datasets

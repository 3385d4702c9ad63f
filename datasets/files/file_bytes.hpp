// Small blocking reads of a file, for opening datasets: headers, indexes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::datasets {

/// A file that is looked at: of a disk, or of any other source (datasets/files/input_files.hpp). Thread: one at a time.
class file_bytes {
 public:
  file_bytes(const file_bytes&) = delete;
  file_bytes& operator=(const file_bytes&) = delete;
  virtual ~file_bytes() = default;

  /// Its path or address.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Changes when the content does; 0: it is not known.
  [[nodiscard]] virtual std::uint64_t version() const { return 0; }

  /// Fills `into`, or as much of it as the file has from there on; returns what it filled.
  ///   throws   error{errc::io} with path and offset
  virtual std::size_t read(std::uint64_t offset, std::span<std::byte> into) const = 0;
  /// Bytes that are wanted. `into` becomes shorter where the file ends before it does.
  struct piece {
    std::uint64_t offset = 0;
    std::span<std::byte> into;
  };
  /// Fills all of them, waiting for them together. Throws as read().
  virtual void read_all(std::span<piece> pieces) const;
  /// `bytes` bytes, or as many of them as the file has.
  [[nodiscard]] std::vector<std::byte> read(std::uint64_t offset, std::uint64_t bytes) const;

 protected:
  explicit file_bytes(std::string path) : path_(std::move(path)) {}
  void set_size(std::uint64_t bytes) noexcept { size_ = bytes; }

 private:
  std::string path_;
  std::uint64_t size_ = 0;
};

/// A regular file of a disk, open. Opening ten thousand of them costs a few system calls each, on the threads that ask.
class local_file final : public file_bytes {
 public:
  ///   throws   error{errc::not_found}, error{errc::permission}, error{errc::io}; error{errc::usage} for what is no regular
  ///            file
  explicit local_file(const std::string& path);
  ~local_file() override;

  std::uint64_t version() const override;
  using file_bytes::read;
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) const override;
  /// Copies what lies in the page cache, requests all the rest at once, and then waits for it.
  void read_all(std::span<piece> pieces) const override;

 private:
  int descriptor_ = -1;
};

/// A little-endian number at `offset` of `bytes`, within its end.
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

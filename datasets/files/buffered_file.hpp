// Bytes of a file, through a buffer that moves on with requests in file order: for headers and lengths, which are many and small.
#pragma once

#include "datasets/files/cursor.hpp"
#include "datasets/files/file_bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::datasets {

class buffered_file {
 public:
  ///   ahead_bytes   what is read at once, where fewer are asked for
  explicit buffered_file(const file_bytes& file, std::uint64_t ahead_bytes = 4096) noexcept
      : file_(file), ahead_bytes_(ahead_bytes) {}

  void read_ahead(std::uint64_t bytes) noexcept { ahead_bytes_ = bytes; }

  /// Valid until the next call.
  ///   throws   error{errc::format} where the file ends before
  [[nodiscard]] std::span<const std::byte> view(std::uint64_t offset, std::uint64_t bytes) {
    const bool seen =
        offset >= begin_ && offset - begin_ <= bytes_.size() && bytes <= bytes_.size() - (offset - begin_);
    if (!seen) fill(offset, bytes);
    return std::span(bytes_).subspan(offset - begin_, bytes);
  }
  [[nodiscard]] cursor at(std::uint64_t offset, std::uint64_t bytes) {
    return {file_.path(), view(offset, bytes), offset};
  }

  [[nodiscard]] const file_bytes& file() const noexcept { return file_; }

 private:
  void fill(std::uint64_t offset, std::uint64_t bytes);

  const file_bytes& file_;
  std::uint64_t ahead_bytes_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace leat::datasets

// A file that a fuzzer made up.
#pragma once

#include "datasets/files/file_bytes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace leat::testing {

class bytes_in_memory final : public datasets::file_bytes {
 public:
  explicit bytes_in_memory(std::span<const std::byte> bytes, std::string name = "made-up")
      : file_bytes(std::move(name)), bytes_(bytes) {
    set_size(bytes.size());
  }
  using file_bytes::read;
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) const override {
    if (offset >= bytes_.size()) return 0;
    const std::span<const std::byte> from = bytes_.subspan(offset);
    const std::size_t count = std::min(from.size(), into.size());
    if (count != 0) std::memcpy(into.data(), from.data(), count);
    return count;
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace leat::testing

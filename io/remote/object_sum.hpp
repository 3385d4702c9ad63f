// What a store tells of an object's bytes, beside what has come.
#pragma once

#include "io/remote/http_head.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace leat::io {

/// A checksum of an object.
///   name   of the header: "x-amz-checksum-crc32c"
///   told   in base64
struct object_sum {
  enum class kind : std::uint8_t { crc32, crc32c, crc64nvme };
  kind how;
  std::string told;

  [[nodiscard]] const char* name() const noexcept;
  /// Whether it is that of all bytes of the object.
  [[nodiscard]] bool is_of(std::span<const std::byte> bytes) const;
};

/// The one that costs least of those that an answer has; nothing where it has none that leat computes, or sums of parts.
[[nodiscard]] std::optional<object_sum> object_sum_of(const http_head& head);

}  // namespace leat::io

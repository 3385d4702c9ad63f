#include "io/remote/object_sum.hpp"

#include "base/base64.hpp"
#include "base/crc32c.hpp"
#include "base/crc64nvme.hpp"
#include "base/text.hpp"

#include <libdeflate.h>

#include <cstdint>

namespace leat::io {
namespace {

// As stores write it: the highest byte first.
std::string in_base64(std::uint64_t sum, unsigned bytes) {
  std::string text;
  for (unsigned left = bytes; left-- > 0;) text += static_cast<char>(sum >> (8 * left) & 0xFF);
  return to_base64(text);
}

}  // namespace

const char* object_sum::name() const noexcept {
  switch (how) {
    case kind::crc32:
      return "x-amz-checksum-crc32";
    case kind::crc32c:
      return "x-amz-checksum-crc32c";
    case kind::crc64nvme:
      break;
  }
  return "x-amz-checksum-crc64nvme";
}

bool object_sum::is_of(std::span<const std::byte> bytes) const {
  switch (how) {
    case kind::crc32:
      return told == in_base64(::libdeflate_crc32(0, bytes.data(), bytes.size()), 4);
    case kind::crc32c:
      return told == in_base64(crc32c(bytes), 4);
    case kind::crc64nvme:
      break;
  }
  return told == in_base64(crc64nvme(bytes), 8);
}

std::optional<object_sum> object_sum_of(const http_head& head) {
  if (!head.checksum_type.empty() && head.checksum_type != "FULL_OBJECT") return std::nullopt;
  const auto is_of_all = [](const std::string& told) { return !told.empty() && told.find('-') == std::string::npos; };
  if (is_of_all(head.crc32c)) return object_sum{object_sum::kind::crc32c, head.crc32c};
  if (is_of_all(head.crc32)) return object_sum{object_sum::kind::crc32, head.crc32};
  if (is_of_all(head.crc64nvme)) return object_sum{object_sum::kind::crc64nvme, head.crc64nvme};
  return std::nullopt;
}

}  // namespace leat::io

// Members of a protocol buffer, one after another, found without protobuf.
#pragma once

#include "base/text.hpp"

#include <leat/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace leat {

/// How a member lies in its message.
///   source   protobuf.dev: Encoding
enum class proto_wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// Whatever goes wrong throws error{errc::format} with the offset in the message. It copies none of the bytes.
class proto_message {
 public:
  explicit proto_message(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  /// False at the end. Each is taken before the next one is asked for.
  bool next() {
    if (at_ == bytes_.size()) return false;
    const std::uint64_t tag = varint();
    number_ = tag >> 3;
    type_ = static_cast<proto_wire>(tag & 7);
    switch (type_) {
      case proto_wire::varint:
        integer_ = varint();
        return true;
      case proto_wire::fixed64:
        value_ = take(8);
        return true;
      case proto_wire::fixed32:
        value_ = take(4);
        return true;
      case proto_wire::bytes:
        value_ = take(varint());
        return true;
    }
    fail("a member of no type that protocol buffers have");
  }
  [[nodiscard]] bool is(std::uint64_t number, proto_wire type) const noexcept {
    return number_ == number && type_ == type;
  }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] proto_wire type() const noexcept { return type_; }
  [[nodiscard]] std::uint64_t integer() const noexcept { return integer_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return value_; }
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(value_.data()), value_.size()};
  }
  /// Of a member of four bytes.
  [[nodiscard]] float number_f32() const noexcept {
    float value = 0;
    std::memcpy(&value, value_.data(), sizeof value);
    return value;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw error(errc::format, str_cat("at offset ", at_, " of a protocol buffer: ", what, "; is it damaged, or cut?"));
  }
  std::span<const std::byte> take(std::uint64_t bytes) {
    if (bytes > bytes_.size() - at_) {
      fail(str_cat("it ends ", bytes_.size() - at_, " bytes further on, within ", bytes, " bytes of it"));
    }
    const std::span<const std::byte> taken = bytes_.subspan(at_, static_cast<std::size_t>(bytes));
    at_ += taken.size();
    return taken;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = std::to_integer<std::uint8_t>(take(1).front());
      const std::uint64_t bits = byte & 0x7FU;
      if (shift == 63 && bits > 1) break;
      value |= bits << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    fail("a number of more than 64 bits");
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::uint64_t number_ = 0;
  proto_wire type_ = proto_wire::varint;
  std::uint64_t integer_ = 0;
  std::span<const std::byte> value_;
};

}  // namespace leat

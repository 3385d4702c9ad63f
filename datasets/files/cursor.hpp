// Bytes of a file's headers, read one after another and never beyond their end: for walkers of formats.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace leat::datasets {

/// The path of bytes that are no file of their own.
inline const std::string no_file = "the record";

/// Whatever goes wrong throws error{errc::format} with the file and the offset. It copies neither the path nor the bytes.
class cursor {
 public:
  ///   offset   of the first of these bytes in the file
  cursor(const std::string& path, std::span<const std::byte> bytes, std::uint64_t offset) noexcept
      : path_(&path), bytes_(bytes), offset_(offset) {}

  [[nodiscard]] std::span<const std::byte> take(std::uint64_t bytes) {
    if (bytes > left()) fail_short(bytes);
    const std::span<const std::byte> taken = bytes_.subspan(at_, static_cast<std::size_t>(bytes));
    at_ += taken.size();
    return taken;
  }
  void skip(std::uint64_t bytes) { static_cast<void>(take(bytes)); }
  [[nodiscard]] std::string_view text(std::uint64_t bytes) {
    const std::span<const std::byte> taken = take(bytes);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

  /// A little-endian number.
  template <class T>
  [[nodiscard]] T number() {
    static_assert(std::endian::native == std::endian::little, "files are little-endian, and read as they are");
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  /// 7 bits a byte, the lowest first (LEB128); what does not fit 64 bits is damaged.
  [[nodiscard]] std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = number<std::uint8_t>();
      const std::uint64_t bits = byte & 0x7FU;
      if (shift == 63 && bits > 1) break;
      value |= bits << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    fail("a number of more than 64 bits");
  }
  /// Likewise, of signed numbers: 0, -1, 1, -2 ...
  [[nodiscard]] std::int64_t zigzag() {
    const std::uint64_t value = varint();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }

  [[nodiscard]] std::uint64_t left() const noexcept { return bytes_.size() - at_; }
  /// Of the next byte, in the file.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_ + at_; }
  [[nodiscard]] const std::string& path() const noexcept { return *path_; }
  [[noreturn]] void fail(std::string_view what) const;

 private:
  [[noreturn]] void fail_short(std::uint64_t bytes) const;

  const std::string* path_;
  std::span<const std::byte> bytes_;
  std::uint64_t offset_;
  std::size_t at_ = 0;
};

/// Throws error{errc::format}: the bytes at this offset are wrong.
[[noreturn]] void fail_at(const std::string& path, std::uint64_t offset, std::string_view what);

}  // namespace leat::datasets

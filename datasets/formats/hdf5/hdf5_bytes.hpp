// The bytes of an HDF5 file: its superblock, and a cursor that never leaves what was read.
#pragma once

#include "datasets/files/file_bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

class hdf5_bytes;

/// Reads numbers one after another. Whatever goes wrong throws error{errc::format} with the file and the offset.
class hdf5_cursor {
 public:
  /// Nothing was ever written where an address is this.
  static constexpr std::uint64_t undefined = ~std::uint64_t{0};

  ///   offset   of the first of these bytes in the file
  hdf5_cursor(const hdf5_bytes& file, std::span<const std::byte> bytes, std::uint64_t offset)
      : file_(&file), bytes_(bytes), offset_(offset) {}

  /// Little-endian, of 1 to 8 bytes.
  [[nodiscard]] std::uint64_t number(std::size_t bytes);
  [[nodiscard]] std::uint64_t address();
  /// As wide as the file's lengths are.
  [[nodiscard]] std::uint64_t length();
  void skip(std::uint64_t bytes);
  /// Throws unless the next bytes are these.
  void expect(std::string_view signature);
  [[nodiscard]] bool begins_with(std::string_view signature) const noexcept;
  [[nodiscard]] std::span<const std::byte> take(std::uint64_t bytes);
  /// Text of a fixed size, up to its first zero byte.
  [[nodiscard]] std::string text(std::uint64_t bytes);
  /// Text that ends with a zero byte, which is taken too.
  [[nodiscard]] std::string text_to_zero();

  [[nodiscard]] std::uint64_t left() const noexcept { return bytes_.size() - at_; }
  /// Offset in the file of what comes next.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_ + at_; }
  [[noreturn]] void fail(std::string_view what) const;

 private:
  [[noreturn]] void fail_size(std::uint64_t bytes) const;

  const hdf5_bytes* file_;
  std::span<const std::byte> bytes_;
  std::uint64_t offset_;
  std::size_t at_ = 0;
};

/// Some bytes of the file.
struct hdf5_block {
  const hdf5_bytes* file = nullptr;
  std::vector<std::byte> bytes;
  std::uint64_t offset = 0;

  [[nodiscard]] hdf5_cursor cursor() const { return {*file, bytes, offset}; }
};

/// Offset of the superblock: 0, or 512, 1024, 2048 and so on behind bytes of the user's. None: it is no HDF5 file.
[[nodiscard]] std::optional<std::uint64_t> hdf5_signature(const file_bytes& file);

class hdf5_bytes {
 public:
  /// What is read at once, of headers and indexes.
  static constexpr std::uint64_t block_bytes_max = std::uint64_t{64} << 20;

  ///   throws   error{errc::format} a file without a superblock, or with a damaged one; error{errc::unsupported} a version that is not
  ///            known, and a file that is open for writing
  explicit hdf5_bytes(const file_bytes& file);

  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }
  [[nodiscard]] std::uint64_t size() const noexcept { return file_.size(); }
  [[nodiscard]] std::uint64_t root() const noexcept { return root_; }
  /// Address of the object whose messages are about the file; hdf5_cursor::undefined: it has none.
  [[nodiscard]] std::uint64_t extension() const noexcept { return extension_; }
  [[nodiscard]] std::size_t address_bytes() const noexcept { return address_bytes_; }
  [[nodiscard]] std::size_t length_bytes() const noexcept { return length_bytes_; }
  /// Where an address lies in the file.
  [[nodiscard]] std::uint64_t offset_of(std::uint64_t address) const;

  [[nodiscard]] hdf5_block read(std::uint64_t address, std::uint64_t bytes) const;
  /// Likewise, of bytes that 4 bytes of checksum follow.
  [[nodiscard]] hdf5_block read_checked(std::uint64_t address, std::uint64_t bytes) const;
  /// Throws error{errc::format} where `stored` is another checksum than that of `bytes`, which begin at `offset`.
  void verify(std::span<const std::byte> bytes, std::uint32_t stored, std::uint64_t offset) const;
  /// Data at an offset of the file, which is no address; fewer where the file ends.
  [[nodiscard]] std::vector<std::byte> bytes_at(std::uint64_t offset, std::uint64_t bytes) const;
  /// Fewer where the file ends.
  [[nodiscard]] hdf5_block read_up_to(std::uint64_t address, std::uint64_t bytes) const;

  struct range {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  /// Says what is going to be read: it is read at once, so that a level of an index is waited for once. What does not lie in the file is
  /// left out.
  void read_ahead(std::span<const range> ranges);
  /// Visits items in their order, what is going to be read of each being read ahead, many at a time.
  ///   range_of   of an item, with the checksum where there is one
  template <typename Item, typename RangeOf, typename Visit>
  void visit_ahead(std::span<const Item> items, RangeOf&& range_of, Visit&& visit);

  /// A node of a tree, a header or a block of an index was looked at. A file has room for so many, and an index that goes in a circle
  /// looks at more.
  void count_node(std::uint64_t address);

  /// A path was made of so many bytes. Links may share the bytes of their names, and a file has no use for more paths than this allows.
  void count_path(std::uint64_t bytes);

  [[noreturn]] void fail(std::uint64_t offset, std::string_view what) const;
  /// Not damaged, and not read all the same: throws error{errc::unsupported}.
  [[noreturn]] void refuse(std::uint64_t offset, std::string_view what) const;

 private:
  const file_bytes& file_;
  std::uint64_t base_ = 0;
  std::uint64_t root_ = 0;
  std::uint64_t extension_ = hdf5_cursor::undefined;
  std::size_t address_bytes_ = 8;
  std::size_t length_bytes_ = 8;
  std::uint64_t nodes_ = 0;
  std::uint64_t path_bytes_ = 0;
  std::map<std::uint64_t, std::vector<std::byte>> ahead_;  // by offset
  std::uint64_t ahead_bytes_ = 0;

  static constexpr std::uint64_t ahead_bytes_max_ = std::uint64_t{8} << 20;
};

// Millions of numbers are read of large indexes: what follows is inlined there.

inline std::span<const std::byte> hdf5_cursor::take(std::uint64_t bytes) {
  if (bytes > left()) [[unlikely]]
    fail_size(bytes);
  const std::span<const std::byte> taken = bytes_.subspan(at_, static_cast<std::size_t>(bytes));
  at_ += taken.size();
  return taken;
}

inline void hdf5_cursor::skip(std::uint64_t bytes) { static_cast<void>(take(bytes)); }

inline std::uint64_t hdf5_cursor::number(std::size_t bytes) {
  if (bytes - 1 >= 8) [[unlikely]]
    fail_size(bytes);
  const bool has_eight = left() >= 8;
  const std::span<const std::byte> from = take(bytes);
  if (has_eight) return number_at<std::uint64_t>({from.data(), 8}, 0) & (~std::uint64_t{0} >> (64 - 8 * bytes));
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(from[i]);
  return value;
}

inline std::uint64_t hdf5_cursor::address() {
  const std::size_t bytes = file_->address_bytes();
  const std::uint64_t value = number(bytes);
  return bytes < 8 && value == (std::uint64_t{1} << (8 * bytes)) - 1 ? undefined : value;
}

inline std::uint64_t hdf5_cursor::length() { return number(file_->length_bytes()); }

inline std::uint64_t hdf5_bytes::offset_of(std::uint64_t address) const {
  if (address > size() || base_ > size() - address) [[unlikely]]
    fail(address, "an address outside the file");
  return base_ + address;
}

template <typename Item, typename RangeOf, typename Visit>
void hdf5_bytes::visit_ahead(std::span<const Item> items, RangeOf&& range_of, Visit&& visit) {
  constexpr std::size_t ranges_max = 1024;
  std::vector<range> next;
  for (std::size_t i = 0, end = 0; i < items.size(); ++i) {
    if (i == end) {
      next.clear();
      for (std::uint64_t bytes = 0; end < items.size() && next.size() < ranges_max; ++end) {
        const range wanted = range_of(items[end]);
        if (bytes != 0 && bytes + wanted.bytes > ahead_bytes_max_) break;
        bytes += wanted.bytes;
        next.push_back(wanted);
      }
      read_ahead(next);
    }
    visit(items[i]);
  }
}

}  // namespace leat::datasets

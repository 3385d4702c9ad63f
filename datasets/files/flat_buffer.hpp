// Tables in a FlatBuffer, as Arrow's metadata are written.
#pragma once

#include "datasets/files/cursor.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace leat::datasets {

/// Every offset is looked at before it is followed. Throws error{errc::format} with the file and the offset.
///   source   flatbuffers.dev: internals
class flat_table {
 public:
  /// The table that a buffer begins with.
  ///   offset   of the buffer in the file
  [[nodiscard]] static flat_table root(const std::string& path, std::span<const std::byte> buffer,
                                       std::uint64_t offset);

  /// The number in field number `field`; `otherwise` if the field is left out.
  template <class T>
  [[nodiscard]] T number(unsigned field, T otherwise = {}) const {
    const std::size_t at = place_of(field);
    return at == 0 ? otherwise : read<T>(at);
  }
  [[nodiscard]] std::optional<flat_table> table(unsigned field) const;
  [[nodiscard]] std::string_view text(unsigned field) const;

  /// A vector: how many elements it has, and where the first lies; none where it is left out.
  struct elements {
    std::size_t count = 0;
    std::size_t at = 0;
  };
  [[nodiscard]] elements vector(unsigned field, std::size_t element_bytes) const;
  /// An element of a vector of tables.
  [[nodiscard]] flat_table table_at(const elements& of, std::size_t i) const;
  /// A number within an element of a vector, at so many bytes from the first element.
  template <class T>
  [[nodiscard]] T number_at(const elements& of, std::size_t bytes) const {
    return read<T>(of.at + bytes);
  }

  [[noreturn]] void fail(std::string_view what) const;

 private:
  flat_table(const std::string& path, std::span<const std::byte> buffer, std::uint64_t offset, std::size_t at);

  template <class T>
  [[nodiscard]] T read(std::size_t at) const {
    if (at > buffer_.size() || sizeof(T) > buffer_.size() - at) fail("a FlatBuffer that ends before its values do");
    T value;
    std::memcpy(&value, buffer_.data() + at, sizeof value);
    return value;
  }
  /// In the buffer; 0: left out.
  [[nodiscard]] std::size_t place_of(unsigned field) const;
  /// Where the offset that is stored at `at` points.
  [[nodiscard]] std::size_t follow(std::size_t at) const;

  const std::string* path_;
  std::span<const std::byte> buffer_;
  std::uint64_t offset_;
  std::size_t at_;
  std::size_t fields_at_ = 0;
  std::size_t fields_bytes_ = 0;
};

}  // namespace leat::datasets

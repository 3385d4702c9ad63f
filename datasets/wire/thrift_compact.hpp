// Structures in Thrift's compact protocol, as Parquet's headers are written.
#pragma once

#include "datasets/files/cursor.hpp"

#include <cstdint>
#include <string_view>

namespace leat::datasets {

/// Structures may stand within one another to a depth of 64; a list has no more elements than bytes that follow. Throws as cursor.
///   source   github.com/apache/thrift: doc/specs/thrift-compact-protocol.md
class thrift_reader {
 public:
  enum class type : std::uint8_t {
    stop = 0,
    yes = 1,
    no = 2,
    i8 = 3,
    i16 = 4,
    i32 = 5,
    i64 = 6,
    real = 7,
    binary = 8,
    list = 9,
    set = 10,
    map = 11,
    structure = 12
  };

  explicit thrift_reader(cursor& at) noexcept : at_(at) {}

  /// Calls field(number, type) for each field of a structure; that reads it, or skips it.
  template <class Field>
  void structure(const Field& field) {
    const deeper level(*this);
    std::int64_t number = 0;
    for (;;) {
      const auto head = at_.number<std::uint8_t>();
      if (head == 0) return;
      const unsigned step = head >> 4;
      number = step != 0 ? number + step : at_.zigzag();
      if (number < 0 || number > field_number_max) at_.fail("a field of no number that Thrift has");
      field(static_cast<int>(number), static_cast<type>(head & 15));
    }
  }
  /// Likewise of a field of this type.
  template <class Field>
  void structure(type found, const Field& field) {
    demand(found, type::structure);
    structure(field);
  }
  /// Calls element(type) for each element of a list.
  template <class Element>
  void list(type found, const Element& element) {
    if (found != type::set) demand(found, type::list);
    const deeper level(*this);
    const auto head = at_.number<std::uint8_t>();
    std::uint64_t count = head >> 4;
    if (count == 15) count = at_.varint();
    if (count > at_.left()) at_.fail("a list of more elements than there are bytes");
    for (std::uint64_t i = 0; i < count; ++i) element(static_cast<type>(head & 15));
  }
  [[nodiscard]] std::int64_t integer(type found);
  [[nodiscard]] bool boolean(type found) const;
  /// Valid as long as the bytes are.
  [[nodiscard]] std::string_view text(type found);
  void skip(type found);

  [[noreturn]] void fail(std::string_view what) const { at_.fail(what); }

 private:
  static constexpr std::int64_t field_number_max = 32767;
  static constexpr int depth_max = 64;

  class deeper {
   public:
    explicit deeper(thrift_reader& of) : of_(of) {
      if (++of_.depth_ > depth_max) of_.at_.fail("structures within structures, more than 64");
    }
    deeper(const deeper&) = delete;
    deeper& operator=(const deeper&) = delete;
    ~deeper() { --of_.depth_; }

   private:
    thrift_reader& of_;
  };

  void demand(type found, type expected) const {
    if (found != expected) at_.fail("a field of another type than it has");
  }
  void skip_element(type found);

  cursor& at_;
  int depth_ = 0;
};

}  // namespace leat::datasets

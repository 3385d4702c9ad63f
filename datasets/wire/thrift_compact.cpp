#include "datasets/wire/thrift_compact.hpp"

namespace leat::datasets {

std::int64_t thrift_reader::integer(type found) {
  if (found == type::i8) return at_.number<std::int8_t>();
  if (found != type::i16 && found != type::i32 && found != type::i64) {
    at_.fail("a field of another type than it has");
  }
  return at_.zigzag();
}

bool thrift_reader::boolean(type found) const {
  if (found != type::yes && found != type::no) at_.fail("a field of another type than it has");
  return found == type::yes;
}

std::string_view thrift_reader::text(type found) {
  demand(found, type::binary);
  return at_.text(at_.varint());
}

// In a list, true and false are bytes of their own.
void thrift_reader::skip_element(type found) {
  if (found == type::yes || found == type::no) return at_.skip(1);
  skip(found);
}

void thrift_reader::skip(type found) {
  switch (found) {
    case type::yes:
    case type::no:
      return;
    case type::i8:
      return at_.skip(1);
    case type::i16:
    case type::i32:
    case type::i64:
      static_cast<void>(at_.varint());
      return;
    case type::real:
      return at_.skip(8);
    case type::binary:
      return at_.skip(at_.varint());
    case type::list:
    case type::set:
      return list(found, [this](type element) { skip_element(element); });
    case type::map: {
      const deeper level(*this);
      const std::uint64_t count = at_.varint();
      if (count == 0) return;
      if (count > at_.left()) at_.fail("a map of more entries than there are bytes");
      const auto types = at_.number<std::uint8_t>();
      for (std::uint64_t i = 0; i < count; ++i) {
        skip_element(static_cast<type>(types >> 4));
        skip_element(static_cast<type>(types & 15));
      }
      return;
    }
    case type::structure:
      return structure([this](int, type field) { skip(field); });
    case type::stop:
      break;
  }
  at_.fail("a field of a type that Thrift does not have");
}

}  // namespace leat::datasets

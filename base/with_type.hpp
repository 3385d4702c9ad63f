// The C++ type of a dtype.
#pragma once

#include <leat/tensor.hpp>

#include <cstdint>

namespace leat {

/// Calls visit(type{}) with a value of the C++ type of this dtype; false for those that have none.
template <class Visit>
bool with_type(dtype type, const Visit& visit) {
  switch (type) {
    case dtype::u8:
      return visit(std::uint8_t{}), true;
    case dtype::i8:
      return visit(std::int8_t{}), true;
    case dtype::u16:
      return visit(std::uint16_t{}), true;
    case dtype::i16:
      return visit(std::int16_t{}), true;
    case dtype::u32:
      return visit(std::uint32_t{}), true;
    case dtype::i32:
      return visit(std::int32_t{}), true;
    case dtype::u64:
      return visit(std::uint64_t{}), true;
    case dtype::i64:
      return visit(std::int64_t{}), true;
    case dtype::f32:
      return visit(float{}), true;
    case dtype::f64:
      return visit(double{}), true;
    case dtype::f16:
    case dtype::bf16:
    case dtype::boolean:
      return false;
  }
  return false;
}

}  // namespace leat

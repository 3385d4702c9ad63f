#include "base/text.hpp"

#include <leat/error.hpp>
#include <leat/tensor.hpp>

namespace leat {
namespace {

// The T of as<T>() that reads it.
std::string_view type_for(dtype type) noexcept {
  switch (type) {
    case dtype::u8:
      return "std::uint8_t";
    case dtype::i8:
      return "std::int8_t";
    case dtype::u16:
      return "std::uint16_t";
    case dtype::i16:
      return "std::int16_t";
    case dtype::u32:
      return "std::uint32_t";
    case dtype::i32:
      return "std::int32_t";
    case dtype::u64:
      return "std::uint64_t";
    case dtype::i64:
      return "std::int64_t";
    case dtype::f16:
    case dtype::bf16:
      return "std::uint16_t";  // its bits
    case dtype::f32:
      return "float";
    case dtype::f64:
      return "double";
    case dtype::boolean:
      return "bool";
  }
  return "another type";
}

}  // namespace

std::string to_string(const dimensions& shape) { return "[" + joined(shape, ", ") + "]"; }

void tensor::refuse_type(std::string_view asked) const {
  const bool half = type == dtype::f16 || type == dtype::bf16;
  throw error(errc::usage,
              str_cat("as<", asked, ">() on a tensor of ", name(type), " ", to_string(shape), "; use as<",
                      type_for(type), ">()", half ? " for its bits, or a type of 2 bytes that stands for it" : ""));
}

void tensor::check_readable() const {
  if (where != host) {
    throw error(errc::usage, str_cat("as<T>() on a tensor on cuda:", where.index,
                                     ", which the host cannot read; copy it to the host, or pass `data` to a kernel"));
  }
  // A tensor that was made by hand may leave out the strides if it is dense.
  if (!strides.empty() && shape.elements() > 0 && !(strides == dense_strides(shape))) {
    throw error(errc::usage, str_cat("as<T>() on a tensor ", to_string(shape), " with strides ", to_string(strides),
                                     ", which is not dense; step through `data` by its strides"));
  }
}

}  // namespace leat

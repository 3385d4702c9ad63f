#include "io/text.hpp"

#include <leat/error.hpp>
#include <leat/tensor.hpp>

#include <absl/strings/str_join.h>

namespace leat {
namespace {

// As C++ says it.
std::string_view type_of(dtype type) noexcept {
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
      return "std::uint16_t, its bits, or a type of 2 bytes";
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

std::string to_string(const dimensions& shape) { return "[" + absl::StrJoin(shape, ", ") + "]"; }

void tensor::refuse_type(bool is_integral, bool is_floating, bool is_signed, std::size_t bytes) const {
  const std::string asked = is_integral   ? io::str_cat("std::", is_signed ? "" : "u", "int", 8 * bytes, "_t")
                            : is_floating ? io::str_cat("a float of ", bytes, " bytes")
                                          : io::str_cat("a type of ", bytes, bytes == 1 ? " byte" : " bytes");
  throw error(errc::usage, io::str_cat("as<T>() with ", asked, " of a tensor of ", name(type), " ", to_string(shape),
                                       ": T is ", type_of(type)));
}

void tensor::check_readable() const {
  if (where != host) {
    throw error(errc::usage, io::str_cat("as<T>() of a tensor on cuda:", where.index,
                                         ": the host cannot read it; copy it, or give `data` to the device"));
  }
  // Who makes a tensor by hand may leave out the strides of a dense one.
  if (!strides.empty() && shape.elements() > 0 && !(strides == dense_strides(shape))) {
    throw error(errc::usage, io::str_cat("as<T>() of a tensor ", to_string(shape), " with strides ", to_string(strides),
                                         ": it is not dense; step through `data` by them"));
  }
}

}  // namespace leat

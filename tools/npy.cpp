#include "tools/npy.hpp"

#include "base/text.hpp"
#include "tools/output.hpp"

#include <bit>
#include <cassert>

namespace leat::tools {
namespace {

static_assert(std::endian::native == std::endian::little, "the type codes below say '<'");

const char* code_of(dtype type) {
  switch (type) {
    case dtype::u8:
      return "|u1";
    case dtype::i8:
      return "|i1";
    case dtype::u16:
    case dtype::bf16:
      return "<u2";
    case dtype::i16:
      return "<i2";
    case dtype::u32:
      return "<u4";
    case dtype::i32:
      return "<i4";
    case dtype::u64:
      return "<u8";
    case dtype::i64:
      return "<i8";
    case dtype::f16:
      return "<f2";
    case dtype::f32:
      return "<f4";
    case dtype::f64:
      return "<f8";
    case dtype::boolean:
      return "|b1";
  }
  return "|u1";
}

}  // namespace

std::string npy_header(dtype type, const dimensions& shape, std::size_t multiple) {
  std::string extents;
  for (const std::int64_t extent : shape) str_append(extents, extent, ",");
  if (shape.size() > 1) extents.pop_back();  // A tuple of one keeps its comma.
  std::string text = str_cat("{'descr': '", code_of(type), "', 'fortran_order': False, 'shape': (", extents, "), }");
  constexpr std::size_t fixed_bytes = 10;  // magic, version, length
  const std::size_t padded = (fixed_bytes + text.size() + 1 + multiple - 1) / multiple * multiple;
  text.append(padded - fixed_bytes - text.size() - 1, ' ');
  text += '\n';
  assert(text.size() < 0x10000);
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

void write_npy(const std::string& path, const tensor& values, const std::stop_token& stop) {
  output_file file(path, output_kind::array, output_file::appears::when_closed);
  file.write(npy_header(values.type, values.shape), stop);
  file.write(values.as_bytes(), stop);
  file.close();
}

}  // namespace leat::tools

#include "datasets/formats/hdf5/hdf5_types.hpp"

#include "base/text.hpp"

#include <bit>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

constexpr int type_depth_max = 8;
constexpr std::uint64_t axes_max = 32;

hdf5_type read_type(hdf5_cursor& at, int depth);

std::optional<dtype> integer_of(std::uint64_t bytes, bool is_signed) {
  switch (bytes) {
    case 1:
      return is_signed ? dtype::i8 : dtype::u8;
    case 2:
      return is_signed ? dtype::i16 : dtype::u16;
    case 4:
      return is_signed ? dtype::i32 : dtype::u32;
    case 8:
      return is_signed ? dtype::i64 : dtype::u64;
    default:
      return std::nullopt;
  }
}

// What a datatype begins with.
struct prefix {
  std::uint64_t version = 0;
  std::uint64_t bits = 0;
  std::uint32_t bytes = 0;
};

void refuse(hdf5_type& type, std::string why) {
  type.what = hdf5_type::kind::unknown;
  type.not_read = std::move(why);
}

void read_integer(hdf5_cursor& at, const prefix& of, hdf5_type& type) {
  type.big_endian = (of.bits & 1) != 0;
  const std::uint64_t shift = at.number(2);
  const std::uint64_t precision = at.number(2);
  const std::optional<dtype> known = integer_of(of.bytes, (of.bits & 8) != 0);
  if (!known || shift != 0 || precision != std::uint64_t{8} * of.bytes) {
    return refuse(type, str_cat("integers of ", precision, " bits; write them as 8, 16, 32 or 64"));
  }
  type.type = *known;
}

void read_float(hdf5_cursor& at, const prefix& of, hdf5_type& type) {
  type.big_endian = (of.bits & 1) != 0;
  const std::uint64_t shift = at.number(2);
  const std::uint64_t precision = at.number(2);
  const std::uint64_t exponent_at = at.number(1);
  const std::uint64_t exponent_bits = at.number(1);
  const std::uint64_t mantissa_at = at.number(1);
  const std::uint64_t mantissa_bits = at.number(1);
  const std::uint64_t bias = at.number(4);
  if ((of.bits & 0x41) > 1) return refuse(type, "floats in the order of a VAX; write them as '<f4'");
  // The sign on top, the exponent below it, and a mantissa whose first bit is implied.
  constexpr std::uint64_t first_bit_implied = 2;
  const bool is_ieee = shift == 0 && precision == std::uint64_t{8} * of.bytes &&
                       (of.bits >> 8 & 0xFF) == precision - 1 && exponent_at == mantissa_bits && mantissa_at == 0 &&
                       exponent_bits < 32 && bias == (std::uint64_t{1} << exponent_bits) / 2 - 1 &&
                       (of.bits >> 4 & 3) == first_bit_implied;
  const auto is = [&](std::uint32_t bytes, std::uint64_t exponent, std::uint64_t mantissa) {
    return is_ieee && of.bytes == bytes && exponent_bits == exponent && mantissa_bits == mantissa;
  };
  if (is(2, 5, 10)) {
    type.type = dtype::f16;
  } else if (is(2, 8, 7)) {
    type.type = dtype::bf16;
  } else if (is(4, 8, 23)) {
    type.type = dtype::f32;
  } else if (is(8, 11, 52)) {
    type.type = dtype::f64;
  } else {
    refuse(type, str_cat("floats of ", precision, " bits", is_ieee ? "" : " that are not IEEE 754's",
                         "; write them as f16, f32 or f64"));
  }
}

// A name, and what fills it up in old versions.
std::string read_name(hdf5_cursor& at, std::uint64_t version) {
  const std::uint64_t begin = at.offset();
  std::string name = at.text_to_zero();
  if (version < 3) at.skip((8 - (at.offset() - begin) % 8) % 8);
  return name;
}

// bool is what h5py makes of NumPy's: an enumeration of FALSE and TRUE.
void read_enumeration(hdf5_cursor& at, const prefix& of, hdf5_type& type, int depth) {
  const hdf5_type base = read_type(at, depth + 1);
  const std::uint64_t members = of.bits & 0xFFFF;
  bool is_boolean = members == 2 && base.bytes == 1;
  for (std::uint64_t i = 0; i < members; ++i) {
    const std::string name = read_name(at, of.version);
    is_boolean = is_boolean && name == (i == 0 ? "FALSE" : "TRUE");
  }
  for (std::uint64_t i = 0; i < members; ++i) {
    const std::span<const std::byte> value = at.take(base.bytes);
    is_boolean = is_boolean && value.front() == std::byte{static_cast<unsigned char>(i)};
  }
  if (!base.not_read.empty() || base.bytes != of.bytes) {
    return refuse(type, "an enumeration of what are no integers; write them as integers");
  }
  type.big_endian = base.big_endian;
  type.type = is_boolean ? dtype::boolean : base.type;
}

// `bytes` elements of u8.
void become_bytes(hdf5_type& type) {
  type.type = dtype::u8;
  type.axes = {type.bytes};
}

void read_compound(hdf5_cursor& at, const prefix& of, hdf5_type& type, int depth) {
  type.what = hdf5_type::kind::compound;
  const std::size_t offset_bytes = (static_cast<std::size_t>(std::bit_width(of.bytes)) + 7) / 8;
  for (std::uint64_t i = 0; i < (of.bits & 0xFFFF); ++i) {
    hdf5_type::member member;
    member.name = read_name(at, of.version);
    member.offset = static_cast<std::uint32_t>(at.number(of.version >= 3 ? offset_bytes : 4));
    std::vector<std::uint64_t> axes;
    if (of.version == 1) {
      const std::uint64_t count = at.number(1);
      if (count > 4) at.fail(str_cat("a member of ", count, " axes"));
      at.skip(3 + 4 + 4);
      for (std::uint64_t axis = 0; axis < 4; ++axis) {
        const std::uint64_t extent = at.number(4);
        if (axis < count) axes.push_back(extent);
      }
    }
    member.type = read_type(at, depth + 1);
    member.type.axes.insert(member.type.axes.begin(), axes.begin(), axes.end());
    for (const std::uint64_t extent : axes) {
      if (extent == 0 || member.type.bytes > of.bytes / extent) at.fail("a member that does not fit into its compound");
      member.type.bytes = static_cast<std::uint32_t>(member.type.bytes * extent);
    }
    if (member.offset > of.bytes || member.type.bytes > of.bytes - member.offset) {
      at.fail("a member that does not fit into its compound");
    }
    type.members.push_back(std::move(member));
  }
}

void read_array(hdf5_cursor& at, const prefix& of, hdf5_type& type, int depth) {
  const std::uint64_t count = at.number(1);
  if (count > axes_max) at.fail(str_cat("elements of ", count, " axes"));
  if (of.version < 3) at.skip(3);
  std::vector<std::uint64_t> axes;
  for (std::uint64_t axis = 0; axis < count; ++axis) axes.push_back(at.number(4));
  if (of.version < 3) at.skip(4 * count);
  const hdf5_type base = read_type(at, depth + 1);
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : axes) {
    if (extent == 0 || elements > of.bytes / extent) at.fail("an array of another size than its element");
    elements *= extent;
  }
  if (elements * base.bytes != of.bytes) at.fail("an array of another size than its element");
  if (base.what != hdf5_type::kind::number) {
    return refuse(type, base.not_read.empty() ? "elements that are arrays of compounds; write them as further axes"
                                              : base.not_read);
  }
  type.type = base.type;
  type.big_endian = base.big_endian;
  type.axes = std::move(axes);
  type.axes.insert(type.axes.end(), base.axes.begin(), base.axes.end());
}

void read_variable(hdf5_cursor& at, const prefix& of, hdf5_type& type, int depth) {
  const hdf5_type base = read_type(at, depth + 1);
  if ((of.bits & 15) == 1) {
    type.what = hdf5_type::kind::variable_text;
  } else if (base.what == hdf5_type::kind::number && base.bytes == 1) {
    type.what = hdf5_type::kind::variable_bytes;
  } else {
    refuse(type, "rows of variable length of what are no bytes; write them as one array, and where each row begins");
  }
}

hdf5_type read_type(hdf5_cursor& at, int depth) {
  if (depth > type_depth_max) at.fail("a type of types of types");
  const std::uint64_t first = at.number(1);
  prefix of;
  of.version = first >> 4;
  of.bits = at.number(3);
  of.bytes = static_cast<std::uint32_t>(at.number(4));
  if (of.bytes == 0) at.fail("elements of no bytes");
  hdf5_type type;
  type.bytes = of.bytes;
  switch (first & 15) {
    case 0:
      read_integer(at, of, type);
      break;
    case 1:
      read_float(at, of, type);
      break;
    case 2:
      at.skip(2);
      refuse(type, "times; write them as integers");
      break;
    case 3:
      become_bytes(type);
      type.characters = true;
      break;
    case 4:
      at.skip(4);
      refuse(type, "bit fields; write them as integers");
      break;
    case 5:
      at.skip(of.bits & 0xFF);
      become_bytes(type);
      break;
    case 6:
      read_compound(at, of, type, depth);
      break;
    case 7:
      refuse(type, "references; write what they refer to");
      break;
    case 8:
      read_enumeration(at, of, type, depth);
      break;
    case 9:
      read_variable(at, of, type, depth);
      break;
    case 10:
      read_array(at, of, type, depth);
      break;
    default:
      refuse(type, "elements of a kind that is not known; write them as integers or floats");
  }
  return type;
}

}  // namespace

hdf5_type read_type(hdf5_cursor& at) { return read_type(at, 0); }

}  // namespace leat::datasets

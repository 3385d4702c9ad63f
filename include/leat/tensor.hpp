// Tensors as DLPack describes them: a dtype, a shape, strides, a pointer and a device. Tensors are views: a batch owns
// the bytes.
#pragma once

#include <leat/compiler.hpp>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#pragma GCC visibility push(default)
namespace leat {

/// Element types. The values are leat's own; batch_tensor::dlpack() gives DLPack's code and bits.
enum class dtype : std::uint8_t { u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64, boolean };

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_bytes(dtype type) noexcept {
  switch (type) {
    case dtype::u8:
    case dtype::i8:
    case dtype::boolean:
      return 1;
    case dtype::u16:
    case dtype::i16:
    case dtype::f16:
    case dtype::bf16:
      return 2;
    case dtype::u32:
    case dtype::i32:
    case dtype::f32:
      return 4;
    case dtype::u64:
    case dtype::i64:
    case dtype::f64:
      return 8;
  }
  return 0;
}

/// The name used in options, JSON and digests: "u8", "bf16", ...
[[nodiscard]] constexpr std::string_view name(dtype type) noexcept {
  constexpr std::string_view names[] = {"u8",  "i8",  "u16",  "i16", "u32", "i32", "u64",
                                        "i64", "f16", "bf16", "f32", "f64", "bool"};
  return names[static_cast<std::size_t>(type)];
}

/// Order of the axes of a picture in a batch.
enum class layout : std::uint8_t { nchw, nhwc };

/// A shape or a set of strides: at most eight numbers, no allocation.
class dimensions {
 public:
  static constexpr std::size_t rank_max = 8;

  constexpr dimensions() = default;
  constexpr dimensions(std::initializer_list<std::int64_t> values) {
    for (const std::int64_t value : values) push_back(value);
  }
  constexpr explicit dimensions(std::span<const std::int64_t> values) {
    for (const std::int64_t value : values) push_back(value);
  }

  constexpr void push_back(std::int64_t value) {
    assert(rank_ < rank_max);
    values_[rank_++] = value;
  }

  [[nodiscard]] constexpr std::size_t size() const noexcept { return rank_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return rank_ == 0; }
  [[nodiscard]] constexpr std::int64_t operator[](std::size_t axis) const noexcept {
    assert(axis < rank_);
    return values_[axis];
  }
  constexpr std::int64_t& operator[](std::size_t axis) noexcept {
    assert(axis < rank_);
    return values_[axis];
  }
  [[nodiscard]] constexpr const std::int64_t* begin() const noexcept { return values_.data(); }
  [[nodiscard]] constexpr const std::int64_t* end() const noexcept { return values_.data() + rank_; }

  /// The product: elements of a tensor of this shape; 1 for a scalar.
  [[nodiscard]] constexpr std::int64_t elements() const noexcept {
    std::int64_t product = 1;
    for (const std::int64_t value : *this) product *= value;
    return product;
  }

  friend constexpr bool operator==(const dimensions& a, const dimensions& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (std::size_t axis = 0; axis < a.rank_; ++axis) {
      if (a.values_[axis] != b.values_[axis]) return false;
    }
    return true;
  }

 private:
  std::array<std::int64_t, rank_max> values_{};
  std::size_t rank_ = 0;
};

/// "[64, 3, 224, 224]"; "[]" for a scalar.
[[nodiscard]] std::string to_string(const dimensions& shape);

/// Strides, in elements, of a dense row-major tensor.
[[nodiscard]] constexpr dimensions dense_strides(const dimensions& shape) noexcept {
  dimensions strides = shape;
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

/// Where bytes lie.
struct device {
  enum class kind : std::uint8_t { host, cuda };
  kind type = kind::host;
  int index = 0;

  friend constexpr bool operator==(const device&, const device&) noexcept = default;
};

inline constexpr device host{};

/// The GPU that CUDA numbers `index`.
[[nodiscard]] constexpr device cuda(int index = 0) noexcept { return {device::kind::cuda, index}; }

namespace detail {

/// Whether elements of `type` may be read as T. Elements of one byte may be read as std::byte, char or unsigned char;
/// f16 and bf16 as their bits (std::uint16_t) or as a type of 2 bytes that stands for them (_Float16, __half).
template <class T>
[[nodiscard]] constexpr bool holds(dtype type) noexcept {
  using U = std::remove_cv_t<T>;
  if (sizeof(U) != size_bytes(type)) return false;
  const bool half = type == dtype::f16 || type == dtype::bf16;
  if constexpr (std::is_same_v<U, bool>) {
    return type == dtype::boolean;
  } else if constexpr (std::is_same_v<U, std::byte> || std::is_same_v<U, char> || std::is_same_v<U, unsigned char>) {
    return true;
  } else if constexpr (std::is_integral_v<U>) {
    if (half) return std::is_same_v<U, std::uint16_t>;
    const bool floats = type == dtype::f32 || type == dtype::f64;
    const bool is_signed = type == dtype::i8 || type == dtype::i16 || type == dtype::i32 || type == dtype::i64;
    return !floats && type != dtype::boolean && std::is_signed_v<U> == is_signed;
  } else if constexpr (sizeof(U) == 2) {
    // std::float16_t and std::bfloat16_t have 11 and 8 digits; other types of 2 bytes are taken for either.
    if constexpr (std::numeric_limits<U>::is_specialized) {
      return type == (std::numeric_limits<U>::digits == 11 ? dtype::f16 : dtype::bf16);
    }
    return half;
  } else {
    return (std::is_same_v<U, float> && type == dtype::f32) || (std::is_same_v<U, double> && type == dtype::f64);
  }
}

/// T as a person writes it, for messages: "double", "std::int32_t"; "T" for a type of the user's own.
template <class T>
[[nodiscard]] constexpr std::string_view type_name() noexcept {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>) {
    return "bool";
  } else if constexpr (std::is_same_v<U, char>) {
    return "char";
  } else if constexpr (std::is_same_v<U, std::byte>) {
    return "std::byte";
  } else if constexpr (std::is_same_v<U, float>) {
    return "float";
  } else if constexpr (std::is_same_v<U, double>) {
    return "double";
  } else if constexpr (std::is_integral_v<U> && sizeof(U) <= 8) {
    constexpr std::string_view names[2][4] = {{"std::uint8_t", "std::uint16_t", "std::uint32_t", "std::uint64_t"},
                                              {"std::int8_t", "std::int16_t", "std::int32_t", "std::int64_t"}};
    return names[std::is_signed_v<U> ? 1 : 0][sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3];
  } else {
    return "T";
  }
}

}  // namespace detail

/// A view of elements, which something else owns.
///   strides   in elements, as in DLPack
///   data      the first element, on `where`
struct tensor {
  leat::dtype type = dtype::u8;
  dimensions shape;
  dimensions strides;
  void* data = nullptr;
  device where;

  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(shape.elements()) * size_bytes(type);
  }
  /// The bytes of a dense tensor.
  [[nodiscard]] std::span<const std::byte> as_bytes() const noexcept {
    return {static_cast<const std::byte*>(data), bytes()};
  }
  /// The elements of a dense host tensor as T or const T: std::uint8_t for u8, float for f32, bool for boolean.
  /// Elements of one byte also as std::byte or char; f16 and bf16 as std::uint16_t (their bits) or as a type of 2 bytes
  /// that stands for them.
  ///   throws   error{errc::usage}: T is not the type of the elements, or the tensor is on a device or not dense
  template <class T>
  [[nodiscard]] std::span<T> as() const {
    static_assert(std::is_trivially_copyable_v<T>, "elements are numbers");
    if (!detail::holds<T>(type)) refuse_type(detail::type_name<T>());
    check_readable();
    return {static_cast<T*>(data), static_cast<std::size_t>(shape.elements())};
  }

 private:
  [[noreturn]] void refuse_type(std::string_view asked) const;
  void check_readable() const;
};

}  // namespace leat
#pragma GCC visibility pop

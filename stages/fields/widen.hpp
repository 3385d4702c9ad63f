// Integers of one dtype as those of another, or as they are.
#pragma once

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace leat::stages {

/// Writes `count` numbers; false where one of them does not fit.
using widen_function = bool (*)(const std::byte* from, std::byte* to, std::size_t count);

namespace widen_functions {

// Of any alignment: loops over memcpy become vector loads and stores, as those over pointers do.
template <class From, class To>
[[gnu::always_inline]] inline bool widen_each(const std::byte* from, std::byte* to, std::size_t count) {
  To all{};
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    const auto wide = static_cast<To>(value);
    std::memcpy(to + i * sizeof(To), &wide, sizeof(To));
    if constexpr (sizeof(From) == sizeof(To)) all |= wide;
  }
  return all >= 0;  // Of u32 in i32: what does not fit has the highest bit.
}

template <class From, class To>
bool widen_anywhere(const std::byte* from, std::byte* to, std::size_t count) {
  return widen_each<From, To>(from, to, count);
}

#if defined(__x86_64__)
template <class From, class To>
[[gnu::target("avx2")]] bool widen_by_avx2(const std::byte* from, std::byte* to, std::size_t count) {
  return widen_each<From, To>(from, to, count);
}
#endif

template <class From, class To>
widen_function widen() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return &widen_by_avx2<From, To>;
#endif
  return &widen_anywhere<From, To>;
}

template <std::size_t Bytes>
bool copy(const std::byte* from, std::byte* to, std::size_t count) {
  std::memcpy(to, from, count * Bytes);
  return true;
}

template <class To>
widen_function widening_to(dtype from) noexcept {
  switch (from) {
    case dtype::u8:
      return widen<std::uint8_t, To>();
    case dtype::i8:
      return widen<std::int8_t, To>();
    case dtype::u16:
      return widen<std::uint16_t, To>();
    case dtype::i16:
      return widen<std::int16_t, To>();
    case dtype::u32:
      return widen<std::uint32_t, To>();
    case dtype::i32:
      return sizeof(To) > 4 ? widen<std::int32_t, To>() : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace widen_functions

/// Null where they need not fit.
[[nodiscard]] inline widen_function widening(dtype from, dtype to) noexcept {
  if (from == to) {
    switch (size_bytes(from)) {
      case 1:
        return &widen_functions::copy<1>;
      case 2:
        return &widen_functions::copy<2>;
      case 4:
        return &widen_functions::copy<4>;
      default:
        return &widen_functions::copy<8>;
    }
  }
  if (to == dtype::i32) return widen_functions::widening_to<std::int32_t>(from);
  if (to == dtype::i64) return widen_functions::widening_to<std::int64_t>(from);
  return nullptr;
}

}  // namespace leat::stages

// Decimals of tables: a whole number and the places behind its point, as Parquet and Arrow have them.
#pragma once

#include <cstddef>
#include <span>

namespace leat::datasets {

/// A decimal without its point: up to 38 digits.
__extension__ using unscaled_decimal = __int128;
inline constexpr std::size_t decimal_bytes_max = sizeof(unscaled_decimal);

///   bytes   1 to decimal_bytes_max, in two's complement; none is 0
[[nodiscard]] unscaled_decimal unscaled_of_big_endian(std::span<const std::byte> bytes) noexcept;
[[nodiscard]] unscaled_decimal unscaled_of_little_endian(std::span<const std::byte> bytes) noexcept;

/// The double next to `unscaled` / 10^scale, as Python's float() of a Decimal is.
[[nodiscard]] double real_of_decimal(unscaled_decimal unscaled, int scale);

}  // namespace leat::datasets

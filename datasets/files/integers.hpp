// Numbers of any dtype as the values of a column.
#pragma once

#include "datasets/files/file_bytes.hpp"

#include <leat/samples.hpp>
#include <leat/tensor.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// bool among them: 0 and 1.
[[nodiscard]] constexpr bool is_integer(dtype type) noexcept {
  return type != dtype::f16 && type != dtype::bf16 && type != dtype::f32 && type != dtype::f64;
}

/// By leat's own name: "u8", "bf16", "bool" ...
[[nodiscard]] std::optional<dtype> dtype_named(std::string_view name) noexcept;

/// Appends `count` integers of `type` that lie in the file from `offset` on.
///   throws   error{errc::format} where the file ends before; error{errc::unsupported} for a u64 beyond i64
void append_integers(const file_bytes& file, std::uint64_t offset, dtype type, std::uint64_t count,
                     std::vector<std::int64_t>& to);

/// The same for integers in memory.
///   bytes   a multiple of the type's
///   where   names them in errors
void append_integers(std::span<const std::byte> bytes, dtype type, const std::string& where,
                     std::vector<std::int64_t>& to);

/// Appends floats of `type`.
///   bytes   a multiple of the type's
void append_reals(std::span<const std::byte> bytes, dtype type, std::vector<double>& to);

/// Whether one of these numbers of `type` is more than a column can hold: a u64 beyond 2^63 - 1.
[[nodiscard]] bool is_too_large_for_column(std::span<const std::byte> bytes, dtype type);

/// A column of numbers of `type`, whatever they are.
[[nodiscard]] column_values column_of(std::string name, dtype type, std::span<const std::byte> bytes,
                                      const std::string& where);
/// Appends `count` numbers of `type` that lie in the file from `offset` on, as append_integers() does. All that are in `to` are of
/// this type.
void append_to_column(const file_bytes& file, std::uint64_t offset, dtype type, std::uint64_t count, column_values& to);

}  // namespace leat::datasets

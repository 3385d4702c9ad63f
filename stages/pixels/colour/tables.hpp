// Operations on the values of one channel, as tables of 256 entries: exact by construction, and several of them are one. Formulas are
// torchvision.transforms.v2's on u8 tensors: f32, each operation rounded by itself, clamped and truncated.
#pragma once

#include <leat/transforms.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace leat::pixels {

/// What becomes of each value of a channel.
using curve = std::array<std::uint8_t, 256>;
/// How often each value occurs in each channel.
using value_counts = std::array<std::array<std::uint32_t, 256>, 3>;

[[nodiscard]] curve brightness_curve(double factor) noexcept;
[[nodiscard]] curve gamma_curve(double exponent) noexcept;
[[nodiscard]] curve invert_curve() noexcept;
[[nodiscard]] curve posterize_curve(int bits) noexcept;
[[nodiscard]] curve solarize_curve(int threshold) noexcept;
[[nodiscard]] curve solarize_add_curve(int amount, int threshold) noexcept;
/// Of contrast, where the mean of the picture's grey is known.
[[nodiscard]] curve contrast_curve(double factor, float mean) noexcept;
/// Of a channel whose smallest and largest values these are.
[[nodiscard]] curve autocontrast_curve(int least, int most) noexcept;
/// Of a channel with these values.
[[nodiscard]] curve equalize_curve(const std::array<std::uint32_t, 256>& counts) noexcept;

/// The mean of a sum of so many values: one division, rounded to f32.
[[nodiscard]] float mean_of(std::uint64_t sum, std::uint64_t count) noexcept;

/// The table that changes nothing.
[[nodiscard]] const table& identity_table() noexcept;
/// First `first`, then `then` on every channel.
void append(table& first, const curve& then) noexcept;
void append(table& first, const table& then) noexcept;

/// The counts after a table has changed a picture with these counts.
[[nodiscard]] value_counts pushed_through(const table& by, const value_counts& counts) noexcept;
/// Whether larger values never become smaller, in any channel: then extremes go to extremes.
[[nodiscard]] bool is_ascending(const table& which) noexcept;

}  // namespace leat::pixels

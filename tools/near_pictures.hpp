// Pictures that look alike though their bytes differ: written anew, scaled, recoloured (leat check).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace leat::tools {

/// What a picture looks like: whether it gets brighter from each cell of a coarse grid to the next one, across (9 x 8 cells)
/// and down (8 x 9). Two numbers, since one alone is shared by pictures that have nothing in common but a horizon.
struct picture_key {
  std::uint64_t across = 0;
  std::uint64_t down = 0;

  friend auto operator<=>(const picture_key&, const picture_key&) = default;
};

/// The most bits that may differ.
inline constexpr unsigned near_bits_max = 10;
/// Where nobody says how many. Photographs that were halved, or written anew at quality 50, differ in fewer
/// (near_pictures_test); of unrelated ones 32 differ on average.
inline constexpr unsigned near_bits_usual = 4;

/// Of 8-bit RGB, rows one after the other; at least one pixel.
///   returns   nothing where it is of one colour, or nearly: such pictures are all alike
[[nodiscard]] std::optional<picture_key> key_of(std::span<const std::byte> rgb, std::size_t width, std::size_t height);

/// The larger number of bits that differ: across or down.
[[nodiscard]] unsigned bits_between(const picture_key& a, const picture_key& b) noexcept;

/// A picture, by its place in the list, and the one before it that it resembles most.
struct near_picture {
  std::size_t picture = 0;
  std::size_t of = 0;
  unsigned bits = 0;

  friend bool operator==(const near_picture&, const near_picture&) = default;
};

/// For each picture, among those before it the one with the fewest bits between them, the first of several; in their order.
///   asked_from   0: all of them are asked. Else those from there on are, and looked for among those before it
///   bits_max     at most near_bits_max
///   threads      change the time only
///
/// Two keys within `bits_max` bits are equal in one of bits_max + 1 bands of `across`: only those are compared. Keys that many
/// pictures share are compared once.
[[nodiscard]] std::vector<near_picture> find_near(std::span<const picture_key> keys, std::size_t asked_from,
                                                  unsigned bits_max, unsigned threads);

}  // namespace leat::tools

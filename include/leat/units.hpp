// Sizes as people write them: 2_GiB.
#pragma once

#include <leat/compiler.hpp>

#include <cstddef>

#pragma GCC visibility push(default)
namespace leat {
inline namespace literals {

consteval std::size_t operator""_KiB(unsigned long long n) { return static_cast<std::size_t>(n) << 10; }
consteval std::size_t operator""_MiB(unsigned long long n) { return static_cast<std::size_t>(n) << 20; }
consteval std::size_t operator""_GiB(unsigned long long n) { return static_cast<std::size_t>(n) << 30; }

}  // namespace literals
}  // namespace leat
#pragma GCC visibility pop

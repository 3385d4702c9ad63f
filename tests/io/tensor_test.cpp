#include "tests/support/failures.hpp"

#include <leat/tensor.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace leat {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

constexpr dtype all_types[] = {dtype::u8,  dtype::i8,  dtype::u16,  dtype::i16, dtype::u32, dtype::i32,    dtype::u64,
                               dtype::i64, dtype::f16, dtype::bf16, dtype::f32, dtype::f64, dtype::boolean};

// A float of 16 bits, as CUDA has one.
struct half_of_somebody {
  std::uint16_t bits;
};

// Memory for any of them: two elements.
struct memory_of_two {
  alignas(8) std::array<std::byte, 16> bytes{};
  [[nodiscard]] tensor as_tensor(dtype type) { return {type, {2}, {1}, bytes.data(), host}; }
};

// As T, exactly the tensors of `wanted` can be read.
template <class T>
void expect_read_as(std::initializer_list<dtype> wanted) {
  memory_of_two memory;
  for (const dtype type : all_types) {
    const tensor values = memory.as_tensor(type);
    const bool can = std::find(wanted.begin(), wanted.end(), type) != wanted.end();
    SCOPED_TRACE(name(type));
    if (can) {
      EXPECT_EQ(static_cast<const void*>(values.as<T>().data()), memory.bytes.data());
      EXPECT_EQ(values.as<T>().size(), 2U);
      EXPECT_EQ(values.as<const T>().size(), 2U);
    } else {
      EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(values.as<T>()); }), ::testing::StartsWith("as<"));
      EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(values.as<const T>()); }), HasSubstr(name(type)));
    }
  }
}

TEST(tensor, is_read_as_its_own_type_and_refuses_every_other) {
  using enum dtype;
  expect_read_as<std::uint8_t>({u8, i8, boolean});  // bytes
  expect_read_as<std::byte>({u8, i8, boolean});
  expect_read_as<char>({u8, i8, boolean});
  expect_read_as<std::int8_t>({i8});
  expect_read_as<std::uint16_t>({u16, f16, bf16});  // bits
  expect_read_as<std::int16_t>({i16});
  expect_read_as<std::uint32_t>({u32});
  expect_read_as<std::int32_t>({i32});
  expect_read_as<std::uint64_t>({u64});
  expect_read_as<std::int64_t>({i64});
  expect_read_as<long long>({i64});
  expect_read_as<float>({f32});
  expect_read_as<double>({f64});
  expect_read_as<bool>({boolean});
  expect_read_as<half_of_somebody>({f16, bf16});
}

TEST(tensor, says_what_it_was_asked_for_and_what_it_is) {
  std::array<float, 6> values{};
  const tensor pixels{dtype::f32, {2, 3}, {3, 1}, values.data(), host};
  EXPECT_EQ(message_of(errc::usage, [&] { static_cast<void>(pixels.as<double>()); }),
            "as<double>() on a tensor of f32 [2, 3]; use as<float>()");
  EXPECT_EQ(message_of(errc::usage, [&] { static_cast<void>(pixels.as<std::int32_t>()); }),
            "as<std::int32_t>() on a tensor of f32 [2, 3]; use as<float>()");
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(pixels.as<const bool>()); }), HasSubstr("as<bool>()"));
  const tensor halves{dtype::f16, {2, 3}, {3, 1}, values.data(), host};
  EXPECT_EQ(message_of(errc::usage, [&] { static_cast<void>(halves.as<float>()); }),
            "as<float>() on a tensor of f16 [2, 3]; use as<std::uint16_t>() for its bits, or a type of 2 bytes that "
            "stands for it");
}

TEST(tensor, on_a_device_or_with_gaps_is_not_read) {
  std::array<float, 6> values{};
  const tensor away{dtype::f32, {2, 3}, {3, 1}, values.data(), cuda(1)};
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(away.as<float>()); }), HasSubstr("cuda:1"));
  const tensor turned{dtype::f32, {3, 2}, {1, 3}, values.data(), host};
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(turned.as<float>()); }), HasSubstr("[1, 3]"));
  const tensor without_strides{
      .type = dtype::f32, .shape = {2, 3}, .strides = {}, .data = values.data(), .where = host};
  EXPECT_EQ(without_strides.as<float>().size(), 6U);
  const tensor nothing{dtype::f32, {0, 3}, {7, 1}, nullptr, host};
  EXPECT_TRUE(nothing.as<float>().empty());
}

TEST(dimensions, are_written_as_a_list) {
  EXPECT_EQ(to_string(dimensions{64, 3, 224, 224}), "[64, 3, 224, 224]");
  EXPECT_EQ(to_string(dimensions{5}), "[5]");
  EXPECT_EQ(to_string(dimensions{}), "[]");
}

}  // namespace
}  // namespace leat

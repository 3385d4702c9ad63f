#include "tools/npy.hpp"

#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <stop_token>

namespace leat::tools {
namespace {

using ::testing::HasSubstr;

TEST(npy, a_header_says_type_and_shape_and_ends_on_64_bytes) {
  const std::string header = npy_header(dtype::f32, {2, 3, 224, 224});
  EXPECT_EQ(header.substr(0, 6), "\x93NUMPY");
  EXPECT_EQ(header[6], 1);
  EXPECT_EQ(header[7], 0);
  EXPECT_EQ(header.size() % 64, 0U);
  const std::size_t length = static_cast<unsigned char>(header[8]) + 256U * static_cast<unsigned char>(header[9]);
  EXPECT_EQ(header.size(), 10 + length);
  EXPECT_THAT(header, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2,3,224,224), }"));
  EXPECT_EQ(header.back(), '\n');
}

TEST(npy, a_vector_keeps_its_comma_and_a_scalar_has_none) {
  EXPECT_THAT(npy_header(dtype::i64, {5}), HasSubstr("'<i8', 'fortran_order': False, 'shape': (5,), "));
  EXPECT_THAT(npy_header(dtype::u8, {}), HasSubstr("'|u1', 'fortran_order': False, 'shape': (), "));
}

TEST(npy, bf16_is_written_as_its_bits) { EXPECT_THAT(npy_header(dtype::bf16, {1}), HasSubstr("'<u2'")); }

TEST(npy, a_file_is_the_header_and_the_bytes) {
  const leat::testing::temporary_directory directory;
  const std::string path = (directory.path() / "a.npy").string();
  std::array<std::int32_t, 6> values = {1, 2, 3, 4, 5, 6};
  write_npy(path, {dtype::i32, {2, 3}, {3, 1}, values.data(), host});
  const std::string file = leat::testing::text_of(path);
  const std::string header = npy_header(dtype::i32, {2, 3});
  ASSERT_EQ(file.size(), header.size() + sizeof values);
  EXPECT_EQ(file.substr(0, header.size()), header);
  EXPECT_EQ(std::memcmp(file.data() + header.size(), values.data(), sizeof values), 0);
}

TEST(npy, stopped_it_leaves_nothing) {
  const leat::testing::temporary_directory directory;
  std::array<std::uint8_t, 1> value = {1};
  std::stop_source stop;
  stop.request_stop();
  try {
    write_npy((directory.path() / "a.npy").string(), {dtype::u8, {1}, {1}, value.data(), host}, stop.get_token());
    FAIL() << "nothing was thrown";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::cancelled);
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(npy, a_directory_that_is_not_there_is_named) {
  std::array<std::uint8_t, 1> value = {1};
  try {
    write_npy("/no/such/place/a.npy", {dtype::u8, {1}, {1}, value.data(), host});
    FAIL() << "nothing was thrown";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::not_found);
    EXPECT_THAT(failure.what(), HasSubstr("/no/such/place/a.npy"));
  }
}

}  // namespace
}  // namespace leat::tools

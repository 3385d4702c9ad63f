#include "io/files/direct_policy.hpp"

#include "base/memory_available.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>

namespace leat::io {
namespace {

using ::testing::HasSubstr;

file_status ext4_file() {
  file_status status{};
  status.mask = file_status::mask_basic | file_status::mask_direct;
  status.direct_memory_alignment = 4;
  status.direct_offset_alignment = 512;
  return status;
}

TEST(direct_policy, reads_buffered_what_fits_in_half_of_the_memory_and_says_why) {
  direct_policy policy(choice::automatic);
  EXPECT_TRUE(policy.wants_direct()) << "nothing said: O_DIRECT";
  policy.set_epoch_bytes(1 << 20);
  EXPECT_FALSE(policy.wants_direct());
  EXPECT_EQ(policy.report().use, "off");
  EXPECT_THAT(policy.report().why, HasSubstr("an epoch reads 1.00 MiB, which fits in half of the"));
}

TEST(direct_policy, reads_direct_what_does_not_fit) {
  direct_policy policy(choice::automatic);
  policy.set_epoch_bytes(std::uint64_t{1} << 50);
  EXPECT_TRUE(policy.wants_direct());
  EXPECT_EQ(policy.report().use, "on");
  EXPECT_THAT(policy.report().why, HasSubstr("more than half of the"));
}

TEST(direct_policy, does_what_was_asked_for_whatever_fits) {
  direct_policy on(choice::on);
  on.set_epoch_bytes(1);
  EXPECT_TRUE(on.wants_direct());
  direct_policy off(choice::off);
  off.set_epoch_bytes(std::uint64_t{1} << 50);
  EXPECT_FALSE(off.wants_direct());
  EXPECT_EQ(off.report().why, "asked for");
}

TEST(file_modes, learns_a_directory_from_one_file) {
  direct_policy policy(choice::automatic);
  file_modes modes(policy);
  EXPECT_FALSE(modes.known(3).has_value());
  const file_status status = ext4_file();
  EXPECT_EQ(modes.learn(3, "/d/f", &status), 0);
  ASSERT_TRUE(modes.known(3).has_value());
  EXPECT_TRUE(modes.known(3)->direct);
  EXPECT_EQ(modes.known(3)->alignment, 512U);
  EXPECT_FALSE(modes.known(2).has_value());
}

// A symbolic link may lead to a file system that is none for O_DIRECT, or wants another alignment.
TEST(file_modes, looks_at_each_file_where_direct_was_insisted_on) {
  direct_policy policy(choice::on);
  file_modes modes(policy);
  file_status status = ext4_file();
  EXPECT_EQ(modes.learn(0, "/d/f", &status), 0);
  EXPECT_EQ(policy.report().use, "on");
  EXPECT_FALSE(modes.known(0).has_value());
  status.direct_offset_alignment = 4096;
  EXPECT_EQ(modes.learn(0, "/d/g", &status), 0);
  EXPECT_EQ(modes.mode_of(status).alignment, 4096U);
  status.direct_offset_alignment = 0;
  EXPECT_EQ(modes.learn(0, "/d/h", &status), EOPNOTSUPP);
}

TEST(file_modes, takes_4096_where_a_file_system_does_not_tell) {
  direct_policy policy(choice::automatic);
  file_modes modes(policy);
  file_status silent{};
  silent.mask = file_status::mask_basic;
  EXPECT_EQ(modes.learn(0, "/d/f", &silent), 0);
  EXPECT_EQ(modes.known(0)->alignment, 4096U);
  EXPECT_TRUE(modes.known(0)->direct);
}

TEST(file_modes, reads_buffered_where_there_is_no_direct_or_it_wants_too_much) {
  for (const std::uint32_t alignment : {0U, 65536U}) {
    direct_policy policy(choice::automatic);
    file_modes modes(policy);
    file_status status = ext4_file();
    status.direct_offset_alignment = alignment;
    EXPECT_EQ(modes.learn(0, "/d/f", &status), 0);
    EXPECT_FALSE(modes.known(0)->direct);
    EXPECT_EQ(policy.report().use, "off");
    EXPECT_THAT(policy.report().why, HasSubstr("/d/f"));
    direct_policy insisting(choice::on);
    file_modes strict(insisting);
    EXPECT_EQ(strict.learn(0, "/d/f", &status), EOPNOTSUPP);
  }
}

TEST(file_modes, goes_on_buffered_where_a_file_refuses_and_reports_it_once) {
  direct_policy policy(choice::automatic);
  file_modes modes(policy);
  const file_status status = ext4_file();
  EXPECT_EQ(modes.learn(0, "/a/f", &status), 0);
  EXPECT_EQ(modes.learn(1, "/b/f", &status), 0);
  EXPECT_TRUE(modes.refused(1, "/b/g", EINVAL));
  EXPECT_TRUE(modes.refused(1, "/b/h", EINVAL));
  EXPECT_FALSE(modes.known(1)->direct);
  EXPECT_TRUE(modes.known(0)->direct);
  EXPECT_EQ(policy.report().use, "partly");
  EXPECT_THAT(policy.report().why, HasSubstr("/b/g"));
  direct_policy insisting(choice::on);
  file_modes strict(insisting);
  EXPECT_FALSE(strict.refused(0, "/a/f", EINVAL));
}

TEST(file_status, has_a_version_that_follows_the_content) {
  file_status a{};
  a.size_bytes = 10;
  a.inode = 3;
  a.write_time = {1000, 5, 0};
  file_status b = a;
  EXPECT_EQ(a.version(), b.version());
  b.write_time.nanoseconds = 6;
  EXPECT_NE(a.version(), b.version());
  b = a;
  b.size_bytes = 11;
  EXPECT_NE(a.version(), b.version());
  b = a;
  b.inode = 4;
  EXPECT_NE(a.version(), b.version());
}

}  // namespace
}  // namespace leat::io

#include "io/files/read_error.hpp"

#include "base/errno_words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace leat::io {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(read_error, says_what_where_and_what_to_do_for_every_errno_a_read_ends_with) {
  struct expected {
    int code;
    const char* name;
    errc kind;
  };
  const expected all[] = {
      {EIO, "EIO", errc::io},
      {ENOENT, "ENOENT", errc::not_found},
      {EACCES, "EACCES", errc::permission},
      {EPERM, "EPERM", errc::permission},
      {EMFILE, "EMFILE", errc::limit},
      {ENFILE, "ENFILE", errc::limit},
      {ENOMEM, "ENOMEM", errc::limit},
      {ESTALE, "ESTALE", errc::io},
      {EISDIR, "EISDIR", errc::format},
      {EINVAL, "EINVAL", errc::unsupported},
      {EOPNOTSUPP, "EOPNOTSUPP", errc::unsupported},
      {ENOTDIR, "ENOTDIR", errc::not_found},
      {ELOOP, "ELOOP", errc::not_found},
      {EAGAIN, "EAGAIN", errc::io},
      {EINTR, "EINTR", errc::io},
      {ENXIO, "ENXIO", errc::io},
      {EUCLEAN, "EUCLEAN", errc::io},
      {ETIMEDOUT, "ETIMEDOUT", errc::io},
      {ENODATA, "ENODATA", errc::io},
  };
  for (const expected& each : all) {
    const error said = explain_read({.failure = each.code,
                                     .path = "/data/train-3.tar",
                                     .offset = 4711,
                                     .bytes = 100,
                                     .data_bytes = 10,
                                     .timeout_s = 300});
    EXPECT_EQ(said.code(), each.kind) << each.name;
    EXPECT_THAT(said.what(), AllOf(HasSubstr("/data/train-3.tar"), HasSubstr(each.name), HasSubstr("47"))) << each.name;
    // A remedy follows the semicolon, and the whole is one line.
    const std::string text = said.what();
    const std::size_t semicolon = text.find("; ");
    EXPECT_TRUE(semicolon != std::string::npos && text.size() > semicolon + 15) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST(read_error, names_where_a_file_ends_and_what_was_expected) {
  const error said = explain_read({.failure = ENODATA, .path = "/x", .offset = 1000, .bytes = 500, .data_bytes = 20});
  EXPECT_THAT(said.what(), AllOf(HasSubstr("ends at 1020"), HasSubstr("1500")));
}

TEST(read_error, names_where_a_file_was_expected_to_end) {
  const error said = explain_read({.failure = EFBIG, .path = "/x", .bytes = 4711});
  EXPECT_EQ(said.code(), errc::io);
  EXPECT_STREQ(said.what(),
               "/x: the file goes on after 4711 bytes, where it was expected to end (EFBIG); was it replaced since it "
               "was opened?");
}

// A file may be read by who has no dataset.
TEST(read_error, says_of_a_file_that_is_gone_what_is_true_for_any_reader) {
  EXPECT_STREQ(explain_open(ENOENT, "/x").what(),
               "/x: no such file (ENOENT); check the path, or whether it was moved or deleted");
  for (const int failure : {ENOENT, ENODATA, EFBIG, EIO, ESTALE}) {
    EXPECT_THAT(explain_read({.failure = failure, .path = "/x"}).what(),
                AllOf(Not(HasSubstr("dataset")), Not(HasSubstr("indexed"))));
  }
}

TEST(read_error, keeps_the_number_of_what_has_no_name) {
  EXPECT_EQ(errno_name(EIO), "EIO");
  EXPECT_EQ(errno_name(4095), "errno 4095");
  EXPECT_THAT(explain_open(4095, "/x").what(), HasSubstr("errno 4095"));
}

}  // namespace
}  // namespace leat::io

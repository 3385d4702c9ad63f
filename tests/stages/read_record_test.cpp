// A record gives back what was noted, takes at most 24 bytes a read, and is refused where a byte of it is missing or another one.
#include "stages/observe/read_record.hpp"

#include "tests/support/failures.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace leat::stages {
namespace {

using ::testing::HasSubstr;

constexpr recorded_settings settings_of_test{.io_threads = 2,
                                             .decode_threads = 8,
                                             .cores = 16,
                                             .batches = 9,
                                             .queue_depth = 64,
                                             .depth_by_bytes = 0,
                                             .tuned = 1,
                                             .on_device = 0,
                                             .read_bytes = std::uint64_t{1} << 33};

read_record parse(const std::string& text, const std::string& path = "epoch.rec") {
  return parse_read_record(std::as_bytes(std::span(text)), path);
}

// Times that a record can hold: whole ticks.
recorded_read read_of(std::uint64_t number) {
  const std::uint64_t begin = (std::uint64_t{7} << 40U) + number * 3 * 1024;
  return {.begin_ns = begin,
          .end_ns = begin + (1 + number % 100) * 1024,
          .offset = number * 4099,
          .bytes = 1 + number % 70'000,
          .batch = number / 64,
          .file = static_cast<std::uint32_t>(number % 5 * 3'000'000),
          .is_leased = number % 3 == 0,
          .loop = static_cast<std::uint32_t>(number / 64 % 2)};
}

recorded_batch batch_of(std::uint64_t number) {
  return {.number = number,
          .index = number % 10,
          .begun_ns = (number * 10 + 1) * 1024,
          .made_ns = (number * 10 + 2) * 1024,
          .arrived_ns = (number * 10 + 3) * 1024,
          .asked_ns = (number * 10 + 4) * 1024,
          .handed_ns = (number * 10 + 5) * 1024,
          .decode_ns = number * 17 * 1024,
          .decode_us2 = number * 19,
          .expand_ns = number * 23 * 1024,
          .epoch = static_cast<std::uint32_t>(number / 10),
          .timed = 3,
          .rows = 64,
          .decoded = 60};
}

std::string record_of(std::uint64_t reads, std::uint64_t batches, const std::filesystem::path& path) {
  read_recorder to(path.string(), settings_of_test);
  for (std::uint64_t i = 0; i < reads; ++i) to.add(read_of(i));
  for (std::uint64_t i = 0; i < batches; ++i) to.add(batch_of(i));
  to.finish({.io_awake_ns = 5, .reads_at_a_time = 128});
  EXPECT_EQ(to.failure(), 0);
  return testing::file_text(path);
}

TEST(read_record, gives_back_what_was_noted_in_no_more_than_24_bytes_a_read) {
  const testing::temporary_directory here;
  // Several blocks of each kind.
  constexpr std::uint64_t reads = 20'000;
  constexpr std::uint64_t batches = 1'500;
  const std::string text = record_of(reads, reads / 32, here.path() / "r.rec");
  EXPECT_LE(text.size(), 24 * reads);
  const read_record got = parse(text);
  EXPECT_EQ(got.settings, settings_of_test);
  EXPECT_EQ(got.totals,
            (recorded_totals{.reads = reads, .batches = reads / 32, .io_awake_ns = 5, .reads_at_a_time = 128}));
  ASSERT_EQ(got.reads.size(), reads);
  for (std::uint64_t i = 0; i < reads; ++i) ASSERT_EQ(got.reads[i], read_of(i)) << i;

  const read_record many = parse(record_of(0, batches, here.path() / "b.rec"));
  ASSERT_EQ(many.batches.size(), batches);
  for (std::uint64_t i = 0; i < batches; ++i) ASSERT_EQ(many.batches[i], batch_of(i)) << i;
  EXPECT_TRUE(many.reads.empty());
}

TEST(read_record, takes_reads_that_are_far_apart_and_cuts_numbers_that_do_not_fit) {
  const testing::temporary_directory here;
  const std::string path = (here.path() / "r.rec").string();
  std::vector<recorded_read> reads(4, read_of(1));
  reads[1].end_ns += std::uint64_t{3600} * 2'000'000'000;  // two hours later, and as long
  reads[2].batch = 1'000'000;
  reads[3].batch = 3;  // long before that
  reads[3].bytes = std::uint64_t{5} << 30U;
  {
    read_recorder to(path, settings_of_test);
    for (recorded_read& each : reads) {
      each.loop = 0;
      to.add(each);
    }
    to.finish({});
  }
  const read_record got = parse(testing::file_text(path));
  ASSERT_EQ(got.reads.size(), 4U);
  EXPECT_EQ(got.reads[0], reads[0]);
  EXPECT_EQ(got.reads[1].end_ns, reads[1].end_ns / 1024 * 1024);
  EXPECT_EQ(got.reads[1].end_ns - got.reads[1].begin_ns, ((std::uint64_t{1} << 24U) - 1) * 1024) << "17 s at most";
  EXPECT_EQ(got.reads[2].batch, 3U);
  EXPECT_EQ(got.reads[2].bytes, 0xFFFFFFFFU);
  EXPECT_EQ(got.reads[3].batch, 1'000'000U);
}

TEST(read_record, is_refused_where_it_is_cut_off_or_a_byte_of_it_is_another_one) {
  const testing::temporary_directory here;
  const std::string text = record_of(3'000, 40, here.path() / "r.rec");
  const auto refusal = [](const std::string& changed) {
    return testing::message_of(errc::format, [&] { static_cast<void>(parse(changed)); });
  };
  for (std::size_t bytes = 8; bytes < text.size(); bytes += bytes < 200 ? 1 : 997) {
    ASSERT_THAT(refusal(text.substr(0, bytes)), HasSubstr("the record is cut off, at byte")) << bytes;
  }
  for (std::size_t at = 8; at < text.size(); at += at < 200 ? 1 : 613) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    ASSERT_NE(refusal(changed), "") << at;
  }
  EXPECT_THAT(refusal(text + "x"), HasSubstr("bytes follow the end"));
  EXPECT_THAT(refusal("LEATREC9" + text.substr(8)), HasSubstr("is no record of a run"));
  EXPECT_THAT(refusal(""), HasSubstr("is no record of a run"));
}

TEST(read_record, is_not_there_before_it_is_whole) {
  const testing::temporary_directory here;
  const std::filesystem::path path = here.path() / "r.rec";
  {
    read_recorder to(path.string(), settings_of_test);
    for (std::uint64_t i = 0; i < 20'000; ++i) to.add(read_of(i));
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_TRUE(std::filesystem::is_empty(here.path()));
}

TEST(read_record, takes_the_place_of_a_record_or_of_nothing_and_of_no_other_file) {
  const testing::temporary_directory here;
  const std::string path = (here.path() / "r.rec").string();
  for (const char* const there : {"", "LEATREC1 and more"}) {
    testing::write_file(path, there);
    read_recorder(path, settings_of_test).finish({});
    EXPECT_EQ(parse(testing::file_text(path)).settings, settings_of_test);
  }
  for (const char* const there : {"x", "LEATREC", "my only copy of the labels"}) {
    testing::write_file(path, there);
    EXPECT_THAT(testing::message_of(errc::usage, [&] { const read_recorder to(path, settings_of_test); }),
                HasSubstr("would replace a file that is none; give another name"));
    EXPECT_EQ(testing::file_text(path), there);
  }
}

TEST(read_record, says_why_it_cannot_be_written) {
  const testing::temporary_directory here;
  const std::string path = (here.path() / "nowhere" / "r.rec").string();
  EXPECT_THAT(testing::message_of(errc::not_found, [&] { const read_recorder to(path, settings_of_test); }),
              HasSubstr("cannot write the record " + path));
  EXPECT_THAT(testing::message_of(errc::usage, [&] { const read_recorder to(here.path(), settings_of_test); }),
              HasSubstr("no regular file"));
}

}  // namespace
}  // namespace leat::stages

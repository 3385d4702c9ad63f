// Shards as open_tar sees them, each shape of archive made by hand.
#include "datasets/formats/tar/webdataset.hpp"
#include "datasets/model/model.hpp"
#include "datasets/model/sample_blocks.hpp"
#include "tests/datasets/archive.hpp"
#include "tests/support/coded_forms.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/index_options.hpp>
#include <leat/open_tar.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using testing::archive;
using testing::bytes_of_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::tar_dialect;
using testing::temporary_directory;

class tar : public ::testing::Test {
 protected:
  std::string path(const std::string& name = "s.tar") const { return (directory_.path() / name).string(); }
  dataset opened(const archive& from) const { return open_tar(from.save(path())); }

  // "key: field=content ..." per sample.
  static std::vector<std::string> samples(const dataset& of) {
    std::vector<std::string> all;
    for (std::uint64_t i = 0; i < of.size(); ++i) {
      const std::string name = of.name(i);
      std::string line = name.substr(name.find(".tar/") + 5) + ":";
      datasets::part_list parts;
      of.model()->parts(i, parts);
      for (const datasets::part& each : parts) {
        const std::string& field = of.model()->fields()[each.field].name;
        const std::vector<std::byte> bytes = of.read(i, field);
        line += " " + field + "=" + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      }
      all.push_back(line);
    }
    return all;
  }

  static std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::string failure_of(const archive& from, errc expected) const {
    try {
      static_cast<void>(opened(from));
    } catch (const error& caught) {
      EXPECT_EQ(caught.code(), expected) << caught.what();
      EXPECT_THAT(caught.what(), HasSubstr(path()));
      return caught.what();
    }
    ADD_FAILURE() << "the shard was opened";
    return {};
  }

  temporary_directory directory_;
};

TEST_F(tar, neighbours_of_one_key_are_one_sample_and_fields_are_lower_case) {
  archive shard;
  shard.file("a/1.jpg", "J1").file("a/1.cls", "7").file("a/2.JPG", "J2").file("a/2.CLS", "8").end();
  const dataset photos = opened(shard);
  EXPECT_THAT(samples(photos), ElementsAre("a/1: jpg=J1 cls=7", "a/2: jpg=J2 cls=8"));
  const std::vector<field_info> fields = photos.fields();
  ASSERT_EQ(fields.size(), 2U);
  EXPECT_EQ(fields[0].kind, field_kind::picture);
  EXPECT_EQ(fields[1].kind, field_kind::label);
  EXPECT_EQ(fields[0].bytes_total, 4U);
  EXPECT_EQ(photos.name(1), path() + "/a/2");
  EXPECT_EQ(photos.label(0), std::nullopt);
}

TEST_F(tar, a_key_ends_at_the_first_dot_of_the_last_part) {
  archive shard;
  shard.file("v1.0/x.seg.png", "S").file("v1.0/x.jpg", "J").file("v1.0/y.jpg", "K").end();
  EXPECT_THAT(samples(opened(shard)), ElementsAre("v1.0/x: seg.png=S jpg=J", "v1.0/y: jpg=K"));
}

TEST_F(tar, a_key_that_comes_back_later_is_another_sample) {
  archive shard;
  shard.file("x.jpg", "1").file("y.jpg", "2").file("x.jpg", "3").end();
  EXPECT_THAT(samples(opened(shard)), ElementsAre("x: jpg=1", "y: jpg=2", "x: jpg=3"));
}

TEST_F(tar, what_is_no_regular_file_or_has_no_key_is_skipped_and_counted) {
  archive shard;
  shard.add({.name = "d/", .type = '5'});
  shard.file("d/1.jpg", "1");
  shard.add({.name = "d/link.jpg", .type = '2', .link_name = "1.jpg"});
  shard.add({.name = "d/fifo.jpg", .type = '6'});
  shard.file("README", "text").file("d/1.cls", "0").file("__meta__", "{}").file("__parts__/x.json", "{}");
  shard.add({.name = "old/", .type = '\0'});
  shard.add({.name = "label", .type = 'V'});
  shard.end();
  const dataset one = opened(shard);
  EXPECT_THAT(samples(one), ElementsAre("d/1: jpg=1 cls=0"));
  EXPECT_THAT(one.notes(), ElementsAre(AllOf(HasSubstr("4 members skipped"), HasSubstr("1 symbolic link"))));
}

// As macOS' tar writes a folder that has attributes: their files would take the labels of others.
TEST_F(tar, hidden_members_belong_to_no_sample_and_are_counted) {
  archive shard;
  for (const std::string number : {"0", "1", "2"}) {
    shard.file("./train/._" + number + ".jpg", "Mac").file("./train/" + number + ".jpg", "J" + number);
    shard.file("./train/._" + number + ".cls", "Mac").file("./train/" + number + ".cls", number);
  }
  shard.file("train/.DS_Store", "x").file("train/Thumbs.db", "x").file("__MACOSX/train/0.jpg", "x");
  shard.file("train/@eaDir/0.jpg", "x").file(".git/x.json", "{}").end();
  const dataset one = opened(shard);
  EXPECT_THAT(samples(one),
              ElementsAre("./train/0: jpg=J0 cls=0", "./train/1: jpg=J1 cls=1", "./train/2: jpg=J2 cls=2"));
  EXPECT_EQ(one.fields().size(), 2U);
  EXPECT_THAT(one.notes(), ElementsAre(HasSubstr("left out: 11 hidden files (./train/._0.cls, ./train/._0.jpg, "
                                                 "./train/._1.cls and 8 more)")));
}

TEST_F(tar, empty_members_and_odd_sizes_lie_where_they_are) {
  archive shard;
  shard.file("a.jpg", "").file("a.txt", std::string(513, 'x')).file("b.jpg", std::string(512, 'y')).end();
  const dataset two = opened(shard);
  EXPECT_THAT(samples(two), ElementsAre("a: jpg= txt=" + std::string(513, 'x'), "b: jpg=" + std::string(512, 'y')));
}

TEST_F(tar, long_names_come_from_gnu_pax_and_prefix) {
  const std::string gnu = std::string(150, 'g') + "/" + std::string(100, 'h');
  const std::string pax = std::string(300, 'p');
  const std::string prefix = std::string(80, 'd') + "/" + std::string(90, 'n');
  archive shard;
  shard.file(gnu + ".jpg", "1");
  shard.add(
      {.name = "short", .contents = bytes_of_text("2"), .pax_records = {{"path", pax + ".jpg"}, {"mtime", "1.5"}}},
      tar_dialect::pax);
  shard.add({.name = prefix + ".jpg", .contents = bytes_of_text("3")}, tar_dialect::ustar);
  shard.add({.name = "link", .type = '2', .link_name = std::string(200, 'l')}).file("n.jpg", "4");
  shard.end();
  EXPECT_THAT(samples(opened(shard)), ElementsAre(gnu + ": jpg=1", pax + ": jpg=2", prefix + ": jpg=3", "n: jpg=4"));
}

TEST_F(tar, gnu_keeps_times_where_posix_keeps_the_prefix) {
  archive shard;
  shard.file("n.jpg", "4");
  // An access time, as `tar --incremental` writes it, and the checksum with it.
  const std::string time = "12345670123";
  unsigned sum = 0;
  std::string& bytes = shard.bytes();
  std::copy(time.begin(), time.end(), bytes.begin() + 345);
  std::fill_n(bytes.begin() + 148, 8, ' ');
  for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(bytes[i]);
  std::snprintf(&bytes[148], 7, "%06o", sum);
  EXPECT_THAT(samples(opened(shard.end())), ElementsAre("n: jpg=4"));
}

TEST_F(tar, sizes_may_be_base_256_or_pax_and_checksums_signed) {
  archive shard;
  shard.add({.name = "a.jpg", .contents = bytes_of_text("abc"), .base256 = true});
  shard.add({.name = "b.jpg", .contents = bytes_of_text("defg"), .size_in_pax = true}, tar_dialect::pax);
  shard.add({.name = "\xc3\xa9.jpg", .contents = bytes_of_text("h"), .signed_checksum = true});
  shard.global_pax({{"comment", "of no concern"}}).file("c.jpg", "i").end();
  EXPECT_THAT(samples(opened(shard)), ElementsAre("a: jpg=abc", "b: jpg=defg", "\xc3\xa9: jpg=h", "c: jpg=i"));
}

TEST_F(tar, headers_across_any_border_of_a_buffer_are_found) {
  // Long pax records before members of every small size move headers over every border of a page and a buffer.
  archive shard;
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < 600; ++i) {
    const std::string key = "k" + std::to_string(i) + std::string(i % 7 == 0 ? 3000 : 90, 'n');
    const std::string text(i * 37 % 2000, static_cast<char>('a' + i % 26));
    shard.add({.name = "x", .contents = bytes_of_text(text), .pax_records = {{"path", key + ".txt"}}},
              tar_dialect::pax);
    expected.push_back(key + ": txt=" + text);
  }
  shard.end();
  EXPECT_EQ(samples(opened(shard)), expected);
}

TEST_F(tar, an_archive_without_its_end_is_whole) {
  archive shard;
  shard.file("a.jpg", "1");
  EXPECT_THAT(samples(opened(shard)), ElementsAre("a: jpg=1"));
  EXPECT_THAT(opened(shard).notes(),
              ElementsAre(AllOf(HasSubstr("no end marker"), HasSubstr("samples may be missing"))));
  shard.raw(std::string(512, '\0'));
  EXPECT_THAT(opened(shard).notes(), IsEmpty()) << "one zero block is a marker, too";
  shard.cut_to(512 + 1);  // Not even the padding is there, all of the content is.
  EXPECT_THAT(samples(opened(shard)), ElementsAre("a: jpg=1"));
}

TEST_F(tar, bytes_after_the_end_are_told) {
  archive shard;
  shard.file("a.jpg", "1").end().file("b.jpg", std::string(20000, 'b')).end();
  const dataset one = opened(shard);
  EXPECT_THAT(samples(one), ElementsAre("a: jpg=1"));
  EXPECT_THAT(one.notes(), ElementsAre(HasSubstr("after the archive's end")));
}

class concatenated_tars : public tar {
 protected:
  // Of archives as a writer ends them: with this many zero blocks.
  static archive joined(std::size_t zero_blocks) {
    archive whole;
    const std::string zeros(zero_blocks * 512, '\0');
    whole.file("a.jpg", "1").raw(zeros).file("a.jpg", "2").file("a.cls", "7").raw(zeros);
    const std::string long_name = std::string(300, 'n') + ".jpg";
    whole.add({.name = long_name, .contents = bytes_of_text("3")}).raw(zeros);
    return whole;
  }
  dataset read_whole(const archive& from) const { return open_tar(from.save(path()), {.ignore_zeros = true}); }
};

TEST_F(concatenated_tars, are_warned_of_with_the_place_of_the_second) {
  for (const std::size_t zero_blocks : {1U, 2U, 18U, 38U, 2000U}) {
    const dataset one = opened(joined(zero_blocks));
    EXPECT_THAT(samples(one), ElementsAre("a: jpg=1"));
    EXPECT_THAT(
        one.notes(),
        ElementsAre(AllOf(HasSubstr("another archive begins at offset " + std::to_string(1024 + 512 * zero_blocks)),
                          HasSubstr("samples are missing"), HasSubstr("tar_options::ignore_zeros"))))
        << zero_blocks;
  }
}

TEST_F(concatenated_tars, are_read_whole_where_zeros_are_ignored) {
  for (const std::size_t zero_blocks : {1U, 2U, 18U, 2000U, 5000U}) {
    const dataset all = read_whole(joined(zero_blocks));
    EXPECT_THAT(samples(all), ElementsAre("a: jpg=1", "a: jpg=2 cls=7", std::string(300, 'n') + ": jpg=3"))
        << zero_blocks;
    EXPECT_THAT(all.notes(), IsEmpty());
  }
}

TEST_F(concatenated_tars, of_which_the_last_is_cut_or_has_no_end_are_what_they_would_be_alone) {
  archive whole = joined(20);
  std::string cut = whole.bytes();
  cut.resize(1024 + 20 * 512 + 1024 + 100);  // Within the header of the second archive's second member.
  const dataset two = read_whole(archive().raw(cut));
  EXPECT_EQ(two.size(), 2U);
  EXPECT_TRUE(two.model()->defect_of(1).has_value());
}

TEST_F(concatenated_tars, with_something_else_behind_the_marker_are_told_so) {
  archive shard;
  shard.file("a.jpg", "1").end().raw(std::string(700, 'z'));
  EXPECT_THAT(opened(shard).notes(), ElementsAre(AllOf(HasSubstr("700 bytes after the archive's end"))));
  try {
    static_cast<void>(read_whole(shard));
    ADD_FAILURE() << "it was taken";
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), errc::format);
    EXPECT_THAT(caught.what(), AllOf(HasSubstr("offset 2048"), HasSubstr("tar_options::ignore_zeros")));
  }
  archive padded;  // As `tar --blocking-factor=2048` ends it.
  padded.file("a.jpg", "1").raw(std::string((1 << 20) - 1024, '\0'));
  EXPECT_THAT(opened(padded).notes(), IsEmpty());
}

TEST_F(tar, a_file_of_something_else_says_what_it_is_and_what_to_do) {
  const auto said = [&](std::string_view start) {
    // A file that is shorter than a header is looked at all the same.
    EXPECT_EQ(failure_of(archive().raw(std::string(start) + std::string(100, ' ')), errc::unsupported),
              failure_of(archive().raw(std::string(start) + std::string(1000, ' ')), errc::unsupported));
    return failure_of(archive().raw(std::string(start) + std::string(1000, ' ')), errc::unsupported);
  };
  EXPECT_THAT(said("<!DOCTYPE html><title>404</title>"), HasSubstr("an HTML page"));
  EXPECT_THAT(said("version https://git-lfs.github.com/spec/v1\noid sha256:"), HasSubstr("git lfs pull"));
  EXPECT_THAT(said("\xff\xd8\xff\xe0"), AllOf(HasSubstr("a JPEG"), HasSubstr("give the folder")));
  EXPECT_THAT(said("PAR1"), AllOf(HasSubstr("Parquet"), HasSubstr("tar shards")));
  EXPECT_THAT(said("PK\x03\x04"), HasSubstr("unpack it"));
  EXPECT_THAT(said("a list of my pictures\n"), HasSubstr("text, 'a list of my pictures...'"));
}

TEST_F(tar, symbolic_links_alone_say_how_to_store_what_they_lead_to) {
  archive shard;
  shard.add({.name = "a.jpg", .type = '2', .link_name = "/data/a.jpg"}).end();
  const dataset none = opened(shard);
  EXPECT_EQ(none.size(), 0U);
  EXPECT_THAT(none.notes(), ElementsAre(AllOf(HasSubstr("1 member skipped"), HasSubstr("1 symbolic link among"),
                                              HasSubstr("--dereference"))));
}

TEST_F(tar, an_archive_of_nothing_has_no_samples) {
  EXPECT_EQ(opened(archive().end()).size(), 0U);
  EXPECT_THAT(failure_of(archive(), errc::format), HasSubstr("empty"));
}

TEST_F(tar, sparse_members_are_refused_by_name) {
  archive sparse;
  sparse.file("a.jpg", "1").add({.name = "hole.jpg", .contents = bytes_of_text("12345"), .type = 'S'}).end();
  EXPECT_THAT(failure_of(sparse, errc::unsupported),
              AllOf(HasSubstr("'hole.jpg'"), HasSubstr("sparse"), HasSubstr("1024")));
  archive pax_sparse;
  pax_sparse.add({.name = "x/hole.jpg", .contents = bytes_of_text("1"), .pax_records = {{"GNU.sparse.major", "1"}}},
                 tar_dialect::pax);
  EXPECT_THAT(failure_of(pax_sparse.end(), errc::unsupported), HasSubstr("sparse"));
}

TEST_F(tar, a_hard_link_has_the_bytes_of_an_earlier_member) {
  archive shard;
  shard.file("./a.jpg", "first").file("./a.cls", "4");
  shard.file("b.cls", "5").add({.name = "b.jpg", .type = '1', .link_name = "./a.jpg"}, tar_dialect::gnu);
  shard.file("c.jpg", "third").add({.name = "c.cls", .type = '1', .link_name = "b.cls"}, tar_dialect::gnu);
  shard.add({.name = "d.jpg", .type = '1', .link_name = "b.jpg"}, tar_dialect::gnu);
  shard.add({.name = "d.cls", .type = '1', .link_name = "c.cls"}, tar_dialect::gnu);
  shard.file("e.jpg", "fifth").add({.name = "e.cls", .type = '1', .link_name = "e.jpg"}, tar_dialect::gnu);
  shard.add({.name = "f.jpg", .type = '1', .link_name = "g.jpg"}, tar_dialect::gnu).file("g.jpg", "later").end();
  const std::pair<const char*, const char*> expected[] = {
      {"first", "4"}, {"first", "5"}, {"third", "5"}, {"first", "5"}, {"fifth", "fifth"}};
  const auto check = [&](const dataset& samples) {
    ASSERT_EQ(samples.size(), 7U);
    EXPECT_EQ(samples.model()->defects(), 1U);
    for (std::uint64_t i = 0; i < 5; ++i) {
      EXPECT_EQ(text_of(samples.read(i, "jpg")), expected[i].first) << i;
      EXPECT_EQ(text_of(samples.read(i, "cls")), expected[i].second) << i;
      EXPECT_THAT(samples.name(i), ::testing::EndsWith(std::string("/") + "abcde"[i]));
    }
    ASSERT_TRUE(samples.model()->defect_of(5));
    EXPECT_THAT(samples.model()->defect_of(5)->reason, HasSubstr("'g.jpg', which is no earlier member"));
    EXPECT_EQ(samples.fields()[0].bytes_max, 5U);
  };
  check(opened(shard));
  // The same compressed, of which several samples are in a block; in an index that is kept; and in one that lies beside shards.
  const std::string linked = path("linked.tar");
  for (const auto& [ending, bytes] :
       {std::pair<std::string, std::string>{".gz", testing::coded(datasets::packing::gzip, shard.bytes())},
        {".zst", testing::coded_in_parts(datasets::packing::zstd, shard.bytes(), 1024)},
        {"", shard.bytes()}}) {
    testing::put(linked + ending, bytes);
    std::filesystem::last_write_time(linked + ending,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
    std::vector<index_report::outcome> outcomes;
    tar_options options;
    options.index = {.use = index_use::check,
                     .directory = linked + ".indexes",
                     .on_report = [&](const index_report& report) { outcomes.push_back(report.what); }};
    for (int time = 0; time < 2; ++time) check(open_tar(linked + ending, options));
    EXPECT_THAT(outcomes, ElementsAre(index_report::outcome::written, index_report::outcome::used)) << ending;
  }
}

TEST_F(tar, a_hard_link_that_leads_nowhere_hurts_its_sample_only) {
  archive shard;
  shard.file("a.jpg", "1").file("a.cls", "4");
  shard.file("b.cls", "5").add({.name = "b.jpg", .type = '1', .link_name = "x.jpg"}, tar_dialect::gnu);
  shard.file("c.jpg", "3").file("c.cls", "6");
  const std::string far = std::string(150, 'd') + "/a.jpg";
  shard.add({.name = "d.jpg", .type = '1', .link_name = "d", .pax_records = {{"linkpath", far}}}, tar_dialect::pax);
  shard.file("e.jpg", "7").add({.name = "README", .type = '1', .link_name = "a.jpg"}, tar_dialect::gnu).end();
  const dataset opened_shard = opened(shard);
  ASSERT_EQ(opened_shard.size(), 5U);
  EXPECT_EQ(opened_shard.model()->defects(), 2U);
  for (const std::uint64_t whole : {0U, 2U, 4U}) EXPECT_EQ(opened_shard.model()->defect_of(whole), std::nullopt);
  EXPECT_THAT(opened_shard.name(2), ::testing::EndsWith("/c"));
  EXPECT_THAT(opened_shard.name(3), ::testing::EndsWith("/d"));
  const std::optional<datasets::defect> near = opened_shard.model()->defect_of(1);
  ASSERT_TRUE(near);
  EXPECT_EQ(near->reason,
            "unsupported: member 'b.jpg' is a hard link to 'x.jpg', which is no earlier member of a sample in this "
            "shard; write the archive again with tar's --hard-dereference");
  EXPECT_THAT(opened_shard.model()->defect_of(3)->reason, HasSubstr("to '" + far + "'"));
}

TEST_F(tar, a_hard_link_with_a_long_name_of_gnu_says_where_it_leads) {
  const std::string far = std::string(150, 'd') + "/a.jpg";
  archive shard;
  shard.file("a.jpg", "1").add({.name = "././@LongLink", .contents = bytes_of_text(far), .type = 'K'});
  shard.add({.name = "b.jpg", .type = '1', .link_name = far.substr(0, 99)}).end();
  EXPECT_THAT(opened(shard).model()->defect_of(1)->reason, HasSubstr("to '" + far + "'"));
}

TEST_F(tar, compressed_archives_and_other_files_say_what_they_are) {
  EXPECT_THAT(failure_of(archive().raw("\x1f\x8b" + std::string(1000, 'z')), errc::unsupported), HasSubstr("gzip"));
  EXPECT_THAT(failure_of(archive().raw("\x28\xb5\x2f\xfd" + std::string(1000, 'z')), errc::unsupported),
              HasSubstr("zstd"));
  EXPECT_THAT(failure_of(archive().raw(std::string(1000, 'z')), errc::unsupported), HasSubstr("no tar archive"));
  EXPECT_THAT(failure_of(archive().raw(std::string(1000, '\1')), errc::format), HasSubstr("no tar archive"));
}

TEST_F(tar, a_damaged_header_is_an_error_with_its_offset) {
  archive shard;
  shard.file("a.jpg", "1");
  const std::size_t second = shard.size();
  shard.file("b.jpg", "2").end();
  shard.bytes()[second] = 'B';
  EXPECT_THAT(failure_of(shard, errc::format), AllOf(HasSubstr("offset 1024"), HasSubstr("checksum")));
}

TEST_F(tar, damaged_pax_headers_are_errors_with_their_offset) {
  for (const std::string& text : {std::string("99 path=x\n"), std::string("x path=y\n"), std::string("12 path=abcd"),
                                  std::string("9 path x\n"), std::string("10 size=x\n"), std::string("3 \n")}) {
    archive shard;
    shard.file("a.jpg", "1").add({.name = "x", .contents = bytes_of_text(text), .type = 'x'}).file("b.jpg", "2").end();
    EXPECT_THAT(failure_of(shard, errc::format), HasSubstr("offset 1024")) << text;
  }
  const std::string zeros(2 << 20, '\0');
  archive huge;
  huge.add({.name = "x", .contents = bytes_of_text(zeros), .type = 'x'}).end();
  EXPECT_THAT(failure_of(huge, errc::format), HasSubstr("1 MiB"));
}

TEST_F(tar, a_field_given_twice_is_the_defect_of_its_sample) {
  archive shard;
  shard.file("a.jpg", "1").file("b.jpg", "2").file("b.JPG", "3").file("b.cls", "0").file("c.jpg", "4").end();
  const dataset three = opened(shard);
  ASSERT_EQ(three.size(), 3U);
  EXPECT_EQ(three.model()->defects(), 1U);
  const std::optional<datasets::defect> defect = three.model()->defect_of(1);
  ASSERT_TRUE(defect);
  EXPECT_THAT(defect->reason, AllOf(HasSubstr("'jpg' twice"), HasSubstr("offset 1536"), HasSubstr("'b.JPG'")));
  EXPECT_EQ(defect->offset, 2048U);
  EXPECT_EQ(three.name(1), path() + "/b");
  EXPECT_THROW(static_cast<void>(three.read(1)), error);
  EXPECT_EQ(three.read(2).size(), 1U);
}

TEST_F(tar, a_cut_inside_a_member_hurts_its_sample_only) {
  archive shard;
  shard.file("a.jpg", std::string(600, '1')).file("b.cls", "0").file("b.jpg", std::string(600, '2'));
  shard.cut_to(shard.size() - 512);
  const dataset cut = opened(shard);
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_EQ(cut.model()->defect_of(0), std::nullopt);
  const std::optional<datasets::defect> defect = cut.model()->defect_of(1);
  ASSERT_TRUE(defect);
  EXPECT_THAT(defect->reason, AllOf(HasSubstr("ends inside 'b.jpg'"), HasSubstr("600 bytes"), HasSubstr("3072")));
  EXPECT_THAT(cut.notes(), IsEmpty()) << "it is told once, as the sample's defect";
  EXPECT_EQ(cut.fields()[0].bytes_max, 600U);
}

TEST_F(tar, every_cut_of_a_shard_is_whole_samples_and_one_defect_or_an_error) {
  archive whole;
  whole.file("a.jpg", std::string(700, '1')).file("a.cls", "0");
  whole.file(std::string(120, 'b') + ".jpg", "0123456789");
  whole.file("c.jpg", "3").end();
  for (std::size_t bytes = 1; bytes < whole.size(); bytes += 61) {
    archive shard = whole;
    shard.cut_to(bytes);
    SCOPED_TRACE("cut to " + std::to_string(bytes));
    try {
      const dataset cut = opened(shard);
      EXPECT_LE(cut.model()->defects(), 1U);
      for (std::uint64_t i = 0; i < cut.size(); ++i) {
        EXPECT_FALSE(cut.name(i).empty());
        if (!cut.model()->defect_of(i)) EXPECT_NO_THROW(static_cast<void>(cut.read(i)));
        if (i + 1 < cut.size()) EXPECT_FALSE(cut.model()->defect_of(i));
      }
    } catch (const error& caught) {
      EXPECT_EQ(caught.code(), errc::format);
      EXPECT_LT(bytes, 512U) << caught.what();
    }
  }
}

TEST_F(tar, half_a_header_at_the_end_is_the_defect_of_the_last_sample) {
  archive shard;
  shard.file("a.jpg", "1").file("b.jpg", "2").file("b.cls", "0").cut_to(2048 + 300);
  const dataset cut = opened(shard);
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_THAT(cut.model()->defect_of(1)->reason, AllOf(HasSubstr("inside a header"), HasSubstr("2048")));
  EXPECT_THAT(failure_of(archive().file("a.jpg", "").cut_to(100), errc::format), HasSubstr("at offset 0: it was cut"));
}

TEST_F(tar, a_size_beyond_all_files_is_a_cut_and_no_overflow) {
  archive shard;
  shard.file("a.jpg", "1").add({.name = "b.jpg", .claimed_bytes = ~std::uint64_t{0} >> 1, .base256 = true});
  const dataset cut = opened(shard);
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_TRUE(cut.model()->defect_of(1));
}

TEST_F(tar, several_shards_come_in_the_order_given_with_one_set_of_fields) {
  archive().file("a.jpg", "1").file("a.cls", "5").end().save(path("x-0.tar"));
  archive().file("b.json", "{}").file("b.jpg", "2").end().save(path("x-1.tar"));
  archive().file("c.jpg", "3").end().save(path("x-2.tar"));
  const std::string root = directory_.path().string();
  EXPECT_THAT(samples(open_tar(root + "/x-{2..0..-1}.tar")),
              ElementsAre("c: jpg=3", "b: json={} jpg=2", "a: jpg=1 cls=5"));
  const dataset sorted = open_tar(root + "/x-*.tar");
  EXPECT_THAT(samples(sorted), ElementsAre("a: jpg=1 cls=5", "b: json={} jpg=2", "c: jpg=3"));
  const std::vector<field_info> fields = sorted.fields();
  ASSERT_EQ(fields.size(), 3U);
  EXPECT_EQ(fields[0].name, "jpg");
  EXPECT_EQ(fields[0].samples, 3U);
  EXPECT_EQ(fields[1].name, "cls");
  EXPECT_EQ(fields[2].name, "json");
}

TEST_F(tar, shards_are_the_blocks_of_their_samples) {
  archive().file("a.jpg", "1").file("b.jpg", "2").end().save(path("x-0.tar"));
  archive().end().save(path("x-1.tar"));
  archive().file("c.jpg", "3").file("d.jpg", "4").file("e.jpg", "5").end().save(path("x-2.tar"));
  const std::string root = directory_.path().string();
  const datasets::sample_blocks shards = open_tar(root + "/x-{0..2}.tar").model()->blocks();
  EXPECT_EQ(shards.size(), 2U);
  EXPECT_EQ(shards.first(1), 2U);
  EXPECT_TRUE(open_tar(root + "/x-2.tar").model()->blocks().empty());
}

TEST_F(tar, a_missing_shard_is_named) {
  archive().end().save(path("x-0.tar"));
  try {
    static_cast<void>(open_tar(directory_.path().string() + "/x-{0..3}.tar"));
    FAIL();
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), errc::not_found);
    EXPECT_THAT(caught.what(), AllOf(HasSubstr("x-1.tar"), HasSubstr("4 shards")));
  }
}

TEST_F(tar, a_sample_without_a_field_names_those_it_has) {
  archive().file("a.jpg", "1").file("a.json", "{}").file("b.cls", "0").end().save(path());
  const dataset two = open_tar(path());
  try {
    static_cast<void>(two.read(0, "cls"));
    FAIL();
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), errc::not_found);
    EXPECT_THAT(caught.what(), AllOf(HasSubstr(path() + "/a"), HasSubstr("jpg, json")));
  }
}

TEST_F(tar, a_shard_that_changed_since_it_was_opened_says_so_when_asked_for_a_name) {
  archive().file("a.jpg", "1").file("b.jpg", "2").end().save(path());
  const dataset two = open_tar(path());
  archive().file("other.jpg", std::string(5000, 'x')).end().save(path());
  try {
    static_cast<void>(two.name(1));
    FAIL();
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), errc::format);
  }
}

TEST_F(tar, a_million_samples_of_one_field_cost_less_than_24_bytes_each) {
  archive shard;
  for (int i = 0; i < 2000; ++i)
    shard.file("k" + std::to_string(i) + ".jpg", "x").file("k" + std::to_string(i) + ".cls", "1");
  const dataset pairs = opened(shard.end());
  EXPECT_LE(pairs.memory().extents, 2000 * 2 * 18 + 64);
}

TEST(webdataset, splits_names_as_its_regular_expression_does) {
  const auto split = [](std::string_view path) -> std::string {
    const auto name = datasets::split_member_name(path);
    return name ? std::string(name->key) + "|" + std::string(name->extension) : "none";
  };
  // Each checked with re.match(r"^((?:.*/|)[^.]+)[.]([^/]*)$", path).
  EXPECT_EQ(split("a.jpg"), "a|jpg");
  EXPECT_EQ(split("a.b.c"), "a|b.c");
  EXPECT_EQ(split("./a.jpg"), "./a|jpg");
  EXPECT_EQ(split("x.y/a.jpg"), "x.y/a|jpg");
  EXPECT_EQ(split("a"), "none");
  EXPECT_EQ(split("x.y/a"), "none");
  EXPECT_EQ(split(".jpg"), "none");
  EXPECT_EQ(split("d/.jpg"), "d/|jpg");
  EXPECT_EQ(split("d.e/.jpg"), "none");
  EXPECT_EQ(split("x.y/z/.jpg"), "x.y/z/|jpg");
  EXPECT_EQ(split("/.jpg"), "/|jpg");
  EXPECT_EQ(split("a."), "a|");
  EXPECT_EQ(split(""), "none");
  EXPECT_TRUE(datasets::is_archive_metadata("__index__"));
  EXPECT_TRUE(datasets::is_archive_metadata("__x__/y.jpg"));
  EXPECT_FALSE(datasets::is_archive_metadata("__x__.jpg"));
}

}  // namespace
}  // namespace leat

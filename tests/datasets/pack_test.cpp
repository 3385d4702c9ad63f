#include "datasets/write/pack.hpp"

#include "base/text.hpp"
#include "datasets/formats/tar/webdataset.hpp"
#include "datasets/model/hidden_names.hpp"
#include "datasets/model/member_key.hpp"
#include "datasets/model/model.hpp"
#include "datasets/write/tar_writer.hpp"
#include "tests/datasets/archive.hpp"
#include "tests/datasets/programs.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tar.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat::datasets {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::archive;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::message_of;
using ::testing::Not;
using ::testing::SizeIs;
using testing::temporary_directory;

void put(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> listing(const fs::path& directory) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class packing : public ::testing::Test {
 protected:
  // n samples "0".."n-1" of `bytes` bytes each.
  static dataset numbers(std::uint64_t n, std::size_t bytes = 10) {
    return from_function(
        n, [=](std::uint64_t i) { return std::vector<std::byte>(bytes, static_cast<std::byte>(i)); },
        {.field = "bin", .bytes_max = bytes, .name = [](std::uint64_t i) { return std::to_string(i); }});
  }

  std::string out(const std::string& name) const { return (out_.path() / name).string(); }

  std::vector<std::uint64_t> sizes(const std::string& pattern) const {
    std::vector<std::uint64_t> all;
    for (const std::string& name : listing(out_.path())) {
      if (name.starts_with(pattern)) all.push_back(open_tar(out(name)).size());
    }
    return all;
  }

  temporary_directory root_;
  temporary_directory out_;
};

TEST_F(packing, a_brace_list_is_exactly_so_many_shards_as_even_as_can_be) {
  const pack_result result = pack(numbers(10), out("p-{000..003}.tar"), {});
  EXPECT_THAT(listing(out_.path()), ElementsAre("p-000.tar", "p-001.tar", "p-002.tar", "p-003.tar"));
  EXPECT_THAT(sizes("p-"), ElementsAre(3, 3, 2, 2));
  EXPECT_EQ(result.samples, 10U);
  ASSERT_THAT(result.shards, SizeIs(4));
  EXPECT_EQ(result.shards[1].bytes, fs::file_size(out("p-001.tar")));
  pack(numbers(2), out("q-{0..2}.tar"), {});
  EXPECT_THAT(sizes("q-"), ElementsAre(1, 1, 0));
  pack(numbers(0), out("r-{0..1}.tar"), {});
  EXPECT_THAT(sizes("r-"), ElementsAre(0, 0));
}

TEST_F(packing, a_pattern_is_as_many_shards_as_it_takes) {
  pack(numbers(10), out("p-%06d.tar"), {.samples_per_shard = 4});
  EXPECT_THAT(listing(out_.path()), ElementsAre("p-000000.tar", "p-000001.tar", "p-000002.tar"));
  EXPECT_THAT(sizes("p-"), ElementsAre(4, 4, 2));
  // 1,024 bytes each and 1,024 for the end: four fit into 5,120.
  pack(numbers(10), out("q%d%%.tar"), {.bytes_per_shard = 5 * 1024});
  EXPECT_THAT(sizes("q"), ElementsAre(4, 4, 2));
  // One that is too large stands alone.
  pack(numbers(3, 4000), out("r-%d.tar"), {.bytes_per_shard = 100});
  EXPECT_THAT(sizes("r-"), ElementsAre(1, 1, 1));
  pack(numbers(3), out("s-%d.tar"), {});
  EXPECT_THAT(sizes("s-"), ElementsAre(3));
}

TEST_F(packing, shards_of_an_earlier_run_that_would_mix_in_are_told) {
  pack(numbers(10), out("p-%d.tar"), {.samples_per_shard = 2});
  const pack_result result = pack(numbers(4), out("p-%d.tar"), {.samples_per_shard = 2, .overwrite = true});
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("p-2.tar")));
}

TEST_F(packing, names_of_other_formats_are_refused_with_one_that_would_do) {
  for (const auto& [to, better] : {std::pair{"p.tar.gz", "p.tar"},
                                   {"p-%06d.tgz", "p-%06d.tar"},
                                   {"p-{0..3}.tar.zst", "p-{0..3}.tar"},
                                   {"p.TAR.XZ", "p.TAR.tar"},
                                   {"p.zip", "p.tar"}}) {
    EXPECT_THAT(message_of(errc::usage, [&] { pack(numbers(3), out(to), {}); }),
                AllOf(HasSubstr("'" + out(to) + "'"), HasSubstr("plain tars"), HasSubstr("'" + out(better) + "'")));
  }
  EXPECT_THAT(message_of(errc::usage, [&] { pack(numbers(3), out("p.npy"), {}); }), HasSubstr("*.npy is taken for"));
  EXPECT_THAT(message_of(errc::unsupported, [&] { pack(numbers(3), "s3://bucket/p.tar", {}); }), HasSubstr("s3://"));
  EXPECT_THAT(listing(out_.path()), IsEmpty());
  pack(numbers(3), out("p"), {});
  EXPECT_THAT(listing(out_.path()), ElementsAre("p"));
}

TEST_F(packing, a_temporary_name_is_nobodys_business) {
  EXPECT_THAT(message_of(errc::not_found, [&] { pack(numbers(3), out("no/p.tar"), {}); }),
              AllOf(HasSubstr(out("no/p.tar") + ": cannot be created: No such file"), Not(HasSubstr(".partial"))));
}

TEST_F(packing, shards_that_are_there_are_an_error_before_anything_is_written) {
  pack(numbers(3), out("p-1.tar"), {});
  pack(numbers(3), out("q-000007.tar"), {});
  fs::create_symlink("nowhere", out_.path() / "r.tar");
  const std::string before = content_of(out("p-1.tar"));
  const std::vector<std::string> names = listing(out_.path());
  for (const auto& [to, in_the_way] : {std::pair{"p-1.tar", "p-1.tar"},
                                       {"p-{0..2}.tar", "p-1.tar"},
                                       {"p-%d.tar", "p-1.tar"},
                                       {"q-%06d.tar", "q-000007.tar"},
                                       {"{a,r}.tar", "r.tar"}}) {
    EXPECT_THAT(message_of(errc::usage, [&] { pack(numbers(5), out(to), {}); }),
                AllOf(HasSubstr(out(in_the_way) + ":"), HasSubstr("pack_options::overwrite")));
    EXPECT_EQ(listing(out_.path()), names) << to;
  }
  EXPECT_EQ(content_of(out("p-1.tar")), before);
  // Numbers that this pattern does not write are another pattern's.
  pack(numbers(5), out("q-%d.tar"), {});
  EXPECT_THAT(sizes("q-0"), ElementsAre(5, 3));
  pack(numbers(5), out("p-{0..2}.tar"), {.overwrite = true});
  EXPECT_THAT(sizes("p-"), ElementsAre(2, 2, 1));
}

TEST_F(packing, a_name_that_was_taken_meanwhile_is_not_replaced) {
  put(root_.path() / "p.tar", "another's");
  {
    tar_writer late(out("p.tar"));
    fs::copy_file(root_.path() / "p.tar", out("p.tar"));
    EXPECT_THAT(message_of(errc::usage, [&] { late.finish(); }), HasSubstr(out("p.tar") + ": is there already"));
  }
  EXPECT_EQ(content_of(out("p.tar")), "another's");
  EXPECT_THAT(listing(out_.path()), ElementsAre("p.tar"));
}

TEST_F(packing, patterns_that_cannot_be_are_usage_errors) {
  for (const char* pattern : {"", "p-%s.tar", "p-%d-%d.tar", "p-%", "p-%06.tar", "{a,a}.tar"}) {
    message_of(errc::usage, [&] { pack(numbers(1), *pattern == '\0' ? "" : out(pattern), {}); });
  }
  message_of(errc::usage, [&] { pack(numbers(1), out("{a,b}.tar"), {.samples_per_shard = 1}); });
  message_of(errc::usage, [&] { pack(numbers(1), out_.path().string(), {}); });
  EXPECT_THAT(message_of(errc::not_found, [&] { pack(numbers(1), out("no/where.tar"), {}); }), HasSubstr("mkdir"));
  EXPECT_THAT(listing(out_.path()), IsEmpty());
}

TEST_F(packing, a_folder_keeps_its_order_paths_and_labels) {
  put(root_.path() / "cat/b.JPEG", "catb");
  put(root_.path() / "cat/a.jpg", "cata");
  put(root_.path() / "dog/1.png", "dog1");
  const dataset folder = open_folder(root_.path().string());
  pack(folder, out("p.tar"), {});
  const dataset packed = open_tar(out("p.tar"));
  ASSERT_EQ(packed.size(), folder.size());
  for (std::uint64_t i = 0; i < folder.size(); ++i) {
    EXPECT_EQ(packed.read(i), folder.read(i));
    EXPECT_EQ(text_of(packed.read(i, "cls")), std::to_string(*folder.label(i)));
    const std::string path = folder.name(i);
    EXPECT_EQ(packed.name(i), out("p.tar") + "/" + path.substr(0, path.rfind('.')));
  }
  // The extension as it was, in the archive itself.
  EXPECT_THAT(content_of(out("p.tar")), HasSubstr("cat/b.JPEG"));
}

TEST_F(packing, dots_and_percent_signs_in_names_come_back) {
  for (const char* name : {"c.1/a.b.c.jpg", "c.1/50%.jpg", "c.1/%2E.jpg", "c.1/%5F.jpg", "d/%.jpg"}) {
    put(root_.path() / name, name);
  }
  const dataset folder = open_folder(root_.path().string());
  pack(folder, out("p.tar"), {});
  const dataset packed = open_tar(out("p.tar"));
  ASSERT_EQ(packed.size(), folder.size());
  for (std::uint64_t i = 0; i < folder.size(); ++i) {
    const std::string path = folder.name(i);
    EXPECT_EQ(packed.name(i), out("p.tar") + "/" + path.substr(0, path.rfind('.')));
    EXPECT_EQ(text_of(packed.read(i, "jpg")), path);
  }
}

// Slashes and capitals, which a member's extension has no room for.
TEST_F(packing, names_of_fields_come_back_whatever_they_are) {
  const std::vector<std::string> names = {
      "train/label", "image/class/label", "text", "Text", "TEXT", "a.b", "50%", "%2f", "%54e", "A/b.C", "ends."};
  std::string line;
  for (std::size_t i = 0; i < names.size(); ++i) {
    line += str_cat(i == 0 ? "{" : ", ", "\"", names[i], "\": \"value ", i, "\"");
  }
  put(root_.path() / "names.jsonl", line + "}\n" + line + "}\n");
  const std::string path = (root_.path() / "names.jsonl").string();
  pack(open(path), out("p.tar"), {});
  const dataset packed = open_tar(out("p.tar"));
  ASSERT_EQ(packed.size(), 2U);
  ASSERT_EQ(packed.fields().size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(text_of(packed.read(1, names[i])), str_cat("value ", i)) << names[i];
  }
  // Columns, too, and again to the same bytes.
  pack(open({path}, {.tables = {.columns = {"Text", "train/label"}}}), out("c.tar"), {});
  EXPECT_EQ(open_tar(out("c.tar")).fields().size(), names.size());
  pack(packed, out("q.tar"), {});
  EXPECT_EQ(content_of(out("q.tar")), content_of(out("p.tar")));
}

TEST_F(packing, neighbours_that_differ_in_their_extension_stay_two_samples) {
  for (const char* name : {"c/x.jpeg", "c/x.jpg", "c/x.png", "c/y.jpg"}) put(root_.path() / name, name);
  const dataset folder = open_folder(root_.path().string());
  pack(folder, out("p.tar"), {});
  const dataset packed = open_tar(out("p.tar"));
  ASSERT_EQ(packed.size(), 4U);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(packed.read(i), folder.read(i));
  EXPECT_EQ(packed.name(1), out("p.tar") + "/c/x");
  // The same sample twice in a row too.
  pack(folder.subset({3, 3, 3}), out("q.tar"), {});
  EXPECT_EQ(open_tar(out("q.tar")).size(), 3U);
}

TEST_F(packing, shards_keep_all_their_fields_and_pack_to_the_same_bytes_again) {
  archive shard;
  shard.file("a/1.jpg", "J").file("a/1.JSON", "{}").file("a/2.seg.png", "S").file("a/2.cls", "4");
  shard.file("a/" + std::string(300, 'n') + ".txt", "T").file("50%25.txt", "").end();
  const dataset original = open_tar(shard.save(root_.path() / "s.tar"));
  pack(original, out("p.tar"), {});
  const dataset packed = open_tar(out("p.tar"));
  ASSERT_EQ(packed.size(), original.size());
  for (std::uint64_t i = 0; i < original.size(); ++i) {
    EXPECT_EQ(packed.name(i).substr(out("p.tar").size()),
              original.name(i).substr((root_.path() / "s.tar").string().size()));
    part_list parts;
    original.model()->parts(i, parts);
    for (const part& each : parts) {
      const std::string& field = original.model()->fields()[each.field].name;
      EXPECT_EQ(packed.read(i, field), original.read(i, field)) << field;
    }
  }
  pack(packed, out("q.tar"), {});
  EXPECT_EQ(content_of(out("q.tar")), content_of(out("p.tar")));
}

TEST_F(packing, a_shuffle_is_the_whole_in_another_order_the_same_for_the_same_seed) {
  const auto order = [&](pack_options options) {
    options.overwrite = true;
    pack(numbers(200), out("p.tar"), options);
    std::vector<std::string> names;
    const dataset packed = open_tar(out("p.tar"));
    for (std::uint64_t i = 0; i < packed.size(); ++i) names.push_back(packed.name(i));
    return names;
  };
  const std::vector<std::string> plain = order({});
  const std::vector<std::string> seven = order({.shuffle = true, .seed = 7});
  EXPECT_EQ(seven, order({.shuffle = true, .seed = 7}));
  EXPECT_NE(seven, order({.shuffle = true, .seed = 8}));
  EXPECT_NE(seven, plain);
  EXPECT_EQ(std::set<std::string>(seven.begin(), seven.end()), std::set<std::string>(plain.begin(), plain.end()));
}

TEST_F(packing, members_larger_than_the_window_go_through_in_portions) {
  std::string large(40 << 20, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 2654435761U >> 24);
  put(root_.path() / "a.jpg", "small");
  put(root_.path() / "b.jpg", large);
  put(root_.path() / "c.jpg", "after");
  const dataset folder = open_folder(root_.path().string());
  pack(folder, out("p.tar"), {});
  const dataset packed = open_tar(out("p.tar"));
  ASSERT_EQ(packed.size(), 3U);
  EXPECT_TRUE(packed.read(1) == folder.read(1));
  EXPECT_EQ(text_of(packed.read(2)), "after");
}

TEST_F(packing, damaged_samples_are_named_or_left_out) {
  archive shard;
  shard.file("a.jpg", "1").file("b.jpg", "2").file("b.jpg", "3").file("c.jpg", "4").end();
  const dataset damaged = open_tar(shard.save(root_.path() / "s.tar"));
  EXPECT_THAT(message_of(errc::corrupt, [&] { pack(damaged, out("p.tar"), {}); }),
              AllOf(HasSubstr("/b"), HasSubstr("twice")));
  EXPECT_THAT(listing(out_.path()), IsEmpty());
  const pack_result result = pack(damaged, out("p-{0..1}.tar"), {.skip_damaged = true});
  EXPECT_EQ(result.samples, 2U);
  EXPECT_EQ(result.skipped, 1U);
  EXPECT_THAT(sizes("p-"), ElementsAre(1, 1));
}

// Packs twice, as one process and as the ranks of each world, and compares the directories byte for byte.
void expect_the_same_from_ranks(const dataset& from, const std::string& name, const pack_options& options) {
  const temporary_directory alone;
  const pack_result whole = pack(from, (alone.path() / name).string(), options);
  for (const std::uint32_t size : {2U, 3U, 7U}) {
    const temporary_directory together;
    pack_result sum;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      pack_options of_rank = options;
      of_rank.world = {.rank = rank, .size = size};
      const pack_result one = pack(from, (together.path() / name).string(), of_rank);
      sum.samples += one.samples;
      sum.skipped += one.skipped;
      for (const packed_shard& shard : one.shards) sum.shards.push_back(shard);
    }
    EXPECT_EQ(sum.samples, whole.samples) << size;
    EXPECT_EQ(sum.skipped, whole.skipped) << size;
    ASSERT_EQ(sum.shards.size(), whole.shards.size()) << size;
    EXPECT_EQ(listing(together.path()), listing(alone.path())) << size;
    for (const std::string& shard : listing(alone.path())) {
      EXPECT_EQ(content_of((together.path() / shard).string()), content_of((alone.path() / shard).string()))
          << shard << " of " << size << " ranks";
    }
  }
}

TEST_F(packing, many_ranks_write_together_what_one_process_writes) {
  for (const std::uint64_t samples : {0U, 1U, 11U}) {
    for (const bool shuffle : {false, true}) {
      const pack_options listed{.shuffle = shuffle, .seed = 3};
      expect_the_same_from_ranks(numbers(samples), "p.tar", listed);
      expect_the_same_from_ranks(numbers(samples), "p-{00..04}.tar", listed);
      expect_the_same_from_ranks(numbers(samples), "p-{00..13}.tar", listed);
      for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{4}, ~std::uint64_t{0}}) {
        pack_options numbered = listed;
        numbered.samples_per_shard = size;
        expect_the_same_from_ranks(numbers(samples), "p-%03d.tar", numbered);
      }
    }
  }
}

TEST_F(packing, neighbours_of_one_key_are_numbered_over_the_shards_of_other_ranks) {
  for (const char* name : {"c/x.jpeg", "c/x.jpg", "c/x.png", "c/y.jpg"}) put(root_.path() / name, name);
  const dataset folder = open_folder(root_.path().string());
  for (const std::uint64_t size : {1U, 2U, 3U}) {
    expect_the_same_from_ranks(folder, "p-%d.tar", {.samples_per_shard = size});
    expect_the_same_from_ranks(folder.subset({3, 3, 3, 3, 3, 1, 1}), "p-%d.tar", {.samples_per_shard = size});
  }
}

TEST_F(packing, damaged_samples_do_not_move_the_shards_of_ranks) {
  archive shard;
  for (const char* const name : {"a", "b", "c", "d", "e", "f", "g"}) {
    shard.file(std::string(name) + ".jpg", name);
    if (std::string_view("adeg").find(*name) != std::string_view::npos) shard.file(std::string(name) + ".jpg", "again");
  }
  const dataset damaged = open_tar(shard.end().save(root_.path() / "s.tar"));
  for (const char* const name : {"p.tar", "p-{0..1}.tar", "p-{0..8}.tar"}) {
    expect_the_same_from_ranks(damaged, name, {.skip_damaged = true});
  }
  expect_the_same_from_ranks(damaged, "p-%d.tar", {.samples_per_shard = 2, .skip_damaged = true});
  EXPECT_THAT(message_of(errc::corrupt, [&] { pack(damaged, out("p-{0..1}.tar"), {.world = {.rank = 1, .size = 2}}); }),
              AllOf(HasSubstr("/a"), HasSubstr("twice")));
}

TEST_F(packing, a_rank_goes_on_behind_its_own_shards) {
  const auto rank = [&](std::uint32_t number, bool keep) {
    return pack(numbers(16), out("p-%d.tar"),
                {.samples_per_shard = 2, .keep_finished = keep, .world = {.rank = number, .size = 2}});
  };
  rank(0, false);
  rank(1, false);
  const std::string last = content_of(out("p-7.tar"));
  for (const char* name : {"p-2.tar", "p-3.tar", "p-6.tar", "p-7.tar"}) fs::remove(out(name));
  EXPECT_EQ(rank(0, true).kept, 2U);
  EXPECT_EQ(rank(1, true).kept, 2U);
  EXPECT_EQ(content_of(out("p-7.tar")), last);
  EXPECT_THAT(sizes("p-"), ElementsAre(2, 2, 2, 2, 2, 2, 2, 2));
}

TEST_F(packing, ranks_look_at_their_own_shards_only) {
  put(out_.path() / "p-3.tar", "of another run");
  const auto rank = [&](std::uint32_t number) {
    return pack(numbers(8), out("p-%d.tar"), {.samples_per_shard = 2, .world = {.rank = number, .size = 2}});
  };
  EXPECT_EQ(rank(0).samples, 4U);
  EXPECT_THAT(message_of(errc::usage, [&] { rank(1); }), HasSubstr("p-3.tar"));
  EXPECT_THAT(listing(out_.path()), ElementsAre("p-0.tar", "p-1.tar", "p-3.tar"));
  EXPECT_THAT(message_of(errc::usage, [&] { pack(numbers(8), out("q-%d.tar"), {.world = {.rank = 0, .size = 2}}); }),
              AllOf(HasSubstr("2 ranks"), HasSubstr("pack_options::samples_per_shard")));
}

TEST_F(packing, stopped_it_leaves_whole_shards_and_no_other_file) {
  std::stop_source stop;
  pack_options options{.samples_per_shard = 1000, .stop = stop.get_token()};
  options.progress = [&](const pack_progress& done) {
    if (done.samples >= 2500) stop.request_stop();
  };
  message_of(errc::cancelled, [&] { pack(numbers(10'000), out("p-%d.tar"), options); });
  for (const std::string& name : listing(out_.path())) EXPECT_EQ(open_tar(out(name)).size(), 1000U) << name;
}

// The source is written anew while it is packed: as large as it was, but later.
TEST_F(packing, a_source_that_changes_meanwhile_ends_it_before_the_shard_is_there) {
  for (const bool is_longer : {true, false}) {
    std::string lines;
    for (int i = 0; i < 3000; ++i) lines += "{\"text\": \"" + std::to_string(10'000 + i) + "\"}\n";
    const fs::path path = root_.path() / "a.jsonl";
    put(path, lines);
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
    pack_options options{.samples_per_shard = 1000, .overwrite = true};
    bool is_written = false;
    options.progress = [&](const pack_progress& done) {
      if (done.samples < 1500 || std::exchange(is_written, true)) return;
      put(path, is_longer ? lines + lines : std::string(lines.size(), 'x'));
    };
    EXPECT_THAT(message_of(errc::changed, [&] { pack(open_jsonl(path.string()), out("p-%d.tar"), options); }),
                AllOf(HasSubstr("dataset changed: "), HasSubstr("a.jsonl")));
    EXPECT_THAT(listing(out_.path()), ElementsAre("p-0.tar", "p-1.tar"));
    const dataset shard = open_tar(out("p-1.tar"));
    ASSERT_EQ(shard.size(), 1000U);
    EXPECT_EQ(text_of(shard.read(999, shard.fields()[0].name)), "11999");
  }
}

TEST_F(packing, stopped_it_does_not_wait_for_reads_that_never_come) {
  testing::fake_dataset set(testing::make_samples(1, 20));
  set.damage(13, "jpg", testing::read_fault::never);
  std::stop_source stop;
  const std::jthread asking([&] {
    while (set.count().reads_in_flight == 0) std::this_thread::yield();
    stop.request_stop();
  });
  message_of(errc::cancelled, [&] { pack(set, out("p.tar"), {.stop = stop.get_token()}); });
  EXPECT_EQ(set.count().reads_in_flight, 0U);
  EXPECT_THAT(listing(out_.path()), IsEmpty());
}

TEST_F(packing, stopped_within_a_long_member_or_before_the_disk_has_it_no_shard_appears) {
  const std::vector<std::byte> megabyte(1 << 20, std::byte{7});
  for (const bool whole : {false, true}) {
    std::stop_source stop;
    {
      tar_writer writer(out("p.tar"), {.stop = stop.get_token()});
      writer.begin("x.bin", 20 * megabyte.size());
      for (int i = 0; i < (whole ? 20 : 10); ++i) writer.write(megabyte);
      stop.request_stop();
      message_of(errc::cancelled, [&] {
        if (whole) {
          writer.finish();
        } else {
          writer.write(megabyte);
        }
      });
    }
    EXPECT_THAT(listing(out_.path()), IsEmpty()) << whole;
  }
}

TEST_F(packing, killed_halfway_it_leaves_no_half_shard_under_a_final_name) {
  for (const std::uint64_t die_at : {1024U, 2048U, 5000U}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      pack_options options{.samples_per_shard = 1500, .overwrite = true};
      options.progress = [&](const pack_progress& done) {
        if (done.samples >= die_at) ::kill(::getpid(), SIGKILL);
      };
      pack(numbers(10'000, 3000), out("p-%d.tar"), options);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    int partial = 0;
    for (const std::string& name : listing(out_.path())) {
      if (name.ends_with(".partial")) {
        ++partial;
        EXPECT_TRUE(name.starts_with('.'));
      } else {
        EXPECT_EQ(open_tar(out(name)).size(), 1500U) << name;
      }
    }
    EXPECT_EQ(partial, 1);
  }
  // What was whole when it was killed stays.
  const std::uint64_t whole = sizes("p-").size();
  EXPECT_EQ(pack(numbers(10'000, 3000), out("p-%d.tar"), {.samples_per_shard = 1500, .keep_finished = true}).kept,
            whole);
  EXPECT_THAT(sizes("p-"), ElementsAre(1500, 1500, 1500, 1500, 1500, 1500, 1000));
  for (const std::string& name : listing(out_.path())) fs::remove(out(name));
  pack(numbers(3000), out("p-%d.tar"), {.samples_per_shard = 500, .overwrite = true});
  EXPECT_THAT(listing(out_.path()), ElementsAre("p-0.tar", "p-1.tar", "p-2.tar", "p-3.tar", "p-4.tar", "p-5.tar"));
}

// Whatever an earlier run has finished, the shards are those of one run in the end, and those that were there are not written again.
TEST_F(packing, goes_on_behind_the_shards_that_an_earlier_run_has_finished) {
  const auto whole = [&](const std::string& directory, const std::string& names, const dataset& from,
                         pack_options options) {
    fs::create_directories(out(directory));
    pack(from, out(directory + "/" + names), options);
    return listing(out(directory));
  };
  const auto rewritten = [](std::string_view name, std::span<const std::byte> content) {
    const bool odd = content.empty() || (static_cast<unsigned>(content.front()) & 1U) != 0;
    if (odd) return std::optional<rewritten_member>();
    return std::optional(rewritten_member{std::string(name) + "x", {content.begin(), content.end() - 1}});
  };
  const dataset from = numbers(11);
  int round = 0;
  for (const auto& [names, options] : {std::pair<std::string, pack_options>{"p-%d.tar", {.samples_per_shard = 4}},
                                       {"p-%d.tar", {.bytes_per_shard = 5 * 1024}},
                                       {"p-%d.tar", {.shuffle = true, .seed = 2, .samples_per_shard = 5}},
                                       {"p-{0..3}.tar", {}},
                                       {"p-{00..13}.tar", {}},
                                       {"p-%d.tar", {.samples_per_shard = 4, .rewrite = rewritten}},
                                       {"p.tar", {}}}) {
    const std::string reference = "whole" + std::to_string(round);
    const std::string again = "again" + std::to_string(round++);
    const std::vector<std::string> shards = whole(reference, names, from, options);
    for (std::size_t kept = 0; kept <= shards.size(); kept += 1 + shards.size() / 8) {
      SCOPED_TRACE(names + ", " + std::to_string(kept) + " shards are there");
      fs::remove_all(out(again));
      fs::create_directories(out(again));
      for (std::size_t i = 0; i < kept; ++i) fs::copy(out(reference + "/" + shards[i]), out(again + "/" + shards[i]));
      pack_options go_on = options;
      go_on.keep_finished = true;
      const pack_result done = pack(from, out(again + "/" + names), go_on);
      EXPECT_EQ(done.kept, kept);
      EXPECT_EQ(done.samples, 11U);
      ASSERT_EQ(listing(out(again)), shards);
      ASSERT_EQ(done.shards.size(), shards.size());
      for (std::size_t i = 0; i < shards.size(); ++i) {
        const std::string path = out(again + "/" + shards[i]);
        EXPECT_EQ(content_of(path), content_of(out(reference + "/" + shards[i]))) << shards[i];
        EXPECT_EQ(done.shards[i].path, path);
        EXPECT_EQ(done.shards[i].bytes, fs::file_size(path));
      }
    }
  }
}

TEST_F(packing, shards_of_something_else_are_not_kept) {
  const pack_options fours{.samples_per_shard = 4};
  const auto refused = [&](const dataset& from, pack_options options) {
    options.keep_finished = true;
    const std::string before = content_of(out("p-0.tar"));
    const std::string said = message_of(errc::usage, [&] { pack(from, out("p-%d.tar"), options); });
    EXPECT_EQ(content_of(out("p-0.tar")), before);
    return said;
  };
  pack(numbers(8), out("p-%d.tar"), fours);
  EXPECT_THAT(refused(numbers(8), {.samples_per_shard = 3}), HasSubstr("holds 4 samples where 3 belong"));
  EXPECT_THAT(refused(numbers(8, 11), fours), AllOf(HasSubstr("p-0.tar"), HasSubstr("'0.bin' is not in its place")));
  EXPECT_THAT(refused(numbers(8), {.shuffle = true, .samples_per_shard = 4}), HasSubstr("not in its place"));
  EXPECT_THAT(refused(numbers(5), {.bytes_per_shard = 1 << 20}),
              AllOf(HasSubstr("p-1.tar"), HasSubstr("3 more than the source's last")));
  EXPECT_THAT(refused(numbers(4), fours), HasSubstr("p-1.tar"));
  pack_options replaced = fours;
  replaced.overwrite = true;
  EXPECT_THAT(refused(numbers(8), replaced), HasSubstr("leave out one of the two"));
  // Another content of the same size is seen in a shard's first sample, and so is what another way of writing would make of it.
  const dataset other =
      from_function(8, [](std::uint64_t) { return std::vector<std::byte>(10, std::byte{99}); },
                    {.field = "bin", .bytes_max = 10, .name = [](std::uint64_t i) { return std::to_string(i); }});
  EXPECT_THAT(refused(other, fours), HasSubstr("'0.bin' is not what would be written"));
  pack_options rewriting = fours;
  rewriting.rewrite = [](std::string_view, std::span<const std::byte>) {
    return std::optional(rewritten_member{"0.other", std::vector<std::byte>(3)});
  };
  EXPECT_THAT(refused(numbers(8), rewriting), HasSubstr("'0.other' is not what would be written"));
  // A gap is noticed before anything is written.
  fs::remove(out("p-0.tar"));
  EXPECT_THAT(refused(numbers(8), fours), HasSubstr("p-1.tar"));
  EXPECT_THAT(listing(out_.path()), ElementsAre("p-1.tar"));
}

TEST_F(packing, a_full_disk_is_a_clear_error_and_leaves_finished_shards_only) {
  if (::mount("leat", out_.path().c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "no small file system can be mounted";
  struct unmounted {
    fs::path path;
    ~unmounted() { ::umount(path.c_str()); }
  } const at_the_end{out_.path()};
  const std::string message =
      message_of(errc::limit, [&] { pack(numbers(1000, 4000), out("p-%d.tar"), {.samples_per_shard = 100}); });
  EXPECT_THAT(message, AllOf(HasSubstr("No space left"), HasSubstr("/p-"), HasSubstr("make room")));
  EXPECT_THAT(message, Not(HasSubstr("offset"))) << "it is not the place in the shard that is to blame";
  for (const std::string& name : listing(out_.path())) EXPECT_EQ(open_tar(out(name)).size(), 100U) << name;
  EXPECT_THAT(listing(out_.path()), Not(IsEmpty()));
}

TEST_F(packing, a_file_size_limit_is_a_clear_error) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const std::string message = message_of(errc::limit, [&] { pack(numbers(1000, 4000), out("p.tar"), {}); });
    EXPECT_THAT(message, HasSubstr("smaller shards"));
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(listing(out_.path()), IsEmpty());
}

TEST_F(packing, a_directory_that_may_not_be_written_is_named) {
  if (!testing::can_become_nobody()) GTEST_SKIP() << "not root: the directory cannot be another user's";
  testing::as_nobody([&] {
    EXPECT_THAT(message_of(errc::permission, [&] { pack(numbers(1), out("p.tar"), {}); }), HasSubstr("may not write"));
  });
}

TEST_F(packing, two_at_a_time_do_not_write_one_shard) {
  const tar_writer first(out("p.tar"));
  EXPECT_THAT(message_of(errc::usage, [&] { const tar_writer second(out("p.tar")); }), HasSubstr("another process"));
}

TEST_F(packing, a_failed_write_leaves_the_shard_that_was_there) {
  pack(numbers(5), out("p.tar"), {});
  const std::string before = content_of(out("p.tar"));
  {
    tar_writer half(out("p.tar"), {.overwrite = true});
    half.begin("x.bin", 3);
  }
  EXPECT_EQ(content_of(out("p.tar")), before);
  EXPECT_THAT(listing(out_.path()), ElementsAre("p.tar"));
}

TEST(member_key, comes_back) {
  for (const char* stem : {"a", "a/b.c", "a.b/c.d%e", "", "a/", "%2E", "%25.", "a/%", "%", "x%~3y", "%5F", ".cache/1",
                           "a/.git/b", "__MACOSX/x", "@eaDir/a/y.z", "b/Thumbs.db/1"}) {
    const std::string key = encode_key(stem);
    EXPECT_EQ(hidden_part(key + ".jpg"), "") << key;
    const std::size_t base = key.rfind('/') + 1;
    EXPECT_EQ(key.find('.', base), std::string::npos) << key;
    EXPECT_GT(key.size(), base) << key;
    EXPECT_EQ(decode_key(key), stem);
    EXPECT_EQ(decode_key(number_key(key, 1)), stem);
    EXPECT_EQ(decode_key(number_key(key, 25)), stem);
  }
  EXPECT_EQ(encode_key("n01/photo.v2"), "n01/photo%2Ev2");
  EXPECT_EQ(encode_key("d.ir/100%"), "d.ir/100%25");
}

TEST(member_key, names_of_fields_come_back_as_extensions) {
  std::mt19937_64 random(5);
  std::set<std::string> extensions;
  std::set<std::string> names;
  for (int i = 0; i < 20'000; ++i) {
    std::string name;
    const std::string_view likely = "aAtT/.%25_fF";
    for (std::uint64_t letters = random() % 9; letters > 0; --letters) {
      name += random() % 8 == 0 ? static_cast<char>(random()) : likely[random() % likely.size()];
    }
    const std::string extension = encode_field_name(name);
    ASSERT_EQ(decode_field_name(lower_case(extension)), name);
    const std::string path = "key." + extension;
    const auto member = split_member_name(path);
    ASSERT_TRUE(member);
    ASSERT_EQ(member->key, "key");
    ASSERT_EQ(member->extension, extension);
    names.insert(name);
    extensions.insert(lower_case(extension));
  }
  EXPECT_EQ(extensions.size(), names.size());
  EXPECT_EQ(encode_field_name("seg.png"), "seg.png");
  EXPECT_EQ(decode_field_name("50%"), "50%");
  EXPECT_EQ(decode_field_name("a%2eb"), "a%2eb");
}

TEST(tar_writer, sizes_of_headers_are_known_beforehand) {
  EXPECT_EQ(tar_member_bytes("a.jpg", 0), 512U);
  EXPECT_EQ(tar_member_bytes("a.jpg", 1), 1024U);
  EXPECT_EQ(tar_member_bytes(std::string(90, 'd') + "/" + std::string(96, 'a') + ".jpg", 0), 512U);
  EXPECT_EQ(tar_member_bytes(std::string(200, 'a') + ".jpg", 0), 3 * 512U);
  EXPECT_EQ(tar_member_bytes("a.jpg", std::uint64_t{9} << 30), 3 * 512U + (std::uint64_t{9} << 30));
}

}  // namespace
}  // namespace leat::datasets

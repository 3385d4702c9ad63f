// leat pack as a command; what is in its shards is tested in tests/datasets.
#include "tests/support/photos.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/tools/command.hpp"

#include <leat/photo_pack.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string digest_of(const std::string& source, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"epoch", source, "--size", "32", "--batch-size", "5", "--epochs", "2", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run(arguments).json().value("digest", "none");
}

TEST(pack, a_folder_and_its_pack_give_one_digest) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string shards = (directory.path() / "p-{000000..000004}.tar").string();
  const ended process = run({"pack", photos.path().string(), shards});
  EXPECT_EQ(process.exit_code, 0) << process.err;
  EXPECT_THAT(process.out, HasSubstr("12 samples in 5 shards"));
  for (const char* transform : {"train", "eval"}) {
    EXPECT_EQ(digest_of(photos.path().string(), {"--transform", transform}),
              digest_of(shards, {"--transform", transform}))
        << transform;
  }
}

TEST(pack, a_pattern_makes_as_many_shards_as_it_takes) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string out = (directory.path() / "p-%06d.tar").string();
  const ended process = run({"pack", photos.path().string(), out, "--samples-per-shard", "5", "--json"});
  EXPECT_EQ(process.exit_code, 0) << process.err;
  const json made = process.json();
  EXPECT_EQ(made.at("samples"), 12);
  ASSERT_EQ(made.at("shards").size(), 3U);
  EXPECT_EQ(made["shards"][0].at("samples"), 5);
  EXPECT_EQ(made["shards"][2].at("samples"), 2);
  for (const json& shard : made["shards"]) {
    EXPECT_EQ(std::filesystem::file_size(shard.at("path").get<std::string>()), shard.at("bytes"));
  }
}

TEST(pack, several_sources_go_into_one_pack) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string out = (directory.path() / "p.tar").string();
  const std::string folder = photos.path().string();
  EXPECT_EQ(run({"pack", folder, folder, out}).exit_code, 0);
  EXPECT_EQ(run({"inspect", out, "--json"}).json().at("samples"), 24);
}

TEST(pack, shuffled_by_a_seed_gives_the_same_shards_again) {
  const photo_folder photos;
  const temporary_directory directory;
  const auto packed = [&](const std::string& name, const std::string& seed) {
    const std::string out = (directory.path() / name).string();
    EXPECT_EQ(run({"pack", photos.path().string(), out, "--shuffle", "--seed", seed}).exit_code, 0);
    return text_of(out);
  };
  const std::string first = packed("a.tar", "7");
  EXPECT_EQ(packed("b.tar", "7"), first);
  EXPECT_NE(packed("c.tar", "8"), first);
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(pack, finished_shards_are_replaced_only_when_told) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string out = (directory.path() / "p-%06d.tar").string();
  ASSERT_EQ(run({"pack", photos.path().string(), out}).exit_code, 0);
  const ended process = run({"pack", photos.path().string(), out, "--shuffle"});
  EXPECT_EQ(process.exit_code, 2);
  EXPECT_EQ(process.out, "");
  expect_one_line(process, "leat pack: " + (directory.path() / "p-000000.tar").string() + ": is there already");
  EXPECT_THAT(process.err, ::testing::AllOf(HasSubstr("--overwrite"), HasSubstr("--continue")));
  EXPECT_EQ(run({"pack", photos.path().string(), out, "--shuffle", "--overwrite"}).exit_code, 0);
}

TEST(pack, goes_on_behind_finished_shards_of_the_same_command_only) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string out = (directory.path() / "p-%d.tar").string();
  const auto pack = [&](std::initializer_list<std::string> options) {
    std::vector<std::string> arguments{"pack", photos.path().string(), out, "--samples-per-shard", "5", "--json"};
    arguments.insert(arguments.end(), options);
    return run(arguments);
  };
  const json whole = pack({"--photos", "fast"}).json();
  ASSERT_GE(whole.at("shards").size(), 3U);
  const std::string second = whole["shards"][1].at("path");
  const std::string before = content_of(second);
  for (std::size_t i = 1; i < whole["shards"].size(); ++i) {
    std::filesystem::remove(whole["shards"][i].at("path").get<std::string>());
  }
  const json again = pack({"--photos", "fast", "--continue"}).json();
  EXPECT_EQ(whole.at("kept"), 0);
  EXPECT_EQ(again.at("kept"), 1);
  EXPECT_EQ(again.at("samples"), whole.at("samples"));
  EXPECT_EQ(again.at("shards"), whole.at("shards"));
  EXPECT_EQ(content_of(second), before);
  // The shard that stays is compared, and none of its photographs is packed.
  EXPECT_EQ(whole.at("photos").at("rewritten"), 12);
  EXPECT_EQ(again.at("photos").at("rewritten"), 7);
  // The same members, but JPEGs.
  const ended other = pack({"--continue"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("p-0.tar is there from another source or with other options: the member '"));
  EXPECT_EQ(pack({"--continue", "--overwrite"}).exit_code, 2);
  EXPECT_EQ(run({"pack", photos.path().string(), out, "--to", "zarr", "--continue"}).exit_code, 2);
}

TEST(pack, help_says_what_out_can_be) {
  const std::string help = run({"pack", "--help"}).out;
  EXPECT_THAT(help, HasSubstr("leat pack SOURCE... OUT [options]\n"));
  for (const char* name : {"'p.tar'", "'p-{000000..000003}.tar'", "'p-%06d.tar'", "--overwrite"})
    EXPECT_THAT(help, HasSubstr(name));
}

TEST(pack, a_directory_that_is_not_there_is_named) {
  const photo_folder photos;
  const ended process = run({"pack", photos.path().string(), "/no/such/place/p.tar"});
  EXPECT_EQ(process.exit_code, 1);
  expect_one_line(process, "leat pack: ");
  EXPECT_THAT(process.err, HasSubstr("/no/such/place"));
}

TEST(pack, what_is_no_regular_file_is_not_replaced_by_one) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::filesystem::path pipe = directory.path() / "p.tar";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const ended process = run({"pack", photos.path().string(), pipe.string()});
  EXPECT_EQ(process.exit_code, 2);
  expect_one_line(process, "leat pack: " + pipe.string());
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(pack, a_seed_without_shuffle_is_a_usage_error) {
  const photo_folder photos;
  const ended process = run({"pack", photos.path().string(), "/tmp/p.tar", "--seed", "7"});
  EXPECT_EQ(process.exit_code, 2);
  expect_one_line(process, "leat pack: ");
  EXPECT_THAT(process.err, HasSubstr("--shuffle"));
}

std::vector<std::uint8_t> progressive_jpeg(std::uint64_t seed) {
  return photo_jpeg(seed, 96, 64, {.progressive = true});
}

// Packed photographs beside what has to stay as it is give the JPEGs' digest, and come back byte for byte: as files, and from shards
// to shards.
TEST(pack, photos_become_packs_of_the_same_digest_and_come_back) {
  const temporary_directory directory;
  const std::filesystem::path folder = directory.path() / "photos";
  write_file(folder / "a" / "1.jpg", photo_jpeg(1, 96, 64));
  write_file(folder / "a" / "2.v1.JPEG", photo_jpeg(2, 50, 70));
  write_file(folder / "b" / "3.jpg", progressive_jpeg(3));
  const auto path = [&](const char* name) { return (directory.path() / name).string(); };
  ASSERT_EQ(run({"pack", folder.string(), path("plain.tar")}).exit_code, 0);
  const ended packed = run({"pack", folder.string(), path("fast.tar"), "--photos", "fast", "--json"});
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  const json done = packed.json().at("photos");
  EXPECT_EQ(done.at("rewritten"), 2);
  EXPECT_EQ(done.at("left"), 1);
  EXPECT_EQ(done.at("left_members").at(0), "b/3.jpg: JPEG: progressive, which is not packed");
  EXPECT_THAT(content_of(path("fast.tar")), HasSubstr("a/1.fjpg"));
  EXPECT_THAT(content_of(path("fast.tar")), HasSubstr("a/2%2Ev1.fJPEG"));
  for (const char* transform : {"train", "eval"}) {
    EXPECT_EQ(digest_of(path("plain.tar"), {"--transform", transform}),
              digest_of(path("fast.tar"), {"--transform", transform}))
        << transform;
  }
  ASSERT_EQ(run({"pack", path("fast.tar"), path("again.tar"), "--photos", "jpeg"}).exit_code, 0);
  EXPECT_EQ(content_of(path("again.tar")), content_of(path("plain.tar")));

  const ended files = run({"unpack", path("fast.tar"), path("files"), "--json"});
  ASSERT_EQ(files.exit_code, 0) << files.err;
  EXPECT_EQ(files.json().at("photos"), 2);
  for (const char* name : {"a/1.jpg", "a/2.v1.JPEG", "b/3.jpg"}) {
    EXPECT_EQ(content_of(directory.path() / "files" / name), content_of(folder / name)) << name;
  }
  EXPECT_EQ(run({"unpack", path("fast.tar"), path("files")}).exit_code, 2);
  EXPECT_EQ(run({"unpack", path("fast.tar"), path("files"), "--overwrite"}).exit_code, 0);
  EXPECT_EQ(run({"pack", folder.string(), path("x.tar"), "--photos", "fast", "--transcode"}).exit_code, 2);
  EXPECT_EQ(run({"pack", folder.string(), path("x.npy"), "--photos", "fast", "--to", "npy"}).exit_code, 2);

  // A damaged pack is named, and the others are unpacked.
  std::string damaged = content_of(path("fast.tar"));
  const std::size_t at = damaged.find("FJPG\r\n") + 2000;
  damaged[at] = static_cast<char>(damaged[at] ^ 1);
  std::ofstream(path("damaged.tar"), std::ios::binary) << damaged;
  const ended partly = run({"unpack", path("damaged.tar"), path("rest")});
  EXPECT_EQ(partly.exit_code, 1);
  EXPECT_THAT(partly.err, HasSubstr("a/1.fjpg: photo pack: "));
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "rest/a/1.jpg"));
  EXPECT_EQ(content_of(directory.path() / "rest/a/2.v1.JPEG"), content_of(folder / "a/2.v1.JPEG"));
}

// The index is the last member; it comes along from shards to shards, and goes with the packs.
TEST(pack, shards_of_packs_have_an_index_of_them) {
  const temporary_directory directory;
  const std::filesystem::path folder = directory.path() / "photos";
  for (int i = 0; i < 5; ++i) {
    write_file(folder / "a" / (std::to_string(i) + ".jpg"), photo_jpeg(static_cast<std::uint64_t>(i), 300, 400));
  }
  const auto path = [&](const char* name) { return (directory.path() / name).string(); };
  ASSERT_EQ(run({"pack", folder.string(), path("plain.tar")}).exit_code, 0);
  ASSERT_EQ(run({"pack", folder.string(), path("fast.tar"), "--photos", "fast"}).exit_code, 0);
  ASSERT_EQ(run({"pack", path("fast.tar"), path("copy.tar")}).exit_code, 0);
  ASSERT_EQ(run({"pack", path("fast.tar"), path("again.tar"), "--photos", "jpeg"}).exit_code, 0);
  ASSERT_EQ(run({"pack", folder.string(), path("unverified.tar"), "--photos", "fast", "--verify", "off"}).exit_code, 0);
  EXPECT_THAT(content_of(path("fast.tar")), HasSubstr("__leat__/photos"));
  EXPECT_EQ(content_of(path("copy.tar")), content_of(path("fast.tar")));
  EXPECT_EQ(content_of(path("unverified.tar")), content_of(path("fast.tar")));
  EXPECT_EQ(content_of(path("again.tar")), content_of(path("plain.tar")));

  const auto epoch_of = [&](const char* name) {
    return run({"epoch", path(name), "--size", "64", "--batch-size", "5", "--epochs", "4", "--json"}).json();
  };
  const json whole = epoch_of("plain.tar");
  const json crops = epoch_of("fast.tar");
  EXPECT_EQ(crops.at("digest"), whole.at("digest"));

  // Each shard has its own, and no shard becomes larger than was asked for.
  ASSERT_EQ(
      run({"pack", folder.string(), path("s-%03d.tar"), "--photos", "fast", "--bytes-per-shard", "150KiB"}).exit_code,
      0);
  std::size_t shards = 0;
  for (; std::filesystem::exists(directory.path() / ("s-00" + std::to_string(shards) + ".tar")); ++shards) {
    const std::filesystem::path shard = directory.path() / ("s-00" + std::to_string(shards) + ".tar");
    EXPECT_THAT(content_of(shard), HasSubstr("__leat__/photos"));
    EXPECT_LE(std::filesystem::file_size(shard), 150U << 10);
  }
  EXPECT_GT(shards, 1U);
  EXPECT_EQ(digest_of((directory.path() / "s-*.tar").string()), digest_of(path("plain.tar")));
  EXPECT_EQ(run({"pack", folder.string(), path("x.tar"), "--verify", "off"}).exit_code, 2);
  const ended back = run({"pack", path("unverified.tar"), path("x.tar"), "--photos", "jpeg", "--verify", "off"});
  EXPECT_EQ(back.exit_code, 2);
  EXPECT_THAT(back.err, HasSubstr("--verify off: it is of --photos fast"));
}

TEST(pack, pictures_that_are_no_jpegs_stay_as_they_are_and_are_named) {
  const temporary_directory directory;
  const std::filesystem::path folder = directory.path() / "photos";
  write_file(folder / "a" / "1.jpg", photo_jpeg(1, 96, 64));
  write_file(folder / "a" / "2.PNG", {0x89, 'P', 'N', 'G', 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 'I', 'H', 'D', 'R'});
  write_file(folder / "a" / "3.jpg", {'n', 'o', ' ', 'J', 'P', 'E', 'G'});
  write_file(folder / "a" / "4.jpg", "");
  const std::string fast = (directory.path() / "fast.tar").string();
  const json done = run({"pack", folder.string(), fast, "--photos", "fast", "--json"}).json().at("photos");
  EXPECT_EQ(done.at("rewritten"), 1);
  EXPECT_EQ(done.at("left"), 3) << "and no labels";
  EXPECT_EQ(done.at("left_members"),
            json({"a/2.PNG: PNG, which is not packed", "a/3.jpg: of no known format, which is not packed",
                  "a/4.jpg: empty: zero bytes"}));
  // What is packed already is not left.
  const json again =
      run({"pack", fast, (directory.path() / "again.tar").string(), "--photos", "fast", "--json"}).json().at("photos");
  EXPECT_EQ(again.at("rewritten"), 0);
  EXPECT_EQ(again.at("left"), 3);
}

TEST(pack, class_folders_may_hold_packs) {
  const temporary_directory directory;
  const auto path = [&](const char* name) { return (directory.path() / name).string(); };
  for (int i = 0; i < 3; ++i) {
    const std::vector<std::uint8_t> jpeg = photo_jpeg(static_cast<std::uint64_t>(i), 96, 64);
    write_file(directory.path() / "jpegs" / "a" / (std::to_string(i) + ".jpg"), jpeg);
    const std::vector<std::byte> pack = pack_photo(std::as_bytes(std::span(jpeg)));
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(pack.data());
    write_file(directory.path() / "packs" / "a" / (std::to_string(i) + ".fjpg"), {begin, begin + pack.size()});
  }
  EXPECT_EQ(digest_of(path("packs")), digest_of(path("jpegs")));
  ASSERT_EQ(run({"pack", path("packs"), path("jpegs.tar"), "--photos", "jpeg"}).exit_code, 0);
  ASSERT_EQ(run({"pack", path("jpegs"), path("plain.tar")}).exit_code, 0);
  EXPECT_EQ(content_of(path("jpegs.tar")), content_of(path("plain.tar")));
  const json found = run({"inspect", path("packs"), "--json"}).json();
  EXPECT_EQ(found.at("samples"), 3) << found;
}

// With --overwrite as well, nothing that is whole is replaced by what is not.
TEST(pack, unpack_writes_nothing_of_what_is_cut_off) {
  const temporary_directory directory;
  const std::filesystem::path folder = directory.path() / "photos";
  const auto path = [&](const char* name) { return (directory.path() / name).string(); };
  write_file(folder / "a" / "1.jpg", photo_jpeg(1, 96, 64));
  write_file(folder / "a" / "2.jpg", photo_jpeg(2, 96, 64));
  ASSERT_EQ(run({"pack", folder.string(), path("whole.tar"), "--photos", "fast"}).exit_code, 0);
  const std::string whole = content_of(path("whole.tar"));
  ASSERT_EQ(run({"unpack", path("whole.tar"), path("files")}).exit_code, 0);

  std::ofstream(path("cut.tar"), std::ios::binary) << whole.substr(0, whole.rfind("FJPG\r\n") + 700);
  const ended cut = run({"unpack", path("cut.tar"), path("files"), "--overwrite"});
  EXPECT_EQ(cut.exit_code, 1);
  EXPECT_THAT(cut.err, HasSubstr("a/2"));
  EXPECT_EQ(content_of(directory.path() / "files/a/2.jpg"), content_of(folder / "a/2.jpg"));

  std::string unknown = whole;
  unknown[unknown.find("FJPG\r\n")] = 'X';
  std::ofstream(path("unknown.tar"), std::ios::binary) << unknown;
  const ended partly = run({"unpack", path("unknown.tar"), path("rest")});
  EXPECT_EQ(partly.exit_code, 1);
  EXPECT_THAT(partly.err, HasSubstr("a/1.fjpg: it is neither a photo pack nor a JPEG"));
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "rest/a/1.fjpg"));

  // A later version is no damage.
  std::string later = whole;
  later[later.find("FJPG\r\n") + 7] = 2;  // The signature has a byte before these.
  std::ofstream(path("later.tar"), std::ios::binary) << later;
  const ended newer = run({"unpack", path("later.tar"), path("newer"), "--json"});
  EXPECT_EQ(newer.exit_code, 1);
  EXPECT_EQ(newer.json().at("damaged"), 0);
  EXPECT_EQ(newer.json().at("unsupported"), 1);
  EXPECT_EQ(newer.json().at("files"), 3);
  EXPECT_THAT(newer.err, HasSubstr("a/1.fjpg: photo pack of version 2; this leat reads version 1"));
  EXPECT_EQ(content_of(directory.path() / "rest/a/2.jpg"), content_of(folder / "a/2.jpg"));
}

TEST(pack, of_packs_into_jpegs_fails_where_one_is_damaged_and_keeps_it) {
  const temporary_directory directory;
  const std::filesystem::path folder = directory.path() / "photos";
  const auto path = [&](const char* name) { return (directory.path() / name).string(); };
  write_file(folder / "a" / "1.jpg", photo_jpeg(1, 96, 64));
  write_file(folder / "a" / "2.jpg", photo_jpeg(2, 96, 64));
  ASSERT_EQ(run({"pack", folder.string(), path("whole.tar"), "--photos", "fast"}).exit_code, 0);
  std::string damaged = content_of(path("whole.tar"));
  damaged[damaged.find("FJPG\r\n") + 900] ^= 1;
  std::ofstream(path("damaged.tar"), std::ios::binary) << damaged;
  const ended back = run({"pack", path("damaged.tar"), path("back.tar"), "--photos", "jpeg"});
  EXPECT_EQ(back.exit_code, 1);
  EXPECT_THAT(back.out, HasSubstr("a/1.fjpg: "));
  EXPECT_THAT(back.err, HasSubstr("1 photo pack is no JPEG again"));
  const ended files = run({"unpack", path("back.tar"), path("files")});
  EXPECT_THAT(files.err, HasSubstr("a/1.fjpg"));
  EXPECT_EQ(content_of(directory.path() / "files/a/2.jpg"), content_of(folder / "a/2.jpg"));
}

TEST(pack, unpack_keeps_all_samples_of_one_name) {
  const temporary_directory directory;
  const auto path = [&](const char* name) { return (directory.path() / name).string(); };
  write_file(directory.path() / "one" / "a" / "1.jpg", photo_jpeg(1, 96, 64));
  write_file(directory.path() / "two" / "a" / "1.jpg", photo_jpeg(2, 96, 64));
  for (const std::string photos : {"fast", "jpeg"}) {
    const std::string shard = path((photos + ".tar").c_str());
    const std::string out = path(photos.c_str());
    ASSERT_EQ(run({"pack", path("one"), path("two"), path("one"), shard, "--photos", photos}).exit_code, 0);
    const ended files = run({"unpack", shard, out, "--json"});
    EXPECT_EQ(files.exit_code, 0) << files.err;
    EXPECT_EQ(files.json().at("numbered"), 1);
    EXPECT_EQ(files.json().at("repeated"), 2) << "the picture that comes again, and its class";
    EXPECT_EQ(content_of(out + "/a/1.jpg"), content_of(path("one/a/1.jpg")));
    EXPECT_EQ(content_of(out + "/a/1%~1.jpg"), content_of(path("two/a/1.jpg")));
  }
}

using files_by_name = std::map<std::string, std::string>;

// Pictures of all depths and stems: those that differ in nothing but the extension, in its letters' case, or have what
// is escaped in keys.
files_by_name random_tree(seeded_random& draw) {
  static const std::vector<std::string> stems = {"x", "X", "x.a", "x%", "x%~1", "%2E", "a b", "\xC3\xA4", "1", "x.cls"};
  static const std::vector<std::string> extensions = {"jpg", "JPG", "jpeg", "png", "Png", "bmp", "webp"};
  static const std::vector<std::string> folders = {"c", "C", "d.e", "x", "%25", "c d"};
  const bool has_classes = draw.chance(0.7);
  files_by_name files;
  for (std::uint64_t left = 1 + draw.below(30); left > 0; --left) {
    std::string path;
    for (std::uint64_t depth = has_classes ? 1 + draw.below(3) : 0; depth > 0; --depth) {
      path += folders[draw.below(folders.size())] + "/";
    }
    path += stems[draw.below(stems.size())] + "." + extensions[draw.below(extensions.size())];
    std::string content(draw.chance(0.2) ? 0 : draw.below(2000), '\0');
    fill_seeded(draw.next(), 0, std::as_writable_bytes(std::span(content)));
    files[path] = content;
  }
  return files;
}

TEST(pack, unpack_gives_back_each_file_of_any_tree) {
  for_each_seed(12, [](std::uint64_t seed) {
    seeded_random draw(seed);
    const temporary_directory directory;
    const files_by_name tree = random_tree(draw);
    for (const auto& [name, content] : tree) write_file(directory.path() / "tree" / name, content);
    std::vector<std::string> pack{"pack", (directory.path() / "tree").string(),
                                  (directory.path() / "p-%d.tar").string(), "--samples-per-shard",
                                  std::to_string(1 + draw.below(20))};
    if (draw.chance(0.5)) pack.push_back("--shuffle");
    const ended packed = run(pack);
    ASSERT_EQ(packed.exit_code, 0) << packed.err;
    const ended done =
        run({"unpack", (directory.path() / "p-*.tar").string(), (directory.path() / "out").string(), "--json"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(done.json().at("numbered"), 0);
    files_by_name found;
    for (const auto& each : std::filesystem::recursive_directory_iterator(directory.path() / "out")) {
      // A class is no file of the tree.
      if (!each.is_regular_file() || each.path().extension() == ".cls") continue;
      found[each.path().lexically_relative(directory.path() / "out").string()] = content_of(each.path());
    }
    EXPECT_EQ(found, tree);
  });
}

TEST(pack, unpack_refuses_a_member_that_leads_out_of_the_folder) {
  const temporary_directory directory;
  const std::filesystem::path folder = directory.path() / "photos";
  write_file(folder / "aa" / "1.jpg", photo_jpeg(1, 16, 16));
  const std::string shard = (directory.path() / "p.tar").string();
  ASSERT_EQ(run({"pack", folder.string(), shard}).exit_code, 0);
  std::string tar = content_of(shard);
  // As long as it was; the header's sum is a plain one of its bytes.
  for (std::size_t at = tar.find("aa/1."); at != std::string::npos; at = tar.find("aa/1.", at)) {
    tar.replace(at, 2, "..");
    std::string header = tar.substr(at, 512);
    header.replace(148, 8, 8, ' ');
    unsigned sum = 0;
    for (const char each : header) sum += static_cast<unsigned char>(each);
    std::array<char, 8> octal{};
    std::snprintf(octal.data(), octal.size(), "%06o", sum);
    tar.replace(at + 148, 7, octal.data(), 7);
  }
  std::ofstream(shard, std::ios::binary) << tar;
  const ended refused = run({"unpack", shard, (directory.path() / "out").string()});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("'../1.jpg' leads out of the folder"));
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "1.jpg"));
}

TEST(pack, unpack_follows_no_link_that_leads_out_of_the_folder) {
  namespace fs = std::filesystem;
  const temporary_directory directory;
  write_file(directory.path() / "photos" / "a" / "b" / "1.jpg", photo_jpeg(1, 16, 16));
  const std::string shard = (directory.path() / "p.tar").string();
  ASSERT_EQ(run({"pack", (directory.path() / "photos").string(), shard}).exit_code, 0);
  const fs::path outside = directory.path() / "outside";
  fs::create_directories(outside / "b");
  const auto unpacked_with = [&](const char* link, const fs::path& to, const fs::path& out) {
    fs::create_directories((out / link).parent_path());
    fs::create_directory_symlink(to, out / link);
    return run({"unpack", shard, out.string(), "--overwrite"});
  };
  for (const auto& [link, to] :
       {std::pair<const char*, fs::path>{"a", outside}, {"a", "../outside"}, {"a/b", outside}}) {
    const fs::path out = directory.path() / "out";
    const ended refused = unpacked_with(link, to, out);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("a symbolic link in "), HasSubstr("leads out of it; remove the link")));
    EXPECT_FALSE(fs::exists(outside / "b" / "1.jpg"));
    EXPECT_FALSE(fs::exists(outside / "1.jpg"));
    fs::remove_all(out);
  }
  // The folder itself may be behind a link, and within it links may lead to where they like.
  const fs::path out = directory.path() / "out";
  fs::create_directories(directory.path() / "real" / "elsewhere");
  fs::create_directory_symlink(directory.path() / "real", out);
  const ended done = unpacked_with("a", "elsewhere", out);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(fs::exists(directory.path() / "real" / "elsewhere" / "b" / "1.jpg"));
}

TEST(pack, transcode_rewrites_progressive_jpegs_and_leaves_the_others_byte_for_byte) {
  const temporary_directory directory;
  const std::filesystem::path folder = directory.path() / "photos";
  write_file(folder / "a" / "1.jpg", progressive_jpeg(1));
  write_file(folder / "a" / "2.jpg", photo_jpeg(2, 96, 64));
  write_file(folder / "b" / "3.jpg", progressive_jpeg(3));
  const std::string plain = (directory.path() / "plain.tar").string();
  const std::string out = (directory.path() / "out.tar").string();
  ASSERT_EQ(run({"pack", folder.string(), plain}).exit_code, 0);
  const ended packed = run({"pack", folder.string(), out, "--transcode", "--json"});
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  const json done = packed.json().at("transcoded");
  EXPECT_EQ(done.at("rewritten"), 2);
  EXPECT_EQ(done.at("as_they_were"), 1);
  EXPECT_EQ(done.at("left"), 0);
  EXPECT_EQ(done.at("bytes_before"), progressive_jpeg(1).size() + progressive_jpeg(3).size());
  for (const char* transform : {"train", "eval"}) {
    EXPECT_EQ(digest_of(plain, {"--transform", transform}), digest_of(out, {"--transform", transform})) << transform;
  }
  EXPECT_EQ(run({"inspect", folder.string(), "--json"}).json().at("jpegs").at("not_baseline"), 2);
  EXPECT_EQ(run({"inspect", out, "--json"}).json().at("jpegs").at("not_baseline"), 0);
  const ended told = run({"inspect", folder.string()});
  EXPECT_THAT(told.out, HasSubstr("2 of 3 looked at; as baseline they decode"));
  EXPECT_THAT(told.out, HasSubstr("(measured on 2)"));

  // What is larger than what pack reads at a time is rewritten too.
  std::vector<std::uint8_t> large = progressive_jpeg(5);
  std::vector<std::uint8_t> comments;
  while (comments.size() < (std::size_t{17} << 20)) {
    comments.insert(comments.end(), {0xFF, 0xFE, 0xFF, 0xFF});
    comments.resize(comments.size() + 0xFFFF - 2, 'c');
  }
  large.insert(large.begin() + 2, comments.begin(), comments.end());
  write_file(directory.path() / "large" / "c" / "5.jpg", large);
  write_file(directory.path() / "large" / "c" / "6.jpg", progressive_jpeg(6));
  const std::string larger = (directory.path() / "larger.tar").string();
  const json of_large = run({"pack", (directory.path() / "large").string(), larger, "--transcode", "--json"}).json();
  EXPECT_EQ(of_large.at("transcoded").at("rewritten"), 2);
  EXPECT_EQ(run({"inspect", larger, "--json"}).json().at("jpegs").at("not_baseline"), 0);

  // The baseline one as it was; a damaged one too, and it is named.
  EXPECT_THAT(text_of(out), HasSubstr(text_of((folder / "a" / "2.jpg").string())));
  std::vector<std::uint8_t> cut = progressive_jpeg(4);
  cut.resize(cut.size() / 2);
  write_file(folder / "b" / "4.jpg", cut);
  const ended with_damage = run({"pack", folder.string(), out, "--transcode", "--overwrite"});
  ASSERT_EQ(with_damage.exit_code, 0) << with_damage.err;
  EXPECT_THAT(with_damage.out, HasSubstr("2 JPEGs written anew as baseline, "));
  EXPECT_THAT(with_damage.out, HasSubstr("; 1 left as they were\n"));
  EXPECT_THAT(with_damage.out, HasSubstr("left as it is: b/4.jpg: JPEG: "));
  EXPECT_THAT(text_of(out), HasSubstr(text_of((folder / "b" / "4.jpg").string())));
}

// 64 rows of 4 KiB, as records.
std::string rows_in(const std::filesystem::path& folder) {
  std::ofstream file(folder / "rows.bin", std::ios::binary);
  for (std::size_t row = 0; row < 64; ++row) file << std::string(4096, static_cast<char>(row));
  std::ofstream(folder / "rows.json") << R"({"fields": [{"name": "x", "dtype": "u8", "shape": [64, 64]}]})";
  return (folder / "rows.bin").string();
}

std::string digest_of_rows(const std::string& source) {
  return run({"epoch", source, "--batch-size", "5", "--epochs", "2", "--json"}).json().value("digest", "none");
}

TEST(pack, rows_and_their_zarr_give_one_digest) {
  const temporary_directory directory;
  const std::string rows = rows_in(directory.path());
  const std::string out = (directory.path() / "rows.zarr").string();
  for (const std::string codec : {"none", "lz4", "zstd", "gzip"}) {
    SCOPED_TRACE(codec);
    const ended process = run({"pack", rows, out, "--to", "zarr", "--codec", codec, "--rows-per-chunk", "7",
                               "--chunks-per-shard", "3", "--json"});
    ASSERT_EQ(process.exit_code, 0) << process.err;
    EXPECT_EQ(process.json().at("samples"), 64);
    EXPECT_EQ(process.json().at("shards").at(0).at("path"), out);
    EXPECT_NE(digest_of_rows(rows), "none");
    EXPECT_EQ(digest_of_rows(rows), digest_of_rows(out));
    std::filesystem::remove_all(out);
  }
  const ended told = run({"pack", rows, out, "--to", "zarr"});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("64 samples in 1 folder, "));
}

TEST(pack, what_zarr_cannot_be_is_a_usage_error) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string rows = rows_in(directory.path());
  const std::string out = (directory.path() / "o.zarr").string();
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& why) {
    std::vector<std::string> all{"pack"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const ended process = run(all);
    EXPECT_EQ(process.exit_code, 2);
    expect_one_line(process, "leat pack: ");
    EXPECT_THAT(process.err, HasSubstr(why));
    EXPECT_FALSE(std::filesystem::exists(out));
  };
  refused({photos.path().string(), out, "--to", "zarr"}, "tar shards");
  refused({rows, out, "--to", "zarr", "--samples-per-shard", "5"}, "--samples-per-shard");
  refused({rows, out, "--to", "zarr", "--overwrite"}, "--overwrite");
  refused({rows, out, "--to", "zarr", "--codec", "zip"}, "--codec");
  refused({rows, out, "--to", "zarr", "--rows-per-chunk", "0"}, "--rows-per-chunk");
  refused({rows, out, "--rows-per-chunk", "5"}, "--rows-per-chunk is of --to zarr");
  refused({rows, out, "--to", "records", "--codec", "gzip"}, "--codec is of --to zarr");
  refused({rows, (directory.path() / "o-%06d.zarr").string(), "--to", "zarr"}, "several files");
  refused({rows, directory.path().string(), "--to", "zarr"}, "not empty");
}

}  // namespace
}  // namespace leat::testing

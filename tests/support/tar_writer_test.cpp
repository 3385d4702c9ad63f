#include "tests/support/tar_writer.hpp"

#include "tests/support/seeded_random.hpp"
#include "tests/support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

namespace fs = std::filesystem;

bool there_is(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;  // NOLINT: our own words
}

// The programs that archives come from in life. None of ours: what these read is a tar archive.
struct reader {
  const char* program;
  std::string command;  // run in the directory to unpack into; the archive is ../a.tar
};
const reader readers[] = {
    {"tar", "tar -xf ../a.tar"},
    {"bsdtar", "bsdtar -xf ../a.tar"},
    {"python3", "python3 -c \"import tarfile; tarfile.open('../a.tar').extractall()\" 2>/dev/null"},
};

std::string contents_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "(not there)";
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Calls check(directory) for each program here that unpacks the archive.
template <class Check>
void unpack_with_each(const std::vector<std::byte>& archive, Check check) {
  int used = 0;
  for (const reader& each : readers) {
    if (!there_is(each.program)) continue;
    ++used;
    SCOPED_TRACE(each.program);
    const temporary_directory directory;
    {
      std::ofstream file(directory.path() / "a.tar", std::ios::binary);
      file.write(reinterpret_cast<const char*>(archive.data()), static_cast<std::streamsize>(archive.size()));
    }
    const fs::path out = directory.path() / "out";
    fs::create_directory(out);
    ASSERT_EQ(std::system(("cd '" + out.string() + "' && " + each.command).c_str()), 0);  // NOLINT
    check(out);
  }
  if (used == 0) GTEST_SKIP() << "neither tar nor bsdtar nor python3 is installed";
}

std::string long_name(std::size_t bytes) {
  std::string name;
  while (name.size() + 40 < bytes) name += "directory-with-a-long-name/";
  return name + std::string(bytes - name.size(), 'n');
}

std::string text_of(std::uint64_t key, std::size_t bytes) {
  std::vector<std::byte> filled(bytes);
  fill_seeded(key, 0, filled);
  return {reinterpret_cast<const char*>(filled.data()), bytes};
}

class tar_writer_dialects : public ::testing::TestWithParam<tar_dialect> {};

TEST_P(tar_writer_dialects, write_what_other_programs_read) {
  tar_writer writer(GetParam());
  const std::vector<std::pair<std::string, std::string>> files = {
      {"empty", ""},
      {"a.jpg", text_of(1, 1)},
      {"dir/b.jpg", text_of(2, 512)},
      {"dir/c.cls", text_of(3, 513)},
      {long_name(100), text_of(4, 10'000)},
      {long_name(101), text_of(5, 10)},
      {long_name(200), text_of(6, 10)},
  };
  writer.add_directory("dir");
  std::vector<tar_place> places;
  for (const auto& [name, contents] : files) places.push_back(writer.add_file(name, contents));
  writer.add_symbolic_link("link", "a.jpg");
  writer.add_hard_link("same", "a.jpg");
  const std::vector<std::byte> archive = writer.finish();
  EXPECT_EQ(archive.size() % (20 * 512), 0U);
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(places[i].data_bytes, files[i].second.size());
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(archive.data()) + places[i].data_offset, places[i].data_bytes),
              files[i].second);
  }
  unpack_with_each(archive, [&](const fs::path& out) {
    for (const auto& [name, contents] : files) EXPECT_EQ(contents_of(out / name), contents) << name;
    EXPECT_EQ(fs::read_symlink(out / "link"), "a.jpg");
    EXPECT_EQ(fs::hard_link_count(out / "same"), 2U);
    EXPECT_TRUE(fs::is_directory(out / "dir"));
  });
}

std::string name_of(const ::testing::TestParamInfo<tar_dialect>& dialect) {
  if (dialect.param == tar_dialect::ustar) return "ustar";
  return dialect.param == tar_dialect::gnu ? "gnu" : "pax";
}

INSTANTIATE_TEST_SUITE_P(all, tar_writer_dialects,
                         ::testing::Values(tar_dialect::ustar, tar_dialect::gnu, tar_dialect::pax), name_of);

TEST(tar_writer, writes_names_longer_than_ustar_can_split_in_the_other_dialects) {
  const std::string name = long_name(20) + "/" + std::string(180, 'x');
  EXPECT_THROW(tar_writer(tar_dialect::ustar).add_file(name, "text"), std::invalid_argument);
  for (const tar_dialect dialect : {tar_dialect::gnu, tar_dialect::pax}) {
    tar_writer writer(dialect);
    const tar_place place = writer.add_file(name, "text");
    EXPECT_EQ(place.data_offset - place.header_offset, 3 * 512U);
    unpack_with_each(writer.finish(), [&](const fs::path& out) { EXPECT_EQ(contents_of(out / name), "text"); });
  }
}

TEST(tar_writer, writes_sizes_and_paths_where_the_dialect_says) {
  tar_writer writer(tar_dialect::pax);
  const std::string body = text_of(9, 700);
  writer.add({.name = "by-record", .contents = bytes_of_text(body), .size_in_pax = true});
  writer.add({.name = "base256", .contents = bytes_of_text(body), .base256 = true});
  writer.add({.name = "hidden", .contents = bytes_of_text(body), .pax_records = {{"path", "shown"}}});
  writer.add_file("behind", "it all stays in step");
  unpack_with_each(writer.finish(), [&](const fs::path& out) {
    for (const char* name : {"by-record", "base256", "shown"}) EXPECT_EQ(contents_of(out / name), body) << name;
    EXPECT_EQ(contents_of(out / "behind"), "it all stays in step");
  });
}

TEST(tar_writer, writes_sparse_files_of_both_kinds) {
  for (const tar_dialect dialect : {tar_dialect::gnu, tar_dialect::pax}) {
    tar_writer writer(dialect);
    writer.add_sparse_file("sparse", 4096, bytes_of_text("behind the hole"));
    writer.add_file("behind", "it all stays in step");
    unpack_with_each(writer.finish(), [](const fs::path& out) {
      EXPECT_EQ(contents_of(out / "sparse"), std::string(4096, '\0') + "behind the hole");
      EXPECT_EQ(contents_of(out / "behind"), "it all stays in step");
    });
  }
  EXPECT_THROW(tar_writer(tar_dialect::ustar).add_sparse_file("sparse", 1, {}), std::invalid_argument);
}

TEST(tar_writer, writes_what_is_not_right_where_told) {
  if (!there_is("tar")) GTEST_SKIP() << "tar is not installed";
  const auto status_of_listing = [](const std::vector<std::byte>& archive) {
    const temporary_directory directory;
    const fs::path path = directory.path() / "a.tar";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(archive.data()), static_cast<std::streamsize>(archive.size()));
    return std::system(("tar -tf '" + path.string() + "' >/dev/null 2>&1").c_str());  // NOLINT
  };
  tar_writer sound;
  sound.add({.name = "signed", .signed_checksum = true});
  EXPECT_EQ(status_of_listing(sound.finish()), 0);

  tar_writer damaged;
  damaged.add({.name = "damaged", .contents = bytes_of_text("text"), .wrong_checksum = true});
  EXPECT_NE(status_of_listing(damaged.finish()), 0);

  tar_writer short_of_bytes;
  short_of_bytes.add({.name = "claims", .contents = bytes_of_text("text"), .claimed_bytes = 100'000});
  EXPECT_NE(status_of_listing(short_of_bytes.finish()), 0);
}

}  // namespace
}  // namespace leat::testing

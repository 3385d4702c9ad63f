// Shards that other programs wrote, and ours as other programs read them.
#include "datasets/model/model.hpp"
#include "datasets/write/pack.hpp"
#include "tests/datasets/programs.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_tar.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace leat {
namespace {

namespace fs = std::filesystem;
using testing::has_program;
using ::testing::HasSubstr;
using testing::run;
using testing::temporary_directory;

using contents = std::map<std::string, std::string>;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Files of every awkward kind of name and size, by path below `root`.
contents make_files(const fs::path& root) {
  contents files;
  files["a/one.jpg"] = "one";
  files["a/one.cls"] = "1";
  files["a/empty.jpg"] = "";
  files["b/" + std::string(95, 'l') + ".jpg"] = std::string(512, 'L');          // 100 bytes and more
  files["b/" + std::string(200, 'm') + ".jpg"] = std::string(513, 'M');         // no ustar name
  files[std::string(120, 'd') + "/" + std::string(90, 'e') + ".jpg"] = "deep";  // fits with a prefix
  files["c/\xc3\xa9\xe6\x97\xa5.jpg"] = "unicode";
  files["c/with blank.jpg"] = "blank";
  files["c/x.seg.png"] = std::string(100'000, 'S');
  for (const auto& [path, text] : files) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path, std::ios::binary) << text;
  }
  return files;
}

// Path -> content, as the dataset finds them: the key and the field are the path.
contents read_all(const dataset& of, const std::string& shard) {
  contents found;
  for (std::uint64_t i = 0; i < of.size(); ++i) {
    datasets::part_list parts;
    of.model()->parts(i, parts);
    std::string key = of.name(i).substr(shard.size() + 1);
    if (key.starts_with("./")) key.erase(0, 2);
    for (const datasets::part& each : parts) {
      const std::string& field = of.model()->fields()[each.field].name;
      const std::vector<std::byte> bytes = of.read(i, field);
      found[key + "." + field] = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  return found;
}

struct writer {
  const char* name;
  const char* program;
  std::string command;  // $ROOT and $TAR are set.
};

void PrintTo(const writer& of, std::ostream* out) { *out << of.name; }

class written_by : public ::testing::TestWithParam<writer> {};

TEST_P(written_by, is_read_member_for_member) {
  const writer& by = GetParam();
  if (!has_program(by.program)) GTEST_SKIP() << by.program << " is not installed";
  const temporary_directory root;
  const temporary_directory out;
  const contents files = make_files(root.path());
  const std::string shard = (out.path() / "s.tar").string();
  ASSERT_EQ(run("export ROOT='" + root.path().string() + "' TAR='" + shard + "'; " + by.command), 0);
  EXPECT_EQ(read_all(open_tar(shard), shard), files);
}

std::string python(const std::string& format) {
  return "python3 -c \"import tarfile, os; t = tarfile.open(os.environ['TAR'], 'w', format=tarfile." + format +
         "); os.chdir(os.environ['ROOT']); [t.add(f) for f in sorted(os.listdir('.'))]; t.close()\"";
}

INSTANTIATE_TEST_SUITE_P(
    foreign, written_by,
    ::testing::Values(writer{"gnu_tar", "tar", "tar -C \"$ROOT\" --sort=name -cf \"$TAR\" ."},
                      writer{"gnu_tar_oldgnu", "tar", "tar -C \"$ROOT\" --sort=name -H oldgnu -cf \"$TAR\" ."},
                      writer{"gnu_tar_posix", "tar", "tar -C \"$ROOT\" --sort=name -H posix -cf \"$TAR\" ."},
                      writer{"gnu_tar_small_records", "tar", "tar -C \"$ROOT\" --sort=name -b 1 -cf \"$TAR\" ."},
                      writer{"gnu_tar_labelled", "tar", "tar -C \"$ROOT\" --sort=name -V volume -cf \"$TAR\" ."},
                      writer{"bsdtar_pax", "bsdtar", "bsdtar -C \"$ROOT\" --format pax -cf \"$TAR\" ."},
                      writer{"bsdtar_gnutar", "bsdtar", "bsdtar -C \"$ROOT\" --format gnutar -cf \"$TAR\" ."},
                      writer{"python_gnu", "python3", python("GNU_FORMAT")},
                      writer{"python_pax", "python3", python("PAX_FORMAT")}),
    [](const auto& about) { return std::string(about.param.name); });

TEST(foreign_tar, a_sparse_member_of_gnu_tar_is_refused_by_name) {
  if (!has_program("tar") || !has_program("truncate")) GTEST_SKIP() << "GNU tar or truncate is not installed";
  for (const char* format :
       {"gnu", "posix --sparse-version=1.0", "posix --sparse-version=0.1", "posix --sparse-version=0.0"}) {
    const temporary_directory root;
    ASSERT_EQ(run("cd '" + root.path().string() + "' && truncate -s 4M hole.jpg && printf x >> hole.jpg && tar -S -H " +
                  format + " -cf s.tar hole.jpg 2>/dev/null"),
              0);
    try {
      static_cast<void>(open_tar((root.path() / "s.tar").string()));
      FAIL() << format;
    } catch (const error& caught) {
      EXPECT_EQ(caught.code(), errc::unsupported) << caught.what();
      EXPECT_THAT(caught.what(), HasSubstr("hole.jpg"));
    }
  }
}

TEST(foreign_tar, a_hard_link_of_gnu_tar_has_the_bytes_of_its_file) {
  if (!has_program("tar")) GTEST_SKIP() << "tar is not installed";
  const temporary_directory root;
  ASSERT_EQ(run("cd '" + root.path().string() + "' && printf x > a.jpg && ln a.jpg b.jpg && tar -cf s.tar a.jpg b.jpg"),
            0);
  const dataset linked = open_tar((root.path() / "s.tar").string());
  ASSERT_EQ(linked.size(), 2U);
  EXPECT_EQ(linked.model()->defects(), 0U);
  EXPECT_EQ(linked.read(1), std::vector<std::byte>{std::byte{'x'}});
  ASSERT_EQ(run("cd '" + root.path().string() + "' && tar --hard-dereference -cf s.tar a.jpg b.jpg"), 0);
  EXPECT_EQ(open_tar((root.path() / "s.tar").string()).size(), 2U);
}

class read_by : public ::testing::TestWithParam<writer> {};

TEST_P(read_by, our_packs_come_out_as_they_went_in) {
  const writer& by = GetParam();
  if (!has_program(by.program)) GTEST_SKIP() << by.program << " is not installed";
  const temporary_directory root;
  const temporary_directory out;
  contents files = make_files(root.path());
  fs::remove(root.path() / "a/one.cls");
  files.erase("a/one.cls");
  const dataset folder = open_folder(root.path().string(), {.classes = folder_options::class_folders::no});
  const std::string shard = (out.path() / "s.tar").string();
  datasets::pack(folder, shard, {});
  ASSERT_EQ(run("cd '" + out.path().string() + "' && export TAR=s.tar; mkdir x && cd x && " + by.command), 0);
  for (const auto& [path, text] : files) {
    std::string packed = path;
    if (path == "c/x.seg.png") packed = "c/x%2Eseg.png";
    EXPECT_EQ(text_of(out.path() / "x" / packed), text) << packed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    foreign, read_by,
    ::testing::Values(writer{"gnu_tar", "tar", "tar -xf ../$TAR"}, writer{"bsdtar", "bsdtar", "bsdtar -xf ../$TAR"},
                      writer{"python", "python3",
                             "python3 -c \"import tarfile; tarfile.open('../s.tar').extractall()\" "
                             "2>/dev/null"}),
    [](const auto& about) { return std::string(about.param.name); });

}  // namespace
}  // namespace leat

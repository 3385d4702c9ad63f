#include "datasets/files/folder_walk.hpp"
#include "datasets/files/python_order.hpp"
#include "datasets/model/model.hpp"
#include "tests/datasets/programs.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_folder.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace leat {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::temporary_directory;

void put(const fs::path& path, const std::string& content = "picture") {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::vector<std::string> names(const dataset& of) {
  std::vector<std::string> all;
  for (std::uint64_t i = 0; i < of.size(); ++i) all.push_back(of.name(i));
  return all;
}

std::vector<std::int64_t> labels(const dataset& of) {
  std::vector<std::int64_t> all;
  for (std::uint64_t i = 0; i < of.size(); ++i) all.push_back(of.label(i).value_or(-1));
  return all;
}

std::string failure_of(const fs::path& path, errc expected, const folder_options& options = {}) {
  try {
    static_cast<void>(open_folder(path.string(), options));
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), expected) << caught.what();
    return caught.what();
  }
  ADD_FAILURE() << path << " was opened";
  return {};
}

TEST(folder, classes_are_the_folders_sorted_and_samples_follow_them) {
  const temporary_directory root;
  put(root.path() / "dog/2.jpg", "22");
  put(root.path() / "dog/10.JPEG", "1010");
  put(root.path() / "cat/a.png", "a");
  put(root.path() / "cat/notes.txt");
  put(root.path() / "README.md");
  const dataset pets = open_folder(root.path().string());
  EXPECT_THAT(pets.classes(), ElementsAre("cat", "dog"));
  EXPECT_THAT(names(pets), ElementsAre("cat/a.png", "dog/10.JPEG", "dog/2.jpg"));
  EXPECT_THAT(labels(pets), ElementsAre(0, 1, 1));
  const std::vector<field_info> fields = pets.fields();
  ASSERT_EQ(fields.size(), 2U);
  EXPECT_EQ(fields[0].name, "jpg");
  EXPECT_EQ(fields[0].kind, field_kind::picture);
  EXPECT_EQ(fields[0].samples, 3U);
  EXPECT_EQ(fields[0].bytes_max, 4U);
  EXPECT_EQ(fields[0].bytes_total, 7U);
  EXPECT_TRUE(fields[1].column);
  EXPECT_EQ(fields[1].name, "cls");
}

TEST(folder, a_trailing_slash_changes_nothing) {
  const temporary_directory root;
  put(root.path() / "a/1.jpg", "one");
  const dataset with = open_folder(root.path().string() + "//");
  EXPECT_THAT(names(with), ElementsAre("a/1.jpg"));
  EXPECT_EQ(with.read(0).size(), 3U);
}

TEST(folder, files_come_before_those_of_its_folders_and_folders_by_their_whole_path) {
  const temporary_directory root;
  // As torchvision: sorted(os.walk(..)) compares whole directory paths, and '-' sorts before '/'.
  put(root.path() / "c/z.jpg");
  put(root.path() / "c/a/1.jpg");
  put(root.path() / "c/a-b/1.jpg");
  put(root.path() / "c/a/b/1.jpg");
  EXPECT_THAT(names(open_folder(root.path().string())),
              ElementsAre("c/z.jpg", "c/a/1.jpg", "c/a-b/1.jpg", "c/a/b/1.jpg"));
}

TEST(folder, without_class_folders_it_is_flat_and_has_no_labels) {
  const temporary_directory root;
  put(root.path() / "b.jpg");
  put(root.path() / "a.webp");
  const dataset flat = open_folder(root.path().string());
  EXPECT_THAT(names(flat), ElementsAre("a.webp", "b.jpg"));
  EXPECT_THAT(flat.classes(), IsEmpty());
  EXPECT_EQ(flat.label(0), std::nullopt);
  EXPECT_EQ(flat.fields().size(), 1U);
}

TEST(folder, flat_on_request_takes_every_picture_below) {
  const temporary_directory root;
  put(root.path() / "b/1.jpg");
  put(root.path() / "z.jpg");
  const dataset flat = open_folder(root.path().string(), {.classes = folder_options::class_folders::no});
  EXPECT_THAT(names(flat), ElementsAre("z.jpg", "b/1.jpg"));
  EXPECT_THAT(flat.classes(), IsEmpty());
}

TEST(folder, a_folder_without_pictures_beside_pictures_is_no_class) {
  const temporary_directory root;
  put(root.path() / "1.jpg");
  put(root.path() / "notes/todo.txt");
  EXPECT_THAT(names(open_folder(root.path().string())), ElementsAre("1.jpg"));
}

TEST(folder, pictures_beside_class_folders_are_counted_in_a_note) {
  const temporary_directory root;
  put(root.path() / "a/1.jpg");
  EXPECT_THAT(open_folder(root.path().string()).notes(), IsEmpty());
  for (const std::string name : {"x3.png", "x1.jpg", "x4.webp", "x2.JPG"}) put(root.path() / name);
  put(root.path() / "readme.txt");
  const dataset opened = open_folder(root.path().string());
  EXPECT_THAT(names(opened), ElementsAre("a/1.jpg"));
  EXPECT_THAT(opened.notes(),
              ElementsAre(root.path().string() +
                          ": left out: 4 pictures beside the class folders, which have no class (x1.jpg, "
                          "x2.JPG, x3.png and 1 more); move them into one"));
}

TEST(folder, pictures_that_nobody_reads_are_counted_in_a_note) {
  const temporary_directory root;
  for (const std::string name : {"a/1.jpg", "a/2.tif", "a/3.gif", "a/below/4.GIF", "b/5.heic", "b/6.webp"})
    put(root.path() / name);
  const dataset classes = open_folder(root.path().string());
  EXPECT_THAT(names(classes), ElementsAre("a/1.jpg", "b/6.webp"));
  EXPECT_THAT(classes.notes(),
              ElementsAre(HasSubstr("left out: pictures that are not read: 1 .tif, 2 .gif, 1 .heic; convert them")));
  EXPECT_THAT(open_folder(root.path().string(), {.classes = folder_options::class_folders::no}).notes(),
              ElementsAre(HasSubstr("1 .tif, 2 .gif, 1 .heic")));
  EXPECT_THAT(open_folder(root.path().string(), {.allow_empty_classes = true, .extensions = {".gif", ".jpg"}}).notes(),
              IsEmpty());
  const temporary_directory only;
  put(only.path() / "1.gif");
  EXPECT_THAT(failure_of(only.path(), errc::not_found),
              HasSubstr("not read: 1 .gif; .gif and .tif are read if folder_options::extensions names them"));
  put(only.path() / "scans/1.tif");
  EXPECT_THAT(
      failure_of(only.path(), errc::not_found),
      AllOf(HasSubstr("no picture in the class folder scans (looked for .jpg"),
            HasSubstr(
                "; not read: 1 .tif; .gif and .tif are read if folder_options::extensions names them); remove them")));
}

TEST(folder, an_empty_class_folder_is_an_error_that_names_it_unless_allowed) {
  const temporary_directory root;
  put(root.path() / "a/1.jpg");
  fs::create_directories(root.path() / "b");
  put(root.path() / "c/1.jpg");
  const std::string message = failure_of(root.path(), errc::not_found);
  EXPECT_THAT(message, HasSubstr("class folder b "));
  EXPECT_THAT(message, HasSubstr(".jpg, .jpeg"));
  const dataset allowed = open_folder(root.path().string(), {.allow_empty_classes = true});
  EXPECT_THAT(allowed.classes(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(labels(allowed), ElementsAre(0, 2));
}

TEST(folder, a_missing_folder_and_one_without_pictures_are_errors) {
  const temporary_directory root;
  EXPECT_THAT(failure_of(root.path() / "nowhere", errc::not_found), HasSubstr("nowhere"));
  EXPECT_THAT(failure_of(root.path(), errc::not_found), HasSubstr("no picture"));
  put(root.path() / "file.jpg");
  EXPECT_THAT(failure_of(root.path() / "file.jpg", errc::usage), HasSubstr("folder of pictures"));
  failure_of("", errc::usage);
}

// As a clone of a set of the Hub has it.
TEST(folder, one_without_pictures_but_with_tables_or_shards_says_how_to_name_them) {
  const temporary_directory root;
  put(root.path() / "README.md");
  put(root.path() / "data/train-00000-of-00001.parquet");
  EXPECT_THAT(failure_of(root.path(), errc::not_found),
              HasSubstr("name its .parquet files, '" + root.path().string() + "/data/*.parquet'"));
  EXPECT_THAT(failure_of(root.path() / "data", errc::not_found), HasSubstr("/data/*.parquet'"));
  put(root.path() / "other/b.txt");
  put(root.path() / "cat/a.jpg");
  EXPECT_THAT(failure_of(root.path(), errc::not_found), HasSubstr("no picture in the class folders data, other"));
}

TEST(folder, links_to_files_and_folders_are_followed) {
  const temporary_directory root;
  put(root.path() / "store/one.jpg", "one");
  fs::create_directories(root.path() / "photos/a");
  fs::create_directory_symlink(root.path() / "store", root.path() / "photos/b");
  fs::create_symlink(root.path() / "store/one.jpg", root.path() / "photos/a/link.jpg");
  const dataset linked = open_folder((root.path() / "photos").string());
  EXPECT_THAT(names(linked), ElementsAre("a/link.jpg", "b/one.jpg"));
  EXPECT_EQ(linked.fields()[0].bytes_total, 6U);
}

TEST(folder, links_that_lead_back_are_survived) {
  const temporary_directory root;
  put(root.path() / "a/1.jpg");
  fs::create_directory_symlink(root.path(), root.path() / "a/up");
  fs::create_directory_symlink(root.path() / "a", root.path() / "a/self");
  fs::create_directory_symlink(".", root.path() / "loop");
  const dataset survived = open_folder(root.path().string());
  EXPECT_THAT(survived.classes(), ElementsAre("a"));
  EXPECT_THAT(names(survived), ElementsAre("a/1.jpg"));
}

TEST(folder, a_link_that_leads_nowhere_hurts_its_own_sample_only) {
  const temporary_directory root;
  put(root.path() / "a/1.jpg");
  fs::create_symlink("gone.jpg", root.path() / "a/2.jpg");
  ASSERT_EQ(::mkfifo((root.path() / "a/3.jpg").c_str(), 0600), 0);
  const dataset some = open_folder(root.path().string());
  EXPECT_THAT(names(some), ElementsAre("a/1.jpg", "a/2.jpg", "a/3.jpg"));
  EXPECT_EQ(some.model()->defects(), 2U);
  EXPECT_EQ(some.model()->defect_of(0), std::nullopt);
  EXPECT_THAT(some.model()->defect_of(1)->reason, HasSubstr("leads nowhere"));
  EXPECT_THAT(some.model()->defect_of(2)->reason, HasSubstr("not a regular file"));
  EXPECT_THROW(static_cast<void>(some.read(1)), error);
}

TEST(folder, a_directory_that_may_not_be_read_is_named) {
  if (::geteuid() == 0 && !testing::can_become_nobody()) GTEST_SKIP() << "root may read everything";
  const temporary_directory root;
  put(root.path() / "a/1.jpg");
  put(root.path() / "locked/1.jpg");
  fs::permissions(root.path(), fs::perms::all);
  fs::permissions(root.path() / "locked", fs::perms::none);
  testing::as_nobody([&] {
    const std::string message = failure_of(root.path(), errc::permission);
    EXPECT_THAT(message, HasSubstr("/locked"));
    EXPECT_THAT(message, HasSubstr("chmod"));
  });
  // Readable names, but no way to the files.
  fs::permissions(root.path() / "locked", fs::perms::owner_read | fs::perms::others_read);
  testing::as_nobody([&] { EXPECT_THAT(failure_of(root.path(), errc::permission), HasSubstr("/locked")); });
  fs::permissions(root.path() / "locked", fs::perms::owner_all);
}

TEST(folder, names_cost_what_they_are_long_and_extents_nothing) {
  const temporary_directory root;
  for (int i = 0; i < 1000; ++i) put(root.path() / "class" / ("picture-" + std::to_string(1000 + i) + ".jpg"));
  const dataset_memory held = open_folder(root.path().string()).memory();
  EXPECT_EQ(held.extents, 0U);
  EXPECT_LE(held.files, 1000 * (16 + 8 + 1) + 1024);
  EXPECT_LE(held.columns, 256U);
}

TEST(folder, parts_are_whole_files) {
  const temporary_directory root;
  put(root.path() / "1.jpg", "12345");
  const dataset one = open_folder(root.path().string());
  datasets::part_list parts;
  one.model()->parts(0, parts);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].where, (extent{0, 0, 0, 5, 5}));
  parts.clear();
  const datasets::need other{.field = 7};
  one.model()->parts(0, {&other, 1}, parts);
  EXPECT_TRUE(parts.empty());
}

TEST(folder, the_same_however_many_threads_walk_it) {
  const temporary_directory root;
  for (int i = 0; i < 300; ++i) {
    put(root.path() / ("c" + std::to_string(i % 7)) / std::to_string(i % 5) / (std::to_string(i) + ".jpg"),
        std::string(static_cast<std::size_t>(i), 'x'));
  }
  const dataset one = open_folder(root.path().string(), {.threads = 1});
  for (const unsigned threads : {2U, 5U, 32U}) {
    const dataset many = open_folder(root.path().string(), {.threads = threads});
    EXPECT_EQ(names(many), names(one));
    EXPECT_EQ(labels(many), labels(one));
  }
}

// Jupyter, macOS, Windows and NAS boxes leave such.
TEST(folder, what_is_hidden_is_neither_class_nor_sample_and_is_counted) {
  const temporary_directory flat;
  for (const char* name : {"1.jpg", "2.jpg", "._1.jpg", ".DS_Store", "Thumbs.db", ".ipynb_checkpoints/1-checkpoint.jpg",
                           "__MACOSX/._1.jpg", "@eaDir/1.jpg/SYNOPHOTO_THUMB_M.jpg"}) {
    put(flat.path() / name);
  }
  const dataset pictures = open_folder(flat.path().string());
  EXPECT_THAT(names(pictures), ElementsAre("1.jpg", "2.jpg"));
  EXPECT_THAT(pictures.classes(), IsEmpty());
  EXPECT_THAT(pictures.notes(), ElementsAre(HasSubstr("left out: 3 hidden folders and 1 hidden file (._1.jpg, "
                                                      ".ipynb_checkpoints, @eaDir and 1 more)")));

  const temporary_directory classes;
  for (const char* name :
       {"a/1.jpg", "a/.git/2.jpg", "b/1.jpg", "b/._1.jpg", "b/Thumbs.db", ".ipynb_checkpoints/1.jpg"}) {
    put(classes.path() / name);
  }
  const dataset of_classes = open_folder(classes.path().string());
  EXPECT_THAT(of_classes.classes(), ElementsAre("a", "b"));
  EXPECT_THAT(names(of_classes), ElementsAre("a/1.jpg", "b/1.jpg"));
  EXPECT_THAT(labels(of_classes), ElementsAre(0, 1));
  EXPECT_THAT(of_classes.notes(), ElementsAre(HasSubstr("left out: 2 hidden folders and 1 hidden file "
                                                        "(.ipynb_checkpoints, a/.git, b/._1.jpg)")));

  const temporary_directory only;
  put(only.path() / ".cache/1.jpg");
  EXPECT_THAT(failure_of(only.path(), errc::not_found), HasSubstr("left out: 1 hidden folder (.cache)"));
}

TEST(folder, a_folder_that_is_hidden_itself_is_opened_by_its_name) {
  const temporary_directory root;
  put(root.path() / ".cache/set/1.jpg");
  EXPECT_THAT(names(open_folder((root.path() / ".cache/set").string())), ElementsAre("1.jpg"));
  EXPECT_THAT(names(open_folder((root.path() / ".cache").string())), ElementsAre("set/1.jpg"));
}

// The same of a listing, with every tree of a few names.
TEST(folder, a_listing_leaves_out_what_a_walk_leaves_out) {
  const temporary_directory root;
  std::vector<std::string> paths;
  for (const std::string first : {"", "a/", ".git/", "__MACOSX/"}) {
    for (const std::string second : {"", "b/", "@eaDir/"}) {
      for (const std::string name : {"1.jpg", ".1.jpg", "._2.png", "Thumbs.db", "3.gif"}) {
        paths.push_back(first + second + name);
        put(root.path() / paths.back());
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<datasets::listed_file> files;
  for (const std::string& each : paths) files.push_back({each, 7});
  const datasets::folder_walk_options options{.extensions = {".jpg", ".png"}, .counted = {".gif"}, .threads = 2};
  const datasets::folder_listing walked_top = datasets::list_folder(root.path().string(), options);
  const datasets::folder_listing listed_top = datasets::list_folder(files, options);
  EXPECT_THAT(walked_top.folders, ElementsAre("a", "b"));
  EXPECT_EQ(listed_top.folders, walked_top.folders);
  EXPECT_EQ(listed_top.hidden.text(), walked_top.hidden.text());
  for (const std::vector<std::string>& starts : {std::vector<std::string>{""}, walked_top.folders}) {
    const datasets::folder_contents walked = datasets::walk_folders(root.path().string(), starts, options);
    const datasets::folder_contents listed = datasets::walk_folders(files, starts, options);
    EXPECT_EQ(listed.hidden.text(), walked.hidden.text());
    EXPECT_EQ(listed.counted, walked.counted);
    ASSERT_EQ(listed.directories.size(), walked.directories.size());
    for (std::size_t i = 0; i < walked.directories.size(); ++i) {
      EXPECT_EQ(listed.directories[i].path, walked.directories[i].path);
      EXPECT_EQ(listed.directories[i].names, walked.directories[i].names);
    }
  }
}

// What torchvision/datasets/folder.py does, without torchvision: find_classes and make_dataset.
constexpr const char* image_folder_script = R"(
import os, sys
root = sys.argv[1]
extensions = ('.jpg', '.jpeg', '.png', '.bmp', '.webp')  # of its list, those that are read
classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
out = open(sys.argv[2], 'wb')
for index, name in enumerate(classes):
    target = os.path.join(root, name)
    for directory, _, files in sorted(os.walk(target, followlinks=True)):
        for file in sorted(files):
            path = os.path.join(directory, file)
            if path.lower().endswith(extensions):
                out.write(os.fsencode('%d %s' % (index, os.path.relpath(path, root))) + b'\n')
)";

TEST(folder, order_equals_that_of_pythons_image_folder_on_random_trees) {
  if (!testing::has_program("python3")) GTEST_SKIP() << "python3 is not installed";
  testing::for_each_seed(5, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    // Separators, case, dots, bytes around '/', UTF-8 of two to four bytes, and bytes that are none.
    const std::vector<std::string> pieces = {
        "a",    "A",        "b-",           "b", "b.", "_", "~", "0", "10", "é", "日", "\xf0\x9f\x98\x80", "\xff",
        "\xc3", "\xe6\x97", "\xef\xbf\xbd", " "};
    const std::vector<std::string> extensions = {".jpg", ".JPG", ".Jpeg", ".png", ".txt", ".webp", ""};
    const auto word = [&] {
      std::string text;
      for (std::uint64_t i = 0, n = 1 + random() % 3; i < n; ++i) text += pieces[random() % pieces.size()];
      return text;
    };
    const temporary_directory root;
    std::vector<fs::path> directories;
    for (int i = 0; i < 6; ++i) directories.push_back(root.path() / ("c" + word()));
    for (int i = 0; i < 12; ++i) directories.push_back(directories[random() % directories.size()] / ("d" + word()));
    for (const fs::path& directory : directories) put(directory / "always.jpg");
    for (int i = 0; i < 120; ++i) {
      put(directories[random() % directories.size()] / ("f" + word() + extensions[random() % extensions.size()]));
    }
    const temporary_directory out;
    put(out.path() / "walk.py", image_folder_script);
    ASSERT_EQ(testing::run("python3 '" + (out.path() / "walk.py").string() + "' '" + root.path().string() + "' '" +
                           (out.path() / "list").string() + "'"),
              0);
    std::ifstream list(out.path() / "list", std::ios::binary);
    std::vector<std::string> expected;
    for (std::string line; std::getline(list, line);) expected.push_back(line);
    std::vector<std::string> ours;
    const dataset opened = open_folder(root.path().string());
    for (std::uint64_t i = 0; i < opened.size(); ++i) {
      ours.push_back(std::to_string(*opened.label(i)) + " " + opened.name(i));
    }
    ASSERT_THAT(expected, Not(IsEmpty()));
    EXPECT_EQ(ours, expected);
  });
}

TEST(folder, opens_many_tiny_files) {
  const temporary_directory root;
  constexpr int files = 6'000;  // more than the kernel tells of at once
  fs::create_directories(root.path() / "a");
  fs::create_directories(root.path() / "b");
  for (int i = 0; i < files; ++i) {
    std::ofstream(root.path() / (i % 2 == 0 ? "a" : "b") / (std::to_string(i) + ".png")) << 'x';
  }
  const dataset many = open_folder(root.path().string());
  EXPECT_EQ(many.size(), std::uint64_t{files});
  EXPECT_EQ(many.fields()[0].bytes_total, std::uint64_t{files});
  EXPECT_EQ(many.name(0), "a/0.png");
  EXPECT_EQ(many.label(files - 1), 1);
}

TEST(python_order, is_by_code_point_and_invalid_bytes_are_surrogates) {
  using datasets::python_less;
  EXPECT_TRUE(python_less("", "a"));
  EXPECT_FALSE(python_less("a", "a"));
  EXPECT_TRUE(python_less("Z", "a"));
  EXPECT_TRUE(python_less("a", "é"));
  // U+FFFD sorts behind the surrogate U+DCFF that stands for 0xFF, though its first byte 0xEF is smaller.
  EXPECT_TRUE(python_less("\xff", "\xef\xbf\xbd"));
  EXPECT_FALSE(python_less("\xef\xbf\xbd", "\xff"));
  EXPECT_TRUE(python_less("\xff", "\xf0\x9f\x98\x80"));
  EXPECT_TRUE(datasets::is_utf8("aé日\xf0\x9f\x98\x80"));
  EXPECT_FALSE(datasets::is_utf8("\xc0\x80"));
  EXPECT_FALSE(datasets::is_utf8("\xed\xa0\x80"));
}

}  // namespace
}  // namespace leat

// dataset::where(): which samples a condition holds of.
#include "stages/fields/where.hpp"

#include "datasets/model/model.hpp"
#include "datasets/views/predicate_text.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/description.hpp>
#include <leat/error.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tar.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::temporary_directory;

using sample_list = std::vector<std::uint64_t>;

// Samples 0 to 9 of as many bytes, with a = 0 .. 9, b = 9 .. 0 and score = a / 4, of which sample 3 has none.
dataset ten() {
  std::vector<std::int64_t> a;
  std::vector<std::int64_t> b;
  std::vector<double> score;
  for (std::int64_t i = 0; i < 10; ++i) {
    a.push_back(i);
    b.push_back(9 - i);
    score.push_back(i == 3 ? std::nan("") : static_cast<double>(i) / 4);
  }
  return from_function(10, [](std::uint64_t i) { return std::vector<std::byte>(i); },
                       {.field = "bytes",
                        .bytes_max = 10,
                        .name = [](std::uint64_t i) { return "n" + std::to_string(i / 5) + "/" + std::to_string(i); }})
      .with_column("a", a)
      .with_column("b", b)
      .with_column({.name = "score", .reals = score, .type = dtype::f32});
}

// By what stands behind the slash.
sample_list chosen(const dataset& from, std::string_view condition) {
  const dataset some = from.where(condition);
  sample_list all;
  for (std::uint64_t i = 0; i < some.size(); ++i) {
    const std::string name = some.name(i);
    all.push_back(std::stoull(name.substr(name.find('/') + 1)));
  }
  return all;
}
sample_list chosen(std::string_view condition) { return chosen(ten(), condition); }

std::string refusal(const dataset& from, std::string_view condition, errc code = errc::usage) {
  try {
    static_cast<void>(from.where(condition));
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), code) << condition;
    return caught.what();
  }
  ADD_FAILURE() << condition << " was taken";
  return "";
}
std::string refusal(std::string_view condition) { return refusal(ten(), condition); }

TEST(where, compares_columns_with_numbers_and_with_one_another) {
  EXPECT_EQ(chosen("a < 2"), (sample_list{0, 1}));
  EXPECT_EQ(chosen("a <= 2"), (sample_list{0, 1, 2}));
  EXPECT_EQ(chosen("a > 7"), (sample_list{8, 9}));
  EXPECT_EQ(chosen("7 <= a"), (sample_list{7, 8, 9}));
  EXPECT_EQ(chosen("a >= 8.5"), (sample_list{9}));
  EXPECT_EQ(chosen("a == 4"), (sample_list{4}));
  EXPECT_EQ(chosen("a != 4").size(), 9U);
  EXPECT_EQ(chosen("a > b"), (sample_list{5, 6, 7, 8, 9}));
  EXPECT_EQ(chosen("a == -1"), (sample_list{}));
  EXPECT_EQ(chosen("sample >= 9"), (sample_list{9}));
  EXPECT_EQ(chosen("`a` > 8"), (sample_list{9}));
}

TEST(where, binds_not_before_and_before_or) {
  EXPECT_EQ(chosen("a == 1 or a > 5 and a < 8"), (sample_list{1, 6, 7}));
  EXPECT_EQ(chosen("(a == 1 or a > 5) and a < 8"), (sample_list{1, 6, 7}));
  EXPECT_EQ(chosen("a > 5 and a < 8 or a == 1 and b == 8"), (sample_list{1, 6, 7}));
  EXPECT_EQ(chosen("(a == 9 or a > 5) and a < 8"), (sample_list{6, 7}));
  EXPECT_EQ(chosen("a == 9 or a > 5 and a < 8"), (sample_list{6, 7, 9}));
  EXPECT_EQ(chosen("not a > 1 or a == 5"), (sample_list{0, 1, 5}));
  EXPECT_EQ(chosen("not (a > 1 or a == 0)"), (sample_list{1}));
  EXPECT_EQ(chosen("not not a == 3"), (sample_list{3}));
  EXPECT_EQ(chosen("NOT a > 1 AND a Is Not Null"), (sample_list{0, 1}));
}

TEST(where, takes_lists_and_patterns) {
  EXPECT_EQ(chosen("a in (7, 1, 1, 99)"), (sample_list{1, 7}));
  EXPECT_EQ(chosen("a not in (0,1,2,3,4,5,6,7)"), (sample_list{8, 9}));
  EXPECT_EQ(chosen("score in (0.25, 2)"), (sample_list{1, 8}));
  EXPECT_EQ(chosen("name in ('n0/3', \"n1/5\")"), (sample_list{3, 5}));
  EXPECT_EQ(chosen("name matches 'n1/*'"), (sample_list{5, 6, 7, 8, 9}));
  EXPECT_EQ(chosen("name matches '*?/*8'"), (sample_list{8}));
  EXPECT_EQ(chosen("name not matches 'n1*' and a < 1"), (sample_list{0}));
  EXPECT_EQ(chosen("name matches 'n1'"), (sample_list{}));
  EXPECT_EQ(chosen("name >= 'n1/8'"), (sample_list{8, 9}));
}

TEST(where, a_question_mark_stands_for_one_letter_however_many_bytes_it_has) {
  const char* const names[] = {"M\u00fcller/0", "Miller/1", "\u65e5\u672c/2", "Mller/3", "x\u65e5/4"};
  const dataset set =
      from_function(5, [](std::uint64_t) { return std::vector<std::byte>(1); },
                    {.field = "bytes", .bytes_max = 1, .name = [&](std::uint64_t i) { return std::string(names[i]); }});
  EXPECT_EQ(chosen(set, "name matches 'M?ller/*'"), (sample_list{0, 1}));
  EXPECT_EQ(chosen(set,
                   "name matches '?"
                   "?/?'"),
            (sample_list{2, 4}));
  EXPECT_EQ(chosen(set, "name matches '*\u65e5/?'"), (sample_list{4}));
  EXPECT_EQ(chosen(set, "name matches '*?\u672c*'"), (sample_list{2}));
}

TEST(where, neither_takes_a_missing_value_nor_what_is_not_equal_to_it) {
  EXPECT_EQ(chosen("score < 1"), (sample_list{0, 1, 2}));
  EXPECT_EQ(chosen("not score < 1"), (sample_list{4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(chosen("score != 1"), (sample_list{0, 1, 2, 5, 6, 7, 8, 9}));
  EXPECT_EQ(chosen("score not in (1)"), (sample_list{0, 1, 2, 5, 6, 7, 8, 9}));
  EXPECT_EQ(chosen("score is null"), (sample_list{3}));
  EXPECT_EQ(chosen("score is not null and a < 5"), (sample_list{0, 1, 2, 4}));
  // What is unknown does not hide what is known.
  EXPECT_EQ(chosen("score < 1 or a == 3"), (sample_list{0, 1, 2, 3}));
  EXPECT_EQ(chosen("not (score < 1 and a == 9)").size(), 10U);
}

TEST(where, compares_numbers_exactly) {
  const std::int64_t large = (std::int64_t{1} << 53) + 1;  // is no double
  const dataset set = ten().slice(0, 2).with_column("large", {large, std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(chosen(set, "large == 9007199254740993"), (sample_list{0}));
  EXPECT_EQ(chosen(set, "large == 9007199254740992.0"), (sample_list{}));
  EXPECT_EQ(chosen(set, "large > 9007199254740992.0"), (sample_list{0, 1}));
  EXPECT_EQ(chosen(set, "large >= 9223372036854775808.0"), (sample_list{}));
  EXPECT_EQ(chosen(set, "large < 1e300 and large > -1e300"), (sample_list{0, 1}));
  // An f32 that was stored as 0.1 is 0.1, as it is in NumPy.
  const dataset floats =
      ten().slice(0, 2).with_column({.name = "p", .reals = {static_cast<double>(0.1F), 0.2}, .type = dtype::f32});
  EXPECT_EQ(chosen(floats, "p == 0.1"), (sample_list{0}));
  EXPECT_EQ(chosen(floats, "p > 0.1"), (sample_list{1}));
  EXPECT_EQ(chosen(floats, "p in (0.2)"), (sample_list{1}));
}

TEST(where, takes_no_number_that_a_column_cannot_hold_for_an_infinity) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    const dataset set =
        from_function(
            3, [](std::uint64_t) { return std::vector<std::byte>(1); },
            {.field = "bytes", .bytes_max = 1, .name = [](std::uint64_t i) { return "n/" + std::to_string(i); }})
            .with_column({.name = "x", .reals = {1, infinity, -infinity}, .type = type});
    EXPECT_EQ(chosen(set, "x == 1e300"), sample_list{});
    EXPECT_EQ(chosen(set, "x in (1e300, 3.5e38)"), sample_list{});
    EXPECT_EQ(chosen(set, "x <= 1e300"), (sample_list{0, 2}));
    EXPECT_EQ(chosen(set, "x > 3.4e38"), (sample_list{1}));
    EXPECT_EQ(chosen(set, "x < -1e300"), (sample_list{2}));
  }
}

TEST(where, knows_classes_and_sizes_of_a_folder) {
  const temporary_directory root;
  for (const char* const path : {"cat/0.jpg", "cat/1.png", "dog/2.jpg", "it's/3.jpg"}) {
    fs::create_directories((root.path() / path).parent_path());
    std::ofstream(root.path() / path) << std::string(path).substr(0, 3) << (path[0] == 'd' ? " of more" : "");
  }
  const dataset pets = open_folder(root.path().string());
  const auto names = [&](std::string_view condition) {
    const dataset some = pets.where(condition);
    std::vector<std::string> all;
    for (std::uint64_t i = 0; i < some.size(); ++i) all.push_back(some.name(i));
    return all;
  };
  EXPECT_THAT(names("class == 'cat'"), ElementsAre("cat/0.jpg", "cat/1.png"));
  EXPECT_THAT(names("class == 'it''s'"), ElementsAre("it's/3.jpg"));
  EXPECT_THAT(names("class not in ('cat', 'dog')"), ElementsAre("it's/3.jpg"));
  EXPECT_THAT(names("cls == 1"), ElementsAre("dog/2.jpg"));
  EXPECT_THAT(names("jpg.bytes > 3"), ElementsAre("dog/2.jpg"));
  EXPECT_THAT(names("name matches '*.png' and jpg.bytes is not null"), ElementsAre("cat/1.png"));
  EXPECT_THAT(refusal(pets, "cls == 'cat'"), HasSubstr("names of classes are compared with 'class'"));
  EXPECT_THAT(refusal(pets, "wide > 3"), HasSubstr("it knows cls, class, name, sample, width, height, jpg.bytes"));
}

std::vector<std::string> names_of(const dataset& some) {
  std::vector<std::string> all;
  for (std::uint64_t i = 0; i < some.size(); ++i) all.push_back(some.name(i));
  return all;
}

std::vector<std::byte> jpeg_of(int width, int height, const testing::jpeg_options& options = {}) {
  return testing::make_jpeg(testing::make_texture(1, width, height), options);
}

// What cameras put before the size: segments of a thumbnail, and of colours.
std::vector<std::byte> with_segments(std::vector<std::byte> jpeg, int segments, std::size_t bytes_each) {
  std::vector<std::byte> all(jpeg.begin(), jpeg.begin() + 2);
  for (int i = 0; i < segments; ++i) {
    all.insert(all.end(), {std::byte{0xFF}, std::byte{0xE2}, static_cast<std::byte>((bytes_each + 2) >> 8),
                           static_cast<std::byte>(bytes_each + 2)});
    all.insert(all.end(), bytes_each, std::byte{0x55});
  }
  all.insert(all.end(), jpeg.begin() + 2, jpeg.end());
  return all;
}

void write(const fs::path& path, const std::vector<std::byte>& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

TEST(where, reads_the_sizes_of_a_folder_s_pictures_as_they_are_stored) {
  const temporary_directory root;
  testing::rgb_picture seen;
  write(root.path() / "a.jpg", jpeg_of(40, 30));
  write(root.path() / "b.jpg", jpeg_of(50, 20, {.progressive = true, .orientation = 6}));
  write(root.path() / "c.png", testing::make_png(testing::make_texture(1, 60, 33), {}, seen));
  write(root.path() / "d.jpg", with_segments(jpeg_of(70, 34), 1, 3'000));
  write(root.path() / "e.jpg", with_segments(jpeg_of(80, 35), 3, 60'000));
  const dataset set = open_folder(root.path().string());
  EXPECT_THAT(names_of(set.where("width >= 50")), ElementsAre("b.jpg", "c.png", "d.jpg", "e.jpg"));
  EXPECT_THAT(names_of(set.where("height == 20 or width == 80")), ElementsAre("b.jpg", "e.jpg"));
  EXPECT_THAT(names_of(set.where("jpg.width in (40, 70)")), ElementsAre("a.jpg", "d.jpg"));
  EXPECT_THAT(names_of(set.where("not (width > height or height > 33)")), ElementsAre());
  EXPECT_THAT(names_of(set.where("name == 'a.jpg' or width > 75")), ElementsAre("a.jpg", "e.jpg"));
  EXPECT_THAT(set.where("width > 0").notes(), ElementsAre());
  description one;
  description other;
  set.where("width > 50").model()->describe(one);
  set.where("width > 60").model()->describe(other);
  EXPECT_FALSE(one == other);
}

std::ptrdiff_t files_in(const temporary_directory& folder) {
  return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator());
}

TEST(where, keeps_sizes_of_pictures_for_the_runs_that_follow) {
  const temporary_directory root;
  const temporary_directory kept;
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  const auto put = [&](const char* name, const std::vector<std::byte>& bytes, fs::file_time_type at) {
    write(root.path() / name, bytes);
    fs::last_write_time(root.path() / name, at);
  };
  const std::vector<std::byte> second = jpeg_of(50, 20);
  put("a.jpg", jpeg_of(40, 30), long_ago);
  put("b.jpg", second, long_ago);
  put("c.jpg", jpeg_of(60, 33), long_ago);
  const dataset set = open_folder(root.path().string());
  std::optional<index_report> told;
  index_options index{.use = index_use::check,
                      .directory = kept.path().string(),
                      .on_report = [&](const index_report& each) { told = each; }};
  const auto found = [&](std::string_view condition) {
    told.reset();
    return stages::samples_where(set, condition, index);
  };
  EXPECT_THAT(names_of(found("width >= 50")), ElementsAre("b.jpg", "c.jpg"));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->what, index_report::outcome::written) << told->why;
  EXPECT_EQ(told->source, "sizes of pictures");
  description one;
  description other;
  found("width >= 50").model()->describe(one);
  set.where("width >= 50").model()->describe(other);
  EXPECT_TRUE(one == other) << "states and orders are the same";
  EXPECT_THAT(names_of(found("height < 25 or width > 55")), ElementsAre("b.jpg", "c.jpg")) << "it asks the same";
  EXPECT_EQ(told->what, index_report::outcome::used);
  // No file is read: this one's content is another.
  put("b.jpg", std::vector<std::byte>(second.size(), std::byte{'x'}), long_ago);
  index.use = index_use::trust;
  EXPECT_THAT(names_of(found("width >= 50")), ElementsAre("b.jpg", "c.jpg")) << "no file is looked at either";
  EXPECT_EQ(told->what, index_report::outcome::used);
  index.use = index_use::check;
  EXPECT_THAT(names_of(set.where("width >= 50")), ElementsAre("c.jpg")) << "without an index it is read";
  // Its time tells. What cannot be read is read and told by each run, and the others are kept.
  const auto earlier = long_ago - std::chrono::hours(1);
  put("b.jpg", std::vector<std::byte>(second.size(), std::byte{'x'}), earlier);
  for (const bool is_first : {true, false}) {
    const dataset some = found("width >= 50");
    EXPECT_THAT(names_of(some), ElementsAre("c.jpg"));
    EXPECT_THAT(some.notes(), ElementsAre(HasSubstr("1 of 3 pictures has a header that cannot be read")));
    EXPECT_THAT(some.notes(), ElementsAre(HasSubstr("b.jpg")));
    EXPECT_EQ(told->what, is_first ? index_report::outcome::written : index_report::outcome::used);
  }
  EXPECT_EQ(files_in(kept), 1) << "it has been replaced";
  put("b.jpg", second, earlier);
  EXPECT_THAT(names_of(found("width >= 50")), ElementsAre("b.jpg", "c.jpg"));
  EXPECT_THAT(found("width >= 50").notes(), ElementsAre());
  // Of other pictures there is another index.
  EXPECT_THAT(names_of(found("name != 'b.jpg' and width >= 50")), ElementsAre("c.jpg"));
  EXPECT_EQ(told->what, index_report::outcome::written);
  EXPECT_EQ(files_in(kept), 2);
  // Files that it does not depend on may change.
  put("b.jpg", second, earlier - std::chrono::hours(1));
  EXPECT_THAT(names_of(found("name != 'b.jpg' and width >= 50")), ElementsAre("c.jpg"));
  EXPECT_EQ(told->what, index_report::outcome::used) << told->why;
  index.use = index_use::off;
  EXPECT_THAT(names_of(found("name != 'b.jpg' and width >= 50")), ElementsAre("c.jpg"));
  EXPECT_FALSE(told);
}

// Where a test stands in another folder, it goes back.
class standing_in {
 public:
  explicit standing_in(const fs::path& folder) : before_(fs::current_path()) { fs::current_path(folder); }
  standing_in(const standing_in&) = delete;
  standing_in& operator=(const standing_in&) = delete;
  ~standing_in() { fs::current_path(before_); }

 private:
  fs::path before_;
};

TEST(where, takes_no_sizes_of_another_dataset_of_the_same_relative_names) {
  const temporary_directory root;
  const temporary_directory kept;
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  const auto of_one_size = [](std::vector<std::byte> picture) {
    picture.resize(4'000);
    return picture;
  };
  for (const auto& [site, picture] :
       {std::pair("a", of_one_size(jpeg_of(40, 30))), {"b", of_one_size(jpeg_of(30, 40))}}) {
    fs::create_directories(root.path() / site / "data");
    const fs::path file = root.path() / site / "data" / "0.jpg";
    write(file, picture);
    fs::last_write_time(file, long_ago);
  }
  std::optional<index_report> told;
  const index_options index{.use = index_use::check,
                            .directory = kept.path().string(),
                            .on_report = [&](const index_report& each) { told = each; }};
  const auto found_in = [&](const char* site) {
    const standing_in there(root.path() / site);
    return stages::samples_where(open_folder("data"), "width >= 35", index).size();
  };
  EXPECT_EQ(found_in("a"), 1U);
  EXPECT_EQ(found_in("b"), 0U);
  EXPECT_EQ(told->what, index_report::outcome::written);
  EXPECT_EQ(found_in("a"), 1U);
  EXPECT_EQ(told->what, index_report::outcome::used);
  // Another picture of the same size and time takes the place of one, as by mv or cp -p.
  fs::rename(root.path() / "b" / "data" / "0.jpg", root.path() / "a" / "data" / "0.jpg");
  EXPECT_EQ(found_in("a"), 0U);
  EXPECT_EQ(told->what, index_report::outcome::written);
}

TEST(where, keeps_no_sizes_of_a_shard_that_was_written_since_it_was_opened) {
  const temporary_directory root;
  const temporary_directory kept;
  const fs::path file = root.path() / "t.tar";
  const auto put_shard = [&](int width) {
    const std::vector<std::byte> picture = jpeg_of(width, 30);
    testing::tar_writer shard;
    shard.add({.name = "0.jpg", .contents = picture});
    write(file, shard.finish());
  };
  std::optional<index_report> told;
  const index_options index{.use = index_use::check,
                            .directory = kept.path().string(),
                            .on_report = [&](const index_report& each) { told = each; }};
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  put_shard(40);
  fs::last_write_time(file, long_ago);
  const dataset before = open_tar(file.string());
  put_shard(60);
  static_cast<void>(stages::samples_where(before, "width >= 50", index));
  EXPECT_EQ(told->what, index_report::outcome::none);
  EXPECT_THAT(told->why, HasSubstr("a file was written since this process began"));
  EXPECT_EQ(files_in(kept), 0);
  fs::last_write_time(file, long_ago);
  EXPECT_EQ(stages::samples_where(open_tar(file.string()), "width >= 50", index).size(), 1U);
  EXPECT_EQ(told->what, index_report::outcome::written);
}

TEST(where, leaves_out_and_counts_pictures_whose_header_cannot_be_read) {
  const temporary_directory root;
  const std::vector<std::byte> whole = jpeg_of(40, 30);
  write(root.path() / "a.jpg", whole);
  write(root.path() / "b.jpg", {whole.begin(), whole.begin() + 30});
  write(root.path() / "c.jpg", {});
  write(root.path() / "d.jpg", std::vector<std::byte>(300'000, std::byte{'x'}));
  write(root.path() / "e.jpg", whole);
  const dataset set = open_folder(root.path().string());
  EXPECT_THAT(names_of(set.where("width == 40")), ElementsAre("a.jpg", "e.jpg"));
  EXPECT_THAT(names_of(set.where("not width == 40")), ElementsAre());
  EXPECT_THAT(names_of(set.where("width is null")), ElementsAre("b.jpg", "c.jpg", "d.jpg"));
  const dataset some = set.where("width == 40 and name != 'c.jpg'");
  ASSERT_EQ(some.notes().size(), 1U);
  EXPECT_THAT(some.notes().front(), HasSubstr("2 of 4 pictures have headers that cannot be read"));
  EXPECT_THAT(some.notes().front(), HasSubstr("the first is b.jpg: "));
  // What is excluded keeps its place.
  EXPECT_EQ(set.exclude({0, 1}).where("width == 40").size(), 2U);
  EXPECT_EQ(set.exclude({0, 1}).where("width == 40").model()->defects(), 1U);
  fs::remove(root.path() / "e.jpg");
  EXPECT_THAT(set.where("width > 0 and name == 'e.jpg'").notes(),
              ElementsAre(HasSubstr("1 of 1 picture has a header that cannot be read")));
}

TEST(where, wants_to_know_which_of_several_pictures) {
  testing::tar_writer shard;
  const std::vector<std::byte> photo = jpeg_of(40, 30);
  testing::rgb_picture seen;
  const std::vector<std::byte> mask = testing::make_png(testing::make_texture(1, 20, 15), {}, seen);
  shard.add({.name = "0.jpg", .contents = photo});
  shard.add({.name = "1.jpg", .contents = photo});
  shard.add({.name = "1.seg.png", .contents = mask});
  shard.add({.name = "2.seg.png", .contents = mask});
  const temporary_directory root;
  const std::string path = (root.path() / "s.tar").string();
  write(path, shard.finish());
  const dataset set = open_tar(path);
  EXPECT_THAT(refusal(set, "width >= 20"),
              HasSubstr("where, letter 1, at width: sample 1 has several pictures; say which, as jpg.width or "
                        "seg.png.width"));
  EXPECT_EQ(set.where("jpg.width >= 20").size(), 2U);
  EXPECT_EQ(set.where("seg.png.width < jpg.width").size(), 1U);
  EXPECT_EQ(set.where("seg.png.height == 15 and jpg.height is null").size(), 1U);
  EXPECT_EQ(set.where("sample != 1 and width >= 20").size(), 2U);
  EXPECT_THAT(refusal(set, "png.width > 3"),
              HasSubstr("width, height, jpg.width, jpg.height, jpg.bytes, seg.png.width"));
}

TEST(where, takes_no_size_of_a_picture_for_a_field_of_that_name) {
  const temporary_directory root;
  const std::vector<std::byte> photo = jpeg_of(40, 30);
  write((root.path() / "a.jpg").string(), photo);
  const std::string table = (root.path() / "t.jsonl").string();
  const std::string line = "{\"path\": \"a.jpg\", \"width\": 1000}\n";
  write(table, testing::to_bytes(line));
  const dataset set = open_jsonl(table, {.path_column = "path"});
  EXPECT_THAT(refusal(set, "width > 500"), HasSubstr("is a field, which has to be read"));
  EXPECT_EQ(set.where("height == 30").size(), 1U);
}

TEST(where, reads_no_header_where_the_rest_of_the_condition_decides) {
  const std::vector<std::byte> photo = jpeg_of(40, 30);
  std::atomic<int> made = 0;
  std::vector<std::int64_t> a;
  for (std::int64_t i = 0; i < 10; ++i) a.push_back(i);
  const dataset set = from_function(10,
                                    [&](std::uint64_t) {
                                      ++made;
                                      return photo;
                                    },
                                    {.field = "jpg", .bytes_max = photo.size()})
                          .with_column("a", a);
  const auto read_for = [&](std::string_view condition, std::size_t samples) {
    made = 0;
    EXPECT_EQ(set.where(condition).size(), samples) << condition;
    return made.load();
  };
  EXPECT_EQ(read_for("a < 3 and width == 40", 3), 3);
  EXPECT_EQ(read_for("width == 40 and a < 3", 3), 3);
  EXPECT_EQ(read_for("a < 3 or width == 40", 10), 7);
  EXPECT_EQ(read_for("not (width < 40 or a < 3)", 7), 7);
  EXPECT_EQ(read_for("width > height and height == 30", 10), 10);
  EXPECT_EQ(read_for("a is null and width > 1", 0), 0);
  EXPECT_EQ(read_for("a > 3", 6), 0);
}

TEST(where, is_a_view_with_the_classes_and_columns_of_the_whole) {
  const dataset some = ten().where("a in (2, 5)");
  EXPECT_EQ(some.size(), 2U);
  EXPECT_EQ(some.column(1, "b"), 4);
  EXPECT_EQ(some.read(0).size(), 2U);
  EXPECT_EQ(ten().where("a > 99").size(), 0U);
  EXPECT_EQ(chosen(some, "b == 4"), (sample_list{5}));
  EXPECT_EQ(chosen(ten().where("a > 3").subset({0, 1}), "sample == 1"), (sample_list{5}));
}

TEST(where, is_part_of_a_description) {
  const auto entries = [](const dataset& of) {
    description out;
    of.model()->describe(out);
    return out;
  };
  const dataset set = dataset(ten().slice(0, 10));
  EXPECT_EQ(entries(set.where("a>1  and\tname != \"x\"")), entries(set.where("a > 1 AND name != 'x'")));
  EXPECT_FALSE(entries(set.where("a > 1")) == entries(set.where("a > 2")));
  EXPECT_THAT(entries(set.where("a>1 and not(b in(3,4))")).to_json(), HasSubstr("\"a > 1 and not (b in (3, 4))\""));
}

TEST(where, leaves_the_parts_of_a_concatenation) {
  const dataset both = concat({ten(), ten().slice(0, 4)});
  const dataset some = both.where("a in (1, 3, 8)");
  ASSERT_EQ(some.size(), 5U);
  const auto parts = some.model()->joined();
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0]->size(), 3U);
  EXPECT_EQ(parts[1]->size(), 2U);
  EXPECT_EQ(parts[1]->name(1), "n0/3");
}

TEST(where, passes_on_that_a_sample_is_excluded) {
  const dataset some = ten().exclude({4, 6}).where("a > 4");
  EXPECT_EQ(some.size(), 5U);
  EXPECT_EQ(some.model()->defects(), 1U);
  EXPECT_TRUE(some.model()->defect_of(1).has_value());
}

TEST(where, says_at_which_letter_a_condition_is_wrong_and_what_would_do) {
  EXPECT_THAT(refusal(""), HasSubstr("there is no condition"));
  EXPECT_THAT(refusal("a > "), HasSubstr("where, letter 5: a name, a number or a text is expected here"));
  EXPECT_THAT(refusal("aa > 1"),
              HasSubstr("where, letter 1, at aa: the dataset knows nothing of this name without reading; it "
                        "knows a, b, score, name, sample, bytes.bytes"));
  EXPECT_THAT(refusal("a > 1 and scoer > 2"), HasSubstr("letter 11, at scoer"));
  EXPECT_THAT(refusal("a > 1 and scoer > 2"), HasSubstr("did you mean 'score'?"));
  EXPECT_THAT(refusal("name == 'äöü' a"), HasSubstr("letter 15, at a: the condition has ended before"));
  EXPECT_THAT(refusal("a = 1"), HasSubstr("write == for is equal"));
  EXPECT_THAT(refusal("a > 1 && b > 1"), HasSubstr("letter 7, at &&: write and"));
  EXPECT_THAT(refusal("1 < a < 3"), HasSubstr("two comparisons in a row"));
  EXPECT_THAT(refusal("1 < 2"), HasSubstr("compares nothing of a sample"));
  EXPECT_THAT(refusal("a"), HasSubstr("a comparison is expected here"));
  EXPECT_THAT(refusal("(a > 1"), HasSubstr("a ')' is missing"));
  EXPECT_THAT(refusal("a > 1)"), HasSubstr("letter 6, at ): the condition has ended before"));
  EXPECT_THAT(refusal("name == 'x"), HasSubstr("the closing ' is missing"));
  EXPECT_THAT(refusal("a in ()"), HasSubstr("a name, a number or a text is expected here"));
  EXPECT_THAT(refusal("a in (1, b)"), HasSubstr("a list holds numbers and texts"));
  EXPECT_THAT(refusal("a in (1, 'x')"), HasSubstr("a number is expected here"));
  EXPECT_THAT(refusal("name in (1)"), HasSubstr("a text is expected"));
  EXPECT_THAT(refusal("a is 3"), HasSubstr("behind 'is' stands 'null'"));
  EXPECT_THAT(refusal("a == 'x'"), HasSubstr("a number is compared with a text"));
  EXPECT_THAT(refusal("a matches 'x'"), HasSubstr("a number is compared with a text"));
  EXPECT_THAT(refusal("name matches 3"), HasSubstr("'matches' wants a text"));
  EXPECT_THAT(refusal("a > 12x"), HasSubstr("is no number"));
  EXPECT_THAT(refusal("a > 9223372036854775808"), HasSubstr("more than 64 bits"));
  EXPECT_THAT(refusal("a <> 1"), HasSubstr("letter 3, at <>: write !="));
  EXPECT_THAT(refusal("a > 1e999"), HasSubstr("is no number"));
  EXPECT_THAT(refusal("a > 1; b"), HasSubstr("is no part of a condition"));
  EXPECT_THAT(refusal("bytes > 1"), HasSubstr("is a field, which has to be read"));
  EXPECT_THAT(refusal(ten(), "bytes.bytes > 1", errc::unsupported), HasSubstr("are not known before it is read"));
}

TEST(where, bounds_how_deep_and_how_long_a_condition_is) {
  const auto repeated = [](std::string_view piece, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += piece;
    return all;
  };
  const std::size_t deep = datasets::predicate_depth_max;
  EXPECT_EQ(chosen(repeated("(", deep) + "a == 3" + repeated(")", deep)), (sample_list{3}));
  EXPECT_THAT(refusal(repeated("(", deep + 1) + "a == 3" + repeated(")", deep + 1)),
              HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(refusal(repeated("(", 60'000)), HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(refusal(repeated("not ", 16'000)), HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(refusal(repeated("not(", 16'000)), HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(refusal(repeated("a == 3 or ", 7'000)), HasSubstr("the condition has 70000 bytes"));
  // A long row is not a deep one.
  EXPECT_EQ(chosen(repeated("a == 3 or ", 6'000) + "a == 4"), (sample_list{3, 4}));
  EXPECT_EQ(chosen("a in (" + repeated("3, ", 20'000) + "5)"), (sample_list{3, 5}));
}

TEST(where, takes_or_refuses_any_text) {
  const std::string_view pieces[] = {
      "a",    "b",  "score",   "name",   "(",      ")", "and",    "or",   "not", "in", "is",
      "null", "<",  "<=",      "==",     "!=",     "1", "-2.5e1", "'x*'", "\"",  "`",  ",",
      "\xC3", "\0", "matches", "sample", ".bytes", "9", ">",      "&",    " "};
  testing::seeded_random random(46);
  const dataset set = ten();
  std::size_t taken = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (std::uint64_t i = 0, count = 1 + random.below(12); i < count; ++i) {
      text += std::string(pieces[random.below(std::size(pieces))]) + " ";
    }
    try {
      const std::string once = datasets::parse_predicate(text).text;
      EXPECT_EQ(datasets::parse_predicate(once).text, once) << text;
      taken += set.where(text).size() <= 10 ? 1 : 0;
    } catch (const error& refused) {
      EXPECT_TRUE(refused.code() == errc::usage || refused.code() == errc::unsupported) << text;
    }
  }
  EXPECT_GT(taken, 0U);
}

}  // namespace
}  // namespace leat

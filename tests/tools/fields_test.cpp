// Which fields the command makes of what a source has.
#include "tools/fields.hpp"

#include "tests/support/photos.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tools::chosen_fields;
using tools::fields_of;

using members = std::vector<std::pair<std::string, std::string>>;

/// A shard of these members.
class shard {
 public:
  explicit shard(const members& contents) {
    tar_writer writer;
    for (const auto& [name, text] : contents) writer.add_file(name, text);
    const std::vector<std::byte> archive = writer.finish();
    std::ofstream file(path(), std::ios::binary);
    file.write(reinterpret_cast<const char*>(archive.data()), static_cast<std::streamsize>(archive.size()));
  }
  [[nodiscard]] std::string path() const { return (directory_.path() / "shard.tar").string(); }

  /// The first batch line of an epoch over it, in its order.
  [[nodiscard]] json first_batch() const {
    const std::string lines = (directory_.path() / "batches").string();
    const ended process = run({"epoch", path(), "--no-shuffle", "--size", "32", "--batches", lines});
    EXPECT_EQ(process.exit_code, 0) << process.err;
    return json::parse(lines_of(text_of(lines)).at(0));
  }

 private:
  temporary_directory directory_;
};

std::string jpeg(std::uint64_t seed) {
  const std::vector<std::uint8_t> file = photo_jpeg(seed, 40, 30);
  return {file.begin(), file.end()};
}

std::vector<std::string> names_of(const chosen_fields& fields) {
  std::vector<std::string> names;
  for (const field& each : fields.all) names.push_back(each.name());
  return names;
}

TEST(fields, a_folder_of_classes_has_a_picture_and_a_class) {
  const photo_folder photos;
  const chosen_fields fields = fields_of(open(photos.path().string()), {});
  EXPECT_THAT(names_of(fields), ElementsAre("jpg", "cls"));
  EXPECT_THAT(fields.labels, ElementsAre("cls"));
}

TEST(fields, a_flat_folder_has_no_labels_and_its_lines_say_so) {
  const temporary_directory directory;
  for (const int i : {1, 2, 3})
    std::ofstream(directory.path() / (std::to_string(i) + ".jpg"), std::ios::binary)
        << jpeg(static_cast<std::uint64_t>(i));
  const chosen_fields fields = fields_of(open(directory.path().string()), {});
  EXPECT_THAT(names_of(fields), ElementsAre("jpg"));
  EXPECT_THAT(fields.labels, IsEmpty());
  const temporary_directory elsewhere;
  const std::string lines = (elsewhere.path() / "batches").string();
  ASSERT_EQ(run({"epoch", directory.path().string(), "--size", "32", "--batches", lines}).exit_code, 0);
  EXPECT_EQ(json::parse(lines_of(text_of(lines)).at(0)).at("labels"), json::array());
}

TEST(fields, a_shard_without_pictures_is_served_by_the_same_command) {
  const shard source({{"a.txt", "first"}, {"a.json", "{}"}, {"b.txt", "second"}, {"b.json", "{\"x\": 1}"}});
  EXPECT_THAT(names_of(fields_of(open(source.path()), {})), ElementsAre("txt", "json"));
  EXPECT_EQ(source.first_batch().at("ids"), json::array({0, 1}));
  const json result = run({"epoch", source.path(), "--json"}).json();
  EXPECT_EQ(result.at("samples"), 2);
}

TEST(fields, samples_of_mixed_picture_formats_share_one_field) {
  const shard source({{"a.jpg", jpeg(1)}, {"a.cls", "4"}, {"b.jpeg", jpeg(2)}, {"b.cls", "5"}});
  EXPECT_THAT(names_of(fields_of(open(source.path()), {})), ElementsAre("jpg", "cls"));
  EXPECT_EQ(source.first_batch().at("labels"), json::array({4, 5}));
}

// Samples 0..n-1 with a picture and a class, and what else there is.
members photographs(int count, const members& more) {
  members all;
  for (int i = 0; i < count; ++i) {
    const std::string key = std::to_string(i);
    all.emplace_back(key + ".jpg", jpeg(static_cast<std::uint64_t>(i)));
    all.emplace_back(key + ".cls", key);
  }
  all.insert(all.begin() + std::min<std::ptrdiff_t>(2, std::ssize(all)), more.begin(), more.end());
  return all;
}

TEST(fields, a_stray_member_makes_no_field_and_is_no_sample) {
  for (const int count : {1, 2, 30}) {
    const shard source(photographs(count, {{"info.txt", "about"}, {"a/README.md", "more"}, {"meta.json", "{}"}}));
    const shard plain(photographs(count, {}));
    const chosen_fields fields = fields_of(open(source.path()), {});
    EXPECT_THAT(names_of(fields), ElementsAre("jpg", "cls")) << count;
    EXPECT_EQ(fields.samples.size(), static_cast<std::uint64_t>(count));
    ASSERT_EQ(fields.warnings.size(), 2U);
    EXPECT_THAT(fields.warnings[0], HasSubstr("txt (1), md (1), json (1)"));
    EXPECT_THAT(fields.warnings[1], HasSubstr("shard.tar/info, " + source.path() + "/a/README, "));
    // The same batches as without them.
    EXPECT_EQ(source.first_batch(), plain.first_batch());
    const ended process = run({"epoch", source.path()});
    EXPECT_EQ(process.exit_code, 0);
    EXPECT_EQ(lines_of(process.err).size(), 2U) << process.err;
  }
}

// Labels of most and pictures of most are what somebody wanted: who lacks them is told.
TEST(fields, a_field_that_most_samples_have_is_expected_of_the_others) {
  members all = photographs(20, {});
  for (const char* const lost : {"3.cls", "8.cls", "9.cls", "15.cls", "12.jpg"}) {
    all.erase(std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.first == lost; }));
  }
  const shard source(all);
  EXPECT_THAT(names_of(fields_of(open(source.path()), {})), ElementsAre("jpg", "cls"));
  EXPECT_EQ(run({"epoch", source.path()}).exit_code, 1);
  EXPECT_EQ(run({"epoch", source.path(), "--on-corrupt", "skip", "--json"}).json().at("quarantined"), 5);
}

TEST(fields, members_of_a_sample_that_lie_apart_are_an_error_and_not_strays) {
  members pictures = photographs(20, {});
  members classes;
  for (const auto& each : pictures) {
    if (each.first.ends_with(".cls")) classes.push_back(each);
  }
  std::erase_if(pictures, [](const auto& each) { return each.first.ends_with(".cls"); });
  pictures.insert(pictures.end(), classes.begin(), classes.end());
  const shard source(pictures);
  EXPECT_EQ(fields_of(open(source.path()), {}).samples.size(), 40U);
  const ended raised = run({"epoch", source.path()});
  EXPECT_EQ(raised.exit_code, 1);
  EXPECT_THAT(raised.err, HasSubstr("corrupt sample"));
}

TEST(fields, strays_are_found_where_they_are_more_than_an_index_names) {
  members all;
  const auto add_stray = [&](int i) { all.emplace_back("note" + std::to_string(i) + ".md", "about"); };
  for (int i = 0; i < 720; ++i) {
    if (i % 10 == 3) add_stray(i);
    all.emplace_back(std::to_string(i) + ".txt", "text");
    all.emplace_back(std::to_string(i) + ".cls", "1");
  }
  const shard source(all);
  const chosen_fields fields = fields_of(open(source.path()), {});
  EXPECT_THAT(names_of(fields), ElementsAre("txt", "cls"));
  EXPECT_EQ(fields.strays, 72U);
  ASSERT_EQ(fields.samples.size(), 720U);
  for (const std::uint64_t i : {0U, 2U, 3U, 4U, 12U, 13U, 14U, 718U, 719U}) {
    EXPECT_THAT(fields.samples.name(i), ::testing::EndsWith("/" + std::to_string(i)));
  }
  // One more than a tenth, and they are samples that lack something.
  add_stray(720);
  EXPECT_EQ(fields_of(open(shard(all).path()), {}).samples.size(), 793U);
}

TEST(fields, a_field_that_one_sample_or_one_in_ten_lacks_is_expected_of_it) {
  members all = photographs(30, {});
  all.erase(all.begin() + 1);   // 0.cls
  all.erase(all.begin() + 1);   // 1.jpg
  all.erase(all.begin() + 11);  // 6.jpg or its class
  const shard source(all);
  const chosen_fields fields = fields_of(open(source.path()), {});
  EXPECT_THAT(names_of(fields), ElementsAre("jpg", "cls"));
  EXPECT_THAT(fields.warnings, IsEmpty());
  EXPECT_EQ(fields.samples.size(), 30U);
  const ended raised = run({"epoch", source.path(), "--no-shuffle"});
  EXPECT_EQ(raised.exit_code, 1);
  EXPECT_THAT(raised.err, HasSubstr("/0 ("));
  EXPECT_THAT(raised.err, HasSubstr("no field 'cls' in this sample"));
  EXPECT_EQ(run({"epoch", source.path(), "--on-corrupt", "skip", "--json"}).json().at("quarantined"), 3);
}

TEST(fields, a_field_of_some_samples_is_left_out_and_told) {
  members all = photographs(20, {});
  for (int i = 0; i < 20; ++i) {
    // Where it belongs: behind its key's class.
    if (i % 2 == 0) all.insert(all.begin() + 2 * i + 2 + i / 2, {std::to_string(i) + ".txt", "a caption"});
  }
  const chosen_fields fields = fields_of(open(shard(all).path()), {});
  EXPECT_THAT(names_of(fields), ElementsAre("jpg", "cls"));
  ASSERT_EQ(fields.warnings.size(), 1U);
  EXPECT_THAT(fields.warnings[0], HasSubstr("txt (10)"));
  EXPECT_EQ(fields.samples.size(), 20U);
}

TEST(fields, two_pictures_of_a_sample_are_two_fields) {
  const shard source({{"a.jpg", jpeg(1)}, {"a.png", jpeg(2)}, {"a.seg.png", jpeg(3)}});
  EXPECT_THAT(names_of(fields_of(open(source.path()), {})), ElementsAre("jpg", "png", "seg.png"));
  EXPECT_EQ(source.first_batch().at("ids"), json::array({0}));
}

TEST(fields, labels_are_integers_floats_or_vectors_as_the_first_sample_has_them) {
  EXPECT_EQ(shard({{"a.cls", "3\n"}, {"b.cls", "-1"}}).first_batch().at("labels"), json::array({3, -1}));
  EXPECT_EQ(shard({{"a.cls", "0.5"}, {"b.cls", "2"}}).first_batch().at("labels"), json::array({0.5, 2.0}));
  EXPECT_EQ(shard({{"a.cls", "1 2.5 3"}, {"b.cls", "4,5,6"}}).first_batch().at("labels"),
            json::parse("[[1.0, 2.5, 3.0], [4.0, 5.0, 6.0]]"));
}

TEST(fields, cls_is_the_label_of_the_lines_whatever_comes_first) {
  EXPECT_EQ(shard({{"a.id", "77"}, {"a.cls", "3"}}).first_batch().at("labels"), json::array({3}));
}

TEST(fields, u8_is_the_pixel_and_floats_are_normalised) {
  const photo_folder photos;
  tools::picture_options options;
  EXPECT_TRUE(fields_of(open(photos.path().string()), options).pictures.at(0).get().statistics.has_value());
  options.type = dtype::u8;
  EXPECT_FALSE(fields_of(open(photos.path().string()), options).pictures.at(0).get().statistics.has_value());
}

TEST(fields, eval_resizes_in_proportion_to_256_for_224) {
  const photo_folder photos;
  tools::picture_options options;
  options.train = false;
  for (const auto& [size, side] : {std::pair{224U, 256}, std::pair{112U, 128}, std::pair{299U, 342}}) {
    options.size = size;
    const image::settings settings = fields_of(open(photos.path().string()), options).pictures.at(0).get();
    ASSERT_EQ(settings.steps.size(), 2U);
    EXPECT_EQ(std::get<transforms::resize>(settings.steps[0].what()).shorter_side, side);
    EXPECT_EQ(std::get<transforms::center_crop>(settings.steps[1].what()).width, static_cast<int>(size));
  }
}

}  // namespace
}  // namespace leat::testing

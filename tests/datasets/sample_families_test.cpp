// Which arrays of a file are samples, by their names and shapes.
#include "datasets/tables/sample_families.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leat::datasets {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<named_shape> numbered(const std::string& before, std::size_t count, const std::string& behind,
                                  const std::vector<std::uint64_t>& shape) {
  std::vector<named_shape> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back({before + std::to_string(i) + behind, shape});
  return all;
}

std::vector<named_shape> operator+(std::vector<named_shape> a, const std::vector<named_shape>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<std::string> fields_of(const sample_family& family) {
  std::vector<std::string> names;
  for (const family_field& each : family.fields) names.push_back(each.name);
  return names;
}

TEST(sample_families, names_are_in_the_order_of_their_numbers) {
  EXPECT_TRUE(is_before("a9", "a10"));
  EXPECT_FALSE(is_before("a10", "a9"));
  EXPECT_TRUE(is_before("a", "a0"));
  EXPECT_TRUE(is_before("0.jpg", "1.jpg"));
  EXPECT_TRUE(is_before("a01", "a1") != is_before("a1", "a01"));
  EXPECT_TRUE(is_before("a007x", "a7y"));
  EXPECT_FALSE(is_before("a", "a"));
}

TEST(sample_families, groups_of_one_form_are_samples) {
  const auto all = numbered("data/demo_", 12, "/obs/image", {9, 4, 4}) +
                   numbered("data/demo_", 12, "/actions", {9, 7}) + numbered("data/demo_", 3, "/note", {});
  const sample_family family = find_sample_family(all);
  EXPECT_THAT(fields_of(family), ElementsAre("image", "actions"));
  EXPECT_EQ(family.samples(), 12U);
  EXPECT_EQ(family.form, "data/demo_#");
  EXPECT_EQ(family.fields.front().arrays[10], 10U);
  EXPECT_EQ(family.rest.size(), 3U);
}

TEST(sample_families, names_that_groups_share_are_told_apart_by_their_paths) {
  const auto all = numbered("", 5, "/a/image", {2}) + numbered("", 5, "/b/image", {2}) + numbered("", 5, "/x", {});
  EXPECT_THAT(fields_of(find_sample_family(all)), ElementsAre("a/image", "b/image", "x"));
}

TEST(sample_families, arrays_with_their_labels_beside_them_are_samples) {
  const auto pictures = numbered("images/", 6, "", {4, 4}) + numbered("masks/", 6, "", {4, 4});
  const sample_family family = find_sample_family(pictures + std::vector<named_shape>{{"labels", {6}}, {"names", {2}}});
  EXPECT_THAT(fields_of(family), ElementsAre("images", "masks"));
  EXPECT_THAT(family.parallel, ElementsAre(12U));
  EXPECT_THAT(family.rest, ElementsAre(13U));
}

TEST(sample_families, arrays_of_different_shapes_and_single_values_are_samples) {
  std::vector<named_shape> files;
  for (std::size_t i = 0; i < 6; ++i) files.push_back({"set/" + std::to_string(i) + ".jpg", {5000 + i}});
  EXPECT_THAT(fields_of(find_sample_family(files)), ElementsAre("array"));
  EXPECT_THAT(fields_of(find_sample_family(numbered("ISIC_", 6, "", {}))), ElementsAre("array"));
}

TEST(sample_families, arrays_of_fewer_rows_than_there_are_arrays_are_told_as_what_may_be_samples) {
  const sample_family many = find_sample_family(numbered("of/sample_", 50, "", {4, 3}));
  EXPECT_FALSE(many.found());
  EXPECT_EQ(many.unsure, 50U);
  EXPECT_EQ(many.form, "of/sample_#");
  EXPECT_EQ(find_sample_family(numbered("sample_", 50, "", {50, 3})).unsure, 0U) << "50 rows of 50 columns";
  EXPECT_EQ(find_sample_family(numbered("sample_", 31, "", {4, 3})).unsure, 0U) << "a few views of 4 samples";
  EXPECT_EQ(find_sample_family(numbered("column_", 50, "", {4})).unsure, 0U) << "a table of 50 columns";
}

TEST(sample_families, columns_and_views_of_one_thing_are_none) {
  EXPECT_FALSE(find_sample_family(numbered("c", 64, "", {1000})).found());
  EXPECT_FALSE(find_sample_family(numbered("x_", 3, "/a", {5})).found());
  EXPECT_FALSE(
      find_sample_family(numbered("camera_", 40, "", {90, 8, 8}) + std::vector<named_shape>{{"action", {90, 7}}})
          .found());
  EXPECT_FALSE(find_sample_family(numbered("scale_", 5, "", {}) + std::vector<named_shape>{{"x", {90, 7}}}).found());
  EXPECT_FALSE(find_sample_family(std::vector<named_shape>{{"x", {90, 7}}, {"y", {90}}}).found());
  EXPECT_FALSE(find_sample_family({}).found());
}

TEST(sample_families, groups_of_samples_beside_one_another_are_told) {
  const sample_family family = find_sample_family(numbered("train/", 8, "/x", {3}) + numbered("val/", 5, "/x", {3}));
  EXPECT_FALSE(family.found());
  EXPECT_THAT(family.apart, ElementsAre("train", "val"));
  EXPECT_THAT(find_sample_family(numbered("train/", 8, "/x", {3})).apart, IsEmpty());
}

TEST(sample_families, of_many_are_found_in_linear_time) {
  const auto all = numbered("sample_", 100'000, "/image", {4, 4}) + numbered("sample_", 100'000, "/label", {});
  EXPECT_EQ(find_sample_family(all).samples(), 100'000U);
}

}  // namespace
}  // namespace leat::datasets

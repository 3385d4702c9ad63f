// The table of formats, and what is made of it.
#include "datasets/open/formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

namespace leat::datasets {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(formats, are_named_once_each_and_found_by_what_they_are) {
  std::set<std::string_view> names;
  for (const format& each : formats()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_EQ(&format_of(each.what), &each);
    // What is recognised among files is opened as files; of the others a folder or a source of shards is one.
    EXPECT_EQ(each.open != nullptr, each.begins != nullptr || each.is_called != nullptr) << each.name;
  }
}

TEST(formats, are_listed_with_an_and_before_the_last_one) {
  EXPECT_THAT(formats_text(), HasSubstr(", HDF5 and Zarr (a folder, or references)"));
}

TEST(formats, are_all_in_the_list_for_people_with_what_is_read_and_refused) {
  for (const format& each : formats()) {
    if (each.what == source_format::raw) continue;
    EXPECT_THAT(formats_text(), HasSubstr(each.name));
    EXPECT_THAT(each.opener, StartsWith("open_")) << each.name;
    for (const std::string_view said : {each.recognised_by, each.fields, each.reads, each.refuses}) {
      EXPECT_FALSE(said.empty()) << each.name;
    }
  }
}

}  // namespace
}  // namespace leat::datasets

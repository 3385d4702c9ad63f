// Every opener takes addresses of a store that the program has registered.
#include "tests/support/failures.hpp"
#include "tests/support/memory_store.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/object_store.hpp>
#include <leat/open.hpp>
#include <leat/open_tables.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// One for the whole process: a scheme is registered once.
memory_store& shop() {
  static const auto store = [] {
    auto made = std::make_shared<memory_store>();
    register_store("shop", made);
    return made;
  }();
  return *store;
}

TEST(own_store, has_tables_that_are_opened_by_name_by_braces_and_by_globs) {
  shop().put("tables/a.jsonl", bytes_of("{\"x\": 1}\n{\"x\": 2}\n"));
  shop().put("tables/b.jsonl", bytes_of("{\"x\": 3}\n"));
  EXPECT_EQ(open("shop://tables/a.jsonl").size(), 2U);
  EXPECT_EQ(open("shop://tables/{a,b}.jsonl").size(), 3U);
  EXPECT_EQ(open("shop://tables/*.jsonl").size(), 3U);
  EXPECT_EQ(open_jsonl({"shop://tables/b.jsonl", "shop://tables/a.jsonl"}).size(), 3U);
}

TEST(own_store, takes_names_as_they_are) {
  shop().put("odd/what? is#this%20.jsonl", bytes_of("{\"x\": 1}\n"));
  EXPECT_EQ(open_jsonl(std::vector<std::string>{"shop://odd/what\\? is#this%20.jsonl"}).size(), 1U);
}

TEST(own_store, is_named_where_an_object_is_not_there) {
  shop();
  const std::string missing = message_of(errc::not_found, [] { static_cast<void>(open("shop://none/a.jsonl")); });
  EXPECT_THAT(missing, HasSubstr("shop://none/a.jsonl"));
  EXPECT_THAT(missing, HasSubstr("the store has no such object"));
  EXPECT_THAT(message_of(errc::not_found, [] { static_cast<void>(open("shop://none/")); }),
              HasSubstr("no object lies below it"));
  EXPECT_THAT(message_of(errc::usage, [] { static_cast<void>(open("shop://")); }), HasSubstr("names no folder"));
}

TEST(own_store, is_not_opened_in_one_call_with_another) {
  shop().put("tables/c.jsonl", bytes_of("{\"x\": 1}\n"));
  EXPECT_THAT(
      message_of(errc::usage,
                 [] { static_cast<void>(open_jsonl({"shop://tables/c.jsonl", "https://127.0.0.1:1/c.jsonl"})); }),
      HasSubstr("is not of the store of shop://"));
}

}  // namespace
}  // namespace leat::testing

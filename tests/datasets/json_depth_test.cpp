// JSON that is nested as deep as somebody likes, wherever one is read: it is refused, with the place, and nothing calls itself as often.
#include "tests/support/failures.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_tables.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;
using testing::write_file;

constexpr std::size_t deep = 200'000;

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

class json_depth : public ::testing::Test {
 protected:
  void expect_refused(const std::string& what, const std::string& place) const {
    EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open(path(what))); }),
                AllOf(HasSubstr(place), HasSubstr("more than 64 deep")));
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (root_.path() / name).string(); }
  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((root_.path() / name).parent_path());
    write_file(root_.path() / name, content);
  }
  const testing::temporary_directory root_;
};

TEST_F(json_depth, of_zarr_s_metadata_is_bounded) {
  const std::string attribute = R"({"a": )" + nested(deep) + "}";
  write("a.zarr/.zgroup", R"({"zarr_format": 2})");
  write("a.zarr/.zmetadata",
        R"({"zarr_consolidated_format": 1, "metadata": {".zgroup": {"zarr_format": 2}, "x/.zattrs": )" + attribute +
            "}}");
  expect_refused("a.zarr", ".zmetadata");
  write("b.zarr/zarr.json",
        R"({"zarr_format": 3, "node_type": "group", "consolidated_metadata": {"kind": "inline", "metadata": {"x": )" +
            attribute + "}}}");
  expect_refused("b.zarr", "zarr.json");
  write("c.zarr/.zarray",
        R"({"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "filters": )" + nested(deep) + "}");
  expect_refused("c.zarr", ".zarray");
}

TEST_F(json_depth, of_references_is_bounded) {
  write("k.json", R"({"version": 1, "refs": {".zgroup": {"zarr_format": 2, "a": )" + nested(deep) + "}}}");
  expect_refused("k.json", "k.json");
  // As text within the text.
  write("t.json",
        R"({"version": 1, "refs": {".zgroup": "{\"zarr_format\": 2}", "x/.zarray": ")" + nested(deep) + R"("}})");
  expect_refused("t.json", "x/.zarray");
}

TEST_F(json_depth, of_an_index_of_shards_is_bounded) {
  write("mds/index.json", R"({"version": 2, "shards": )" + nested(deep) + "}");
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open_mds(path("mds"))); }),
              AllOf(HasSubstr("index.json"), HasSubstr("more than 64 deep")));
}

TEST_F(json_depth, of_a_sample_is_bounded) {
  write("s.jsonl", R"({"text": )" + nested(deep) + "}\n");
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open(path("s.jsonl"))); }),
              AllOf(HasSubstr("s.jsonl"), HasSubstr("more than 64")));
}

}  // namespace
}  // namespace leat

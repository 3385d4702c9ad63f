// What the command tells of damaged samples: who, where and why.
#include "tests/datasets/archive.hpp"
#include "tests/support/photos.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace leat::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string photo_text(std::uint64_t seed) {
  const std::vector<std::uint8_t> file = photo_jpeg(seed, 40, 30);
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

// The name in the tar header at this offset.
std::string member_at(const std::string& shard, std::uint64_t offset) {
  const std::string block = text_of(shard).substr(offset, 100);
  return block.substr(0, block.find('\0'));
}

struct damaged_member {
  std::string key;
  std::string at;  // the member whose header is named
  std::string reason;
};

TEST(damage, a_missing_or_empty_field_is_told_with_shard_key_and_the_header_s_offset) {
  const temporary_directory directory;
  const std::string whole = photo_text(1);
  const std::vector<damaged_member> all = {{"n/no-picture", "n/no-picture.cls", "no field 'jpg' in this sample"},
                                           {"n/empty", "n/empty.jpg", "empty: zero bytes"},
                                           {"n/no-label", "n/no-label.jpg", "no field 'cls' in this sample"},
                                           {"n/empty-label", "n/empty-label.cls", "cls"}};
  const std::string long_name = "n/" + std::string(120, 'x');
  for (const damaged_member& each : all) {
    SCOPED_TRACE(each.key);
    archive shard;
    shard.file(long_name + ".jpg", whole).file(long_name + ".cls", "1");
    if (each.key == "n/no-picture") {
      shard.file("n/no-picture.cls", "1");
    } else if (each.key == "n/empty") {
      shard.file("n/empty.cls", "1").file("n/empty.jpg", "");
    } else if (each.key == "n/no-label") {
      shard.file("n/no-label.jpg", whole);
    } else {
      shard.file("n/empty-label.jpg", whole).file("n/empty-label.cls", "");
    }
    const std::string path = shard.end().save(directory.path() / "s.tar");
    const std::string journal = (directory.path() / "journal").string();
    const ended skipped = run({"epoch", path, "--size", "32", "--on-corrupt", "skip", "--journal", journal, "--json"});
    EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
    EXPECT_EQ(skipped.json().value("quarantined", 0), 1);
    ASSERT_EQ(lines_of(text_of(journal)).size(), 1U);
    const json line = json::parse(lines_of(text_of(journal)).front());
    EXPECT_EQ(line.at("source"), path);
    EXPECT_THAT(line.at("name").get<std::string>(), HasSubstr(each.key));
    EXPECT_THAT(line.at("reason").get<std::string>(), HasSubstr(each.reason));
    const auto offset = line.at("offset").get<std::uint64_t>();
    EXPECT_EQ(member_at(path, offset), each.at);

    const ended raised = run({"epoch", path, "--size", "32"});
    EXPECT_EQ(raised.exit_code, 1);
    expect_one_line(raised, "leat epoch: corrupt sample " + path + "/" + each.key + " (" + path + " at offset " +
                                std::to_string(offset) + "): ");
    EXPECT_THAT(raised.err, HasSubstr("--on-corrupt"));
  }
}

}  // namespace
}  // namespace leat::testing

// Shards that MosaicML's own library wrote (tests/data/mds/make.py): every value is known from its number.
#include "base/text.hpp"
#include "tests/datasets/numbered_arrays.hpp"
#include "tests/datasets/value_reader.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_tables.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using testing::bytes_of;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::message_of;

std::string shards_of(const std::string& name) { return str_cat(LEAT_TEST_DATA, "/mds/", name); }

const field_info& mds_field(const std::vector<field_info>& fields, const std::string& name) {
  for (const field_info& each : fields) {
    if (each.name == name) return each;
  }
  throw std::runtime_error("no field " + name);
}

TEST(mds, shards_of_its_own_library_are_read) {
  const dataset samples = open(shards_of("plain"));
  ASSERT_EQ(samples.size(), 20U);
  const std::vector<field_info> fields = samples.fields();
  EXPECT_EQ(fields.size(), 17U);
  EXPECT_EQ(mds_field(fields, "image").kind, field_kind::picture);
  EXPECT_EQ(mds_field(fields, "drawn").kind, field_kind::picture);
  EXPECT_EQ(mds_field(fields, "label").kind, field_kind::label);
  EXPECT_EQ(mds_field(fields, "text").kind, field_kind::text);
  EXPECT_EQ(mds_field(fields, "blob").kind, field_kind::bytes);
  EXPECT_EQ(mds_field(fields, "box").kind, field_kind::tensor);
  EXPECT_EQ(mds_field(fields, "box").type, dtype::f32);
  EXPECT_EQ(mds_field(fields, "box").shape, (dimensions{2, 2}));
  EXPECT_EQ(mds_field(fields, "ids").kind, field_kind::bytes);
  EXPECT_EQ(mds_field(fields, "ids").type, dtype::u16);
  testing::value_reader values(samples);
  std::vector<std::uint16_t> ids;
  for (int i = 0; i < 20; ++i) {
    const auto sample = static_cast<std::uint64_t>(i);
    SCOPED_TRACE(i);
    ids.push_back(static_cast<std::uint16_t>(i));
    EXPECT_TRUE(values.text(sample, "image").starts_with("\xff\xd8\xff"));
    EXPECT_TRUE(values.text(sample, "drawn").starts_with("\x89PNG"));
    EXPECT_EQ(values.text(sample, "label"), std::to_string(i - 3));
    EXPECT_EQ(values.text(sample, "u8"), std::to_string(i));
    EXPECT_EQ(values.text(sample, "i32"), std::to_string(-i));
    for (const auto& [name, times] : {std::pair{"f16", 4}, {"f32", 8}, {"f64", 16}}) {
      EXPECT_EQ(std::strtod(values.text(sample, name).c_str(), nullptr), static_cast<double>(i) / times) << name;
    }
    EXPECT_EQ(values.text(sample, "text"), str_cat("text ", i));
    EXPECT_EQ(values.text(sample, "blob"), std::string(sample, static_cast<char>(i)));
    EXPECT_EQ(values.text(sample, "ids"), bytes_of(ids));
    EXPECT_EQ(values.text(sample, "box"), bytes_of(std::vector<float>(4, static_cast<float>(i))));
    EXPECT_EQ(values.text(sample, "object"), str_cat(R"({"a": )", i, "}"));
    EXPECT_EQ(values.text(sample, "digits"), std::to_string(i * 7));
    // Their dtype and shape stand before their elements.
    EXPECT_EQ(values.read(sample, "any").size(), 3 + 8 * (sample + 1));
    EXPECT_EQ(values.read(sample, "grid").size(), 3 + 2 * 2 * (sample + 1));
  }
  const dataset numbers = open_mds(shards_of("plain"), {.fields = {"image"}, .columns = {"label", "f32"}});
  EXPECT_EQ(numbers.column(9, "label"), 6);
  EXPECT_EQ(numbers.number(9, "f32"), 9.0 / 8);
}

TEST(mds, shards_that_are_compressed_are_refused_by_name) {
  EXPECT_THAT(message_of(errc::unsupported, [] { static_cast<void>(open(shards_of("packed"))); }),
              AllOf(HasSubstr("index.json"), HasSubstr("compressed"), HasSubstr("zstd")));
}

TEST(mds, hashes_of_shards_are_verified_where_that_is_asked_for) {
  const testing::temporary_directory root;
  const std::filesystem::path folder = root.path() / "set";
  std::filesystem::copy(shards_of("plain"), folder);
  std::ifstream from(folder / "index.json");
  std::string index{std::istreambuf_iterator<char>(from), {}};
  // As Python's xxhash has them.
  for (const char* const hash : {"6a0529c255f5e348", "8a23c7d8ad44d3fc"}) {
    const std::string none = R"("hashes": {}})";
    index.replace(index.find(none), none.size(), str_cat(R"("hashes": {"xxh64": ")", hash, R"("}})"));
  }
  std::ofstream(folder / "index.json") << index;
  EXPECT_THAT(open_mds(folder.string()).notes(), Contains(HasSubstr("checksums present, not verified")));
  EXPECT_EQ(open_mds(folder.string(), {.checksums = true}).size(), 20U);
  std::fstream shard(folder / "shard.00001.mds", std::ios::in | std::ios::out | std::ios::binary);
  shard.seekp(-1, std::ios::end);
  shard.put('?');
  shard.close();
  EXPECT_THAT(message_of(errc::format, [&] { (void)open_mds(folder.string(), {.checksums = true}); }),
              AllOf(HasSubstr("shard.00001.mds"), HasSubstr("xxh64")));
  EXPECT_THAT(message_of(errc::unsupported, [] { (void)open_mds(shards_of("plain"), {.checksums = true}); }),
              HasSubstr("hashes=['xxh64']"));
}

TEST(mds, shards_that_were_changed_or_cut_come_to_an_end) {
  const testing::temporary_directory root;
  const std::filesystem::path folder = root.path() / "set";
  std::filesystem::copy(shards_of("plain"), folder);
  const std::string shard = (folder / "shard.00000.mds").string();
  std::ifstream from(shard, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(from), {}};
  std::mt19937_64 random(5);
  int refused = 0;
  const int count = testing::seed_count(100);
  for (int i = 0; i < count; ++i) {
    std::string content = whole;
    content[random() % content.size()] = static_cast<char>(random());
    if (i % 9 == 0) content.resize(random() % content.size());
    std::ofstream(shard, std::ios::binary) << content;
    try {
      const dataset samples = open_mds(folder.string());
      testing::value_reader values(samples);
      for (std::uint64_t sample = 0; sample < samples.size(); ++sample) {
        for (const field_info& field : samples.fields()) static_cast<void>(values.read(sample, field.name));
      }
    } catch (const error& said) {
      EXPECT_THAT(said.what(), HasSubstr("shard.00000.mds"));
      ++refused;
    }
  }
  EXPECT_GT(refused, count / 10);
}

}  // namespace
}  // namespace leat

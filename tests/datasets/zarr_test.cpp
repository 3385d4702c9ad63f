// Zarr hierarchies that zarr-python wrote (tests/data/zarr/make.py): every element is known from its place.
#include "datasets/formats/zarr/zarr_metadata.hpp"
#include "tests/datasets/numbered_arrays.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using testing::expect_numbers;
using ::testing::HasSubstr;
using testing::message_of;
using testing::numbered_array;

std::string folder_of(const std::string& name) { return std::string(LEAT_TEST_DATA) + "/zarr/" + name; }

TEST(zarr, a_single_number_of_version_2_is_refused_as_one) {
  const testing::temporary_directory root;
  const std::filesystem::path folder = std::filesystem::path(root.path()) / "one.zarr";
  std::filesystem::create_directory(folder);
  std::ofstream(folder / ".zarray")
      << R"({"zarr_format": 2, "shape": [], "chunks": [], "dtype": "<i4", "compressor": null,
    "fill_value": 0, "order": "C", "filters": null})";
  std::ofstream(folder / "0") << "1234";
  EXPECT_THAT(message_of(errc::usage, [&] { (void)open_zarr(folder.string(), {.fields = {"one"}}); }),
              HasSubstr("a single number or text, without an axis of samples"));
}

TEST(zarr, a_single_number_of_version_3_lies_in_one_file_and_refuses_nothing) {
  const testing::temporary_directory root;
  const std::filesystem::path folder = std::filesystem::path(root.path()) / "three.zarr";
  const auto array = [&](const char* name, const char* shape, const char* type, const char* key,
                         std::string_view bytes) {
    std::filesystem::create_directories((folder / name / key).parent_path());
    std::ofstream(folder / name / "zarr.json")
        << R"({"zarr_format": 3, "node_type": "array", "shape": )" << shape << R"(, "data_type": ")" << type
        << R"(", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": )" << shape
        << R"(}}, "chunk_key_encoding": {"name": "default"}, "fill_value": 0,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]})";
    std::ofstream(folder / name / key) << bytes;
  };
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "zarr.json") << R"({"zarr_format": 3, "node_type": "group"})";
  array("height", "[]", "int32", "c", "1234");
  array("x", "[2]", "uint8", "c/0", "ab");
  const dataset samples = open_zarr(folder.string());
  EXPECT_EQ(samples.column(1, "x"), 'b');
  EXPECT_THAT(samples.notes(), Contains(HasSubstr("height")));
}

// Of each key of each codec and of what says how chunks lie: what another value does.
TEST(zarr, each_key_is_used_or_says_only_how_the_writer_went_about_it) {
  enum class does : std::uint8_t { nothing, changes, is_refused };
  struct key {
    const char* metadata;  // with @ for the value
    const char* one;
    const char* other;
    does what;
  };
  const key all[] = {
      // Version 2.
      {R"("compressor": {"id": "gzip", "level": @})", "1", "9", does::nothing},
      {R"("compressor": {"id": "zlib", "level": @})", "1", "9", does::nothing},
      {R"("compressor": {"id": "zstd", "level": @, "checksum": false})", "1", "9", does::nothing},
      {R"("compressor": {"id": "zstd", "level": 1, "checksum": @})", "false", "true", does::nothing},
      {R"("compressor": {"id": "zstd", "level": 1@})", "", R"(, "dictionary": "x")", does::is_refused},
      {R"("compressor": {"id": "lz4", "acceleration": @})", "1", "2", does::nothing},
      {R"("compressor": {"id": "blosc", "cname": @, "clevel": 5, "shuffle": 1, "blocksize": 0})", R"("lz4")",
       R"("zstd")", does::nothing},
      {R"("compressor": {"id": "blosc", "clevel": 5, "shuffle": @, "blocksize": 0})", "1", "2", does::nothing},
      {R"("compressor": {"id": "blosc", "clevel": 5, "shuffle": 1, "blocksize": @})", "0", "64", does::nothing},
      {R"("filters": [{"id": "shuffle", "elementsize": @}])", "4", "2", does::changes},
      {R"("filters": [{"id": "shuffle"@}])", R"(, "elementsize": 4)", "", does::is_refused},
      {R"("filters": [{"id": "fletcher32"@}])", "", R"(, "seed": 1)", does::is_refused},
      {R"("filters": [{"id": "crc32c"@}])", "", R"(, "location": "end")", does::nothing},
      {R"("filters": [{"id": "crc32c"@}])", "", R"(, "location": "start")", does::is_refused},
      {R"("order": @)", R"("C")", R"("F")", does::changes},
      {R"("order": @)", R"("C")", R"("K")", does::is_refused},
      {R"("dimension_separator": @)", R"(".")", R"("/")", does::changes},
      {R"("dimension_separator": @)", R"(".")", R"("-")", does::is_refused},
      // Version 3.
      {R"("codecs": [{"name": "bytes", "configuration": {"endian": @}}])", R"("little")", R"("big")", does::changes},
      {R"("codecs": [{"name": "bytes", "configuration": {"endian": @}}])", R"("little")", R"("middle")",
       does::is_refused},
      {R"("codecs": [{"name": "transpose", "configuration": {"order": @}}, {"name": "bytes"}])", "[0, 1]", "[1, 0]",
       does::changes},
      {R"("codecs": [{"name": "bytes"}, {"name": "zstd", "configuration": {"level": @}}])", "1", "9", does::nothing},
      {R"("codecs": [{"name": "bytes"}, {"name": "blosc", "configuration": {"typesize": @}}])", "4", "2",
       does::nothing},
      {R"("codecs": [{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1@}}])", "", R"(, "window": 9)",
       does::is_refused},
      {R"("codecs": [{"name": "bytes"}], "chunk_key_encoding": {"name": "default", "configuration": {"separator": @}})",
       R"("/")", R"(".")", does::changes},
      {R"("codecs": [{"name": "bytes"}], "chunk_key_encoding": {"name": "v2", "configuration": {"separator": @}})",
       R"(".")", R"("-")", does::is_refused},
      {R"("codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2], "codecs": [{"name": "bytes"}],
          "index_codecs": [{"name": "bytes"}], "index_location": @}}])",
       R"("end")", R"("start")", does::changes},
      {R"("codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2], "codecs": [{"name": "bytes"}],
          "index_codecs": [{"name": "bytes"}], "index_location": @}}])",
       R"("end")", R"("middle")", does::is_refused},
  };
  const auto layout_of = [](std::string text, const std::string& value) {
    text.replace(text.find('@'), 1, value);
    const bool is_v3 = text.find("codecs") != std::string::npos;
    nlohmann::json metadata =
        nlohmann::json::parse(is_v3 ? R"({"shape": [4, 4], "data_type": "int32", "fill_value": 0,
                    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}},
                    "chunk_key_encoding": {"name": "default"}})"
                                    : R"({"shape": [4, 4], "chunks": [4, 4], "dtype": "<i4", "fill_value": 0})");
    metadata.update(nlohmann::json::parse("{" + text + "}"));
    return is_v3 ? datasets::zarr_layout_v3(metadata, "x", "x") : datasets::zarr_layout_v2(metadata, "x", "x");
  };
  const auto as_tuple = [](const datasets::zarr_layout& each) {
    return std::tuple(each.array.filters, each.array.stored_axes, each.separator, each.prefix, each.index_at_end);
  };
  for (const key& each : all) {
    const auto before = as_tuple(layout_of(each.metadata, each.one));
    does found = does::is_refused;
    try {
      found = as_tuple(layout_of(each.metadata, each.other)) == before ? does::nothing : does::changes;
    } catch (const datasets::zarr_not_read& refused) {
      EXPECT_FALSE(refused.why.empty());
    }
    EXPECT_EQ(found, each.what) << each.metadata << ": " << each.other;
  }
}

TEST(zarr, a_chunk_that_cannot_be_looked_at_is_no_chunk_that_was_never_written) {
  const testing::temporary_directory root;
  const std::filesystem::path folder = std::filesystem::path(root.path()) / "x.zarr";
  std::filesystem::create_directory(folder);
  std::ofstream(folder / ".zarray")
      << R"({"zarr_format": 2, "shape": [2, 4], "chunks": [1, 4], "dtype": "|u1", "compressor": null,
    "fill_value": 7, "order": "C", "filters": null})";
  std::ofstream(folder / "0.0") << "1234";
  EXPECT_EQ(open_zarr(folder.string()).size(), 2U);
  std::filesystem::create_symlink("1.0", folder / "1.0");  // ELOOP
  EXPECT_THAT(message_of(errc::not_found, [&] { (void)open_zarr(folder.string()); }), HasSubstr("1.0: too many"));
  std::filesystem::remove(folder / "1.0");
  std::filesystem::create_directory(folder / "group");
  std::filesystem::create_symlink(".zarray", folder / "group" / ".zarray");
  EXPECT_THAT(message_of(errc::not_found, [&] { (void)open_zarr((folder / "group").string()); }),
              HasSubstr("too many"));
}

TEST(zarr, consolidated_metadata_are_used) {
  for (const char* const name : {"consolidated-2.zarr", "consolidated-3.zarr"}) {
    const dataset samples = open(folder_of(name));
    EXPECT_EQ(samples.fields().size(), 2U);
    expect_numbers(samples, {"x", dtype::i32, {6}});
    expect_numbers(samples, {"deep/y", dtype::u8, {2}});
  }
  const testing::temporary_directory root;
  const std::filesystem::path folder = std::filesystem::path(root.path()) / "bad.zarr";
  std::filesystem::create_directory(folder);
  std::ofstream(folder / ".zgroup") << R"({"zarr_format": 2})";
  for (const char* const text :
       {"[]", "{}", R"({"metadata": 1})", R"({"metadata": {"x/.zarray": 2}})", R"({"metadata": {"//.zarray": {}}})"}) {
    std::ofstream(folder / ".zmetadata") << text;
    EXPECT_THAT(message_of(errc::format, [&] { (void)open_zarr(folder.string()); }), HasSubstr("consolidated"));
  }
}

TEST(zarr, version_2_is_read) {
  const dataset samples = open(folder_of("v2.zarr"));
  ASSERT_EQ(samples.size(), 10U);
  const numbered_array all[] = {{"plain", dtype::i32, {6}},
                                {"zlib", dtype::i16, {6}},
                                {"gzip", dtype::u16, {3}},
                                {"zstd", dtype::f64, {3}},
                                {"lz4", dtype::f32, {3}},
                                {"blosc", dtype::f32, {4, 4}},
                                {"filtered", dtype::i32, {5}},
                                {"big_endian", dtype::i32, {2}},
                                {"flags", dtype::boolean, {2}},
                                {"slashes", dtype::i32, {2}},
                                {"deep/er/images", dtype::u8, {2, 2}},
                                {"fortran", dtype::i32, {2}},
                                {"fortran_boxes", dtype::i16, {3, 4}},
                                {"partly", dtype::i32, {2}, 4, -7}};
  for (const numbered_array& each : all) expect_numbers(samples, each);
  for (std::uint64_t row = 0; row < 10; ++row) EXPECT_EQ(samples.column(row, "labels"), row * 3);
  EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("delta"), HasSubstr("leat has gzip"))));
  EXPECT_THAT(samples.notes(), Contains(HasSubstr("other_length")));
}

TEST(zarr, version_3_is_read) {
  const dataset samples = open(folder_of("v3.zarr"));
  ASSERT_EQ(samples.size(), 10U);
  const numbered_array all[] = {{"plain", dtype::i32, {6}},         {"zstd", dtype::i32, {6}},
                                {"gzip_checked", dtype::i32, {6}},  {"blosc", dtype::f64, {6}},
                                {"sharded", dtype::i32, {6}},       {"sharded_at_start", dtype::i16, {4}},
                                {"transposed", dtype::i16, {3, 4}}, {"transposed_in_shards", dtype::i16, {3, 4}},
                                {"half", dtype::f16, {2}},          {"deep/er/images", dtype::u8, {2, 2}}};
  for (const numbered_array& each : all) expect_numbers(samples, each);
  for (std::uint64_t row = 0; row < 10; ++row) EXPECT_EQ(samples.column(row, "labels"), row * 3);
  // Rows 0 to 4 were written, and the rest of their chunks is the fill value.
  const std::vector<std::byte> empty = samples.read(9, "sharded_partly");
  float value = 0;
  std::memcpy(&value, empty.data(), sizeof value);
  EXPECT_TRUE(std::isnan(value));
  const std::vector<std::byte> written = samples.read(4, "sharded_partly");
  std::memcpy(&value, written.data() + 5 * sizeof value, sizeof value);
  EXPECT_EQ(value, 29 * 3);
}

TEST(zarr, a_folder_that_is_an_array_is_called_as_the_folder) {
  expect_numbers(open_zarr(folder_of("array.zarr")), {"array", dtype::i32, {2}});
}

TEST(zarr, what_is_not_read_is_named_with_what_to_do) {
  const auto wanting = [](const std::string& name) {
    return [name] { static_cast<void>(open_zarr(folder_of("v2.zarr"), {.fields = {name}})); };
  };
  EXPECT_THAT(message_of(errc::unsupported, wanting("delta")), HasSubstr("v2.zarr/delta"));
  EXPECT_THAT(message_of(errc::not_found, wanting("imges")), AllOf(HasSubstr("'imges'"), HasSubstr("plain")));
  EXPECT_THAT(message_of(errc::not_found, [] { static_cast<void>(open_zarr(folder_of(""))); }), HasSubstr(".zarray"));
}

// A copy of a hierarchy, of which files can be changed.
class copied_hierarchy {
 public:
  copied_hierarchy(const testing::temporary_directory& root, const std::string& name) : copy_(root.path() / name) {
    std::filesystem::remove_all(copy_);
    std::filesystem::copy(folder_of(name), copy_, std::filesystem::copy_options::recursive);
  }
  /// What `change` makes of the file as it was at first.
  void change(const std::string& file, const auto& change) {
    std::ifstream from(folder_of(copy_.filename().string()) + "/" + file, std::ios::binary);
    std::string content{std::istreambuf_iterator<char>(from), {}};
    change(content);
    std::ofstream(copy_ / file, std::ios::binary) << content;
  }
  [[nodiscard]] std::string path() const { return copy_.string(); }

 private:
  std::filesystem::path copy_;
};

std::string changed_copy(const testing::temporary_directory& root, const std::string& name, const std::string& file,
                         const auto& change) {
  copied_hierarchy copy(root, name);
  copy.change(file, change);
  return copy.path();
}

TEST(zarr, a_damaged_chunk_is_the_samples_own_and_a_damaged_index_is_said_when_it_is_opened) {
  const testing::temporary_directory root;
  const auto flip = [](std::string& content) {
    content[content.size() / 2] = static_cast<char>(~content[content.size() / 2]);
  };
  const dataset samples =
      open_zarr(changed_copy(root, "v3.zarr", "gzip_checked/c/0/0", flip), {.fields = {"gzip_checked"}});
  EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(samples.read(3, "gzip_checked")); }),
              AllOf(HasSubstr("gzip_checked/c/0/0"), HasSubstr("CRC-32C")));
  const auto flip_end = [](std::string& content) {
    content[content.size() - 9] = static_cast<char>(~content[content.size() - 9]);
  };
  const std::string broken = changed_copy(root, "v3.zarr", "sharded/c/1/0", flip_end);
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open_zarr(broken, {.fields = {"sharded"}})); }),
              AllOf(HasSubstr("sharded/c/1/0"), HasSubstr("index of the shard")));
}

TEST(zarr, metadata_that_was_cut_or_changed_comes_to_an_end) {
  const testing::temporary_directory root;
  std::mt19937_64 random(3);
  const std::pair<const char*, const char*> files[] = {
      {"v2.zarr", "blosc/.zarray"}, {"v3.zarr", "sharded/zarr.json"}, {"v3.zarr", "transposed/zarr.json"}};
  for (const auto& [name, file] : files) {
    copied_hierarchy copy(root, name);
    for (int i = 0; i < testing::seed_count(60); ++i) {
      copy.change(file, [&](std::string& content) {
        if (i % 3 == 0) content.resize(random() % content.size());
        // Digits become others, so that sizes change and the JSON stays one.
        for (std::uint64_t k = 0; k <= random() % 3 && !content.empty(); ++k) {
          const std::size_t digit = content.find_first_of("0123456789", random() % content.size());
          if (digit != std::string::npos) content[digit] = static_cast<char>('0' + random() % 10);
        }
      });
      try {
        const dataset samples = open_zarr(copy.path());
        for (const field_info& field : samples.fields()) {
          if (field.column || field.bytes_max > (std::uint64_t{1} << 24) || samples.size() == 0) continue;
          if (field.decoded_block_bytes_max > (std::uint64_t{1} << 24)) continue;
          try {
            static_cast<void>(samples.read(samples.size() / 2, field.name));
          } catch (const error& said) {
            EXPECT_THAT(said.code(), AnyOf(errc::corrupt, errc::io, errc::format)) << said.what();
          }
        }
      } catch (const error& said) {
        EXPECT_THAT(said.code(), AnyOf(errc::format, errc::unsupported, errc::usage, errc::limit, errc::io))
            << said.what();
      }
    }
  }
}

}  // namespace
}  // namespace leat

// Rows written as Zarr, which open_zarr() reads back.
#include "datasets/write/pack_zarr.hpp"

#include "datasets/tables/row_reader.hpp"
#include "tests/datasets/numbered_arrays.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_records.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <stop_token>
#include <string>
#include <vector>

namespace leat {
namespace {

using datasets::pack_progress;
using datasets::pack_result;
using datasets::pack_zarr;
using datasets::pack_zarr_options;
using datasets::zarr_codec;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::message_of;
using testing::temporary_directory;

std::string data(const std::string& name) { return std::string(LEAT_TEST_DATA) + "/" + name; }

constexpr zarr_codec every_codec[] = {zarr_codec::none, zarr_codec::lz4, zarr_codec::zstd, zarr_codec::gzip};

// 23 rows of [3, 5] of f32, a few that pack well; and numbers in records beside them.
dataset records(const std::filesystem::path& folder) {
  {
    std::ofstream file(folder / "r.bin", std::ios::binary);
    for (std::int32_t row = 0; row < 23; ++row) {
      for (std::int32_t i = 0; i < 15; ++i) {
        const auto value = static_cast<float>(row * 15 + i / 4);
        file.write(reinterpret_cast<const char*>(&value), sizeof value);
      }
      const auto mark = static_cast<char>(row % 2);
      file.write(&mark, 1);
      const auto label = static_cast<std::int16_t>(row - 4);
      file.write(reinterpret_cast<const char*>(&label), sizeof label);
    }
  }
  std::ofstream(folder / "r.json") << R"({"fields": [{"name": "in/x", "dtype": "f32", "shape": [3, 5]},
    {"name": "mark", "dtype": "bool", "shape": [1]}, {"name": "small", "dtype": "i16", "shape": [1]}]})";
  const std::string path = (folder / "r.bin").string();
  return open_records(std::vector<std::string>{path});
}

using field_rows = std::map<std::string, std::vector<std::vector<std::byte>>>;

std::vector<std::byte> bytes_of_column(const dataset& samples, std::uint64_t row, const field_info& field) {
  std::vector<std::byte> bytes(size_bytes(field.type));
  const datasets::dataset_model& model = *samples.model();
  datasets::store(model.column(row, model.find_column(field.name).value()).value(), field.type, bytes.data());
  return bytes;
}

// Each sample by itself, as anybody reads it.
field_rows rows_of(const dataset& samples) {
  field_rows all;
  for (const field_info& field : samples.fields()) {
    std::vector<std::vector<std::byte>>& rows = all[field.name];
    for (std::uint64_t row = 0; row < samples.size(); ++row) {
      rows.push_back(field.column ? bytes_of_column(samples, row, field) : samples.read(row, field.name));
    }
  }
  return all;
}

// Many at once, since a sample that is read by itself opens its file anew. `order[i]`: the sample that became row i.
void expect_same(const field_rows& before, const dataset& after, const std::vector<std::uint64_t>& order = {}) {
  const std::vector<field_info> fields = after.fields();
  EXPECT_EQ(fields.size(), before.size());
  for (std::uint16_t number = 0; number < fields.size(); ++number) {
    SCOPED_TRACE(fields[number].name);
    const std::vector<std::vector<std::byte>>& rows = before.at(fields[number].name);
    ASSERT_EQ(after.size(), rows.size());
    const std::size_t bytes = fields[number].column ? size_bytes(fields[number].type) : fields[number].bytes_max;
    const datasets::row_place place{.field = number, .offset = 0, .bytes = bytes};
    std::vector<std::uint64_t> samples(rows.size());
    std::iota(samples.begin(), samples.end(), 0);
    std::vector<std::byte> read(rows.size() * bytes);
    datasets::row_reader(*after.model(), {&place, 1}, bytes).read(samples, read, {});
    for (std::size_t row = 0; row < rows.size(); ++row) {
      std::vector<std::byte> expected = rows[order.empty() ? row : order[row]];
      // One-dimensional integers of any dtype come back as a column.
      if (fields[number].column) expected.resize(bytes);
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), read.begin() + static_cast<std::ptrdiff_t>(row * bytes),
                             read.begin() + static_cast<std::ptrdiff_t>((row + 1) * bytes)))
          << row;
    }
  }
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(folder)) names.push_back(each.path().filename().string());
  return names;
}

json json_in(const std::filesystem::path& file) {
  std::ifstream from(file);
  return json::parse(from);
}

TEST(pack_zarr, rows_come_back_from_every_codec_with_and_without_shards) {
  const temporary_directory root;
  const dataset from = records(root.path());
  const field_rows before = rows_of(from);
  int number = 0;
  for (const zarr_codec codec : every_codec) {
    // One row, not dividing 23, more than there are.
    for (const std::uint64_t rows : {1U, 4U, 1000U}) {
      for (const std::uint64_t chunks : {0U, 2U}) {
        SCOPED_TRACE(::testing::Message() << int(codec) << ", rows " << rows << ", chunks " << chunks);
        const std::string out = (root.path() / (std::to_string(number++) + ".zarr")).string();
        const pack_result made =
            pack_zarr(from, out, {.codec = codec, .rows_per_chunk = rows, .chunks_per_shard = chunks, .threads = 3});
        EXPECT_EQ(made.samples, 23U);
        std::uint64_t bytes = 0;
        for (const auto& each : std::filesystem::recursive_directory_iterator(out)) {
          if (each.is_regular_file()) bytes += each.file_size();
        }
        ASSERT_EQ(made.shards.size(), 1U);
        EXPECT_EQ(made.shards[0].bytes, bytes);
        expect_same(before, open_zarr(out));
      }
    }
  }
}

TEST(pack_zarr, files_of_others_come_back) {
  const temporary_directory root;
  const std::string sources[] = {data("hdf5/filters.h5"), data("hdf5/indexes-latest.h5"), data("hdf5/groups.h5"),
                                 data("zarr/v3.zarr")};
  int number = 0;
  for (const std::string& source : sources) {
    SCOPED_TRACE(source);
    const dataset from = open(source);
    const field_rows before = rows_of(from);
    for (const std::uint64_t shard : {0U, 2U}) {
      const std::string out = (root.path() / (std::to_string(number++) + ".zarr")).string();
      static_cast<void>(pack_zarr(from, out, {.rows_per_chunk = 3, .chunks_per_shard = shard}));
      expect_same(before, open_zarr(out));
    }
  }
}

TEST(pack_zarr, windows_of_rows_come_back) {
  const temporary_directory root;
  const dataset from = open_zarr(data("zarr/v3.zarr"), {.window = 4, .stride = 3});
  const std::string out = (root.path() / "w.zarr").string();
  static_cast<void>(pack_zarr(from, out, {.rows_per_chunk = 2}));
  expect_same(rows_of(from), open_zarr(out));
}

TEST(pack_zarr, a_shuffle_is_the_one_of_its_seed_and_the_same_for_all_fields) {
  const temporary_directory root;
  const dataset from = open(data("zarr/v3.zarr"), {})
                           .with_column("number",
                                        [] {
                                          std::vector<std::int64_t> numbers(10);
                                          std::iota(numbers.begin(), numbers.end(), 0);
                                          return numbers;
                                        }())
                           .with_column({.name = "weight", .reals = std::vector<double>(10, 0.5), .type = dtype::f16});
  const std::string out = (root.path() / "s.zarr").string();
  static_cast<void>(pack_zarr(from, out, {.rows_per_chunk = 4, .shuffle = true, .seed = 5}));
  const dataset to = open_zarr(out);
  std::vector<std::uint64_t> order;
  for (std::uint64_t row = 0; row < to.size(); ++row) {
    order.push_back(static_cast<std::uint64_t>(to.column(row, "number").value()));
  }
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  expect_same(rows_of(from), to, order);
}

TEST(pack_zarr, metadata_says_what_was_asked_for) {
  const temporary_directory root;
  const dataset from = records(root.path());
  const std::filesystem::path out = root.path() / "m.zarr";
  static_cast<void>(
      pack_zarr(from, out.string(), {.codec = zarr_codec::lz4, .rows_per_chunk = 4, .chunks_per_shard = 3}));
  EXPECT_EQ(json_in(out / "zarr.json").at("node_type"), "group");
  EXPECT_EQ(json_in(out / "in" / "zarr.json").at("node_type"), "group");
  const json array = json_in(out / "in" / "x" / "zarr.json");
  EXPECT_EQ(array.at("shape"), json({23, 3, 5}));
  EXPECT_EQ(array.at("data_type"), "float32");
  EXPECT_EQ(array["chunk_grid"]["configuration"]["chunk_shape"], json({12, 3, 5}));
  const json shards = array.at("codecs").at(0);
  EXPECT_EQ(array.at("codecs").size(), 1U);
  EXPECT_EQ(shards.at("name"), "sharding_indexed");
  EXPECT_EQ(shards["configuration"]["chunk_shape"], json({4, 3, 5}));
  EXPECT_EQ(shards["configuration"]["index_location"], "end");
  EXPECT_EQ(shards["configuration"]["index_codecs"][1]["name"], "crc32c");
  EXPECT_EQ(shards["configuration"]["codecs"][1]["configuration"]["cname"], "lz4");
  EXPECT_THAT(names_in(out / "in" / "x" / "c"), ::testing::UnorderedElementsAre("0", "1"));
  EXPECT_TRUE(std::filesystem::is_regular_file(out / "in" / "x" / "c" / "1" / "0" / "0"));
  EXPECT_TRUE(std::filesystem::is_regular_file(out / "mark" / "c" / "1" / "0"));
}

TEST(pack_zarr, a_chunk_has_a_mebibyte_where_nothing_is_said) {
  const temporary_directory root;
  std::vector<std::int64_t> values(20000, 7);
  const dataset from = records(root.path());
  std::vector<std::uint64_t> again(20000);
  for (std::size_t i = 0; i < again.size(); ++i) again[i] = i % 23;
  const dataset large = from.subset(again).with_column("cls", values);
  const std::filesystem::path out = root.path() / "d.zarr";
  static_cast<void>(pack_zarr(large, out.string()));
  EXPECT_EQ(json_in(out / "in" / "x" / "zarr.json")["chunk_grid"]["configuration"]["chunk_shape"], json({17476, 3, 5}));
  EXPECT_EQ(json_in(out / "cls" / "zarr.json")["chunk_grid"]["configuration"]["chunk_shape"], json({20000}));
  EXPECT_EQ(open_zarr(out.string()).column(19999, "cls"), 7);
}

TEST(pack_zarr, what_no_array_can_hold_is_refused_by_name_and_nothing_is_left) {
  const temporary_directory root;
  const temporary_directory to;
  const std::string out = (to.path() / "out.zarr").string();
  std::ofstream(root.path() / "a.jpg") << "picture";
  const auto packing = [&](const dataset& from, const pack_zarr_options& how = {}) {
    return [from, how, out] { static_cast<void>(pack_zarr(from, out, how)); };
  };
  EXPECT_THAT(message_of(errc::usage, packing(open(root.path().string()))),
              AllOf(HasSubstr("'jpg'"), HasSubstr("tar shards")));

  const auto named = [&](const std::string& first, const std::string& second) {
    std::ofstream(root.path() / "n.bin") << "abcd";
    std::ofstream(root.path() / "n.json")
        << json{{"fields", {{{"name", first}, {"dtype", "u8"}}, {{"name", second}, {"dtype", "u8"}}}}}.dump();
    return open_records(std::vector<std::string>{(root.path() / "n.bin").string()});
  };
  for (const char* name : {"../x", "a/../../x", "..", "/x", "a//b", "x/", "__x", "a/zarr.json"}) {
    EXPECT_THAT(message_of(errc::usage, packing(named("ok", name))), HasSubstr("rename it")) << name;
  }
  EXPECT_THAT(message_of(errc::usage, packing(named("a/b/c", "a/b"))), AllOf(HasSubstr("'a/b'"), HasSubstr("group")));
  EXPECT_THAT(names_in(to.path()), IsEmpty());
}

TEST(pack_zarr, a_folder_that_is_not_empty_is_left_alone_and_an_empty_one_is_taken) {
  const temporary_directory root;
  const dataset from = records(root.path());
  const std::filesystem::path out = root.path() / "to" / "out.zarr";
  std::filesystem::create_directories(out);
  std::ofstream(out / "mine") << "x";
  const auto packing = [&] { static_cast<void>(pack_zarr(from, out.string() + "/")); };
  EXPECT_THAT(message_of(errc::usage, packing), AllOf(HasSubstr("out.zarr"), HasSubstr("not empty")));
  EXPECT_THAT(names_in(out), ::testing::ElementsAre("mine"));
  std::filesystem::remove(out / "mine");
  // What a killed run left behind is used up.
  std::filesystem::create_directories(root.path() / "to" / ".out.zarr.partial" / "in" / "x" / "c" / "0");
  std::ofstream(root.path() / "to" / ".out.zarr.partial" / "zarr.json") << "{";
  packing();
  expect_same(rows_of(from), open_zarr(out.string()));
  EXPECT_THAT(names_in(root.path() / "to"), ::testing::ElementsAre("out.zarr"));
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(pack_zarr(from, (root.path() / "r.bin").string())); }),
              HasSubstr("no folder"));
  EXPECT_THAT(
      message_of(errc::not_found, [&] { static_cast<void>(pack_zarr(from, (root.path() / "no/o.zarr").string())); }),
      HasSubstr("mkdir -p"));
}

TEST(pack_zarr, stopped_it_removes_what_it_began) {
  const temporary_directory root;
  const temporary_directory to;
  const dataset from = records(root.path());
  std::stop_source stop;
  std::uint64_t told = 0;
  const pack_zarr_options how{.rows_per_chunk = 2,
                              .progress =
                                  [&](const pack_progress& now) {
                                    ++told;
                                    EXPECT_EQ(now.samples_total, 23U);
                                    stop.request_stop();
                                  },
                              .stop = stop.get_token()};
  message_of(errc::cancelled, [&] { static_cast<void>(pack_zarr(from, (to.path() / "o.zarr").string(), how)); });
  EXPECT_EQ(told, 1U);
  EXPECT_THAT(names_in(to.path()), IsEmpty());
}

TEST(pack_zarr, a_damaged_source_is_an_error_that_leaves_nothing) {
  const temporary_directory root;
  const temporary_directory to;
  const std::filesystem::path copy = root.path() / "v3.zarr";
  std::filesystem::copy(data("zarr/v3.zarr"), copy, std::filesystem::copy_options::recursive);
  const std::filesystem::path chunk = copy / "gzip_checked" / "c" / "0" / "0";
  std::string content;
  {
    std::ifstream file(chunk, std::ios::binary);
    content.assign(std::istreambuf_iterator<char>(file), {});
  }
  content[content.size() / 2] = static_cast<char>(~content[content.size() / 2]);
  std::ofstream(chunk, std::ios::binary) << content;
  const dataset from = open(copy.string());
  EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(pack_zarr(from, (to.path() / "o.zarr").string())); }),
              HasSubstr("gzip_checked"));
  EXPECT_THAT(names_in(to.path()), IsEmpty());
}

}  // namespace
}  // namespace leat

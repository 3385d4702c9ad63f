// Formats of headers and rows are opened from any source: the same files on a disk and in a source that is no disk are the same dataset.
#include "datasets/files/input_files.hpp"

#include "datasets/formats/format_openers.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/memory_source.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using datasets::input_files;
using testing::bytes_of;
using testing::counting;
using ::testing::HasSubstr;
using testing::memory_source;
using testing::message_of;
using testing::npy_dict;
using testing::npy_text;
using testing::temporary_directory;
using testing::write_file;
using testing::zip_text;

using named_contents = std::vector<std::pair<std::string, std::string>>;
using opener = std::function<dataset(const input_files&)>;

std::shared_ptr<const memory_source> in_memory(const named_contents& files) {
  auto objects = std::make_shared<memory_source>();
  for (const auto& [name, content] : files) objects->add("s3://b/" + name, content);
  return objects;
}

/// Opens `names` of these files twice, and compares all that a dataset says.
void expect_same(const named_contents& files, const std::vector<std::string>& names, const opener& open) {
  const temporary_directory root;
  std::vector<std::string> paths;
  std::vector<std::string> addresses;
  for (const auto& [name, content] : files) write_file(root.path() / name, content);
  for (const std::string& name : names) {
    paths.push_back((root.path() / name).string());
    addresses.push_back("s3://b/" + name);
  }
  const dataset on_disk = open(*datasets::files_on_disk(paths));
  const dataset elsewhere = open(*datasets::files_of_source(in_memory(files), addresses));
  ASSERT_EQ(elsewhere.size(), on_disk.size());
  ASSERT_GT(elsewhere.size(), 0U);
  ASSERT_EQ(elsewhere.fields().size(), on_disk.fields().size());
  const std::uint64_t step = 1 + on_disk.size() / 100;
  for (std::size_t k = 0; k < on_disk.fields().size(); ++k) {
    const field_info expected = on_disk.fields()[k];
    const field_info found = elsewhere.fields()[k];
    EXPECT_EQ(found.name, expected.name);
    EXPECT_EQ(found.type, expected.type);
    EXPECT_EQ(found.shape, expected.shape);
    EXPECT_EQ(found.bytes_total, expected.bytes_total);
    // A read by itself starts a thread of its own: of many samples some hundred, evenly, and the last one.
    for (std::uint64_t i = (on_disk.size() - 1) % step; i < on_disk.size(); i += step) {
      if (expected.column) {
        EXPECT_EQ(elsewhere.column(i, expected.name), on_disk.column(i, expected.name));
      } else {
        EXPECT_EQ(elsewhere.read(i, expected.name), on_disk.read(i, expected.name)) << expected.name << " of " << i;
      }
    }
  }
  for (std::uint64_t i = 0; i < on_disk.size(); ++i) {
    const std::string path = on_disk.name(i);
    EXPECT_EQ(elsewhere.name(i), "s3://b/" + path.substr(root.path().string().size() + 1));
  }
}

const opener npy = [](const input_files& files) { return open_npy_files(files, {}); };
const opener npz = [](const input_files& files) { return open_npz_files(files, {}); };
const opener tokens = [](const input_files& files) { return open_token_files(files, {}); };

std::string npy_of(int first) {
  return npy_text(npy_dict("<i4", "2, 3"), bytes_of<std::int32_t>({first, 1, 2, 3, 4, 5}));
}

TEST(input_files, of_arrays_may_lie_in_any_source) {
  expect_same({{"x.npy", npy_of(7)}}, {"x.npy"}, npy);
  expect_same({{"y.npy", npy_text(npy_dict("<i8", "3,"), bytes_of<std::int64_t>({5, -1, 9}))}}, {"y.npy"}, npy);
  // Many, on several threads at once, in another order than the source's.
  named_contents many;
  std::vector<std::string> names;
  for (int k = 0; k < 100; ++k) many.emplace_back("d/" + std::to_string(k) + ".npy", npy_of(k));
  for (int k = 99; k >= 0; --k) names.push_back("d/" + std::to_string(k) + ".npy");
  expect_same(many, names, npy);
}

TEST(input_files, of_archives_may_lie_in_any_source) {
  const auto archive = [](int first) {
    return zip_text({{"x.npy", npy_of(first)}, {"y.npy", npy_text(npy_dict("|u1", "2,"), "ab")}});
  };
  expect_same({{"a.npz", archive(1)}, {"b.npz", archive(2)}}, {"a.npz", "b.npz"}, npz);
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream from(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(from), {}};
}

// Their indexes are read level by level.
TEST(input_files, of_hdf5_may_lie_in_any_source) {
  const opener hdf5 = [](const input_files& files) { return open_hdf5_files(files, {}); };
  for (const std::string name : {"kinds-latest.h5", "kinds-earliest.h5", "elements-latest.h5", "many-earliest.h5"}) {
    expect_same({{name, content_of(std::string(LEAT_TEST_DATA) + "/hdf5/" + name)}}, {name}, hdf5);
  }
  for (const std::string field : {"fixed_pages", "growing_far", "growing_farther", "growing_both"}) {
    const opener one = [&](const input_files& files) { return open_hdf5_files(files, {.fields = {field}}); };
    expect_same({{"i.h5", content_of(std::string(LEAT_TEST_DATA) + "/hdf5/indexes-latest.h5")}}, {"i.h5"}, one);
  }
  const opener tree = [](const input_files& files) { return open_hdf5_files(files, {.fields = {"fixed", "growing"}}); };
  expect_same({{"i.h5", content_of(std::string(LEAT_TEST_DATA) + "/hdf5/indexes-earliest.h5")}}, {"i.h5"}, tree);
}

TEST(input_files, of_zarr_may_lie_in_any_source) {
  for (const std::string name : {"v2.zarr", "v3.zarr", "consolidated-2.zarr", "consolidated-3.zarr"}) {
    const std::filesystem::path folder = std::string(LEAT_TEST_DATA) + "/zarr/" + name;
    named_contents files;
    for (const auto& each : std::filesystem::recursive_directory_iterator(folder)) {
      if (each.is_regular_file())
        files.emplace_back(each.path().lexically_relative(folder.parent_path()), content_of(each));
    }
    const dataset on_disk = open_zarr(folder.string());
    const dataset elsewhere = open_zarr_files(*datasets::files_of_source(in_memory(files)), "s3://b/" + name, {});
    ASSERT_EQ(elsewhere.fields().size(), on_disk.fields().size()) << name;
    for (const field_info& field : on_disk.fields()) {
      for (std::uint64_t i = 0; i < on_disk.size(); ++i) {
        if (field.column) {
          EXPECT_EQ(elsewhere.column(i, field.name), on_disk.column(i, field.name));
        } else {
          EXPECT_EQ(elsewhere.read(i, field.name), on_disk.read(i, field.name)) << field.name << " of " << i;
        }
      }
    }
  }
}

TEST(input_files, of_records_may_lie_in_any_source_with_their_description_beside_them) {
  const std::string description =
      R"({"fields": [{"name": "x", "dtype": "u16", "shape": [2]}, {"name": "y", "dtype": "u8"}]})";
  expect_same({{"other.txt", "?"}, {"r.json", description}, {"r.bin", "abcdEfghiJ"}}, {"r.bin"},
              &datasets::open_record_files);
}

TEST(input_files, of_tokens_may_lie_in_any_source) {
  const std::string run = bytes_of(counting<std::uint16_t>(20));
  expect_same({{"t.bin", run}}, {"t.bin"}, tokens);
  expect_same({{"t.npy", npy_text(npy_dict("<u2", "20,"), run)}}, {"t.npy"}, tokens);
  expect_same({{"l.bin", testing::llmc_text(counting<std::uint16_t>(20))}}, {"l.bin"}, tokens);
  const named_contents megatron = {{"m.idx", testing::megatron_index(4, 4, {3, 2, 4, 0, 3}, {0, 2, 2, 3, 5})},
                                   {"m.bin", bytes_of(counting<std::int32_t>(12))}};
  for (const char* name : {"m.bin", "m.idx", "m"}) expect_same(megatron, {name}, tokens);
}

TEST(input_files, that_are_damaged_or_absent_are_said_by_their_names_in_the_source) {
  const auto cut = datasets::files_of_source(in_memory({{"x.npy", npy_of(1).substr(0, 30)}}));
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(npy(*cut)); }),
              HasSubstr("s3://b/x.npy: ends after 30 bytes"));
  const auto absent = datasets::files_of_source(in_memory({{"x.npy", npy_of(1)}}), {"s3://b/y.npy"});
  EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(npy(*absent)); }), HasSubstr("s3://b/y.npy: "));
  const auto undescribed = datasets::files_of_source(in_memory({{"r.bin", "abc"}}));
  EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(open_record_files(*undescribed)); }),
              HasSubstr("s3://b/r.bin: there is no s3://b/r.json"));
}

}  // namespace
}  // namespace leat

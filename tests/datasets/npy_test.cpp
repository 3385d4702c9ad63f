// Arrays: .npy and .npz as NumPy writes them, and everything else that such a file can hold.
#include "datasets/formats/arrays/npy_header.hpp"
#include "datasets/model/model.hpp"
#include "tests/datasets/programs.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using testing::bytes_of;
using ::testing::Contains;
using testing::counting;
using ::testing::ElementsAre;
using testing::has_program;
using ::testing::HasSubstr;
using testing::little;
using testing::message_of;
using testing::npy_dict;
using testing::npy_text;
using testing::temporary_directory;
using testing::write_file;
using testing::zip_text;

template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

TEST(npy_files, of_one_file_the_rows_are_the_samples) {
  const temporary_directory root;
  const std::string path =
      write_file(root.path() / "x.npy", npy_text(npy_dict("<f4", "4, 2, 3"), bytes_of(counting<float>(24))));
  const dataset rows = open_npy(path);
  ASSERT_EQ(rows.size(), 4U);
  ASSERT_EQ(rows.fields().size(), 1U);
  EXPECT_EQ(rows.fields()[0].name, "npy");
  EXPECT_EQ(rows.fields()[0].kind, field_kind::tensor);
  EXPECT_EQ(rows.fields()[0].type, dtype::f32);
  EXPECT_EQ(rows.fields()[0].shape, (dimensions{2, 3}));
  EXPECT_EQ(rows.fields()[0].bytes_total, 96U);
  EXPECT_THAT(values_of<float>(rows.read(2)), ElementsAre(12, 13, 14, 15, 16, 17));
  EXPECT_EQ(rows.name(2), path + "[2]");
  EXPECT_LT(rows.memory().extents, 64U) << "a table of rows that arithmetic finds";
}

TEST(npy_files, of_several_files_each_is_a_sample_unless_their_rows_are_wanted) {
  const temporary_directory root;
  for (const int k : {0, 1, 2}) {
    write_file(root.path() / (std::to_string(k) + ".npy"),
               npy_text(npy_dict("<i2", "2, 2"), bytes_of<std::int16_t>({1, 2, 3, static_cast<std::int16_t>(k)})));
  }
  const std::string all = (root.path() / "*.npy").string();
  const dataset files = open_npy(all);
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files.fields()[0].shape, (dimensions{2, 2}));
  EXPECT_THAT(values_of<std::int16_t>(files.read(1)), ElementsAre(1, 2, 3, 1));
  EXPECT_EQ(files.name(1), (root.path() / "1.npy").string());
  const dataset rows = open_npy(all, {.samples = npy_options::sample::row});
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_THAT(values_of<std::int16_t>(rows.read(5)), ElementsAre(3, 2));
}

TEST(npy_files, shards_of_different_lengths_follow_one_another) {
  const temporary_directory root;
  std::vector<std::string> paths;
  std::int32_t next = 0;
  for (const int length : {3, 3, 5, 1, 3}) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(length) * 2);
    std::iota(values.begin(), values.end(), next);
    next += length * 2;
    paths.push_back(write_file(root.path() / (std::to_string(paths.size()) + ".npy"),
                               npy_text(npy_dict("<i4", std::to_string(length) + ", 2"), bytes_of(values))));
  }
  const dataset rows = open_npy(paths, {.samples = npy_options::sample::row});
  ASSERT_EQ(rows.size(), 15U);
  for (std::int32_t row = 0; row < 15; ++row) {
    EXPECT_THAT(values_of<std::int32_t>(rows.read(static_cast<std::uint64_t>(row))), ElementsAre(2 * row, 2 * row + 1));
  }
}

TEST(npy_files, one_dimensional_arrays_are_a_column) {
  const temporary_directory root;
  const dataset labels = open_npy(write_file(
      root.path() / "y.npy", npy_text(npy_dict("<u4", "3,"), bytes_of<std::uint32_t>({7, 4'000'000'000U, 0}))));
  EXPECT_EQ(labels.size(), 3U);
  EXPECT_EQ(labels.column(1, "npy"), 4'000'000'000);
  EXPECT_TRUE(labels.fields().at(0).column);
  const dataset scores = open_npy(write_file(
      root.path() / "s.npy", npy_text(npy_dict("<f4", "3,"), bytes_of(std::vector<float>{0.5F, -2, 1e30F}))));
  EXPECT_EQ(scores.number(0, "npy"), 0.5);
  EXPECT_EQ(scores.number(2, "npy"), 1e30F);
  EXPECT_EQ(scores.column(0, "npy"), std::nullopt);
  EXPECT_EQ(scores.column(1, "npy"), -2);
  EXPECT_EQ(scores.fields().at(0).type, dtype::f32);
}

TEST(npy_files, windows_of_rows_are_samples_that_may_overlap) {
  const temporary_directory root;
  const std::string path =
      write_file(root.path() / "x.npy", npy_text(npy_dict("<f4", "7, 2"), bytes_of(counting<float>(14))));
  for (const std::uint64_t stride : {1U, 2U, 3U, 5U}) {
    const dataset windows = open_npy(path, {.window = 3, .stride = stride});
    ASSERT_EQ(windows.size(), 4 / stride + 1) << "no window goes beyond the end";
    EXPECT_EQ(windows.fields()[0].shape, (dimensions{3, 2}));
    for (std::uint64_t sample = 0; sample < windows.size(); ++sample) {
      std::vector<float> rows(6);
      std::iota(rows.begin(), rows.end(), static_cast<float>(sample * stride * 2));
      EXPECT_EQ(values_of<float>(windows.read(sample)), rows);
    }
    EXPECT_EQ(leat::open(path, {.arrays = {.window = 3, .stride = stride}}).size(), windows.size());
  }
  const dataset strided = open_npy(path, {.stride = 3});
  ASSERT_EQ(strided.size(), 3U);
  EXPECT_EQ(strided.fields()[0].shape, (dimensions{2}));
  EXPECT_THAT(values_of<float>(strided.read(2)), ElementsAre(12, 13));
}

TEST(npy_files, windows_of_numbers_are_rows_and_no_window_crosses_files) {
  const temporary_directory root;
  std::vector<std::string> paths;
  for (const int length : {5, 3, 4}) {
    std::vector<std::int16_t> values(static_cast<std::size_t>(length));
    std::iota(values.begin(), values.end(), static_cast<std::int16_t>(100 * paths.size()));
    paths.push_back(write_file(root.path() / (std::to_string(paths.size()) + ".npy"),
                               npy_text(npy_dict("<i2", std::to_string(length) + ","), bytes_of(values))));
  }
  const dataset windows = open_npy(paths, {.window = 3});
  ASSERT_EQ(windows.size(), 6U);
  EXPECT_EQ(windows.fields().at(0).shape, (dimensions{3}));
  EXPECT_THAT(values_of<std::int16_t>(windows.read(2)), ElementsAre(2, 3, 4));
  EXPECT_THAT(values_of<std::int16_t>(windows.read(3)), ElementsAre(100, 101, 102));
  EXPECT_THAT(values_of<std::int16_t>(windows.read(5)), ElementsAre(201, 202, 203));
  const dataset every_second = open_npy(paths, {.stride = 2});
  ASSERT_EQ(every_second.size(), 3U + 2 + 2);
  std::vector<std::int64_t> numbers;
  for (std::uint64_t i = 0; i < 7; ++i) numbers.push_back(every_second.column(i, "npy").value());
  EXPECT_THAT(numbers, ElementsAre(0, 2, 4, 100, 102, 200, 202));

  EXPECT_THAT(message_of(errc::usage, [&] { (void)open_npy(paths, {.window = 4}); }),
              AllOf(HasSubstr("1.npy"), HasSubstr("windows of 4 rows, and it has 3")));
  EXPECT_THAT(message_of(errc::usage, [&] { (void)open_npy(paths, {.stride = 0}); }), HasSubstr("a stride of 0 rows"));
  EXPECT_THAT(
      message_of(errc::usage, [&] { (void)open_npy(paths, {.samples = npy_options::sample::file, .window = 2}); }),
      HasSubstr("windows are of rows"));
  const std::string deep =
      write_file(root.path() / "deep.npy", npy_text(npy_dict("|u1", "2, 1, 1, 1, 1, 1, 1, 1"), "ab"));
  EXPECT_THAT(message_of(errc::unsupported, [&] { (void)open_npy(deep, {.window = 2}); }),
              AllOf(HasSubstr("deep.npy"), HasSubstr("leat has up to 8")));
}

TEST(npy_files, versions_2_and_3_have_a_longer_length) {
  const temporary_directory root;
  for (const int version : {1, 2, 3}) {
    const dataset one =
        open_npy(write_file(root.path() / "x.npy", npy_text(npy_dict("|u1", "1, 3"), std::string("abc"), version)));
    EXPECT_EQ(one.read(0).at(2), std::byte{'c'}) << version;
  }
  EXPECT_THAT(message_of(errc::unsupported,
                         [&] {
                           static_cast<void>(open_npy(
                               write_file(root.path() / "x.npy", npy_text(npy_dict("|u1", "1, 3"), "abc", 4))));
                         }),
              HasSubstr("version 4.0"));
}

TEST(npy_files, every_dtype_that_leat_has_is_known_and_others_are_refused_with_a_remedy) {
  const std::pair<const char*, dtype> known[] = {
      {"|b1", dtype::boolean}, {"|u1", dtype::u8},  {"|i1", dtype::i8},  {"<u2", dtype::u16}, {"<i2", dtype::i16},
      {"<u4", dtype::u32},     {"<i4", dtype::i32}, {"<u8", dtype::u64}, {"<i8", dtype::i64}, {"<f2", dtype::f16},
      {"<f4", dtype::f32},     {"<f8", dtype::f64}, {"=f4", dtype::f32}, {"u1", dtype::u8},   {">u1", dtype::u8}};
  for (const auto& [code, type] : known) {
    EXPECT_EQ(datasets::parse_npy_dict("a.npy", npy_dict(code, "1")).type, type) << code;
  }
  const std::pair<const char*, const char*> refused[] = {
      {">f4", "big-endian"}, {">i8", "newbyteorder"}, {"<c8", "complex"}, {"|O", "Python objects"},
      {"<U5", "text"},       {"|S3", "text"},         {"|V2", "bf16"},    {"<M8[ns]", "times"},
      {"<f16", "no dtype"},  {"", "no dtype"},        {"x", "no dtype"},  {"<i3", "no dtype"}};
  for (const auto& [code, why] : refused) {
    EXPECT_THAT(message_of(errc::unsupported,
                           [&] { static_cast<void>(datasets::parse_npy_dict("a.npy", npy_dict(code, "1"))); }),
                AllOf(HasSubstr(why), HasSubstr("a.npy")))
        << code;
  }
  EXPECT_THAT(message_of(errc::unsupported,
                         [&] {
                           static_cast<void>(datasets::parse_npy_dict(
                               "a.npy", "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }"));
                         }),
              HasSubstr("structured"));
}

TEST(npy_files, fortran_order_is_refused_where_it_is_another_order) {
  EXPECT_THAT(message_of(errc::unsupported,
                         [&] { static_cast<void>(datasets::parse_npy_dict("a.npy", npy_dict("<f4", "2, 3", true))); }),
              HasSubstr("ascontiguousarray"));
  for (const char* shape : {"5,", "", "5, 1", "1, 5, 1", "0, 1"}) {
    EXPECT_NO_THROW(static_cast<void>(datasets::parse_npy_dict("a.npy", npy_dict("<f4", shape, true)))) << shape;
  }
}

TEST(npy_files, a_dict_is_read_as_python_would) {
  using datasets::parse_npy_dict;
  const auto parsed = parse_npy_dict("a", "{ \"shape\":(10L,2L) ,'fortran_order':False, 'descr' : '<f4'}\n");
  EXPECT_THAT(parsed.shape, ElementsAre(10, 2));
  for (const char* wrong :
       {"", "{", "{}", "[]", "{'descr': '<f4', 'fortran_order': False}", "{'descr': '<f4', 'shape': (1,)}",
        "{'fortran_order': False, 'shape': (1,)}", "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
        "{'descr: '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
        "{'descr': '<f\\4', 'fortran_order': False, 'shape': (1,)}"}) {
    EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(parse_npy_dict("a", wrong)); }), HasSubstr("a: "))
        << wrong;
  }
}

TEST(npy_files, a_cut_file_says_where_it_ends) {
  const temporary_directory root;
  const std::string whole = npy_text(npy_dict("<f4", "4, 3"), bytes_of(counting<float>(12)));
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{5}, std::size_t{8}, std::size_t{9}, std::size_t{60}, whole.size() - 1}) {
    const std::string path = write_file(root.path() / "x.npy", whole.substr(0, bytes));
    EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open_npy(path)); }), HasSubstr("x.npy")) << bytes;
  }
  const dataset more = open_npy(write_file(root.path() / "x.npy", whole + "rest"));
  ASSERT_EQ(more.notes().size(), 1U);
  EXPECT_THAT(more.notes()[0], HasSubstr("4 bytes after the array"));
}

TEST(npy_files, arrays_that_cannot_be_one_dataset_are_refused) {
  const temporary_directory root;
  const std::string a =
      write_file(root.path() / "a.npy", npy_text(npy_dict("<f4", "1, 2"), bytes_of(counting<float>(2))));
  const std::string b =
      write_file(root.path() / "b.npy", npy_text(npy_dict("<f4", "2, 1"), bytes_of(counting<float>(2))));
  const std::vector<std::string> both = {a, b};
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open_npy(both)); }),
              AllOf(HasSubstr("f32 [2, 1]"), HasSubstr("f32 [1, 2]"), HasSubstr("a.npy"), HasSubstr("b.npy")));
  EXPECT_THAT(message_of(errc::usage,
                         [&] {
                           static_cast<void>(open_npy(
                               write_file(root.path() / "s.npy", npy_text(npy_dict("<f4", ""), little(1.0F)))));
                         }),
              HasSubstr("single number"));
  EXPECT_THAT(message_of(errc::usage,
                         [&] {
                           static_cast<void>(
                               open_npy(write_file(root.path() / "e.npy", npy_text(npy_dict("<f4", "3, 0"), ""))));
                         }),
              HasSubstr("no elements"));
  EXPECT_THAT(message_of(errc::format,
                         [&] {
                           static_cast<void>(open_npy(
                               write_file(root.path() / "h.npy",
                                          npy_text(npy_dict("<f4", "4611686018427387904, 4611686018427387904"), ""))));
                         }),
              HasSubstr("2^64"));
  EXPECT_THAT(message_of(errc::unsupported,
                         [&] {
                           static_cast<void>(open_npy(write_file(
                               root.path() / "r.npy", npy_text(npy_dict("|u1", "1, 1, 1, 1, 1, 1, 1, 1, 1"), "a"))));
                         }),
              HasSubstr("9 axes"));
  EXPECT_EQ(open_npy(write_file(root.path() / "n.npy", npy_text(npy_dict("<f4", "0, 3"), ""))).size(), 0U);
  message_of(errc::not_found, [&] { static_cast<void>(open_npy((root.path() / "not.npy").string())); });
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open_npy(root.path().string())); }),
              HasSubstr("is a folder; give the files in it"));
}

// Whatever the bytes: an error of ours, or an array that lies in the file.
TEST(npy_files, survive_every_byte_of_the_header_being_changed) {
  const temporary_directory root;
  const std::string whole = npy_text(npy_dict("<f4", "4, 2"), bytes_of(counting<float>(8)));
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size() - 32; ++at) {
    for (const int change : {1, 0x80, 0xFF, int{' '}, int{'\''}, int{'9'}}) {
      std::string changed = whole;
      changed[at] = change == ' ' || change == '\'' || change == '9' ? static_cast<char>(change)
                                                                     : static_cast<char>(changed[at] ^ change);
      const auto read = [&](std::uint64_t offset, std::uint64_t bytes) {
        const std::string part = changed.substr(std::min<std::size_t>(offset, changed.size()), bytes);
        const auto* const begin = reinterpret_cast<const std::byte*>(part.data());
        return std::vector<std::byte>(begin, begin + part.size());
      };
      try {
        const datasets::npy_header header = datasets::read_npy_header("x", changed.size(), read);
        EXPECT_LE(header.data_offset + header.data_bytes, changed.size());
      } catch (const error& problem) {
        ++refused;
        EXPECT_TRUE(problem.code() == errc::format || problem.code() == errc::unsupported) << problem.what();
      }
    }
  }
  EXPECT_GT(refused, 100U);
}

std::string xy_archive(bool zip64 = false) {
  return zip_text({{"x.npy", npy_text(npy_dict("<f4", "3, 2"), bytes_of(counting<float>(6)))},
                   {"y.npy", npy_text(npy_dict("<i8", "3,"), bytes_of<std::int64_t>({5, 6, 7}))},
                   {"z.npy", npy_text(npy_dict("|u1", "3, 1"), "abc")}},
                  zip64);
}

TEST(npz_files, members_are_fields_and_one_dimensional_integers_columns) {
  const temporary_directory root;
  for (const bool zip64 : {false, true}) {
    const dataset both = open_npz(write_file(root.path() / "a.npz", xy_archive(zip64)));
    ASSERT_EQ(both.size(), 3U) << zip64;
    EXPECT_EQ(both.fields()[0].name, "x");
    EXPECT_EQ(both.fields()[1].name, "z");
    EXPECT_EQ(both.fields()[2].name, "y");
    EXPECT_THAT(values_of<float>(both.read(1, "x")), ElementsAre(2, 3));
    EXPECT_EQ(both.read(2, "z").at(0), std::byte{'c'});
    EXPECT_EQ(both.column(2, "y"), 7);
  }
}

TEST(npz_files, the_checksum_of_a_stored_column_is_verified_and_of_rows_it_is_said_that_it_is_not) {
  const temporary_directory root;
  std::string content = xy_archive();
  const std::string path = write_file(root.path() / "a.npz", content);
  EXPECT_THAT(open_npz(path).notes(),
              Contains(AllOf(HasSubstr("checksums present, not verified"), HasSubstr("'x', 'z'"))));
  const std::string seven = bytes_of<std::int64_t>({7});
  const std::size_t at = content.find(seven);
  ASSERT_NE(at, std::string::npos);
  content[at] = 6;
  EXPECT_THAT(message_of(errc::format, [&] { (void)open_npz(write_file(root.path() / "a.npz", content)); }),
              AllOf(HasSubstr("a.npz/y"), HasSubstr("CRC-32")));
}

TEST(npz_files, archives_follow_one_another_whatever_the_order_of_their_members) {
  const temporary_directory root;
  const std::string a = write_file(root.path() / "a.npz", xy_archive());
  const std::string b = write_file(
      root.path() / "b.npz", zip_text({{"z.npy", npy_text(npy_dict("|u1", "1, 1"), "d")},
                                       {"y.npy", npy_text(npy_dict("<i8", "1,"), bytes_of<std::int64_t>({8}))},
                                       {"x.npy", npy_text(npy_dict("<f4", "1, 2"), bytes_of(counting<float>(2)))}}));
  const std::vector<std::string> paths = {a, b};
  const dataset both = open_npz(paths);
  ASSERT_EQ(both.size(), 4U);
  EXPECT_THAT(values_of<float>(both.read(3, "x")), ElementsAre(0, 1));
  EXPECT_EQ(both.column(3, "y"), 8);
  const std::string c = write_file(
      root.path() / "c.npz", zip_text({{"x.npy", npy_text(npy_dict("<f4", "1, 3"), bytes_of(counting<float>(3)))}}));
  const std::vector<std::string> different = {a, c};
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open_npz(different)); }),
              AllOf(HasSubstr("c.npz"), HasSubstr("x: f32 [2]")));
}

// tests/data/npz/make.py wrote them.
std::string packed_archive(const std::string& name) { return std::string(LEAT_TEST_DATA) + "/npz/" + name; }

TEST(npz_files, packed_members_are_blocks) {
  const dataset packed = open_npz(packed_archive("packed.npz"));
  ASSERT_EQ(packed.size(), 40U);
  std::vector<float> row(30);
  for (const std::uint64_t sample : {0U, 7U, 39U}) {
    std::iota(row.begin(), row.end(), static_cast<float>(sample * 30));
    EXPECT_EQ(values_of<float>(packed.read(sample, "x")), row);
    EXPECT_EQ(packed.column(sample, "y"), static_cast<std::int64_t>(sample) * 3);
    EXPECT_EQ(packed.number(sample, "weight"), static_cast<double>(sample) / 4);
    EXPECT_EQ(packed.read(sample, "flags")[1], std::byte{sample * 30 + 1 > 90});
  }
  const field_info x = packed.fields().front();
  EXPECT_EQ(x.name, "x");
  EXPECT_TRUE(x.chunked);
  EXPECT_EQ(x.filters, "deflate");
  EXPECT_GT(x.decoded_block_bytes_max, std::uint64_t{40 * 30 * 4});  // the header is packed as well
  EXPECT_EQ(packed.model()->blocks().size(), 1U);

  const dataset mixed = open_npz(packed_archive("mixed.npz"));
  ASSERT_EQ(mixed.size(), 7U);
  EXPECT_EQ(values_of<float>(mixed.read(6, "x")).at(29), 7 * 30 - 1);
  EXPECT_THAT(values_of<std::int16_t>(mixed.read(6, "z")), ElementsAre(18, 19, 20));
  const std::vector<std::string> twice = {packed_archive("mixed.npz"), packed_archive("mixed.npz")};
  EXPECT_EQ(open_npz(twice).read(13, "z"), mixed.read(6, "z"));
}

TEST(npz_files, windows_of_rows_are_of_all_members_stored_or_packed) {
  const temporary_directory root;
  const std::string path = write_file(root.path() / "a.npz", xy_archive());
  const dataset windows = open_npz(path, {.window = 2});
  ASSERT_EQ(windows.size(), 2U);
  EXPECT_THAT(values_of<float>(windows.read(1, "x")), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(values_of<std::int64_t>(windows.read(1, "y")), ElementsAre(6, 7));
  EXPECT_FALSE(windows.fields().at(0).chunked) << "its rows are read where they lie";
  EXPECT_THAT(windows.notes(), Contains(HasSubstr("checksums present, not verified: rows of 'x', 'z'")));
  EXPECT_EQ(leat::open(path, {.arrays = {.stride = 2}}).column(1, "y"), 7);

  const dataset packed = open_npz(packed_archive("packed.npz"), {.fields = {"x"}, .window = 5, .stride = 4});
  ASSERT_EQ(packed.size(), 9U);
  std::vector<float> rows(150);
  std::iota(rows.begin(), rows.end(), 8 * 4 * 30.0F);
  EXPECT_EQ(values_of<float>(packed.read(8, "x")), rows);

  std::string damaged = xy_archive();
  damaged[damaged.find(bytes_of<std::int64_t>({7}))] = 6;
  EXPECT_THAT(
      message_of(errc::format, [&] { (void)open_npz(write_file(root.path() / "a.npz", damaged), {.window = 2}); }),
      AllOf(HasSubstr("a.npz/y"), HasSubstr("CRC-32")));
}

TEST(npz_files, damage_of_a_packed_member_concerns_its_rows) {
  const temporary_directory root;
  std::ifstream from(packed_archive("packed.npz"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(from), {}};
  const dataset intact = open_npz(packed_archive("packed.npz"));
  datasets::part_list parts;
  intact.model()->parts(0, parts);
  const auto x = std::find_if(parts.begin(), parts.end(), [](const datasets::part& each) { return each.field == 0; });
  ASSERT_NE(x, parts.end());
  std::size_t damaged = 0;
  for (std::uint64_t at = x->where.stored_bytes / 2; at < x->where.stored_bytes; at += 5) {
    std::string changed = whole;
    changed[x->where.offset + at] ^= 0x10;
    const dataset samples = open_npz(write_file(root.path() / "a.npz", changed));
    EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(samples.read(3, "x")); }), HasSubstr("a.npz"));
    EXPECT_EQ(samples.read(3, "flags"), intact.read(3, "flags"));
    ++damaged;
  }
  EXPECT_GT(damaged, 20U);
}

TEST(npz_files, damaged_archives_and_other_packings_are_refused) {
  const temporary_directory root;
  const std::string member = npy_text(npy_dict("<f4", "3, 2"), bytes_of(counting<float>(6)));
  const auto open_text = [&](const std::string& text) {
    static_cast<void>(open_npz(write_file(root.path() / "a.npz", text)));
  };
  EXPECT_THAT(message_of(errc::unsupported, [&] { open_text(zip_text({{"x.npy", member}}, false, 14)); }),
              AllOf(HasSubstr("x.npy"), HasSubstr("method 14"), HasSubstr("numpy.savez()")));
  EXPECT_THAT(message_of(errc::format, [&] { open_text(zip_text({{"x.npy", member}}, false, 8)); }),
              HasSubstr("x.npy"));
  EXPECT_THAT(message_of(errc::format, [&] { open_text("no archive"); }), HasSubstr("a.npz"));
  EXPECT_THAT(message_of(errc::format, [&] { open_text(""); }), HasSubstr("a.npz"));
  EXPECT_THAT(message_of(errc::format, [&] { open_text(zip_text({})); }), HasSubstr("no member"));
  const std::string whole = zip_text({{"x.npy", member}});
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    message_of(errc::format, [&] { open_text(whole.substr(0, bytes)); });
  }
}

// As Keras and MedMNIST have their splits in one file, beside names, a number and what leat does not read.
TEST(npz_files, what_is_not_asked_for_does_not_refuse_the_archive) {
  const temporary_directory root;
  const std::string two = npy_text(npy_dict("|u1", "2, 1"), "ab");
  const std::string three = npy_text(npy_dict("<f4", "3, 2"), bytes_of(counting<float>(6)));
  const std::string path = write_file(
      root.path() / "a.npz", zip_text({{"train_x.npy", three},
                                       {"train_y.npy", npy_text(npy_dict("|u1", "3,"), "abc")},
                                       {"test_x.npy", two},
                                       {"scale.npy", npy_text(npy_dict("<f4", ""), bytes_of(counting<float>(1)))},
                                       {"text.npy", npy_text(npy_dict("<U1", "3,"), "a   b   c   ")}}));
  const auto names = [](const dataset& samples) {
    std::vector<std::string> all;
    for (const field_info& each : samples.fields()) all.push_back(each.name);
    return all;
  };
  const dataset commonest = open(path);
  EXPECT_THAT(names(commonest), ElementsAre("train_x", "train_y"));
  EXPECT_THAT(commonest.notes(),
              ElementsAre(HasSubstr("a.npz/text.npy"), AllOf(HasSubstr("test_x"), HasSubstr("scale")),
                          HasSubstr("checksums present, not verified: rows of 'train_x'")));
  const dataset by_pattern = open_npz(path, {.fields = {"test_*"}});
  EXPECT_THAT(names(by_pattern), ElementsAre("test_x"));
  EXPECT_EQ(by_pattern.size(), 2U);
  EXPECT_THAT(by_pattern.notes(), ElementsAre(HasSubstr("checksums present, not verified: rows of 'test_x'")));
  EXPECT_THAT(names(open(path, {.arrays = {.fields = {"train_y"}}})), ElementsAre("train_y"));
  const auto refused = [&](errc why, std::vector<std::string> fields) {
    return message_of(why, [&] { static_cast<void>(open_npz(path, {.fields = fields})); });
  };
  EXPECT_THAT(refused(errc::unsupported, {"text"}), HasSubstr("text.npy"));
  EXPECT_THAT(refused(errc::usage, {"scale"}), HasSubstr("single number"));
  EXPECT_THAT(refused(errc::usage, {"train_x", "test_x"}), AllOf(HasSubstr("has 2 rows"), HasSubstr("3")));
  EXPECT_THAT(refused(errc::not_found, {"train"}), AllOf(HasSubstr("no array 'train'"), HasSubstr("test_x")));
}

TEST(npz_files, numbers_that_are_too_large_for_a_column_are_rows_of_their_own_type) {
  const temporary_directory root;
  const std::vector<std::uint64_t> hashes = {1, (std::uint64_t{1} << 63) + 5, 3};
  std::string bytes(reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof hashes[0]);
  const dataset samples =
      open_npz(write_file(root.path() / "a.npz", zip_text({{"hash.npy", npy_text(npy_dict("<u8", "3,"), bytes)},
                                                           {"y.npy", npy_text(npy_dict("|u1", "3,"), "abc")}})));
  EXPECT_EQ(samples.column(1, "y"), 'b');
  EXPECT_THAT(values_of<std::uint64_t>(samples.read(1, "hash")), ElementsAre(hashes[1]));
}

TEST(npz_files, survive_every_byte_of_the_archive_being_changed) {
  const temporary_directory root;
  std::ifstream packed(packed_archive("mixed.npz"), std::ios::binary);
  for (const std::string& whole : {xy_archive(false), xy_archive(true), {std::istreambuf_iterator<char>(packed), {}}}) {
    std::size_t refused = 0;
    constexpr int changes[] = {1, 0x80, 0xFF};
    const int changes_of_each = std::min(testing::seed_count(3), 3);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (int k = 0; k < changes_of_each; ++k) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ changes[(at + static_cast<std::size_t>(k)) % 3]);
        const std::string path = write_file(root.path() / "a.npz", changed);
        try {
          const dataset found = open_npz(path);
          datasets::part_list parts;
          for (std::uint64_t sample = 0; sample < std::min<std::uint64_t>(found.size(), 5); ++sample) {
            found.model()->parts(sample, parts);
          }
          for (const datasets::part& each : parts) {
            EXPECT_LE(each.where.offset + each.where.stored_bytes, changed.size());
          }
        } catch (const error& problem) {
          ++refused;
          EXPECT_FALSE(std::string(problem.what()).empty());
        }
      }
    }
    EXPECT_GT(refused, 150U * static_cast<unsigned>(changes_of_each));
  }
}

TEST(npy_files, that_numpy_wrote_hold_what_numpy_says) {
  if (!has_program("python3") || testing::run("python3 -c 'import numpy' 2>/dev/null") != 0) {
    GTEST_SKIP() << "no python3 with NumPy here";
  }
  const temporary_directory root;
  const std::string script = R"(
import numpy as np, sys
root = sys.argv[1] + "/"
types = ["bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]
for t in types:
    a = (np.arange(24) % 2 if t == "bool" else np.arange(24)).astype(t).reshape(4, 2, 3)
    np.save(root + t + ".npy", a)
    open(root + t + ".raw", "wb").write(a.tobytes())
np.save(root + "fortran.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
np.savez(root + "a.npz", x=np.arange(12, dtype="f4").reshape(3, 4), y=np.array([7, 8, 9]))
np.savez_compressed(root + "c.npz", x=np.arange(12, dtype="f4").reshape(3, 4))
np.save(root + "complex.npy", np.zeros(3, "c8"))
np.save(root + "object.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
np.save(root + "big.npy", np.zeros(3, ">f4"))
np.save(root + "struct.npy", np.zeros(3, [("x", "f4"), ("y", "i8")]))
)";
  write_file(root.path() / "make.py", script);
  ASSERT_EQ(testing::run("python3 " + (root.path() / "make.py").string() + " " + root.path().string()), 0);
  for (const char* type : {"bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"}) {
    const dataset rows = open_npy((root.path() / (std::string(type) + ".npy")).string());
    ASSERT_EQ(rows.size(), 4U) << type;
    std::vector<std::byte> all;
    for (std::uint64_t row = 0; row < 4; ++row) {
      const std::vector<std::byte> bytes = rows.read(row);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    const std::string raw = (root.path() / (std::string(type) + ".raw")).string();
    EXPECT_EQ(all.size(), std::filesystem::file_size(raw));
    std::ifstream in(raw, std::ios::binary);
    const std::string expected{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(std::memcmp(all.data(), expected.data(), all.size()), 0) << type;
  }
  const dataset both = open_npz((root.path() / "a.npz").string());
  EXPECT_THAT(values_of<float>(both.read(2, "x")), ElementsAre(8, 9, 10, 11));
  EXPECT_EQ(both.column(2, "y"), 9);
  for (const char* refused : {"fortran.npy", "complex.npy", "object.npy", "big.npy", "struct.npy"}) {
    message_of(errc::unsupported, [&] { static_cast<void>(open_npy((root.path() / refused).string())); });
  }
  EXPECT_THAT(values_of<float>(open_npz((root.path() / "c.npz").string()).read(2)), ElementsAre(8, 9, 10, 11));
}

}  // namespace
}  // namespace leat

// HDF5 files that h5py wrote (tests/data/hdf5/make.py): every element is known from its place.
#include "base/text.hpp"
#include "datasets/codecs/checksums.hpp"
#include "datasets/formats/hdf5/hdf5_file.hpp"
#include "datasets/formats/hdf5/hdf5_filters.hpp"
#include "tests/datasets/numbered_arrays.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::expect_numbers;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using testing::message_of;
using testing::numbered_array;

std::string file_of(const std::string& name) { return std::string(LEAT_TEST_DATA) + "/hdf5/" + name; }

template <typename T>
std::vector<T> values_of(const dataset& samples, std::uint64_t sample, const std::string& field) {
  const std::vector<std::byte> bytes = samples.read(sample, field);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

class hdf5 : public ::testing::TestWithParam<const char*> {};

TEST_P(hdf5, arrays_of_every_kind_are_read) {
  const dataset samples = open(file_of(std::string("kinds-") + GetParam() + ".h5"));
  ASSERT_EQ(samples.size(), 20U);
  const numbered_array all[] = {{"contiguous", dtype::f32, {3, 4}},
                                {"never_written", dtype::i32, {5}, 0, 7},
                                {"gzip", dtype::i16, {6, 5}},
                                {"shuffled", dtype::f64, {7}},
                                {"checked", dtype::u16, {3}},
                                {"plain_chunks", dtype::u8, {9}},
                                {"pieces", dtype::f32, {8, 8}},
                                {"big_endian", dtype::i32, {2}},
                                {"half", dtype::f16, {4}},
                                {"flags", dtype::boolean, {5}},
                                {"train/deep/images", dtype::u8, {2, 2}}};
  for (const numbered_array& each : all) expect_numbers(samples, each);
  // Rows 8 and 9 lie in one chunk, and only the first of them was written.
  expect_numbers(samples, {"partly", dtype::i32, {4}, 9, -5});
  for (std::uint64_t row = 0; row < 20; ++row) EXPECT_EQ(samples.column(row, "labels"), row * 3);
  EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("other_length"), HasSubstr("not 20 long"))));
  EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("text"), HasSubstr("not 20 long"))));
  EXPECT_EQ(samples.column(4, "compound/a"), 0);
  EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("'soft'"), HasSubstr("other names"))));
  const std::string file = file_of(std::string("kinds-") + GetParam() + ".h5");
  expect_numbers(open_hdf5(file, {.fields = {"soft"}}), {"soft", dtype::i16, {6, 5}});
  expect_numbers(open_hdf5(file, {.fields = {"gzip", "soft"}}), {"soft", dtype::i16, {6, 5}});
}

TEST_P(hdf5, chunks_are_found_through_every_index) {
  const std::string file = file_of(std::string("indexes-") + GetParam() + ".h5");
  const auto with = [&](std::vector<std::string> names) { return open_hdf5(file, {.fields = std::move(names)}); };
  const dataset twelve = with({"single", "single_plain"});
  expect_numbers(twelve, {"single", dtype::i32, {4}});
  expect_numbers(twelve, {"single_plain", dtype::i32, {4}});
  const dataset many = with({"fixed", "growing"});
  expect_numbers(many, {"fixed", dtype::i32, {3}});
  expect_numbers(many, {"growing", dtype::i32, {3}});
  expect_numbers(with({"growing_second"}), {"growing_second", dtype::i32, {30}});
  expect_numbers(with({"growing_both"}), {"growing_both", dtype::i32, {20}});
}

TEST_P(hdf5, elements_that_are_no_plain_numbers_are_read) {
  const std::string file = file_of(std::string("elements-") + GetParam() + ".h5");
  const dataset samples = open_hdf5(file);
  ASSERT_EQ(samples.size(), 13U);
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    const auto number = static_cast<int>(i);
    for (const char* const compound : {"points", "points_packed"}) {
      const auto member = [&](const char* name) { return str_cat(compound, "/", name); };
      EXPECT_EQ(samples.number(i, member("x")), number / 2.0);
      EXPECT_EQ(samples.column(i, member("id")), number * 11);
      EXPECT_THAT(values_of<std::uint16_t>(samples, i, member("box")),
                  ElementsAre(number, number + 1, number + 2, number + 3));
      EXPECT_THAT(values_of<char>(samples, i, member("tag")), ElementsAre('t', '0' + number % 10, 0));
      EXPECT_EQ(samples.column(i, member("inner/a")), number % 250);
      EXPECT_EQ(samples.column(i, member("inner/b")), -number);
    }
    EXPECT_THAT(values_of<std::int16_t>(samples, i, "arrays"),
                ElementsAre(number * 4, number * 4 + 1, number * 4 + 2, number * 4 + 3));
    EXPECT_THAT(values_of<char>(samples, i, "names"), ElementsAre('n', '0' + number / 10, '0' + number % 10, 0, 0));
    EXPECT_THAT(values_of<std::uint8_t>(samples, i, "opaque"), ElementsAre(number, number + 1, number + 2, number + 3));
    const std::vector<std::uint8_t> blob = values_of<std::uint8_t>(samples, i, "blobs");
    ASSERT_EQ(blob.size(), i * i);
    for (std::size_t e = 0; e < blob.size(); ++e) ASSERT_EQ(blob[e], e);
  }
  EXPECT_THAT(values_of<char>(samples, 0, "words"), ElementsAre());
  EXPECT_THAT(values_of<char>(samples, 1, "words"), ElementsAre('l', 'e', 'a', 'f'));
  EXPECT_EQ(values_of<char>(samples, 3, "words"), std::vector<char>(5000, 'x'));
  EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("/rows_of_floats"), HasSubstr("variable length"))));
  const dataset members = open_hdf5(file, {.fields = {"points", "points_packed/x"}});
  EXPECT_EQ(members.fields().size(), 8U);
  // In pieces: of an array that is big-endian no row can be read as it is.
  if (GetParam() == std::string("latest")) expect_numbers(samples, {"big", dtype::i32, {2000}});
}

TEST(hdf5_of_others, hard_links_are_other_names) {
  const std::string file = file_of("others.h5");
  for (const char* const name : {"z/first", "a", "a_group/first"}) {
    expect_numbers(open_hdf5(file, {.fields = {name}}), {name, dtype::i32, {2}});
  }
}

TEST(hdf5_of_others, a_type_is_found_through_a_reference_of_the_first_version) {
  expect_numbers(open_hdf5(file_of("others.h5"), {.fields = {"committed"}}), {"committed", dtype::i32, {2}});
}

TEST(hdf5_of_others, messages_are_found_in_the_heaps_that_a_file_has_for_them) {
  const dataset samples = open_hdf5(file_of("shared.h5"));
  for (const char* const name : {"a", "b", "c"}) expect_numbers(samples, {name, dtype::i32, {5}, 6, 7});
  expect_numbers(samples, {"d", dtype::f64, {3}});
  EXPECT_THAT(samples.notes(), Contains(HasSubstr("not 8 long: number")));
}

TEST(hdf5_of_others, links_to_other_files_are_followed_where_a_field_names_them) {
  const std::string file = file_of("links.h5");
  const auto with = [&](std::vector<std::string> names) { return open_hdf5(file, {.fields = std::move(names)}); };
  const dataset three = with({"own", "other", "group/deep/images"});
  expect_numbers(three, {"own", dtype::i32, {2}});
  expect_numbers(three, {"other", dtype::i16, {6, 5}});
  expect_numbers(three, {"group/deep/images", dtype::u8, {2, 2}});
  expect_numbers(with({"far"}), {"far", dtype::i16, {6, 5}});
  expect_numbers(with({"soft"}), {"soft", dtype::u8, {2, 2}});
  EXPECT_THAT(values_of<float>(with({"member/x"}), 1, "member/x"), ElementsAre(1.5F, 2, 2.5F));
  EXPECT_THAT(with({}).notes(), Contains(AllOf(HasSubstr("'other'"), HasSubstr("which fields may give"))));
  EXPECT_THAT(
      message_of(errc::not_found, [&] { (void)with({"missing"}); }),
      AllOf(HasSubstr("links.h5/missing: a link to 'x' of gone.h5"), HasSubstr("/hdf5/gone.h5; copy it there")));
  EXPECT_THAT(message_of(errc::not_found, [&] { (void)with({"nothing"}); }),
              AllOf(HasSubstr("kinds-latest.h5: no dataset 'nothing'")));
  EXPECT_THAT(message_of(errc::format, [&] { (void)with({"circle"}); }), HasSubstr("does one lead back?"));
}

TEST(hdf5_of_others, axes_of_a_single_element_are_not_those_of_samples) {
  for (const char* const name : {"one_text", "one_array", "one_record"}) {
    EXPECT_THAT(message_of(errc::usage, [&] { (void)open_hdf5(file_of("others.h5"), {.fields = {name}}); }),
                AllOf(HasSubstr(name), HasSubstr("without an axis of samples")));
  }
}

TEST(hdf5_of_others, a_compound_of_which_no_member_is_read_is_refused_with_the_reason) {
  EXPECT_THAT(message_of(errc::unsupported, [&] { (void)open_hdf5(file_of("compounds.h5"), {.fields = {"texts"}}); }),
              AllOf(HasSubstr("texts/t"), HasSubstr("no number")));
}

TEST(hdf5_compounds, members_of_either_byte_order_are_read) {
  for (const std::string name : {"records", "whole"}) {
    const dataset samples = open_hdf5(file_of("compounds.h5"), {.fields = {name}});
    ASSERT_EQ(samples.size(), 30U);
    for (int i = 0; i < 30; ++i) {
      const auto row = static_cast<std::uint64_t>(i);
      const auto x = static_cast<float>(3 * i) / 2;
      EXPECT_THAT(values_of<float>(samples, row, name + "/x"), ElementsAre(x, x + 0.5F, x + 1));
      EXPECT_EQ(samples.column(row, name + "/y"), i - 300);
      const std::uint64_t big = (std::uint64_t{1} << 40) + 2 * row;
      EXPECT_THAT(values_of<std::uint64_t>(samples, row, name + "/big"), ElementsAre(big, big + 1));
      EXPECT_EQ(values_of<std::uint8_t>(samples, row, name + "/image").at(5), (row * 16 + 5) % 251);
      EXPECT_EQ(samples.column(row, name + "/z"), -i);
    }
  }
  const dataset only = open_hdf5(file_of("compounds.h5"), {.fields = {"only"}});
  EXPECT_EQ(only.column(29, "only/n"), 29'000);
}

TEST_P(hdf5, groups_of_many_links_are_read) {
  const dataset samples = open_hdf5(file_of(std::string("many-") + GetParam() + ".h5"));
  EXPECT_EQ(samples.fields().size(), 40U);
  expect_numbers(samples, {"field_00", dtype::u8, {2}});
  expect_numbers(samples, {"field_39", dtype::u8, {2}});
}

TEST_P(hdf5, attributes_of_arrays_that_are_samples_are_columns) {
  const std::string file = file_of(std::string("attributes-") + GetParam() + ".h5");
  const auto with = [&](std::vector<std::string> names) { return open_hdf5(file, {.columns = std::move(names)}); };
  const dataset samples = with({"label", "score", "kind", "good"});
  ASSERT_EQ(samples.size(), 40U);
  EXPECT_THAT(samples.classes(), ElementsAre("kind 0", "kind 1", "kind 2"));
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    EXPECT_EQ(values_of<std::uint8_t>(samples, i, "array"), std::vector<std::uint8_t>(18, number & 255));
    EXPECT_EQ(samples.column(i, "label"), number * 5);
    EXPECT_EQ(samples.number(i, "score"), static_cast<double>(i) / 4);
    EXPECT_EQ(samples.label(i), number % 3) << "the class";
    EXPECT_EQ(samples.column(i, "good"), i % 2 == 0);
  }
  EXPECT_THAT(with({"fixed"}).classes(), ElementsAre("f0", "f1"));
  EXPECT_EQ(open(file, {.tables = {.columns = {"label"}}}).column(7, "label"), 35);
  EXPECT_TRUE(open(file).fields().size() == 1);
  const dataset twice = open_hdf5({file, file}, {.columns = {"kind"}});
  EXPECT_EQ(twice.label(41), 1);
  EXPECT_EQ(twice.classes().size(), 3U);

  const auto why = [&](errc code, std::vector<std::string> names) {
    return message_of(code, [&] { static_cast<void>(with(std::move(names))); });
  };
  EXPECT_THAT(why(errc::not_found, {"lable"}), AllOf(HasSubstr("images/img_0"), HasSubstr("no attribute 'lable'")));
  EXPECT_THAT(why(errc::not_found, {"some"}), AllOf(HasSubstr("images/img_33"), HasSubstr("no attribute 'some'")));
  EXPECT_THAT(why(errc::unsupported, {"box"}), AllOf(HasSubstr("img_0"), HasSubstr("'box' is no single number")));
  EXPECT_THAT(why(errc::format, {"mixed"}), HasSubstr("a number of some samples and a text of others"));
  const hdf5_options by_rows{.samples = array_options::sample::row, .columns = {"label"}};
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open_hdf5(file, by_rows)); }),
              HasSubstr("here rows of arrays are"));
}

TEST_P(hdf5, attributes_of_groups_that_are_samples_are_columns) {
  const std::string file = file_of(std::string("group-attributes-") + GetParam() + ".h5");
  const dataset samples = open_hdf5(file, {.columns = {"label", "lens", "mask/both"}});
  ASSERT_EQ(samples.size(), 6U);
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples.column(i, "label"), static_cast<std::int64_t>(i) + 100);
    EXPECT_EQ(samples.column(i, "lens"), 5 - static_cast<std::int64_t>(i));
    EXPECT_EQ(samples.column(i, "mask/both"), static_cast<std::int64_t>(i) + 10);
  }
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open_hdf5(file, {.columns = {"both"}})); }),
              AllOf(HasSubstr("sample_0/image"), HasSubstr("sample_0/mask"), HasSubstr("'image/both'")));
  const hdf5_options by_array{
      .fields = {"image"}, .samples = array_options::sample::array, .columns = {"label", "lens"}};
  EXPECT_EQ(open_hdf5(file, by_array).column(3, "label"), 103);
}

INSTANTIATE_TEST_SUITE_P(written_with, hdf5, ::testing::Values("earliest", "latest"),
                         [](const auto& each) { return std::string(each.param); });

TEST(hdf5_index, arrays_in_pages_and_secondary_blocks_are_read) {
  const std::string file = file_of("indexes-latest.h5");
  expect_numbers(open_hdf5(file, {.fields = {"fixed_pages"}}), {"fixed_pages", dtype::i16, {2}});
  expect_numbers(open_hdf5(file, {.fields = {"growing_far"}}), {"growing_far", dtype::i16, {2}});
  expect_numbers(open_hdf5(file, {.fields = {"growing_farther"}}), {"growing_farther", dtype::i16, {1, 2}, 4700});
}

TEST(hdf5_file, chunks_are_expanded_whatever_filter_they_went_through) {
  const dataset samples = open_hdf5(file_of("filters.h5"));
  ASSERT_EQ(samples.size(), 12U);
  for (const char* const name : {"lzf", "lzf_shuffled", "zstd", "lz4", "lz4_one_block", "blosc_lz4", "blosc_zstd",
                                 "blosclz", "bitshuffle", "bitshuffle_lz4", "bitshuffle_blocks"}) {
    expect_numbers(samples, {name, dtype::i32, {37}});
  }
  expect_numbers(samples, {"bitshuffle_wide", dtype::f64, {301}});
  EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("/bitshuffle_zstd"), HasSubstr("h5repack"))));
  EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("/blosc2"), HasSubstr("h5repack"))));
}

TEST(hdf5_file, bitshuffle_has_blocks_of_the_size_that_the_file_says) {
  const dataset samples = open_hdf5(file_of("bitshuffle.h5"));
  for (const char* const block : {"8", "64", "512", "4096"}) {
    expect_numbers(samples, {str_cat("none_", block), dtype::i16, {30}});
    expect_numbers(samples, {str_cat("lz4_", block), dtype::i16, {30}});
  }
}

// Of each client value of each filter: what another one does to the filter.
TEST(hdf5_filters, each_client_value_is_used_or_says_only_how_the_writer_went_about_it) {
  enum class does : std::uint8_t { nothing, changes, is_refused };
  struct client_value {
    std::uint64_t filter;
    std::vector<std::uint32_t> values;
    std::size_t number;
    std::uint32_t other;
    does what;
  };
  const client_value all[] = {
      {1, {6}, 0, 9, does::nothing},                            // level
      {2, {4}, 0, 8, does::changes},                            // bytes of an element
      {32000, {4, 261, 640}, 0, 3, does::nothing},              // version
      {32000, {4, 261, 640}, 1, 260, does::nothing},            // LZF's version
      {32000, {4, 261, 640}, 2, 320, does::nothing},            // bytes of a chunk
      {32001, {2, 2, 4, 640, 5, 1, 1}, 0, 1, does::nothing},    // version
      {32001, {2, 2, 4, 640, 5, 1, 1}, 1, 1, does::nothing},    // Blosc's version: the chunk says it
      {32001, {2, 2, 4, 640, 5, 1, 1}, 2, 8, does::nothing},    // bytes of an element: likewise
      {32001, {2, 2, 4, 640, 5, 1, 1}, 3, 320, does::nothing},  // bytes of a chunk
      {32001, {2, 2, 4, 640, 5, 1, 1}, 4, 9, does::nothing},    // level
      {32001, {2, 2, 4, 640, 5, 1, 1}, 5, 2, does::nothing},    // shuffle: the chunk says it
      {32001, {2, 2, 4, 640, 5, 1, 1}, 6, 4, does::nothing},    // compressor: likewise
      {32004, {64}, 0, 128, does::nothing},                     // bytes of a block: likewise
      {32008, {0, 5, 4, 64, 0}, 0, 1, does::nothing},           // version
      {32008, {0, 5, 4, 64, 0}, 1, 4, does::nothing},           // version
      {32008, {0, 5, 4, 64, 0}, 2, 8, does::changes},           // bytes of an element
      {32008, {0, 5, 4, 64, 0}, 3, 128, does::changes},         // elements of a block
      {32008, {0, 5, 4, 64, 0}, 3, 12, does::is_refused},       // likewise
      {32008, {0, 5, 4, 64, 0}, 4, 2, does::changes},           // compression: LZ4
      {32008, {0, 5, 4, 64, 0}, 4, 3, does::is_refused},        // Zstandard
      {32008, {0, 5, 4, 64, 0}, 4, 7, does::is_refused},        // of a later version
      {32008, {0, 5, 4, 64, 2}, 3, 128, does::nothing},         // with LZ4 the chunk says it
      {32015, {3}, 0, 9, does::nothing},                        // level
  };
  for (const client_value& each : all) {
    const datasets::filter before = datasets::hdf5_filter_of(each.filter, "", each.values, 4);
    std::vector<std::uint32_t> values = each.values;
    values[each.number] = each.other;
    does found = does::is_refused;
    try {
      found = datasets::hdf5_filter_of(each.filter, "", values, 4) == before ? does::nothing : does::changes;
    } catch (const datasets::hdf5_not_read& refused) {
      EXPECT_THAT(refused.why, HasSubstr("bitshuffle"));
    }
    EXPECT_EQ(found, each.what) << "filter " << each.filter << ", value " << each.number << ": " << each.other;
  }
}

TEST(hdf5_file, elements_that_were_never_written_are_the_fill_value) {
  const std::string file = file_of("fill-elements.h5");
  const auto text = [&](const char* field, std::uint64_t row) {
    const std::vector<char> bytes = values_of<char>(open_hdf5(file, {.fields = {field}}), row, field);
    return std::string(bytes.begin(), bytes.end());
  };
  EXPECT_EQ(text("text", 3), "xyzxyz");
  EXPECT_EQ(text("text", 4), "abcabc");
  EXPECT_EQ(text("alike", 0), "xyz");
  EXPECT_EQ(text("alike", 7), "aaa");
  EXPECT_EQ(text("unwritten", 7), "abc");
  EXPECT_EQ(text("written", 7), "xyz");
  for (const char* const field : {"little_endian", "big_endian"}) {
    const dataset samples = open_hdf5(file, {.fields = {field}});
    EXPECT_THAT(values_of<std::int16_t>(samples, 3, field), ElementsAre(6, 7)) << field;
    EXPECT_THAT(values_of<std::int16_t>(samples, 7, field), ElementsAre(258, 3)) << field;
  }
}

TEST(hdf5_file, of_millions_of_chunks_few_need_have_been_written) {
  const dataset samples = open_hdf5(file_of("sparse.h5"));
  ASSERT_EQ(samples.size(), 2'000'000U);
  EXPECT_THAT(values_of<float>(samples, 7, "x"), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(values_of<float>(samples, 1'999'999, "x"), ElementsAre(5, 5, 5, 5));
}

TEST(hdf5_file, may_begin_with_bytes_of_the_user_s) {
  expect_numbers(open(file_of("user-block.h5")), {"x", dtype::i32, {2}});
}

TEST(hdf5_file, several_follow_one_another) {
  const dataset both = open({file_of("user-block.h5"), file_of("user-block.h5")});
  ASSERT_EQ(both.size(), 10U);
  EXPECT_EQ(both.read(7, "x"), both.read(2, "x"));
}

TEST(hdf5_samples, each_group_is_one_where_it_was_asked_for) {
  const dataset samples =
      open(file_of("groups.h5"),
           {.arrays = {.fields = {"image", "plain", "label"}, .samples = array_options::sample::array}});
  ASSERT_EQ(samples.size(), 11U);
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    const auto first = static_cast<int>(i) * 100;
    EXPECT_EQ(samples.column(i, "label"), static_cast<std::int64_t>(i) * 7);
    const std::vector<std::int32_t> image = values_of<std::int32_t>(samples, i, "image");
    ASSERT_EQ(image.size(), 12U);
    for (int e = 0; e < 12; ++e) EXPECT_EQ(image[static_cast<std::size_t>(e)], first + e);
    EXPECT_THAT(values_of<std::int16_t>(samples, i, "plain"),
                ElementsAre(first, first + 1, first + 2, first + 3, first + 4));
  }
}

std::vector<char> chars_of(const std::string& text) { return {text.begin(), text.end()}; }

TEST(hdf5_samples, groups_with_names_of_one_form_are_samples_without_being_asked_for) {
  const dataset samples = open(file_of("samples.h5"));
  ASSERT_EQ(samples.size(), 11U);
  EXPECT_THAT(samples.notes(), Contains(HasSubstr("'demos/demo_#' is a sample")));
  EXPECT_THAT(samples.notes(), Contains(HasSubstr("demo_3/note")));
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    const auto number = static_cast<std::uint8_t>(i);
    EXPECT_EQ(samples.column(i, "label"), static_cast<std::int64_t>(i) * 7);
    EXPECT_EQ(values_of<std::uint8_t>(samples, i, "image"), std::vector<std::uint8_t>(6, number));
    EXPECT_EQ(values_of<char>(samples, i, "task"), chars_of("task " + std::to_string(i)));
    EXPECT_EQ(values_of<float>(samples, i, "path").size(), 2 * (i + 1));  // of unequal lengths
  }
  const dataset rows = open(file_of("samples.h5"), {.arrays = {.samples = array_options::sample::row}});
  EXPECT_EQ(rows.size(), 2U);  // of each image
}

TEST(hdf5_samples, files_under_names_of_one_form_are_pictures_with_their_labels_beside_them) {
  const dataset samples = open(file_of("files.h5"));
  ASSERT_EQ(samples.size(), 12U);
  for (const char* const name : {"images", "opaque"}) {
    const std::vector<field_info> fields = samples.fields();
    const auto found =
        std::find_if(fields.begin(), fields.end(), [&](const field_info& each) { return each.name == name; });
    ASSERT_NE(found, fields.end());
    EXPECT_EQ(found->kind, field_kind::picture);
  }
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    const std::vector<std::uint8_t> picture = values_of<std::uint8_t>(samples, i, "images");
    ASSERT_EQ(picture.size(), 23 + i);
    EXPECT_EQ(picture.back(), i);
    EXPECT_EQ(values_of<std::uint8_t>(samples, i, "opaque").back(), 100 + i);
    EXPECT_EQ(samples.column(i, "labels"), 11 - static_cast<std::int64_t>(i));
  }
}

TEST(hdf5_samples, each_array_of_another_name_is_one) {
  std::vector<std::string> names;
  for (int i = 10; i-- > 0;) names.push_back("flat/a0" + std::to_string(i));
  const dataset samples = open_hdf5(file_of("groups.h5"), {.fields = names, .samples = array_options::sample::array});
  ASSERT_EQ(samples.size(), 10U);
  EXPECT_THAT(values_of<std::int32_t>(samples, 7, "array"), ElementsAre(700, 701, 702, 703, 704, 705));
  const auto wanting = [](std::vector<std::string> wanted) {
    return [wanted] {
      static_cast<void>(open_hdf5(file_of("groups.h5"), {.fields = wanted, .samples = array_options::sample::array}));
    };
  };
  EXPECT_THAT(message_of(errc::usage, wanting({"flat/a00", "other"})),
              AllOf(HasSubstr("flat/other (i32 [7])"), HasSubstr("another shape than flat/a00 (i32 [6])")));
  EXPECT_THAT(message_of(errc::not_found, wanting({"imge"})), HasSubstr("no array 'imge'"));
  EXPECT_THAT(message_of(errc::usage, wanting({"sample_03/image", "plain"})),
              AllOf(HasSubstr("'image'"), HasSubstr("'plain'"), HasSubstr("11")));
}

TEST(hdf5_samples, windows_are_rows_side_by_side_with_their_one_dimensional_arrays) {
  const array_options how{.fields = {"series", "series_packed", "times", "steps"}, .window = 4, .stride = 2};
  const dataset samples = open_hdf5(file_of("groups.h5"), how);
  ASSERT_EQ(samples.size(), 3U);  // from rows 0, 2 and 4 of 9
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    const std::vector<std::int32_t> rows = values_of<std::int32_t>(samples, i, "series");
    ASSERT_EQ(rows.size(), 4U * 10U);
    for (std::size_t e = 0; e < rows.size(); ++e) ASSERT_EQ(rows[e], static_cast<int>((i * 20 + e) * 3));
    EXPECT_EQ(values_of<std::int32_t>(samples, i, "series_packed"), rows);
    const auto first = static_cast<int>(i) * 2;
    EXPECT_THAT(values_of<std::int32_t>(samples, i, "steps"),
                ElementsAre(first * 3, first * 3 + 3, first * 3 + 6, first * 3 + 9));
    EXPECT_THAT(values_of<double>(samples, i, "times"),
                ElementsAre(first * 0.5, first * 0.5 + 0.5, first * 0.5 + 1, first * 0.5 + 1.5));
  }
  const dataset every_third = open_hdf5(file_of("groups.h5"), {.fields = {"series", "steps", "times"}, .stride = 3});
  ASSERT_EQ(every_third.size(), 3U);
  EXPECT_EQ(every_third.column(2, "steps"), 18);
  EXPECT_EQ(every_third.number(2, "times"), 3.0);
  EXPECT_EQ(values_of<std::int32_t>(every_third, 1, "series").front(), 90);

  const auto opening = [](array_options wanted) {
    return [wanted] { static_cast<void>(open_hdf5(file_of("groups.h5"), wanted)); };
  };
  EXPECT_THAT(message_of(errc::usage, opening({.fields = {"series"}, .window = 10})),
              AllOf(HasSubstr("windows of 10 rows"), HasSubstr("it has 9")));
  EXPECT_THAT(message_of(errc::usage, opening({.fields = {"series"}, .stride = 0})), HasSubstr("a stride of 0"));
}

TEST(hdf5_file, what_is_not_read_is_named_with_what_to_do) {
  const dataset rest = open_hdf5(file_of("refused.h5"));
  expect_numbers(rest, {"fine", dtype::i32, {2}});
  EXPECT_THAT(rest.notes(), Contains(AllOf(HasSubstr("/scaled"), HasSubstr("scale-offset"), HasSubstr("h5repack"))));
  EXPECT_THAT(rest.notes(), Contains(AllOf(HasSubstr("/virtual"), HasSubstr("other files"))));
  EXPECT_THAT(rest.notes(), Contains(AllOf(HasSubstr("/external"), HasSubstr("h5repack"))));
  const auto wanting = [&](const std::string& name) {
    return [&, name] { static_cast<void>(open_hdf5(file_of("refused.h5"), {.fields = {name}})); };
  };
  EXPECT_THAT(message_of(errc::unsupported, wanting("scaled")), HasSubstr("refused.h5/scaled"));
  EXPECT_THAT(message_of(errc::not_found, wanting("imges")), AllOf(HasSubstr("'imges'"), HasSubstr("fine, ")));
  EXPECT_THAT(message_of(errc::unsupported, [] { static_cast<void>(open_hdf5(file_of("open.h5"))); }),
              AllOf(HasSubstr("open for writing"), HasSubstr("h5clear -s")));
  EXPECT_THAT(
      message_of(
          errc::usage,
          [] { static_cast<void>(open_hdf5(file_of("kinds-latest.h5"), {.fields = {"gzip", "other_length"}})); }),
      AllOf(HasSubstr("3 rows"), HasSubstr("open them apart")));
}

// Of its type in the file: where the sign is, whether the first bit of the mantissa is implied, where the exponent is, its bias.
TEST(hdf5_file, floats_that_are_not_those_of_ieee_754_are_refused) {
  const testing::temporary_directory root;
  const std::string path = (root.path() / "floats.h5").string();
  std::ifstream from(file_of("kinds-earliest.h5"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(from), {}};
  const std::string half("\x11\x20\x0F\0\2\0\0\0\0\0\x10\0\x0A\5\0\x0A\x0F\0\0\0", 20);
  const std::size_t type = whole.find(half);
  ASSERT_NE(type, std::string::npos);
  for (const std::size_t at : {1U, 2U, 12U, 16U}) {
    std::string bytes = whole;
    bytes[type + at] = at == 1 ? '\0' : static_cast<char>(bytes[type + at] - 1);
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_THAT(message_of(errc::unsupported, [&] { static_cast<void>(open_hdf5(path, {.fields = {"half"}})); }),
                AllOf(HasSubstr("half"), HasSubstr("IEEE 754")))
        << at;
  }
}

TEST(hdf5_file, filters_that_leat_does_not_have_are_named) {
  const std::vector<std::string> notes = open_hdf5(file_of("refused-filters.h5")).notes();
  for (const char* const name : {"szip", "n-bit", "307 ('bzip2", "32013 ('H5Z-ZFP"}) {
    EXPECT_THAT(notes, Contains(AllOf(HasSubstr(std::string("the filter ") + name), HasSubstr("h5repack -f"))));
  }
}

TEST(hdf5_file, of_lengths_that_are_as_common_the_one_with_most_bytes_counts_the_samples) {
  const dataset samples = open_hdf5(file_of("ties.h5"));
  EXPECT_EQ(samples.size(), 5U);
  ASSERT_EQ(samples.fields().size(), 1U);
  EXPECT_EQ(samples.fields().front().name, "t2m");
  EXPECT_THAT(samples.notes(), Contains(HasSubstr("lat")));
}

// Found by array_fuzz: memory for 4 GiB of references was taken before anything of them was read.
TEST(hdf5_file, has_no_chunks_of_values_for_which_there_is_no_room) {
  EXPECT_THAT(message_of(errc::format, [] { (void)open_hdf5(file_of("large-chunks.h5"), {.fields = {"x"}}); }),
              HasSubstr("x has chunks of 33554432 values"));
}

TEST(hdf5_file, has_headers_that_go_on_elsewhere) {
  expect_numbers(open_hdf5(file_of("continued-latest.h5")), {"x", dtype::i32, {2}});
}

TEST(hdf5_checksum, is_lookup3) {
  const auto of = [](std::string_view text) { return datasets::lookup3(std::as_bytes(std::span(text))); };
  // From lookup3.c.
  EXPECT_EQ(of(""), 0xDEADBEEFU);
  EXPECT_EQ(of("Four score and seven years ago"), 0x17770551U);
}

TEST(hdf5_file, with_a_wrong_checksum_is_refused_with_its_place) {
  const testing::temporary_directory root;
  const std::string path = (root.path() / "changed.h5").string();
  std::set<std::string> tried;
  const auto expect_refused = [&](std::string bytes, std::size_t block, std::size_t at, const std::string& what) {
    bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open_hdf5(path)); }),
                AllOf(HasSubstr("changed.h5"), HasSubstr("checksum"), HasSubstr(str_cat("at offset ", block, ":"))))
        << what;
    tried.insert(what);
  };
  for (const char* const name : {"kinds-latest.h5", "indexes-latest.h5", "many-latest.h5", "elements-latest.h5",
                                 "continued-latest.h5", "shared.h5"}) {
    std::ifstream from(file_of(name), std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(from), {}};
    constexpr std::size_t extension = 20;
    expect_refused(whole, 0, extension, "superblock");
    for (const char* const kind : {"OHDR", "OCHK", "BTHD", "BTLF", "BTIN", "FRHP", "FHIB", "FHDB", "FAHD", "FADB",
                                   "EAHD", "EAIB", "EADB", "EASB", "SMTB"}) {
      const std::size_t block = whole.find(kind);
      if (block == std::string::npos) continue;
      // The version, which only the checksum covers; that of an object header is looked at before.
      expect_refused(whole, block, block + (kind == std::string("OHDR") ? 12 : 4), kind);
    }
  }
  EXPECT_THAT(tried, IsSupersetOf({"superblock", "OHDR", "OCHK", "BTHD", "BTLF", "BTIN", "FRHP", "FHIB", "FHDB", "FAHD",
                                   "FADB", "EAHD", "EAIB", "EADB", "EASB", "SMTB"}));
}

// What becomes of a file that was changed: it is opened and all of it read, or there is an error of leat's. Nothing else.
void expect_an_end(const std::string& path) {
  try {
    const dataset samples = open_hdf5(path);
    for (const field_info& field : samples.fields()) {
      if (field.bytes_max > (std::uint64_t{1} << 24) || field.column) continue;
      if (samples.size() == 0) continue;
      try {
        static_cast<void>(samples.read(samples.size() / 2, field.name));
      } catch (const error& said) {
        EXPECT_THAT(said.code(), AnyOf(errc::corrupt, errc::io, errc::format)) << said.what();
      }
    }
  } catch (const error& said) {
    EXPECT_THAT(said.code(), AnyOf(errc::format, errc::unsupported, errc::usage, errc::limit, errc::io)) << said.what();
  }
}

TEST(hdf5_file, that_is_cut_or_changed_comes_to_an_end) {
  const testing::temporary_directory root;
  const std::string path = (root.path() / "changed.h5").string();
  const auto write = [&](const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; };
  std::mt19937_64 random(5);
  for (const char* const name : {"kinds-earliest.h5", "kinds-latest.h5", "indexes-latest.h5", "many-latest.h5",
                                 "filters.h5", "shared.h5", "links.h5"}) {
    std::ifstream from(file_of(name), std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(from), {}};
    for (std::size_t cut = 0; cut < whole.size(); cut += 1 + whole.size() / 12) {
      write(whole.substr(0, cut));
      expect_an_end(path);
    }
    for (int i = 0; i < testing::seed_count(40); ++i) {
      std::string changed = whole;
      // Headers and indexes are dense at the beginning.
      const std::size_t within = i % 2 == 0 ? changed.size() : std::min<std::size_t>(changed.size(), 4096);
      for (std::uint64_t k = 0; k <= random() % 3; ++k) changed[random() % within] = static_cast<char>(random());
      write(changed);
      expect_an_end(path);
    }
  }
}

}  // namespace
}  // namespace leat

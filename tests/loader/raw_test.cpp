// Raw samples over the whole line: arrays, records and tokens come out as they lie in their files.
#include "tests/loader/running.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_records.hpp>
#include <leat/open_tar.hpp>
#include <leat/open_tokens.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace leat {
namespace {

using testing::bytes_of;
using testing::counting;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::megatron_index;
using testing::npy_dict;
using testing::npy_text;
using testing::seeded_random;
using testing::small_options;
using testing::temporary_directory;
using testing::values_of;
using testing::write_file;

TEST(raw_arrays, come_out_as_numpy_wrote_them_whatever_their_dtype) {
  const testing::watchdog dog("raw arrays");
  const temporary_directory root;
  const std::pair<const char*, dtype> types[] = {{"|b1", dtype::boolean}, {"|u1", dtype::u8},  {"|i1", dtype::i8},
                                                 {"<u2", dtype::u16},     {"<i2", dtype::i16}, {"<u4", dtype::u32},
                                                 {"<i4", dtype::i32},     {"<u8", dtype::u64}, {"<i8", dtype::i64},
                                                 {"<f2", dtype::f16},     {"<f4", dtype::f32}, {"<f8", dtype::f64}};
  for (const auto& [code, type] : types) {
    std::string data(30 * 5 * size_bytes(type), '\0');
    seeded_random draws(7);
    for (char& each : data) each = static_cast<char>(type == dtype::boolean ? draws.below(2) : draws.next());
    const dataset rows = open_npy(write_file(root.path() / "x.npy", npy_text(npy_dict(code, "30, 5"), data)));
    loader_options options = small_options();
    options.epochs = 1;
    loader train(rows, options, array("npy"));
    std::set<std::uint64_t> seen;
    for (const batch& got : train.blocking()) {
      testing::look_at(got);
      ASSERT_EQ(got["npy"].type, type);
      ASSERT_EQ(got["npy"].shape, (dimensions{static_cast<std::int64_t>(got.valid_rows()), 5}));
      const std::vector<std::byte> x = values_of<std::byte>(got, "npy");
      const std::size_t row_bytes = 5 * size_bytes(type);
      for (std::size_t row = 0; row < got.valid_rows(); ++row) {
        seen.insert(got.ids()[row]);
        EXPECT_EQ(std::memcmp(x.data() + row * row_bytes, data.data() + got.ids()[row] * row_bytes, row_bytes), 0)
            << code;
      }
    }
    EXPECT_EQ(seen.size(), 30U);
  }
}

// As shards of WebDataset have them: a .npy of several axes in each sample.
TEST(raw_arrays, are_members_of_shards_too) {
  const testing::watchdog dog("arrays in shards");
  const temporary_directory root;
  constexpr std::size_t samples = 9;
  constexpr std::size_t odd = 4;
  const auto values_for = [](std::size_t sample) {
    std::vector<float> values = counting<float>(6);
    for (float& each : values) each += static_cast<float>(100 * sample);
    return values;
  };
  const auto shard = [&](const char* name, const std::string& odd_shape) {
    testing::tar_writer made;
    for (std::size_t i = 0; i < samples; ++i) {
      const std::string shape = i == odd ? odd_shape : "2, 3";
      made.add_file(std::to_string(i) + ".depth.npy", npy_text(npy_dict("<f4", shape), bytes_of(values_for(i))));
      made.add_file(std::to_string(i) + ".cls", std::to_string(i));
    }
    const std::vector<std::byte> bytes = made.finish();
    return open_tar(write_file(root.path() / name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  };
  loader_options options = small_options();
  options.epochs = 1;
  loader whole(shard("same.tar", "2, 3"), options, array("depth.npy"), label("cls"));
  std::size_t rows = 0;
  for (const batch& got : whole.blocking()) {
    testing::look_at(got);
    ASSERT_EQ(got["depth.npy"].type, dtype::f32);
    ASSERT_EQ(got["depth.npy"].shape, (dimensions{static_cast<std::int64_t>(got.valid_rows()), 2, 3}));
    const std::vector<float> values = values_of<float>(got, "depth.npy");
    const std::vector<std::int64_t> labels = values_of<std::int64_t>(got, "cls");
    for (std::size_t row = 0; row < got.valid_rows(); ++row, ++rows) {
      const std::vector<float> wanted = values_for(static_cast<std::size_t>(labels[row]));
      EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), values.begin() + static_cast<std::ptrdiff_t>(row * 6)));
    }
  }
  EXPECT_EQ(rows, samples);

  loader column(shard("crop.tar", "2, 3"), options, array("x").from("depth.npy").center_crop({2, 1}), label("cls"));
  for (const batch& got : column.blocking()) {
    const std::vector<float> values = values_of<float>(got, "x");
    const std::vector<std::int64_t> labels = values_of<std::int64_t>(got, "cls");
    ASSERT_EQ(values.size(), 2 * got.valid_rows());
    for (std::size_t row = 0; row < got.valid_rows(); ++row) {
      EXPECT_EQ(values[2 * row], static_cast<float>(100 * labels[row] + 1));
      EXPECT_EQ(values[2 * row + 1], static_cast<float>(100 * labels[row] + 4));
    }
  }

  // A batch has one axis more, and of nothing nothing is cut.
  const auto refused = [&](errc code, const char* name, const std::string& shape, std::size_t elements, array field) {
    testing::tar_writer made;
    made.add_file("0.depth.npy", npy_text(npy_dict("<f4", shape), bytes_of(counting<float>(elements))));
    const std::vector<std::byte> bytes = made.finish();
    const dataset samples =
        open_tar(write_file(root.path() / name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    return testing::message_of(code, [&] { loader(samples, options, field); });
  };
  EXPECT_THAT(refused(errc::unsupported, "axes.tar", "1, 1, 1, 1, 1, 1, 2, 3", 6, array("depth.npy")),
              HasSubstr("8 axes"));
  EXPECT_THAT(refused(errc::usage, "none.tar", "0, 3", 0, array("depth.npy").slice(1, 0, 2)),
              HasSubstr("without an element"));

  // One of another shape is corrupt by itself, and is not cut or filled.
  options.on_corrupt = corrupt_policy::skip;
  loader skipping(shard("other.tar", "3, 2"), options, array("depth.npy"));
  rows = 0;
  for (const batch& got : skipping.blocking()) rows += got.valid_rows();
  EXPECT_EQ(rows, samples - 1);
  EXPECT_EQ(skipping.stats().quarantined, 1U);
}

TEST(raw_arrays, of_an_archive_come_with_their_labels) {
  const testing::watchdog dog("raw archives");
  const temporary_directory root;
  const dataset both = open_npz(write_file(
      root.path() / "a.npz",
      testing::zip_text({{"x.npy", npy_text(npy_dict("<f4", "20, 3"), bytes_of(counting<float>(60)))},
                         {"cls.npy", npy_text(npy_dict("|u1", "20,"), bytes_of(counting<std::uint8_t>(20)))}})));
  loader train(both, small_options(), array("x"), label("cls"));
  for (const batch& got : train.blocking()) {
    const auto seen = testing::look_at(got);
    const std::vector<float> x = values_of<float>(got, "x");
    for (std::size_t row = 0; row < got.valid_rows(); ++row) {
      EXPECT_EQ(seen.labels()[row], static_cast<std::int64_t>(got.ids()[row]));
      EXPECT_EQ(x[row * 3], static_cast<float>(got.ids()[row] * 3));
    }
  }
}

TEST(raw_arrays, in_memory_are_read_by_the_same_field) {
  const testing::watchdog dog("raw tensors");
  auto values = std::make_shared<std::vector<float>>(counting<float>(60));
  const dataset tensors =
      from_tensors({{"x", {dtype::f32, {20, 3}, dense_strides({20, 3}), values->data(), host}}}, values);
  loader train(tensors, small_options(), array("x"));
  for (const batch& got : train.blocking()) {
    testing::look_at(got);
    EXPECT_EQ(got["x"].shape, (dimensions{static_cast<std::int64_t>(got.valid_rows()), 3}));
    EXPECT_EQ(values_of<float>(got, "x")[0], static_cast<float>(got.ids()[0] * 3));
  }
}

TEST(raw_arrays, say_what_else_a_field_is) {
  const temporary_directory root;
  const dataset column =
      open_npy(write_file(root.path() / "y.npy", npy_text(npy_dict("<i8", "1,"), std::string(8, 0))));
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(column, small_options(), array("npy")); }),
              HasSubstr("leat::label(\"npy\")"));
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(column, small_options(), array("x")); }), HasSubstr("npy"));
  const dataset texts =
      from_function(1, [](std::uint64_t) { return std::vector<std::byte>(1); }, {.field = "txt", .bytes_max = 1});
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(texts, small_options(), array("txt")); }),
              HasSubstr("leat::bytes(\"txt\")"));
}

TEST(raw_records, fields_of_one_record_come_with_one_read) {
  const testing::watchdog dog("raw records");
  const temporary_directory root;
  std::string data;
  for (int k = 0; k < 50; ++k) {
    for (int i = 0; i < 100; ++i) data += testing::little(static_cast<std::uint16_t>(k + i));
    data += testing::little(static_cast<std::int64_t>(-k));
  }
  write_file(root.path() / "r.json",
             R"({"fields": [{"name": "x", "dtype": "u16", "shape": [4, 25]}, {"name": "y", "dtype": "i64"}]})");
  const dataset found = open_records(write_file(root.path() / "r.bin", data));
  loader_options options = small_options();
  options.epochs = 1;
  loader train(found, options, array("x"), array("y"));
  for (const batch& got : train.blocking()) {
    testing::look_at(got);
    const auto x = values_of<std::uint16_t>(got, "x");
    const auto y = values_of<std::int64_t>(got, "y");
    EXPECT_EQ(got["y"].shape.size(), 1U);
    for (std::size_t row = 0; row < got.valid_rows(); ++row) {
      EXPECT_EQ(x[row * 100 + 99], got.ids()[row] + 99);
      EXPECT_EQ(y[row], -static_cast<std::int64_t>(got.ids()[row]));
    }
  }
  EXPECT_EQ(train.stats().read.count, 50U);
}

/// A file of tokens that count upwards.
std::string counted_file(const temporary_directory& root, std::size_t count) {
  return write_file(root.path() / "t.bin", bytes_of(counting<std::uint16_t>(count)));
}

TEST(raw_tokens, y_is_x_one_token_later) {
  const testing::watchdog dog("raw tokens");
  const temporary_directory root;
  const dataset shards = open_tokens(counted_file(root, 1000));
  for (const window_order order : {window_order::shifted, window_order::tiled, window_order::random}) {
    for (const bool digests : {true, false}) {  // Made by decode threads, and by the one that has read them.
      loader_options options = small_options();
      options.digests = digests;
      const tokens how{.length = 16, .windows = order};
      loader train(cut_windows(shards, how), options, how);
      EXPECT_EQ(train.samples(), order == window_order::shifted ? 61U : 62U);
      for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
        std::set<std::int64_t> inputs;
        for (const batch& got : train.blocking()) {
          testing::look_at(got);
          ASSERT_EQ(got["x"].type, dtype::i64);
          ASSERT_EQ(got["x"].shape, (dimensions{static_cast<std::int64_t>(got.valid_rows()), 16}));
          const auto x = values_of<std::int64_t>(got, "x");
          const auto y = values_of<std::int64_t>(got, "y");
          for (std::size_t i = 0; i < x.size(); ++i) {
            EXPECT_EQ(y[i], x[i] + 1);
            EXPECT_EQ(x[i], x[i / 16 * 16] + static_cast<std::int64_t>(i % 16));
            inputs.insert(x[i]);
          }
        }
        if (order != window_order::random) EXPECT_EQ(inputs.size(), train.samples() * 16);
      }
    }
  }
}

TEST(raw_tokens, have_the_type_that_is_asked_for) {
  const testing::watchdog dog("raw token types");
  const temporary_directory root;
  const auto check = [&](const dataset& shards, std::optional<dtype> type, dtype expected) {
    const tokens how{.length = 8, .type = type};
    loader train(cut_windows(shards, how), small_options(), how);
    const std::optional<batch> got = train.next_blocking();
    testing::look_at(*got);
    ASSERT_EQ((*got)["x"].type, expected);
    std::int64_t first = 0;
    std::memcpy(&first, values_of<std::byte>(*got, "x").data(), size_bytes(expected));
    std::int64_t second = 0;
    std::memcpy(&second, values_of<std::byte>(*got, "y").data(), size_bytes(expected));
    EXPECT_EQ(second, first + 1);
  };
  const dataset narrow = open_tokens(counted_file(root, 200));
  check(narrow, dtype::i32, dtype::i32);
  check(narrow, std::nullopt, dtype::u16);
  check(narrow, dtype::u16, dtype::u16);
  const dataset wide = open_tokens(write_file(root.path() / "w.bin", testing::llmc_text(counting<std::uint32_t>(100))));
  check(wide, dtype::i64, dtype::i64);
  check(wide, dtype::i32, dtype::i32);
  check(wide, std::nullopt, dtype::u32);
  const dataset bytes = open_tokens(
      write_file(root.path() / "b.npy", npy_text(npy_dict("|u1", "100,"), bytes_of(counting<std::uint8_t>(100)))));
  check(bytes, dtype::i64, dtype::i64);
}

TEST(raw_tokens, that_do_not_fit_are_corrupt_and_not_cut) {
  const testing::watchdog dog("raw tokens that do not fit");
  const temporary_directory root;
  std::vector<std::uint32_t> values = counting<std::uint32_t>(100);
  values[50] = 3'000'000'000U;
  const dataset shards = open_tokens(write_file(root.path() / "w.bin", bytes_of(values)), {.type = dtype::u32});
  loader_options options = small_options();
  options.epochs = 1;
  options.on_corrupt = corrupt_policy::skip;
  const tokens narrow{.length = 9, .type = dtype::i32, .windows = window_order::tiled};
  const testing::seen_run run = testing::run_all(cut_windows(shards, narrow), options, {narrow});
  EXPECT_FALSE(run.failed) << run.message;
  EXPECT_EQ(run.stats.quarantined, 1U);
  const tokens wide{.length = 9};
  EXPECT_FALSE(testing::run_all(cut_windows(shards, wide), small_options(), {wide}).failed);
}

TEST(raw_tokens, marks_say_which_document_and_where_in_it) {
  const testing::watchdog dog("marked documents");
  const temporary_directory root;
  // The first token of a document is 1000 and more: its number; others count on from there.
  const std::vector<std::int32_t> lengths = {4, 1, 7, 20, 2, 2, 30};
  std::vector<std::uint16_t> values;
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    for (std::int32_t t = 0; t < lengths[d]; ++t)
      values.push_back(static_cast<std::uint16_t>(1000 * (d + 1) + static_cast<std::size_t>(t)));
  }
  write_file(root.path() / "m.bin", bytes_of(values));
  write_file(root.path() / "m.idx", megatron_index(8, 2, lengths, {0, 1, 2, 3, 4, 5, 6, 7}));
  const tokens how{.length = 10, .documents = document_rule::mark};
  loader train(cut_windows(open_tokens((root.path() / "m.bin").string()), how), small_options(), how);
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    for (const batch& got : train.blocking()) {
      testing::look_at(got);
      const auto x = values_of<std::int64_t>(got, "x");
      const auto document = values_of<std::int32_t>(got, "document");
      const auto position = values_of<std::int32_t>(got, "position");
      for (std::size_t row = 0; row < got.valid_rows(); ++row) {
        std::int32_t number = 0;
        std::size_t begin = 0;
        for (std::size_t t = 0; t < 10; ++t) {
          const std::size_t i = row * 10 + t;
          if (t > 0 && x[i] / 1000 != x[i - 1] / 1000) {
            ++number;
            begin = t;
          }
          EXPECT_EQ(document[i], number);
          EXPECT_EQ(position[i], static_cast<std::int32_t>(t - begin));
        }
      }
    }
  }
}

TEST(raw_tokens, within_documents_rows_are_filled_up) {
  const testing::watchdog dog("windows within documents");
  const temporary_directory root;
  write_file(root.path() / "m.bin", bytes_of(counting<std::uint16_t>(12)));
  write_file(root.path() / "m.idx", megatron_index(8, 2, {1, 6, 5}, {0, 1, 2, 3}));
  const dataset documents = open_tokens((root.path() / "m.bin").string());
  loader_options options = small_options();
  options.shuffle = false;
  const tokens how{.length = 4, .documents = document_rule::within, .pad = 99};
  const dataset windows = cut_windows(documents, how);
  loader train(windows, options, how);
  const std::optional<batch> got = train.next_blocking();
  testing::look_at(*got);
  EXPECT_EQ(values_of<std::int64_t>(*got, "x"), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 99, 99, 99, 7, 8, 9, 10}));
  EXPECT_EQ(values_of<std::int64_t>(*got, "y"),
            (std::vector<std::int64_t>{2, 3, 4, 5, 6, -100, -100, -100, 8, 9, 10, 11}));
  EXPECT_THAT(testing::message_of(errc::usage,
                                  [&] {
                                    loader(
                                        windows, options,
                                        tokens{.length = 4, .type = std::nullopt, .documents = document_rule::within});
                                  }),
              HasSubstr("-100"));
  testing::message_of(errc::usage, [&] {
    static_cast<void>(
        cut_windows(documents, {.length = 4, .windows = window_order::random, .documents = document_rule::within}));
  });
}

TEST(raw_tokens, refuse_what_cannot_be) {
  const temporary_directory root;
  const dataset shards = open_tokens(counted_file(root, 100));
  const auto refusal = [&](const dataset& from, std::vector<field> fields) {
    return testing::message_of(errc::usage, [&] { loader(from, small_options(), std::move(fields)); });
  };
  const auto not_cut = [&](const tokens& how) {
    return testing::message_of(errc::usage, [&] { static_cast<void>(cut_windows(shards, how)); });
  };
  EXPECT_THAT(not_cut({.length = 0}), HasSubstr("a length of 0"));
  EXPECT_THAT(not_cut({.length = 100}), HasSubstr("has 100"));
  EXPECT_THAT(not_cut({.length = 10, .type = dtype::f32}), HasSubstr("u16 as f32"));
  const dataset windows = cut_windows(shards, {.length = 10});
  EXPECT_EQ(cut_windows(windows, {.length = 10}).model(), windows.model());
  EXPECT_THAT(testing::message_of(errc::usage, [&] { static_cast<void>(cut_windows(windows, {.length = 5})); }),
              HasSubstr("another rule"));
  EXPECT_THAT(refusal(windows, {tokens{.length = 10, .type = dtype::f32}}), HasSubstr("u16 as f32"));
  EXPECT_THAT(refusal(windows, {tokens{.length = 10}, label("cls")}), HasSubstr("cls"));
  EXPECT_THAT(refusal(windows, {tokens{.length = 10}, tokens{.length = 5}}), HasSubstr("called 'x'"));
  const dataset rows =
      open_npy(write_file(root.path() / "x.npy", npy_text(npy_dict("<i4", "1, 2"), std::string(8, 0))));
  EXPECT_THAT(refusal(rows, {tokens{.length = 1, .field = "npy"}}), HasSubstr("open_tokens"));
  EXPECT_THAT(refusal(rows, {tokens{.length = 1}}), HasSubstr("npy"));
}

TEST(raw_tokens, that_are_not_cut_are_refused_with_the_call_that_cuts_them) {
  const temporary_directory root;
  const dataset shards = open_tokens(counted_file(root, 100));
  for (const dataset& uncut : {shards, shards.slice(0, 1), concat({shards, shards})}) {
    EXPECT_THAT(
        testing::message_of(errc::usage, [&] { loader(uncut, small_options(), tokens{.length = 10}); }),
        AllOf(HasSubstr("not cut into windows"), HasSubstr("`leat::tokens how{.length = 10}; leat::loader "
                                                           "train{leat::cut_windows(dataset, how), options, how};`")));
  }
}

TEST(raw_tokens, are_the_same_whatever_threads_and_reader_and_of_subsets_too) {
  const testing::watchdog dog("raw tokens, digests");
  const temporary_directory root;
  std::vector<std::string> paths;
  for (const std::size_t count : {std::size_t{1000}, std::size_t{17}, std::size_t{400}}) {
    paths.push_back(
        write_file(root.path() / (std::to_string(count) + ".bin"), bytes_of(counting<std::uint16_t>(count))));
  }
  const dataset shards = open_tokens(paths);
  const std::uint64_t both[] = {0, 2};
  for (const dataset& from : {shards, shards.subset(both), concat({shards.slice(1, 1), shards.slice(0, 1)})}) {
    for (const window_order order : {window_order::shifted, window_order::random}) {
      const tokens how{.length = 12, .windows = order};
      const dataset windows = cut_windows(from, how);
      std::optional<std::vector<testing::seen_batch>> first;
      for (const std::uint32_t threads : {1U, 4U}) {
        for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
          loader_options options = small_options();
          options.decode_threads = threads;
          options.reader.backend = backend;
          const testing::seen_run run = testing::run_all(windows, options, {how});
          EXPECT_FALSE(run.failed) << run.message;
          if (!first) first = run.batches;
          EXPECT_EQ(run.batches, *first);
        }
      }
      EXPECT_NE(first->front().content, first->at(first->size() / 2).content) << "both epochs hold the same";
    }
  }
}

TEST(raw_tokens, of_a_file_that_was_cut_after_it_was_opened_are_corrupt) {
  const testing::watchdog dog("a token file that was cut");
  const temporary_directory root;
  const std::string path = counted_file(root, 1000);
  const tokens how{.length = 9, .windows = window_order::tiled};
  const dataset windows = cut_windows(open_tokens(path), how);
  std::filesystem::resize_file(path, 1000);
  loader_options options = small_options();
  options.epochs = 1;
  options.on_corrupt = corrupt_policy::skip;
  const testing::seen_run run = testing::run_all(windows, options, {how});
  EXPECT_FALSE(run.failed) << run.message;
  EXPECT_EQ(run.stats.samples + run.stats.quarantined, run.stats.planned);
  EXPECT_EQ(run.stats.samples, 55U);  // 500 tokens: 55 windows of 9 and the token after.
}

TEST(raw_tokens, that_are_corrupt_are_journalled_with_the_place_of_their_epoch) {
  const testing::watchdog dog("a journal of windows");
  const temporary_directory root;
  const std::string path = counted_file(root, 1000);
  const tokens how{.length = 9, .windows = window_order::random};
  const dataset windows = cut_windows(open_tokens(path), how);
  std::filesystem::resize_file(path, 1000);
  loader_options options = small_options();
  options.on_corrupt = corrupt_policy::skip;
  options.journal = root.path() / "journal";
  const testing::seen_run run = testing::run_all(windows, options, {how});
  EXPECT_FALSE(run.failed) << run.message;
  EXPECT_GT(run.stats.quarantined, 50U);
  std::ifstream lines(options.journal);
  for (std::string line; std::getline(lines, line);) {
    const auto entry = nlohmann::json::parse(line);
    EXPECT_EQ(entry.at("source"), path);
    EXPECT_GT(entry.at("offset").get<std::uint64_t>() + 20, 1000U) << line;
  }
}

}  // namespace
}  // namespace leat

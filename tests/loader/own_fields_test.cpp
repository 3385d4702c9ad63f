// Fields that are made of several: stacks and columns, and functions of the user's with several members and outputs.
#include "base/text.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open_tables.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using testing::fake_dataset;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;

std::string refused(const dataset& samples, const field& how) {
  try {
    loader train(samples, testing::one_epoch_in_order(), std::vector<field>{how});
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::usage);
    return failure.what();
  }
  return "";
}

TEST(stacks, hold_what_their_fields_hold_side_by_side) {
  const testing::watchdog dog("a stack");
  const fake_dataset set(testing::make_samples(1, 19));
  const image one = image("one").from("jpg").resize(12, 9).as(dtype::u8);
  const image three = image("three").from("jpg").resize(12, 9).invert().as(dtype::u8);
  for (const std::uint32_t threads : {1U, 4U}) {
    loader_options options = testing::small_options();
    options.decode_threads = threads;
    options.host_bytes_max = std::size_t{100} << 20;
    loader together(set, options, stack("all", {one, three, one}), label("cls"));
    loader apart(set, options, one, three, label("cls"));
    for (const batch& expected : apart.blocking()) {
      const std::optional<batch> got = together.next_blocking();
      ASSERT_TRUE(got);
      EXPECT_EQ(to_string((*got)["all"].shape), str_cat("[", expected.ids().size(), ", 3, 3, 12, 9]"));
      for (std::size_t row = 0; row < expected.ids().size(); ++row) {
        std::vector<std::byte> wanted = testing::row_of(expected, "one", row);
        const std::vector<std::byte> first = wanted;
        for (const std::byte each : testing::row_of(expected, "three", row)) wanted.push_back(each);
        wanted.insert(wanted.end(), first.begin(), first.end());
        ASSERT_EQ(testing::row_of(*got, "all", row), wanted);
      }
    }
    EXPECT_FALSE(together.next_blocking());
  }
}

TEST(stacks, close_up_when_a_row_is_skipped) {
  const testing::watchdog dog("a stack with a hole");
  loader_options options = testing::one_epoch_in_order();
  options.on_corrupt = corrupt_policy::skip;
  const fake_dataset set(testing::labels(6, {2, 3}));
  loader train(set, options, stack("twice", {label("cls"), label("again").from("cls")}));
  EXPECT_EQ(testing::values_of<std::int64_t>(*train.next_blocking(), "twice"),
            (std::vector<std::int64_t>{1000, 1000, 1001, 1001, 1004, 1004, 1005, 1005}));
}

TEST(stacks, of_fields_that_do_not_go_together_are_refused) {
  const testing::watchdog dog("stacks that are refused");
  const fake_dataset set(testing::make_samples(1, 3));
  EXPECT_THAT(refused(set, stack("s", {label("cls"), label("b").from("cls").as(dtype::f32)})),
              AllOf(HasSubstr("stack 's'"), HasSubstr("f32 []"), HasSubstr("i64 []")));
  EXPECT_THAT(refused(set, stack("s", {text("txt")})), HasSubstr("'txt' has rows of any length"));
  EXPECT_THAT(refused(set, stack("s", {label("cls"), label("nothing")})), HasSubstr("nothing"));
  EXPECT_THROW(stack("s", {}), error);
}

TEST(columns, are_one_matrix_wherever_their_numbers_lie) {
  const testing::watchdog dog("columns");
  const testing::temporary_directory root;
  std::string csv = "f0,f1,name,f2,cls\n";
  std::string lines;
  std::vector<float> wanted;
  for (int i = 0; i < 11; ++i) {
    str_append(csv, i, ",", i + 0.5, ",n", i, ",", -i, ",", i % 3, "\n");
    str_append(lines, R"({"f0": )", i, R"(, "f1": )", i + 0.5, R"(, "name": "n", "f2": )", -i, "}\n");
    for (const double each : {i * 1.0, i + 0.5, -i * 1.0}) wanted.push_back(static_cast<float>(each));
  }
  const std::string table = testing::write_file(root.path() / "t.csv", csv);
  const std::string records = testing::write_file(root.path() / "t.jsonl", lines);
  const auto all = [](const dataset& samples, const columns& how) {
    loader train(samples, testing::one_epoch_in_order(), how);
    std::vector<float> values;
    for (const batch& each : train.blocking()) {
      EXPECT_EQ(to_string(each["x"].shape), str_cat("[", each.ids().size(), ", 3]"));
      const std::vector<float> some = testing::values_of<float>(each, "x");
      values.insert(values.end(), some.begin(), some.end());
    }
    return values;
  };
  for (const dataset& each : {open_csv(table), open_jsonl(records)}) {
    EXPECT_EQ(all(each, columns("x", {"f0", "f1", "f2"})), wanted);
    EXPECT_EQ(all(each, columns("x", {"f*"})), wanted);
    EXPECT_EQ(all(each, columns("x", {"f0", "f?"})), wanted);
    EXPECT_THAT(refused(each, columns("x", {"g*"})), HasSubstr("'g*'"));
    EXPECT_THAT(refused(each, columns("x", {"f0", "f9"})), HasSubstr("'f9'"));
  }
}

TEST(a_function_of_several_members, gets_them_all_and_fills_several_outputs) {
  const testing::watchdog dog("custom members");
  const fake_dataset set(testing::make_samples(3, 17));
  const auto lengths = [](custom_sample& sample, std::span<custom_row> rows) -> std::string {
    if (sample.members.size() != 3 || rows.size() != 3) return "other members";
    std::int64_t sizes[3];
    for (std::size_t i = 0; i < 3; ++i) sizes[i] = static_cast<std::int64_t>(sample.members[i].size());
    std::memcpy(rows[0].bytes.data(), sizes, sizeof sizes);
    const std::span<const std::byte> text = sample.members[1];
    rows[1].used = std::min(text.size(), rows[1].bytes.size());
    std::memcpy(rows[1].bytes.data(), text.data(), rows[1].used);
    const double drawn = sample.random.uniform();
    std::memcpy(rows[2].bytes.data(), &drawn, sizeof drawn);
    return "";
  };
  const custom how = custom({{.name = "sizes", .type = dtype::i64, .row_shape = {3}},
                             {.name = "copy", .type = dtype::u8, .bytes_max = 10'000},
                             {.name = "drawn", .type = dtype::f64}},
                            lengths)
                         .from({"cls", "txt", "json"});
  std::vector<std::vector<double>> drawn;
  for (const std::uint32_t threads : {1U, 4U}) {
    loader_options options = testing::small_options();
    options.decode_threads = threads;
    loader train(set, options, how, bytes("cls"), bytes("txt"), bytes("json"));
    std::vector<double> numbers;
    const auto look_at = [&](const batch& each) {
      for (std::size_t row = 0; row < each.ids().size(); ++row) {
        const std::vector<std::byte> sizes = testing::row_of(each, "sizes", row);
        std::int64_t found[3];
        std::memcpy(found, sizes.data(), sizeof found);
        const char* const members[] = {"cls", "txt", "json"};
        for (std::size_t i = 0; i < 3; ++i) {
          EXPECT_EQ(static_cast<std::size_t>(found[i]), testing::row_of(each, members[i], row).size());
        }
        EXPECT_EQ(testing::row_of(each, "copy", row), testing::row_of(each, "txt", row));
      }
      const std::vector<double> some = testing::values_of<double>(each, "drawn");
      numbers.insert(numbers.end(), some.begin(), some.end());
    };
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const batch& each : train.blocking()) look_at(each);
    }
    EXPECT_EQ(std::set<double>(numbers.begin(), numbers.end()).size(), 34U) << "two epochs of 17, each its own number";
    drawn.push_back(std::move(numbers));
  }
  EXPECT_EQ(drawn[0], drawn[1]);
}

TEST(a_function_of_several_members, makes_several_tensors_of_a_batch) {
  const testing::watchdog dog("collated members");
  const fake_dataset set(testing::make_samples(3, 17));
  const collated how = collated({{.name = "lengths", .type = dtype::i64, .bytes_max = 1000},
                                 {.name = "rows", .type = dtype::u8, .bytes_max = 1}},
                                [](const collated_rows& batch, std::span<collated_tensor> tensors) {
                                  auto* const to = reinterpret_cast<std::int64_t*>(tensors[0].bytes.data());
                                  const std::size_t rows = batch.context.samples.size();
                                  for (std::size_t row = 0; row < rows; ++row) {
                                    for (std::size_t m = 0; m < 2; ++m) {
                                      to[row * 2 + m] = static_cast<std::int64_t>(batch.members[m][row].size());
                                    }
                                  }
                                  tensors[0].shape = {static_cast<std::int64_t>(rows), 2};
                                  tensors[1].bytes[0] = static_cast<std::byte>(rows);
                                })
                           .from({"json", "txt"});
  loader train(set, testing::one_epoch_in_order(), how, bytes("json"), bytes("txt"));
  for (const batch& each : train.blocking()) {
    const std::vector<std::int64_t> lengths = testing::values_of<std::int64_t>(each, "lengths");
    ASSERT_EQ(lengths.size(), each.ids().size() * 2);
    for (std::size_t row = 0; row < each.ids().size(); ++row) {
      EXPECT_EQ(static_cast<std::size_t>(lengths[row * 2]), testing::row_of(each, "json", row).size());
      EXPECT_EQ(static_cast<std::size_t>(lengths[row * 2 + 1]), testing::row_of(each, "txt", row).size());
    }
    EXPECT_EQ(testing::values_of<std::uint8_t>(each, "rows"),
              std::vector<std::uint8_t>{static_cast<std::uint8_t>(each.ids().size())});
  }
}

TEST(a_function_of_several_members, says_what_is_corrupt) {
  const testing::watchdog dog("custom members that are corrupt");
  const fake_dataset set(testing::make_samples(3, 9));
  loader_options options = testing::one_epoch_in_order();
  const custom how = custom({{.name = "out", .type = dtype::u8}},
                            [](custom_sample& sample, std::span<custom_row> rows) -> std::string {
                              rows[0].bytes[0] = std::byte{1};
                              return sample.context.sample == 4 ? "it is the fourth" : "";
                            })
                         .from({"txt", "cls"});
  try {
    loader train(set, options, how);
    static_cast<void>(train.next_blocking());
    FAIL() << "a batch with it";
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::corrupt);
    EXPECT_THAT(failure.what(), HasSubstr("out: it is the fourth"));
  }
  options.on_corrupt = corrupt_policy::skip;
  loader train(set, options, how);
  std::size_t rows = 0;
  for (const batch& each : train.blocking()) rows += each.ids().size();
  EXPECT_EQ(rows, 8U);
}

TEST(a_function_of_several_members, is_asked_for_by_the_function_that_takes_them) {
  const auto one = [](std::span<const std::byte>, const sample_context&, std::span<std::byte>) {
    return std::string();
  };
  EXPECT_THROW(static_cast<void>(custom("x", dtype::u8, {}, one).from({"jpg", "cls"})), error);
  EXPECT_NO_THROW(static_cast<void>(custom("x", dtype::u8, {}, one).from("jpg")));
  EXPECT_THAT(refused(fake_dataset(testing::make_samples(1, 2)),
                      custom({{.name = "x"}}, [](custom_sample&, std::span<custom_row>) { return std::string(); })
                          .from({"jpg", "depth"})),
              HasSubstr("'depth'"));
}

}  // namespace
}  // namespace leat

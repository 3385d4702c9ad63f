// Datasets with fields of several origins: functions that make several, and datasets side by side.
#include "base/text.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open_tables.hpp>
#include <leat/own_samples.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

namespace asio = boost::asio;
using testing::fake_dataset;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;

TEST(samples_of_several_fields, are_made_by_one_call_each) {
  const testing::watchdog dog("a function of several fields");
  std::atomic<std::uint64_t> calls = 0;
  const auto make = [&](std::uint64_t sample) {
    ++calls;
    return std::vector<std::vector<std::byte>>{testing::to_bytes(str_cat(sample)),
                                               testing::to_bytes(str_cat("text ", sample))};
  };
  const dataset samples = from_function(50, make, {{"cls", 10}, {"txt", 20}});
  loader_options options = testing::one_epoch_in_order();
  loader train(samples, options, label("cls"), text("txt"));
  std::int64_t next = 0;
  for (const batch& each : train.blocking()) {
    const std::vector<std::int64_t> numbers = testing::values_of<std::int64_t>(each, "cls");
    for (std::size_t row = 0; row < numbers.size(); ++row, ++next) {
      EXPECT_EQ(numbers[row], next);
      EXPECT_EQ(testing::row_of(each, "txt", row), testing::to_bytes(str_cat("text ", next)));
    }
  }
  EXPECT_EQ(next, 50);
  EXPECT_EQ(calls, 50U);
  // Another dataset of the same functions is another one, whatever this thread has made last.
  const dataset other =
      from_function(50, [](std::uint64_t) { return std::vector<std::vector<std::byte>>(2, testing::to_bytes("7")); },
                    {{"cls", 10}, {"txt", 20}});
  loader again(other, options, label("cls"), text("txt"));
  EXPECT_EQ(testing::values_of<std::int64_t>(*again.next_blocking(), "cls"), std::vector<std::int64_t>(8, 7));
}

TEST(samples_of_several_fields, are_corrupt_where_the_function_gives_fewer_or_more) {
  const testing::watchdog dog("a function that gives too few");
  const auto reason = [](const dataset& samples) -> std::string {
    try {
      loader train(samples, testing::one_epoch_in_order(), text("a"), text("b"));
      static_cast<void>(train.next_blocking());
    } catch (const error& failure) {
      return failure.what();
    }
    return "";
  };
  const auto giving = [](std::size_t count, std::size_t bytes) {
    return [=](std::uint64_t) {
      return std::vector<std::vector<std::byte>>(count, std::vector<std::byte>(bytes, std::byte{'x'}));
    };
  };
  EXPECT_THAT(reason(from_function(4, giving(1, 3), {{"a", 4}, {"b", 4}})),
              HasSubstr("returned 1 values for 2 fields"));
  EXPECT_THAT(reason(from_function(4, giving(2, 5), {{"a", 9}, {"b", 4}})), HasSubstr("promised at most 4"));
  EXPECT_EQ(reason(from_function(4, giving(2, 4), {{"a", 9}, {"b", 4}})), "");
  EXPECT_THROW(static_cast<void>(from_function(4, giving(2, 4), {{"a", 9}, {"a", 4}})), error);
  EXPECT_THROW(static_cast<void>(from_function(4, giving(2, 4), std::vector<function_field>{})), error);
  EXPECT_THROW(static_cast<void>(from_function(4, giving(2, 4), {{"a", 9}, {"b", 0}})), error);
}

using fields_of_sample = std::vector<std::vector<std::byte>>;

/// A number and a text, after a turn of the loop.
coroutine_of_fields fetching(std::atomic<std::uint64_t>& calls, std::uint64_t failing = ~std::uint64_t{0}) {
  return [&calls, failing](std::uint64_t sample) -> coroutine_of_several {
    const auto here = co_await asio::this_coro::executor;
    co_await asio::post(here, asio::use_awaitable);
    ++calls;
    if (sample == failing) throw std::runtime_error("not on this server");
    co_return fields_of_sample{testing::to_bytes(str_cat(sample)), testing::to_bytes(str_cat("text ", sample))};
  };
}

void expect_samples(loader& train, std::int64_t samples) {
  std::int64_t next = 0;
  for (const batch& each : train.blocking()) {
    const std::vector<std::int64_t> numbers = testing::values_of<std::int64_t>(each, "cls");
    for (std::size_t row = 0; row < numbers.size(); ++row, ++next) {
      EXPECT_EQ(numbers[row], next);
      EXPECT_EQ(testing::row_of(each, "txt", row), testing::to_bytes(str_cat("text ", next)));
    }
  }
  EXPECT_EQ(next, samples);
}

TEST(samples_of_several_fields, are_fetched_by_one_coroutine_each) {
  const testing::watchdog dog("a coroutine of several fields");
  std::atomic<std::uint64_t> calls = 0;
  const dataset samples = from_coroutine(50, fetching(calls), {{"cls", 10}, {"txt", 20}});
  loader train(samples, testing::one_epoch_in_order(), label("cls"), text("txt"));
  expect_samples(train, 50);
  EXPECT_EQ(calls, 50U);
  // In views, whose fields and samples have other numbers, and beside another dataset of coroutines.
  calls = 0;
  const std::vector<std::string> turned = {"txt", "cls"};
  const dataset fields = samples.with_fields(turned);
  const std::vector<dataset> parts = {fields.slice(0, 13), fields.slice(13, 7)};
  loader of_view(concat(parts), testing::one_epoch_in_order(), label("cls"), text("txt"));
  expect_samples(of_view, 20);
  EXPECT_EQ(calls, 20U);
  std::atomic<std::uint64_t> others = 0;
  calls = 0;
  const dataset more = from_coroutine(50, fetching(others), {{"n", 10}, {"words", 20}});
  loader of_both(zip({more, samples}), testing::one_epoch_in_order(), label("cls"), text("txt"), text("words"),
                 label("n"));
  expect_samples(of_both, 50);
  EXPECT_EQ(calls, 50U);
  EXPECT_EQ(others, 50U);
  // One of them, or one twice.
  calls = 0;
  loader of_one(samples, testing::one_epoch_in_order(), text("txt"), bytes("raw").from("txt"), label("cls"));
  expect_samples(of_one, 50);
  EXPECT_EQ(calls, 50U);
  loader alone(samples, testing::one_epoch_in_order(), label("cls"));
  EXPECT_EQ(testing::values_of<std::int64_t>(*alone.next_blocking(), "cls").at(7), 7);
}

TEST(samples_of_several_fields, that_a_coroutine_does_not_give_whole_are_corrupt) {
  const testing::watchdog dog("a coroutine that fails");
  std::atomic<std::uint64_t> calls = 0;
  loader_options options = testing::one_epoch_in_order();
  options.on_corrupt = corrupt_policy::skip;
  loader train(from_coroutine(50, fetching(calls, 17), {{"cls", 10}, {"txt", 20}}), options, label("cls"), text("txt"));
  std::uint64_t rows = 0;
  for (const batch& each : train.blocking()) rows += each.valid_rows();
  EXPECT_EQ(rows, 49U);
  EXPECT_EQ(train.stats().quarantined, 1U);
  const auto reason = [](const dataset& samples) -> std::string {
    return testing::message_of(errc::corrupt, [&] {
      loader failing(samples, testing::one_epoch_in_order(), text("a"), text("b"));
      static_cast<void>(failing.next_blocking());
    });
  };
  const auto giving = [](std::size_t count, std::size_t bytes) -> coroutine_of_fields {
    return [=](std::uint64_t) -> coroutine_of_several {
      co_return fields_of_sample(count, std::vector<std::byte>(bytes, std::byte{'x'}));
    };
  };
  EXPECT_THAT(reason(from_coroutine(4, giving(1, 3), {{"a", 4}, {"b", 4}})),
              HasSubstr("returned 1 values for 2 fields"));
  EXPECT_THAT(reason(from_coroutine(4, giving(2, 5), {{"a", 9}, {"b", 4}})), HasSubstr("promised at most 4"));
  EXPECT_THROW(static_cast<void>(from_coroutine(4, giving(2, 4), {{"a", 9}, {"a", 4}})), error);
  EXPECT_THROW(static_cast<void>(from_coroutine(4, coroutine_of_fields(), {{"a", 9}})), error);
}

TEST(datasets_side_by_side, have_the_fields_of_all) {
  const testing::watchdog dog("a zip");
  const testing::temporary_directory root;
  const fake_dataset pictures(testing::make_samples(5, 23));
  std::string lines;
  for (int i = 0; i < 23; ++i) str_append(lines, R"({"id": )", 100 + i, "}\n");
  const dataset records = open_jsonl(testing::write_file(root.path() / "t.jsonl", lines));
  const auto owner = std::make_shared<std::vector<float>>(23 * 2);
  for (std::size_t i = 0; i < owner->size(); ++i) (*owner)[i] = static_cast<float>(i);
  const dimensions shape{23, 2};
  const dataset tensors = from_tensors({{"x", {dtype::f32, shape, dense_strides(shape), owner->data(), host}}}, owner);
  const dataset both = zip({pictures, records, tensors});
  EXPECT_EQ(both.size(), 23U);
  const std::vector<field> of_pictures = {image("jpg").random_resized_crop(12), text("txt")};
  std::vector<field> all = of_pictures;
  all.emplace_back(label("id"));
  all.emplace_back(array("x"));
  loader apart(pictures, testing::small_options(), of_pictures);
  loader train(both, testing::small_options(), all);
  for (const batch& expected : apart.blocking()) {
    const std::optional<batch> got = train.next_blocking();
    ASSERT_TRUE(got);
    const std::vector<std::int64_t> ids = testing::values_of<std::int64_t>(*got, "id");
    const std::vector<float> x = testing::values_of<float>(*got, "x");
    for (std::size_t row = 0; row < ids.size(); ++row) {
      const auto sample = static_cast<std::int64_t>(expected.ids()[row]);
      EXPECT_EQ(ids[row], 100 + sample);
      EXPECT_EQ(x[2 * row], static_cast<float>(2 * sample));
      EXPECT_EQ(testing::row_of(*got, "jpg", row), testing::row_of(expected, "jpg", row));
      EXPECT_EQ(testing::row_of(*got, "txt", row), testing::row_of(expected, "txt", row));
    }
  }
  EXPECT_THROW(static_cast<void>(zip({pictures, pictures})), error) << "two fields of one name";
  EXPECT_THROW(static_cast<void>(zip({pictures, tensors.slice(0, 22)})), error) << "another length";
}

}  // namespace
}  // namespace leat

// Whatever a dataset is made of, the line takes it: samples that functions make or coroutines fetch, tensors, parts that
// differ, samples of many reads.
#include "base/half.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace leat {
namespace {

namespace asio = boost::asio;
using testing::loader;
using testing::loader_options;

using testing::fake_dataset;
using testing::fake_sample;
using testing::seen_run;
using testing::small_options;

std::string content_of(std::uint64_t sample) { return "content of sample " + std::to_string(sample); }

loader_options in_order() {
  loader_options options = small_options();
  options.shuffle = false;
  options.epochs = 1;
  return options;
}

TEST(function_samples, are_made_on_decode_threads) {
  const testing::watchdog dog("function samples");
  std::atomic<int> calls{0};
  const dataset made = from_function(30,
                                     [&](std::uint64_t sample) {
                                       ++calls;
                                       return testing::to_bytes(content_of(sample));
                                     },
                                     {.field = "txt", .bytes_max = 64});
  loader train(made, in_order(), text("txt"));
  std::uint64_t sample = 0;
  for (const batch& got : train.blocking()) {
    for (std::size_t row = 0; row < got.valid_rows(); ++row) {
      EXPECT_EQ(testing::as_text(testing::row_of(got, "txt", row)), content_of(sample++));
    }
  }
  EXPECT_EQ(sample, 30U);
  EXPECT_EQ(calls, 30);
}

TEST(function_samples, whose_function_throws_are_corrupt_samples) {
  const testing::watchdog dog("function samples that throw");
  const dataset made = from_function(30,
                                     [](std::uint64_t sample) {
                                       if (sample % 10 == 3)
                                         throw std::runtime_error("nothing for " + std::to_string(sample));
                                       return testing::to_bytes(content_of(sample));
                                     },
                                     {.field = "txt", .bytes_max = 64});
  loader_options options = in_order();
  const seen_run raised = testing::run_all(made, options, {text("txt")});
  EXPECT_EQ(raised.failed, errc::corrupt);
  EXPECT_NE(raised.message.find("nothing for 3"), std::string::npos) << raised.message;
  options.on_corrupt = corrupt_policy::skip;
  const seen_run skipped = testing::run_all(made, options, {text("txt")});
  EXPECT_FALSE(skipped.failed) << skipped.message;
  EXPECT_EQ(skipped.stats.quarantined, 3U);
  options.on_corrupt = corrupt_policy::substitute;
  const seen_run replaced = testing::run_all(made, options, {text("txt")});
  EXPECT_FALSE(replaced.failed) << replaced.message;
  EXPECT_EQ(replaced.stats.substituted, 3U);
}

TEST(coroutine_samples, are_awaited_on_the_io_thread_and_cancelled_by_stop) {
  testing::for_each_seed(20, [](std::uint64_t seed) {
    const testing::watchdog dog("coroutine samples");
    const dataset fetched = from_coroutine(30,
                                           [](std::uint64_t sample) -> asio::awaitable<std::vector<std::byte>> {
                                             const auto here = co_await asio::this_coro::executor;
                                             co_await asio::post(here, asio::use_awaitable);
                                             co_return testing::to_bytes(content_of(sample));
                                           },
                                           {.field = "txt", .bytes_max = 64});
    loader train(fetched, in_order(), text("txt"));
    std::uint64_t sample = 0;
    const std::uint64_t stop_at = seed % 7 == 0 ? 30 : seed % 30;
    for (const batch& got : train.blocking()) {
      for (std::size_t row = 0; row < got.valid_rows(); ++row) {
        EXPECT_EQ(testing::as_text(testing::row_of(got, "txt", row)), content_of(sample++));
      }
      if (sample >= stop_at) break;
    }
  });
}

TEST(coroutine_samples, that_fail_are_corrupt_samples) {
  const testing::watchdog dog("coroutine samples that fail");
  const dataset fetched = from_coroutine(30,
                                         [](std::uint64_t sample) -> asio::awaitable<std::vector<std::byte>> {
                                           if (sample == 5) throw std::runtime_error("not on this server");
                                           if (sample == 6)
                                             co_return std::vector<std::byte>(65);  // more than was promised
                                           co_return testing::to_bytes(content_of(sample));
                                         },
                                         {.field = "txt", .bytes_max = 64});
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    loader_options options = in_order();
    options.on_corrupt = policy;
    const seen_run run = testing::run_all(fetched, options, {text("txt")});
    EXPECT_FALSE(run.failed) << run.message;
    EXPECT_EQ(run.stats.quarantined, 2U);
    EXPECT_EQ(run.stats.samples, 28U);
  }
}

TEST(tensor_samples, come_out_as_they_went_in) {
  const testing::watchdog dog("tensor samples");
  auto values = std::make_shared<std::vector<float>>(20 * 6);
  std::iota(values->begin(), values->end(), 0.0F);
  auto classes = std::make_shared<std::vector<std::int64_t>>(20);
  std::iota(classes->begin(), classes->end(), 1000);
  struct both {
    std::shared_ptr<std::vector<float>> a;
    std::shared_ptr<std::vector<std::int64_t>> b;
  };
  const dataset tensors =
      from_tensors({{"x", {dtype::f32, {20, 2, 3}, dense_strides({20, 2, 3}), values->data(), host}},
                    {"cls", {dtype::i64, {20}, {1}, classes->data(), host}}},
                   std::make_shared<both>(both{values, classes}));
  loader train(tensors, in_order(), bytes("x"), label("cls"));
  std::int64_t sample = 0;
  for (const batch& got : train.blocking()) {
    for (std::size_t row = 0; row < got.valid_rows(); ++row) {
      EXPECT_EQ(testing::values_of<std::int64_t>(got, "cls")[row], 1000 + sample);
      const auto bytes = testing::row_of(got, "x", row);
      ASSERT_EQ(bytes.size(), 24U);
      float first = 0;
      std::memcpy(&first, bytes.data(), sizeof first);
      EXPECT_EQ(first, static_cast<float>(6 * sample++));
    }
  }
  EXPECT_EQ(sample, 20);
}

TEST(columns_of_reals, become_labels_and_arrays_of_their_type) {
  const testing::watchdog dog("columns of reals");
  const auto scores = std::make_shared<std::vector<float>>(20);
  for (std::size_t i = 0; i < scores->size(); ++i) (*scores)[i] = static_cast<float>(i) / 4;
  const dataset samples =
      from_tensors({{"score", {dtype::f32, {20}, {1}, scores->data(), host}}}, scores)
          .with_column({.name = "half", .reals = {scores->begin(), scores->end()}, .type = dtype::f16});
  const loader_options options = in_order();
  loader train(samples, options, label("score"), label("half"), label("wide").from("score").as(dtype::f64),
               array("a").from("half"));
  std::size_t sample = 0;
  for (const batch& got : train.blocking()) {
    for (std::size_t row = 0; row < got.valid_rows(); ++row, ++sample) {
      EXPECT_EQ(testing::values_of<float>(got, "score")[row], (*scores)[sample]);
      EXPECT_EQ(testing::values_of<float>(got, "half")[row], (*scores)[sample]);
      EXPECT_EQ(testing::values_of<double>(got, "wide")[row], (*scores)[sample]);
      EXPECT_EQ(testing::values_of<std::uint16_t>(got, "a")[row], f16_bits((*scores)[sample]));
    }
  }
  EXPECT_EQ(sample, 20U);
  const seen_run whole = testing::run_all(samples, options, {label("score").as(dtype::i64)});
  EXPECT_EQ(whole.failed, errc::corrupt);
  EXPECT_NE(whole.message.find("0.25 is no whole number; take the label as f32"), std::string::npos) << whole.message;
}

// The parts of a concatenation may have a field's picture from different places, under different names.
TEST(concatenated_samples, may_come_from_disks_and_from_functions) {
  const testing::watchdog dog("concatenated");
  const auto samples = testing::make_samples(1, 20);
  std::vector<fake_sample> on_disk(samples.begin(), samples.begin() + 3);  // JPEGs, all of them
  for (fake_sample& each : on_disk) each.members.resize(1);
  const fake_dataset first(on_disk);
  const dataset second = from_function(3, [png = samples[3].find("png")->bytes](std::uint64_t) { return png; },
                                       {.field = "png", .bytes_max = samples[3].find("png")->bytes.size()});
  const image picture = image("jpg").resize(8, 8).as(dtype::u8);
  loader train(concat({first.get(), second, first.get()}), in_order(), picture);
  std::vector<std::string> rows;
  for (const batch& got : train.blocking()) {
    for (std::size_t row = 0; row < got.valid_rows(); ++row)
      rows.emplace_back(testing::as_text(testing::row_of(got, "jpg", row)));
  }
  ASSERT_EQ(rows.size(), 9U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows[i], rows[6 + i]);
    EXPECT_EQ(rows[3 + i], rows[3]);
    EXPECT_NE(rows[i], rows[3]);
  }
}

// A picture, its mask and its boxes in files of their own: each sample is several reads, and the budget is the least that
// is allowed. Leases of a sample that were taken one after the other would wait for each other for ever.
TEST(samples_of_many_reads, go_through_the_least_budget) {
  constexpr std::size_t count = 40;
  std::vector<fake_sample> samples(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (const char* field : {"a", "b", "c"}) {
      const std::size_t bytes = field[0] == 'b' ? 900'000 : field[0] == 'c' ? 700'000 : 300'000 + 1000 * i;
      samples[i].members.push_back({field, std::vector<std::byte>(bytes, static_cast<std::byte>(i))});
    }
    if (i % 5 == 0) samples[i].find("a")->bytes[0] = std::byte{0xFF};  // corrupt, says the field
  }
  const auto first_byte = [](const char* name) {
    return custom(name, dtype::u8, {1},
                  [](std::span<const std::byte> bytes, const sample_context&, std::span<std::byte> row) {
                    row[0] = bytes.back();
                    return bytes.front() == std::byte{0xFF} ? std::string("begins with FF") : std::string();
                  });
  };
  testing::for_each_seed(4, [&](std::uint64_t seed) {
    for (const std::uint32_t io_threads : {1U, 2U}) {
      const testing::watchdog dog("many reads");
      testing::fake_dataset_options where;
      where.layout = testing::fake_layout::file_per_member;
      where.disk.seed = seed;
      const fake_dataset set(samples, where);
      loader_options options = small_options();
      options.on_corrupt = corrupt_policy::substitute;
      options.batch_size = 6;
      options.reader.io_threads = io_threads;
      options.host_bytes_max = 4 << 20;
      std::vector<field> fields = {first_byte("a"), first_byte("b"), first_byte("c")};
      options.host_bytes_max = loader(set, options, fields).plan().host_bytes_least;
      const seen_run run = testing::run_all(set, options, fields);
      EXPECT_FALSE(run.failed) << run.message;
      EXPECT_EQ(run.stats.planned, 2 * count);
      EXPECT_EQ(run.stats.substituted, 16U);
    }
  });
}

TEST(samples_of_nothing, read_nothing) {
  const testing::watchdog dog("columns only");
  std::vector<fake_sample> samples(20);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i].members = {{"jpg", testing::to_bytes("not looked at")}};
    samples[i].cls_column = 1000 + static_cast<std::int64_t>(i);
  }
  const fake_dataset set(samples);
  loader train(set, small_options(), label("cls"));
  for (const auto& seen : testing::run_epochs(train, 2)) {
    for (std::size_t row = 0; row < seen.ids.size(); ++row) {
      EXPECT_EQ(seen.labels()[row], 1000 + static_cast<std::int64_t>(seen.ids[row]));
    }
  }
  EXPECT_EQ(set.count().reads, 0U);
  EXPECT_EQ(train.stats().bytes_read, 0U);
}

TEST(subsets, are_numbered_by_themselves) {
  const testing::watchdog dog("subset");
  std::vector<fake_sample> samples(20);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i].members = {{"cls", testing::to_bytes(std::to_string(i))}};
  const fake_dataset set(samples);
  loader train(set.get().subset({7, 3, 3, 19}), in_order(), label("cls"));
  const auto seen = testing::run_epochs(train, 1);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].ids, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(seen[0].labels(), (std::vector<std::int64_t>{7, 3, 3, 19}));
}

}  // namespace
}  // namespace leat

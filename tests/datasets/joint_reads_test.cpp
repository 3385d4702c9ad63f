// Values of neighbours, read together in any portions: those that each sample has by itself.
#include "datasets/tables/joint_reads.hpp"

#include "datasets/tables/each_value.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/open.hpp>
#include <leat/samples.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace leat::datasets {
namespace {

std::string value_of(std::uint64_t sample) {
  return std::to_string(sample) + std::string(sample % 97 == 5 ? 30'000 : sample % 50, 'x');
}

/// Lines with a value that has escapes, one that has none, and gaps between.
class lines {
 public:
  explicit lines(std::uint64_t count) {
    std::ofstream file(path());
    for (std::uint64_t i = 0; i < count; ++i) {
      file << R"({"a": ")" << value_of(i) << R"(", "gap": ")" << std::string(i % 7 == 0 ? 9'000 : 3, 'g')
           << R"(", "b": "\n)" << value_of(i) << "\"}\n";
    }
  }
  [[nodiscard]] std::string path() const { return (directory_.path() / "lines.jsonl").string(); }

 private:
  testing::temporary_directory directory_;
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(joint_reads, of_any_portion_give_each_samples_own_values) {
  constexpr std::uint64_t count = 400;
  const lines file(count);
  const dataset samples = leat::open(file.path());
  const dataset_model& model = *samples.model();
  const std::uint16_t a = model.find_field("a").value();
  const std::uint16_t b = model.find_field("b").value();
  for (const std::uint64_t together :
       {std::uint64_t{0}, std::uint64_t{500}, std::uint64_t{70'000}, ~std::uint64_t{0} >> 1U}) {
    joint_reads reads(model, {.fields = {a, b}, .together_bytes = together});
    std::uint64_t next = 0;
    std::uint64_t calls = 0;
    while (next < count) {
      ++calls;
      for (const joint_reads::one& each : reads.read_from(next, count)) {
        ASSERT_EQ(each.sample, next++);
        ASSERT_EQ(each.parts.size(), 2U);
        const std::size_t first = each.parts[0].field == a ? 0 : 1;
        EXPECT_EQ(text_of(reads.field_of(each, first)), value_of(each.sample));
        EXPECT_EQ(text_of(reads.field_of(each, 1 - first)), "\n" + value_of(each.sample));
      }
    }
    if (together == 0) EXPECT_EQ(calls, count);
    if (together > 70'000) EXPECT_EQ(calls, 1U);
  }
}

TEST(joint_reads, leave_out_what_is_too_large_and_say_how_large_it_is) {
  const lines file(100);
  const dataset samples = leat::open(file.path());
  const dataset_model& model = *samples.model();
  joint_reads reads(model, {.fields = {model.find_field("a").value()}, .value_bytes_max = 20'000});
  std::vector<std::uint64_t> over;
  for (const joint_reads::one& each : reads.read_from(0, 100)) {
    if (const std::optional<std::uint64_t> bytes = reads.bytes_over(each, 0)) {
      over.push_back(each.sample);
      EXPECT_GE(*bytes, value_of(each.sample).size());
    }
  }
  EXPECT_EQ(over, std::vector<std::uint64_t>{5});
}

// Two that need all there is are never there at once.
TEST(byte_gate, lets_threads_hold_no_more_than_there_may_be) {
  constexpr std::uint64_t most = 100;
  byte_gate gate(most);
  std::atomic<std::uint64_t> held = 0;
  std::atomic<bool> is_over = false;
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 2'000; ++i) {
        const std::uint64_t taken = gate.take(t == 0 ? 1'000 : 30 * t);
        if (held.fetch_add(taken) + taken > most) is_over = true;
        held.fetch_sub(taken);
        gate.give(taken);
      }
    });
  }
  threads.clear();
  EXPECT_FALSE(is_over);
  EXPECT_EQ(gate.take(most), most) << "all was given back";
}

TEST(each_value, is_seen_once_and_a_file_that_is_gone_is_the_fault_of_its_samples) {
  testing::temporary_directory directory;
  constexpr std::uint64_t of_file = 40;
  for (std::uint64_t file = 0; file < 3; ++file) {
    std::ofstream out(directory.path() / (std::to_string(file) + ".jsonl"));
    for (std::uint64_t i = 0; i < of_file; ++i) out << R"({"a": ")" << value_of(file * of_file + i) << "\"}\n";
  }
  const dataset samples = leat::open((directory.path() / "{0..2}.jsonl").string());
  std::filesystem::remove(directory.path() / "1.jsonl");
  const std::uint16_t fields[] = {samples.model()->find_field("a").value()};
  std::vector<std::optional<std::string>> seen(samples.size());
  std::vector<int> times(samples.size());
  std::mutex mutex;
  for_each_value(*samples.model(), fields, std::uint64_t{64} << 20, [&]() -> value_use {
    return [&](std::uint64_t sample, const seen_value& value) {
      const std::lock_guard lock(mutex);
      ++times[sample];
      EXPECT_FALSE(value.is_over);
      EXPECT_EQ(value.unreadable != nullptr, sample / of_file == 1);
      if (value.bytes) seen[sample] = text_of(*value.bytes);
    };
  });
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(times[i], 1);
    EXPECT_EQ(seen[i], i / of_file == 1 ? std::nullopt : std::optional(value_of(i)));
  }
}

}  // namespace
}  // namespace leat::datasets

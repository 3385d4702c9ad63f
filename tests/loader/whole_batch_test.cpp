// Tensors that are made of a batch as a whole: graphs, and what a function of one's own collates.
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using testing::fake_sample;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::small_options;
using testing::values_of;

template <class T>
std::string list_text(const std::vector<T>& values, std::size_t length) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % length == 0) text += i == 0 ? "[" : "], [";
    text += (i % length == 0 ? "" : ", ") + std::to_string(values[i]);
  }
  return text + (values.empty() ? "]" : "]]");
}

template <class T>
std::vector<std::byte> stored_bytes(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// A graph as a plain loop sees it.
struct plain_graph {
  std::vector<float> x;                // of two features
  std::vector<std::int32_t> edges;     // all begins, then all ends
  std::vector<std::int32_t> features;  // of each edge
  bool damaged = false;
};

struct graphs {
  std::vector<plain_graph> all;
  std::vector<fake_sample> samples;
  bool as_text = false;
  loader_options options = small_options();

  explicit graphs(std::uint64_t seed) {
    testing::seeded_random random(seed);
    as_text = random.chance(0.5);
    for (std::uint64_t i = 0, count = 30 + random.below(40); i < count; ++i) {
      plain_graph& made = all.emplace_back();
      const auto nodes = static_cast<std::int32_t>(random.below(9));
      const std::size_t edges = nodes == 0 ? 0 : random.below(12);
      for (std::int32_t k = 0; k < 2 * nodes; ++k) made.x.push_back(static_cast<float>(random.below(1000)));
      for (std::size_t k = 0; k < 2 * edges; ++k) {
        made.edges.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(nodes))));
      }
      for (std::size_t k = 0; k < edges; ++k) made.features.push_back(static_cast<std::int32_t>(random.below(99)));
      made.damaged = edges != 0 && random.chance(0.15);
      if (made.damaged) made.edges[random.below(2 * edges)] = random.chance(0.5) ? nodes : -1;
      fake_sample& sample = samples.emplace_back();
      const auto add = [&](const char* name, const auto& values, std::size_t length) {
        sample.members.push_back({name, as_text ? testing::to_bytes(list_text(values, length)) : stored_bytes(values)});
      };
      add("x", made.x, 2);
      add("edge_index", made.edges, std::max<std::size_t>(edges, 1));
      add("attr", made.features, 1);
    }
    options.batch_size = static_cast<std::uint32_t>(1 + random.below(12));
    options.shuffle = random.chance(0.7);
    options.decode_threads = static_cast<std::uint32_t>(1 + random.below(3));
    options.on_corrupt = random.chance(0.5) ? corrupt_policy::skip : corrupt_policy::substitute;
  }
  [[nodiscard]] std::vector<field> fields() const {
    const auto stored = [&](dtype type) { return as_text ? std::optional<dtype>() : type; };
    return {graph()
                .x({.member = "x", .width = 2, .stored = stored(dtype::f32)})
                .edge_index("edge_index", stored(dtype::i32))
                .edge_attr({.member = "attr", .type = dtype::i64, .stored = stored(dtype::i32)})};
  }
};

void expect_graph(const batch& got, const std::vector<plain_graph>& all) {
  std::vector<float> x;
  std::vector<std::int64_t> begins;
  std::vector<std::int64_t> ends;
  std::vector<std::int64_t> features;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> ptr{0};
  for (std::size_t row = 0; row < got.valid_rows(); ++row) {
    const plain_graph& one = all[got.ids()[row]];
    ASSERT_FALSE(one.damaged);
    x.insert(x.end(), one.x.begin(), one.x.end());
    for (std::size_t k = 0; k < one.edges.size(); ++k) {
      (k < one.edges.size() / 2 ? begins : ends).push_back(one.edges[k] + ptr.back());
    }
    features.insert(features.end(), one.features.begin(), one.features.end());
    rows.insert(rows.end(), one.x.size() / 2, static_cast<std::int64_t>(row));
    ptr.push_back(ptr.back() + static_cast<std::int64_t>(one.x.size() / 2));
  }
  const auto edges = static_cast<std::int64_t>(begins.size());
  begins.insert(begins.end(), ends.begin(), ends.end());
  ASSERT_EQ(got["x"].shape, (dimensions{ptr.back(), 2}));
  ASSERT_EQ(got["edge_index"].shape, (dimensions{2, edges}));
  ASSERT_EQ(got["edge_attr"].shape, (dimensions{edges, 1}));
  ASSERT_EQ(values_of<float>(got, "x"), x);
  ASSERT_EQ(values_of<std::int64_t>(got, "edge_index"), begins);
  ASSERT_EQ(values_of<std::int64_t>(got, "edge_attr"), features);
  ASSERT_EQ(values_of<std::int64_t>(got, "batch"), rows);
  ASSERT_EQ(values_of<std::int64_t>(got, "ptr"), ptr);
}

TEST(graph, batches_are_those_of_a_plain_loop_and_rows_have_digests_of_their_own) {
  const testing::watchdog dog("graphs");
  testing::for_each_seed(30, [](std::uint64_t seed) {
    const graphs set(seed);
    const fake_dataset samples(set.samples);
    loader train(samples, set.options, set.fields());
    std::map<std::uint64_t, std::string> digests;
    std::vector<std::string> contents;
    loader_state middle;
    std::uint64_t rows = 0;
    while (const auto got = train.next_blocking()) {
      ASSERT_NO_FATAL_FAILURE(expect_graph(*got, set.all));
      rows += got->valid_rows();
      for (std::uint32_t row = 0; row < got->valid_rows(); ++row) {
        const std::string digest = got->row_digests()[row].hex();
        ASSERT_EQ(digests.try_emplace(got->ids()[row], digest).first->second, digest);
      }
      contents.push_back(got->content_digest()->hex());
      if (contents.size() == 2) middle = train.state_after(*got);
    }
    const bool substitutes = set.options.on_corrupt == corrupt_policy::substitute;
    const auto damaged = std::count_if(set.all.begin(), set.all.end(), [](const auto& each) { return each.damaged; });
    ASSERT_EQ(rows, set.all.size() - (substitutes ? 0U : static_cast<std::uint64_t>(damaged)));
    loader_options later = set.options;
    later.resume = middle;
    loader second(samples, later, set.fields());
    for (std::size_t i = 2; i < contents.size(); ++i) {
      const auto got = second.next_blocking();
      ASSERT_EQ(got->content_digest()->hex(), contents[i]);
      ASSERT_NO_FATAL_FAILURE(expect_graph(*got, set.all));
    }
  });
}

TEST(graph, of_numbers_that_make_none_is_corrupt_with_a_reason) {
  const testing::watchdog dog("corrupt graphs");
  const auto reason = [](const char* x, const char* edges, const char* attr) {
    const fake_dataset set({{.members = {{"x", testing::to_bytes(x)},
                                         {"edge_index", testing::to_bytes(edges)},
                                         {"attr", testing::to_bytes(attr)}},
                             .cls_column = std::nullopt,
                             .defect = ""}});
    return testing::run_all(set, small_options(), {graph().x({"x", 2}).edge_attr({"attr", 1})}).message;
  };
  EXPECT_THAT(reason("[[1, 2], [3, 4]]", "[[0, 1], [1, 2]]", "1 2"), HasSubstr("an edge to node 2 of 2"));
  EXPECT_THAT(reason("[[1, 2]]", "[[0], [-1]]", "1"), HasSubstr("an edge to node -1 of 1"));
  EXPECT_THAT(reason("[[1, 2]]", "[[0], [0], [0]]", "1"), HasSubstr("has 3 lists"));
  EXPECT_THAT(reason("[[1, 2]]", "[[0], [0, 0]]", "1"), HasSubstr("lists of different lengths"));
  EXPECT_THAT(reason("[[1, 2], [3, 4]]", "[[0, 1], [1, 0], 1, 0]", "1 2 3"), HasSubstr("has numbers beside its lists"));
  EXPECT_THAT(reason("[[1, 2]]", "[0, 0, 0]", "1"), HasSubstr("no multiple of 2"));
  EXPECT_THAT(reason("[[1, 2, 3, 4]]", "[]", ""), HasSubstr("lists of 4 numbers where a row has 2"));
  EXPECT_THAT(reason("[[1, 2]]", "[[0], [0]", "1"), HasSubstr("a list without an end"));
  EXPECT_THAT(reason("[[1, 2]]", "[[[0]]]", "1"), HasSubstr("no number"));
  EXPECT_THAT(reason("[[1, 2]]", "[[0], [0]]", "1 2"), HasSubstr("has 1 edges, and attributes of 2"));
}

// Each row's first byte, beside how many bytes it has: [rows, 2].
dimensions first_bytes(std::span<const std::span<const std::byte>> rows, const batch_context&,
                       std::span<std::byte> target) {
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::int32_t made[] = {static_cast<std::int32_t>(rows[row][0]), static_cast<std::int32_t>(rows[row].size())};
    std::memcpy(target.data() + row * sizeof made, made, sizeof made);
  }
  return {static_cast<std::int64_t>(rows.size()), 2};
}

fake_dataset letters(std::uint64_t count) {
  std::vector<fake_sample> samples(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    samples[i].members.push_back({"txt", testing::to_bytes(std::string(1 + i % 5, static_cast<char>('a' + i)))});
    if (i % 6 == 2) samples[i].defect = "damaged";
  }
  return fake_dataset(samples);
}

TEST(collated, a_function_has_the_rows_that_are_there_and_makes_one_tensor) {
  const testing::watchdog dog("collate functions");
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    const fake_dataset set = letters(24);
    loader_options options = small_options();
    options.on_corrupt = policy;
    loader train(set, options, collated("pairs", dtype::i32, 8 * 8, first_bytes).from("txt"), text("txt"));
    for (const batch& got : train.blocking()) {
      EXPECT_THAT(got.outputs(), ::testing::ElementsAre("pairs", "txt", "txt.offsets"));
      ASSERT_EQ(got["pairs"].shape, (dimensions{got.valid_rows(), 2}));
      std::vector<std::int32_t> wanted;
      for (const std::uint64_t id : got.ids()) {
        wanted.push_back(static_cast<std::int32_t>('a' + id));
        wanted.push_back(static_cast<std::int32_t>(1 + id % 5));
      }
      EXPECT_EQ(values_of<std::int32_t>(got, "pairs"), wanted);
    }
  }
}

TEST(collated, what_the_function_does_wrong_ends_the_run_by_name) {
  const testing::watchdog dog("collate functions that fail");
  const auto message = [](const collated::function& make) {
    loader_options options = small_options();
    options.on_corrupt = corrupt_policy::skip;
    const testing::seen_run run =
        testing::run_all(letters(24), options, {collated("pairs", dtype::i32, 64, make).from("txt")});
    EXPECT_EQ(run.failed, errc::callback);
    EXPECT_TRUE(run.batches.empty());
    return run.message;
  };
  EXPECT_THAT(message([](auto, const auto&, auto) -> dimensions { throw std::runtime_error("no idea"); }),
              HasSubstr("field 'pairs', batch 0 of epoch 0: its function threw"));
  EXPECT_THAT(message([](auto, const auto&, auto) -> dimensions { return {3, 6}; }),
              HasSubstr("more than the 64 bytes that it has"));
  EXPECT_THAT(message([](auto, const auto&, auto) -> dimensions { return {1 << 30, 1 << 30, 1 << 30, 1 << 30}; }),
              HasSubstr("more than the 64 bytes"));
  EXPECT_THROW(collated("pairs", dtype::i32, 0, first_bytes), error);
  const testing::seen_run scalar = testing::run_all(
      letters(24), small_options(),
      {collated("one", dtype::i64, 4, [](auto, const auto&, auto) -> dimensions { return {}; }).from("txt")});
  EXPECT_EQ(scalar.failed, errc::callback);
}

}  // namespace
}  // namespace leat

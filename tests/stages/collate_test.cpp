#include "stages/run/collate.hpp"

#include "io/arena/arena.hpp"
#include "io/arena/lease_pool.hpp"
#include "stages/batch/batch_layout.hpp"
#include "stages/batch/batch_state.hpp"
#include "stages/run/batch_in_flight.hpp"
#include "tests/support/seeds.hpp"

#include <leat/batch.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

// A batch whose row r holds the numbers r (i32 x 3), and r times the letter 'a' + r.
class filled {
 public:
  explicit filled(std::uint32_t rows)
      : layout(std::make_shared<const batch_layout>(
            std::vector<output_spec>{{.name = "numbers", .type = dtype::i32, .row_shape = {3}, .ragged = false},
                                     {.name = "letters", .type = dtype::u8, .row_shape = {}, .ragged = true}},
            rows)),
        pool_(std::make_shared<io::arena>(io::arena_options{.bytes_max = 1 << 20, .pages = io::huge_pages::off}),
              {.bytes_max = 1 << 20, .name = "batches"}) {
    batch.plan.epoch = 3;
    batch.plan.index = 5;
    std::size_t ragged = 0;
    for (std::uint32_t row = 0; row < rows; ++row) {
      sample_in_flight& slot = batch.samples.emplace_back();
      slot.owner = &batch;
      slot.row = row;
      batch.plan.picks.push_back({.sample = 100 + row});
      batch.names.push_back("sample " + std::to_string(row));
      batch.row_digests.emplace_back().bytes[0] = static_cast<std::uint8_t>(row);
      batch.plan.ragged.push_back({.offset = ragged, .capacity = row + std::size_t{2}});
      batch.ragged_bytes.push_back(row);
      ragged += row + std::size_t{2};
    }
    batch.plan.buffers = {{.offset = layout->fixed_bytes(), .bytes = ragged}};
    batch.memory = std::move(*pool_.try_lease(layout->bytes({&ragged, 1})));
    std::byte* const base = batch.memory.data();
    std::memset(base, 0xEE, batch.memory.size());
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::int32_t numbers[3] = {static_cast<int>(row), static_cast<int>(row), static_cast<int>(row)};
      std::memcpy(base + layout->outputs()[0].offset + row * sizeof numbers, numbers, sizeof numbers);
      std::memset(base + batch.plan.buffers[0].offset + batch.ragged_of(row)[0].offset, 'a' + static_cast<int>(row),
                  row);
    }
  }

  std::shared_ptr<const batch_layout> layout;
  batch_in_flight batch;

 private:
  io::lease_pool pool_;
};

void expect_rows(const leat::batch& got, const std::vector<std::uint32_t>& rows) {
  ASSERT_EQ(got.valid_rows(), rows.size());
  EXPECT_EQ(got["numbers"].shape, (dimensions{static_cast<std::int64_t>(rows.size()), 3}));
  const auto offsets = got["letters.offsets"].as<std::int64_t>();
  ASSERT_EQ(offsets.size(), rows.size() + 1);
  EXPECT_EQ(offsets[0], 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint32_t row = rows[i];
    EXPECT_EQ(got.ids()[i], 100 + row);
    EXPECT_EQ(got.names()[i], "sample " + std::to_string(row));
    EXPECT_EQ(got.row_digests()[i].bytes[0], row);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_EQ((got["numbers"].as<std::int32_t>()[3 * i + k]), static_cast<std::int32_t>(row));
    }
    EXPECT_EQ(offsets[i + 1] - offsets[i], row);
    const auto letters = got.bytes("letters", i);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(letters.data()), letters.size()),
              std::string(row, static_cast<char>('a' + row)));
  }
  EXPECT_EQ(got["letters"].bytes(), static_cast<std::size_t>(offsets[rows.size()]));
}

TEST(collate, closes_holes_in_order_whatever_rows_are_missing) {
  testing::for_each_seed(60, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    filled f(1 + static_cast<std::uint32_t>(random() % 20));
    const std::uint64_t share = random() % 5;  // none, some, many, all
    std::vector<std::uint32_t> left;
    for (std::uint32_t row = 0; row < f.batch.rows(); ++row) {
      f.batch.samples[row].corrupt = random() % 4 < share;
      if (!f.batch.samples[row].corrupt) left.push_back(row);
    }
    const auto bytes_before = f.batch.memory.data();
    leat::batch got(collate(f.batch, f.layout, true, true));
    EXPECT_FALSE(f.batch.memory);
    EXPECT_EQ(got.details().memory.data(), bytes_before) << "in place";
    expect_rows(got, left);
    EXPECT_EQ(got.epoch(), 3U);
    EXPECT_EQ(got.index(), 5U);
    EXPECT_TRUE(got.content_digest());
    const std::size_t used = bytes_used(got.details());
    const auto* const end = static_cast<const std::byte*>(got["letters"].data) + got["letters"].bytes();
    EXPECT_LE(used, got.details().memory.size());
    EXPECT_GE(used, left.empty() ? 8 : static_cast<std::size_t>(end - bytes_before));
  });
}

TEST(collate, of_no_rows_is_a_batch_all_the_same) {
  filled f(4);
  for (sample_in_flight& slot : f.batch.samples) slot.corrupt = true;
  const leat::batch got(collate(f.batch, f.layout, true, true));
  expect_rows(got, {});
  EXPECT_TRUE(got.content_digest());
}

TEST(collate, names_and_digests_only_where_they_are_wanted) {
  filled f(4);
  const leat::batch got(collate(f.batch, f.layout, false, false));
  EXPECT_TRUE(got.names().empty());
  EXPECT_TRUE(got.row_digests().empty());
  EXPECT_FALSE(got.content_digest());
  EXPECT_EQ(got.valid_rows(), 4U);
}

TEST(batch_layout, starts_every_tensor_where_vector_units_like_it) {
  const batch_layout layout({{.name = "a", .type = dtype::u8, .row_shape = {3}, .ragged = false},
                             {.name = "b", .type = dtype::f32, .row_shape = {5, 7}, .ragged = false},
                             {.name = "c", .type = dtype::u8, .row_shape = {}, .ragged = true}},
                            10);
  std::map<std::size_t, std::size_t> used;  // from, to
  for (const auto& place : layout.outputs()) {
    EXPECT_EQ(place.offset % tensor_alignment_bytes, 0U);
    used[place.offset] = place.offset + (place.spec.ragged ? 11 * sizeof(std::int64_t) : 10 * place.row_bytes);
  }
  ASSERT_EQ(used.size(), 3U);
  std::size_t end = 0;
  for (const auto& [from, to] : used) {
    EXPECT_GE(from, end);
    end = to;
  }
  EXPECT_GE(layout.fixed_bytes(), end);
  const std::size_t ragged[] = {1000};
  EXPECT_EQ(layout.bytes(ragged), layout.fixed_bytes() + 1024);
}

// A batch of one row of 256 is a copy of about one row.
TEST(batch_layout, has_what_is_large_behind_what_is_small_so_that_few_rows_are_few_bytes) {
  const auto layout = std::make_shared<const batch_layout>(
      std::vector<output_spec>{{.name = "jpg", .type = dtype::u8, .row_shape = {224, 224, 3}, .ragged = false},
                               {.name = "cls", .type = dtype::i64, .row_shape = {}, .ragged = false}},
      256);
  EXPECT_EQ(layout->outputs()[0].spec.name, "jpg") << "in the order of the fields";
  leat::batch::state one;
  one.layout = layout;
  one.rows = 1;
  EXPECT_EQ(bytes_used(one), 256 * sizeof(std::int64_t) + 224 * 224 * 3);
}

}  // namespace
}  // namespace leat::stages

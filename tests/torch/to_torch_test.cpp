// Batches as at::Tensor: their types and bytes, how long they keep the batch's memory, and epochs of torch::data.
#include <leat/loader.hpp>
#include <leat/torch.hpp>
#include <leat/torch_dataset.hpp>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/data/dataloader.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

dataset numbers(std::uint64_t count) {
  return from_function(count, [](std::uint64_t sample) { return std::vector(1, std::byte(sample)); },
                       {.field = "n", .bytes_max = 1, .described_as = "its number"});
}

loader_options four_rows() {
  return {.batch_size = 4, .shuffle = false, .epochs = 1, .host_bytes_max = std::size_t{16} << 20};
}

std::string repeat(std::span<const std::byte> stored, const sample_context& /*of*/, std::span<std::byte> row) {
  std::memset(row.data(), static_cast<int>(stored[0]) % 2, row.size());
  return {};
}

TEST(to_torch, gives_each_type_its_own_and_the_batchs_own_bytes) {
  const std::pair<dtype, at::ScalarType> types[] = {
      {dtype::u8, at::kByte},     {dtype::i8, at::kChar},       {dtype::u16, at::kUInt16}, {dtype::i16, at::kShort},
      {dtype::u32, at::kUInt32},  {dtype::i32, at::kInt},       {dtype::u64, at::kUInt64}, {dtype::i64, at::kLong},
      {dtype::f16, at::kHalf},    {dtype::bf16, at::kBFloat16}, {dtype::f32, at::kFloat},  {dtype::f64, at::kDouble},
      {dtype::boolean, at::kBool}};
  for (const auto& [ours, theirs] : types) {
    loader train(numbers(4), four_rows(), custom("n", ours, {2, 3}, repeat));
    const std::optional<batch> got = train.next_blocking();
    ASSERT_TRUE(got);
    const batch_tensor view = (*got)["n"];
    const at::Tensor made = to_torch(view);
    EXPECT_EQ(made.scalar_type(), theirs) << name(ours);
    EXPECT_EQ(made.sizes(), at::IntArrayRef({4, 2, 3}));
    EXPECT_TRUE(made.is_contiguous());
    EXPECT_TRUE(made.is_cpu());
    EXPECT_EQ(made.data_ptr(), view.data) << "no copy";
    EXPECT_EQ(made.nbytes(), view.bytes());
    EXPECT_EQ(std::memcmp(made.data_ptr(), view.data, view.bytes()), 0);
  }
}

TEST(to_torch, of_an_output_without_elements_is_empty) {
  const dataset empty =
      from_function(1, [](std::uint64_t) { return std::vector<std::byte>(); }, {.field = "n", .bytes_max = 1});
  loader train(empty, four_rows(), bytes("n"));
  const std::optional<batch> got = train.next_blocking();
  ASSERT_TRUE(got);
  EXPECT_EQ(to_torch((*got)["n"]).numel(), 0);
}

TEST(to_torch, keeps_the_memory_of_its_batch_until_the_last_view_ends) {
  loader_options options = four_rows();
  options.epochs = 0;
  options.held_patience = std::chrono::milliseconds(1);
  std::optional<loader> train(std::in_place, numbers(64), options, custom("n", dtype::f32, {5}, repeat));
  std::vector<at::Tensor> kept;
  for (std::uint32_t i = 0; i < train->plan().batches; ++i) {
    std::optional<batch> got = train->next_blocking();
    if (!got) got = train->next_blocking();  // an epoch's end
    kept.push_back(to_torch((*got)["n"]).select(0, 3));
  }
  EXPECT_THROW(static_cast<void>(train->next_blocking()), error) << "all memory is held by tensors";
  const at::Tensor copy = kept.back().clone();
  kept.erase(kept.begin());
  EXPECT_NO_THROW(static_cast<void>(train->next_blocking()));
  train.reset();
  EXPECT_TRUE(kept.back().equal(copy)) << "also after the loader has ended";
}

TEST(to_torch, gives_nothing_away_where_it_throws) {
  loader train(numbers(4), four_rows(), custom("n", dtype::f32, {5}, repeat));
  std::optional<batch> got = train.next_blocking();
  const batch_tensor view = (*got)["n"];
  got->release_on({});
  EXPECT_THROW(static_cast<void>(to_torch(view)), error);
}

TEST(torch_dataset, gives_an_epoch_for_each_begin) {
  loader_options options = four_rows();
  options.epochs = 3;
  loader train(numbers(10), options, custom("x", dtype::f32, {5}, repeat).from("n"),
               custom("y", dtype::u8, {1}, repeat).from("n"));
  auto batches = torch::data::make_data_loader(torch_dataset(train, "x", "y"), torch::data::DataLoaderOptions());
  std::vector<std::int64_t> rows;
  for (const auto& example : *batches) {
    EXPECT_EQ(example.data.size(1), 5);
    rows.push_back(example.target.size(0));
  }
  EXPECT_EQ(rows, (std::vector<std::int64_t>{4, 4, 2}));
  for ([[maybe_unused]] const auto& example : *batches) break;
  rows.clear();
  for (const auto& example : *batches) rows.push_back(example.data.size(0));
  EXPECT_EQ(rows, (std::vector<std::int64_t>{4, 4, 2})) << "the epoch that was left is over";
  EXPECT_TRUE(train.finished());
}

TEST(torch_dataset, of_a_resumed_loader_goes_on) {
  loader_options options = four_rows();
  const field x = custom("x", dtype::f32, {5}, repeat).from("n").described_as("repeated");
  const field y = custom("y", dtype::u8, {1}, repeat).from("n").described_as("repeated");
  loader first(numbers(10), options, x, y);
  const std::optional<batch> got = first.next_blocking();
  options.resume = first.state_after(*got);
  loader second(numbers(10), options, x, y);
  auto batches = torch::data::make_data_loader(torch_dataset(second, "x", "y"), torch::data::DataLoaderOptions());
  std::int64_t rows = 0;
  for (const auto& example : *batches) rows += example.data.size(0);
  EXPECT_EQ(rows, 6);
}

}  // namespace
}  // namespace leat

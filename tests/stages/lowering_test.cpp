#include "stages/plan/lowering.hpp"

#include "io/files/source.hpp"
#include "tests/support/bound_field.hpp"

#include <leat/field.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leat::stages {
namespace {

using datasets::part_form;
using datasets::part_forms;

/// One field, of which values have these forms.
class of_forms final : public datasets::dataset_model {
 public:
  of_forms(part_forms forms, field_info info) {
    fields_.push_back(std::move(info));
    forms_.push_back(forms);
  }

  std::uint64_t size() const noexcept override { return 1; }
  void parts(std::uint64_t, std::span<const datasets::need>, datasets::part_list&) const override {}
  std::string name(std::uint64_t) const override { return "0"; }
  dataset_memory memory() const override { return {}; }
};

field_info floats(std::uint64_t bytes) {
  field_info info;
  info.name = "x";
  info.kind = field_kind::tensor;
  info.type = dtype::f32;
  info.shape = {static_cast<std::int64_t>(bytes / sizeof(float))};
  info.bytes_max = bytes;
  info.bytes_total = bytes;
  info.alignment = io::alignment_max_bytes;
  info.stored_block_bytes_max = 100;
  info.decoded_block_bytes_max = bytes;
  info.blocks_max = 1;
  return info;
}

std::unique_ptr<field_program> bound_to(const datasets::dataset_model& dataset, const field& what) {
  return testing::bound(what, dataset);
}

TEST(lowering, says_of_each_form_what_its_rows_ask_for) {
  struct expected {
    part_forms forms;
    bool in_blocks, is_fetched, is_awaited, as_stored;
    std::uint64_t read_bytes_max;
  };
  const expected all[] = {
      {part_form::stored, false, true, false, true, 4096},
      {part_form::value, true, true, false, false, 0},
      {part_form::box, true, true, false, false, 0},
      {part_form::produced, false, false, false, false, 4096},
      {part_form::awaited, false, false, true, false, 4096},
      {part_form::stored | part_form::box, true, true, false, false, 4096},
      {part_form::produced | part_form::stored, false, true, false, false, 4096},
  };
  for (std::size_t i = 0; i < std::size(all); ++i) {
    const lowered_field found = lower(of_forms(all[i].forms, floats(4096)), 0);
    EXPECT_EQ(found.in_blocks, all[i].in_blocks) << i;
    EXPECT_EQ(found.is_fetched, all[i].is_fetched) << i;
    EXPECT_EQ(found.is_awaited, all[i].is_awaited) << i;
    EXPECT_EQ(found.as_stored, all[i].as_stored) << i;
    EXPECT_EQ(found.read_bytes_max, all[i].read_bytes_max) << i;
  }
}

TEST(lowering, reads_direct_to_row_rows_whose_bytes_are_whole_pages_and_stored) {
  const auto reads = [](part_forms forms, std::uint64_t bytes) {
    const of_forms dataset(forms, floats(bytes));
    return reads_into_rows(dataset, *bound_to(dataset, array{"x"}));
  };
  EXPECT_TRUE(reads(part_form::stored, 8192));
  EXPECT_FALSE(reads(part_form::stored, 8192 - 4));
  EXPECT_FALSE(reads(part_form::box, 8192));
  EXPECT_FALSE(reads(part_form::stored | part_form::box, 8192));
}

TEST(lowering, expands_a_block_where_its_row_lies_only_if_it_is_the_row) {
  const of_forms dataset(part_form::box, floats(4096));
  const auto program = bound_to(dataset, array{"x"});
  EXPECT_TRUE(takes_bytes_as_they_are(*program));
  EXPECT_EQ(staging_row_bytes_of(dataset, *program), 0U);
  EXPECT_TRUE(expands_into_row(*program, 4096));
  EXPECT_FALSE(expands_into_row(*program, 8192));
  EXPECT_EQ(expanded_bytes_of(dataset, *program, 1 << 20), 0U);
}

TEST(lowering, wants_of_a_crop_no_more_blocks_than_it_can_touch) {
  field_info info = floats(4096);
  info.shape = {100, 100};
  info.chunk = {1, 10, 10};
  info.blocks_max = 100;
  info.bytes_max = info.bytes_total = 40'000;
  const of_forms dataset(part_form::box, info);
  EXPECT_EQ(blocks_wanted(info, *bound_to(dataset, array{"x"})), 100U);
  // 20 elements that begin anywhere lie in 3 chunks of 10, 5 in 2.
  EXPECT_EQ(blocks_wanted(info, *bound_to(dataset, array{"x"}.random_crop({20, 5}))), 6U);
}

}  // namespace
}  // namespace leat::stages

#include "stages/run/row_placement.hpp"

#include "tests/support/fake_dataset.hpp"
#include "tests/support/verbatim_field.hpp"

#include <leat/field.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>
#include <leat/targets.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

using thread = row_placement::thread;

// The policy of a run with these fields.
row_placement placement_of(const dataset& samples, const std::vector<field>& fields, bool read_again = false) {
  std::vector<std::unique_ptr<field_program>> programs;
  for (const field& each : fields) each.model().bind(*samples.model(), finished_by::host, programs);
  return {*samples.model(), programs, read_again};
}

// One sample with a member of so many bytes, and a class that the dataset knows, or a member that holds it.
testing::fake_dataset one_of(std::size_t bytes, bool class_known = true) {
  testing::fake_sample sample;
  sample.members.push_back({"bin", std::vector<std::byte>(bytes)});
  if (class_known) {
    sample.cls_column = 1;
  } else {
    sample.members.push_back({"cls", testing::to_bytes("1")});
  }
  return testing::fake_dataset({sample});
}

thread of_a_sample(const row_placement& placement, bool read_into = false, bool corrupt = false) {
  sample_in_flight sample;
  sample.read_into = read_into;
  sample.corrupt = corrupt;
  return placement.of(sample);
}

TEST(row_placement, leaves_small_copies_to_the_io_thread_and_larger_ones_to_a_decode_thread) {
  const testing::fake_dataset small = one_of(row_placement::cheap_row_bytes);
  const testing::fake_dataset large = one_of(row_placement::cheap_row_bytes + 1);
  const std::vector<field> fields{testing::verbatim("bin")};
  EXPECT_EQ(of_a_sample(placement_of(small, fields)), thread::io);
  EXPECT_TRUE(placement_of(small, fields).io_threads_write());
  EXPECT_EQ(of_a_sample(placement_of(large, fields)), thread::decode);
  EXPECT_FALSE(placement_of(large, fields).io_threads_write());
}

TEST(row_placement, leaves_a_sample_to_a_decode_thread_if_one_of_its_fields_is_more_than_a_copy) {
  EXPECT_EQ(of_a_sample(placement_of(one_of(100), {testing::verbatim("bin"), label("cls")})), thread::io)
      << "a class that the dataset knows";
  const testing::fake_dataset parsed = one_of(100, false);
  EXPECT_EQ(of_a_sample(placement_of(parsed, {testing::verbatim("bin"), label("cls")})), thread::decode);
  EXPECT_EQ(of_a_sample(placement_of(parsed, {testing::verbatim("bin")})), thread::io);
  EXPECT_EQ(of_a_sample(placement_of(parsed, {bytes("bin")})), thread::decode) << "of any length";
  EXPECT_EQ(of_a_sample(placement_of(parsed, {testing::verbatim("bin"), image("bin").resize(4, 4)})), thread::decode);
}

// A field of two outputs, each a copy.
class twice_program final : public field_program {
 public:
  explicit twice_program(std::int64_t bytes)
      : field_program({{.name = "a", .row_shape = {bytes}, .copied = true},
                       {.name = "b", .row_shape = {bytes}, .copied = true}}) {}
  outcome<void> decode(field_scratch&, const decode_input&, std::span<row_target>) const override { return {}; }
};

TEST(row_placement, counts_all_outputs_of_a_field_together) {
  const testing::fake_dataset set = one_of(1);
  for (const bool fits : {true, false}) {
    std::vector<std::unique_ptr<field_program>> programs;
    programs.push_back(std::make_unique<twice_program>(row_placement::cheap_row_bytes / 2 + (fits ? 0 : 1)));
    EXPECT_EQ(of_a_sample({*set.get().model(), programs, false}), fits ? thread::io : thread::decode);
  }
}

TEST(row_placement, keeps_rows_that_are_looked_at_again_away_from_the_io_thread) {
  const row_placement placement = placement_of(one_of(100), {testing::verbatim("bin")}, true);
  EXPECT_EQ(of_a_sample(placement), thread::decode);
  EXPECT_EQ(of_a_sample(placement, true), thread::decode);
}

TEST(row_placement, has_nothing_left_to_do_for_rows_that_were_read_to_their_place) {
  const row_placement placement = placement_of(one_of(row_placement::cheap_row_bytes + 1), {testing::verbatim("bin")});
  EXPECT_EQ(of_a_sample(placement, true), thread::io);
}

TEST(row_placement, leaves_what_waits_for_all_of_a_sample_to_a_decode_thread) {
  testing::fake_sample sample;
  sample.members.push_back({"jpg", std::vector<std::byte>(100)});
  sample.members.push_back({"json", std::vector<std::byte>(100)});
  const testing::fake_dataset samples({sample});
  const image picture = image("jpg").random_resized_crop(8);
  EXPECT_EQ(of_a_sample(placement_of(samples, {picture}), true), thread::io);
  EXPECT_EQ(of_a_sample(placement_of(samples, {picture, boxes("json").follows("jpg")}), true), thread::decode)
      << "a block has only been kept for it";
}

TEST(row_placement, leaves_a_corrupt_sample_to_a_decode_thread_which_describes_it) {
  const row_placement placement = placement_of(one_of(100), {testing::verbatim("bin")});
  EXPECT_EQ(of_a_sample(placement, false, true), thread::decode);
  EXPECT_EQ(of_a_sample(placement, true, true), thread::decode);
}

TEST(row_placement, leaves_what_a_call_produces_to_a_decode_thread) {
  const dataset called =
      from_function(4, [](std::uint64_t) { return std::vector<std::byte>(8); }, {.field = "bin", .bytes_max = 8});
  EXPECT_EQ(of_a_sample(placement_of(called, {testing::verbatim("bin")})), thread::decode);
}

}  // namespace
}  // namespace leat::stages

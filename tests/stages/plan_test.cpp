#include "stages/plan/plan.hpp"

#include "stages/batch/batch_layout.hpp"
#include "stages/batch/batch_plan.hpp"
#include "stages/run/batch_in_flight.hpp"
#include "tests/support/bound_field.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/verbatim_field.hpp"

#include <leat/clip.hpp>
#include <leat/field.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_tokens.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

using testing::fake_dataset;
using testing::fake_layout;
using testing::fake_sample;

// Everything a plan needs, for one batch of all samples in their order.
struct planned {
  planned(const std::vector<fake_sample>& samples, const std::vector<field>& fields,
          fake_layout layout_of_files = fake_layout::shards, planner::settings how = {})
      : set(samples, {.layout = layout_of_files, .shards = 1, .disks = 1, .disk = {}}) {
    std::vector<output_spec> outputs;
    for (const field& each : fields) {
      each.model().bind(*set.get().model(), stages::finished_by::host, programs);
    }
    for (const auto& each : programs) outputs.insert(outputs.end(), each->outputs().begin(), each->outputs().end());
    layout = std::make_unique<batch_layout>(outputs, static_cast<std::uint32_t>(samples.size()));
    plan = std::make_unique<planner>(*set.get().model(), programs, *layout, how);
    for (std::uint64_t i = 0; i < samples.size(); ++i) batch.picks.push_back({.sample = i, .draw = i});
    plan->plan(batch);
  }
  [[nodiscard]] std::vector<batch_plan::part> parts_of(std::uint32_t row) const {
    std::vector<batch_plan::part> found;
    for (const batch_plan::part& each : batch.parts) {
      if (each.row == row) found.push_back(each);
    }
    return found;
  }
  [[nodiscard]] std::string reason_of(std::uint32_t row) const {
    for (const batch_plan::corrupt_row& each : batch.corrupt) {
      if (each.row == row) return each.reason;
    }
    return "";
  }
  [[nodiscard]] const batch_plan::ragged_row& ragged(std::uint32_t row, std::size_t output) const {
    return batch.ragged[row * batch.buffers.size() + output];
  }
  [[nodiscard]] std::vector<std::size_t> ragged_bytes() const {
    std::vector<std::size_t> bytes;
    for (const batch_plan::ragged_buffer& each : batch.buffers) bytes.push_back(each.bytes);
    return bytes;
  }
  fake_dataset set;
  std::vector<std::unique_ptr<field_program>> programs;
  std::unique_ptr<batch_layout> layout;
  std::unique_ptr<planner> plan;
  batch_plan batch;
};

fake_sample sample_of(std::vector<std::pair<std::string, std::size_t>> members) {
  fake_sample made;
  for (const auto& [name, bytes] : members) {
    made.members.push_back({name, std::vector<std::byte>(bytes, std::byte{'1'})});
  }
  return made;
}

TEST(plan, reads_neighbours_of_one_sample_together) {
  const planned p({sample_of({{"jpg", 5000}, {"cls", 3}, {"txt", 100}}), sample_of({{"jpg", 700}, {"cls", 2}})},
                  {bytes("jpg"), label("cls")});
  ASSERT_EQ(p.batch.reads.size(), 2U);
  for (std::uint32_t row = 0; row < 2; ++row) {
    const batch_plan::read& read = p.batch.reads[row];
    const std::vector<batch_plan::part> parts = p.parts_of(row);
    EXPECT_EQ(read.offset, p.set.where(row, "jpg").offset);
    EXPECT_EQ(read.offset + read.bytes, p.set.where(row, "cls").offset + p.set.where(row, "cls").stored_bytes);
    ASSERT_EQ(parts.size(), 2U);
    for (std::size_t part = 0; part < 2; ++part) {
      const extent where = p.set.where(row, part == 0 ? "jpg" : "cls");
      EXPECT_EQ(parts[part].read, row);
      EXPECT_EQ(parts[part].program, part);
      EXPECT_EQ(parts[part].offset, where.offset);
      EXPECT_EQ(parts[part].bytes, where.stored_bytes);
    }
    EXPECT_EQ(read.first_row, row);
    EXPECT_EQ(read.rows, 1U);
    EXPECT_EQ(read.holder, row);
  }
}

TEST(plan, does_not_read_across_a_wide_gap_or_from_file_to_file) {
  const planned wide({sample_of({{"jpg", 10}, {"between", planner::gap_bytes_max + 600}, {"cls", 1}})},
                     {bytes("jpg"), label("cls")});
  EXPECT_EQ(wide.batch.reads.size(), 2U);
  const planned narrow({sample_of({{"jpg", 10}, {"between", planner::gap_bytes_max - 2000}, {"cls", 1}})},
                       {bytes("jpg"), label("cls")});
  EXPECT_EQ(narrow.batch.reads.size(), 1U);

  const planned loose({sample_of({{"jpg", 10}, {"cls", 1}})}, {bytes("jpg"), label("cls")},
                      fake_layout::file_per_member);
  ASSERT_EQ(loose.batch.reads.size(), 2U);
  // One lease for both, held by the first.
  EXPECT_EQ(loose.batch.reads[0].holder, 0U);
  EXPECT_EQ(loose.batch.reads[1].holder, 0U);
}

TEST(plan, reads_only_what_some_field_wants) {
  const planned p({sample_of({{"jpg", 10}, {"cls", 1}, {"txt", 100}})}, {label("cls")});
  ASSERT_EQ(p.batch.reads.size(), 1U);
  EXPECT_EQ(p.batch.reads[0].bytes, 1U);
  ASSERT_EQ(p.plan->wanted().size(), 1U);
}

TEST(plan, reads_a_member_that_two_fields_want_once) {
  const planned p({sample_of({{"jpg", 50}, {"png", 60}})}, {image("jpg").resize(4, 4), bytes("png")});
  EXPECT_EQ(p.batch.reads.size(), 1U);
  const planned same({sample_of({{"jpg", 50}})}, {image("jpg").resize(4, 4)});
  ASSERT_EQ(same.batch.reads.size(), 1U);
  EXPECT_EQ(same.batch.parts.size(), 1U);
}

TEST(plan, takes_the_first_field_that_the_sample_has) {
  planned p({sample_of({{"jpg", 50}}), sample_of({{"png", 60}}), sample_of({{"png", 60}, {"jpg", 50}})},
            {image("jpg").resize(4, 4)});
  const auto& model = *p.set.get().model();
  const auto chosen = [&](std::uint32_t row) { return model.fields()[p.batch.field_of(row, 0)].name; };
  EXPECT_EQ(chosen(0), "jpg");
  EXPECT_EQ(chosen(1), "png");
  EXPECT_EQ(chosen(2), "jpg");
}

TEST(plan, reads_the_frames_of_a_clip_alone_whichever_these_are) {
  std::vector<std::pair<std::string, std::size_t>> frames;
  for (int frame = 0; frame < 9; ++frame) frames.emplace_back(std::to_string(frame) + ".jpg", 50);
  const std::vector<fake_sample> samples(20, sample_of(frames));
  const planned p(samples,
                  {clip(image("clip").from("*.jpg").resize(4, 4), {.frames = 3, .stride = 2, .random_start = true})});
  std::set<std::uint64_t> begins;
  for (std::uint32_t row = 0; row < samples.size(); ++row) {
    const std::vector<batch_plan::part> parts = p.parts_of(row);
    std::vector<extent> places;
    p.plan->places(p.batch.picks[row], places);
    ASSERT_EQ(parts.size(), 3U);
    ASSERT_EQ(places.size(), 3U);
    const std::uint64_t from = p.set.where(row, "0.jpg").offset;
    const std::uint64_t step = p.set.where(row, "2.jpg").offset - from;
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(places[k].offset, parts[k].offset);
      EXPECT_EQ(parts[k].offset, parts[0].offset + k * step);
    }
    begins.insert(parts[0].offset - from);
  }
  EXPECT_EQ(begins.size(), 5U) << "of 0 to 4";
}

TEST(plan, reads_nothing_for_members_without_bytes) {
  const planned p({sample_of({{"txt", 0}})}, {text("txt")});
  EXPECT_EQ(p.batch.reads.size(), 0U);
  EXPECT_TRUE(p.batch.corrupt.empty());
  EXPECT_NE(p.batch.field_of(0, 0), batch_plan::no_field);
}

TEST(plan, marks_a_sample_without_a_field_and_names_what_it_has) {
  const planned p({sample_of({{"jpg", 10}, {"cls", 1}}), sample_of({{"jpg", 10}, {"txt", 5}}), fake_sample{}},
                  {bytes("jpg"), label("cls")});
  EXPECT_EQ(p.batch.corrupt.size(), 2U);
  EXPECT_EQ(p.reason_of(1), "no field 'cls' in this sample; it has jpg, txt");
  EXPECT_TRUE(p.parts_of(1).empty());
  EXPECT_EQ(p.reason_of(2), "no field 'jpg' in this sample; it has none");
}

TEST(plan, marks_a_known_defect_and_reads_nothing_for_it) {
  fake_sample hurt = sample_of({{"cls", 1}});
  hurt.defect = "the shard ends inside it";
  const planned p({sample_of({{"cls", 1}}), hurt}, {label("cls")});
  EXPECT_EQ(p.batch.reads.size(), 1U);
  EXPECT_EQ(p.batch.corrupt.size(), 1U);
  EXPECT_EQ(p.reason_of(1), "the shard ends inside it");
}

TEST(plan, needs_no_member_where_the_dataset_knows_the_class) {
  fake_sample knows = sample_of({{"jpg", 10}});
  knows.cls_column = 7;
  const planned p({knows, sample_of({{"jpg", 10}, {"cls", 1}})}, {label("cls")});
  EXPECT_TRUE(p.batch.corrupt.empty());
  EXPECT_EQ(p.batch.field_of(0, 0), batch_plan::no_field);
  EXPECT_TRUE(p.parts_of(0).empty());
  EXPECT_EQ(p.parts_of(1).size(), 1U);
}

TEST(plan, gives_ragged_rows_the_room_of_their_extents_one_behind_the_other) {
  const planned p({sample_of({{"txt", 300}, {"json", 5}}), sample_of({{"txt", 0}, {"json", 7}}),
                   sample_of({{"txt", 20}, {"json", 0}})},
                  {text("txt"), bytes("json")});
  ASSERT_EQ(p.ragged_bytes(), (std::vector<std::size_t>{320, 12}));
  EXPECT_EQ(p.batch.buffers[0].offset, p.layout->fixed_bytes());
  EXPECT_EQ(p.batch.buffers[1].offset, p.layout->fixed_bytes() + align_tensor(320));
  EXPECT_EQ(p.batch.memory_bytes, p.layout->bytes(p.ragged_bytes()));
  EXPECT_EQ(p.ragged(0, 0).offset, 0U);
  EXPECT_EQ(p.ragged(1, 0).offset, 300U);
  EXPECT_EQ(p.ragged(2, 0).offset, 300U);
  EXPECT_EQ(p.ragged(2, 1).offset, 12U);
  EXPECT_EQ(p.ragged(2, 0).capacity, 20U);
}

TEST(plan, gives_every_row_the_largest_room_where_another_sample_may_take_it) {
  planned p({sample_of({{"txt", 300}}), sample_of({{"txt", 0}}), sample_of({{"json", 1}})}, {text("txt")},
            fake_layout::shards, {.substitutes = true});
  EXPECT_EQ(p.ragged_bytes(), (std::vector<std::size_t>{900}));
  EXPECT_FALSE(p.reason_of(2).empty());
  batch_in_flight flying;
  flying.plan = p.batch;
  flying.begin();
  flying.take_rows(0, 3);
  EXPECT_TRUE(flying.samples[2].corrupt);
  p.plan->plan_substitute(flying.plan, 2, {.sample = 0});
  flying.take_substitute(2, {.sample = 0});
  EXPECT_FALSE(flying.samples[2].corrupt);
  EXPECT_EQ(flying.samples[2].pick().sample, 0U);
  EXPECT_EQ(flying.samples[2].planned().sample, 2U);
  ASSERT_EQ(flying.samples[2].reads.size(), 1U);
  EXPECT_EQ(flying.reads[flying.samples[2].reads[0]].parts[0].row, 2U);
}

TEST(plan, can_be_made_again_in_the_same_place_for_another_batch) {
  planned p({sample_of({{"cls", 1}}), sample_of({{"cls", 2}}), sample_of({{"txt", 1}})}, {label("cls")});
  EXPECT_EQ(p.batch.reads.size(), 2U);
  p.batch.picks = {{.sample = 1}};
  p.plan->plan(p.batch);
  EXPECT_EQ(p.batch.rows(), 1U);
  EXPECT_EQ(p.batch.reads.size(), 1U);
  EXPECT_EQ(p.batch.reads[0].bytes, 2U);
  EXPECT_EQ(p.batch.parts.size(), 1U);
  EXPECT_TRUE(p.batch.corrupt.empty());
}

TEST(plan, bounds_ragged_outputs_by_the_largest_samples_and_not_by_the_largest_one) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  std::vector<fake_sample> samples{sample_of({{"txt", 10}, {"json", 1}}), sample_of({{"txt", 9 * mib}}),
                                   sample_of({{"json", 2}}), sample_of({{"txt", 30}, {"json", 3}})};
  samples[0].defect = "known to be damaged";
  const std::vector<field> fields{text("txt"), bytes("json")};
  const planned all(samples, fields);
  EXPECT_EQ(all.plan->largest_ragged_batch(), (std::vector<std::size_t>{9 * mib + 30, 5}));
  // Batches of two.
  const batch_layout pairs({all.programs[0]->outputs()[0], all.programs[1]->outputs()[0]}, 2);
  EXPECT_EQ(planner(*all.set.get().model(), all.programs, pairs, {}).largest_ragged_batch(),
            (std::vector<std::size_t>{9 * mib + 30, 5}));
  const batch_layout singles({all.programs[0]->outputs()[0], all.programs[1]->outputs()[0]}, 1);
  EXPECT_EQ(planner(*all.set.get().model(), all.programs, singles, {}).largest_ragged_batch(),
            (std::vector<std::size_t>{9 * mib, 3}));
  // A sample that comes twice may come in every row, as a substitute may.
  EXPECT_EQ(planner(*all.set.get().model(), all.programs, pairs, {.repeats = true}).largest_ragged_batch()[0],
            18 * mib);
  EXPECT_EQ(planner(*all.set.get().model(), all.programs, pairs, {.substitutes = true}).largest_ragged_batch()[0],
            18 * mib);
}

TEST(plan, gives_padded_rows_the_length_of_the_longest_rounded_up) {
  const std::vector<fake_sample> samples{sample_of({{"a", 6}}), sample_of({{"a", 26}}), sample_of({{"b", 9}})};
  const std::vector<field> fields{sequence("a").stored(dtype::u16).as(dtype::i32).pad({.multiple = 8}).mask()};
  for (const bool substitutes : {false, true}) {
    const planned p(samples, fields, fake_layout::shards, {.substitutes = substitutes});
    EXPECT_EQ(p.ragged_bytes(), (std::vector<std::size_t>{3 * 16 * 4, 3 * 16}));
    EXPECT_EQ(p.batch.buffers[0].row_bytes, 64U);
    EXPECT_EQ(p.ragged(2, 0).offset, 128U);
    EXPECT_EQ(p.ragged(0, 1).capacity, 16U);
    EXPECT_EQ(p.plan->largest_ragged_batch(), (std::vector<std::size_t>{256, 256})) << "aligned, as tensors are";
  }
}

// --- neighbouring rows ------------------------------------------------------------------------------------------------

std::vector<fake_sample> equal_samples(std::size_t count, std::size_t size) {
  return std::vector<fake_sample>(count, sample_of({{"bin", size}}));
}

TEST(plan, joins_no_read_of_rows_across_one_that_is_corrupt_as_planned) {
  std::vector<fake_sample> samples(5, sample_of({{"bin", 100}}));
  samples[2].defect = "damaged";
  const planned p(samples, {bytes("bin")}, fake_layout::columns, {.in_order = true});
  ASSERT_EQ(p.batch.reads.size(), 2U);
  EXPECT_EQ(p.batch.reads[0].rows, 2U);
  EXPECT_EQ(p.batch.reads[1].first_row, 3U);
  EXPECT_EQ(p.batch.reads[1].rows, 2U);
}

TEST(plan, reads_samples_of_neighbouring_rows_together_where_they_come_in_order) {
  const std::vector<field> fields{bytes("bin")};
  const planned apart(equal_samples(10, 1000), fields, fake_layout::columns);
  EXPECT_EQ(apart.batch.reads.size(), 10U);
  const planned joined(equal_samples(10, 1000), fields, fake_layout::columns, {.in_order = true});
  ASSERT_EQ(joined.batch.reads.size(), 1U);
  const batch_plan::read& read = joined.batch.reads[0];
  EXPECT_EQ(read.offset, 0U);
  EXPECT_EQ(read.bytes, 10'000U);
  EXPECT_FALSE(read.direct_to_row);
  EXPECT_EQ(read.first_row, 0U);
  EXPECT_EQ(read.rows, 10U);
  ASSERT_EQ(joined.batch.parts.size(), 10U);
  for (std::uint32_t row = 0; row < 10; ++row) {
    EXPECT_EQ(joined.batch.parts[row].row, row);
    EXPECT_EQ(joined.batch.parts[row].read, 0U);
    EXPECT_EQ(joined.batch.parts[row].offset, row * 1000U);
  }
}

TEST(plan, joins_no_more_than_a_lease_should_hold) {
  constexpr std::size_t quarter = planner::joined_bytes_max / 4;
  const planned joined(equal_samples(7, quarter), {bytes("bin")}, fake_layout::columns, {.in_order = true});
  ASSERT_EQ(joined.batch.reads.size(), 2U);
  EXPECT_EQ(joined.batch.reads[0].rows, 4U);
  EXPECT_EQ(joined.batch.reads[0].lease_bytes, planner::joined_bytes_max);
  EXPECT_EQ(joined.batch.reads[1].rows, 3U);
  // Room for each by itself: small ones that lie across pages take two each.
  const planned small(equal_samples(100, 3000), {bytes("bin")}, fake_layout::columns, {.in_order = true});
  ASSERT_EQ(small.batch.reads.size(), 3U);
  EXPECT_LE(small.batch.reads[0].lease_bytes, planner::joined_bytes_max);
  EXPECT_GT(small.batch.reads[0].lease_bytes, small.batch.reads[0].rows * 4096);
}

// Such a sample waits for two reads, which share a lease.
TEST(plan, joins_no_sample_that_needs_another_read_too) {
  const planned p(std::vector<fake_sample>(3, sample_of({{"bin", 40'000}, {"cls", 3}})), {bytes("bin"), label("cls")},
                  fake_layout::columns, {.in_order = true});
  EXPECT_EQ(p.batch.reads.size(), 6U);
}

TEST(plan, reads_what_lies_on_pages_and_stays_as_it_is_direct_to_row_its_rows) {
  const planned straight(equal_samples(3, 8192), {testing::verbatim("bin")}, fake_layout::columns);
  // Neighbours in the file and in the batch: one read, though nobody has said that they come in order.
  ASSERT_EQ(straight.batch.reads.size(), 1U);
  EXPECT_EQ(straight.batch.reads[0].direct_to_row, std::size_t{0});
  EXPECT_EQ(straight.batch.reads[0].bytes, 3 * 8192U);
  EXPECT_EQ(straight.batch.reads[0].rows, 3U);

  const planned odd(equal_samples(3, 8000), {testing::verbatim("bin")}, fake_layout::columns);
  ASSERT_EQ(odd.batch.reads.size(), 3U);
  EXPECT_FALSE(odd.batch.reads[0].direct_to_row);
  const planned shifted(equal_samples(3, 8192), {testing::verbatim("bin")}, fake_layout::shards);
  EXPECT_FALSE(shifted.batch.reads[0].direct_to_row);
}

TEST(plan, reads_rows_together_only_where_they_follow_one_another_in_file_and_batch) {
  planned p(equal_samples(6, 4096), {testing::verbatim("bin")}, fake_layout::columns);
  p.batch.picks.clear();
  for (const std::uint64_t sample : {4U, 5U, 0U, 2U, 3U, 1U}) p.batch.picks.push_back({.sample = sample});
  p.plan->plan(p.batch);
  ASSERT_EQ(p.batch.reads.size(), 4U);
  const auto expect = [&](std::size_t read, std::uint64_t offset, std::size_t to, std::size_t rows) {
    EXPECT_EQ(p.batch.reads[read].offset, offset);
    EXPECT_EQ(p.batch.reads[read].direct_to_row, to);
    EXPECT_EQ(p.batch.reads[read].rows, rows);
    EXPECT_EQ(p.batch.reads[read].bytes, rows * 4096);
  };
  expect(0, std::uint64_t{4} * 4096, 0, 2);
  expect(1, 0, std::size_t{2} * 4096, 1);
  expect(2, std::uint64_t{2} * 4096, std::size_t{3} * 4096, 2);
  expect(3, 4096, std::size_t{5} * 4096, 1);
}

TEST(plan, made_some_rows_at_a_time_gives_every_row_the_same_as_made_at_once) {
  std::vector<fake_sample> samples;
  for (std::size_t k = 0; k < 20; ++k) samples.push_back(sample_of({{"bin", 100 + 7 * k}, {"cls", 1 + k % 2}}));
  samples[13].defect = "known to be damaged";
  const planned whole(samples, {bytes("bin"), label("cls")});
  const planned fixed(samples, {label("cls")});
  ASSERT_TRUE(fixed.plan->in_steps());
  EXPECT_FALSE(whole.plan->in_steps());

  batch_plan stepped;
  stepped.picks = fixed.batch.picks;
  fixed.plan->begin(stepped);
  for (std::uint32_t row = 0; row < 20; row += 4) fixed.plan->plan_rows(stepped, row, row + 4);
  EXPECT_EQ(stepped, fixed.batch);
}

batch_plan plan_of(const dataset& samples, const field& wanted, const std::vector<pick>& picks) {
  std::vector<std::unique_ptr<field_program>> programs;
  programs.push_back(testing::bound(wanted, *samples.model()));
  const auto outputs = programs.front()->outputs();
  const batch_layout layout({outputs.begin(), outputs.end()}, static_cast<std::uint32_t>(picks.size()));
  batch_plan made;
  made.picks = picks;
  planner(*samples.model(), programs, layout, {.in_order = true, .seed = 5}).plan(made);
  return made;
}

// The same samples behind a view, which is asked for each.
dataset one_by_one(const dataset& samples) {
  std::vector<std::uint64_t> all(samples.size());
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  return samples.subset(all);
}

void expect_planned_as_one_by_one(const dataset& samples, const field& wanted) {
  std::vector<pick> in_order;
  for (std::uint64_t i = 0; i < samples.size(); ++i) in_order.push_back({.sample = i, .draw = 7 * i, .epoch = 3});
  std::vector<pick> with_gaps = in_order;
  with_gaps.erase(with_gaps.begin() + 2);
  std::vector<pick> twice = in_order;
  twice.insert(twice.begin() + 3, twice[3]);
  twice[3].draw += 1'000'000;
  std::vector<pick> backwards(in_order.rbegin(), in_order.rend());
  std::vector<pick> of_epochs = in_order;
  for (std::size_t row = 4; row < of_epochs.size(); ++row) of_epochs[row].epoch = 4;
  for (const std::vector<pick>& picks : {in_order, with_gaps, twice, backwards, of_epochs}) {
    const batch_plan made = plan_of(samples, wanted, picks);
    EXPECT_EQ(made, plan_of(one_by_one(samples), wanted, picks));
    EXPECT_EQ(made.parts.size(), picks.size());
  }
  EXPECT_LT(plan_of(samples, wanted, in_order).reads.size(), samples.size());
}

TEST(plan, of_values_at_equal_distances_is_the_one_that_is_made_of_each_value) {
  const testing::temporary_directory root;
  std::vector<std::string> paths;
  for (const std::size_t count : {std::size_t{1000}, std::size_t{40}, std::size_t{333}}) {
    const std::string path = root.path() / (std::to_string(paths.size()) + ".bin");
    paths.push_back(testing::write_file(path, testing::bytes_of(testing::counting<std::uint16_t>(count))));
  }
  const dataset files = open_tokens(paths, {.type = dtype::u16});
  for (const window_order order : {window_order::tiled, window_order::shifted, window_order::random}) {
    const tokens how{.length = 32, .type = dtype::i32, .windows = order};
    expect_planned_as_one_by_one(cut_windows(files, how), how);
  }
  const tokens within{
      .length = 32, .type = dtype::i32, .windows = window_order::tiled, .documents = document_rule::within};
  expect_planned_as_one_by_one(cut_windows(files, within), within);

  std::vector<std::string> arrays;
  for (const std::size_t rows : {std::size_t{9}, std::size_t{1}, std::size_t{5}}) {
    const std::string path = root.path() / (std::to_string(arrays.size()) + ".npy");
    const std::string dict = testing::npy_dict("<f4", std::to_string(rows) + ", 3");
    arrays.push_back(
        testing::write_file(path, testing::npy_text(dict, testing::bytes_of(testing::counting<float>(3 * rows)))));
  }
  expect_planned_as_one_by_one(open_npy(arrays, {.samples = npy_options::sample::row}), array("npy"));
}

// --- a plan that is carried out --------------------------------------------------------------------------------------

TEST(batch_in_flight, has_a_slot_for_each_planned_read_and_samples_that_wait_for_them) {
  const planned p(std::vector<fake_sample>(3, sample_of({{"bin", 40'000}, {"cls", 3}})), {bytes("bin"), label("cls")},
                  fake_layout::columns, {.in_order = true});
  ASSERT_EQ(p.batch.reads.size(), 6U);
  batch_in_flight flying;
  flying.plan = p.batch;
  flying.begin();
  flying.take_rows(0, 3);
  EXPECT_TRUE(flying.plan.reads.empty());
  EXPECT_EQ(flying.reads_used, 6U);
  for (std::uint32_t row = 0; row < 3; ++row) {
    const sample_in_flight& sample = flying.samples[row];
    EXPECT_EQ(sample.reads_missing, 2U);
    ASSERT_EQ(sample.reads.size(), 2U);
    const read_in_flight& first = flying.reads[sample.reads[0]];
    const read_in_flight& second = flying.reads[sample.reads[1]];
    EXPECT_EQ(first.holder, sample.reads[0]);
    EXPECT_EQ(second.holder, sample.reads[0]) << "one lease for both";
    EXPECT_EQ(first.users, 2U);
    EXPECT_EQ(first.rows_left, 1U);
    ASSERT_EQ(first.parts.size(), 1U);
    EXPECT_EQ(first.parts[0].row, row);
  }
}

TEST(batch_in_flight, shares_the_lease_of_one_read_among_all_rows_that_it_serves) {
  const planned p(equal_samples(10, 1000), {bytes("bin")}, fake_layout::columns, {.in_order = true});
  batch_in_flight flying;
  flying.plan = p.batch;
  flying.begin();
  flying.take_rows(0, 10);
  ASSERT_EQ(flying.reads_used, 1U);
  EXPECT_EQ(flying.reads[0].users, 10U);
  EXPECT_EQ(flying.reads[0].rows_left, 10U);
  ASSERT_EQ(flying.reads[0].parts.size(), 10U);
  for (std::uint32_t row = 0; row < 10; ++row) {
    EXPECT_EQ(flying.samples[row].reads_missing, 1U);
    EXPECT_EQ(flying.samples[row].reads[0], 0U);
    EXPECT_FALSE(flying.samples[row].read_into);
  }
}

TEST(batch_in_flight, knows_the_rows_that_reads_fill_alone) {
  const auto read_into = [](const planned& p) {
    batch_in_flight flying;
    flying.plan = p.batch;
    flying.begin();
    flying.take_rows(0, flying.rows());
    return flying.samples[0].read_into;
  };
  EXPECT_TRUE(read_into(planned(equal_samples(3, 8192), {testing::verbatim("bin")}, fake_layout::columns)));
  EXPECT_FALSE(read_into(planned(equal_samples(3, 8000), {testing::verbatim("bin")}, fake_layout::columns)));
  const std::vector<fake_sample> labelled(3, sample_of({{"bin", 8192}, {"cls", 1}}));
  EXPECT_FALSE(read_into(planned(labelled, {testing::verbatim("bin"), label("cls")}, fake_layout::columns)));
}

TEST(batch_in_flight, reuses_the_slots_of_reads_whose_samples_are_done) {
  const planned p({sample_of({{"cls", 1}}), sample_of({{"cls", 2}}), sample_of({{"cls", 3}})}, {label("cls")});
  batch_in_flight flying;
  flying.plan.picks = p.batch.picks;
  p.plan->begin(flying.plan);
  flying.begin();
  p.plan->plan_rows(flying.plan, 0, 2);
  flying.take_rows(0, 2);
  flying.reads[0].rows_left = 0;
  flying.reads_idle = 1;
  p.plan->plan_rows(flying.plan, 2, 3);
  flying.take_rows(2, 3);
  EXPECT_EQ(flying.reads_used, 2U);
  EXPECT_EQ(flying.samples[2].reads[0], 0U);
  EXPECT_EQ(flying.reads[0].bytes, 3U);
  EXPECT_EQ(flying.reads[0].first_row, 2U);
}

}  // namespace
}  // namespace leat::stages

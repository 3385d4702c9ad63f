#include "stages/plan/memory_plan.hpp"

#include "io/arena/arena.hpp"
#include "io/files/source.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/plan/described_plan.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/seeds.hpp"

#include <leat/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>

namespace leat::stages {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

memory_needs usual() {
  return {.host_bytes_max = 512 * mib,
          .batch_bytes = 38 * mib,
          .read_bytes_max = 600'000,
          .read_bytes_mean = 110'000,
          .decode_threads = 8,
          .scratch_bytes_per_thread = 4 * mib,
          .prefetch_batches = 0,
          .queue_depth = 64,
          .batches_to_come = 0};
}

TEST(memory_plan, adds_up_and_stays_within_the_budget_whatever_is_asked) {
  testing::for_each_seed(500, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    memory_needs needs;
    needs.host_bytes_max = (random() % 1024) * mib + random() % mib;
    needs.batch_bytes = random() % (64 * mib);
    needs.read_bytes_max = random() % (8 * mib);
    needs.read_bytes_mean = needs.read_bytes_max / (1 + random() % 10);
    needs.decode_threads = 1 + static_cast<std::uint32_t>(random() % 64);
    needs.scratch_bytes_per_thread = random() % (4 * mib);
    if (random() % 2 == 0) needs.batch_bookkeeping_bytes = random() % (4 * mib);
    needs.prefetch_batches = static_cast<std::uint32_t>(random() % 10);
    needs.queue_depth = 1 + static_cast<std::uint32_t>(random() % 128);
    needs.batches_in_flight = random() % 130;
    needs.direct = random() % 2 == 0;
    needs.batches_to_come = random() % 20;
    if (random() % 2 == 0) needs.source_bytes_least = random() % (8 * mib);
    if (random() % 2 == 0) needs.source_bytes_wanted = needs.source_bytes_least + random() % (128 * mib);
    needs.source_bytes_wanted = std::max(needs.source_bytes_wanted, needs.source_bytes_least);
    try {
      const memory_plan plan = divide_memory(needs);
      EXPECT_LE(plan.shown.bytes_total, needs.host_bytes_max);
      EXPECT_EQ(plan.shown.bytes_total, plan.read_bytes + plan.batch_bytes + plan.scratch_bytes + plan.source_bytes +
                                            plan.batches * needs.batch_bookkeeping_bytes);
      EXPECT_GE(plan.source_bytes, needs.source_bytes_least);
      EXPECT_LE(plan.source_bytes, needs.source_bytes_wanted);
      std::size_t sum = 0;
      for (const auto& line : plan.shown.lines) sum += line.bytes;
      EXPECT_EQ(sum, plan.shown.bytes_total);
      // The oldest batch can always go on: each pool holds the largest that may be asked of it.
      EXPECT_GE(plan.batch_bytes / plan.batches, needs.batch_bytes);
      EXPECT_GE(plan.read_bytes, needs.read_bytes_max);
      EXPECT_GE(plan.scratch_bytes, needs.scratch_bytes_per_thread * needs.decode_threads);
      EXPECT_GE(plan.batches, 1U);
      if (needs.prefetch_batches != 0) {
        EXPECT_LE(plan.batches, needs.prefetch_batches + 1);
      } else if (plan.batches > prefetch_default + 1) {
        EXPECT_LE(plan.batches, needs.batches_in_flight * 3 / 2 + 1);
        EXPECT_LE(
            (plan.batches - 1) * (batch_share(needs.batch_bytes) + needs.batch_bookkeeping_bytes),
            needs.host_bytes_max / (needs.direct ? prefetch_budget_share_direct : prefetch_budget_share_buffered));
      }
      if (needs.batches_to_come != 0) EXPECT_LE(plan.batches, needs.batches_to_come);
      EXPECT_EQ(plan.batches, plan.shown.batches);
    } catch (const error& refused) {
      ASSERT_EQ(refused.code(), errc::limit);
      const std::string said = refused.what();
      const std::size_t at = said.find('(', said.find("at least"));
      ASSERT_NE(at, std::string::npos) << said;
      needs.host_bytes_max = std::stoull(said.substr(at + 1));
      EXPECT_EQ(divide_memory(needs).shown.host_bytes_least, needs.host_bytes_max);
      --needs.host_bytes_max;
      EXPECT_THROW(static_cast<void>(divide_memory(needs)), error);
    }
  });
}

TEST(memory_plan, gives_the_usual_loader_a_batch_with_the_consumer_and_some_ahead) {
  const memory_plan plan = divide_memory(usual());
  EXPECT_GE(plan.batches, 4U);
  EXPECT_GE(plan.read_bytes, 64 * usual().read_bytes_mean);
}

TEST(memory_plan, has_room_for_the_same_large_sample_whatever_the_threads_and_the_queue) {
  for (const std::uint32_t threads : {1U, 2U, 8U, 64U}) {
    for (const std::uint32_t depth : {1U, 128U}) {
      for (const std::size_t budget : {320 * mib, 512 * mib, 4096 * mib}) {
        memory_needs needs = usual();
        needs.host_bytes_max = budget;
        needs.decode_threads = threads;
        needs.queue_depth = depth;
        // The largest sample's, and what each other thread's decoder never gives away.
        EXPECT_GE(divide_memory(needs).scratch_bytes,
                  pixels::scratch_budget::sample_bytes_max(budget) + threads * pixels::scratch_arena::base_bytes);
      }
    }
  }
}

TEST(memory_plan, the_least_budget_is_the_least_that_leaves_so_much_beside_the_largest_sample) {
  for (std::size_t bytes = 0; bytes < 100; ++bytes) {
    const std::size_t least = pixels::scratch_budget::host_bytes_least(bytes);
    EXPECT_GE(least - pixels::scratch_budget::sample_bytes_max(least), bytes);
    if (least != 0) EXPECT_LT(least - 1 - pixels::scratch_budget::sample_bytes_max(least - 1), bytes);
  }
}

// A run without any option works on any machine, and keeps the usual batches.
TEST(memory_plan, takes_fewer_threads_than_cores_where_their_scratch_would_take_too_much_and_says_so) {
  for (const std::uint32_t cores : {1U, 2U, 16U, 56U, 64U, 96U, 128U, 192U, 1024U}) {
    memory_needs needs = usual();
    needs.decode_threads = cores;
    needs.threads_automatic = true;
    const memory_plan plan = divide_memory(needs);
    EXPECT_EQ(plan.decode_threads, std::min(cores, 64U)) << "half of 512 MiB";
    EXPECT_EQ(plan.shown.decode_threads, plan.decode_threads);
    EXPECT_GE(plan.batches, 3U);
    EXPECT_LE(plan.shown.bytes_total, needs.host_bytes_max);
    const std::string text = plan.shown.to_string();
    const std::string why =
        "64 threads (of " + std::to_string(cores) + " cores; all with loader_options::host_bytes_max of ";
    EXPECT_EQ(text.find(why) != std::string::npos, cores > 64) << text;
  }
}

TEST(memory_plan, names_the_budget_with_which_all_cores_decode) {
  memory_needs needs = usual();
  needs.decode_threads = 128;
  needs.threads_automatic = true;
  const std::string text = divide_memory(needs).shown.to_string();
  EXPECT_NE(text.find("(of 128 cores; all with loader_options::host_bytes_max of 1.00 GiB"), std::string::npos) << text;
  needs.host_bytes_max = 1024 * mib;
  EXPECT_EQ(divide_memory(needs).decode_threads, 128U);
}

TEST(memory_plan, takes_so_many_threads_as_were_asked_for_or_says_which_budget_would_do) {
  memory_needs needs = usual();
  needs.decode_threads = 128;
  try {
    static_cast<void>(divide_memory(needs));
    FAIL() << "not refused";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::limit);
    const std::string said = refused.what();
    EXPECT_NE(said.find("the decoders of 128 threads"), std::string::npos) << said;
    EXPECT_NE(said.find("fewer loader_options::decode_threads"), std::string::npos) << said;
    EXPECT_EQ(said.find("--"), std::string::npos) << "flags are the command's: " << said;
    needs.host_bytes_max = std::stoull(said.substr(said.find('(', said.find("at least")) + 1));
    EXPECT_EQ(divide_memory(needs).decode_threads, 128U);
  }
}

TEST(memory_plan, says_one_thread) {
  memory_needs needs = usual();
  needs.decode_threads = 1;
  EXPECT_NE(divide_memory(needs).shown.to_string().find("1 thread x"), std::string::npos);
  needs.host_bytes_max = 4096;
  try {
    static_cast<void>(divide_memory(needs));
    FAIL() << "not refused";
  } catch (const error& refused) {
    EXPECT_NE(std::string(refused.what()).find("the decoders of 1 thread "), std::string::npos) << refused.what();
  }
}

TEST(memory_plan, finds_automatic_threads_wherever_one_thread_fits) {
  testing::for_each_seed(300, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    memory_needs one = usual();
    one.batch_bytes = random() % (64 * mib);
    one.read_bytes_max = random() % (8 * mib);
    one.scratch_bytes_per_thread = random() % (8 * mib);
    one.host_bytes_max = (random() % 512) * mib;
    one.decode_threads = 1;
    memory_needs many = one;
    many.decode_threads = 1 + static_cast<std::uint32_t>(random() % 256);
    many.threads_automatic = true;
    try {
      const std::size_t least = divide_memory(one).shown.host_bytes_least;
      const memory_plan plan = divide_memory(many);
      EXPECT_GE(plan.decode_threads, 1U);
      EXPECT_LE(plan.shown.bytes_total, many.host_bytes_max);
      EXPECT_EQ(plan.shown.host_bytes_least, least);
      many.host_bytes_max = least;
      EXPECT_GE(divide_memory(many).decode_threads, 1U);
    } catch (const error&) {
      EXPECT_THROW(static_cast<void>(divide_memory(one)), error) << "one thread would have done";
    }
  });
}

TEST(memory_plan, runs_further_ahead_where_small_batches_are_too_few_reads_to_keep_a_drive_busy) {
  memory_needs needs = usual();
  needs.batch_bytes = 190'000;
  needs.batches_in_flight = 8;
  EXPECT_EQ(divide_memory(needs).batches, 1U + 12U) << "half as many again";
  needs.batches_in_flight = 128;
  EXPECT_EQ(divide_memory(needs).batches, 1U + 16U) << "4 MiB of 512";
  needs.direct = true;
  EXPECT_EQ(divide_memory(needs).batches, 1U + 192U) << "64 MiB would be 256";
  needs.prefetch_batches = 3;
  EXPECT_EQ(divide_memory(needs).batches, 1U + 3U) << "as many as were asked for";
  EXPECT_FALSE(divide_memory(needs).batches_missing);
  needs.prefetch_batches = 10'000;
  EXPECT_TRUE(divide_memory(needs).batches_missing) << "of 1.9 GB";
  needs = usual();
  needs.batches_in_flight = 128;
  needs.direct = true;
  EXPECT_LE(divide_memory(needs).batches, 1U + prefetch_default) << "large ones are not many";
}

TEST(memory_plan, a_batch_lies_across_two_pieces_only_where_it_is_larger_than_one) {
  for (std::size_t bytes = 0; bytes < 3 * mib; bytes += 1000) {
    const std::size_t share = batch_share(bytes);
    EXPECT_GE(share, bytes);
    EXPECT_EQ(share % io::alignment_max_bytes, 0U);
    EXPECT_TRUE(io::arena::piece_bytes % share == 0 || share > 2 * mib) << bytes;
  }
  EXPECT_EQ(batch_share(5 * mib), 6 * mib);
}

TEST(memory_plan, takes_no_more_batches_than_there_will_be) {
  memory_needs needs = usual();
  needs.batches_to_come = 2;
  EXPECT_EQ(divide_memory(needs).batches, 2U);
  EXPECT_FALSE(divide_memory(needs).batches_missing);
}

TEST(memory_plan, is_a_table_that_names_its_holders) {
  const std::string text = divide_memory(usual()).shown.to_string();
  for (const char* const word : {"batches", "read buffers", "decode scratch", "in all", "512 MiB", "would do"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " in\n" << text;
  }
}

TEST(memory_plan, refuses_naming_each_holder) {
  memory_needs needs = usual();
  needs.host_bytes_max = 16 * mib;
  try {
    static_cast<void>(divide_memory(needs));
    FAIL() << "not refused";
  } catch (const error& refused) {
    const std::string said = refused.what();
    for (const char* const word :
         {"host_bytes_max", "16.0 MiB", "one batch", "38.0 MiB", "decoders of 8 threads", "smaller batch"}) {
      EXPECT_NE(said.find(word), std::string::npos) << word << " in " << said;
    }
  }
}

TEST(memory_plan, names_what_sources_take_beside_leases) {
  memory_needs needs = usual();
  needs.source_bytes_least = 5 * mib;
  needs.source_bytes_wanted = 65 * mib;
  needs.source_what = "16 blocks";
  EXPECT_EQ(divide_memory(needs).source_bytes, 65 * mib);
  EXPECT_NE(divide_memory(needs).shown.to_string().find("65.0 MiB   16 blocks"), std::string::npos);
  needs.host_bytes_max = 100 * mib;
  const memory_plan tight = divide_memory(needs);
  EXPECT_LT(tight.source_bytes, 65 * mib);
  EXPECT_NE(tight.shown.to_string().find("16 blocks; for all of that 65.0 MiB"), std::string::npos);
  needs.host_bytes_max = 16 * mib;
  EXPECT_NE(
      testing::message_of(errc::limit, [&] { static_cast<void>(divide_memory(needs)); }).find("the network 5.00 MiB"),
      std::string::npos);
}

TEST(memory_plan, without_a_budget_takes_half_of_what_is_available_where_that_is_less_than_usual) {
  memory_needs needs = usual();
  needs.host_bytes_max = 0;
  needs.threads_automatic = true;
  const auto budget = [&](std::size_t available) {
    return plan_memory(needs, {available, "control group /job"}).shown.host_bytes_max;
  };
  EXPECT_EQ(budget(64 * 1024 * mib), host_bytes_usual);
  EXPECT_EQ(budget(1024 * mib), host_bytes_usual);
  EXPECT_EQ(budget(1000 * mib), 500 * mib);
  EXPECT_EQ(budget(0), host_bytes_usual) << "how much there is is not known";
  const std::size_t least = plan_memory(needs, {0, ""}).shown.host_bytes_least;
  EXPECT_EQ(budget(least + mib), least) << "half of it holds no batch: the smallest plan that does";
  EXPECT_EQ(budget(least), least);
  for (std::size_t available = least; available < 2048 * mib; available += 37 * mib) {
    const memory_plan plan = plan_memory(needs, {available, "control group /job"});
    EXPECT_LE(plan.shown.bytes_total, available);
    EXPECT_TRUE(plan.shown.warnings.empty()) << available;
  }
}

// 512 MiB would be killed by the kernel, halfway through the epoch.
TEST(memory_plan, without_a_budget_refuses_what_does_not_fit_and_says_what_would) {
  memory_needs needs = usual();
  needs.host_bytes_max = 0;
  const std::size_t least = plan_memory(needs, {0, ""}).shown.host_bytes_least;
  const std::string why = testing::message_of(
      errc::limit, [&] { static_cast<void>(plan_memory(needs, {least - 1, "control group /job"})); });
  for (const std::string& word : {std::string("(control group /job)"), std::string("lower loader_options::batch_size"),
                                  "host_bytes_max of " + std::to_string(least)}) {
    EXPECT_NE(why.find(word), std::string::npos) << word << " in " << why;
  }
  needs.host_bytes_max = least;
  EXPECT_FALSE(plan_memory(needs, {least - 1, "control group /job"}).shown.warnings.empty())
      << "who asks for it gets it";
}

TEST(memory_plan, warns_of_more_than_is_available) {
  memory_needs needs = usual();
  EXPECT_TRUE(plan_memory(needs, {1024 * mib, "MemAvailable"}).shown.warnings.empty());
  EXPECT_TRUE(plan_memory(needs, {0, ""}).shown.warnings.empty());
  const loader_plan shown = plan_memory(needs, {300 * mib, "control group /job"}).shown;
  EXPECT_EQ(shown.host_bytes_max, needs.host_bytes_max) << "what was asked for is taken";
  ASSERT_EQ(shown.warnings.size(), 1U);
  for (const char* const word : {"300 MiB", "control group /job", "kills", "lower loader_options::host_bytes_max"}) {
    EXPECT_NE(shown.warnings[0].find(word), std::string::npos) << word << " in " << shown.warnings[0];
  }
  EXPECT_NE(shown.to_string().find(shown.warnings[0]), std::string::npos);
}

TEST(described_plan, says_which_cores_count_where_a_quota_takes_some_away) {
  EXPECT_EQ(explain_quota(std::nullopt, 16), std::nullopt);
  EXPECT_EQ(explain_quota(16, 16), std::nullopt);
  EXPECT_EQ(explain_quota(2.5, 16),
            "the CPU quota of this process's control group is 2.50 of the 16 cores that it may run on: 2 count");
  EXPECT_EQ(explain_quota(0.5, 1),
            "the CPU quota of this process's control group is 0.50 of a core: the loader, and the trainer beside it, "
            "stand still for a part of each period");
}

}  // namespace
}  // namespace leat::stages

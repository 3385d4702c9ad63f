// Which NUMA node a loader takes, and what it says of it.
#include "stages/run/node_placement.hpp"

#include "tests/support/failures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

namespace leat::stages {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using cores = std::vector<std::uint32_t>;

const std::vector<node_cores> two_nodes = {{0, {0, 1, 2, 3}}, {1, {4, 5, 6, 7}}};
// This process may use none of node 1's, and node 2 is memory alone.
const std::vector<node_cores> three_nodes = {{0, {0, 1}}, {1, {}}, {2, {}}, {3, {9}}};

TEST(node_placement, takes_the_node_of_the_device_before_that_of_the_drive) {
  const node_choice device = choose_node(numa::automatic, {.nodes = two_nodes, .of_device = 1, .of_drive = 0});
  EXPECT_EQ(device.node, 1U);
  EXPECT_EQ(device.cores, (cores{4, 5, 6, 7}));
  EXPECT_FALSE(device.is_asked_for);
  EXPECT_EQ(device.why, "the device is there");
  const node_choice drive = choose_node(numa::automatic, {.nodes = two_nodes, .of_drive = 0});
  EXPECT_EQ(drive.node, 0U);
  EXPECT_EQ(drive.why, "the drive of the dataset is there");
}

TEST(node_placement, is_off_where_nothing_is_known_or_to_be_chosen_and_says_why) {
  const auto why = [](numa asked, const node_facts& facts) {
    const node_choice off = choose_node(asked, facts);
    EXPECT_FALSE(off.node);
    return off.why;
  };
  EXPECT_EQ(why(numa::automatic, {.nodes = two_nodes}), "of neither device nor drive the node is known");
  EXPECT_EQ(why(numa::automatic, {.nodes = {{0, {0}}}, .of_device = 0}), "one node");
  EXPECT_EQ(why(numa::automatic, {}), "this kernel lists no NUMA nodes");
  EXPECT_EQ(why(numa::automatic, {.nodes = three_nodes, .of_device = 1}),
            "the device is at node 1, where this process may use no core");
  EXPECT_EQ(why(numa::off, {.nodes = two_nodes, .of_device = 1}), "asked for");
}

TEST(node_placement, takes_the_node_that_is_asked_for_or_refuses_it_in_words) {
  const node_choice asked = choose_node(numa_node(3), {.nodes = three_nodes, .of_device = 0});
  EXPECT_EQ(asked.node, 3U);
  EXPECT_EQ(asked.cores, cores{9});
  EXPECT_TRUE(asked.is_asked_for);
  const auto refusal = [](numa number, const std::vector<node_cores>& nodes) {
    return leat::testing::message_of(errc::usage, [&] { static_cast<void>(choose_node(number, {.nodes = nodes})); });
  };
  EXPECT_THAT(refusal(numa_node(99), three_nodes),
              AllOf(HasSubstr("no NUMA node 99"), HasSubstr("nodes 0 and 3"), HasSubstr("automatic")));
  EXPECT_THAT(refusal(numa_node(1), three_nodes), AllOf(HasSubstr("NUMA node 1 has no core"), HasSubstr("taskset")));
  EXPECT_THAT(refusal(numa_node(1), {{0, {0}}}), HasSubstr("this machine has node 0"));
  EXPECT_THAT(refusal(numa_node(0), {}), HasSubstr("this kernel lists none"));
  EXPECT_THAT(refusal(static_cast<numa>(-3), two_nodes), HasSubstr("loader_options::numa is -3"));
}

TEST(node_placement, that_was_found_takes_no_cores_from_the_decode_threads) {
  node_placement found(choose_node(numa::automatic, {.nodes = two_nodes, .of_device = 1}));
  EXPECT_EQ(found.cores_by_default(), 0U);
  EXPECT_NE(found.io_threads(), nullptr);
  EXPECT_NE(found.decode_threads(4), nullptr);
  EXPECT_EQ(found.decode_threads(5), nullptr);
  EXPECT_EQ(found.cores_of_decode(4, 8), 4U);
  EXPECT_EQ(found.cores_of_decode(5, 8), 8U);
  EXPECT_EQ(found.report(4, 0).why, "the device is there");
  EXPECT_EQ(found.report(5, 0).why,
            "the device is there; its 4 cores are too few for 5 decode threads, which run on all");
}

TEST(node_placement, that_was_found_counts_the_ranks_that_may_have_found_it_too) {
  // 8 ranks with 8 GPUs, 2 of which are at node 1.
  node_placement gpu(choose_node(numa::automatic, {.nodes = two_nodes, .of_device = 1, .devices = 2, .ranks = 8}));
  EXPECT_NE(gpu.decode_threads(2), nullptr);
  EXPECT_EQ(gpu.decode_threads(3), nullptr);
  // All of them may read from one drive.
  node_placement drive(choose_node(numa::automatic, {.nodes = two_nodes, .of_drive = 1, .ranks = 2}));
  EXPECT_NE(drive.decode_threads(2), nullptr);
  EXPECT_EQ(drive.decode_threads(4), nullptr);
  EXPECT_EQ(drive.report(4, 0).why,
            "the drive of the dataset is there; its 4 cores are too few for 4 decode threads of each of 2 ranks, which "
            "run on all");
}

TEST(node_placement, that_was_asked_for_has_all_threads) {
  node_placement asked(choose_node(numa_node(1), {.nodes = two_nodes}));
  EXPECT_EQ(asked.cores_by_default(), 4U);
  ASSERT_NE(asked.decode_threads(40), nullptr);
  EXPECT_EQ(asked.decode_threads(40)->cores(), (cores{4, 5, 6, 7}));
  EXPECT_EQ(asked.report(40, 0).use, "node 1");
  EXPECT_EQ(asked.report(40, 0).why, "asked for");
  EXPECT_THAT(asked.report(40, EPERM).why, AllOf(HasSubstr("EPERM"), HasSubstr("CAP_SYS_NICE")));
}

TEST(node_placement, that_is_off_binds_nothing) {
  node_placement off(choose_node(numa::off, {}));
  EXPECT_EQ(off.node(), std::nullopt);
  EXPECT_EQ(off.io_threads(), nullptr);
  EXPECT_EQ(off.decode_threads(1), nullptr);
  EXPECT_EQ(off.cores_by_default(), 0U);
  EXPECT_EQ(off.cores_of_decode(4, 8), 8U);
  EXPECT_EQ(off.report(1, 0).use, "off");
}

}  // namespace
}  // namespace leat::stages

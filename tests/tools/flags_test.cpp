#include "tools/flags.hpp"

#include <gtest/gtest.h>

namespace leat::tools {
namespace {

TEST(flags, take_the_place_of_a_programs_options) {
  EXPECT_EQ(in_flags("host_bytes_max of 4.00 KiB is too small: give 1 MiB, or fewer decode_threads"),
            "--host-bytes-max of 4.00 KiB is too small: give 1 MiB, or fewer --threads");
  EXPECT_EQ(in_flags("cut; on_corrupt = skip or substitute goes on without it"),
            "cut; --on-corrupt skip or substitute goes on without it");
  EXPECT_EQ(in_flags("give more io_threads, or more prefetch_batches"),
            "give more --io-threads, or more --prefetch-batches");
  EXPECT_EQ(in_flags("try direct = auto"), "try --direct auto");
  EXPECT_EQ(in_flags("replace it (pack_options::overwrite)"), "replace it (--overwrite)");
  EXPECT_EQ(in_flags("no GPU; without loader_options::device_required they stay on the host"),
            "no GPU; with --device auto they stay on the host");
  EXPECT_EQ(in_flags("batch_size: 0. Lower batch_size."), "--batch-size: 0. Lower --batch-size.");
  EXPECT_EQ(in_flags("the ring has failed; read with preadv, which needs no io_uring"),
            "the ring has failed; read with --reader preadv, which needs no io_uring");
  EXPECT_EQ(in_flags("lower shuffle_blocks, or give the order itself (shuffled_blocks), which"),
            "lower --shuffle-blocks, or give the order itself (--order shuffled_blocks:N), which");
  EXPECT_EQ(in_flags("cache_block_bytes is 5; of cache_bytes"), "--cache-block-bytes is 5; of --cache-bytes");
  EXPECT_EQ(in_flags("nor do they with order = sticky(), where"), "nor do they with --sticky 0, where");
  EXPECT_EQ(in_flags(""), "");
}

TEST(flags, leave_paths_and_longer_words_alone) {
  for (const char* text : {"/data/batch_size/x.tar: No such file", "batch_size.tar: no tar archive",
                           "my_batch_size = 3", "batch_sizes", "redirect = on", "batch_size/0.jpg: cut"}) {
    EXPECT_EQ(in_flags(text), text);
  }
}

}  // namespace
}  // namespace leat::tools

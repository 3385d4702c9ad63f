// The cache on the drive by itself: claims, room, and files that somebody else has written.
#include "io/remote/block_cache.hpp"

#include "base/sanitizers.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

namespace fs = std::filesystem;
using io::cached_object;
using state = cached_object::state;
using read_verdict = cached_object::read_verdict;
using ::testing::HasSubstr;

constexpr std::uint32_t block_bytes = 16U << 10;
constexpr std::uint64_t object_bytes = 2 * block_bytes + 5'000;

class block_cache : public ::testing::Test {
 protected:
  [[nodiscard]] fs::path path() const { return root_.path() / "cache"; }
  std::shared_ptr<io::block_cache> open(std::uint64_t bytes_max = 1U << 20) {
    refusal_.clear();
    return io::block_cache::open({.directory = path().string(), .bytes_max = bytes_max, .block_bytes = block_bytes},
                                 refusal_);
  }
  std::shared_ptr<cached_object> object(io::block_cache& cache, const std::string& file = "a") {
    auto made = cache.object(file, "https://host/" + file, object_bytes, refusal_);
    EXPECT_NE(made, nullptr) << refusal_;
    return made;
  }
  struct freed {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  /// Of a block: whole pages, aligned.
  static std::pair<std::unique_ptr<std::byte, freed>, std::span<std::byte>> content_of(std::uint32_t block) {
    const std::uint64_t bytes = block < 2 ? block_bytes : 8'192;
    std::unique_ptr<std::byte, freed> memory(static_cast<std::byte*>(std::aligned_alloc(4096, block_bytes)));
    const std::span<std::byte> pages(memory.get(), bytes);
    fill_seeded(block, 0, pages);
    return {std::move(memory), pages};
  }
  static void fill(cached_object& object, std::uint32_t block) {
    ASSERT_EQ(object.claim(block), state::claimed);
    const auto [memory, pages] = content_of(block);
    ASSERT_EQ(object.fill(block, pages), 0);
  }
  static std::vector<std::byte> read(const cached_object& object, std::uint64_t offset, std::size_t bytes) {
    std::vector<std::byte> found(bytes);
    std::ifstream in(object.data_path(), std::ios::binary);
    in.seekg(static_cast<std::streamoff>(offset));
    in.read(reinterpret_cast<char*>(found.data()), static_cast<std::streamsize>(bytes));
    EXPECT_TRUE(in.good());
    return found;
  }

  temporary_directory root_;
  std::string refusal_;
};

TEST_F(block_cache, gives_each_block_to_one_of_those_who_claim_it) {
  const auto one = open();
  const auto other = open();
  const auto mine = object(*one);
  const auto theirs = object(*other);
  EXPECT_EQ(mine->blocks(), 3U);
  EXPECT_EQ(mine->claim(1), state::claimed);
  EXPECT_EQ(mine->claim(1), state::busy);
  EXPECT_EQ(theirs->claim(1), state::busy);
  mine->give_up(1);
  EXPECT_EQ(one->bytes_in_use(), 0U);
  fill(*theirs, 1);
  EXPECT_EQ(mine->claim(1), state::present);
  EXPECT_TRUE(mine->is_present(1));
  EXPECT_EQ(mine->verify(block_bytes, read(*mine, block_bytes, block_bytes), mine->fills()), read_verdict::right);
  fill(*mine, 2);
  EXPECT_EQ(theirs->verify(2 * block_bytes, read(*theirs, 2 * block_bytes, 8'192), theirs->fills()),
            read_verdict::right);
  EXPECT_EQ(other->bytes_in_use(), block_bytes + 8'192);
}

TEST_F(block_cache, gives_a_block_to_the_next_one_where_its_owner_is_gone) {
  const auto one = open();
  const auto mine = object(*one);
  {
    const auto other = open();
    EXPECT_EQ(object(*other)->claim(0), state::claimed);
    EXPECT_EQ(mine->claim(0), state::busy);
  }
  EXPECT_EQ(mine->claim(0), state::claimed);
  EXPECT_EQ(one->bytes_in_use(), block_bytes) << "its room was taken already";
  // Another one at work in the same slot is not its owner.
  const auto before = open();
  EXPECT_EQ(object(*before)->claim(1), state::claimed);
}

TEST_F(block_cache, takes_a_block_out_whose_pages_are_not_what_was_written) {
  const auto cache = open();
  const auto held = object(*cache);
  fill(*held, 0);
  fill(*held, 1);
  std::vector<std::byte> pages = read(*held, 4096, block_bytes);
  pages[block_bytes - 1] ^= std::byte{1};  // the first page of block 1
  EXPECT_EQ(held->verify(4096, pages, held->fills()), read_verdict::damaged);
  EXPECT_TRUE(held->is_present(0));
  EXPECT_FALSE(held->is_present(1));
  EXPECT_EQ(cache->bytes_in_use(), block_bytes);
  const auto found = cache->verify(cache->entries().at(0));
  EXPECT_EQ(found.blocks, 1U);
  EXPECT_EQ(found.damaged, 0U);
}

TEST_F(block_cache, keeps_a_block_that_was_filled_anew_after_a_damaged_read_began) {
  const auto one = open();
  const auto other = open();
  const auto mine = object(*one);
  const auto theirs = object(*other);
  fill(*mine, 0);
  std::vector<std::byte> pages = read(*mine, 0, block_bytes);
  pages[9] ^= std::byte{1};
  const std::uint64_t before = mine->fills();
  // Another one reads it too, finds it damaged first, and fills it anew.
  EXPECT_EQ(theirs->verify(0, pages, theirs->fills()), read_verdict::damaged);
  fill(*theirs, 0);
  EXPECT_EQ(mine->verify(0, pages, before), read_verdict::given_up);
  EXPECT_TRUE(mine->is_present(0));
  EXPECT_EQ(mine->verify(0, pages, mine->fills()), read_verdict::damaged) << "a read that began since";
  EXPECT_FALSE(mine->is_present(0));
}

TEST_F(block_cache, knows_pages_of_the_filling_that_they_were_read_of) {
  const auto one = open();
  const auto other = open();
  const auto mine = object(*one);
  const auto theirs = object(*other);
  fill(*mine, 0);
  fill(*mine, 1);
  const std::vector<std::byte> right = read(*mine, 0, 2 * block_bytes);
  std::vector<std::byte> wrong = right;
  wrong[5000] ^= std::byte{1};
  const auto part = [](const std::vector<std::byte>& of, std::uint64_t from, std::uint64_t bytes) {
    return std::span(of).subspan(from, bytes);
  };
  EXPECT_EQ(mine->verify(4096, part(right, 4096, 8192), mine->fills()), read_verdict::right);
  EXPECT_TRUE(mine->knows(4096, 8192, mine->fills()));
  EXPECT_FALSE(theirs->knows(4096, 8192, theirs->fills())) << "another process looks for itself";
  EXPECT_EQ(mine->verify(4096, part(wrong, 4096, 4096), mine->fills()), read_verdict::damaged)
      << "what is known is not passed unseen";
  EXPECT_FALSE(mine->knows(8192, 4096, mine->fills())) << "its block is gone";
  // Another one fills it anew.
  fill(*theirs, 0);
  EXPECT_FALSE(mine->knows(8192, 4096, mine->fills())) << "known of the filling before";
  EXPECT_EQ(mine->verify(8192, part(right, 8192, 4096), mine->fills()), read_verdict::right);
  EXPECT_TRUE(mine->knows(8192, 4096, mine->fills()));
  EXPECT_FALSE(mine->knows(4096, 8192, mine->fills())) << "page 1 was known of the filling before";
  // A read that began before its block was filled says nothing of the new filling.
  const std::uint64_t before = mine->fills();
  EXPECT_EQ(mine->verify(4096, part(wrong, 4096, 4096), mine->fills()), read_verdict::damaged);
  fill(*mine, 0);
  EXPECT_EQ(mine->verify(4096, part(right, 4096, 4096), before), read_verdict::right);
  EXPECT_FALSE(mine->knows(4096, 4096, mine->fills()));
  // Over the end of a block, of which one is known.
  EXPECT_EQ(mine->verify(0, part(right, 0, block_bytes), mine->fills()), read_verdict::right);
  EXPECT_FALSE(mine->knows(block_bytes - 4096, 8192, mine->fills()));
  EXPECT_EQ(mine->verify(block_bytes, part(right, block_bytes, 4096), mine->fills()), read_verdict::right);
  EXPECT_TRUE(mine->knows(block_bytes - 4096, 8192, mine->fills()));
}

TEST_F(block_cache, knows_ranges_whose_pages_were_found_right) {
  const auto cache = open();
  const auto held = object(*cache);
  fill(*held, 0);
  fill(*held, 2);
  EXPECT_FALSE(held->knows(0, 1, held->fills()));
  EXPECT_EQ(held->verify(4096, read(*held, 4096, 8192), held->fills()), read_verdict::right);
  EXPECT_TRUE(held->knows(4096, 8192, held->fills()));
  EXPECT_TRUE(held->knows(5000, 7000, held->fills()));
  EXPECT_FALSE(held->knows(4095, 2, held->fills()));
  EXPECT_FALSE(held->knows(12287, 2, held->fills()));
  EXPECT_FALSE(held->knows(5000, 7000, 0)) << "a read that began before the block was filled";
  EXPECT_EQ(held->verify(2 * block_bytes, read(*held, 2 * block_bytes, 8192), held->fills()), read_verdict::right);
  EXPECT_TRUE(held->knows(2 * block_bytes, 5000, held->fills())) << "the object's end";
  fill(*held, 1);
  EXPECT_TRUE(held->knows(4096, 8192, held->fills())) << "another block";
}

TEST_F(block_cache, is_one_for_all_sources_of_a_process_that_ask_for_the_same) {
  const auto share = [&](std::uint64_t bytes_max) {
    return io::block_cache::share({.directory = path().string(), .bytes_max = bytes_max, .block_bytes = block_bytes},
                                  refusal_);
  };
  auto one = share(1U << 20);
  ASSERT_NE(one, nullptr) << refusal_;
  EXPECT_EQ(share(1U << 20), one);
  EXPECT_NE(share(1U << 21), one) << "of another size";
  EXPECT_NE(open(), one) << "as another process has it";
  fs::rename(path(), root_.path() / "elsewhere");
  const auto anew = share(1U << 20);
  ASSERT_NE(anew, nullptr) << refusal_;
  EXPECT_NE(anew, one) << "another folder of that name";
  fs::permissions(path(), fs::perms::all);
  EXPECT_EQ(share(1U << 20), nullptr) << "others may write there now";
  EXPECT_THAT(refusal_, HasSubstr("chmod 700"));
}

// Its lock on a slot is the parent's too.
TEST_F(block_cache, of_a_parent_is_not_its_childs) {
  const io::block_cache_options options = {
      .directory = path().string(), .bytes_max = 1U << 20, .block_bytes = block_bytes};
  const auto parents = io::block_cache::share(options, refusal_);
  ASSERT_NE(parents, nullptr) << refusal_;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto own = io::block_cache::share(options, refusal_);
    ::_exit(own != nullptr && own != parents && io::block_cache::share(options, refusal_) == own ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Each has its own view of the object, and one of them has room for what passes only where the other one's blocks make way.
TEST_F(block_cache, lets_blocks_of_another_source_of_the_process_make_way) {
  const auto share = [&] {
    return io::block_cache::share(
        {.directory = path().string(), .bytes_max = 2 * block_bytes, .block_bytes = block_bytes}, refusal_);
  };
  constexpr std::uint64_t passing = 2 * block_bytes;
  const auto pass = [&](cached_object& object, std::uint32_t block) {
    ASSERT_EQ(object.claim(block, passing), state::claimed);
    const auto [memory, pages] = content_of(block);
    ASSERT_EQ(object.fill(block, pages), 0);
  };
  const auto first = share();
  const auto second = share();
  ASSERT_NE(first, nullptr) << refusal_;
  const auto a = object(*first, "a");
  const auto b = object(*second, "b");
  pass(*a, 0);
  pass(*a, 1);
  pass(*b, 0);
  EXPECT_FALSE(a->is_present(0)) << "it was wanted longest ago";
  EXPECT_TRUE(a->is_present(1));
  pass(*b, 1);
  EXPECT_FALSE(a->is_present(1));
  EXPECT_LE(first->bytes_in_use(), passing);
}

// Of windows of other sizes: the wider ones have fetched ahead what the others have no need of.
TEST_F(block_cache, leaves_wider_windows_the_room_that_they_pass_through) {
  constexpr std::uint32_t wide = 8;
  const auto cache = io::block_cache::share(
      {.directory = path().string(), .bytes_max = wide * block_bytes, .block_bytes = block_bytes}, refusal_);
  ASSERT_NE(cache, nullptr) << refusal_;
  const auto pass = [&](cached_object& object, std::uint32_t block, std::uint64_t passing) {
    ASSERT_EQ(object.claim(block, passing), state::claimed);
    const auto [memory, whole] = content_of(0);
    ASSERT_EQ(object.fill(block, whole), 0);
  };
  const auto a = cache->object("a", "a", wide * block_bytes, refusal_);
  const auto b = cache->object("b", "b", wide * block_bytes, refusal_);
  ASSERT_TRUE(a && b) << refusal_;
  for (std::uint32_t block = 0; block < wide; ++block) pass(*a, block, wide * block_bytes);
  pass(*b, 0, 2 * block_bytes);
  std::uint32_t left = 0;
  for (std::uint32_t block = 0; block < wide; ++block) left += a->is_present(block) ? 1 : 0;
  EXPECT_EQ(left, wide - 1);
}

TEST_F(block_cache, numbers_fills_above_all_that_are_there_where_its_header_is_lost) {
  std::uint64_t fills = 0;
  {
    const auto cache = open();
    const auto held = object(*cache);
    for (std::uint32_t block = 0; block < 3; ++block) fill(*held, block);
    fills = held->fills();
  }
  fs::remove(path() / "leat-cache");
  EXPECT_EQ(object(*open())->fills(), fills);
}

TEST_F(block_cache, never_takes_more_room_than_it_has_and_evicts_what_nobody_holds) {
  const auto cache = open(2 * block_bytes + 100);
  auto old = object(*cache, "old");
  fill(*old, 0);
  fill(*old, 1);
  EXPECT_EQ(old->claim(2), state::refused);
  EXPECT_FALSE(cache->evict("old")) << "it is held";
  old.reset();
  const auto other = open(2 * block_bytes + 100);
  const auto now = object(*other, "now");
  fill(*now, 0);
  EXPECT_EQ(other->bytes_in_use(), block_bytes);
  ASSERT_EQ(other->entries().size(), 1U);
  EXPECT_EQ(other->entries()[0].name, "https://host/now");
  EXPECT_EQ(other->entries()[0].cached_bytes, block_bytes);
  EXPECT_TRUE(other->entries()[0].in_use);
  EXPECT_FALSE(fs::exists(path() / "old.data"));
}

TEST_F(block_cache, that_is_full_of_what_is_held_looks_again_after_a_while) {
  for (const auto full_time : {std::chrono::milliseconds(0), std::chrono::milliseconds(std::chrono::hours(1))}) {
    const std::string folder = (root_.path() / std::to_string(full_time.count())).string();
    std::string refusal;
    const auto cache = io::block_cache::open(
        {.directory = folder, .bytes_max = block_bytes, .block_bytes = block_bytes, .full_time = full_time}, refusal);
    ASSERT_NE(cache, nullptr) << refusal;
    auto old = object(*cache, "old");
    fill(*old, 0);
    const auto now = object(*cache, "now");
    EXPECT_EQ(now->claim(0), state::refused) << "the other one is held";
    old.reset();
    EXPECT_EQ(now->claim(0), full_time.count() == 0 ? state::claimed : state::refused);
  }
}

TEST_F(block_cache, lets_blocks_pass_in_the_order_in_which_they_were_wanted) {
  constexpr std::uint64_t passing = 2 * block_bytes;
  const auto one = open(4 * block_bytes);
  const auto other = open(4 * block_bytes);
  const auto fill_passing = [](cached_object& object, std::uint32_t block) {
    ASSERT_EQ(object.claim(block, passing), state::claimed);
    const auto [memory, pages] = content_of(block);
    ASSERT_EQ(object.fill(block, pages), 0);
  };
  const auto a = object(*one, "a");
  const auto b = object(*one, "b");
  const auto c = object(*one, "c");
  const auto a_there = object(*other, "a");
  const auto b_there = object(*other, "b");
  const auto c_there = object(*other, "c");
  fill_passing(*a, 0);
  fill_passing(*b, 0);
  EXPECT_EQ(one->passing_bytes(), 0U) << "there is room for what lasts";
  fill_passing(*a_there, 1);
  fill_passing(*b, 1);
  EXPECT_EQ(one->passing_bytes(), passing);
  EXPECT_EQ(one->bytes_in_use(), 4 * block_bytes);
  EXPECT_EQ(a->claim(2), state::refused) << "what passes makes way for what passes only";
  EXPECT_TRUE(a->is_present(1));
  fill_passing(*c, 0);
  EXPECT_FALSE(a_there->is_present(1)) << "it was filled first";
  EXPECT_TRUE(b->is_present(1));
  b_there->want(1);
  fill_passing(*c_there, 1);
  EXPECT_TRUE(b_there->is_present(1)) << "it was wanted since";
  EXPECT_FALSE(c->is_present(0));
  fill_passing(*c_there, 0);
  EXPECT_FALSE(b_there->is_present(1));
  EXPECT_TRUE(a->is_present(0) && b->is_present(0)) << "they last";
  EXPECT_EQ(one->bytes_in_use(), 4 * block_bytes);
  EXPECT_EQ(c->claim(2, 4096), state::refused) << "it is larger than all that may pass";
  // One that is being filled stays, and so does what it is.
  ASSERT_EQ(a->claim(1, passing), state::claimed);
  ASSERT_EQ(b->claim(1, passing), state::claimed);
  EXPECT_EQ(c_there->claim(2, passing), state::refused);
  a->give_up(1);
  b->give_up(1);
  EXPECT_EQ(one->passing_bytes(), 0U);
}

TEST_F(block_cache, takes_out_what_lasts_where_it_left_no_room_for_what_passes) {
  const auto cache = open(4 * block_bytes);
  const auto a = object(*cache, "a");
  const auto b = object(*cache, "b");
  const auto c = object(*cache, "c");
  for (const auto& each : {a, b}) {
    fill(*each, 0);
    fill(*each, 1);
  }
  constexpr std::uint64_t passing = 2 * block_bytes;
  for (const std::uint32_t block : {0U, 1U}) {
    ASSERT_EQ(c->claim(block, passing), state::claimed);
    const auto [memory, pages] = content_of(block);
    ASSERT_EQ(c->fill(block, pages), 0);
  }
  EXPECT_EQ(cache->passing_bytes(), passing);
  EXPECT_EQ(cache->bytes_in_use(), 4 * block_bytes);
  EXPECT_TRUE(a->is_present(0) && a->is_present(1)) << "what was filled last went";
  EXPECT_FALSE(b->is_present(0) || b->is_present(1));
}

TEST_F(block_cache, tells_a_block_that_was_given_up_from_a_damaged_one) {
  constexpr std::uint64_t passing = block_bytes;
  const auto cache = open(passing);
  const auto held = object(*cache);
  const auto pass = [&](std::uint32_t block) {
    ASSERT_EQ(held->claim(block, passing), state::claimed);
    const auto [memory, pages] = content_of(block);
    ASSERT_EQ(held->fill(block, pages), 0);
  };
  pass(0);
  const std::vector<std::byte> right = read(*held, 0, block_bytes);
  EXPECT_EQ(held->verify(0, right, held->fills()), read_verdict::right);
  const std::uint64_t before = held->fills();
  EXPECT_TRUE(held->knows(0, block_bytes, before));
  pass(1);
  EXPECT_FALSE(held->knows(0, block_bytes, before));
  const std::vector<std::byte> hole = read(*held, 0, block_bytes);
  EXPECT_EQ(held->verify(0, hole, before), read_verdict::given_up);
  pass(0);
  EXPECT_EQ(held->verify(0, hole, before), read_verdict::given_up) << "it was filled anew since";
  EXPECT_TRUE(held->is_present(0));
  EXPECT_EQ(held->verify(0, right, before), read_verdict::right) << "its bytes are the same";
}

TEST_F(block_cache, counts_anew_what_is_there_when_nobody_else_uses_it) {
  {
    const auto cache = open();
    const auto held = object(*cache);
    fill(*held, 0);
    EXPECT_EQ(held->claim(1), state::claimed);  // and goes
  }
  const auto cache = open();
  EXPECT_EQ(cache->bytes_in_use(), block_bytes);
  EXPECT_EQ(object(*cache)->claim(1), state::claimed);
}

TEST_F(block_cache, makes_an_object_anew_whose_data_are_gone_or_cut) {
  for (const bool gone : {true, false}) {
    const auto cache = open();
    std::string data;
    {
      const auto held = object(*cache);
      fill(*held, 0);
      data = held->data_path();
    }
    if (gone) {
      fs::remove(data);
    } else {
      fs::resize_file(data, 4096);
    }
    const auto again = object(*cache);
    EXPECT_FALSE(again->is_present(0));
    EXPECT_EQ(cache->bytes_in_use(), 0U);
    fill(*again, 0);
    EXPECT_EQ(again->verify(0, read(*again, 0, block_bytes), again->fills()), read_verdict::right);
    fs::remove(path() / "a.index");
  }
}

TEST_F(block_cache, removes_data_that_no_sound_index_is_of_when_nobody_else_uses_it) {
  fs::path data;
  {
    const auto cache = open();
    const auto held = object(*cache);
    fill(*held, 0);
    data = held->data_path();
  }
  std::ofstream(path() / "orphan.data") << "of none";
  std::ofstream(path() / "a.index", std::ios::in | std::ios::binary) << std::string(4096, '\0');
  const auto cache = open();
  EXPECT_FALSE(fs::exists(data));
  EXPECT_FALSE(fs::exists(path() / "a.index"));
  EXPECT_FALSE(fs::exists(path() / "orphan.data"));
  EXPECT_EQ(cache->bytes_in_use(), 0U);
}

TEST_F(block_cache, gives_the_room_on_the_disk_back_of_blocks_that_are_taken_out) {
  const auto cache = open();
  const auto held = object(*cache);
  fill(*held, 0);
  fill(*held, 1);
  const auto on_disk = [&] {
    struct stat status{};
    EXPECT_EQ(::stat(held->data_path().c_str(), &status), 0);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  };
  ASSERT_GE(on_disk(), 2 * block_bytes);
  std::vector<std::byte> pages = read(*held, 0, block_bytes);
  pages[7] ^= std::byte{1};
  EXPECT_EQ(held->verify(0, pages, held->fills()), read_verdict::damaged);
  EXPECT_LT(on_disk(), 2 * block_bytes);
  EXPECT_EQ(held->verify(block_bytes, read(*held, block_bytes, block_bytes), held->fills()), read_verdict::right);
}

TEST_F(block_cache, is_refused_and_not_waited_for_where_a_stopped_process_holds_the_folder) {
  open().reset();
  const int held = ::open((path() / "leat-cache").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(held, 0);
  struct flock opening{};
  opening.l_type = F_WRLCK;
  opening.l_whence = SEEK_SET;
  opening.l_start = 1;
  opening.l_len = 1;
  ASSERT_EQ(::fcntl(held, F_OFD_SETLK, &opening), 0);
  EXPECT_EQ(open(), nullptr);
  EXPECT_THAT(refusal_, HasSubstr("is it stopped?"));
  ::close(held);
  EXPECT_NE(open(), nullptr);
}

TEST_F(block_cache, does_no_harm_whatever_its_files_hold) {
  const std::string index = (path() / "a.index").string();
  {
    const auto cache = open();
    fill(*object(*cache), 0);
  }
  std::string whole;
  {
    std::ifstream in(index, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  // Whatever is written over its header, its states and its sums, what is delivered was verified.
  for (std::uint64_t round = 0; round < 300; ++round) {
    seeded_random random(round);
    std::string damaged = whole;
    for (std::uint64_t i = 0; i <= random.below(4); ++i) {
      const std::uint64_t places = random.below(2) == 0 ? 64 : damaged.size();
      damaged[random.below(places)] = static_cast<char>(random.below(256));
    }
    if (random.below(4) == 0) damaged.resize(random.below(damaged.size()));
    std::ofstream(index, std::ios::binary | std::ios::trunc) << damaged;
    const auto cache = open();
    ASSERT_NE(cache, nullptr) << refusal_;
    const auto held = object(*cache);
    ASSERT_NE(held, nullptr);
    ASSERT_EQ(held->size_bytes(), object_bytes);
    for (std::uint32_t block = 0; block < held->blocks(); ++block) {
      if (!held->is_present(block) && held->claim(block) == state::claimed) {
        const std::uint64_t bytes = (held->bytes_of(block) + 4095) / 4096 * 4096;
        std::unique_ptr<std::byte, freed> memory(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)));
        std::fill_n(memory.get(), bytes, std::byte{1});
        ASSERT_EQ(held->fill(block, {memory.get(), bytes}), 0);
        ASSERT_TRUE(held->is_present(block));
      }
    }
  }
}

// By somebody's tool, under a run: what it said is gone, and the process is not.
TEST_F(block_cache, whose_index_is_truncated_meanwhile_is_one_that_has_nothing) {
  const auto cache = open();
  const auto held = object(*cache);
  fill(*held, 0);
  fill(*held, 1);
  ASSERT_EQ(held->verify(0, read(*held, 0, block_bytes), held->fills()), read_verdict::right);
  ASSERT_TRUE(held->knows(0, block_bytes, held->fills()));
  fs::resize_file(path() / "a.index", 0);
  EXPECT_FALSE(held->is_present(0));
  EXPECT_FALSE(held->knows(0, block_bytes, held->fills()));
  EXPECT_NE(held->verify(block_bytes, read(*held, block_bytes, block_bytes), held->fills()), read_verdict::right);
  fill(*held, 0);
  EXPECT_TRUE(held->is_present(0));
  EXPECT_EQ(held->verify(0, read(*held, 0, block_bytes), held->fills()), read_verdict::right);
  // Likewise where it has room left.
  fs::resize_file(path() / "leat-cache", 0);
  held->want(0);
  fill(*held, 2);
  EXPECT_EQ(held->verify(2 * block_bytes, read(*held, 2 * block_bytes, 8'192), held->fills()), read_verdict::right);
}

TEST_F(block_cache, whose_handler_leaves_other_files_pages_as_they_are) {
  if (LEAT_ADDRESS_SANITIZER || LEAT_THREAD_SANITIZER)
    GTEST_SKIP() << "a sanitizer has a handler of its own, which ends a process otherwise";
  const auto cache = open();
  ASSERT_NE(cache, nullptr);
  const fs::path other = root_.path() / "other";
  std::ofstream(other) << "something";
  EXPECT_EXIT(
      {
        const int file = ::open(other.c_str(), O_RDONLY);
        const void* const memory = ::mmap(nullptr, 8'192, PROT_READ, MAP_SHARED, file, 0);
        static_cast<void>(static_cast<const volatile char*>(memory)[4'096]);
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

TEST_F(block_cache, is_refused_where_others_may_write_or_what_lies_there_is_none) {
  fs::create_directory(path());
  fs::permissions(path(), fs::perms::all);
  EXPECT_EQ(open(), nullptr);
  EXPECT_THAT(refusal_, HasSubstr("others may write there"));
  fs::permissions(path(), fs::perms::owner_all);
  std::ofstream(path() / "leat-cache") << "something else";
  EXPECT_EQ(open(), nullptr);
  EXPECT_THAT(refusal_, HasSubstr("no cache of this version"));
  fs::remove(path() / "leat-cache");
  fs::create_symlink("/etc/passwd", path() / "leat-cache");
  EXPECT_EQ(open(), nullptr);
  EXPECT_THAT(refusal_, HasSubstr("ELOOP"));
  fs::remove(path() / "leat-cache");
  const auto cache = open();
  ASSERT_NE(cache, nullptr);
  fs::create_symlink(root_.path() / "elsewhere", path() / "b.index");
  EXPECT_EQ(cache->object("b", "b", 10, refusal_), nullptr);
  EXPECT_FALSE(fs::exists(root_.path() / "elsewhere"));
}

}  // namespace
}  // namespace leat::testing

#include "tests/io/source_contract.hpp"

#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace leat::testing {
namespace {

using ::testing::TestWithParam;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

std::uint32_t source_contract::add_file(std::uint64_t seed, std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  fill_seeded(seed, 0, made);
  const std::uint32_t number = subject_->add_file(made);
  if (contents_.size() <= number) contents_.resize(number + std::size_t{1});
  contents_[number] = std::move(made);
  return number;
}

counted_read& source_contract::make_read(std::uint32_t file, std::uint64_t offset, std::uint64_t bytes) {
  auto made = std::make_unique<counted_read>(file, offset, bytes, left_);
  std::optional<io::lease> memory = pool_.try_lease(io::aligned_bytes(offset, bytes));
  if (!memory) throw std::bad_alloc();
  // Poison: bytes that were not read show.
  std::memset(memory->data(), 0xDB, memory->size());
  made->memory = std::move(*memory);
  made->into = io::target_of(made->memory);
  left_.fetch_add(1);
  reads_.push_back(std::move(made));
  return *reads_.back();
}

void source_contract::start(std::span<counted_read* const> reads) {
  std::vector<io::read_operation*> operations(reads.begin(), reads.end());
  subject_->call([&] {
    subject_->source().start(operations);
    for (const counted_read* read : reads) EXPECT_EQ(read->times_done, 0) << "done() was called within start()";
  });
}

void source_contract::expect_right(const counted_read& read) const {
  ASSERT_EQ(read.times_done, 1);
  ASSERT_EQ(read.failure, 0) << std::strerror(read.failure);
  ASSERT_EQ(read.data.size(), read.bytes);
  ASSERT_TRUE(read.bytes == 0 || read.data_is_in_memory());
  const std::vector<std::byte>& whole = contents(read.file);
  ASSERT_TRUE(std::equal(read.data.begin(), read.data.end(), whole.begin() + static_cast<std::ptrdiff_t>(read.offset)))
      << "file " << read.file << " offset " << read.offset << " bytes " << read.bytes;
}

TEST_P(source_contract, delivers_the_bytes_asked_for_at_any_offset_and_length) {
  std::vector<std::uint32_t> files;
  const std::size_t sizes[] = {1, 511, 512, 4095, 4096, 4097, 100'000, 1'048'576, 3'000'001};
  for (const std::size_t size : sizes) files.push_back(add_file(size, size));
  subject_->connect();
  for_each_seed(4, [&](std::uint64_t seed) {
    seeded_random random(seed);
    std::vector<counted_read*> batch;
    for (int i = 0; i < 150; ++i) {
      const std::uint32_t file = files[random.below(files.size())];
      const std::uint64_t size = contents(file).size();
      const std::uint64_t offset = random.below(size);
      const std::uint64_t bytes = 1 + random.below(std::min<std::uint64_t>(size - offset, 200'000));
      batch.push_back(&make_read(file, offset, bytes));
    }
    start(batch);
    finish();
    for (const counted_read* read : batch) expect_right(*read);
    reads_.clear();
  });
}

TEST_P(source_contract, reads_whole_files_of_every_length_around_a_block) {
  std::vector<counted_read*> batch;
  std::vector<std::uint32_t> files;
  for (std::size_t size = 4090; size < 4103; ++size) files.push_back(add_file(size, size));
  for (std::size_t size = 510; size < 515; ++size) files.push_back(add_file(size, size));
  subject_->connect();
  for (const std::uint32_t file : files) batch.push_back(&make_read(file, 0, contents(file).size()));
  start(batch);
  finish();
  for (const counted_read* read : batch) expect_right(*read);
}

TEST_P(source_contract, reads_many_pieces_of_memory_in_one_operation) {
  const std::uint32_t file = add_file(5, 13'000'003);
  subject_->connect();
  counted_read& whole = make_read(file, 0, 13'000'003);
  counted_read& inside = make_read(file, 1'234'567, 9'000'000);
  counted_read* const both[] = {&whole, &inside};
  start(both);
  finish();
  expect_right(whole);
  expect_right(inside);
}

TEST_P(source_contract, tells_a_read_of_nothing) {
  const std::uint32_t file = add_file(1, 10);
  subject_->connect();
  counted_read& nothing = make_read(file, 5, 0);
  counted_read& something = make_read(file, 5, 2);
  counted_read* const both[] = {&nothing, &something};
  start(both);
  finish();
  EXPECT_EQ(nothing.times_done, 1);
  EXPECT_EQ(nothing.failure, 0);
  EXPECT_TRUE(nothing.data.empty());
  expect_right(something);
}

TEST_P(source_contract, says_where_a_file_ends_when_a_read_goes_beyond) {
  const std::uint32_t file = add_file(2, 10'000);
  subject_->connect();
  counted_read& over = make_read(file, 9'000, 5'000);
  counted_read& beyond = make_read(file, 50'000, 100);
  counted_read& exactly = make_read(file, 9'000, 1'000);
  counted_read* const all[] = {&over, &beyond, &exactly};
  start(all);
  finish();
  EXPECT_EQ(over.failure, ENODATA);
  EXPECT_EQ(over.times_done, 1);
  EXPECT_EQ(over.data.size(), 1'000U);
  EXPECT_EQ(beyond.failure, ENODATA);
  EXPECT_TRUE(beyond.data.empty());
  expect_right(exactly);
  subject_->call([&] {
    const error why = subject_->source().explain(over);
    EXPECT_TRUE(contains(why.what(), "10000")) << why.what();
    EXPECT_TRUE(contains(why.what(), "14000")) << why.what();
  });
}

TEST_P(source_contract, fails_a_read_of_a_missing_file_and_no_other) {
  const std::uint32_t there = add_file(3, 20'000);
  const std::uint32_t missing = subject_->add_missing_file();
  subject_->connect();
  counted_read& a = make_read(missing, 0, 100);
  counted_read& b = make_read(there, 0, 20'000);
  counted_read& c = make_read(missing, 4096, 100);
  counted_read* const all[] = {&a, &b, &c};
  start(all);
  finish();
  EXPECT_EQ(a.failure, ENOENT);
  EXPECT_EQ(c.failure, ENOENT);
  expect_right(b);
  subject_->call([&] { EXPECT_EQ(subject_->source().explain(a).code(), errc::not_found); });
  // And again: a failed open is not remembered as anything else.
  counted_read& again = make_read(missing, 0, 100);
  start(again);
  finish();
  EXPECT_EQ(again.failure, ENOENT);
}

TEST_P(source_contract, tells_size_and_version_of_a_file) {
  const std::uint32_t file = add_file(4, 12'345);
  const std::uint32_t missing = subject_->add_missing_file();
  subject_->connect();
  counted_open before(file, left_);
  counted_open same(file, left_);
  counted_open not_there(missing, left_);
  left_ = 3;
  subject_->call([&] {
    for (counted_open* one : {&before, &same, &not_there}) {
      subject_->source().start(*one);
      EXPECT_EQ(one->times_done, 0);
    }
  });
  finish();
  EXPECT_EQ(before.failure, 0);
  EXPECT_EQ(before.size_bytes, 12'345U);
  EXPECT_EQ(before.version, same.version);
  EXPECT_EQ(not_there.failure, ENOENT);
  subject_->call([&] { EXPECT_EQ(subject_->source().explain(not_there).code(), errc::not_found); });

  std::vector<std::byte> other(54'321);
  subject_->replace_file(file, other);
  counted_open after(file, left_);
  left_ = 1;
  subject_->call([&] { subject_->source().start(after); });
  finish();
  EXPECT_EQ(after.size_bytes, 54'321U);
  EXPECT_NE(after.version, before.version);
}

TEST_P(source_contract, fails_a_read_of_a_whole_file_that_has_grown_since) {
  if (subject_->keeps_what_it_has_read()) GTEST_SKIP() << "what is cached is of the version that was opened";
  constexpr std::size_t sizes[] = {1, 511, 512, 1'000, 4'095, 4'097, 100'000, 1'048'577, 9'000'001};
  std::vector<std::uint32_t> files;
  for (const std::size_t size : sizes) files.push_back(add_file(size, size));
  subject_->connect();
  const auto read_wholes = [&] {
    std::vector<counted_read*> batch;
    for (std::size_t i = 0; i < files.size(); ++i) batch.push_back(&make_read(files[i], 0, sizes[i]));
    start(batch);
    finish();
    return batch;
  };
  for (const counted_read* read : read_wholes()) expect_right(*read);
  // Files that are open are noticed too.
  for (const std::size_t more : {std::size_t{1}, std::size_t{50'000}}) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      std::vector<std::byte> grown(contents(files[i]));
      grown.resize(sizes[i] + more, std::byte{1});
      subject_->replace_file(files[i], grown);
    }
    for (const counted_read* read : read_wholes()) {
      EXPECT_EQ(read->times_done, 1);
      EXPECT_EQ(read->failure, EFBIG) << read->bytes << " bytes and " << more;
      EXPECT_TRUE(read->data.empty());
      subject_->call([&] {
        const error why = subject_->source().explain(*read);
        EXPECT_TRUE(contains(why.what(), std::to_string(read->bytes))) << why.what();
      });
    }
  }
  // Of a part nobody knows what follows it.
  counted_read& part = make_read(files[3], 0, 999);
  counted_read& rest = make_read(files[3], 1, 999);
  counted_read* const parts[] = {&part, &rest};
  start(parts);
  finish();
  expect_right(part);
  expect_right(rest);
}

TEST_P(source_contract, takes_further_reads_from_within_done) {
  const std::uint32_t file = add_file(6, 300'000);
  subject_->connect();
  // A chain: each read starts the next.
  constexpr int links = 50;
  std::vector<counted_read*> chain;
  for (int i = 0; i < links; ++i) {
    chain.push_back(&make_read(file, static_cast<std::uint64_t>(i) * 5'000, 4'321));
  }
  for (int i = 0; i + 1 < links; ++i) {
    chain[static_cast<std::size_t>(i)]->when_done = [this,
                                                     next = chain[static_cast<std::size_t>(i) + 1]](counted_read&) {
      io::read_operation* const one[] = {next};
      subject_->source().start(one);
    };
  }
  start(*chain.front());
  finish();
  for (const counted_read* read : chain) expect_right(*read);
}

TEST_P(source_contract, lets_a_read_cancel_others_from_within_done) {
  const std::uint32_t file = add_file(7, 3'000'000);
  subject_->connect();
  std::vector<counted_read*> batch;
  for (std::uint64_t i = 0; i < 60; ++i) batch.push_back(&make_read(file, i * 40'000, 39'999));
  bool asked = false;
  for (counted_read* read : batch) {
    read->when_done = [&, this](counted_read&) {
      if (std::exchange(asked, true)) return;
      for (counted_read* other : batch) {
        if (other->times_done == 0) subject_->source().cancel(*other);
      }
    };
  }
  start(batch);
  finish();
  for (const counted_read* read : batch) {
    EXPECT_EQ(read->times_done, 1);
    if (read->failure != ECANCELED) expect_right(*read);
  }
}

TEST_P(source_contract, ends_every_read_once_whatever_is_cancelled_and_when) {
  std::vector<std::uint32_t> files;
  for (std::uint64_t i = 0; i < 40; ++i) files.push_back(add_file(100 + i, 1 + 7'919 * i));
  files.push_back(add_file(99, 5'000'000));
  subject_->connect();
  std::size_t cancelled = 0;
  for_each_seed(8, [&](std::uint64_t seed) {
    seeded_random random(seed);
    std::vector<counted_read*> batch;
    for (int i = 0; i < 300; ++i) {
      const std::uint32_t file = files[random.below(files.size())];
      const std::uint64_t size = contents(file).size();
      const std::uint64_t offset = random.below(size);
      const std::uint64_t bytes = 1 + random.below(std::min<std::uint64_t>(size - offset, 150'000));
      batch.push_back(&make_read(file, offset, bytes));
    }
    // In handfuls, some of which are cancelled at once and some later, so that every stage of a read is met.
    std::size_t started = 0;
    while (started < batch.size()) {
      const std::size_t count = std::min<std::size_t>(1 + random.below(60), batch.size() - started);
      std::vector<io::read_operation*> handful(batch.begin() + static_cast<std::ptrdiff_t>(started),
                                               batch.begin() + static_cast<std::ptrdiff_t>(started + count));
      started += count;
      const auto cancel_some = [&] {
        for (std::size_t i = random.below(30); i > 0; --i) {
          counted_read& picked = *batch[random.below(started)];
          if (picked.times_done == 0) subject_->source().cancel(picked);
        }
      };
      subject_->call([&] {
        subject_->source().start(handful);
        if (random.chance(0.5)) cancel_some();
      });
      if (random.chance(0.5)) subject_->call(cancel_some);
    }
    finish();
    for (const counted_read* read : batch) {
      ASSERT_EQ(read->times_done, 1);
      if (read->failure == ECANCELED) {
        ++cancelled;
      } else {
        expect_right(*read);
      }
    }
    reads_.clear();
    EXPECT_EQ(pool_.count().bytes_used, 0U);
  });
  // How many were, is the machine's business: a read may always be faster than its cancellation.
  RecordProperty("cancelled", std::to_string(cancelled));
}

TEST_P(source_contract, leaves_alone_what_lies_beside_the_memory_it_was_given) {
  const std::uint32_t file = add_file(8, 1'000'000);
  subject_->connect();
  const io::lease whole = std::move(*pool_.try_lease(400'000));
  std::memset(whole.data(), 0x77, whole.size());
  counted_read middle(file, 3'333, 100'000, left_);
  const std::size_t room = io::aligned_bytes(middle.offset, middle.bytes);
  middle.into = {whole.bytes().subspan(8'192, room), whole.piece()};
  left_ = 1;
  start(middle);
  finish();
  expect_right(middle);
  const auto is_untouched = [](std::byte b) { return b == std::byte{0x77}; };
  EXPECT_TRUE(std::all_of(whole.data(), whole.data() + 8'192, is_untouched));
  EXPECT_TRUE(std::all_of(whole.data() + 8'192 + room, whole.data() + whole.size(), is_untouched));
}

}  // namespace leat::testing

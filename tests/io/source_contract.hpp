// What io/files/source.hpp promises, as tests for whoever implements it: the ring, its preadv twin, the fake disk.
//
//     INSTANTIATE_TEST_SUITE_P(mine, source_contract, ::testing::Values(source_maker{"mine", make_mine}), name_of_maker);
#pragma once

#include "io/arena/arena.hpp"
#include "io/arena/lease_pool.hpp"
#include "io/files/source.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {

/// A source with a loop to drive it, and files to put into it.
class source_subject {
 public:
  source_subject() = default;
  source_subject(const source_subject&) = delete;
  source_subject& operator=(const source_subject&) = delete;
  virtual ~source_subject() = default;

  // Before connect().
  virtual std::uint32_t add_file(const std::vector<std::byte>& contents) = 0;
  virtual std::uint32_t add_missing_file() = 0;
  virtual void connect() = 0;

  /// Another content under the same name.
  virtual void replace_file(std::uint32_t file, const std::vector<std::byte>& contents) = 0;

  /// Whether bytes that were read once are still there when the file is another one.
  [[nodiscard]] virtual bool keeps_what_it_has_read() const { return false; }

  [[nodiscard]] virtual io::source& source() = 0;
  /// Runs `function` on the loop's thread and returns when it has run.
  virtual void call(const std::function<void()>& function) = 0;
  /// Lets the loop run until `left` is 0.
  virtual void run_until_zero(std::atomic<std::size_t>& left) = 0;
};

struct source_maker {
  std::string name;
  std::function<std::unique_ptr<source_subject>(std::shared_ptr<io::arena>)> make;
};
inline std::ostream& operator<<(std::ostream& out, const source_maker& made) { return out << made.name; }
[[nodiscard]] inline std::string name_of_maker(const ::testing::TestParamInfo<source_maker>& made) {
  return made.param.name;
}

/// A read that counts how often it was told.
struct counted_read : io::read_operation {
  counted_read(std::uint32_t of_file, std::uint64_t at, std::uint64_t count, std::atomic<std::size_t>& to_go)
      : left(&to_go) {
    file = of_file;
    offset = at;
    bytes = count;
    done = [](io::read_operation& operation) noexcept {
      auto& self = static_cast<counted_read&>(operation);
      ++self.times_done;
      if (self.when_done) self.when_done(self);
      // At zero, whoever waits may free us.
      std::atomic<std::size_t>& all = *self.left;
      if (all.fetch_sub(1) == 1) all.notify_all();
    };
  }
  [[nodiscard]] bool data_is_in_memory() const {
    return data.data() >= into.bytes.data() && data.data() + data.size() <= into.bytes.data() + into.bytes.size();
  }

  io::lease memory;
  std::atomic<std::size_t>* left;
  std::function<void(counted_read&)> when_done;
  int times_done = 0;
};

struct counted_open : io::open_operation {
  counted_open(std::uint32_t of_file, std::atomic<std::size_t>& to_go) : left(&to_go) {
    file = of_file;
    done = [](io::open_operation& operation) noexcept {
      auto& self = static_cast<counted_open&>(operation);
      ++self.times_done;
      std::atomic<std::size_t>& all = *self.left;
      if (all.fetch_sub(1) == 1) all.notify_all();
    };
  }
  std::atomic<std::size_t>* left;
  int times_done = 0;
};

class source_contract : public ::testing::TestWithParam<source_maker> {
 protected:
  static constexpr std::size_t pool_bytes = std::size_t{96} << 20;

  source_contract()
      : arena_(std::make_shared<io::arena>(io::arena_options{.bytes_max = pool_bytes})),
        pool_(arena_, {.bytes_max = pool_bytes, .name = "test"}),
        subject_(GetParam().make(arena_)) {}
  ~source_contract() override {
    subject_.reset();
    EXPECT_EQ(pool_.count().leases_out, reads_.size()) << "the source kept a lease";
  }

  /// A file of `bytes` bytes that are a function of the seed.
  std::uint32_t add_file(std::uint64_t seed, std::size_t bytes);
  [[nodiscard]] const std::vector<std::byte>& contents(std::uint32_t file) const { return contents_[file]; }

  /// A read with memory; not started.
  counted_read& make_read(std::uint32_t file, std::uint64_t offset, std::uint64_t bytes);
  void start(std::span<counted_read* const> reads);
  void start(counted_read& read) {
    counted_read* const one[] = {&read};
    start(one);
  }
  void cancel(counted_read& read) {
    subject_->call([&] { subject_->source().cancel(read); });
  }
  /// Until all that was made has been told.
  void finish() { subject_->run_until_zero(left_); }

  void expect_right(const counted_read& read) const;

  std::shared_ptr<io::arena> arena_;
  io::lease_pool pool_;
  std::unique_ptr<source_subject> subject_;
  std::atomic<std::size_t> left_{0};
  std::vector<std::unique_ptr<counted_read>> reads_;
  std::vector<std::vector<std::byte>> contents_;
};

}  // namespace leat::testing

// The calls around next(): for who cannot wait for ever, for who moves a loader, and what a custom field's function may throw.
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/own_samples.hpp>

#include <boost/asio/use_future.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace leat {
namespace {

using namespace std::chrono_literals;
using testing::fake_dataset;
using ::testing::HasSubstr;
using testing::label_only;
using testing::labels;
using testing::loader;
using testing::loader_options;
using testing::seen_batch;
using testing::small_options;
using ::testing::StartsWith;
using testing::watchdog;

std::vector<seen_batch> expected_of(const dataset& samples) {
  return testing::run_all(samples, small_options(), label_only()).batches;
}

// A field that is made when the test says so.
struct gate {
  std::atomic<bool> open{false};
  [[nodiscard]] field made() {
    return custom("cls", dtype::u8, {1},
                  [this](std::span<const std::byte>, const sample_context&, std::span<std::byte> row) {
                    while (!open) std::this_thread::yield();
                    row[0] = std::byte{1};
                    return std::string();
                  });
  }
};

// --- not for ever -------------------------------------------------------------------------------------------------------

TEST(next_blocking, with_a_time_limit_tells_a_batch_from_the_end_of_an_epoch_and_from_nothing_yet) {
  const watchdog dog("next_blocking for a while");
  const fake_dataset set(labels(20));
  const auto expected = expected_of(set);
  loader train(set, small_options(), label_only());
  std::vector<seen_batch> seen;
  for (int epoch = 0; epoch < 2; ++epoch) {
    next_result got = train.next_blocking(60s);
    for (; got; got = train.next_blocking(60s)) {
      EXPECT_EQ(got.status(), next_status::batch);
      EXPECT_EQ(got->epoch(), static_cast<std::uint32_t>(epoch));
      seen.push_back(testing::look_at(*got));
    }
    EXPECT_EQ(got.status(), next_status::end_of_epoch);
  }
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(train.next_blocking(1ms).status(), next_status::end_of_epoch);
  EXPECT_EQ(train.next_blocking(std::chrono::hours::max()).status(), next_status::end_of_epoch);
}

TEST(next_blocking, that_gives_up_loses_no_batch) {
  const watchdog dog("next_blocking that gives up");
  gate closed;
  const fake_dataset set(labels(20));
  loader train(set, small_options(), closed.made());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(train.next_blocking(20ms).status(), next_status::not_ready);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
  EXPECT_EQ(train.next_blocking(0ms).status(), next_status::not_ready);
  EXPECT_EQ(train.next_blocking(-1h).status(), next_status::not_ready);
  EXPECT_EQ(train.try_next().status(), next_status::not_ready);
  closed.open = true;
  for (std::uint64_t index = 0; index < 3; ++index) {
    // However often it gives up meanwhile.
    next_result got = train.next_blocking(1us);
    while (got.status() == next_status::not_ready) got = train.next_blocking(1us);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->index(), index);
  }
  EXPECT_FALSE(train.next_blocking());
}

TEST(try_next, gives_every_batch_in_order_and_never_waits) {
  const watchdog dog("try_next");
  const fake_dataset set(labels(20));
  const auto expected = expected_of(set);
  loader train(set, small_options(), label_only());
  std::vector<seen_batch> seen;
  int ends = 0;
  std::uint64_t found = 0;
  while (ends < 2) {
    const next_result got = train.try_next();
    if (got.status() == next_status::end_of_epoch) ++ends;
    if (got) seen.push_back(testing::look_at(*got));
    if (got.status() == next_status::not_ready) {
      std::this_thread::yield();
    } else {
      ++found;
    }
  }
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(train.stats().next.count, found);
}

TEST(try_next, throws_what_next_would) {
  const watchdog dog("try_next of a stopped loader");
  const fake_dataset set(labels(20));
  loader train(set, small_options(), label_only());
  train.stop();
  testing::message_of(errc::cancelled, [&] { static_cast<void>(train.try_next()); });
  testing::message_of(errc::cancelled, [&] { static_cast<void>(train.next_blocking(1s)); });
}

TEST(try_next, is_refused_while_another_next_waits) {
  const watchdog dog("try_next beside next");
  gate closed;
  const fake_dataset set(labels(20));
  loader train(set, small_options(), closed.made());
  testing::trainer one(train);
  const auto asked = one.ask();
  testing::message_of(errc::usage, [&] { static_cast<void>(train.try_next()); });
  testing::message_of(errc::usage, [&] { static_cast<void>(train.next_blocking(1s)); });
  testing::message_of(errc::usage, [&] { static_cast<void>(train.next_blocking()); });
  closed.open = true;
  one.wait();
  EXPECT_TRUE(asked->got);
}

TEST(next_blocking, is_woken_by_stop) {
  const watchdog dog("next_blocking and stop");
  gate closed;
  const fake_dataset set(labels(20));
  loader train(set, small_options(), closed.made());
  std::thread stopper([&] {
    while (train.stats().next.count == 0) std::this_thread::yield();
    closed.open = true;
    train.stop();
  });
  try {
    while (train.next_blocking()) {
    }
  } catch (const error& stopped) {
    EXPECT_EQ(stopped.code(), errc::cancelled);
  }
  stopper.join();
}

// A handler without an executor runs on a thread of the loader's own.
TEST(next, completes_a_handler_that_has_no_executor_on_an_io_thread_and_never_inside_the_call) {
  const watchdog dog("next without an executor");
  const fake_dataset set(labels(20));
  loader train(set, small_options(), label_only());
  while (train.stats().batches_ready == 0) std::this_thread::yield();
  std::promise<std::pair<std::thread::id, std::string>> told;
  std::atomic<bool> inside{true};
  train.next([&](std::exception_ptr, std::optional<batch> got) {
    while (inside) std::this_thread::yield();
    char name[16] = "";
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    got.reset();
    told.set_value({std::this_thread::get_id(), name});
  });
  inside = false;
  const auto [thread, name] = told.get_future().get();
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_EQ(name, "leat-io-0");
}

// --- moving -------------------------------------------------------------------------------------------------------------

static_assert(std::is_nothrow_move_constructible_v<loader> && std::is_nothrow_move_assignable_v<loader>);
static_assert(!std::is_copy_constructible_v<loader>);

loader make_one(const dataset& samples) {
  loader made(samples, small_options(), label_only());
  if (samples.size() == 0) return loader(samples, small_options(), label_only());
  return made;
}

TEST(a_loader, can_be_returned_kept_in_a_container_and_assigned) {
  const watchdog dog("moving loaders");
  const fake_dataset set(labels(20));
  const auto expected = expected_of(set);
  std::vector<loader> all;
  for (int i = 0; i < 5; ++i) all.push_back(make_one(set));
  all.erase(all.begin() + 1);
  all[0] = std::move(all[2]);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    EXPECT_EQ(testing::run_epochs(all[i], 2), expected);
  }
}

TEST(a_loader, that_is_moved_while_a_next_is_pending_completes_it) {
  const watchdog dog("moving with next pending");
  gate closed;
  const fake_dataset set(labels(20));
  loader first(set, small_options(), closed.made());
  testing::trainer one(first);
  const auto asked = one.ask();
  loader second = std::move(first);
  closed.open = true;
  one.wait();
  ASSERT_TRUE(asked->got);
  EXPECT_EQ(asked->got->index(), 0U);
  EXPECT_EQ(second.next_blocking()->index(), 1U);
}

TEST(a_loader, that_was_moved_from_says_so_and_can_be_assigned_to) {
  const watchdog dog("moved from");
  const fake_dataset set(labels(20));
  loader first(set, small_options(), label_only());
  const loader second = std::move(first);
  const auto refused = [&](auto call) { EXPECT_THAT(testing::message_of(errc::usage, call), HasSubstr("moved")); };
  // NOLINTBEGIN(bugprone-use-after-move)
  refused([&] { static_cast<void>(first.next_blocking()); });
  refused([&] { static_cast<void>(first.try_next()); });
  refused([&] { first.skip_epoch(); });
  refused([&] { static_cast<void>(first.next(boost::asio::use_future)); });
  first.stop();
  first = make_one(set);
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_EQ(testing::run_epochs(first, 2), expected_of(set));
}

// --- what a function throws ---------------------------------------------------------------------------------------------

struct no_exception_of_the_standard {
  int value;
};

// What the call throws, which must be leat's error; and what is nested in it, handled by `nested`.
template <class Call>
std::string thrown_by(const Call& call, const std::function<void()>& nested) {
  try {
    call();
  } catch (const error& outer) {
    EXPECT_EQ(static_cast<int>(outer.code()), static_cast<int>(errc::callback));
    bool was_nested = true;
    try {
      std::rethrow_if_nested(outer);
      was_nested = false;
    } catch (...) {
      nested();
    }
    EXPECT_TRUE(was_nested);
    return outer.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(a_custom_field, that_throws_ends_the_run_in_its_batch_s_turn_by_an_error_that_names_it_and_has_the_original) {
  const fake_dataset set(labels(64));
  for (const std::uint32_t threads : {1U, 2U, 5U}) {
    const watchdog dog("a custom field that throws");
    loader_options options = small_options();
    options.shuffle = false;
    options.decode_threads = threads;
    options.on_corrupt = corrupt_policy::skip;
    loader train(set, options,
                 custom("cls", dtype::u8, {1},
                        [](std::span<const std::byte>, const sample_context& context, std::span<std::byte> row) {
                          if (context.sample >= 29) throw std::out_of_range("thrown by the user");
                          row[0] = std::byte{1};
                          return std::string();
                        }));
    for (std::uint64_t index = 0; index < 3; ++index) EXPECT_EQ(train.next_blocking()->index(), index);
    for (int again = 0; again < 2; ++again) {
      const std::string said = thrown_by([&] { static_cast<void>(train.next_blocking()); },
                                         [] {
                                           EXPECT_THROW(
                                               {
                                                 try {
                                                   throw;
                                                 } catch (const std::out_of_range& original) {
                                                   EXPECT_STREQ(original.what(), "thrown by the user");
                                                   throw;
                                                 }
                                               },
                                               std::out_of_range);
                                         });
      EXPECT_THAT(
          said, StartsWith("sample sample/29 (number 29), field 'cls': its function threw std::out_of_range: thrown by "
                           "the user; "));
    }
    EXPECT_EQ(train.stats().quarantined, 0U);
  }
}

TEST(a_custom_field, may_throw_what_is_no_std_exception) {
  const watchdog dog("a custom field that throws anything");
  const fake_dataset set(labels(64));
  const auto said_for = [&](const std::function<void()>& throwing, const std::function<void()>& nested) {
    loader train(
        set, small_options(),
        custom("cls", dtype::u8, {1}, [&](std::span<const std::byte>, const sample_context&, std::span<std::byte>) {
          throwing();
          return std::string();
        }));
    return thrown_by([&] { static_cast<void>(train.next_blocking()); }, nested);
  };
  EXPECT_THAT(said_for([] { throw 42; }, [] { EXPECT_THROW(throw, int); }), HasSubstr("its function threw int; "));
  EXPECT_THAT(said_for([] { throw no_exception_of_the_standard{7}; },
                       [] { EXPECT_THROW(throw, no_exception_of_the_standard); }),
              HasSubstr("no_exception_of_the_standard"));
  EXPECT_THAT(said_for([] { throw error(errc::cancelled, "one of ours"); }, [] { EXPECT_THROW(throw, error); }),
              HasSubstr("leat::error: one of ours"));
}

TEST(from_function, may_throw_what_is_no_std_exception_and_it_is_that_sample_s_fate) {
  const watchdog dog("a function that throws anything");
  const dataset made = from_function(24,
                                     [](std::uint64_t sample) {
                                       if (sample == 9) throw 42;
                                       return std::vector<std::byte>(1, std::byte{'7'});
                                     },
                                     {.field = "cls", .bytes_max = 1});
  loader_options options = small_options();
  options.on_corrupt = corrupt_policy::skip;
  const testing::seen_run run = testing::run_all(made, options, label_only());
  EXPECT_FALSE(run.failed) << run.message;
  EXPECT_EQ(run.stats.quarantined, 2U) << "one in each epoch";
  options.on_corrupt = corrupt_policy::raise;
  EXPECT_THAT(testing::run_all(made, options, label_only()).message, HasSubstr("cls: int"));
}

}  // namespace
}  // namespace leat

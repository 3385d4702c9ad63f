#include "stages/run/delivery.hpp"

#include "tests/support/failures.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace leat::stages {
namespace {

namespace asio = boost::asio;

// As a loader's next().
struct call {
  using result = std::optional<batch>;
  class turn : public detail::turn {
   public:
    using detail::turn::turn;
    result take(std::exception_ptr& failure) {
      const std::uint64_t number = key().number;
      delivery::taken now = static_cast<delivery&>(*leave()).take(number);
      failure = now.failure;
      return std::move(now.got);
    }
  };
};

// A trainer on a context of its own, one turn at a time.
class consumer {
 public:
  struct result {
    bool completed = false;
    std::exception_ptr failure;
    std::optional<batch> got;
  };

  explicit consumer(std::shared_ptr<delivery> from) : from_(std::move(from)) {}

  std::shared_ptr<result> next(asio::cancellation_slot slot = {}) {
    auto into = std::make_shared<result>();
    auto handler = asio::bind_cancellation_slot(
        slot, asio::bind_executor(context_, [into](std::exception_ptr failure, std::optional<batch> got) {
          into->completed = true;
          into->failure = failure;
          into->got = std::move(got);
        }));
    const std::uint64_t number = from_->new_call();
    from_->begin(number, detail::wait_completion(detail::turn_handler<decltype(handler), call>(
                             std::move(handler), call::turn(from_, number))));
    return into;
  }

  void turn() {
    context_.restart();
    context_.poll();
  }

 private:
  asio::io_context context_;
  std::shared_ptr<delivery> from_;
};

delivery_item item_of(std::uint64_t index) {
  delivery_item item;
  item.finished = std::make_unique<batch::state>();
  item.finished->index = index;
  item.finished->layout = std::make_shared<const batch_layout>(std::vector<output_spec>{}, 1);
  item.planned = 2;
  item.samples = 2;
  return item;
}

TEST(delivery, hands_out_in_order_what_arrives_in_any) {
  leat::testing::for_each_seed(200, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto from = std::make_shared<delivery>(journal());
    delivery& line = *from;
    consumer trainer(from);
    std::vector<std::uint64_t> places(12);
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    std::shuffle(places.begin(), places.end(), random);

    std::vector<std::uint64_t> seen;
    std::shared_ptr<consumer::result> pending;
    std::size_t put = 0;
    while (seen.size() < places.size()) {
      if (put < places.size() && (random() % 2 == 0)) {
        line.put(places[put], item_of(places[put]));
        ++put;
      }
      if (pending == nullptr) pending = trainer.next();
      trainer.turn();
      if (pending->completed) {
        ASSERT_EQ(pending->failure, nullptr);
        seen.push_back(pending->got->index());
        pending = nullptr;
      }
    }
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(line.count().planned, 24U);
  });
}

TEST(delivery, tells_once_of_several_that_come_at_once) {
  const auto from = std::make_shared<delivery>(journal());
  consumer trainer(from);
  const auto first = trainer.next();
  from->put_untold(0, item_of(0));
  from->put_untold(1, item_of(1));
  trainer.turn();
  EXPECT_FALSE(first->completed);
  from->tell();
  trainer.turn();
  ASSERT_TRUE(first->completed && first->got);
  EXPECT_EQ(first->got->index(), 0U);
  const auto second = trainer.next();
  trainer.turn();
  ASSERT_TRUE(second->completed && second->got) << "it was there already";
  EXPECT_EQ(second->got->index(), 1U);
}

TEST(delivery, says_nullopt_at_the_end_of_an_epoch_and_for_ever_at_the_end_of_the_run) {
  const auto from = std::make_shared<delivery>(journal());
  delivery& line = *from;
  consumer trainer(from);
  delivery_item end;
  end.end_of_epoch = true;
  line.put(0, std::move(end));
  line.put(1, item_of(0));
  line.end(2);
  const auto first = trainer.next();
  trainer.turn();
  EXPECT_TRUE(first->completed && first->failure == nullptr && !first->got);
  EXPECT_EQ(line.count().epochs_finished, 1U);
  const auto second = trainer.next();
  trainer.turn();
  EXPECT_TRUE(second->got.has_value());
  for (int again = 0; again < 3; ++again) {
    const auto last = trainer.next();
    trainer.turn();
    EXPECT_TRUE(last->completed && last->failure == nullptr && !last->got);
  }
}

TEST(delivery, refuses_a_second_call_before_the_first_has_completed) {
  const auto from = std::make_shared<delivery>(journal());
  delivery& line = *from;
  consumer trainer(from);
  const auto first = trainer.next();
  const auto second = trainer.next();
  trainer.turn();
  EXPECT_FALSE(first->completed);
  ASSERT_TRUE(second->completed);
  EXPECT_EQ(leat::testing::code_of(second->failure), errc::usage);
  line.put(0, item_of(5));
  trainer.turn();
  EXPECT_TRUE(first->got.has_value());
}

TEST(delivery, a_cancelled_call_loses_no_batch) {
  const auto from = std::make_shared<delivery>(journal());
  delivery& line = *from;
  consumer trainer(from);
  asio::cancellation_signal stop;
  const auto cancelled = trainer.next(stop.slot());
  trainer.turn();
  stop.emit(asio::cancellation_type::total);
  trainer.turn();
  ASSERT_TRUE(cancelled->completed);
  EXPECT_THROW(std::rethrow_exception(cancelled->failure), boost::system::system_error);
  line.put(0, item_of(3));
  const auto next = trainer.next();
  trainer.turn();
  ASSERT_TRUE(next->got.has_value());
  EXPECT_EQ(next->got->index(), 3U);
}

TEST(delivery, a_call_that_is_cancelled_before_its_handler_runs_loses_no_batch) {
  const auto from = std::make_shared<delivery>(journal());
  consumer trainer(from);
  for (const auto how :
       {asio::cancellation_type::total, asio::cancellation_type::partial, asio::cancellation_type::terminal}) {
    asio::cancellation_signal stop;
    const auto cancelled = trainer.next(stop.slot());
    if (how == asio::cancellation_type::total) from->put(0, item_of(3));
    stop.emit(how);  // What it waited for is there, and its handler posted.
    trainer.turn();
    ASSERT_TRUE(cancelled->completed);
    EXPECT_THROW(std::rethrow_exception(cancelled->failure), boost::system::system_error);
    EXPECT_EQ(from->count().batches, 0U);
    EXPECT_EQ(from->progress().batch, 0U);
  }
  const auto next = trainer.next();
  trainer.turn();
  ASSERT_TRUE(next->got.has_value());
  EXPECT_EQ(next->got->index(), 3U);
}

TEST(delivery, a_call_whose_handler_never_runs_loses_no_batch) {
  const auto from = std::make_shared<delivery>(journal());
  {
    consumer gone(from);
    static_cast<void>(gone.next());
    from->put(0, item_of(3));
  }
  consumer trainer(from);
  const auto next = trainer.next();
  trainer.turn();
  ASSERT_TRUE(next->got.has_value());
  EXPECT_EQ(next->got->index(), 3U);
}

TEST(delivery, gives_the_same_error_for_ever_after_the_batches_before_it) {
  const auto from = std::make_shared<delivery>(journal());
  delivery& line = *from;
  consumer trainer(from);
  line.put(0, item_of(0));
  line.put(2, item_of(2));
  delivery_item failed;
  failed.failure = std::make_exception_ptr(error(errc::corrupt, "sample 7"));
  line.put(1, std::move(failed));
  const auto before = trainer.next();
  trainer.turn();
  EXPECT_TRUE(before->got.has_value());
  for (int again = 0; again < 3; ++again) {
    const auto after = trainer.next();
    trainer.turn();
    ASSERT_TRUE(after->completed && after->failure != nullptr);
    EXPECT_EQ(leat::testing::code_of(after->failure), errc::corrupt);
  }
}

TEST(delivery, hands_out_nothing_after_an_error_whatever_still_arrives) {
  const auto from = std::make_shared<delivery>(journal());
  delivery& line = *from;
  consumer trainer(from);
  line.fail(std::make_exception_ptr(error(errc::permission, "no")));
  const auto first = trainer.next();
  trainer.turn();
  ASSERT_TRUE(first->completed && first->failure != nullptr);
  line.put(0, item_of(0));
  const auto second = trainer.next();
  trainer.turn();
  ASSERT_TRUE(second->completed && second->failure != nullptr);
  EXPECT_EQ(leat::testing::code_of(second->failure), errc::permission);
}

TEST(delivery, a_journal_that_cannot_be_written_ends_the_run_and_counts_nothing) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const auto from = std::make_shared<delivery>(journal("/dev/full"));
  delivery& line = *from;
  consumer trainer(from);
  delivery_item item = item_of(0);
  item.journal.push_back({.epoch = 0,
                          .batch = 0,
                          .sample = 3,
                          .name = "a",
                          .source = "x",
                          .offset = std::nullopt,
                          .reason = "cut",
                          .action = "skipped",
                          .substitute = std::nullopt});
  line.put(0, std::move(item));
  line.put(1, item_of(1));
  for (int again = 0; again < 2; ++again) {
    const auto got = trainer.next();
    trainer.turn();
    ASSERT_TRUE(got->completed && got->failure != nullptr);
    EXPECT_EQ(leat::testing::code_of(got->failure), errc::io);
  }
  EXPECT_EQ(line.count().planned, 0U);
  EXPECT_EQ(line.count().batches, 0U);
}

TEST(delivery, close_completes_the_call_that_waits) {
  const auto from = std::make_shared<delivery>(journal());
  delivery& line = *from;
  consumer trainer(from);
  const auto waiting = trainer.next();
  line.close(std::make_exception_ptr(error(errc::cancelled, "stopped")));
  trainer.turn();
  ASSERT_TRUE(waiting->completed);
  EXPECT_EQ(leat::testing::code_of(waiting->failure), errc::cancelled);
}

TEST(delivery, writes_the_journal_when_a_batch_is_handed_out_and_not_before) {
  const leat::testing::temporary_directory directory;
  const std::filesystem::path path = directory.path() / "journal.jsonl";
  const auto from = std::make_shared<delivery>(journal(path));
  delivery& line = *from;
  consumer trainer(from);
  delivery_item item = item_of(0);
  item.journal.push_back({.epoch = 1,
                          .batch = 2,
                          .sample = 3,
                          .name = "a \"b\"\xFF",
                          .source = "x.tar",
                          .offset = 512,
                          .reason = "cut",
                          .action = "skipped",
                          .substitute = std::nullopt});
  line.put(0, std::move(item));
  EXPECT_EQ(std::filesystem::file_size(path), 0U);
  const auto got = trainer.next();
  trainer.turn();
  ASSERT_TRUE(got->got.has_value());
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  EXPECT_EQ(text,
            "{\"epoch\":1,\"batch\":2,\"sample\":3,\"name\":\"a \\\"b\\\"\xEF\xBF\xBD\",\"source\":\"x.tar\","
            "\"offset\":512,\"kind\":\"damaged\",\"reason\":\"cut\",\"action\":\"skipped\"}");
}

}  // namespace
}  // namespace leat::stages

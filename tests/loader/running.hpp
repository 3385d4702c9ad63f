// What the loader's tests share: the usual fields, and what a run delivered as values that can be compared.
#pragma once

#include "stages/digest.hpp"
#include "tests/support/batch_view.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#ifdef LEAT_TESTS_ON_DEVICE
#include "tests/support/simulated_device.hpp"
#endif
#ifdef LEAT_TESTS_ON_CUDA
#include <cuda_runtime_api.h>
#endif

#include <leat/loader.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {

/// Everything make_samples() holds: a random crop of a picture, a number, a text, bytes.
inline std::vector<field> all_fields() {
  return {image("jpg").random_resized_crop(12).random_flip().normalize(imagenet), label("cls"), text("txt"),
          bytes("json")};
}

/// Small and cheap: tests of what is around the decoders.
inline std::vector<field> label_only() { return {label("cls")}; }

/// A budget that fits any of these tests. Little memory is touched, so that a loader costs little.
inline constexpr std::size_t small_budget = std::size_t{40} << 20;

inline loader_options small_options() {
  loader_options options;
  options.batch_size = 8;
  options.seed = 7;
  options.epochs = 2;
  options.decode_threads = 2;
  options.host_bytes_max = small_budget;
  options.digests = true;
#ifdef LEAT_TESTS_ON_DEVICE
  // Another one for each test, and another way of running late or early.
  static std::atomic<std::uint64_t> devices{number_from_environment<std::uint64_t>("LEAT_SEED", 1)};
  const std::uint64_t seed = devices++;
  const auto any = [seed](std::uint64_t of) {
    return static_cast<execution>(seeded_random(seed + 1000 * of).below(3));
  };
  options.device_calls =
      std::make_shared<simulated_device>(simulated_device_options{.seed = seed, .loader = any(1), .consumer = any(2)});
#endif
#ifdef LEAT_TESTS_ON_CUDA
  options.device = cuda(0);
#endif
  return options;
}

struct seen_batch {
  std::uint32_t epoch = 0;
  std::uint64_t index = 0;
  std::vector<std::uint64_t> ids;
  std::vector<std::int64_t> labels;
  std::string content;

  friend bool operator==(const seen_batch&, const seen_batch&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const seen_batch& seen) {
  out << "epoch " << seen.epoch << " batch " << seen.index << " ids";
  for (const std::uint64_t id : seen.ids) out << ' ' << id;
  return out << " digest " << seen.content;
}

/// A copy of what lies there, once it has arrived: the simulated device's memory is the host's.
inline std::vector<std::byte> bytes_of(std::span<const std::byte> memory) {
  std::vector<std::byte> copy(memory.size());
#ifdef LEAT_TESTS_ON_CUDA
  EXPECT_STREQ(cudaGetErrorName(cudaMemcpy(copy.data(), memory.data(), memory.size(), cudaMemcpyDefault)),
               "cudaSuccess");
#else
  std::copy(memory.begin(), memory.end(), copy.begin());
#endif
  return copy;
}
template <class T>
std::vector<T> values_of(const tensor& from) {
  const std::vector<std::byte> bytes = bytes_of({static_cast<const std::byte*>(from.data), from.bytes()});
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(values.data()));
  return values;
}

/// Takes note of a batch; on a device once it has arrived there, on the default stream. The bytes that lie there have to
/// have the digest that the batch states.
inline seen_batch look_at(const batch& delivered) {
  const tensor first = delivered[delivered.outputs().front()];
  if (first.where != host) {
    auto& awaited = const_cast<batch&>(delivered);  // Of whoever holds it: to wait for it changes nothing of it.
    awaited.wait_on(stream());
    awaited.ready(boost::asio::use_future).get();
  }
  if (delivered.content_digest()) {
    const batch_view there(delivered);
    const std::vector<std::byte> bytes = bytes_of(there.bytes());
    EXPECT_EQ(there.in(bytes.data()).content().hex(), delivered.content_digest()->hex());
  }
  seen_batch seen;
  seen.epoch = delivered.epoch();
  seen.index = delivered.index();
  seen.ids.assign(delivered.ids().begin(), delivered.ids().end());
  for (const std::string& output : delivered.outputs()) {
    if (output != "cls") continue;
    seen.labels = values_of<std::int64_t>(delivered["cls"]);
  }
  if (const auto content = delivered.content_digest()) seen.content = content->hex();
  return seen;
}

/// All batches of so many epochs.
inline std::vector<seen_batch> run_epochs(loader& from, std::uint32_t epochs) {
  std::vector<seen_batch> seen;
  for (std::uint32_t e = 0; e < epochs; ++e) {
    for (const batch& delivered : from.blocking()) seen.push_back(look_at(delivered));
  }
  return seen;
}

/// What a run delivers, the error that ended it where one did, and what it counted.
struct seen_run {
  std::vector<seen_batch> batches;
  std::optional<errc> failed;
  std::string message;
  loader_stats stats;
};

inline seen_run run_all(const dataset& samples, const loader_options& options, std::vector<field> fields) {
  seen_run run;
  std::optional<loader> train;
  try {
    train.emplace(samples, options, std::move(fields));
    for (std::uint32_t e = 0; e < options.epochs; ++e) {
      while (std::optional<batch> delivered = train->next_blocking()) run.batches.push_back(look_at(*delivered));
    }
  } catch (const error& failure) {
    run.failed = failure.code();
    run.message = failure.what();
  }
  if (train) run.stats = train->stats();
  return run;
}

/// A trainer on a context of its own, which the test turns by hand.
class trainer {
 public:
  struct result {
    bool completed = false;
    std::exception_ptr failure;
    std::optional<batch> got;
  };

  explicit trainer(loader& from) : from_(from) {}

  /// Calls next(), and does not wait.
  std::shared_ptr<result> ask(boost::asio::cancellation_slot slot = {}) {
    auto into = std::make_shared<result>();
    from_.next(boost::asio::bind_cancellation_slot(
        slot, boost::asio::bind_executor(context_, [into](std::exception_ptr failure, std::optional<batch> got) {
          into->completed = true;
          into->failure = std::move(failure);
          into->got = std::move(got);
        })));
    return into;
  }

  /// Runs what is ready.
  void turn() {
    context_.restart();
    context_.poll();
  }
  /// Runs until every call has completed.
  void wait() {
    context_.restart();
    context_.run();
  }
  std::shared_ptr<result> ask_and_wait() {
    auto into = ask();
    wait();
    return into;
  }

 private:
  boost::asio::io_context context_;
  loader& from_;
};

inline std::string whole_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace leat::testing

// What the loader's tests share: the usual fields, and what a run delivered as values that can be compared.
#pragma once

#include "stages/digest.hpp"
#include "tests/support/batch_view.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/simulated_device.hpp"
#ifdef LEAT_TESTS_ON_DEVICE
#include "stages/device_transfer.hpp"

#include <cstdlib>
#endif
#ifdef LEAT_TESTS_ON_CUDA
#include <cuda_runtime_api.h>
#endif

#include <leat/loader.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
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
#include <string_view>
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
  static std::atomic<std::uint64_t> devices{number_from_environment<std::uint64_t>("LEAT_SEED_FIRST", 1)};
  const std::uint64_t seed = current_seed() != 0 ? current_seed() : devices++;
  const auto any = [seed](std::uint64_t of) {
    return static_cast<execution>(seeded_random(seed + 1000 * of).below(3));
  };
  const auto device =
      std::make_shared<simulated_device>(simulated_device_options{.seed = seed, .loader = any(1), .consumer = any(2)});
  options.device_calls = device;
  // With which the suites have to fail: tests/device/CMakeLists.txt.
  if (std::getenv("LEAT_TESTS_WITHOUT_WAIT_ON") != nullptr) {
    options.transfer = std::make_shared<stages::device_transfer>(
        device, stages::device_transfer_options{.leave_out = {.consumer_for_copy = true}});
  }
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

/// Bytes of a batch, as a trainer's kernel finds them: on a device by operations in the default stream, which has waited for
/// the batch by wait_on() and for nothing else.
///   whole     where the copy that is returned begins and ends
///   tensors   what is copied: parts of `whole`
inline std::vector<std::byte> read_of(const batch& from, std::span<const std::byte> whole,
                                      const std::vector<std::span<const std::byte>>& tensors) {
  std::vector<std::byte> copy(whole.size());
  const auto place_of = [&](std::span<const std::byte> part) { return copy.data() + (part.data() - whole.data()); };
  if (from[from.outputs().front()].where == host) {
    for (const auto& each : tensors) std::copy(each.begin(), each.end(), place_of(each));
    return copy;
  }
  const_cast<batch&>(from).wait_on(stream());  // Of whoever holds it: to wait for it changes nothing of it.
#ifdef LEAT_TESTS_ON_CUDA
  for (const auto& each : tensors) {
    EXPECT_STREQ(cudaGetErrorName(cudaMemcpyAsync(place_of(each), each.data(), each.size(), cudaMemcpyDeviceToHost,
                                                  cudaStreamLegacy)),
                 "cudaSuccess");
  }
  EXPECT_STREQ(cudaGetErrorName(cudaStreamSynchronize(cudaStreamLegacy)), "cudaSuccess");
#else
  simulated_device* const device = simulated_device::holding(whole.data());
  if (device == nullptr) {
    ADD_FAILURE() << "a batch that lies on no device that is there";
    return copy;
  }
  for (const auto& each : tensors) {
    device->launch(stream(), [&place_of, each] { std::copy(each.begin(), each.end(), place_of(each)); });
  }
  device->finish_all(stream());
#endif
  return copy;
}

template <class T>
std::vector<T> values_of(const batch& from, std::string_view output) {
  const tensor there = from[output];
  const std::span<const std::byte> memory(static_cast<const std::byte*>(there.data), there.bytes());
  const std::vector<std::byte> bytes = read_of(from, memory, {memory});
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(values.data()));
  return values;
}

/// The bytes of one row, wherever the batch lies.
inline std::vector<std::byte> row_of(const batch& from, std::string_view output, std::size_t row) {
  const std::vector<std::byte> all = values_of<std::byte>(from, output);
  const auto names = from.outputs();
  const std::string offsets = std::string(output) + ".offsets";
  std::size_t begin = all.size() / from.valid_rows() * row;
  std::size_t end = all.size() / from.valid_rows() * (row + 1);
  if (std::find(names.begin(), names.end(), offsets) != names.end()) {
    const std::vector<std::int64_t> bounds = values_of<std::int64_t>(from, offsets);
    begin = static_cast<std::size_t>(bounds.at(row));
    end = static_cast<std::size_t>(bounds.at(row + 1));
  }
  return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)};
}

/// Takes note of a batch, as a trainer's stream finds it: the bytes that lie there have to have the digest that the batch
/// states.
inline seen_batch look_at(const batch& delivered) {
  if (delivered.content_digest()) {
    const batch_view there(delivered);
    const std::vector<std::byte> bytes = read_of(delivered, there.bytes(), there.tensors());
    EXPECT_EQ(there.in(bytes.data()).content().hex(), delivered.content_digest()->hex());
  }
  seen_batch seen;
  seen.epoch = delivered.epoch();
  seen.index = delivered.index();
  seen.ids.assign(delivered.ids().begin(), delivered.ids().end());
  for (const std::string& output : delivered.outputs()) {
    if (output != "cls") continue;
    seen.labels = values_of<std::int64_t>(delivered, "cls");
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

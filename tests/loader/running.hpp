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
#include <sstream>
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

#ifdef LEAT_TESTS_ON_DEVICE
/// How a test's device runs: late, early or at random, by seed. Without one of the waits, which LEAT_TESTS_WITHOUT names, as it
/// takes to show what that is there for; then the suites have to fail (tests/device/CMakeLists.txt).
inline simulated_device_options device_of_the_suites(std::uint64_t seed) {
  const char* const set = std::getenv("LEAT_TESTS_WITHOUT");
  const std::string_view without = set == nullptr ? "" : set;
  const auto late = execution::late;
  const auto early = execution::early;
  if (without == "copy_for_consumer") {
    return {.seed = seed, .loader = early, .consumer = late, .left_out = {.copy_for_consumer = true}};
  }
  if (without == "consumer_for_copy") {
    return {.seed = seed, .loader = late, .consumer = early, .left_out = {.consumer_for_copy = true}};
  }
  if (without == "host_for_copy") {
    return {.seed = seed, .loader = late, .consumer = late, .left_out = {.host_for_copy = true}};
  }
  // Both sides as one of these, or each as the seed says.
  const char* const told = std::getenv("LEAT_TESTS_DEVICE");
  const std::string_view mode = told == nullptr ? "" : told;
  if (mode == "late_consumer") return {.seed = seed, .loader = early, .consumer = late};
  if (mode == "late_loader") return {.seed = seed, .loader = late, .consumer = early};
  const auto any = [seed](std::uint64_t of) {
    return static_cast<execution>(seeded_random(seed + 1000 * of).below(3));
  };
  return {.seed = seed, .loader = any(1), .consumer = any(2)};
}

/// Of the test that runs, so that each test has another one, also where each is a process of its own.
inline std::uint64_t seed_of_test() {
  const ::testing::TestInfo* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a: the same on every machine and in every run.
  for (const char* const part : {test->test_suite_name(), ".", test->name()}) {
    for (const char c : std::string_view(part)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  }
  return hash;
}
#endif

inline loader_options small_options() {
  loader_options options;
  options.batch_size = 8;
  options.seed = 7;
  options.epochs = 2;
  options.decode_threads = 2;
  options.host_bytes_max = small_budget;
  options.digests = true;
#ifdef LEAT_TESTS_ON_DEVICE
  // Another one for each test and each of its loaders, and another way of running late or early.
  static std::atomic<std::uint64_t> devices{number_from_environment<std::uint64_t>("LEAT_SEED_FIRST", 1)};
  const std::uint64_t seed = current_seed() != 0 ? current_seed() : seed_of_test() + devices++;
  options.device_calls = std::make_shared<simulated_device>(device_of_the_suites(seed));
#endif
#ifdef LEAT_TESTS_ON_CUDA
  options.device = cuda(0);
#endif
  return options;
}

/// Bytes of a batch, as a trainer's kernel finds them: on a device by operations in a stream that has waited for the batch by
/// wait_on() and for nothing else. On a simulated device that is none of the streams of the steps below, which are not to be
/// waited for with it.
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
  auto& waits = const_cast<batch&>(from);  // Of whoever holds it: to wait for it changes nothing of it.
#ifdef LEAT_TESTS_ON_CUDA
  waits.wait_on(stream());
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
  const stream reads = device->consumer_beside();
  waits.wait_on(reads);
  for (const auto& each : tensors) {
    device->launch(reads, [&place_of, each] { std::copy(each.begin(), each.end(), place_of(each)); });
  }
  device->finish_all(reads);
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
  if (begin > end || end > all.size()) {
    ADD_FAILURE() << "row " << row << " of '" << output << "' is from " << begin << " to " << end << " of "
                  << all.size();
    return {};
  }
  return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)};
}

/// What a trainer's step does with a batch when its turn comes: it looks whether the bytes that lie there have the digest that the
/// batch states, and takes the labels.
class step_that_looks {
 public:
  explicit step_that_looks(const batch& at)
      : view_(at), stated_(at.content_digest()), device_(simulated_device::holding(view_.bytes().data())) {
    for (const std::string& output : at.outputs()) {
      if (output == "cls") labels_there_ = at["cls"];
    }
    what_ << "batch " << at.index() << " of epoch " << at.epoch() << ", " << at.valid_rows() << " rows";
    if (current_seed() != 0) what_ << ", seed " << current_seed();
  }
  step_that_looks(const step_that_looks&) = delete;
  step_that_looks& operator=(const step_that_looks&) = delete;
  ~step_that_looks() {
    if (!taken_) ADD_FAILURE() << what_.str() << ": the step that reads it was never executed";
  }

  /// Where the batch lies.
  void take() { take_from(view_, labels_there_); }
  /// In a copy of it, which begins at `bytes`.
  void take_from_copy(const std::byte* bytes) {
    std::optional<tensor> labels = labels_there_;
    if (labels) labels->data = const_cast<std::byte*>(bytes) + offset_of_labels();
    take_from(view_.in(bytes), labels);
  }
  [[nodiscard]] const batch_view& view() const noexcept { return view_; }
  /// Null where it is none of the simulated ones.
  [[nodiscard]] simulated_device* where() const noexcept { return device_; }
  /// Those it found; where its turn has not come it is waited for.
  [[nodiscard]] const std::vector<std::int64_t>& labels() {
    if (!taken_) device_->finish_all(stream());
    return labels_;
  }

 private:
  void take_from(const batch_view& there, const std::optional<tensor>& labels) {
    if (labels) {
      labels_.resize(labels->bytes() / sizeof labels_[0]);
      const auto* const first = static_cast<const std::byte*>(labels->data);
      std::copy(first, first + labels->bytes(), reinterpret_cast<std::byte*>(labels_.data()));
    }
    if (stated_ && there.content() != *stated_) {
      ADD_FAILURE() << what_.str() << ": a step found bytes of another digest than the batch states";
    }
    taken_ = true;
  }
  [[nodiscard]] std::ptrdiff_t offset_of_labels() const {
    return static_cast<const std::byte*>(labels_there_->data) - view_.bytes().data();
  }

  const batch_view view_;
  const std::optional<digest> stated_;
  simulated_device* const
      device_;  // There as long as the batch's memory is, by whose end every step has been executed.
  std::optional<tensor> labels_there_;
  std::vector<std::int64_t> labels_;
  std::ostringstream what_;
  std::atomic<bool> taken_ = false;
};

struct seen_batch {
  std::uint32_t epoch = 0;
  std::uint64_t index = 0;
  std::vector<std::uint64_t> ids;
  std::string content;
  std::shared_ptr<step_that_looks> step;

  [[nodiscard]] const std::vector<std::int64_t>& labels() const { return step->labels(); }

  friend bool operator==(const seen_batch& a, const seen_batch& b) {
    return a.epoch == b.epoch && a.index == b.index && a.ids == b.ids && a.content == b.content &&
           a.labels() == b.labels();
  }
};

inline std::ostream& operator<<(std::ostream& out, const seen_batch& seen) {
  out << "epoch " << seen.epoch << " batch " << seen.index << " ids";
  for (const std::uint64_t id : seen.ids) out << ' ' << id;
  return out << " digest " << seen.content;
}

/// Takes note of a batch, and has a trainer's step look at it, in the default stream, which has waited for it by wait_on() and for
/// nothing else. A simulated device executes the step when it likes to: mostly long after the batch has ended, while others are
/// copied to where it lay, and at the latest when the loader ends. That is what each of the three waits is there for. One
/// batch in four is waited for at once.
inline seen_batch look_at(const batch& delivered) {
  seen_batch seen;
  seen.epoch = delivered.epoch();
  seen.index = delivered.index();
  seen.ids.assign(delivered.ids().begin(), delivered.ids().end());
  if (const auto content = delivered.content_digest()) seen.content = content->hex();
  seen.step = std::make_shared<step_that_looks>(delivered);
  if (simulated_device* const device = seen.step->where()) {
    const_cast<batch&>(delivered).wait_on(stream());  // Of whoever holds it: to wait for it changes nothing of it.
    device->launch(stream(), [step = seen.step] { step->take(); });
    if (delivered.index() % 4 == 3) device->finish_all(stream());
  } else {
    const batch_view& there = seen.step->view();
    seen.step->take_from_copy(read_of(delivered, there.bytes(), there.tensors()).data());
  }
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

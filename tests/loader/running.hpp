// What the loader's tests share: the usual fields, and what a run delivered as values that can be compared.
#pragma once

#include "stages/state/digest.hpp"
#include "tests/loader/place.hpp"
#include "tests/support/batch_view.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/simulated_device.hpp"

#include <leat/loading.hpp>

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

/// Samples whose labels are 1000, 1001, ...; those of `corrupt` are no numbers.
inline std::vector<fake_sample> labels(std::size_t count, const std::vector<std::uint64_t>& corrupt = {}) {
  std::vector<fake_sample> samples(count);
  for (std::size_t i = 0; i < count; ++i) samples[i].members = {{"cls", to_bytes(std::to_string(1000 + i))}};
  for (const std::uint64_t i : corrupt) samples[i].members[0].bytes = to_bytes("cat " + std::to_string(i));
  return samples;
}

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
  choose_place(options);
  return options;
}

inline loader_options one_epoch_in_order() {
  loader_options options = small_options();
  options.shuffle = false;
  options.epochs = 1;
  return options;
}

/// Bytes of a batch, as a trainer's kernel finds them: on a device by operations in a stream that has waited for the batch by
/// wait_on() and for nothing else.
///   whole     where the copy that is returned begins and ends
///   tensors   what is copied: parts of `whole`
std::vector<std::byte> read_of(const batch& from, std::span<const std::byte> whole,
                               const std::vector<std::span<const std::byte>>& tensors);

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
std::vector<std::byte> row_of(const batch& from, std::string_view output, std::size_t row);

/// What a trainer's step does with a batch when its turn comes: it looks whether the bytes that lie there have the digest that the
/// batch states, and takes the labels.
class step_that_looks {
 public:
  explicit step_that_looks(const batch& at)
      : view_(at), stated_(at.content_digest()), device_(simulated_device::holding(view_.bytes().data())) {
    for (const std::string& output : at.outputs()) {
      if (output == "cls" && at["cls"].type == dtype::i64) labels_there_ = at["cls"];
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

std::ostream& operator<<(std::ostream& out, const seen_batch& seen);

/// Takes note of a batch, and has a trainer's step look at it, in the default stream, which has waited for it by wait_on() and for
/// nothing else. A simulated device executes the step when it likes to: mostly long after the batch has ended, while others are
/// copied to where it lay, and at the latest when the loader ends. That is what each of the three waits is there for. One
/// batch in four is waited for at once.
seen_batch look_at(const batch& delivered);

/// All batches of so many epochs.
std::vector<seen_batch> run_epochs(leat::loader& from, std::uint32_t epochs);

/// What a run delivers, the error that ended it where one did, and what it counted.
struct seen_run {
  std::vector<seen_batch> batches;
  std::optional<errc> failed;
  std::string message;
  loader_stats stats;
};

seen_run run_all(const dataset& samples, const loader_options& options, std::vector<field> fields);

/// A trainer on a context of its own, which the test turns by hand.
class trainer {
 public:
  struct result {
    bool completed = false;
    std::exception_ptr failure;
    std::optional<batch> got;
  };

  explicit trainer(leat::loader& from) : from_(from) {}

  /// Calls next(), and does not wait.
  std::shared_ptr<result> ask(boost::asio::cancellation_slot slot = {});

  /// Runs what is ready.
  void turn();
  /// Runs until every call has completed.
  void wait();
  std::shared_ptr<result> ask_and_wait() {
    auto into = ask();
    wait();
    return into;
  }

 private:
  boost::asio::io_context context_;
  leat::loader& from_;
};

inline std::string whole_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace leat::testing

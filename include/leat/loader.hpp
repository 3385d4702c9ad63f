// The loader: a dataset and a row of fields in, batches out, as fast as the machine goes.
#pragma once

#include <leat/awaitable_operation.hpp>
#include <leat/batch.hpp>
#include <leat/completion.hpp>
#include <leat/dataset.hpp>
#include <leat/error.hpp>
#include <leat/field.hpp>
#include <leat/reader.hpp>
#include <leat/sampler.hpp>
#include <leat/stats.hpp>
#include <leat/units.hpp>

#include <boost/asio/async_result.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leat {

template <>
inline constexpr bool detail::is_delivered<std::optional<batch>> = true;

namespace stages {
class transfer;      // stages/transfer.hpp
class device_calls;  // stages/device.hpp
}  // namespace stages

/// What happens to a corrupt sample. Whatever it is, the sample is counted and written to the journal. A sample that the
/// memory budget cannot hold is not one: next() throws error{errc::limit} in the batch's turn.
enum class corrupt_policy : std::uint8_t {
  raise,      ///< next() throws error{errc::corrupt} in the batch's turn
  skip,       ///< its row is left out: the batch is shorter by it, and no other batch changes
  substitute  ///< another sample, drawn from the counter-based generator, takes its row
};

struct loader_options {
  std::uint32_t batch_size = 64;
  std::uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = false;
  /// Epochs to deliver; 0 is endless. Prefetch stops at the last one.
  std::uint32_t epochs = 0;
  /// At most so many batches of each epoch; 0 is all of them.
  std::uint64_t batches_max = 0;

  /// Threads that decode; 0 is one per core this process may run on, and fewer where the budget is too small for their
  /// scratch: see plan(). A number that the budget cannot hold is an error.
  std::uint32_t decode_threads = 0;
  /// Bounds arena and scratch. What is in it: loader::plan().
  std::size_t host_bytes_max = std::size_t{512} << 20;
  /// How many batches may be under way or ready besides the one in the consumer's hands; 0 is what the budget
  /// allows, at most 8; or more where 8 are too few reads to keep a drive busy, in a part of the budget.
  std::uint32_t prefetch_batches = 0;

  /// Ring or threads, depth, O_DIRECT and the other rungs of the ladder.
  reader_options reader = {};

  corrupt_policy on_corrupt = corrupt_policy::raise;
  /// JSON lines, one per quarantined sample, in delivery order; empty is none.
  std::filesystem::path journal = {};

  /// mixup(alpha), cutmix(alpha), or nothing. Part of what a batch holds. Row digests are taken before, a batch's after it.
  batch_mix mix = {};

  /// Digests of every row and batch (XXH3-128): about 60 us of CPU per row of 600 KB.
  bool digests = false;
  /// Fill batch::names().
  bool names = false;

  /// Where batches go: leat::host or leat::cuda(n). Where no such GPU can be used they stay on the host, and stats().device
  /// says why.
  leat::device device = host;
  /// The constructor throws error{errc::unsupported} instead, for trainers whose kernels read batches where `device` says.
  bool device_required = false;
  /// Batches that there is device memory for: with the consumer, and ahead of it.
  std::uint32_t device_batches = 3;
  /// Bounds them in bytes; 0 is no bound.
  std::size_t device_bytes_max = 0;
  /// Pictures of floats cross the bus as u8, and a kernel normalises, mirrors and lays them out. The same bits as without,
  /// for a fourth (f16, bf16: half) of the bytes.
  bool finish_on_device = true;

  /// For tests: how batches get to the trainer instead, and what stands for the device.
  std::shared_ptr<stages::transfer> transfer = {};
  std::shared_ptr<stages::device_calls> device_calls = {};
};

/// What the memory is for, before a byte is read.
struct loader_plan {
  struct line {
    std::string holder;  ///< "read buffers", "batches", "decode scratch"
    std::size_t bytes = 0;
    std::string why;  ///< the sum, with its holders: "5 x 38.6 MB: 1 with the consumer, 4 ahead"
  };
  std::vector<line> lines;
  std::size_t bytes_total = 0;
  std::size_t host_bytes_max = 0;
  std::uint32_t batches = 0;  ///< that fit into the batch memory at once
  std::size_t batch_bytes = 0;
  std::uint32_t decode_threads = 0;
  std::size_t host_bytes_least = 0;  ///< the smallest host_bytes_max that would do (for one thread, if automatic)
  line device;                       ///< of a device's memory, not in bytes_total; 0 bytes where batches stay here
  std::vector<std::string> notes;    ///< which outputs are made by one decode, and which pictures of one member are not

  /// As a table a person reads.
  [[nodiscard]] std::string to_string() const;
};

/// Loads batches ahead of the consumer. Which bytes a batch holds depends on the dataset, the fields, seed, epoch and
/// position alone: never on threads, timing or the machine.
///
/// Thread: next() from one thread at a time; stats(), reads_under_way() and stop() from any.
class loader {
 public:
  /// Starts prefetching. Throws error: usage (options, fields that the dataset lacks), limit (a budget too small, with
  /// the least that would do), unsupported (a rung of the reader, or a device, that was insisted on and cannot be used), io.
  template <class... Fields>
    requires(sizeof...(Fields) > 0 && (std::convertible_to<Fields, field> && ...))
  loader(dataset samples, loader_options options, Fields... fields)
      : loader(std::move(samples), std::move(options), std::vector<field>{field(std::move(fields))...}) {}
  loader(dataset samples, loader_options options, std::vector<field> fields);

  loader(const loader&) = delete;
  loader& operator=(const loader&) = delete;
  /// stop(), then joins its threads. Batches still held stay valid.
  ~loader();

  /// The next batch; std::nullopt once at the end of each epoch, and for ever after the last. An Asio asynchronous
  /// operation, void(std::exception_ptr, std::optional<batch>).
  ///   completion     posted to the handler's associated executor
  ///   errors         what the loader failed with, again at every further call; error{errc::usage} for a second call
  ///                  before the first one completed
  ///   throws         error{errc::usage} in a child of fork(), at once: the threads that would complete it, and perhaps
  ///                  those of the handler's executor, stayed in the parent
  ///   cancellation   total: completes with boost::system::system_error(operation_aborted) and no batch is lost
  template <class Token>
  auto next(Token&& token) {
    check_process();
    return boost::asio::async_initiate<Token, void(std::exception_ptr, std::optional<batch>)>(
        [](auto handler, loader* self) { self->start_next(next_completion(std::move(handler))); }, token, this);
  }

  /// next() for trainers without coroutines: blocks the calling thread, throws its errors.
  [[nodiscard]] std::optional<batch> next_blocking();

  class blocking_range;
  /// One epoch, as `for (leat::batch& b : train.blocking())`.
  [[nodiscard]] blocking_range blocking();

  /// Samples of each epoch: the dataset's, or the windows that the field `tokens` cuts out of it.
  [[nodiscard]] std::uint64_t samples() const noexcept;
  /// Batches of each epoch.
  [[nodiscard]] std::uint64_t batches() const noexcept;
  [[nodiscard]] const loader_plan& plan() const noexcept;
  [[nodiscard]] loader_stats stats() const;
  /// The reads under way at this moment, the oldest first, each as "file at offset n": what stop() is still waiting for
  /// when the kernel does not let go of a read. Waits a turn of the I/O threads.
  [[nodiscard]] std::vector<std::string> reads_under_way() const;

  /// Cancels what is under way and waits until the kernel and the decode threads have let go. A pending next()
  /// completes with error{errc::cancelled}, as does every further one. May be called from any state, more than once.
  /// On a device it waits for the copies under way, too, and so for what consumers have put into their streams before them.
  /// A read that the kernel does not let go of (a dead mount) is waited for; reads_under_way() names it.
  void stop() noexcept;

  class machine;  // stages/loader.cpp: the line itself

 private:
  using next_completion = completion<void(std::exception_ptr, std::optional<batch>)>;
  void check_process() const;
  void start_next(next_completion done);

  std::unique_ptr<machine> machine_;
};

/// The batches of one epoch, each valid until the loop's next turn.
class loader::blocking_range {
 public:
  explicit blocking_range(loader& from) : from_(&from) {}

  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = batch;
    using difference_type = std::ptrdiff_t;
    using pointer = batch*;
    using reference = batch&;

    explicit iterator(blocking_range& range) : range_(&range) {}
    [[nodiscard]] batch& operator*() const { return *range_->current_; }
    [[nodiscard]] batch* operator->() const { return &*range_->current_; }
    iterator& operator++() {
      range_->advance();
      return *this;
    }
    void operator++(int) { range_->advance(); }
    // A member: a friend of a nested class has no right to look into the outer one, says GCC 12, nvcc's usual host compiler.
    bool operator==(std::default_sentinel_t) const { return !range_->current_.has_value(); }

   private:
    blocking_range* range_;
  };

  [[nodiscard]] iterator begin() {
    advance();
    return iterator(*this);
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  void advance() {
    current_.reset();  // Its memory goes home before more is asked for.
    current_ = from_->next_blocking();
  }

  loader* from_;
  std::optional<batch> current_;
};

inline loader::blocking_range loader::blocking() { return blocking_range(*this); }

}  // namespace leat

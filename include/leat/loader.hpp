// The loader: a dataset and a row of fields in, batches out, as fast as the machine goes.
#pragma once

#include <leat/awaitable_operation.hpp>
#include <leat/batch.hpp>
#include <leat/completion.hpp>
#include <leat/corrupt_policy.hpp>
#include <leat/dataset.hpp>
#include <leat/error.hpp>
#include <leat/field.hpp>
#include <leat/loader_state.hpp>
#include <leat/next_result.hpp>
#include <leat/order.hpp>
#include <leat/reader_options.hpp>
#include <leat/ready.hpp>
#include <leat/stats.hpp>
#include <leat/units.hpp>
#include <leat/window.hpp>
#include <leat/world.hpp>

#include <boost/asio/any_io_executor.hpp>
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

/// The memory budget of a loader that is given none, where the machine has enough: see loader_options::host_bytes_max.
inline constexpr std::size_t host_bytes_usual = std::size_t{512} << 20;

/// Where photo packs are decoded: loader_options::decode_on.
///   device      on the device that batches go to, which has to be there
///   automatic   there, if it is
#ifdef __GNUC__
// GCC takes leat::host for shadowed, which an enumerator of a scoped enum shadows nowhere.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
enum class decode_on : std::uint8_t { host, device, automatic };
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

struct loader_options {
  /// Rows of a batch of one rank, on average; of all of them, where there is one process.
  std::uint32_t batch_size = 64;
  /// Rows of a global batch, of all ranks together: any number. 0 is world.size times batch_size, which else says nothing.
  std::uint32_t global_batch_size = 0;
  std::uint64_t seed = 0;
  /// The short form of order = sequential() and shuffled(); with an order it says nothing.
  bool shuffle = true;
  /// The short form of last = last_batch::drop.
  bool drop_last = false;
  /// What becomes of rows at the end of an epoch that fill no batch.
  last_batch last = last_batch::keep;
  /// Epochs to deliver; 0 is endless. Prefetch stops at the last one.
  std::uint32_t epochs = 0;
  /// At most so many batches of each epoch; 0 is all of them.
  std::uint64_t batches_max = 0;
  /// The run that is gone on with, after what loader::state() or state_after() says was delivered. Dataset, fields, order and
  /// whatever else decides bytes are those of that run, or the constructor throws error{errc::usage} with what differs. `epochs`
  /// counts from the beginning of the run.
  std::optional<loader_state> resume = {};
  /// Which samples, and in which order: leat::weighted(weights), leat::balanced("cls"). None: as `shuffle` says.
  std::optional<leat::order> order = {};
  /// The short form of order = shuffled_blocks(n), and a budget that keeps all of the n blocks: the constructor throws error{errc::limit} with
  /// the one that does. (With `order` itself it is a warning of plan(), and blocks are expanded again.) 0: as `order` and `shuffle` say.
  std::uint32_t shuffle_blocks = 0;
  /// Which of how many processes this one is: world::from_environment(). It has its rows of each global batch, and every row is what
  /// it is in a world of 1. Mixed rows are not: their partners are rows of the same rank. What a person would set aside for a machine
  /// (decode_threads, host_bytes_max of 0) its local ranks share.
  leat::world world = {};

  /// Threads that decode; 0 is one per core this process may run on (a local rank that its launcher has bound to no cores of its
  /// own has its part of them), and fewer where the budget is too small for their
  /// scratch: see plan(). A number that the budget cannot hold is an error.
  std::uint32_t decode_threads = 0;
  /// The memory budget; loader::plan() says what it is for. 0: 512 MiB, or half of the memory that is left to this process by
  /// the machine and its control groups (divided by world.local_size), where that is less and holds a batch.
  std::size_t host_bytes_max = 0;
  /// How many batches may be under way or ready besides the one in the consumer's hands; 0 is what the budget
  /// allows, at most 8; or more where 8 are too few reads to keep a drive busy, in a part of the budget.
  std::uint32_t prefetch_batches = 0;

  /// Ring or threads, depth, O_DIRECT and the other rungs of the ladder.
  reader_options reader = {};

  corrupt_policy on_corrupt = corrupt_policy::raise;
  /// How many corrupt samples of an epoch `skip` and `substitute` accept: {.share = 0.01}, {.count = 100}. When next() comes to
  /// the batch with one more, it throws error{errc::corrupt} with the most frequent reason. Under any bound, a run ends when
  /// 1,000 samples one after the other are corrupt, or all of an epoch (the first one, or one of 32 samples or more).
  corrupt_bound corrupt_max = {};
  /// How many of them may be samples whose file is missing or cannot be read (ENOENT, EIO). One more ends the run with
  /// error{errc::io}: a few may be bad files, while many mean that a folder was deleted, or that a mount or disk fails.
  std::uint64_t unreadable_max = 16;
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
  /// Bounds them, and what kernels work in, in bytes; 0 is no bound.
  std::size_t device_bytes_max = 0;
  /// Pictures of floats cross the bus as u8, and a kernel normalises, mirrors and lays them out. The same bits as without,
  /// for a fourth (f16, bf16: half) of the bytes.
  bool finish_on_device = true;
  /// Where photo packs are decoded (pack_photo()). On the device: their rows of coefficients cross the bus as they are, and kernels make the
  /// pixels. The same bits. Packs that need more room than their row has there, of pictures for which an edit was drawn,
  /// and all that is no pack, are decoded on the host; stats().device says how many. Needs finish_on_device. Without a device the
  /// constructor throws error{errc::unsupported}; with decode_on::automatic it is the host then, and stats().device says why.
  leat::decode_on decode_on = leat::decode_on::host;
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
  /// What may go wrong with this plan, a sentence each: that it takes more memory than this process has, for example.
  std::vector<std::string> warnings;
  line device;  ///< device memory, which is not part of bytes_total; 0 bytes where batches stay on the host
  std::vector<std::string> notes;  ///< which outputs share one decode, and which views of one member do not

  /// As a table a person reads.
  [[nodiscard]] std::string to_string() const;
};

/// Loads batches ahead of the consumer. Which bytes a batch holds depends on the dataset, the fields, seed, epoch and
/// position alone: never on threads, timing or the machine. Of how many ranks' rows it is divided into, too, only mixed rows depend.
///
/// Thread: next(), its variants and skip_epoch() from one thread at a time; stats(), windows(), reads_under_way() and stop() from
/// any.
/// Movable; a loader that was moved from may be stopped, destroyed or assigned to, and its next() throws error{errc::usage}. Nothing else
/// may be asked of it.
class loader {
 public:
  /// Starts prefetching. Throws error: usage (options, fields that the dataset lacks), limit (a budget too small, with
  /// the least that would do), unsupported (a rung of the reader, or a device, that was insisted on and cannot be used), io.
  template <class... Fields>
    requires(sizeof...(Fields) > 0 && (std::convertible_to<Fields, field> && ...))
  loader(dataset samples, loader_options options, Fields... fields)
      : loader(std::move(samples), std::move(options), std::vector<field>{field(std::move(fields))...}) {}
  loader(dataset samples, loader_options options, std::vector<field> fields);
  class pipeline;                                            // stages/loader.cpp: the line itself
  explicit loader(std::unique_ptr<pipeline> line) noexcept;  // stages/loader_parts.hpp

  /// Allowed while a next() is pending: it completes as before. Not allowed while a range of blocking() is in use, since that
  /// refers to its loader.
  loader(loader&& other) noexcept;
  /// Ends the loader that was here, as the destructor does.
  loader& operator=(loader&& other) noexcept;
  loader(const loader&) = delete;
  loader& operator=(const loader&) = delete;
  /// stop(), then joins its threads. Batches still held stay valid.
  ~loader();

  /// The next batch; std::nullopt once at the end of each epoch, and for ever after the last. An Asio asynchronous
  /// operation, void(std::exception_ptr, std::optional<batch>).
  ///   completion     posted to the handler's associated executor; a handler that has none (a plain function, use_future) runs
  ///                  on the loader's first I/O thread, where it must neither block nor end the loader
  ///   errors         what the loader failed with, again at every further call; error{errc::usage} for a second call
  ///                  before the first one completed
  ///   throws         error{errc::usage} in a child of fork(), at once: the threads that would complete it, and perhaps
  ///                  those of the handler's executor, stayed in the parent
  ///   cancellation   total: completes with boost::system::system_error(operation_aborted) and no batch is lost. Emit the
  ///                  signal on a thread of the handler's executor, as Asio's cancellation slots require
  template <class Token>
  auto next(Token&& token) {
    static_cast<void>(check_process());
    return boost::asio::async_initiate<Token, void(std::exception_ptr, std::optional<batch>)>(
        [](auto handler, pipeline* self) {
          // A child of fork() has no I/O thread to complete on.
          start_next(*self, has_threads(*self) ? next_completion(std::move(handler), executor_of(*self))
                                               : next_completion(std::move(handler)));
        },
        token, pipeline_.get());
  }

  /// next() for trainers without coroutines: blocks the calling thread, throws its errors.
  [[nodiscard]] std::optional<batch> next_blocking();
  /// As next_blocking(), and waits at most this long: next_blocking(100ms). A batch that arrives later is for the next call.
  [[nodiscard]] next_result next_blocking(std::chrono::duration<double> patience);
  /// A batch or the end of an epoch if it is ready. Never waits; stats().next counts the calls that found something.
  [[nodiscard]] next_result try_next();

  class blocking_range;
  /// The batches of one epoch, for `for (leat::batch& b : train.blocking())`; of an epoch that has begun, the remaining ones.
  /// After a `break` the next call of any kind gives the next batch of the same epoch; skip_epoch() drops the rest of it.
  [[nodiscard]] blocking_range blocking();

  /// Drops the rest of the epoch that has begun, with its std::nullopt: the next batch is the first of the next epoch. Does
  /// nothing between two epochs, when no batch was handed out since the last end. Never waits: batches and reads in flight are
  /// dropped when they are done, and counted nowhere.
  ///   throws   error{errc::usage} while a next() waits, or in a child of fork()
  void skip_epoch();

  /// Where the run stands, for loader_options::resume in another process: after what was handed out last, a batch or the end of an
  /// epoch. Costs some milliseconds the first time, for a dataset of a million files, and less than a microsecond then.
  ///   throws   error{errc::usage} where something that decides bytes has no name (a lambda), with what to do
  [[nodiscard]] loader_state state() const;
  /// The same after one batch of this loader, for who holds several: what was handed out after it comes again.
  ///   throws   as state(); error{errc::usage} for a batch of another loader
  [[nodiscard]] loader_state state_after(const batch& delivered) const;
  /// Whether the end of the last epoch was handed out: next() gives nothing more. Never, where epochs are endless.
  [[nodiscard]] bool finished() const;

  /// Batch `index` of `epoch`, whatever this loader has delivered: the same rows and bytes, on the host, with names and digests,
  /// also where this loader has none of them. Reads and decodes it alone, with the loader's options, and waits for it.
  /// Thread: any; this loader goes on meanwhile, and its budget is taken a second time, as far as one batch needs it.
  ///   throws   error{errc::usage}: no such epoch or batch, with how many there are; what next() throws at that place
  [[nodiscard]] batch batch_at(std::uint32_t epoch, std::uint64_t index) const;

  /// Samples of the dataset, or the windows that the field `tokens` cuts out of it.
  [[nodiscard]] std::uint64_t samples() const noexcept;
  /// Batches of each epoch, the same number for every rank; of the first one, where a sampler of one's own gives epochs of different lengths.
  [[nodiscard]] std::uint64_t batches() const noexcept;
  /// Rows of each epoch that this rank gets, padded ones among them; of the first one, as batches(). Of a rank of many they are summed
  /// batch by batch.
  [[nodiscard]] std::uint64_t rows() const;
  /// As they were given.
  [[nodiscard]] const loader_options& options() const noexcept;
  [[nodiscard]] const loader_plan& plan() const noexcept;
  [[nodiscard]] loader_stats stats() const;
  /// The last 60 windows of the run, the oldest first, and then the one that has not ended. A window is 2 s, and 24 batches at least.
  [[nodiscard]] std::vector<loader_window> windows() const;
  /// The reads under way at this moment, the oldest first, each as "file at offset n": what stop() is still waiting for
  /// when the kernel does not let go of a read. Waits a turn of the I/O threads.
  [[nodiscard]] std::vector<std::string> reads_under_way() const;

  /// Cancels what is under way and waits until the kernel and the decode threads have let go. A pending next()
  /// completes with error{errc::cancelled}, as does every further one. May be called from any state, more than once.
  /// On a device it waits for the copies under way, too, and so for what consumers have put into their streams before them.
  /// A read that the kernel does not let go of (a dead mount) is waited for; reads_under_way() names it.
  void stop() noexcept;

 private:
  using next_completion = completion<void(std::exception_ptr, std::optional<batch>)>;
  /// Throws error{errc::usage} in a child of fork(), and for a loader that was moved from.
  pipeline& check_process() const;
  static bool has_threads(const pipeline& of) noexcept;
  static boost::asio::any_io_executor executor_of(pipeline& of);
  static void start_next(pipeline& of, next_completion done);
  void end() noexcept;

  std::unique_ptr<pipeline> pipeline_;
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

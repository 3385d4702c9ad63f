// The loader: a dataset and fields in, batches out. loader.hpp has it with all that it takes.
#pragma once

#include <leat/awaitable_operation.hpp>
#include <leat/batch.hpp>
#include <leat/compiler.hpp>
#include <leat/corrupt_policy.hpp>
#include <leat/durations.hpp>
#include <leat/error.hpp>
#include <leat/field.hpp>
#include <leat/loader_state.hpp>
#include <leat/next_result.hpp>
#include <leat/operation.hpp>
#include <leat/order.hpp>
#include <leat/reader_options.hpp>
#include <leat/ready.hpp>
#include <leat/samples.hpp>
#include <leat/stats.hpp>
#include <leat/units.hpp>
#include <leat/window.hpp>
#include <leat/world.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

/// What loader::next_of() gives: as next() of the loader with this index.
struct next_of_result {
  std::size_t index = 0;
  std::optional<batch> got;
};

template <>
inline constexpr bool detail::is_delivered<std::optional<batch>> = true;
template <>
inline constexpr bool detail::is_delivered<next_of_result> = true;

/// The default of loader_options::host_bytes_max where the machine has enough memory, in bytes.
inline constexpr std::size_t host_bytes_usual = std::size_t{512} << 20;

/// Where photo packs are decoded: loader_options::decode_on.
///   device      on loader_options::device, which must be there
///   automatic   on that device if it is there, else on the host
#ifdef __GNUC__
// GCC takes leat::host for shadowed, which an enumerator of a scoped enum shadows nowhere.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
enum class decode_on : std::uint8_t { host, device, automatic };
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

/// Whether a loader changes its own settings while it runs: loader_options::tune.
enum class tuning : std::uint8_t { off, on };

/// The NUMA node of a loader's threads and memory, on a machine that has several: loader_options::numa.
///   automatic   that of the device, else that of the drive on which the dataset lies; where neither is known, as off.
///               Decode threads that are more than its cores run everywhere
///   off         the kernel decides
/// numa_node(n) is node n.
enum class numa : int { automatic = -1, off = -2 };
[[nodiscard]] constexpr numa numa_node(int number) noexcept { return static_cast<numa>(number); }

/// What a loader keeps of what its threads and batches did, and when.
struct timeline_options {
  /// Memory for it, in bytes: 8_MiB keeps the latest 262,144 spans, for loader::write_timeline(). It is a part of the
  /// budget. 0 (default): no timeline.
  std::size_t bytes = 0;
  /// Waits in next() that are longer each get a file with the timeline: 500ms. It is written when the wait has ended,
  /// or while it lasts, after ten times as long. The wait for the first batch is not counted, nor waits while you hold
  /// all batches. stats().stalls counts. 0 (default): no files.
  std::chrono::milliseconds on_stall = {};
  /// Where these files are written: stall-rank-0-1.json, and so on. The folder is made if it is not there; files that
  /// are there stay. Needed for on_stall.
  std::string directory = {};
  /// The most such files of a loader. Default: 8.
  std::uint32_t files_max = 8;
};

struct loader_options {
  /// Samples per batch, like DataLoader's batch_size. With several ranks, the mean per rank. Default: 64.
  std::uint32_t batch_size = 64;
  /// Samples that all ranks together take in one step. 0 (default): world.size x batch_size. If set, batch_size is
  /// ignored.
  std::uint32_t global_batch_size = 0;
  /// Decides everything that is random: order, crops, flips, colour, mixing. The same seed gives the same bytes on
  /// every machine. Default: 0.
  std::uint64_t seed = 0;
  /// true (default): each epoch has every sample once, in a new random order. false: the order of the dataset.
  /// Ignored if `order` is set.
  bool shuffle = true;
  /// true: drop the last batch of an epoch if it is not full, like DataLoader's drop_last; the same as last =
  /// last_batch::drop. Default: false.
  bool drop_last = false;
  /// What happens to a last batch that is not full: keep it smaller (default), drop it, or pad it with the first
  /// samples of the epoch.
  last_batch last = last_batch::keep;
  /// Epochs of the run. After the last one, next() always gives std::nullopt. 0 (default): endless.
  std::uint32_t epochs = 0;
  /// The most batches per epoch, for quick trials. 0 (default): all.
  std::uint64_t batches_max = 0;
  /// Continues a saved run, like load_state_dict(): a state that loader::state() made. Not set (default): a new run.
  /// Whatever decides bytes (dataset, fields, order, seed, batch size) must be as it was. Otherwise the constructor
  /// throws error{errc::usage}, which names the difference. `epochs` counts from the beginning of the run.
  std::optional<loader_state> resume = {};
  /// Which samples come, and in which order, like DataLoader's sampler: leat::weighted(weights),
  /// leat::balanced("cls"). Not set (default): as `shuffle` says.
  std::optional<leat::order> order = {};
  /// Shuffles whole blocks (chunks of HDF5 or Zarr, shards), and the samples within this many blocks at a time. Less
  /// is read and decompressed than with an exact shuffle. The constructor throws error{errc::limit} if the budget
  /// cannot hold this many blocks; order = shuffled_blocks(n) only warns (loader_plan::warnings). 0 (default): as
  /// `order` and `shuffle` say.
  std::uint32_t shuffle_blocks = 0;
  /// The rank of this process. world::from_environment() reads it from torchrun, MPI or Slurm. Default: a single
  /// process. Each rank gets its rows of every global batch. A row does not depend on the number of ranks, except
  /// mixed rows: their partners are of the same rank. Ranks on one machine share its cores and memory where
  /// decode_threads and host_bytes_max are 0.
  leat::world world = {};

  /// Decode threads of this process, in place of num_workers. 0 (default): one per core that the process may use,
  /// within the CPU quota of its control groups; a local rank takes its share of them. Fewer start if the budget is
  /// too small for their scratch memory. A number that does not fit the budget is an error.
  std::uint32_t decode_threads = 0;
  /// The most threads that read and decode, together, tuned or not: with one I/O thread, 12 leaves 11 decode threads.
  /// Those of a network and of a device are not counted. 0 (default): as decode_threads says.
  std::uint32_t cores_max = 0;
  /// on: how many decode threads work, how many batches are loaded ahead, how many I/O threads read and how many reads are
  /// given to the kernel is found out while the loader runs. decode_threads, prefetch_batches, reader.io_threads and the
  /// memory planned for them are the most.
  /// Where the trainer hardly waits, cores are given back to it. Batches are the same bytes. stats().tuned says what was
  /// done. Default: off.
  tuning tune = tuning::off;
  /// The most host memory that the loader takes, in bytes: 2_GiB. loader::plan() says what it is for. 0 (default):
  /// 512 MiB, but at most half of the memory that is available to this process (shared by local ranks), and at least
  /// what one batch needs. A sample that needs more than a quarter of it is corrupt ("over budget"); a resumed run keeps
  /// the quarter that it was begun with. Set it if batches must be the same on machines with less than 1 GiB.
  std::size_t host_bytes_max = 0;
  /// The most batches that are loaded ahead, like prefetch_factor; the one that the trainer holds is not counted. 0
  /// (default): as many as the budget allows, at most 8. If small batches would leave a drive idle, there are more,
  /// within a part of the budget.
  std::uint32_t prefetch_batches = 0;

  /// The NUMA node of the loader's threads and memory. It is chosen among the cores that the process may use. The
  /// constructor throws error{errc::usage} for a node that is not there or has none of these cores. stats().placement
  /// says what was done. Default: automatic.
  leat::numa numa = numa::automatic;

  /// How long next() waits while you hold all the batches that the loader has memory for. Then it throws
  /// error{errc::usage}, which names them. Calls with a limit count together. 0: without limit. Default: 10 s.
  std::chrono::milliseconds held_patience = std::chrono::seconds(10);

  /// A timeline of what threads and batches did, and files of it when the trainer stalls: {.bytes = 8_MiB, .on_stall =
  /// 500ms, .directory = "traces"}. Default: none.
  timeline_options timeline = {};

  /// How files are read: io_uring or threads, queue depth, O_DIRECT, I/O threads. Default: the best that the machine
  /// offers.
  reader_options reader = {};

  /// What happens to a corrupt sample: raise an error (default), skip its row, or substitute another sample.
  corrupt_policy on_corrupt = corrupt_policy::raise;
  /// The most corrupt samples per epoch that skip and substitute accept: {.share = 0.01}, {.count = 100}. Default:
  /// any number. With one more, next() throws error{errc::corrupt} with the most frequent reason. A run always ends
  /// after 1,000 corrupt samples in a row. It also ends when all samples of an epoch are corrupt, if the epoch is the
  /// first one or has 32 samples or more.
  corrupt_bound corrupt_max = {};
  /// The most samples per epoch whose file is missing or unreadable (ENOENT, EIO). Default: 16. One more ends the run
  /// with error{errc::io}: a few may be bad files, many mean a deleted folder or a failing disk.
  std::uint64_t unreadable_max = 16;
  /// A file that gets one JSON line per corrupt sample, with its reason, in the order of delivery. Default: none.
  std::string journal = {};

  /// A file that proves which rows the run had: 16 bytes for each row that was handed out, of its name and its digest.
  /// `leat receipt` shows by it that a sample was in the run, or was not. Turns on `digests`; a resumed run goes on with
  /// it. Default: none.
  std::string receipts = {};
  /// A file of the reads for samples: when, how many bytes, how long; no data and no names. `leat replay-io` tells by it
  /// how the run would have been on another drive. 24 bytes for each read. Default: none.
  std::string record = {};

  /// Mixes the rows of a batch: mixup(0.2), cutmix(1.0) or mosaic(). Default: no mixing. Row digests are made before mixing,
  /// the digest of the batch after it.
  batch_mix mix = {};

  /// true: compute a digest (XXH3-128) of every row and batch, to compare runs. It costs about 60 us of CPU for a row
  /// of 600 KB. Default: false.
  bool digests = false;
  /// true: fill batch::names() with the names of the samples. Default: false.
  bool names = false;

  /// Where batches go: leat::host (default) or leat::cuda(n). Without such a GPU they stay on the host, and
  /// stats().device says why.
  leat::device device = host;
  /// true: the constructor throws error{errc::unsupported} if that GPU cannot be used. Set it if the trainer's
  /// kernels read the batches. Default: false.
  bool device_required = false;
  /// Batches that device memory is reserved for: those that the trainer holds, and those loaded ahead. Default: 3.
  std::uint32_t device_batches = 3;
  /// The most device memory for batches, the work space of kernels and device_cache, in bytes. 0 (default): no limit.
  std::size_t device_bytes_max = 0;
  /// Device memory for rows that need not be loaded again, in bytes: 8_GiB. Rows that are the same bytes in every epoch
  /// stay there once they were delivered: they are not read, decoded or copied from the host any more. Of photo packs
  /// that a device decodes (decode_on, without digests) the pack stays, whatever is drawn, if its slot has room for it
  /// whole. Rows stay until the loader ends; those that do not fit are read in every epoch. Taken at the start, no more
  /// than all rows need, and of device_bytes_max what batches leave. No row stays if one epoch is left, or where something
  /// else is drawn, has any length, is mixed on the host or a mosaic, or made by a field of yours: stats().device.cache
  /// says why, plan() how many fit. Some 300 bytes of host memory a row, and a pack's head (1 to 2 KB), are not in
  /// host_bytes_max. 0 (default): none.
  std::size_t device_cache = 0;
  /// true (default): float pictures are copied to the device as u8, and a kernel normalises, mirrors and lays them
  /// out. The bits are the same, and a fourth of the bytes are copied (f16, bf16: half).
  bool finish_on_device = true;
  /// true: batches that stay on the host lie in pinned memory, so that copies that the trainer makes (LibTorch's
  /// to(device, non_blocking)) go by DMA, beside the CPU. Their memory is used again when all GPUs have passed what they
  /// were asked for before the batch ended; no batch may end while a stream is captured. Without CUDA, and with a driver
  /// older than CUDA 12.5, they are pageable, and stats().device.pinned says why. Batches that go to a device are always
  /// copied from pinned memory. Default: false.
  bool pinned = false;
  /// Where photo packs (pack_photo()) are decoded: host (default), device, or automatic (the device if there is one).
  /// The bits are the same. For the device, coefficients are copied and kernels make the pixels. The host still
  /// decodes what is no pack, packs that need more room than their row has, and pictures with an edit, mix, noise, damage;
  /// stats().device counts them. `device` needs finish_on_device and a device: otherwise the constructor throws
  /// error{errc::unsupported}.
  leat::decode_on decode_on = leat::decode_on::host;
};

/// What the memory of a loader is for. Made before a byte is read.
struct loader_plan {
  struct line {
    std::string holder;  ///< "read buffers", "batches", "decode scratch"
    std::size_t bytes = 0;
    std::string why;  ///< how it adds up: "5 x 38.6 MB: 1 with the consumer, 4 ahead"
  };
  std::vector<line> lines;
  std::size_t bytes_total = 0;
  std::size_t host_bytes_max = 0;
  std::uint32_t batches = 0;  ///< how many batches may exist at once
  std::size_t batch_bytes = 0;
  std::uint32_t decode_threads = 0;
  /// The smallest host_bytes_max that works; if decode_threads is 0, with one thread.
  std::size_t host_bytes_least = 0;
  /// What may go wrong, a sentence each: for example, the plan takes more memory than this process has.
  std::vector<std::string> warnings;
  line device;  ///< device memory, which bytes_total does not count; 0 bytes where batches stay on the host
  std::vector<std::string> notes;  ///< which outputs share one decode, and which views of one member do not

  /// A table for people.
  [[nodiscard]] std::string to_string() const;
};

/// Loads batches ahead of the trainer. The bytes of a batch depend on the dataset, the fields, the options that decide
/// bytes (docs/guides/ranks-and-resume.md), the epoch and the place in it. They never depend on threads, timing or the
/// machine. The number of ranks changes mixed rows only.
///
/// Thread: next(), its variants and skip_epoch() from one thread at a time; stats(), windows(), write_timeline(), mark(),
/// reads_under_way() and stop() from any.
/// Movable. A loader that was moved from may be stopped, destroyed or assigned to. Its next() throws
/// error{errc::usage}.
class loader {
 public:
  /// Starts to load.
  ///   throws   error: usage (wrong options, fields that the dataset lacks); limit (a budget that is too small, with
  ///            the smallest that works); unsupported (a reader option or a device that is required and cannot be
  ///            used); io
  template <class... Fields>
    requires(sizeof...(Fields) > 0 && (std::convertible_to<Fields, field> && ...))
  loader(dataset samples, loader_options options, Fields... fields)
      : loader(std::vector<field>{field(std::move(fields))...}, std::move(samples), std::move(options)) {}
  loader(dataset samples, loader_options options, std::vector<field> fields)
      : loader(std::move(fields), std::move(samples), std::move(options)) {}
  class [[gnu::visibility("hidden")]] pipeline;  // stages/loader.cpp: the line itself
  [[gnu::visibility("hidden")]] explicit loader(
      std::unique_ptr<pipeline> line) noexcept;  // stages/run/loader_parts.hpp

  /// Allowed while a next() is pending: it completes as before. Not allowed while a range of blocking() is in use,
  /// since that refers to its loader.
  loader(loader&& other) noexcept;
  /// Ends the loader that was here, as the destructor does.
  loader& operator=(loader&& other) noexcept;
  loader(const loader&) = delete;
  loader& operator=(const loader&) = delete;
  /// stop(), then joins its threads. Batches still held stay valid.
  ~loader();

  class next_call;
  class wait_call;
  class next_of_call;

  /// The next batch; std::nullopt once at the end of each epoch, and always after the last: `co_await train.next()`, in
  /// a coroutine of any runtime (operation.hpp). With a completion token it is an operation of Asio,
  /// void(std::exception_ptr, std::optional<batch>).
  ///   completion     posted to the handler's associated executor. A handler without one (a plain function, use_future)
  ///                  runs on the loader's first I/O thread, where it must neither block nor end the loader
  ///   errors         what the loader failed with, at every further call as well; error{errc::usage} for a second call
  ///                  before the first one completed
  ///   throws         error{errc::usage} at once in a child of fork(): the loader's threads stayed in the parent
  ///   cancellation   total: completes with boost::system::system_error(operation_aborted), and the next call gives the
  ///                  batch, also if it was ready already. Emit the signal on a thread of the handler's executor, as
  ///                  Asio's cancellation slots require
  [[nodiscard]] operation<next_call> next();
  template <class Token>
  auto next(Token&& token);

  /// Completes when next() would give something at once, and takes nothing: void(std::exception_ptr). Completion and
  /// cancellation as next().
  [[nodiscard]] operation<wait_call> wait();
  template <class Token>
  auto wait(Token&& token);

  /// next() of the first of several loaders that has something, with its index; of the longest ready one, if there are
  /// several: void(std::exception_ptr, next_of_result). The others lose nothing. Leave out loaders that have
  /// finished(), which always have an end to give.
  ///   throws   error{errc::usage} for no loader
  ///   errors   as next(); after the longest held_patience of these loaders, if you hold all batches of every one
  [[nodiscard]] static operation<next_of_call> next_of(const std::vector<loader*>& loaders);
  template <class Token>
  static auto next_of(const std::vector<loader*>& loaders, Token&& token);

  /// next() for trainers without coroutines: blocks the calling thread, and throws the errors of next().
  [[nodiscard]] std::optional<batch> next_blocking();
  /// The same, for at most this long: next_blocking(100ms). A later batch is given by the next call.
  [[nodiscard]] next_result next_blocking(std::chrono::duration<double> patience);
  /// A batch, or the end of an epoch, if it is ready; never waits. stats().next counts only the calls that found
  /// something.
  [[nodiscard]] next_result try_next();

  class blocking_range;
  /// The batches of one epoch, for `for (leat::batch& b : train.blocking())`; of an epoch that has begun, the rest.
  /// After a `break` the next call of any kind gives the next batch of the same epoch. skip_epoch() drops the rest.
  [[nodiscard]] blocking_range blocking();

  /// Drops the rest of the epoch that has begun, with its std::nullopt: the next batch is the first of the next epoch.
  /// Between two epochs it does nothing. Never waits: what is in flight is dropped when it is done, and not counted.
  ///   throws   error{errc::usage} while a next() waits, or in a child of fork()
  void skip_epoch();

  /// The place of the run after what was handed out last, for loader_options::resume in another process. Takes some
  /// milliseconds the first time, for a dataset of a million files, and less than a microsecond later.
  ///   throws   error{errc::usage} where something that decides bytes has no name (a lambda), with what to do
  [[nodiscard]] loader_state state() const;
  /// The same after this batch, for trainers that hold several: what was handed out after it comes again.
  ///   throws   as state(); error{errc::usage} for a batch of another loader
  [[nodiscard]] loader_state state_after(const batch& delivered) const;
  /// Whether the end of the last epoch was handed out: next() gives nothing more. Always false if `epochs` is 0.
  [[nodiscard]] bool finished() const;

  /// Batch `index` of `epoch`, at any time: the same rows and bytes as next() gives, always on the host, with names and
  /// digests. Reads and decodes it by itself, and waits for it.
  /// Thread: any. This loader goes on meanwhile. Takes memory of its own, as much of the budget as one batch needs.
  ///   throws   error{errc::usage}: no such epoch or batch, with how many there are; what next() throws at that place
  [[nodiscard]] batch batch_at(std::uint32_t epoch, std::uint64_t index) const;

  /// Samples of the dataset, or windows that the field `tokens` cuts from it.
  [[nodiscard]] std::uint64_t samples() const noexcept;
  /// Batches of an epoch, as len(DataLoader); the same for every rank. If a sampler of your own has epochs of different
  /// lengths, of the first epoch.
  [[nodiscard]] std::uint64_t batches() const noexcept;
  /// Rows of an epoch for this rank, padded ones included; of the first epoch, as batches(). Of a rank of many they are
  /// summed batch by batch.
  [[nodiscard]] std::uint64_t rows() const;
  /// As they were given.
  [[nodiscard]] const loader_options& options() const noexcept;
  [[nodiscard]] const loader_plan& plan() const noexcept;
  [[nodiscard]] loader_stats stats() const;
  /// The verdict of the whole run so far. stats().verdict is of its last window.
  [[nodiscard]] verdict verdict_of_run() const;
  /// The last 60 windows of the run, the oldest first, and then the window that has not ended. A window is at least 2 s
  /// and 24 batches.
  [[nodiscard]] std::vector<loader_window> windows() const;
  /// Writes the latest spans of the run, as Chrome's trace events (JSON), for ui.perfetto.dev: what each batch, I/O
  /// thread and decode thread did, and when the trainer waited. The file is there whole or not at all; one that is
  /// there is replaced, and a device or a pipe is written to. Files of several ranks are joined by their "traceEvents".
  ///   throws   error: usage (timeline.bytes is 0); not_found, permission, limit (a full disk), io, with the path
  void write_timeline(const std::string& path) const;

  class marked;
  /// A part of the trainer's own work, in the timeline beside the loader's, until the end of the scope: `const auto span
  /// = train.mark("forward");`. Does nothing without a timeline.
  ///   name   up to 63 bytes are kept. After 64 different names the spans of all others are named "other marks"
  [[nodiscard]] marked mark(std::string_view name) const;
  /// The reads that are under way now, the oldest first, each as "file at offset n". stop() waits for them. Waits for
  /// one turn of the I/O threads.
  [[nodiscard]] std::vector<std::string> reads_under_way() const;

  /// Cancels what is under way, and waits until the kernel and the decode threads have released all memory. A pending
  /// next() and every further one complete with error{errc::cancelled}. May be called at any time, and more than once.
  ///   device       it also waits for copies under way, and so for what consumers have put into their streams before
  ///                them
  ///   dead mount   it waits for reads that the kernel does not end; reads_under_way() names them
  void stop() noexcept;

 private:
  // Takes references: whoever builds a loader need not compile how options are moved more often than once.
  loader(std::vector<field>&& fields, dataset&& samples, loader_options&& options);
  /// Throws error{errc::usage} in a child of fork(), and for a loader that was moved from.
  pipeline& check_process() const;
  void end() noexcept;

  std::unique_ptr<pipeline> pipeline_;
};

/// A span that loader::mark() has begun. It may outlive the loader.
class loader::marked {
 public:
  marked(marked&& other) noexcept : in_(std::move(other.in_)), begin_ns_(other.begin_ns_), name_(other.name_) {
    other.in_ = nullptr;
  }
  marked(const marked&) = delete;
  marked& operator=(const marked&) = delete;
  ~marked() { end(); }
  /// Ends it before the end of the scope.
  void end() noexcept {
    if (in_ != nullptr) note();
  }

 private:
  friend class loader;
  marked() = default;
  void note() noexcept;

  std::shared_ptr<void> in_;
  std::uint64_t begin_ns_ = 0;
  std::uint32_t name_ = 0;
};

/// A call of next(), for operation.
class loader::next_call {
 public:
  using result = std::optional<batch>;
  using signature = void(std::exception_ptr, result);
  class turn : public detail::turn {
   public:
    using detail::turn::turn;
    [[nodiscard]] result take(std::exception_ptr& failure);
  };

  explicit next_call(pipeline& of) noexcept : of_(&of) {}
  [[nodiscard]] turn new_turn() const;
  void begin(detail::turn_key key, detail::wait_completion done) const;
  [[nodiscard]] bool begin_if_ready(detail::turn_key key) const;
  [[nodiscard]] bool has_threads() const noexcept;
  [[nodiscard]] boost::asio::any_io_executor executor() const;
  [[nodiscard]] boost::asio::any_io_executor own_thread() const;

 private:
  pipeline* of_;
};

/// A call of wait().
class loader::wait_call : public next_call {
 public:
  using result = void;
  using signature = void(std::exception_ptr);
  using next_call::next_call;
};

/// A call of next_of().
class loader::next_of_call {
 public:
  using result = next_of_result;
  using signature = void(std::exception_ptr, result);
  class turn : public detail::turn {
   public:
    using detail::turn::turn;
    [[nodiscard]] result take(std::exception_ptr& failure);
  };

  explicit next_of_call(std::vector<pipeline*> of) : of_(std::move(of)) {}
  [[nodiscard]] turn new_turn() const;
  void begin(detail::turn_key key, detail::wait_completion done) const;
  [[nodiscard]] bool begin_if_ready(detail::turn_key key) const;
  [[nodiscard]] bool has_threads() const noexcept;
  [[nodiscard]] boost::asio::any_io_executor executor() const;
  [[nodiscard]] boost::asio::any_io_executor own_thread() const;

 private:
  std::vector<pipeline*> of_;
};

template <class Token>
auto loader::next(Token&& token) {
  return next()(std::forward<Token>(token));
}
template <class Token>
auto loader::wait(Token&& token) {
  return wait()(std::forward<Token>(token));
}
template <class Token>
auto loader::next_of(const std::vector<loader*>& loaders, Token&& token) {
  return next_of(loaders)(std::forward<Token>(token));
}

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
    // A member: a friend of a nested class has no right to look into the outer one, says GCC 12, nvcc's usual host
    // compiler.
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
    current_.reset();  // Its memory is returned before more is asked for.
    current_ = from_->next_blocking();
  }

  loader* from_;
  std::optional<batch> current_;
};

inline loader::blocking_range loader::blocking() { return blocking_range(*this); }

}  // namespace leat
#pragma GCC visibility pop

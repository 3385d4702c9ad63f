// The whole machine. A loader builds what it needs, front to back, and hands references down; nothing is global. The
// line itself is one coroutine on the first I/O thread, which plans batch after batch and asks for their reads; what
// follows is driven by what arrives.
#include "async/clock.hpp"
#include "async/fork_guard.hpp"
#include "async/mutex.hpp"
#include "async/scope.hpp"
#include "async/semaphore.hpp"
#include "async/thread_pool.hpp"
#include "async/turn.hpp"
#include "base/random.hpp"
#include "datasets/model.hpp"
#include "io/arena.hpp"
#include "io/direct_policy.hpp"
#include "io/io_threads.hpp"
#include "io/lease_pool.hpp"
#include "io/memory_available.hpp"
#include "io/queue_depth.hpp"
#include "io/text.hpp"
#include "io/usable_cores.hpp"
#include "stages/batch_in_flight.hpp"
#include "stages/batch_layout.hpp"
#include "stages/bound_run.hpp"
#include "stages/collate.hpp"
#include "stages/decode.hpp"
#include "stages/delivery.hpp"
#include "stages/describe_run.hpp"
#include "stages/device.hpp"
#include "stages/device_transfer.hpp"
#include "stages/digest.hpp"
#include "stages/journal.hpp"
#include "stages/loader_parts.hpp"
#include "stages/memory_plan.hpp"
#include "stages/mix.hpp"
#include "stages/open_device.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/plan.hpp"
#include "stages/read.hpp"
#include "stages/shared_members.hpp"
#include "stages/transfer.hpp"

#include <leat/loader.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <deque>
#include <filesystem>
#include <future>
#include <limits>
#include <mutex>
#include <numeric>
#include <system_error>
#include <utility>

namespace leat {
namespace {

using namespace stages;

// How often a substitute is drawn for a corrupt sample before the run ends: with half of a dataset corrupt, one row in
// 2^32 gets none.
constexpr std::uint32_t substitutions_max = 32;

std::shared_ptr<transfer> make_transfer(const loader_options& options, const loader_parts& parts) {
  const auto on_device = [&](std::shared_ptr<device_calls> calls) {
    return std::make_shared<device_transfer>(
        std::move(calls),
        device_transfer_options{.batches = options.device_batches, .bytes_max = options.device_bytes_max});
  };
  if (parts.transfer != nullptr) return parts.transfer;
  if (parts.device_calls != nullptr) return on_device(parts.device_calls);
  if (options.device.type == device::kind::host) return std::make_shared<host_transfer>();
  opened_device opened = open_device(options.device);
  if (opened.calls == nullptr && options.device_required) {
    throw error(errc::unsupported, io::str_cat("batches cannot go to cuda:", options.device.index, ": ", opened.why_not,
                                               "; without loader_options::device_required they stay on the host"));
  }
  if (opened.calls == nullptr) return std::make_shared<host_transfer>(std::move(opened.why_not));
  return on_device(std::move(opened.calls));
}

// In another world the ranks' journals are others: one that is there is left as it is.
void check_no_journal(const loader_options& options, const loader_state& state) {
  std::error_code failure;
  if (options.journal.empty() || !std::filesystem::exists(options.journal, failure)) return;
  throw error(errc::usage,
              io::str_cat("the journal ", options.journal.string(), " is there already, and the state is of rank ",
                          state.rank, " of ", state.world, ", not ", options.world.rank, " of ", options.world.size,
                          ": ranks of another world begin journals of their own; give another name, or move it away"));
}

}  // namespace

class loader::machine final : public line_events {
 public:
  /// Which part of the run this is.
  ///   batches   that this loader delivers at most; 0 is all that are left
  struct span_of_run {
    run_progress from = {};
    std::uint64_t batches = 0;
  };
  machine(const dataset& samples, loader_options options, std::vector<field> fields, const loader_parts& parts = {})
      : fields_(std::move(fields)),
        options_(checked(std::move(options))),
        transfer_(make_transfer(options_, parts)),
        run_(samples, fields_, options_,
             options_.finish_on_device && transfer_->finishes() ? finished_by::device : finished_by::host),
        dataset_(run_.dataset()),
        programs_(run_.programs()),
        layout_(run_.layout()),
        planner_(run_.planner()),
        part_(parts.only ? one_batch(*parts.only) : resumed()),
        memory_available_(io::find_memory_available()),
        memory_(plan_memory(needs(), memory_available_, options_.world.local_size)),
        delivery_(options_.journal.empty() ? journal() : journal(options_.journal, part_.from.journal_bytes),
                  {.corrupt_max = options_.corrupt_max,
                   .unreadable_max = options_.unreadable_max,
                   .epoch_samples = options_.corrupt_max.share < 1 ? run_.epoch_samples() : 0},
                  part_.from),
        arena_(std::make_shared<io::arena>(arena_settings())),
        read_pool_(arena_, {.bytes_max = memory_.read_bytes, .name = "read buffers", .in_pieces = true}),
        // Faulted in by who writes the rows, one by one: the I/O thread, which leases a whole batch, has reads to look after.
        batch_pool_(arena_, {.bytes_max = memory_.batch_bytes,
                             .name = "batches",
                             .first_touch = true,
                             .in_pieces = true,
                             .pinned_first = transfer_->pins()}),
        io_(options_.reader, arena_),
        scratch_(memory_.scratch_bytes, memory_.shown.host_bytes_max),
        rows_read_again_(options_.digests || options_.names),
        cheap_(!rows_read_again_ && run_.cheap()),
        decoder_(dataset_, programs_, *layout_,
                 {.seed = options_.seed, .digests = options_.digests, .names = options_.names}, scratch_,
                 memory_.decode_threads + (cheap_ ? static_cast<std::uint32_t>(io_.size()) : 0)),
        mixer_(*layout_, options_.mix, options_.seed, options_.digests, memory_.decode_threads),
        reads_(dataset_, programs_, connectors(), read_pool_, *this),
        works_free_(memory_.batches),
        ready_(io_.size()),
        decoders_({.thread_count = memory_.decode_threads,
                   .name = "leat-decode",
                   .what = "decode thread",
                   .remedy = "or give fewer decode_threads"}) {
    for (std::uint32_t i = 0; i < memory_.batches; ++i) {
      batch_in_flight& added = works_.emplace_back();
      added.owner = this;
      added.sending.owner = &added;
      added.mixing.owner = &added;
      idle_works_.push_back(&added);
    }
    transfer_->prepare({.batch_bytes_max = memory_.shown.batch_bytes,
                        .finished_bytes_max = layout_->finished_bytes(),
                        .host_batches = memory_.batches,
                        .failed = [this](std::exception_ptr why) { broken(std::move(why)); },
                        .wake = [this] { io_.loop(0).post(&machine::go_on_sending, transfer_.get()); },
                        .pinning_done = [this](const io::lease& memory) { batch_pool_.pinning_done(memory); }});
    plan_ = memory_.shown;
    plan_.notes = describe_shared_decodes(programs_);
    if (const device_report device = transfer_->report(); device.batches != 0) {
      plan_.device = {device.use.use, device.bytes,
                      io::str_cat(device.batches, " x ", io::bytes_text(device.bytes / device.batches),
                                  " of its memory: what is copied, and the pictures it makes of it")};
    }
    if (options_.reader.direct == choice::on) reads_.check_first_files();
    started_ns_ = async::now_ns();
    finished_ =
        asio::co_spawn(io_.executor(0), run(), asio::bind_cancellation_slot(stop_signal_.slot(), asio::use_future));
  }

  ~machine() { stop(); }

  void next(next_completion done) {
    if (forked_.in_child()) {  // An operation that was deferred before the fork: next() itself throws.
      done.complete(std::make_exception_ptr(used_in_child()), std::nullopt);
      return;
    }
    delivery_.next(std::move(done));
  }

  [[nodiscard]] next_result next_blocking(std::optional<std::chrono::steady_clock::time_point> deadline = {}) {
    return delivery_.next_blocking(deadline);
  }
  [[nodiscard]] next_result try_next() { return delivery_.try_next(); }

  void skip_epoch() {
    const std::optional<std::uint32_t> wanted = delivery_.skip_epoch();
    // Whoever has a batch of it in hands lets go of it when it looks here; delivery drops what has got further.
    if (wanted) skip_before_.store(*wanted, std::memory_order_relaxed);
  }

  [[nodiscard]] loader_state state() const { return state_at(delivery_.progress()); }
  [[nodiscard]] loader_state state_after(const batch& delivered) const;
  [[nodiscard]] bool finished() const { return options_.epochs != 0 && delivery_.progress().epoch >= options_.epochs; }
  /// By a line of its own: what a batch holds depends on its place alone.
  [[nodiscard]] batch batch_at(std::uint32_t epoch, std::uint64_t index) const;

  [[nodiscard]] asio::any_io_executor executor() { return io_.executor(0); }

  [[nodiscard]] static error used_in_child() {
    return {errc::usage, "this loader was made before fork(): its threads stayed in the parent; make one after fork()"};
  }

  void stop() noexcept;

  [[nodiscard]] bool in_child() const noexcept { return forked_.in_child(); }
  [[nodiscard]] std::uint64_t samples() const noexcept { return dataset_.size(); }
  [[nodiscard]] std::uint64_t batches_per_epoch() const noexcept { return batches_per_epoch_; }
  [[nodiscard]] const loader_plan& plan() const noexcept { return plan_; }
  [[nodiscard]] loader_stats stats() const;
  [[nodiscard]] std::vector<std::string> reads_under_way();

  /// A decode thread's job.
  void decode(sample_slot& slot, std::size_t thread) noexcept;
  /// The same on the loop that has read the sample, where it is less than handing it over; what turns out to be corrupt is a
  /// decode thread's job after all.
  void decode_inline(sample_slot& slot, std::size_t loop) noexcept;
  /// The last of a sample, on the thread that made it.
  void finish(sample_slot& slot) noexcept;
  /// Another job of a decode thread.
  void mix(batch_in_flight& batch, std::size_t thread) noexcept;

 private:
  // --- construction ---------------------------------------------------------------------------------------------
  [[nodiscard]] span_of_run one_batch(const batch_place& at) const;
  [[nodiscard]] span_of_run resumed() const;
  [[nodiscard]] std::uint64_t batches_to_come() const;
  /// What decides bytes, by name; found out when it is first asked for.
  [[nodiscard]] const state_descriptions& descriptions() const;
  [[nodiscard]] loader_state state_at(const run_progress& place) const;
  [[nodiscard]] memory_needs needs() const;
  [[nodiscard]] bookkeeping bookkeeping_of(const memory_needs& needs) const;
  [[nodiscard]] io::arena_options arena_settings() const;
  [[nodiscard]] std::vector<io::connector*> connectors();

  // --- the line, on the first I/O thread --------------------------------------------------------------------------
  asio::awaitable<void> run();
  asio::awaitable<void> run_line(async::scope& children);
  /// False where the batch cannot be, and ends the run in its turn.
  asio::awaitable<bool> start_batch(batch_in_flight& batch, async::scope& children);
  void plan_rows(batch_in_flight& batch, std::uint32_t first, std::uint32_t end);
  void decoded(batch_in_flight& batch);
  asio::awaitable<void> substitute(batch_in_flight& batch);
  void hand_over(batch_in_flight& batch);
  void drop(batch_in_flight& batch);
  void pass(batch_in_flight& batch, delivery_item item) noexcept;
  void send(batch_in_flight& batch) noexcept;
  void fail(batch_in_flight& batch, const std::string& reason);
  void end_run(batch_in_flight& batch, std::exception_ptr why, delivery_item item = {});
  void retire(batch_in_flight& batch) noexcept;
  [[nodiscard]] journal_entry describe(const batch_in_flight& batch, const sample_slot& slot,
                                       std::string_view action) const;
  [[nodiscard]] bool is_skipped(std::uint32_t epoch) const noexcept {
    return epoch < skip_before_.load(std::memory_order_relaxed);
  }
  /// Nobody will look at its rows.
  [[nodiscard]] bool is_unwanted(const sample_slot& slot) const noexcept {
    return stopping_.load(std::memory_order_relaxed) || is_skipped(slot.owner->plan.epoch);
  }

  // --- events -----------------------------------------------------------------------------------------------------
  void ready(sample_slot& slot, std::size_t loop) noexcept override;
  void broken(std::exception_ptr why) noexcept override;
  static void sent(transfer_operation& operation) noexcept;
  static void go_on_sending(void* argument) noexcept { static_cast<transfer*>(argument)->go_on(); }

  const async::fork_guard forked_;
  const std::vector<field> fields_;
  const loader_options options_;
  // Shared with the batches handed out, which may outlive the loader.
  const std::shared_ptr<transfer> transfer_;
  const bound_run run_;
  const datasets::dataset_model& dataset_;
  const std::vector<std::unique_ptr<field_program>>& programs_;
  const std::shared_ptr<const batch_layout>& layout_;
  const planner& planner_;
  mutable std::once_flag described_;
  mutable std::shared_ptr<const state_descriptions> descriptions_;
  const span_of_run part_;
  const io::memory_available memory_available_;  // when the loader is built: one answer for all who ask
  const memory_plan memory_;
  loader_plan plan_;
  // These two before the I/O threads, which may fail at once.
  std::atomic<bool> stopping_{false};
  delivery delivery_;
  const std::shared_ptr<io::arena> arena_;  // the leases share it, and batches may outlive us
  io::lease_pool read_pool_;
  io::lease_pool batch_pool_;
  io::io_threads io_;
  pixels::scratch_budget scratch_;
  const bool rows_read_again_;  // rows are read again once they are made
  const bool cheap_;            // and otherwise made by the threads that have read what they are made of
  decoder decoder_;             // for the decode threads, and then for the loops where rows are light
  mixer mixer_;
  reader_stage reads_;

  std::deque<batch_in_flight> works_;         // never moves: reads and jobs lie in it
  std::vector<batch_in_flight*> idle_works_;  // I/O thread
  async::semaphore works_free_;
  async::scope* children_ = nullptr;  // I/O thread, while the line runs
  const std::uint64_t batches_per_epoch_ = run_.batches(0);
  std::uint64_t sequence_ = 0;  // I/O thread
  std::uint64_t turn_ = 0;      // I/O thread

  // Samples that became ready in this turn of a loop: posted to the decoders together, or made on that loop.
  struct alignas(64) ready_jobs {
    async::job_list jobs;
    std::vector<sample_slot*> inline_samples;
    bool posted = false;
    machine* owner = nullptr;
  };
  std::vector<ready_jobs> ready_;

  async::thread_pool decoders_;

  std::atomic<std::uint32_t> skip_before_{0};  // what is left of the epochs before it is dropped
  asio::cancellation_signal stop_signal_;      // I/O thread
  std::future<void> finished_;
  std::once_flag stopped_;
  async::mutex works_mutex_;  // held by who looks at the works from outside; not by the line
  bool works_gone_ ABSL_GUARDED_BY(works_mutex_) = false;

  std::uint64_t started_ns_ = 0;
  std::atomic<std::uint64_t> decoded_{0};
  std::atomic<std::uint64_t> inline_ns_{0};
  std::atomic<std::uint64_t> collate_ns_{0};
  std::atomic<std::uint64_t> collated_{0};
  std::atomic<std::uint64_t> transferred_{0};
  std::atomic<std::uint64_t> ragged_bytes_{0};
  std::atomic<std::uint64_t> ragged_padding_bytes_{0};
  std::atomic<std::uint64_t> collated_bytes_{0};  // of blocks, as they are copied
};

// Where the run goes on, or its beginning.
loader::machine::span_of_run loader::machine::resumed() const {
  run_progress from;
  if (options_.digests) from.run.emplace();
  if (!options_.resume) return {.from = from};
  const loader_state& state = *options_.resume;
  check_resumes(state, descriptions());
  const bool ended = options_.epochs != 0 && state.epoch >= options_.epochs;
  if (const std::uint64_t batches = ended ? 0 : run_.batches(state.epoch); !ended && state.batch > batches) {
    throw error(errc::usage, io::str_cat("the state to resume from is at batch ", state.batch, " of epoch ",
                                         state.epoch, ", which has ", batches, "; give at() a place that there is"));
  }
  from.epoch = state.epoch;
  from.batch = state.batch;
  from.counted = state.counted;
  // What another rank has delivered and written is not what this one goes on with.
  if (state.world != options_.world.size || state.rank != options_.world.rank) {
    from.run.reset();
    check_no_journal(options_, state);
    return {.from = from};
  }
  from.run = options_.digests ? state.run_digest : std::nullopt;
  from.journal_bytes = options_.journal.empty() ? 0 : state.journal_bytes;
  return {.from = from};
}

const state_descriptions& loader::machine::descriptions() const {
  std::call_once(described_, [this] {
    descriptions_ =
        describe_run(options_, {.global_batch_size = global_batch_size(options_), .world_size = options_.world.size},
                     run_.samples(), fields_, run_.order());
  });
  return *descriptions_;
}

loader_state loader::machine::state_at(const run_progress& place) const {
  descriptions().check_named();
  loader_state state;
  state.epoch = place.epoch;
  state.batch = place.batch;
  state.seed = options_.seed;
  state.rank = options_.world.rank;
  state.world = options_.world.size;
  state.global_batch_size = global_batch_size(options_);
  state.batch_size = options_.batch_size;
  state.counted = place.counted;
  state.run_digest = place.run;
  state.journal_bytes = place.journal_bytes;
  state.descriptions = descriptions_;
  return state;
}

loader_state loader::machine::state_after(const batch& delivered) const {
  if (delivered.details().layout != layout_) {
    throw error(errc::usage,
                "state_after() was given a batch of another loader; give it one that this loader's next() gave");
  }
  return state_at(delivered.details().after);
}

// One batch, which has to be there.
loader::machine::span_of_run loader::machine::one_batch(const batch_place& at) const {
  if (options_.resume) check_resumes(*options_.resume, descriptions());
  if (options_.epochs != 0 && at.epoch >= options_.epochs) {
    throw error(errc::usage,
                io::str_cat("there is no epoch ", at.epoch, ": the run has ", options_.epochs, ", numbered from 0"));
  }
  if (const std::uint64_t batches = run_.batches(at.epoch); at.index >= batches) {
    throw error(errc::usage, io::str_cat("there is no batch ", at.index, " of epoch ", at.epoch, ": it has ", batches,
                                         ", numbered from 0"));
  }
  span_of_run part{.from = {.epoch = at.epoch, .batch = at.index}, .batches = 1};
  if (options_.digests) part.from.run.emplace();
  return part;
}

batch loader::machine::batch_at(std::uint32_t epoch, std::uint64_t index) const {
  loader_options alone = options_;
  alone.resume.reset();
  alone.prefetch_batches = 1;
  alone.corrupt_max = {};
  alone.unreadable_max = std::numeric_limits<std::uint64_t>::max();
  alone.journal.clear();
  alone.digests = alone.names = true;
  alone.device = host;
  loader_parts parts;
  parts.only = {epoch, index};
  machine line(run_.samples(), std::move(alone), fields_, parts);
  return *line.next_blocking();
}

// 0 where nobody knows.
std::uint64_t loader::machine::batches_to_come() const {
  if (part_.batches != 0) return part_.batches;
  if (options_.epochs == 0) return 0;
  const std::uint64_t all = run_.batches(0) * options_.epochs;
  const std::uint64_t gone = run_.batches(0) * part_.from.epoch + part_.from.batch;
  return all > gone ? all - gone : 1;
}

memory_needs loader::machine::needs() const {
  memory_needs needs{.host_bytes_max = options_.host_bytes_max,
                     .decode_threads = options_.decode_threads != 0
                                           ? options_.decode_threads
                                           : io::cores_of_local_rank(options_.world.local_size),
                     .threads_automatic = options_.decode_threads == 0,
                     .prefetch_batches = options_.prefetch_batches};
  std::uint64_t read_bytes_max = 0;
  std::uint64_t read_bytes_total = 0;
  std::vector<bool> counted(dataset_.fields().size(), false);
  for (const auto& program : programs_) {
    if (reads_into_rows(dataset_, *program)) continue;
    std::uint64_t largest = 0;
    for (const std::uint16_t f : program->reads()) {
      if (counted[f]) continue;
      counted[f] = true;
      const field_info& info = dataset_.fields()[f];
      largest = std::max(largest, info.bytes_max);
      read_bytes_total += info.bytes_total;
    }
    read_bytes_max += largest;
  }
  needs.scratch_bytes_per_thread = scratch_bytes_of(programs_);
  if (options_.digests) needs.scratch_bytes_per_thread += layout_->finished_row_bytes();
  needs.scratch_bytes_per_thread += mixer::scratch_bytes(*layout_, options_.mix, options_.digests);
  needs.batch_bytes = layout_->bytes(planner_.largest_ragged_batch());
  // Unaligned at both ends, and neighbours read together with what lies between them.
  needs.read_bytes_max = io::aligned_bytes(1, read_bytes_max) + programs_.size() * planner::gap_bytes_max;
  const std::uint64_t mean = read_bytes_total / std::max<std::uint64_t>(dataset_.size(), 1);
  needs.read_bytes_mean = io::aligned_bytes(1, mean);
  if (run_.order().in_order() && read_bytes_max != 0) {
    constexpr std::uint64_t joined = io::aligned_bytes(1, planner::joined_bytes_max);
    needs.read_bytes_max = std::max<std::uint64_t>(needs.read_bytes_max, joined);
    needs.read_bytes_mean = std::max<std::uint64_t>(needs.read_bytes_mean, joined);
  }
  const std::uint32_t depth =
      options_.reader.queue_depth != 0 ? options_.reader.queue_depth : io::queue_depth::of(needs.read_bytes_mean);
  const std::uint32_t io_threads = std::max(options_.reader.io_threads, 1U);
  needs.queue_depth = depth * io_threads;
  needs.batch_bookkeeping_bytes = bookkeeping_of(needs).bytes();
  const std::uint32_t rows_max = layout_->rows_max();
  // In order, a batch's neighbours are few reads; at random each row is one.
  const std::uint64_t batch_read_bytes = run_.epoch_bytes() / std::max<std::uint64_t>(dataset_.size(), 1) * rows_max;
  const std::uint64_t reads = run_.order().in_order()
                                  ? 1 + std::min<std::uint64_t>(batch_read_bytes / planner::joined_bytes_max, rows_max)
                                  : rows_max;
  const std::uint64_t reads_in_flight =
      options_.reader.queue_depth != 0 ? options_.reader.queue_depth : io::queue_depth::of(batch_read_bytes / reads);
  needs.batches_in_flight = (reads_in_flight * io_threads + reads - 1) / reads;
  io::direct_policy direct(options_.reader.direct);
  direct.set_epoch_bytes(run_.epoch_bytes(), memory_available_);
  needs.direct = direct.wants_direct();
  needs.batches_to_come = batches_to_come();
  return needs;
}

// Rows are planned some at a time, and a read that waits for memory keeps those behind it from being planned: reads are no
// more than have memory, and one step's. Those that need none, and those of ragged rows, which are planned at once, are as
// many as there are.
bookkeeping loader::machine::bookkeeping_of(const memory_needs& needs) const {
  std::vector<bool> fetched(dataset_.fields().size(), false);
  bool leased = planner_.in_steps();
  for (const auto& program : programs_) {
    if (program->reads().empty()) continue;
    const std::uint16_t first = program->reads().front();
    fetched[first] = dataset_.origin(first) == datasets::field_origin::extents;
    leased = leased && !reads_into_rows(dataset_, *program);
  }
  const auto reads = static_cast<std::size_t>(std::count(fetched.begin(), fetched.end(), true));
  bookkeeping all{.rows = layout_->rows_max(),
                  .reads = reads * layout_->rows_max(),
                  .programs = programs_.size(),
                  .ragged = layout_->ragged_count(),
                  .digests = options_.digests,
                  .names = options_.names};
  all.planned = planner_.in_steps() ? std::min<std::size_t>(all.reads, reads * planner::rows_at_once) : all.reads;
  if (leased) {
    const std::size_t with_memory = read_bytes_wanted(needs, needs.decode_threads) / io::alignment_max_bytes;
    all.reads = std::min(all.reads, with_memory + reads * planner::rows_at_once);
  }
  return all;
}

io::arena_options loader::machine::arena_settings() const {
  const io::huge_pages pages = options_.reader.huge_pages == choice::on    ? io::huge_pages::on
                               : options_.reader.huge_pages == choice::off ? io::huge_pages::off
                                                                           : io::huge_pages::automatic;
  return {.bytes_max = memory_.read_bytes + memory_.batch_bytes, .pages = pages};
}

// The sources are connected once the I/O threads know what an epoch reads.
std::vector<io::connector*> loader::machine::connectors() {
  io_.set_epoch_bytes(run_.epoch_bytes(), memory_available_);
  const auto tell = [this](const error& why) { broken(std::make_exception_ptr(why)); };
  io_.on_overdue(tell);
  io_.on_failure(tell);
  std::vector<io::connector*> loops;
  for (std::uint32_t k = 0; k < io_.size(); ++k) loops.push_back(&io_.loop(k));
  return loops;
}

// --- the line -------------------------------------------------------------------------------------------------------

asio::awaitable<void> loader::machine::run() {
  try {
    co_await async::with_scope([this](async::scope& children) { return run_line(children); });
  } catch (const boost::system::system_error& stopped) {
    const bool asked = stopping_.load(std::memory_order_relaxed);
    if (!asked) broken(std::current_exception());
  } catch (...) {
    broken(std::current_exception());
  }
}

asio::awaitable<void> loader::machine::run_line(async::scope& children) {
  children_ = &children;
  // Every epoch is as empty as the first: there is nothing to run ahead with, only ends to be counted as they are seen.
  constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();
  if (run_.batches(0) == 0) {
    const std::uint32_t gone = std::min(part_.from.epoch, options_.epochs);
    delivery_.end(sequence_, options_.epochs != 0 ? options_.epochs - gone : endless);
    co_return;
  }
  for (std::uint32_t epoch = part_.from.epoch; options_.epochs == 0 || epoch < options_.epochs; ++epoch) {
    const std::uint64_t batches = run_.batches(epoch);
    if (batches == 0) {
      throw error(errc::usage, io::str_cat("the sampler gives no batch for epoch ", epoch, ", and ", batches_per_epoch_,
                                           " for the first one; an order has batches in every epoch, or in none"));
    }
    const std::uint64_t first = epoch == part_.from.epoch ? part_.from.batch : 0;
    for (std::uint64_t index = first; index < batches && !is_skipped(epoch); ++index) {
      if (part_.batches != 0 && turn_ == part_.batches) {
        delivery_.end(sequence_);
        co_await works_free_.acquire(memory_.batches);
        co_return;
      }
      co_await works_free_.acquire(1);
      if (is_skipped(epoch)) {
        works_free_.release(1);
        break;
      }
      batch_in_flight& batch = *idle_works_.back();
      idle_works_.pop_back();
      batch.sequence = sequence_++;
      batch.plan.epoch = epoch;
      batch.plan.index = index;
      batch.sending.turn = turn_++;
      if (!co_await start_batch(batch, children)) {
        co_await works_free_.acquire(memory_.batches);
        co_return;
      }
    }
    delivery_item end;
    end.epoch = epoch;
    end.end_of_epoch = true;
    delivery_.put(sequence_++, std::move(end));
  }
  delivery_.end(sequence_);
  // Substitutes may still have to be read: the scope stays open until the last batch was handed over.
  co_await works_free_.acquire(memory_.batches);
}

asio::awaitable<bool> loader::machine::start_batch(batch_in_flight& batch, async::scope& children) {
  try {
    run_.pick_rows(batch.plan.epoch, batch.plan.index, batch.plan.picks);
    batch.plan.padded = run_.padded(batch.plan.epoch, batch.plan.index);
  } catch (...) {  // The sampler may be the user's own.
    end_run(batch, std::current_exception());
    co_return false;
  }
  planner_.begin(batch.plan);
  batch.begin();
  if (!planner_.in_steps()) plan_rows(batch, 0, batch.rows());
  if (options_.names) batch.names.resize(batch.rows());
  if (options_.digests) batch.row_digests.resize(batch.rows());
  batch.samples_missing.store(batch.rows(), std::memory_order_relaxed);

  // Batch leases are taken in batch order, so that a later batch cannot starve an earlier one. Each is its share of the
  // batch memory and not less: else batches smaller than the largest would run further ahead than prefetch_batches.
  const std::size_t bytes = memory_.batch_bytes / memory_.batches;
  if (const std::size_t wanted = batch.plan.memory_bytes; wanted > bytes) {
    end_run(batch, std::make_exception_ptr(
                       error(errc::usage, io::str_cat("batch ", batch.plan.index, " of epoch ", batch.plan.epoch,
                                                      " takes ", wanted, " bytes where ", bytes,
                                                      " are planned for each: the sampler gives a sample twice, "
                                                      "and its repeats() says that none comes twice"))));
    co_return false;
  }
  transfer_->collect();
  std::optional<io::lease> memory = batch_pool_.try_lease(bytes);
  if (!memory) {
    transfer_->starve(true);
    memory = co_await batch_pool_.async_lease(bytes, asio::use_awaitable);
    transfer_->starve(false);
  }
  batch.memory = std::move(*memory);
  if (is_skipped(batch.plan.epoch)) {  // while this waited for it
    drop(batch);
    co_return true;
  }
  // Nothing to do where the decoders touch the pages first, which they do unless huge pages are insisted on.
  while (batch_pool_.populate_next(batch.memory)) {
    if (options_.reader.huge_pages == choice::on) co_await async::next_turn();
  }

  // Some rows at a time: what a read of one is remembered by serves a later one, and a million of them let others have a turn.
  std::vector<std::uint32_t> rows;
  for (std::uint32_t first = 0; first < batch.rows(); first += planner::rows_at_once) {
    if (first != 0) co_await async::next_turn();
    rows.resize(std::min(batch.rows() - first, planner::rows_at_once));
    std::iota(rows.begin(), rows.end(), first);
    if (planner_.in_steps()) plan_rows(batch, first, first + static_cast<std::uint32_t>(rows.size()));
    co_await reads_.issue(batch, rows, children);
  }
  if (batch.rows() == 0) decoded(batch);  // Of a rank that has none of it: no row will say that it was the last.
  co_return true;
}

void loader::machine::plan_rows(batch_in_flight& batch, std::uint32_t first, std::uint32_t end) {
  planner_.plan_rows(batch.plan, first, end);
  batch.take_rows(first, end);
}

// All rows of the batch are there, or known not to be.
void loader::machine::decoded(batch_in_flight& batch) {
  if (stopping_.load(std::memory_order_relaxed)) return;
  if (is_skipped(batch.plan.epoch)) return drop(batch);
  const auto end = batch.samples.begin() + batch.rows();
  const auto threw = std::find_if(batch.samples.begin(), end, [](const sample_slot& slot) { return slot.threw(); });
  if (threw != end) return end_run(batch, threw->trouble->failure);
  // Under any policy: a row that is left out, or is another's, for want of memory would depend on the machine.
  const auto refused =
      std::find_if(batch.samples.begin(), end, [](const sample_slot& slot) { return slot.over_budget(); });
  if (refused != end) {
    return end_run(batch, std::make_exception_ptr(error(errc::limit, refused->trouble->reason)));
  }
  if (options_.on_corrupt == corrupt_policy::substitute) {
    const bool whole = std::none_of(batch.samples.begin(), end, [](const sample_slot& slot) { return slot.corrupt; });
    if (!whole) {
      children_->spawn(substitute(batch));
      return;
    }
  }
  hand_over(batch);
}

// Draws another sample for each row that has none, and reads it; decoded() is called again when all are there.
asio::awaitable<void> loader::machine::substitute(batch_in_flight& batch) {
  std::vector<std::uint32_t> rows;
  const std::uint64_t candidates = run_.order().substitutes(batch.plan.epoch, batch.plan.index);
  for (std::uint32_t row = 0; row < batch.rows(); ++row) {
    sample_slot& slot = batch.samples[row];
    if (!slot.corrupt) continue;
    sample_trouble& trouble = slot.in_trouble();
    const pick& planned = slot.planned();
    random_draws draws(options_.seed, planned.epoch, planned.draw, "substitute");
    for (std::uint32_t skipped = 0; skipped < trouble.substitutions; ++skipped) static_cast<void>(draws.below(1));
    pick drawn = planned;
    while (drawn.sample == planned.sample) {
      if (trouble.substitutions == substitutions_max || candidates == 0) {
        fail(batch, io::str_cat("no substitute for ", trouble.planned_name, ": ", trouble.substitutions,
                                " others were tried, the last of which failed: ", trouble.reason));
        co_return;
      }
      ++trouble.substitutions;
      drawn = run_.substitute(batch.plan.epoch, batch.plan.index, draws.below(candidates));
    }
    planner_.plan_substitute(batch.plan, row, drawn);
    batch.take_substitute(row, drawn);
    rows.push_back(row);
  }
  batch.samples_missing.store(static_cast<std::uint32_t>(rows.size()), std::memory_order_relaxed);
  co_await reads_.issue(batch, rows, *children_);
}

void loader::machine::hand_over(batch_in_flight& batch) {
  if (options_.on_corrupt == corrupt_policy::raise) {
    const auto end = batch.samples.begin() + batch.rows();
    const auto first =
        std::find_if(batch.samples.begin(), end, [](const sample_slot& slot) { return slot.quarantined(); });
    if (first != end) {
      const journal_entry what = describe(batch, *first, "raised");
      // A failed read says itself what to do, and leaving its sample out is not that.
      return fail(batch, what.read_failure != 0 ? io::str_cat("cannot read sample ", sample_text(what))
                                                : io::str_cat("corrupt sample ", sample_text(what),
                                                              "; on_corrupt = skip or substitute goes on without it"));
    }
  }

  delivery_item& item = batch.outgoing;
  item = {};
  item.epoch = batch.plan.epoch;
  item.index = batch.plan.index;
  const std::string_view action = options_.on_corrupt == corrupt_policy::skip ? "skipped" : "substituted";
  for (std::uint32_t row = 0; row < batch.rows(); ++row) {
    const sample_slot& slot = batch.samples[row];
    if (!slot.quarantined()) continue;
    ++item.quarantined;
    if (slot.trouble->substitute) ++item.substituted;
    item.journal.push_back(describe(batch, slot, action));
  }

  const std::uint64_t begin_ns = async::now_ns();
  item.finished = collate(batch, layout_, options_.digests, options_.names);
  item.finished->way_home = transfer_;
  if (mixer_.on() || options_.names) {
    for (std::uint32_t row = 0; row < batch.rows(); ++row) {
      if (!batch.samples[row].corrupt) item.finished->picks.push_back(batch.samples[row].pick());
    }
  }
  item.planned = batch.rows();
  item.padded = batch.plan.padded;
  item.samples = batch.rows() - item.quarantined;
  item.bytes = output_bytes(*item.finished);
  for (const batch::state::ragged& rows : item.finished->raggeds) {
    ragged_bytes_.fetch_add(rows.bytes, std::memory_order_relaxed);
    ragged_padding_bytes_.fetch_add(rows.longest * item.finished->rows - rows.bytes, std::memory_order_relaxed);
  }
  collate_ns_.fetch_add(async::now_ns() - begin_ns, std::memory_order_relaxed);
  if (!mixer_.on()) return send(batch);
  async::job_list jobs;
  jobs.push_back(batch.mixing);
  decoders_.post(std::move(jobs));
}

// A batch that nobody wants any more: its place in the order is left.
void loader::machine::drop(batch_in_flight& batch) {
  delivery_item item;
  item.epoch = batch.plan.epoch;
  pass(batch, std::move(item));
}

// Without a batch; others wait for its turn at the transfer to pass.
void loader::machine::pass(batch_in_flight& batch, delivery_item item) noexcept {
  batch.outgoing = std::move(item);
  batch.memory = {};
  batch.sending.memory = nullptr;
  batch.sending.bytes = 0;
  batch.sending.rows = 0;
  batch.sending.finish = {};
  batch.sending.failure = nullptr;
  batch.sending.handed_over = &machine::sent;
  transfer_->send(batch.sending);
}

// A decode thread's job.
void loader::machine::mix(batch_in_flight& batch, std::size_t thread) noexcept {
  if (stopping_.load(std::memory_order_relaxed)) return;
  try {
    mixer_.mix(*batch.outgoing.finished, thread, stopping_);
  } catch (...) {
    return broken(std::current_exception());
  }
  io_.loop(0).post(
      [](void* argument) noexcept {
        batch_in_flight& mixed = *static_cast<batch_in_flight*>(argument);
        static_cast<machine&>(*mixed.owner).send(mixed);
      },
      &batch);
}

void loader::machine::send(batch_in_flight& batch) noexcept {
  if (stopping_.load(std::memory_order_relaxed)) return;
  delivery_item& item = batch.outgoing;
  batch.sending.memory = &item.finished->memory;
  batch.sending.bytes = bytes_used(*item.finished);
  batch.sending.rows = item.finished->rows;
  batch.sending.finish = layout_->finish();
  batch.sending.failure = nullptr;
  batch.sending.handed_over = &machine::sent;
  collated_.fetch_add(1, std::memory_order_relaxed);
  collated_bytes_.fetch_add(batch.sending.bytes, std::memory_order_relaxed);
  transfer_->send(batch.sending);
}

// Corrupt samples end the run here, in the batch's turn: it is not handed out, and its other rows are neither delivered
// nor lost.
void loader::machine::fail(batch_in_flight& batch, const std::string& reason) {
  delivery_item item;
  for (std::uint32_t row = 0; row < batch.rows(); ++row) {
    const sample_slot& slot = batch.samples[row];
    if (!slot.quarantined()) continue;
    ++item.quarantined;
    item.journal.push_back(describe(batch, slot, "raised"));
    item.journal.back().substitute.reset();
  }
  item.planned = item.quarantined;
  end_run(batch, std::make_exception_ptr(error(errc::corrupt, reason)), std::move(item));
}

// The same with nothing counted beside it: no sample is corrupt, or none that matters any more.
void loader::machine::end_run(batch_in_flight& batch, std::exception_ptr why, delivery_item item) {
  item.epoch = batch.plan.epoch;
  item.failure = std::move(why);
  pass(batch, std::move(item));
}

// The event of the copy: on any thread, out of order.
void loader::machine::sent(transfer_operation& operation) noexcept {
  batch_in_flight& batch = *static_cast<batch_in_flight::sending_operation&>(operation).owner;
  auto& self = static_cast<machine&>(*batch.owner);
  if (batch.outgoing.finished != nullptr) {
    batch.outgoing.finished->landed = std::move(operation.landed);
    self.transferred_.fetch_add(1, std::memory_order_relaxed);
  }
  const std::uint64_t sequence = batch.sequence;
  delivery_item item = std::move(batch.outgoing);
  if (operation.failure != nullptr && item.failure == nullptr) {
    item = {};
    item.epoch = batch.plan.epoch;
    item.failure = operation.failure;
  }
  // The work goes home on the I/O thread; after the put, the consumer may destroy the loader.
  self.io_.loop(0).post(
      [](void* argument) noexcept {
        batch_in_flight& done = *static_cast<batch_in_flight*>(argument);
        static_cast<machine&>(*done.owner).retire(done);
      },
      &batch);
  self.delivery_.put(sequence, std::move(item));
}

void loader::machine::retire(batch_in_flight& batch) noexcept {
  idle_works_.push_back(&batch);
  works_free_.release(1);
}

journal_entry loader::machine::describe(const batch_in_flight& batch, const sample_slot& slot,
                                        std::string_view action) const {
  journal_entry entry{.epoch = batch.plan.epoch,
                      .batch = batch.plan.index,
                      .sample = slot.planned().sample,
                      .name = slot.trouble->planned_name,
                      .source = slot.trouble->planned_source,
                      .offset = slot.trouble->planned_offset,
                      .reason = slot.trouble->planned_reason,
                      .read_failure = slot.trouble->planned_read_failure,
                      .action = action,
                      .substitute = std::nullopt};
  if (slot.trouble->substitute) entry.substitute = slot.trouble->substitute->sample;
  return entry;
}

// --- events ---------------------------------------------------------------------------------------------------------

void loader::machine::ready(sample_slot& slot, std::size_t loop) noexcept {
  ready_jobs& mine = ready_[loop];
  // Rows that were read to where they stay, and that nobody looks at, are nothing for the decode threads.
  if (!slot.corrupt && (cheap_ || (slot.read_into && !rows_read_again_))) {
    mine.inline_samples.push_back(&slot);
  } else {
    mine.jobs.push_back(slot);
  }
  if (mine.posted) return;
  // Once per turn of the loop: what else becomes ready in this turn goes along.
  mine.posted = true;
  mine.owner = this;
  io_.loop(static_cast<std::uint32_t>(loop))
      .post(
          [](void* argument) noexcept {
            auto& flushed = *static_cast<ready_jobs*>(argument);
            flushed.posted = false;
            machine& self = *flushed.owner;
            if (!flushed.jobs.empty()) self.decoders_.post(std::exchange(flushed.jobs, {}));
            const auto its_loop = static_cast<std::size_t>(&flushed - self.ready_.data());
            const std::uint64_t begin_ns = flushed.inline_samples.empty() ? 0 : async::now_ns();
            for (sample_slot* const made : flushed.inline_samples) self.decode_inline(*made, its_loop);
            if (!flushed.inline_samples.empty()) {
              self.inline_ns_.fetch_add(async::now_ns() - begin_ns, std::memory_order_relaxed);
            }
            flushed.inline_samples.clear();
          },
          &mine);
}

void loader::machine::decode(sample_slot& slot, std::size_t thread) noexcept {
  try {
    if (!is_unwanted(slot)) decoder_.run(slot, static_cast<std::uint32_t>(thread), stopping_);
  } catch (...) {
    slot.in_trouble().failure =
        std::current_exception();  // told in the batch's turn, and so the same at every thread count
  }
  finish(slot);
}

void loader::machine::decode_inline(sample_slot& slot, std::size_t loop) noexcept {
  try {
    if (!slot.read_into && !is_unwanted(slot) &&
        !decoder_.make_rows(slot, memory_.decode_threads + static_cast<std::uint32_t>(loop), stopping_)) {
      return decoders_.post(slot);
    }
  } catch (...) {
    slot.in_trouble().failure = std::current_exception();
  }
  finish(slot);
}

void loader::machine::finish(sample_slot& slot) noexcept {
  batch_in_flight& batch = *slot.owner;
  reader_stage::release(slot);
  // Before the batch can be handed out: who has all batches sees all samples counted.
  decoded_.fetch_add(1, std::memory_order_relaxed);
  if (batch.samples_missing.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  io_.loop(0).post(
      [](void* argument) noexcept {
        batch_in_flight& whole = *static_cast<batch_in_flight*>(argument);
        auto& self = static_cast<machine&>(*whole.owner);
        try {
          self.decoded(whole);
        } catch (...) {
          self.broken(std::current_exception());
        }
      },
      &batch);
}

void loader::machine::broken(std::exception_ptr why) noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  delivery_.fail(std::move(why));
}

void loader::machine::stop() noexcept {
  if (forked_.in_child()) return;  // The threads that would have to end are not here.
  std::call_once(stopped_, [this] {
    stopping_.store(true, std::memory_order_relaxed);
    scratch_.stop();
    delivery_.close(std::make_exception_ptr(error(errc::cancelled, "the loader was stopped")));
    // The line first, so that nothing more is asked for; then what was.
    io_.loop(0).post(
        [](void* argument) noexcept {
          auto& self = *static_cast<machine*>(argument);
          self.stop_signal_.emit(asio::cancellation_type::all);
          self.reads_.cancel();
        },
        this);
    finished_.wait();
    reads_.drain();
    io_.wait_until_quiet();
    decoders_.stop(async::thread_pool::stop_mode::drop);
    // What was pinned first and then registered is undone the other way round: drain() unpins.
    if (transfer_->pins()) io_.unregister_buffers();
    transfer_->drain();
    io_.wait_until_quiet();
    const async::mutex_lock lock(works_mutex_);
    works_gone_ = true;
    works_.clear();
  });
}

std::vector<std::string> loader::machine::reads_under_way() {
  if (forked_.in_child()) return {};
  const async::mutex_lock lock(works_mutex_);
  if (works_gone_) return {};
  return reads_.under_way();
}

loader_stats loader::machine::stats() const {
  constexpr double ns = 1e-9;
  loader_stats now;
  const delivery::counters handed = delivery_.count();
  now.planned = handed.planned;
  now.padded = handed.padded;
  now.samples = handed.samples;
  now.quarantined = handed.quarantined;
  for (const auto& [kind, samples] : handed.quarantined_as) now.quarantined_as.push_back({kind, samples});
  now.substituted = handed.substituted;
  now.batches = handed.batches;
  now.epochs_finished = handed.epochs_finished;
  now.bytes_delivered = handed.bytes;
  now.bytes_copied = decoder_.bytes_copied();
  now.ragged_bytes = ragged_bytes_.load(std::memory_order_relaxed);
  now.ragged_padding_bytes = ragged_padding_bytes_.load(std::memory_order_relaxed);

  const reader_stage::counters read = reads_.count();
  const async::thread_pool::counters decoding = decoders_.count();
  const double elapsed_s = static_cast<double>(async::now_ns() - started_ns_) * ns;
  now.bytes_read = read.bytes;
  now.bytes_from_files = io_.count().bytes_read;
  now.read = {.count = read.reads,
              .bytes = read.bytes,
              .busy_s = static_cast<double>(read.flight_ns) * ns,
              .wait_s = static_cast<double>(read_pool_.count().wait_ns) * ns};
  const std::uint64_t collated_bytes = collated_bytes_.load(std::memory_order_relaxed);
  now.decode = {.count = decoded_.load(std::memory_order_relaxed),
                .bytes = collated_bytes,
                .busy_s = static_cast<double>(decoding.busy_ns + inline_ns_.load(std::memory_order_relaxed)) * ns,
                .wait_s = static_cast<double>(decoding.idle_ns) * ns};
  now.collate = {.count = collated_.load(std::memory_order_relaxed),
                 .bytes = collated_bytes,
                 .busy_s = static_cast<double>(collate_ns_.load(std::memory_order_relaxed)) * ns,
                 .wait_s = 0};
  now.transfer = {.count = transferred_.load(std::memory_order_relaxed),
                  .bytes = collated_bytes,
                  .busy_s = 0,
                  .wait_s = static_cast<double>(batch_pool_.count().wait_ns) * ns};
  now.next = {.count = handed.next_count,
              .bytes = handed.bytes,
              .busy_s = 0,
              .wait_s = static_cast<double>(handed.waits.sum_ns) * ns};
  now.next_wait_p50_s = static_cast<double>(handed.waits.p50_ns) * ns;
  now.next_wait_p99_s = static_cast<double>(handed.waits.p99_ns) * ns;
  now.digest_cpu_s = static_cast<double>(decoder_.digest_ns()) * ns;
  now.arena_bytes = arena_->bytes_populated();
  now.scratch_bytes_peak = scratch_.peak();
  now.reads_in_flight = read.in_flight;
  now.decode_queued = decoding.queued;
  now.batches_ready = handed.ready;
  now.batches_out = handed.out;
  now.reader = io_.report();
  now.device = transfer_->report();

  // Who waits least is who the others wait for: a consumer that never waits is the slowest itself; else decoders that
  // are never idle; else the copies, where batches wait for memory that is out; else the disk.
  const double threads_s = elapsed_s * static_cast<double>(memory_.decode_threads);
  if (now.next.wait_s < 0.1 * elapsed_s) {
    now.slowest = bottleneck::consumer;
  } else if (now.decode.busy_s > 0.8 * threads_s) {
    now.slowest = bottleneck::decode;
  } else if (transferred_.load(std::memory_order_relaxed) < collated_.load(std::memory_order_relaxed)) {
    now.slowest = bottleneck::transfer;
  } else {
    now.slowest = now.decode.busy_s > now.decode.wait_s ? bottleneck::decode : bottleneck::read;
  }
  return now;
}

namespace stages {
void sample_slot::run(async::worker_context& worker) noexcept {
  static_cast<loader::machine&>(*owner->owner).decode(*this, worker.index);
}
void mix_job::run(async::worker_context& worker) noexcept {
  static_cast<loader::machine&>(*owner->owner).mix(*owner, worker.index);
}
}  // namespace stages

// --- the public face ------------------------------------------------------------------------------------------------

loader::loader(dataset samples, loader_options options, std::vector<field> fields)
    : machine_(std::make_unique<machine>(samples, std::move(options), fields)) {}

loader::loader(std::unique_ptr<machine> line) noexcept : machine_(std::move(line)) {}

loader stages::make_loader(dataset samples, loader_options options, std::vector<field> fields, loader_parts parts) {
  return loader(std::make_unique<loader::machine>(samples, std::move(options), fields, parts));
}

loader::loader(loader&& other) noexcept = default;

loader& loader::operator=(loader&& other) noexcept {
  if (this != &other) {
    end();
    machine_ = std::move(other.machine_);
  }
  return *this;
}

loader::~loader() { end(); }

void loader::end() noexcept {
  // In a child of fork() the threads are not there to be joined, nor their locks to be trusted: the memory goes with
  // the process.
  if (machine_ != nullptr && machine_->in_child()) static_cast<void>(machine_.release());
  machine_.reset();
}

loader::machine& loader::check_process() const {
  if (machine_ == nullptr) throw error(errc::usage, "this loader was moved from; use the one that it was moved to");
  // Thrown and not delivered: the executor to deliver it on may have lost its threads in the fork, too.
  if (machine_->in_child()) throw machine::used_in_child();
  return *machine_;
}
bool loader::has_threads(const machine& of) noexcept { return !of.in_child(); }
asio::any_io_executor loader::executor_of(machine& of) { return of.executor(); }
void loader::start_next(machine& of, next_completion done) { of.next(std::move(done)); }

std::optional<batch> loader::next_blocking() {
  next_result got = check_process().next_blocking();
  return got ? std::optional<batch>(*std::move(got)) : std::nullopt;
}
next_result loader::next_blocking(std::chrono::duration<double> patience) {
  machine& line = check_process();
  // What a clock cannot count is for ever.
  constexpr std::chrono::duration<double> countable = std::chrono::hours(24 * 365 * 100);
  if (!(patience < countable)) return line.next_blocking();
  return line.next_blocking(
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::max(patience, std::chrono::duration<double>(0))));
}
next_result loader::try_next() { return check_process().try_next(); }
void loader::skip_epoch() { check_process().skip_epoch(); }
std::uint64_t loader::samples() const noexcept { return machine_->samples(); }
std::uint64_t loader::batches() const noexcept { return machine_->batches_per_epoch(); }
const loader_plan& loader::plan() const noexcept { return machine_->plan(); }
loader_state loader::state() const { return check_process().state(); }
loader_state loader::state_after(const batch& delivered) const { return check_process().state_after(delivered); }
bool loader::finished() const { return check_process().finished(); }
batch loader::batch_at(std::uint32_t epoch, std::uint64_t index) const {
  return check_process().batch_at(epoch, index);
}
loader_stats loader::stats() const { return machine_->stats(); }
std::vector<std::string> loader::reads_under_way() const { return machine_->reads_under_way(); }
void loader::stop() noexcept {
  if (machine_ != nullptr) machine_->stop();
}

}  // namespace leat

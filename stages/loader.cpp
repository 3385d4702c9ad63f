// A loader builds what it needs, front to back, and hands references down; nothing is global. Each part owns its state: `prefetch`
// starts batch after batch in a coroutine on the first I/O thread, `reader_stage` reads, `row_maker` makes rows, `hand_over` ends a
// batch, `delivery` hands it out.
#include "async/posted_functions.hpp"
#include "async/thread_pool.hpp"
#include "base/clock.hpp"
#include "base/cores_quota.hpp"
#include "base/fork_guard.hpp"
#include "base/memory_available.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/model.hpp"
#include "io/arena.hpp"
#include "io/io_threads.hpp"
#include "io/lease_pool.hpp"
#include "stages/batch_layout.hpp"
#include "stages/batch_table.hpp"
#include "stages/block_uses.hpp"
#include "stages/bound_run.hpp"
#include "stages/cache_use.hpp"
#include "stages/delivery.hpp"
#include "stages/device/device.hpp"
#include "stages/device/device_transfer.hpp"
#include "stages/device/open_device.hpp"
#include "stages/device/where_finished.hpp"
#include "stages/field_model.hpp"
#include "stages/hand_over.hpp"
#include "stages/journal.hpp"
#include "stages/line_depths.hpp"
#include "stages/loader_memory.hpp"
#include "stages/loader_parts.hpp"
#include "stages/memory_plan.hpp"
#include "stages/node_shares.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/prefetch.hpp"
#include "stages/read.hpp"
#include "stages/resumption.hpp"
#include "stages/row_maker.hpp"
#include "stages/run_flags.hpp"
#include "stages/shared_members.hpp"
#include "stages/transfer.hpp"
#include "stages/windows.hpp"

#include <leat/loading.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <future>
#include <limits>
#include <mutex>
#include <utility>

namespace leat {
namespace {

using namespace stages;

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
    throw error(errc::unsupported,
                str_cat("batches cannot go to cuda:", options.device.index, ": ", opened.why_not, "; with ",
                        spelled(option_id::device_required, "false"), " they stay on the host"),
                option_id::device_required);
  }
  if (opened.calls == nullptr) return std::make_shared<host_transfer>(std::move(opened.why_not));
  return on_device(std::move(opened.calls));
}

reader_options with_io_threads(reader_options options, std::uint32_t count) {
  options.io_threads = count;
  return options;
}

io::arena_options arena_settings(const loader_options& options, const memory_plan& memory) {
  const io::huge_pages pages = options.reader.huge_pages == choice::on    ? io::huge_pages::on
                               : options.reader.huge_pages == choice::off ? io::huge_pages::off
                                                                          : io::huge_pages::automatic;
  return {.bytes_max = memory.read_bytes + memory.kept_bytes + memory.batch_bytes, .pages = pages};
}

remote_stats remote_counts(const datasets::dataset_model& dataset) {
  remote_stats all;
  for (const auto& each : dataset.sources()) each->add_counts(all);
  return all;
}
remote_stats remote_since(const remote_stats& before, remote_stats now) {
  now.requests -= before.requests;
  now.bytes -= before.bytes;
  now.bytes_from_cache -= before.bytes_from_cache;
  now.retries -= before.retries;
  now.hedges -= before.hedges;
  now.wait_s -= before.wait_s;
  now.connections -= before.connections;
  now.cached_blocks -= before.cached_blocks;
  now.damaged_reads -= before.damaged_reads;
  now.refusals -= before.refusals;
  return now;
}

}  // namespace

class loader::pipeline final : public line_events {
 public:
  pipeline(const dataset& samples, loader_options options, std::vector<field> fields, const loader_parts& parts = {})
      : fields_(std::move(fields)),
        options_(checked(std::move(options))),
        transfer_(make_transfer(options_, parts)),
        run_(samples, fields_, options_, finished_where(options_, fields_, *transfer_)),
        resumption_(run_, options_, fields_),
        span_(parts.only ? resumption_.one_batch(*parts.only) : resumption_.resumed()),
        memory_available_(find_memory_available()),
        memory_(memory_of(run_, options_, memory_available_, resumption_.batches_of(span_))),
        delivery_(options_.journal.empty() ? journal() : journal(options_.journal, span_.from.journal_bytes),
                  {.corrupt_max = options_.corrupt_max,
                   .unreadable_max = options_.unreadable_max,
                   .epoch_samples = options_.corrupt_max.share < 1 ? run_.epoch_samples() : 0},
                  span_.from, memory_.batches),
        windows_(parts.windows),
        arena_(std::make_shared<io::arena>(arena_settings(options_, memory_))),
        read_pool_(arena_,
                   {.bytes_max = memory_.read_bytes + memory_.kept_bytes, .name = "read buffers", .in_pieces = true}),
        // Faulted in by who writes the rows, one by one: the I/O thread, which leases a whole batch, has reads to look after.
        batch_pool_(arena_, {.bytes_max = memory_.batch_bytes,
                             .name = "batches",
                             .first_touch = true,
                             .in_pieces = true,
                             .pinned_first = transfer_->pins()}),
        io_(with_io_threads(options_.reader, io_threads_of(run_, options_)), arena_),
        scratch_(memory_.scratch_bytes, memory_.shown.host_bytes_max),
        rows_(run_.dataset(), run_.programs(), *run_.layout(),
              {.seed = options_.seed, .digests = options_.digests, .names = options_.names}, scratch_,
              memory_.decode_threads, io_, posted_, flags_),
        ending_({.run = run_,
                 .options = options_,
                 .transfer = transfer_,
                 .delivery = delivery_,
                 .flags = flags_,
                 .loops = io_,
                 .posted = posted_,
                 .events = *this,
                 .decode_threads = memory_.decode_threads}),
        cache_use_(use_of_cache(run_, {.batches = memory_.batches, .io_threads = io_.size()})),
        reads_(run_.dataset(), run_.programs(), connectors(), read_pool_,
               {.kept_bytes = memory_.kept_bytes, .source_bytes = memory_.source_bytes, .cache = cache_use_.windows},
               *this),
        batches_(memory_.batches, rows_, ending_),
        prefetch_({.run = run_,
                   .options = options_,
                   .span = span_,
                   .memory = memory_,
                   .flags = flags_,
                   .batch_pool = batch_pool_,
                   .transfer = *transfer_,
                   .delivery = delivery_,
                   .reads = reads_,
                   .rows = rows_,
                   .ending = ending_,
                   .batches = batches_}),
        depths_(memory_, options_.reader.queue_depth, batch_pool_, io_, rows_) {
    if (options_.reader.direct == choice::on) reads_.check_first_files();  // before others have been given references
    transfer_->prepare({.batch_bytes_max = memory_.shown.batch_bytes,
                        .made_bytes_max = run_.layout()->made_bytes(),
                        .scratch_bytes_max = run_.layout()->scratch_bytes(),
                        .host_batches = memory_.batches,
                        .failed = [this](std::exception_ptr why) { broken(std::move(why)); },
                        .pinning_done = [this](const io::lease& memory) { batch_pool_.pinning_done(memory); },
                        .name_of = [this](std::uint64_t sample) { return run_.dataset().name(sample); },
                        .host_memory = arena_});
    plan_ = memory_.shown;
    if (cache_use_.warning) plan_.warnings.push_back(*cache_use_.warning);
    if (remote_before_.cache.starts_with("off: ")) {
      plan_.warnings.push_back(str_cat("the cache is not used: ", remote_before_.cache.substr(5)));
    }
    plan_.notes = describe_shared_decodes(run_.programs());
    if (options_.reader.io_threads == 0 && io_.size() > 1) {
      plan_.notes.push_back(str_cat(io_.size(), " I/O threads: a device decodes faster than one reads"));
    }
    if (std::optional<node_shares> shares = describe_node_shares(run_)) {
      (shares->warns ? plan_.warnings : plan_.notes).push_back(std::move(shares->text));
    }
    if (std::optional<std::string> uses = describe_block_uses(run_, memory_)) plan_.notes.push_back(*std::move(uses));
    if (const device_report device = transfer_->report(); device.batches != 0) {
      const std::size_t scratch = run_.layout()->scratch_bytes();
      plan_.device = {device.use.use, device.bytes,
                      str_cat(device.batches, " x ", bytes_text((device.bytes - scratch) / device.batches),
                              " of its memory: what is copied, and the pictures it makes of it",
                              scratch == 0 ? "" : str_cat("; ", bytes_text(scratch), " to decode in"))};
    }
    delivery_.on_handed_out([this](std::uint64_t now, std::uint64_t batches) {
      if (windows_.is_due(now - started_ns_, batches)) end_window();
    });
    started_ns_ = now_ns();
    finished_ =
        asio::co_spawn(io_.executor(0), run(), asio::bind_cancellation_slot(stop_signal_.slot(), asio::use_future));
  }

  ~pipeline() { stop(); }

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
    if (wanted) flags_.skip_before(*wanted);
  }

  [[nodiscard]] loader_state state() const { return resumption_.at(delivery_.progress()); }
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
  [[nodiscard]] std::uint64_t samples() const noexcept { return run_.dataset().size(); }
  [[nodiscard]] std::uint64_t rows() const { return run_.epoch_samples(); }
  [[nodiscard]] const loader_options& options() const noexcept { return options_; }
  [[nodiscard]] std::uint64_t batches_per_epoch() const noexcept { return batches_per_epoch_; }
  [[nodiscard]] const loader_plan& plan() const noexcept { return plan_; }
  [[nodiscard]] loader_stats stats() const;
  [[nodiscard]] verdict verdict_of_run() const;
  [[nodiscard]] std::vector<loader_window> windows() const;
  [[nodiscard]] std::vector<std::string> reads_under_way();
  [[nodiscard]] depth_control& depths() noexcept { return depths_; }
  [[nodiscard]] static pipeline& of(const loader& line) { return line.check_process(); }

 private:
  /// Connects the sources once the I/O threads know what an epoch reads.
  [[nodiscard]] std::vector<io::connector*> connectors();
  [[nodiscard]] async::histogram_sum read_times() const;
  [[nodiscard]] line_counts counts(const delivery::counters& handed, const row_maker::counters& made,
                                   const async::histogram_sum& read_times) const;
  [[nodiscard]] line_setting setting(const line_counts& counts) const;
  [[nodiscard]] std::vector<leat::thread_stats> thread_stats_now() const;
  void end_window();
  asio::awaitable<void> run();

  void ready(sample_in_flight& sample, std::size_t loop) noexcept override { rows_.ready(sample, loop); }
  void ready(block_in_flight& block, std::size_t loop) noexcept override { rows_.ready(block, loop); }
  void broken(std::exception_ptr why) noexcept override {
    flags_.stop();
    delivery_.fail(std::move(why));
  }

  const fork_guard forked_;
  const std::vector<field> fields_;
  const loader_options options_;
  // Shared with the batches handed out, which may outlive the loader.
  const std::shared_ptr<transfer> transfer_;
  bound_run run_;
  const remote_stats remote_before_ = remote_counts(run_.dataset());  // what others have read of the same objects
  const resumption resumption_;
  const span_of_run span_;
  const memory_available memory_available_;  // when the loader is built: one answer for all who ask
  const memory_plan memory_;
  loader_plan plan_;
  const std::uint32_t cores_ = working_cores();
  // These two before the I/O threads, which may fail at once.
  run_flags flags_;
  delivery delivery_;
  stages::windows windows_;
  const std::shared_ptr<io::arena> arena_;  // the leases share it, and batches may outlive us
  io::lease_pool read_pool_;
  io::lease_pool batch_pool_;
  io::io_threads io_;
  async::posted_functions posted_;  // by the parts that follow
  pixels::scratch_budget scratch_;
  row_maker rows_;
  hand_over ending_;
  const cache_use cache_use_;
  reader_stage reads_;
  batch_table batches_;
  prefetch prefetch_;
  depth_control depths_;
  const std::uint64_t batches_per_epoch_ = run_.batches(0);

  asio::cancellation_signal stop_signal_;  // first I/O thread
  std::future<void> finished_;
  std::once_flag stopped_;
  std::uint64_t started_ns_ = 0;
};

loader_state loader::pipeline::state_after(const batch& delivered) const {
  if (delivered.details().layout != run_.layout()) {
    throw error(errc::usage,
                "state_after() was given a batch of another loader; give it one that this loader's next() gave");
  }
  return resumption_.at(delivered.details().after);
}

batch loader::pipeline::batch_at(std::uint32_t epoch, std::uint64_t index) const {
  if (std::any_of(fields_.begin(), fields_.end(), [](const field& each) { return each.model().needs_nvjpeg(); })) {
    throw error(errc::unsupported,
                str_cat("batch_at() makes its batch on the host, which has no pixels of ",
                        spelled(option_id::jpeg_decoder, "nvjpeg")),
                option_id::jpeg_decoder);
  }
  loader_options alone = options_;
  alone.resume.reset();
  alone.prefetch_batches = 1;
  alone.corrupt_max = {};
  alone.unreadable_max = std::numeric_limits<std::uint64_t>::max();
  alone.journal.clear();
  alone.digests = alone.names = true;
  alone.device = host;
  alone.decode_on = decode_on::host;
  loader_parts parts;
  parts.only = {epoch, index};
  pipeline line(run_.samples(), std::move(alone), fields_, parts);
  return *line.next_blocking();
}

std::vector<io::connector*> loader::pipeline::connectors() {
  io_.set_epoch_bytes(run_.epoch_bytes(), memory_available_);
  const auto tell = [this](const error& why) { broken(std::make_exception_ptr(why)); };
  io_.on_overdue(tell);
  io_.on_failure(tell);
  std::vector<io::connector*> loops;
  for (std::uint32_t k = 0; k < io_.size(); ++k) loops.push_back(&io_.loop(k));
  return loops;
}

asio::awaitable<void> loader::pipeline::run() {
  try {
    co_await prefetch_.run();
  } catch (const boost::system::system_error&) {
    if (!flags_.stopping()) broken(std::current_exception());
  } catch (...) {
    broken(std::current_exception());
  }
}

void loader::pipeline::stop() noexcept {
  if (forked_.in_child()) return;  // The threads that would have to end are not here.
  std::call_once(stopped_, [this] {
    flags_.stop();
    scratch_.stop();
    delivery_.close(std::make_exception_ptr(error(errc::cancelled, "the loader was stopped")));
    // The line first, so that nothing more is asked for; then what was.
    posted_.post(io_.executor(0), [this] {
      stop_signal_.emit(asio::cancellation_type::all);
      reads_.cancel();
    });
    finished_.wait();
    reads_.drain();
    rows_.stop();
    // What has been read and made may still be on its way from part to part, over several turns of the loops.
    posted_.wait();
    // What was pinned first and then registered is undone the other way round: drain() unpins.
    if (transfer_->pins()) io_.unregister_buffers();
    transfer_->drain();
    posted_.wait();
    io_.wait_until_quiet();  // who waited for a batch on a loop's executor has been told
    batches_.clear();
  });
}

std::vector<std::string> loader::pipeline::reads_under_way() {
  if (forked_.in_child()) return {};
  return batches_.while_there([this] { return reads_.under_way(); }, std::vector<std::string>());
}

namespace {

// Where a thread sleeps in calls that also work (io_uring_enter), its CPU time tells more.
std::uint64_t awake_ns(const io::io_thread_counters& of) { return std::max(of.awake_ns, of.cpu_ns); }

}  // namespace

line_setting loader::pipeline::setting(const line_counts& counts) const {
  const std::uint64_t read_bytes = counts.reads == 0 ? 0 : counts.read_bytes / counts.reads;
  return {.decode_threads = rows_.decode_threads(),
          .cores = cores_,
          .io_threads = io_.size(),
          .reads_at_a_time = io_.count().reads == 0 ? 0 : io_.depth_of(read_bytes),
          .batches_max = memory_.batches,
          .short_of_memory = memory_.batches_missing,
          .on_device = transfer_->runs_operations()};
}

line_counts loader::pipeline::counts(const delivery::counters& handed, const row_maker::counters& made,
                                     const async::histogram_sum& read_times) const {
  const io::io_counters io = io_.count();
  const hand_over::counters ended = ending_.count();
  const device_times timed = transfer_->times();
  const std::uint64_t at_ns = now_ns();
  line_counts now{.time_ns = at_ns - started_ns_,
                  .batches = handed.batches,
                  .planned = handed.planned,
                  .samples = handed.samples,
                  .quarantined = handed.quarantined,
                  .reads = read_times.count(),
                  .read_bytes = io.bytes_read,
                  .read_ns = read_times.sum_ns(),
                  .rows_read = made.read,
                  .held_back_ns = io.held_back_ns,
                  .io_awake_ns = 0,
                  .rows_made = made.samples,
                  .decode_ns = made.pool.busy_ns,
                  .decode_wait_ns = made.pool.queue_wait_ns,
                  .batch_wait_ns = prefetch_.waited_ns(at_ns),
                  .transferred_rows = ended.transferred_rows,
                  .transfer_ns = ended.transfer_ns,
                  .timed_batches = timed.batches,
                  .timed_rows = timed.rows,
                  .device_copy_ns = timed.copy_ns,
                  .device_step_ns = timed.step_ns,
                  .device_stall_ns = timed.stall_ns,
                  .steps = handed.steps,
                  .step_ns = handed.step_ns,
                  .held_all_ns = handed.held_all_ns,
                  .stalled_ns = handed.stalled_ns,
                  .waiting_ns = handed.waiting_ns,
                  .pause_ns = handed.pause_ns,
                  .ready_ns = handed.ready_ns,
                  .out_ns = handed.out_ns};
  for (const io::io_thread_counters& each : io_.count_threads()) now.io_awake_ns += awake_ns(each);
  return now;
}

async::histogram_sum loader::pipeline::read_times() const {
  async::histogram_sum times;
  io_.add_to(times);
  reads_.add_to(times);
  return times;
}

// On the thread that hands out a batch.
void loader::pipeline::end_window() {
  const line_counts now = counts(delivery_.count(), rows_.count(), read_times());
  windows_.end(now, setting(now));
}

verdict loader::pipeline::verdict_of_run() const {
  const line_counts now = counts(delivery_.count(), rows_.count(), read_times());
  return windows_.judge_run(now, setting(now));
}

std::vector<loader_window> loader::pipeline::windows() const {
  const line_counts now = counts(delivery_.count(), rows_.count(), read_times());
  return windows_.all(now, setting(now));
}

namespace {

constexpr double ns = 1e-9;
double in_seconds(std::uint64_t value_ns) { return static_cast<double>(value_ns) * ns; }

void add_items(stage_stats& to, const async::histogram::summary& items) {
  static_assert(duration_counts::bounds_s.size() == async::histogram::bounds_ns.size());
  to.p50_s = in_seconds(items.p50_ns);
  to.p90_s = in_seconds(items.p90_ns);
  to.p99_s = in_seconds(items.p99_ns);
  to.max_s = in_seconds(items.max_ns);
  to.items_s = in_seconds(items.sum_ns);
  to.items.counts = items.between;
}

}  // namespace

loader_stats loader::pipeline::stats() const {
  loader_stats now;
  const delivery::counters handed = delivery_.count();
  now.planned = handed.planned;
  now.padded = handed.padded;
  now.samples = handed.samples;
  now.quarantined = handed.quarantined;
  for (const auto& [kind, samples] : handed.quarantined_as)
    now.quarantined_as.push_back({std::string(kind.name), samples});
  now.substituted = handed.substituted;
  now.batches = handed.batches;
  now.epochs_finished = handed.epochs_finished;
  now.bytes_delivered = handed.bytes;
  const reader_stage::counters read = reads_.count();
  const row_maker::counters made = rows_.count();
  const hand_over::counters ended = ending_.count();
  const async::histogram_sum times = read_times();
  const line_counts counted = counts(handed, made, times);
  now.bytes_copied = made.bytes_copied;
  now.expand = made.expanded;
  now.remote = remote_since(remote_before_, remote_counts(run_.dataset()));
  now.ragged_bytes = ended.ragged_bytes;
  now.ragged_padding_bytes = ended.ragged_padding_bytes;

  now.elapsed_s = in_seconds(counted.time_ns);
  now.bytes_read = read.bytes;
  now.bytes_from_files = counted.read_bytes;
  now.read = {.count = read.reads,
              .bytes = read.bytes,
              .busy_s = in_seconds(counted.read_ns),
              .wait_s = in_seconds(read_pool_.count().wait_ns)};
  add_items(now.read, times.summarize());
  now.decode = {.count = made.samples,
                .bytes = ended.collated_bytes,
                .busy_s = in_seconds(made.pool.busy_ns + made.on_loop_ns),
                .wait_s = in_seconds(made.pool.idle_ns)};
  async::histogram_sum jobs;
  rows_.add_to(jobs);
  add_items(now.decode, jobs.summarize());
  now.collate = {.count = ended.collated, .bytes = ended.collated_bytes};
  add_items(now.collate, ending_.collate_times());
  now.collate.busy_s = now.collate.items_s;
  now.transfer = {.count = ended.transferred,
                  .bytes = ended.collated_bytes,
                  .busy_s = in_seconds(ended.transfer_ns),
                  .wait_s = in_seconds(batch_pool_.count().wait_ns)};
  if (transfer_->runs_operations()) {
    // Each stands for those that were not timed. (Not their mean times all batches, which may fall; nor what the host took before the
    // first was timed, which may be more.)
    now.transfer.busy_s = in_seconds(counted.device_copy_ns * timed_every);
  }
  add_items(now.transfer, ending_.transfer_times());
  now.next = {.count = handed.next_count, .bytes = handed.bytes, .busy_s = in_seconds(handed.step_ns)};
  add_items(now.next, delivery_.waits());
  now.next.wait_s = now.next.items_s;
  now.stalled_s = in_seconds(handed.stalled_ns);
  const auto mean = [&](std::uint64_t stays_ns) {
    return counted.time_ns == 0 ? 0 : static_cast<double>(stays_ns) / static_cast<double>(counted.time_ns);
  };
  now.queues = {.decode = mean(counted.decode_wait_ns), .ready = mean(counted.ready_ns), .out = mean(counted.out_ns)};
  now.threads = thread_stats_now();
  now.digest_cpu_s = in_seconds(made.digest_ns);
  now.arena_bytes = arena_->bytes_populated();
  now.scratch_bytes_peak = scratch_.peak();
  now.reads_in_flight = read.in_flight;
  now.decode_queued = made.pool.queued;
  now.batches_ready = handed.ready;
  now.batches_out = handed.out;
  now.reader = io_.report();
  now.device = transfer_->report();
  add_where_finished(now, options_, *transfer_, run_.programs());
  now.verdict = windows_.judge_last(counted, setting(counted));
  return now;
}

std::vector<leat::thread_stats> loader::pipeline::thread_stats_now() const {
  std::vector<leat::thread_stats> all;
  for (const io::io_thread_counters& each : io_.count_threads()) {
    all.push_back({.name = str_cat("io-", all.size()),
                   .busy_s = in_seconds(awake_ns(each)),
                   .idle_s = in_seconds(each.wait_ns),
                   .cpu_s = in_seconds(each.cpu_ns)});
  }
  const std::size_t before = all.size();
  for (const async::thread_pool::thread_counters& each : rows_.count_threads()) {
    all.push_back({.name = str_cat("decode-", all.size() - before),
                   .busy_s = in_seconds(each.busy_ns),
                   .idle_s = in_seconds(each.idle_ns),
                   .cpu_s = in_seconds(each.cpu_ns)});
  }
  return all;
}

// --- the public face ------------------------------------------------------------------------------------------------

loader::loader(dataset samples, loader_options options, std::vector<field> fields)
    : pipeline_(std::make_unique<pipeline>(samples, std::move(options), fields)) {}

loader::loader(std::unique_ptr<pipeline> line) noexcept : pipeline_(std::move(line)) {}

loader stages::make_loader(dataset samples, loader_options options, std::vector<field> fields, loader_parts parts) {
  return loader(std::make_unique<loader::pipeline>(samples, std::move(options), fields, parts));
}

stages::line_depths stages::depths_of(const loader& line) { return loader::pipeline::of(line).depths().now(); }
stages::line_depths stages::depths_max(const loader& line) { return loader::pipeline::of(line).depths().most(); }
void stages::set_depths(loader& line, const line_depths& depths) { loader::pipeline::of(line).depths().set(depths); }

loader::loader(loader&& other) noexcept = default;

loader& loader::operator=(loader&& other) noexcept {
  if (this != &other) {
    end();
    pipeline_ = std::move(other.pipeline_);
  }
  return *this;
}

loader::~loader() { end(); }

void loader::end() noexcept {
  // In a child of fork() the threads are not there to be joined, nor their locks to be trusted: the memory goes with
  // the process.
  if (pipeline_ != nullptr && pipeline_->in_child()) static_cast<void>(pipeline_.release());
  pipeline_.reset();
}

loader::pipeline& loader::check_process() const {
  if (pipeline_ == nullptr) throw error(errc::usage, "this loader was moved from; use the one that it was moved to");
  // Thrown and not delivered: the executor to deliver it on may have lost its threads in the fork, too.
  if (pipeline_->in_child()) throw pipeline::used_in_child();
  return *pipeline_;
}
bool loader::has_threads(const pipeline& of) noexcept { return !of.in_child(); }
asio::any_io_executor loader::executor_of(pipeline& of) { return of.executor(); }
void loader::start_next(pipeline& of, next_completion done) { of.next(std::move(done)); }

std::optional<batch> loader::next_blocking() {
  next_result got = check_process().next_blocking();
  return got ? std::optional<batch>(*std::move(got)) : std::nullopt;
}
next_result loader::next_blocking(std::chrono::duration<double> patience) {
  pipeline& line = check_process();
  // What a clock cannot count is for ever.
  constexpr std::chrono::duration<double> countable = std::chrono::hours(24 * 365 * 100);
  if (!(patience < countable)) return line.next_blocking();
  return line.next_blocking(
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::max(patience, std::chrono::duration<double>(0))));
}
next_result loader::try_next() { return check_process().try_next(); }
void loader::skip_epoch() { check_process().skip_epoch(); }
std::uint64_t loader::samples() const noexcept { return pipeline_->samples(); }
std::uint64_t loader::batches() const noexcept { return pipeline_->batches_per_epoch(); }
std::uint64_t loader::rows() const { return pipeline_->rows(); }
const loader_options& loader::options() const noexcept { return pipeline_->options(); }
const loader_plan& loader::plan() const noexcept { return pipeline_->plan(); }
loader_state loader::state() const { return check_process().state(); }
loader_state loader::state_after(const batch& delivered) const { return check_process().state_after(delivered); }
bool loader::finished() const { return check_process().finished(); }
batch loader::batch_at(std::uint32_t epoch, std::uint64_t index) const {
  return check_process().batch_at(epoch, index);
}
loader_stats loader::stats() const { return pipeline_->stats(); }
verdict loader::verdict_of_run() const { return pipeline_->verdict_of_run(); }
std::vector<loader_window> loader::windows() const { return pipeline_->windows(); }
std::vector<std::string> loader::reads_under_way() const { return pipeline_->reads_under_way(); }
void loader::stop() noexcept {
  if (pipeline_ != nullptr) pipeline_->stop();
}

}  // namespace leat

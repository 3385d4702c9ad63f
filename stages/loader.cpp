// A loader builds what it needs, front to back, and hands references down; nothing is global. Each part owns its state: `prefetch`
// starts batch after batch in a coroutine on the first I/O thread, `reader_stage` reads, `decode_stage` makes rows, `hand_over` ends a
// batch, `delivery` hands it out.
#include "async/own_thread.hpp"
#include "async/posted_functions.hpp"
#include "async/thread_pool.hpp"
#include "base/clock.hpp"
#include "base/cores_quota.hpp"
#include "base/errno_words.hpp"
#include "base/fork_guard.hpp"
#include "base/gzip.hpp"
#include "base/memory_available.hpp"
#include "base/mutex.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "base/unfinished_file.hpp"
#include "base/usable_cores.hpp"
#include "datasets/model/model.hpp"
#include "io/arena/arena.hpp"
#include "io/arena/lease_pool.hpp"
#include "io/ring/io_threads.hpp"
#include "stages/batch/batch_layout.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/batch/transfer.hpp"
#include "stages/observe/read_record.hpp"
#include "stages/observe/timeline.hpp"
#include "stages/observe/windows.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/plan/cache_use.hpp"
#include "stages/plan/described_plan.hpp"
#include "stages/plan/memory_plan.hpp"
#include "stages/plan/rows_that_stay.hpp"
#include "stages/plan/run_spec.hpp"
#include "stages/run/batch_table.hpp"
#include "stages/run/concurrency_limits.hpp"
#include "stages/run/decode_stage.hpp"
#include "stages/run/delivery.hpp"
#include "stages/run/device_choice.hpp"
#include "stages/run/hand_over.hpp"
#include "stages/run/line_tuner.hpp"
#include "stages/run/line_watch.hpp"
#include "stages/run/loader_memory.hpp"
#include "stages/run/loader_parts.hpp"
#include "stages/run/next_of.hpp"
#include "stages/run/node_placement.hpp"
#include "stages/run/prefetch.hpp"
#include "stages/run/read.hpp"
#include "stages/run/resumption.hpp"
#include "stages/run/run_flags.hpp"
#include "stages/run/stall_files.hpp"
#include "stages/state/journal.hpp"
#include "stages/state/replaceable_files.hpp"

#include <leat/loading.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

namespace leat {
namespace {

using namespace stages;

reader_options with_io_threads(reader_options options, std::uint32_t count) {
  options.io_threads = count;
  return options;
}

io::arena_options arena_settings(const loader_options& options, const memory_plan& memory,
                                 const node_placement& placed) {
  const io::huge_pages pages = options.reader.huge_pages == choice::on    ? io::huge_pages::on
                               : options.reader.huge_pages == choice::off ? io::huge_pages::off
                                                                          : io::huge_pages::automatic;
  return {
      .bytes_max = memory.read_bytes + memory.kept_bytes + memory.batch_bytes, .pages = pages, .node = placed.node()};
}

// Before the first of them is emptied. A run that is gone on with keeps what it has written.
loader_options with_replaceable_files(loader_options options) {
  if (!options.resume && !options.journal.empty()) check_journal_replaceable(options.journal);
  if (!options.resume && !options.receipts.empty()) check_receipts_replaceable(options.receipts);
  if (!options.record.empty()) check_record_replaceable(options.record);
  return options;
}

std::unique_ptr<read_recorder> recorder_of(const loader_options& options, const memory_plan& memory,
                                           const io::io_threads& loops, bool on_device) {
  if (options.record.empty()) return nullptr;
  // Threads of preadv read as many as they are.
  const bool by_bytes = options.reader.queue_depth == 0 && loops.depth_of(1) != loops.depth_of(std::uint64_t{1} << 30U);
  return std::make_unique<read_recorder>(options.record, recorded_settings{.io_threads = loops.size(),
                                                                           .decode_threads = memory.decode_threads,
                                                                           .cores = working_cores(),
                                                                           .batches = memory.batches,
                                                                           .queue_depth = options.reader.queue_depth,
                                                                           .depth_by_bytes = by_bytes,
                                                                           .tuned = options.tune == tuning::on,
                                                                           .on_device = on_device,
                                                                           .read_bytes = memory.read_bytes});
}

// The most that it may hold before no more come.
std::uint32_t batches_for_consumer(const memory_plan& memory, const loader_options& options, const transfer& by) {
  return by.runs_operations() ? std::min(memory.batches, options.device_batches) : memory.batches;
}

}  // namespace

class loader::pipeline final : public line_events {
 public:
  pipeline(const dataset& samples, loader_options options, std::vector<field> fields, const loader_parts& parts = {})
      : fields_(std::move(fields)),
        options_(with_replaceable_files(checked(std::move(options)))),
        transfer_(make_transfer(options_, parts)),
        run_(samples, fields_, options_, finished_where(options_, fields_, *transfer_)),
        resumption_(run_, options_, fields_),
        span_(parts.only ? resumption_.one_batch(*parts.only) : resumption_.resumed()),
        placed_(find_node_for(options_, run_.dataset(), *transfer_, parts.sysfs_root)),
        memory_available_(find_memory_available()),
        memory_(
            memory_of(run_, options_, memory_available_, resumption_.batches_of(span_),
                      parts.limits ? std::optional(decided_limits{.limits = *parts.limits}) : limits_resumed(options_),
                      placed_.cores_by_default())),
        timeline_(std::make_shared<timeline>(options_.timeline.bytes, memory_.batches, io_threads_of(run_, options_),
                                             memory_.decode_threads)),
        delivered_(std::make_shared<delivery>(
            options_.journal.empty() ? journal() : journal(options_.journal, span_.from.journal_bytes),
            delivery_limits{
                .corrupt = {.corrupt_max = options_.corrupt_max,
                            .unreadable_max = options_.unreadable_max,
                            .epoch_samples = options_.corrupt_max.share < 1 ? run_.epoch_samples() : 0},
                .batches_max = batches_for_consumer(memory_, options_, *transfer_),
                .more_batches = transfer_->runs_operations() ? option_id::device_batches : option_id::prefetch_batches,
                .held_patience = options_.held_patience,
                .long_wait = options_.timeline.on_stall.count() != 0 ? options_.timeline.on_stall
                                                                     : std::chrono::nanoseconds::max()},
            span_.from, timeline_, resumption_.receipts_from(span_.from))),
        windows_(parts.windows),
        arena_(std::make_shared<io::arena>(arena_settings(options_, memory_, placed_))),
        read_pool_(arena_,
                   {.bytes_max = memory_.read_bytes + memory_.kept_bytes, .name = "read buffers", .in_pieces = true}),
        // Faulted in by who writes the rows, one by one: the I/O thread, which leases a whole batch, has reads to look after.
        batch_pool_(arena_, {.bytes_max = memory_.batch_bytes,
                             .name = "batches",
                             .first_touch = true,
                             .in_pieces = true,
                             .pinned_first = transfer_->pins()}),
        io_(with_io_threads(options_.reader, io_threads_of(run_, options_)), arena_, placed_.io_threads()),
        scratch_(memory_.scratch_bytes, memory_.shown.host_bytes_max, memory_.limits.scratch_bytes),
        rows_(run_.dataset(), run_.programs(), *run_.layout(),
              {.seed = options_.seed,
               .digests = options_.digests,
               .names = options_.names,
               .receipts = !options_.receipts.empty()},
              scratch_, memory_.decode_threads, placed_.decode_threads(memory_.decode_threads), io_, posted_, flags_,
              *timeline_),
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
               {.kept_bytes = memory_.kept_bytes, .source_bytes = memory_.source_bytes, .cache = cache_use_.pools},
               *this, *timeline_),
        record_(recorder_of(options_, memory_, io_, transfer_->runs_operations())),
        batches_(memory_.batches, rows_, ending_, *timeline_, record_.get()),
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
                   .batches = batches_,
                   .events = *this,
                   .seen = timeline_->io_thread(0)}),
        depths_(memory_,
                {.queue_depth = options_.reader.queue_depth,
                 .io_threads = io_threads_at_first(run_, options_),
                 .connections = options_.tune == tuning::on ? stages::connections_at_first : 0},
                batch_pool_, io_, reads_, rows_),
        tuner_(options_.tune == tuning::on, depths_, rows_, *timeline_),
        stalls_(options_.timeline, options_.world.rank, *timeline_, delivery_) {
    if (options_.reader.direct == choice::on) reads_.check_first_files();  // before others have been given references
    transfer_->prepare({.batch_bytes_max = memory_.shown.batch_bytes,
                        .made_bytes_max = run_.layout()->made_bytes(),
                        .scratch_bytes_max = run_.layout()->scratch_bytes(),
                        .host_batches = memory_.batches,
                        .failed = [this](std::exception_ptr why) { broken(std::move(why)); },
                        .pinning_done = [this](const io::lease& memory) { batch_pool_.pinning_done(memory); },
                        .name_of = [this](std::uint64_t sample) { return run_.dataset().name(sample); },
                        .host_memory = arena_,
                        .seen = {timeline_, timeline_->device()},
                        .cache = cache_needs_of(run_, options_)});
    if (transfer_->cache() != nullptr) carry_packs(run_, true);
    plan_ = described_plan(run_, memory_, cache_use_, *transfer_,
                           {.io_threads_asked = options_.reader.io_threads,
                            .io_threads = depths_.now().io_threads,
                            .quota = find_cores_quota(),
                            .cores = usable_cores(),
                            .why_no_cache = remote_before_.cache,
                            .device_cache_asked = options_.device_cache != 0});
    delivery_.on_handed_out([this](std::uint64_t now, std::uint64_t batches) {
      if (watch_.handed_out(now, batches) && tuner_.on()) {
        tuner_.see(watch_.verdict_of_last(), watch_.seconds_at(now), now);
      }
      note_queues(now);
    });
    watch_.begin();
    prefetch_.start(io_.executor(0));
  }

  ~pipeline() { stop(); }

  [[nodiscard]] const std::shared_ptr<delivery>& delivered() const noexcept { return delivered_; }
  void begin_next(std::uint64_t call, detail::wait_completion done) {
    if (forked_.in_child()) {  // An operation that was deferred before the fork: next() itself throws.
      return done.complete(std::make_exception_ptr(used_in_child()));
    }
    if (delivery_.begin(call, std::move(done))) {
      refuse_held_later(options_.held_patience, [call, from = delivered_] { from->refuse_if_held_all(call); });
    }
  }
  /// Has a call refused that waits while the consumer holds all batches, if it still does.
  void refuse_held_later(std::chrono::milliseconds patience, std::function<void()> refuse);
  /// For coroutines that have no executor.
  [[nodiscard]] asio::any_io_executor own_executor() {
    std::call_once(own_thread_made_, [this] { own_thread_ = std::make_unique<async::own_thread>("leat-resume"); });
    return own_thread_->executor();
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

  [[nodiscard]] loader_state state() const { return state_at(delivery_.progress()); }
  [[nodiscard]] loader_state state_after(const batch& delivered) const;
  [[nodiscard]] loader_state state_at(const run_progress& place) const {
    loader_state made = resumption_.at(place);
    made.limits = limits_to_save(options_, memory_.limits);
    return made;
  }
  [[nodiscard]] bool finished() const { return options_.epochs != 0 && delivery_.progress().epoch >= options_.epochs; }
  /// By a line of its own: what a batch holds depends on its place alone.
  [[nodiscard]] batch batch_at(std::uint32_t epoch, std::uint64_t index) const;

  [[nodiscard]] asio::any_io_executor executor() { return io_.executor(0); }

  [[nodiscard]] static error used_in_child() {
    return {errc::usage, "this loader was made before fork(): its threads stayed in the parent; make one after fork()"};
  }

  void stop() noexcept;

  void write_timeline(const std::string& path) const;
  [[nodiscard]] const std::shared_ptr<timeline>& seen_by_threads() const noexcept { return timeline_; }
  [[nodiscard]] bool in_child() const noexcept { return forked_.in_child(); }
  [[nodiscard]] std::uint64_t samples() const noexcept { return run_.dataset().size(); }
  [[nodiscard]] std::uint64_t rows() const { return run_.epoch_samples(); }
  [[nodiscard]] const loader_options& options() const noexcept { return options_; }
  [[nodiscard]] std::uint64_t batches_per_epoch() const noexcept { return batches_per_epoch_; }
  [[nodiscard]] const loader_plan& plan() const noexcept { return plan_; }
  [[nodiscard]] const line_watch& seen() const noexcept { return watch_; }
  [[nodiscard]] std::vector<std::string> reads_under_way();
  [[nodiscard]] depth_control& depths() noexcept { return depths_; }
  [[nodiscard]] int record_failure() const noexcept { return record_ != nullptr ? record_->failure() : 0; }
  [[nodiscard]] static pipeline& of(const loader& line) { return line.check_process(); }

 private:
  void note_queues(std::uint64_t now) noexcept;
  void stop_held_timer() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(held_mutex_);
  void finish_record() noexcept;
  /// Connects the sources once the I/O threads know what an epoch reads.
  [[nodiscard]] std::vector<io::connector*> connectors();

  void ready(sample_in_flight& first, std::uint32_t rows, std::size_t loop) noexcept override {
    rows_.ready(first, rows, loop);
  }
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
  run_spec run_;
  const remote_stats remote_before_ = remote_counts(run_.dataset());  // what others have read of the same objects
  const resumption resumption_;
  const span_of_run span_;
  node_placement placed_;
  const memory_available memory_available_;  // when the loader is built: one answer for all who ask
  const memory_plan memory_;
  // These two before the I/O threads, which may fail at once.
  run_flags flags_;
  const std::shared_ptr<timeline> timeline_;   // as the delivery, which notes what the trainer does
  const std::shared_ptr<delivery> delivered_;  // calls may outlive us
  delivery& delivery_ = *delivered_;
  stages::windows windows_;
  const std::shared_ptr<io::arena> arena_;  // the leases share it, and batches may outlive us
  io::lease_pool read_pool_;
  io::lease_pool batch_pool_;
  io::io_threads io_;
  async::posted_functions posted_;  // by the parts that follow
  pixels::scratch_budget scratch_;
  decode_stage rows_;
  hand_over ending_;
  const cache_use cache_use_;
  reader_stage reads_;
  const std::unique_ptr<read_recorder> record_;  // null: nothing is recorded
  batch_table batches_;
  prefetch prefetch_;
  depth_control depths_;
  line_tuner tuner_;
  stall_files stalls_;
  line_watch watch_{{.run = run_,
                     .options = options_,
                     .remote_before = remote_before_,
                     .memory = memory_,
                     .placed = placed_,
                     .transfer = *transfer_,
                     .delivery = delivery_,
                     .windows = windows_,
                     .arena = *arena_,
                     .read_pool = read_pool_,
                     .batch_pool = batch_pool_,
                     .loops = io_,
                     .scratch = scratch_,
                     .rows = rows_,
                     .ending = ending_,
                     .reads = reads_,
                     .prefetch = prefetch_,
                     .stalls = stalls_,
                     .tuner = tuner_}};
  const std::uint64_t batches_per_epoch_ = run_.batches(0);
  std::uint64_t queues_noted_ns_ = 0;  // of the thread that hands out
  loader_plan plan_;

  std::once_flag stopped_;
  mutex held_mutex_;
  // Of the last call that waits while the consumer holds all.
  std::weak_ptr<asio::steady_timer> held_timer_ ABSL_GUARDED_BY(held_mutex_);
  std::once_flag own_thread_made_;
  std::unique_ptr<async::own_thread> own_thread_;  // last: what it resumes may look at all of the above
};

void loader::pipeline::write_timeline(const std::string& path) const {
  if (!timeline_->on()) {
    throw error(errc::usage, str_cat("this loader keeps no timeline; give it ", spelled(option_id::timeline_bytes)),
                option_id::timeline_bytes);
  }
  const std::string text = timeline_->to_json(options_.world.rank);
  std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  std::vector<std::byte> packed;
  if (path.ends_with(".gz")) {
    gzip(bytes, packed);
    bytes = packed;
  }
  if (const int failure = write_whole(path, bytes); failure != 0) {
    throw explain_write(str_cat(path, ": cannot write the timeline"), failure);
  }
}

// On the thread that hands out a batch. What is counted takes a few microseconds, and fast batches come more often.
void loader::pipeline::note_queues(std::uint64_t now) noexcept {
  constexpr std::uint64_t between_ns = 5'000'000;
  if (!timeline_->on() || now - queues_noted_ns_ < between_ns) return;
  queues_noted_ns_ = now;
  const delivery::counters handed = delivery_.count();
  timeline_->note(line_queue::reads, now, reads_.count().in_flight);
  timeline_->note(line_queue::decode, now, rows_.count().pool.queued);
  timeline_->note(line_queue::ready, now, handed.ready);
  timeline_->note(line_queue::out, now, handed.out);
}

loader_state loader::pipeline::state_after(const batch& delivered) const {
  if (delivered.details().layout != run_.layout()) {
    throw error(errc::usage,
                "state_after() was given a batch of another loader; give it one that this loader's next() gave");
  }
  return state_at(delivered.details().after);
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
  alone.receipts.clear();
  alone.record.clear();
  alone.digests = alone.names = true;
  alone.timeline = {};
  alone.tune = tuning::off;
  alone.device = host;
  alone.pinned = false;
  alone.device_cache = 0;
  alone.decode_on = decode_on::host;
  alone.numa = numa::off;
  loader_parts parts;
  parts.only = {epoch, index};
  parts.limits = memory_.limits;
  pipeline line(run_.samples(), std::move(alone), fields_, parts);
  return *line.next_blocking();
}

void loader::pipeline::refuse_held_later(std::chrono::milliseconds patience, std::function<void()> refuse) {
  const mutex_lock lock(held_mutex_);
  stop_held_timer();
  if (flags_.stopping()) return;  // stop() comes from any thread, and has looked for a timer already.
  try {
    const auto timer = std::make_shared<asio::steady_timer>(own_executor(), patience);
    held_timer_ = timer;
    timer->async_wait([timer, refuse = std::move(refuse)](const boost::system::error_code& aborted) {
      if (!aborted) refuse();
    });
  } catch (const error&) {  // No thread can be had: then nobody is told.
  }
}

void loader::pipeline::stop_held_timer() noexcept {
  if (const auto timer = held_timer_.lock()) asio::post(timer->get_executor(), [timer] { timer->cancel(); });
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

void loader::pipeline::stop() noexcept {
  if (forked_.in_child()) return;  // The threads that would have to end are not here.
  std::call_once(stopped_, [this] {
    flags_.stop();
    stalls_.stop();
    scratch_.stop();
    delivery_.close(std::make_exception_ptr(error(errc::cancelled, "the loader was stopped")));
    {
      const mutex_lock lock(held_mutex_);
      stop_held_timer();
    }
    // The line first, so that nothing more is asked for; then what was.
    posted_.post(io_.executor(0), [this] {
      prefetch_.cancel();
      reads_.cancel();
    });
    prefetch_.wait();
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
    if (record_ != nullptr) finish_record();
  });
}

// Where that fails there is no file: nothing more is handed out that could say so.
void loader::pipeline::finish_record() noexcept {
  recorded_totals totals;
  for (const io::io_thread_counters& each : io_.count_threads()) {
    totals.io_awake_ns += std::max(each.awake_ns, each.cpu_ns);
  }
  const io::io_counters io = io_.count();
  if (io.reads != 0) totals.reads_at_a_time = io_.depth_of(io.bytes_read / io.reads);
  const decode_stage::counters made = rows_.count();
  totals.decode_busy_ns = made.pool.busy_ns;
  for (const async::thread_pool::thread_counters& each : rows_.count_threads()) totals.decode_cpu_ns += each.cpu_ns;
  totals.rows_made = made.samples;
  record_->finish(totals);
}

std::vector<std::string> loader::pipeline::reads_under_way() {
  if (forked_.in_child()) return {};
  return batches_.while_there([this] { return reads_.under_way(); }, std::vector<std::string>());
}

// --- the public face ------------------------------------------------------------------------------------------------

loader::loader(std::vector<field>&& fields, dataset&& samples, loader_options&& options)
    : pipeline_(std::make_unique<pipeline>(samples, std::move(options), fields)) {}

loader::loader(std::unique_ptr<pipeline> line) noexcept : pipeline_(std::move(line)) {}

loader stages::make_loader(dataset samples, loader_options options, std::vector<field> fields, loader_parts parts) {
  return loader(std::make_unique<loader::pipeline>(samples, std::move(options), fields, parts));
}

stages::concurrency_limits stages::depths_of(const loader& line) { return loader::pipeline::of(line).depths().now(); }
stages::concurrency_limits stages::depths_max(const loader& line) { return loader::pipeline::of(line).depths().most(); }
int stages::record_failure(const loader& line) { return loader::pipeline::of(line).record_failure(); }
void stages::set_depths(loader& line, const concurrency_limits& depths) {
  loader::pipeline::of(line).depths().set(depths);
}

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

operation<loader::next_call> loader::next() { return operation(next_call(check_process())); }
operation<loader::wait_call> loader::wait() { return operation(wait_call(check_process())); }
operation<loader::next_of_call> loader::next_of(const std::vector<loader*>& loaders) {
  if (loaders.empty()) throw error(errc::usage, "next_of() was given no loader");
  std::vector<pipeline*> lines;
  for (const loader* one : loaders) lines.push_back(&one->check_process());
  return operation(next_of_call(std::move(lines)));
}

loader::next_call::turn loader::next_call::new_turn() const { return {of_->delivered(), of_->delivered()->new_call()}; }
void loader::next_call::begin(detail::turn_key key, detail::wait_completion done) const {
  of_->begin_next(key.number, std::move(done));
}
bool loader::next_call::begin_if_ready(detail::turn_key key) const {
  return !of_->in_child() && of_->delivered()->begin_if_ready(key.number);
}
bool loader::next_call::has_threads() const noexcept { return !of_->in_child(); }
asio::any_io_executor loader::next_call::executor() const { return of_->executor(); }
asio::any_io_executor loader::next_call::own_thread() const { return of_->own_executor(); }
std::optional<batch> loader::next_call::turn::take(std::exception_ptr& failure) {
  const std::uint64_t number = key().number;
  delivery::taken now = static_cast<delivery&>(*leave()).take(number);
  failure = std::move(now.failure);
  return std::move(now.got);
}

loader::next_of_call::turn loader::next_of_call::new_turn() const {
  std::vector<std::shared_ptr<delivery>> all;
  for (const pipeline* line : of_) all.push_back(line->delivered());
  return {std::make_shared<stages::next_of>(std::move(all)), 0};
}
void loader::next_of_call::begin(detail::turn_key key, detail::wait_completion done) const {
  if (!has_threads()) return done.complete(std::make_exception_ptr(pipeline::used_in_child()));
  std::vector<asio::any_io_executor> executors;
  for (pipeline* line : of_) executors.push_back(line->executor());
  auto& call = static_cast<stages::next_of&>(*key.of);
  const std::weak_ptr<stages::next_of> later = call.weak_from_this();
  pipeline& first = *of_.front();
  // That of the loader which has most.
  std::chrono::milliseconds patience{0};
  for (const pipeline* line : of_) patience = std::max(patience, line->options().held_patience);
  // Once it has begun, its caller may have gone on, and this object with it.
  if (!call.begin(std::move(done), executors)) return;
  first.refuse_held_later(patience, [later] {
    if (const std::shared_ptr<stages::next_of> here = later.lock()) here->refuse_if_held_all();
  });
}
bool loader::next_of_call::begin_if_ready(detail::turn_key key) const {
  return has_threads() && static_cast<stages::next_of&>(*key.of).begin_if_ready();
}
bool loader::next_of_call::has_threads() const noexcept {
  return std::none_of(of_.begin(), of_.end(), [](const pipeline* line) { return line->in_child(); });
}
asio::any_io_executor loader::next_of_call::executor() const { return of_.front()->executor(); }
asio::any_io_executor loader::next_of_call::own_thread() const { return of_.front()->own_executor(); }
next_of_result loader::next_of_call::turn::take(std::exception_ptr& failure) {
  stages::next_of::taken now = static_cast<stages::next_of&>(*leave()).take();
  failure = std::move(now.from.failure);
  return {.index = now.index, .got = std::move(now.from.got)};
}

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
loader_stats loader::stats() const { return pipeline_->seen().stats(); }
verdict loader::verdict_of_run() const { return pipeline_->seen().verdict_of_run(); }
std::vector<loader_window> loader::windows() const { return pipeline_->seen().windows(); }
void loader::write_timeline(const std::string& path) const { check_process().write_timeline(path); }
loader::marked loader::mark(std::string_view name) const {
  marked begun;
  const std::shared_ptr<timeline>& in = check_process().seen_by_threads();
  if (!in->on()) return begun;
  begun.name_ = in->marks()->number_of(name);
  begun.in_ = in;
  begun.begin_ns_ = now_ns();
  return begun;
}
void loader::marked::note() noexcept {
  static_cast<const timeline&>(*static_cast<timeline*>(in_.get())).marks()->add(name_, begin_ns_, now_ns());
  in_.reset();
}
std::vector<std::string> loader::reads_under_way() const { return pipeline_->reads_under_way(); }
void loader::stop() noexcept {
  if (pipeline_ != nullptr) pipeline_->stop();
}

}  // namespace leat

#include "stages/run/hand_over.hpp"

#include "base/clock.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "stages/observe/probes.hpp"
#include "stages/run/batch_table.hpp"
#include "stages/run/collate.hpp"
#include "stages/run/finish.hpp"
#include "stages/run/substitution.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

// A look at a file is a hop to another thread and back: of small batches, which take some 100 us, as much as all the rest.
constexpr std::uint64_t between_checks_ns = 1'000'000;

// Where those pieces lie whose samples are not corrupt. One that is keeps its number: what follows it is not numbered anew.
void note_pieces(const batch_in_flight& batch, batch::state& to) {
  const batch_plan& plan = batch.plan;
  to.packed_rows = plan.packed_rows;
  for (const batch_layout::output_place& place : to.layout->outputs()) {
    if (!place.spec.is_packed()) continue;
    const std::size_t element = size_bytes(place.spec.type);
    std::size_t row_before = 0;
    std::uint32_t document = 0;
    for (std::uint32_t row = 0; row < batch.rows(); ++row, ++document) {
      const batch_plan::ragged_row& piece = plan.ragged[row * plan.buffers.size() + place.ragged_index];
      const std::size_t begin = piece.offset / element;
      if (std::exchange(row_before, begin / place.spec.packed_tokens) != row_before) document = 0;
      if (batch.samples[row].corrupt) continue;
      to.pieces.push_back({.begin = static_cast<std::uint32_t>(begin),
                           .count = static_cast<std::uint32_t>(piece.capacity / element),
                           .document = document});
    }
    return;  // Those of the others lie there too.
  }
}

// What is known before the batch is handed out.
recorded_batch recorded_of(const batch_in_flight& batch) {
  const recorded_work& work = batch.recorded;
  return {.number = batch.sending.number,
          .index = batch.plan.index,
          .begun_ns = work.begun_ns,
          .made_ns = work.made_ns,
          .decode_ns = work.decode_ns.load(std::memory_order_relaxed),
          .decode_us2 = work.decode_us2.load(std::memory_order_relaxed),
          .expand_ns = work.expand_ns.load(std::memory_order_relaxed),
          .epoch = batch.plan.epoch,
          .timed = static_cast<std::uint32_t>(work.timed.load(std::memory_order_relaxed)),
          .rows = batch.rows(),
          .decoded = static_cast<std::uint32_t>(work.decoded.load(std::memory_order_relaxed))};
}

}  // namespace

namespace asio = boost::asio;

hand_over::hand_over(const parts& given)
    : run_(given.run),
      options_(given.options),
      transfer_(given.transfer),
      delivery_(given.delivery),
      flags_(given.flags),
      loops_(given.loops),
      posted_(given.posted),
      events_(given.events),
      mixer_(*run_.layout(), run_.programs(), options_.mix, options_.seed, options_.digests, given.decode_threads),
      finishes_(std::any_of(run_.programs().begin(), run_.programs().end(),
                            [](const auto& program) { return program->finishes(); })) {}

void hand_over::begin(reader_stage& reads, decode_stage& rows, batch_table& batches, async::scope& children) noexcept {
  reads_ = &reads;
  rows_ = &rows;
  batches_ = &batches;
  children_ = &children;
}

void hand_over::rows_made(batch_in_flight& batch) noexcept {
  try {
    if (flags_.stopping()) return;
    const std::uint64_t now = noted_now(batch.track);
    if (batch.record != nullptr) batch.recorded.made_ns = now_ns();
    batch.note(activity::rows, std::exchange(batch.rows_since_ns, now), now);
    batch.staleness.at = check_due(batch);
    if (batch.staleness.at != datasets::staleness_check::none) return rows_->post(batch.staleness);
    settle(batch);
  } catch (...) {
    events_.broken(std::current_exception());
  }
}

void hand_over::rows_made(std::span<batch_in_flight* const> batches) noexcept {
  tells_later_ = batches.size() > 1;
  std::uint64_t told_ns = tells_later_ ? now_ns() : 0;
  for (batch_in_flight* const each : batches) {
    const std::uint64_t begin_ns = tells_later_ ? now_ns() : 0;
    rows_made(*each);
    if (!tells_later_) continue;
    const std::uint64_t now = now_ns();
    if (now - told_ns + (now - begin_ns) > untold_ns_max) {
      told_ns = now;
      delivery_.tell();
    }
  }
  if (std::exchange(tells_later_, false)) delivery_.tell();
}

// Rows of substitutes are new ones: it is asked again.
datasets::staleness_check hand_over::check_due(const batch_in_flight& batch) {
  const datasets::staleness_check wanted = run_.dataset().staleness_checks();
  if (wanted == datasets::staleness_check::none) return wanted;
  const bool is_last = batch.plan.index + 1 == run_.batches(batch.plan.epoch);
  if (is_last) return datasets::staleness_check::epoch;
  if (wanted == datasets::staleness_check::every_batch) return datasets::staleness_check::batch;
  if (wanted != datasets::staleness_check::batch) return datasets::staleness_check::none;
  // Why a sample is corrupt has to be known at once: its file may be another one.
  const bool has_corrupt = std::any_of(batch.samples.begin(), batch.samples.begin() + batch.rows(),
                                       [](const sample_in_flight& sample) { return sample.corrupt; });
  if (has_corrupt) return wanted;
  const std::uint64_t now = now_ns();
  if (now - checked_at_ns_.load(std::memory_order_relaxed) < between_checks_ns) return datasets::staleness_check::none;
  checked_at_ns_.store(now, std::memory_order_relaxed);
  return wanted;
}

void hand_over::check_staleness(batch_in_flight& batch) noexcept {
  if (flags_.stopping()) return;
  try {
    if (!flags_.is_skipped(batch.plan.epoch)) batch.staleness.changed = run_.dataset().changed(batch.staleness.at);
  } catch (...) {
    return events_.broken(std::current_exception());
  }
  posted_.post(loops_.executor(0), [this, &batch] { judge_staleness(batch); });
}

void hand_over::judge_staleness(batch_in_flight& batch) noexcept {
  try {
    if (const auto what = std::exchange(batch.staleness.changed, std::nullopt)) {
      end_run(batch, std::make_exception_ptr(error(errc::changed, "dataset changed: " + *what)));
    } else {
      settle(batch);
    }
  } catch (...) {
    events_.broken(std::current_exception());
  }
}

// What the samples of the batch that failed mean for it.
void hand_over::settle(batch_in_flight& batch) {
  if (flags_.stopping()) return;
  if (flags_.is_skipped(batch.plan.epoch)) return drop(batch);
  batch.outgoing = {};
  const auto end = batch.samples.begin() + batch.rows();
  const auto lacks_bytes = [](const batch_in_flight::row_of_device& row) { return row.lacks_bytes; };
  if (std::any_of(batch.on_device.begin(), batch.on_device.end(), lacks_bytes)) {
    return children_->spawn(read_lacking(batch));
  }
  if (std::none_of(batch.samples.begin(), end, [](const sample_in_flight& each) { return each.trouble != nullptr; })) {
    return collate_and_send(batch);
  }
  const auto threw =
      std::find_if(batch.samples.begin(), end, [](const sample_in_flight& sample) { return sample.threw(); });
  if (threw != end) return end_run(batch, threw->trouble->failure);
  // Under any policy: a row that is left out, or is another's, since the system had no memory would depend on the
  // moment.
  const auto refused =
      std::find_if(batch.samples.begin(), end, [](const sample_in_flight& sample) { return sample.out_of_memory(); });
  if (refused != end) {
    return end_run(batch, std::make_exception_ptr(error(errc::limit, refused->trouble->reason)));
  }
  if (options_.on_corrupt == corrupt_policy::substitute &&
      std::any_of(batch.samples.begin(), end, [](const sample_in_flight& sample) { return sample.corrupt; })) {
    return children_->spawn(read_substitutes(batch));
  }
  if (options_.on_corrupt == corrupt_policy::raise) {
    const auto first =
        std::find_if(batch.samples.begin(), end, [](const sample_in_flight& sample) { return sample.quarantined(); });
    if (first != end) {
      const journal_entry what = describe(batch, *first, "raised");
      // A failed read says itself what to do, and leaving its sample out is not that.
      const std::string remedy =
          str_cat("; ", spelled(option_id::on_corrupt, "skip"), " or substitute goes on without it");
      if (what.read_failure != 0) return fail(batch, errc::corrupt, str_cat("cannot read sample ", sample_text(what)));
      if (what.bytes_needed != 0) return fail(batch, errc::limit, str_cat("sample ", sample_text(what), remedy));
      return fail(batch, errc::corrupt, str_cat("corrupt sample ", sample_text(what), remedy));
    }
  }
  note_quarantined(batch);
  collate_and_send(batch);
}

// rows_made() is called again when all of them are there.
asio::awaitable<void> hand_over::read_substitutes(batch_in_flight& batch) {
  std::vector<std::uint32_t> rows;
  if (const auto refusal = draw_substitutes(batch, run_, options_.seed, rows)) {
    fail(batch, errc::corrupt, *refusal);
    co_return;
  }
  batch.samples_missing.store(static_cast<std::uint32_t>(rows.size()), std::memory_order_relaxed);
  co_await reads_->issue(batch, rows, *children_);
}

// Likewise.
asio::awaitable<void> hand_over::read_lacking(batch_in_flight& batch) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t row = 0; row < batch.rows(); ++row) {
    if (!batch.on_device[row].lacks_bytes) continue;
    run_.planner().plan_again(batch.plan, row);
    batch.take_again(row);
    rows.push_back(row);
  }
  batch.samples_missing.store(static_cast<std::uint32_t>(rows.size()), std::memory_order_relaxed);
  co_await reads_->issue(batch, rows, *children_);
}

void hand_over::note_quarantined(batch_in_flight& batch) {
  delivery_item& item = batch.outgoing;
  const std::string_view action = options_.on_corrupt == corrupt_policy::skip ? "skipped" : "substituted";
  for (std::uint32_t row = 0; row < batch.rows(); ++row) {
    const sample_in_flight& sample = batch.samples[row];
    if (!sample.quarantined()) continue;
    ++item.quarantined;
    if (sample.trouble->substitute) ++item.substituted;
    item.journal.push_back(describe(batch, sample, action));
  }
}

void hand_over::collate_and_send(batch_in_flight& batch) {
  delivery_item& item = batch.outgoing;
  item.epoch = batch.plan.epoch;
  item.index = batch.plan.index;
  const std::uint64_t begin_ns = now_ns();
  item.finished = collate(batch, run_.layout(), options_.digests, options_.names);
  item.finished->returns_to = transfer_;
  if (run_.packing() != nullptr) note_pieces(batch, *item.finished);
  const bool has_picks = mixer_.on() || options_.names;
  const bool has_receipts = !options_.receipts.empty();
  for (std::uint32_t row = 0; row < batch.rows() && (has_picks || has_receipts); ++row) {
    if (batch.samples[row].corrupt) continue;
    if (has_picks) item.finished->picks.push_back(batch.samples[row].pick());
    if (has_receipts) item.receipts.push_back(batch.receipts[row]);
  }
  if (transfer_->cache() != nullptr) {
    batch_for_cache& told = batch.for_cache;
    told.held.clear();
    for (std::uint32_t row = 0; row < batch.rows(); ++row) {
      if (!batch.samples[row].corrupt) told.held.push_back(batch.samples[row].held());
    }
    told.digests = item.finished->row_digests;
    told.geometries = item.finished->geometries;
  }
  item.planned = batch.rows();
  item.padded = batch.plan.padded;
  item.samples = batch.rows() - item.quarantined;
  if (const dealing* const deals = run_.deals()) {
    slowest_rank_cost_.fetch_add(deals->slowest(item.epoch, item.index), std::memory_order_relaxed);
    dealt_batches_.fetch_add(1, std::memory_order_relaxed);
  }
  const std::uint64_t end_ns = now_ns();
  collate_times_.record(end_ns - begin_ns);
  batch.note(activity::collate, begin_ns, end_ns);
  if (!mixer_.on() && !finishes_) return send(batch);
  rows_->post(batch.finishing);
}

void hand_over::finish(batch_in_flight& batch, std::size_t thread) noexcept {
  if (flags_.stopping()) return;
  const std::uint64_t begin_ns = noted_now(batch.track);
  try {
    if (finishes_) finish_outputs(*batch.outgoing.finished, run_.programs());
  } catch (...) {
    batch.finishing.failure = std::current_exception();
  }
  try {
    if (mixer_.on() && !batch.finishing.failure) {
      mixer_.mix(*batch.outgoing.finished, thread, flags_.stopping_flag());
    }
  } catch (...) {
    return events_.broken(std::current_exception());
  }
  batch.note(activity::finish, begin_ns, noted_now(batch.track));
  posted_.post(loops_.executor(0), [this, &batch] { finished(batch); });
}

void hand_over::finished(batch_in_flight& batch) noexcept {
  if (std::exception_ptr why = std::exchange(batch.finishing.failure, nullptr)) {
    end_run(batch, std::move(why));
  } else {
    send(batch);
  }
}

void hand_over::send(batch_in_flight& batch) noexcept {
  if (flags_.stopping()) return;
  delivery_item& item = batch.outgoing;
  item.bytes = output_bytes(*item.finished);
  for (const batch::state::ragged& rows : item.finished->raggeds) {
    ragged_bytes_.fetch_add(rows.own_bytes, std::memory_order_relaxed);
    ragged_padding_bytes_.fetch_add(rows.room_bytes - rows.own_bytes, std::memory_order_relaxed);
  }
  if (batch.record != nullptr) {
    item.record = batch.record;
    item.recorded = recorded_of(batch);
  }
  batch.sending.memory = &item.finished->memory;
  batch.sending.bytes = bytes_used(*item.finished);
  batch.sending.rows = item.finished->rows;
  batch.sending.samples = item.finished->ids;
  batch.sending.timing = timing_of(batch.plan.index);
  batch.sending.epoch = batch.plan.epoch;
  batch.sending.index = batch.plan.index;
  batch.sending.steps = run_.layout()->steps();
  batch.sending.for_cache = transfer_->cache() != nullptr ? &batch.for_cache : nullptr;
  collated_.fetch_add(1, std::memory_order_relaxed);
  collated_bytes_.fetch_add(batch.sending.bytes, std::memory_order_relaxed);
  give_to_transfer(batch);
}

// Corrupt samples end the run here, in the batch's turn: it is not handed out, and its other rows are neither delivered
// nor lost.
void hand_over::fail(batch_in_flight& batch, errc kind, const std::string& reason) {
  delivery_item item;
  for (std::uint32_t row = 0; row < batch.rows(); ++row) {
    const sample_in_flight& sample = batch.samples[row];
    if (!sample.quarantined()) continue;
    ++item.quarantined;
    item.journal.push_back(describe(batch, sample, "raised"));
    item.journal.back().substitute.reset();
  }
  item.planned = item.quarantined;
  end_run(batch, std::make_exception_ptr(error(kind, reason)), std::move(item));
}

void hand_over::end_run(batch_in_flight& batch, std::exception_ptr why, delivery_item item) {
  item.epoch = batch.plan.epoch;
  item.failure = std::move(why);
  pass(batch, std::move(item));
}

void hand_over::drop(batch_in_flight& batch) {
  delivery_item item;
  item.epoch = batch.plan.epoch;
  pass(batch, std::move(item));
}

// Without a batch; others wait for its turn at the transfer to pass.
void hand_over::pass(batch_in_flight& batch, delivery_item item) noexcept {
  batch.outgoing = std::move(item);
  batch.memory = {};
  batch.sending.memory = nullptr;
  batch.sending.bytes = 0;
  batch.sending.rows = 0;
  batch.sending.samples = {};
  batch.sending.timing = batch_timing::none;
  batch.sending.steps = {};
  batch.sending.for_cache = nullptr;
  give_to_transfer(batch);
}

void hand_over::give_to_transfer(batch_in_flight& batch) noexcept {
  batch.sending.failure = nullptr;
  batch.sending.handed_over = &hand_over::sent;
  batch.sent_ns = now_ns();
  transfer_->send(batch.sending);
}

// The event of the copy: on any thread, out of order.
void hand_over::sent(transfer_operation& operation) noexcept {
  batch_in_flight& batch = *static_cast<batch_in_flight::sending_operation&>(operation).owner;
  hand_over& self = *batch.ended_by;
  if (batch.outgoing.finished != nullptr) {
    batch.outgoing.finished->on_device = std::move(operation.on_device);
    self.count_transfer(batch);
  }
  const std::uint64_t sequence = batch.sequence;
  delivery_item item = std::move(batch.outgoing);
  if (operation.failure != nullptr && item.failure == nullptr) {
    item = {};
    item.epoch = batch.plan.epoch;
    item.failure = operation.failure;
  }
  // The batch object is retired on the I/O thread; after the put, the consumer may destroy the loader.
  self.posted_.post(self.loops_.executor(0), [&self, &batch] { self.batches_->retire(batch); });
  const bool tells_later = self.loops_.executor(0).running_in_this_thread() && self.tells_later_;
  if (tells_later) {
    self.delivery_.put_untold(sequence, std::move(item));
  } else {
    self.delivery_.put(sequence, std::move(item));
  }
}

// One batch after the other: what comes while another is under way has its turn when that has ended.
void hand_over::count_transfer(const batch_in_flight& batch) noexcept {
  const std::uint64_t now = now_ns();
  const std::uint64_t before = transfer_ended_ns_.exchange(now, std::memory_order_relaxed);
  transfer_times_.record(now - std::min(now, std::max(batch.sent_ns, before)));
  batch.note(activity::transfer, batch.sent_ns, now);
  probe::batch_ready(batch.plan.epoch, batch.plan.index, batch.rows());
  transferred_rows_.fetch_add(batch.outgoing.samples, std::memory_order_relaxed);
  transferred_.fetch_add(1, std::memory_order_relaxed);
}

journal_entry hand_over::describe(const batch_in_flight& batch, const sample_in_flight& sample,
                                  std::string_view action) {
  journal_entry entry{.epoch = batch.plan.epoch,
                      .batch = batch.plan.index,
                      .sample = sample.planned().sample,
                      .name = sample.trouble->planned_name,
                      .source = sample.trouble->planned_source,
                      .offset = sample.trouble->planned_offset,
                      .reason = sample.trouble->planned_reason,
                      .kind = sample.trouble->planned_kind,
                      .bytes_needed = sample.trouble->planned_bytes_needed,
                      .field = sample.trouble->planned_field_at_fault,
                      .read_failure = sample.trouble->planned_read_failure,
                      .unreadable = sample.trouble->planned_unreadable,
                      .action = action,
                      .substitute = std::nullopt};
  if (sample.trouble->substitute) entry.substitute = sample.trouble->substitute->sample;
  return entry;
}

hand_over::counters hand_over::count() const noexcept {
  return {.collated = collated_.load(std::memory_order_relaxed),
          .collated_bytes = collated_bytes_.load(std::memory_order_relaxed),
          .transferred = transferred_.load(std::memory_order_relaxed),
          .transferred_rows = transferred_rows_.load(std::memory_order_relaxed),
          .transfer_ns = transfer_times_.sum_ns(),
          .ragged_bytes = ragged_bytes_.load(std::memory_order_relaxed),
          .ragged_padding_bytes = ragged_padding_bytes_.load(std::memory_order_relaxed),
          .dealt_batches = dealt_batches_.load(std::memory_order_relaxed),
          .slowest_rank_cost = slowest_rank_cost_.load(std::memory_order_relaxed)};
}

void staleness_job::run(async::worker_context&) noexcept { owner->ended_by->check_staleness(*owner); }

void finish_job::run(async::worker_context& worker) noexcept { owner->ended_by->finish(*owner, worker.index); }

}  // namespace leat::stages

#include "stages/run/prefetch.hpp"

#include "async/turn.hpp"
#include "base/text.hpp"
#include "stages/observe/probes.hpp"
#include "stages/plan/rows_that_stay.hpp"

#include <leat/error.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <exception>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace leat::stages {

namespace asio = boost::asio;

namespace {

error uneven(std::uint32_t epoch, std::uint64_t batches, std::uint64_t batches_of_first) {
  return {errc::usage, str_cat("the sampler gives ", batches, " batches for epoch ", epoch, ", and ", batches_of_first,
                               " for the first one; an order has batches in every epoch, or in none")};
}

// A run without an end cannot be asked about each.
void check_empty(const run_spec& run, std::uint32_t epochs) {
  constexpr std::uint32_t asked_max = 1000;
  const std::uint32_t asked = epochs == 0 ? asked_max : std::min(epochs, asked_max);
  for (std::uint32_t epoch = 1; epoch < asked; ++epoch) {
    if (const std::uint64_t count = run.batches(epoch); count != 0) throw uneven(epoch, count, 0);
  }
}

}  // namespace

void prefetch::start(const asio::any_io_executor& first) {
  finished_ = asio::co_spawn(first, run(), asio::bind_cancellation_slot(stop_signal_.slot(), asio::use_future));
}

asio::awaitable<void> prefetch::run() {
  try {
    co_await async::with_scope([this](async::scope& children) { return run_in(children); });
  } catch (const boost::system::system_error&) {
    if (!line_.flags.stopping()) line_.events.broken(std::current_exception());
  } catch (...) {
    line_.events.broken(std::current_exception());
  }
}

asio::awaitable<void> prefetch::run_in(async::scope& children) {
  const auto& [run, options, span, memory, flags, batch_pool, transfer, delivery, reads, rows, ending, batches, events,
               seen] = line_;
  ending.begin(reads, rows, batches, children);
  constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();
  if (run.batches(0) == 0) {
    // Every epoch is as empty as the first: there is nothing to run ahead with, only ends to be counted as they are seen.
    check_empty(run, options.epochs);
    const std::uint32_t gone = std::min(span.from.epoch, options.epochs);
    delivery.end(sequence_, options.epochs != 0 ? options.epochs - gone : endless);
    co_return;
  }
  for (std::uint32_t epoch = span.from.epoch; options.epochs == 0 || epoch < options.epochs; ++epoch) {
    const std::uint64_t count = run.batches(epoch);
    if (count == 0) throw uneven(epoch, 0, run.batches(0));
    const std::uint64_t first = epoch == span.from.epoch ? span.from.batch : 0;
    for (std::uint64_t index = first; index < count && !flags.is_skipped(epoch); ++index) {
      batch_in_flight* free = batches.try_take();
      if (free == nullptr) {
        const staying here(waiting_);
        free = co_await batches.take();
      }
      batch_in_flight& batch = *free;
      if (flags.is_skipped(epoch)) {
        batches.retire(batch);
        break;
      }
      batch.sequence = sequence_++;
      batch.loop = line_.reads.take_loop(batch.sequence);
      batch.plan.epoch = epoch;
      batch.plan.index = index;
      batch.sending.number = sent_++;
      if (ahead_.is_wanted()) {
        co_await ahead_.go_on({.epoch = epoch, .batch = index, .sequence = batch.sequence});
      }
      const bool started = co_await start(batch, children);
      if (started && sent_ == span.batches) delivery.end(sequence_);
      if (!started || sent_ == span.batches) {
        co_await batches.all_retired();
        co_return;
      }
    }
    delivery_item end;
    end.epoch = epoch;
    end.end_of_epoch = true;
    delivery.put(sequence_++, std::move(end));
  }
  delivery.end(sequence_);
  // Substitutes may still have to be read: the scope stays open until the last batch was handed over.
  co_await batches.all_retired();
}

// False where the batch cannot be, and ends the run in its turn.
asio::awaitable<bool> prefetch::start(batch_in_flight& batch, async::scope& children) {
  batch.rows_since_ns = noted_now(line_.seen);
  if (!choose_rows(batch)) co_return false;
  batch.note(line_.seen, activity::plan, batch.rows_since_ns, noted_now(line_.seen));
  probe::batch_planned(batch.plan.epoch, batch.plan.index, batch.rows());
  if (!try_lease_memory(batch)) co_await lease_memory(batch);
  if (line_.flags.is_skipped(batch.plan.epoch)) {  // while this waited for it
    line_.ending.drop(batch);
    co_return true;
  }
  // Nothing to do where the decoders touch the pages first, which they do unless huge pages are insisted on.
  while (line_.batch_pool.populate_next(batch.memory)) {
    if (line_.options.reader.huge_pages == choice::on) co_await async::next_turn();
  }

  // Some rows at a time: the object of a read that has ended serves a later row, and the loop has a turn in between.
  const bool in_steps = line_.run.planner().in_steps();
  std::vector<std::uint32_t> rows;
  for (std::uint32_t first = 0; first < batch.rows(); first += planner::rows_at_once) {
    if (first != 0) co_await async::next_turn();
    rows.resize(std::min(batch.rows() - first, planner::rows_at_once));
    std::iota(rows.begin(), rows.end(), first);
    if (in_steps) plan_rows(batch, first, first + static_cast<std::uint32_t>(rows.size()));
    co_await line_.reads.issue(batch, rows, children);
  }
  // Of a rank that has none of it: no row will say that it was the last.
  if (batch.rows() == 0) line_.ending.rows_made(batch);
  co_return true;
}

bool prefetch::choose_rows(batch_in_flight& batch) {
  try {
    line_.run.pick_rows(batch.plan);
    batch.plan.padded = line_.run.padded(batch.plan.epoch, batch.plan.index);
  } catch (...) {  // The sampler may be the user's own.
    line_.ending.end_run(batch, std::current_exception());
    return false;
  }
  line_.run.planner().begin(batch.plan);
  batch.begin();
  find_held(batch);
  if (!line_.run.planner().in_steps()) plan_rows(batch, 0, batch.rows());
  batch.geometries.resize(batch.rows() * line_.run.layout()->picture_count());
  if (line_.options.names) batch.names.resize(batch.rows());
  if (line_.options.digests) batch.row_digests.resize(batch.rows());
  if (!line_.options.receipts.empty()) batch.receipts.resize(batch.rows());
  batch.samples_missing.store(batch.rows(), std::memory_order_relaxed);

  if (batch.plan.memory_bytes > batch_bytes()) {
    line_.ending.end_run(
        batch, std::make_exception_ptr(
                   error(errc::usage, str_cat("batch ", batch.plan.index, " of epoch ", batch.plan.epoch, " takes ",
                                              batch.plan.memory_bytes, " bytes where ", batch_bytes(),
                                              " are planned for each: the sampler gives a sample twice, and its "
                                              "repeats() says that none comes twice"))));
    return false;
  }
  return true;
}

// Rows that the device has: from here on nothing asks for their bytes.
void prefetch::find_held(batch_in_flight& batch) {
  const device_cache* const cache = line_.transfer.cache();
  if (cache == nullptr) return;
  // Of packs that will not stay no more is read than a crop needs.
  if (cache->is_full() && !std::exchange(cache_was_full_, true)) carry_packs(line_.run, false);
  cache->find(batch.plan.picks, held_);
  batch.plan.held.assign(held_.size(), false);
  batch.on_device.resize(held_.size());
  for (std::size_t row = 0; row < held_.size(); ++row) {
    batch.on_device[row] = {.held = held_[row]};
    batch.plan.held[row] = held_[row] != nullptr;
  }
}

// Batch leases are taken in batch order, so that a later batch cannot starve an earlier one. Each is its share of the batch memory
// and not less: else batches smaller than the largest would run further ahead than prefetch_batches.
bool prefetch::try_lease_memory(batch_in_flight& batch) {
  line_.transfer.collect();
  std::optional<io::lease> memory = line_.batch_pool.try_lease(batch_bytes());
  if (memory) batch.memory = std::move(*memory);
  return memory.has_value();
}

asio::awaitable<void> prefetch::lease_memory(batch_in_flight& batch) {
  const staying here(waiting_);
  line_.transfer.starve(true);
  batch.memory = co_await line_.batch_pool.async_lease(batch_bytes(), asio::use_awaitable);
  line_.transfer.starve(false);
}

void prefetch::plan_rows(batch_in_flight& batch, std::uint32_t first, std::uint32_t end) {
  line_.run.planner().plan_rows(batch.plan, first, end);
  batch.take_rows(first, end);
}

}  // namespace leat::stages

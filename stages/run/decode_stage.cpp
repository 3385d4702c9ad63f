#include "stages/run/decode_stage.hpp"

#include "base/clock.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "stages/observe/probes.hpp"
#include "stages/run/hand_over.hpp"
#include "stages/run/read.hpp"

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

namespace leat::stages {

decode_stage::decode_stage(const datasets::dataset_model& dataset,
                           std::span<const std::unique_ptr<field_program>> programs, const batch_layout& layout,
                           const decode_settings& settings, pixels::scratch_budget& budget, std::uint32_t threads,
                           core_binding* cores, io::io_threads& loops, async::posted_functions& posted,
                           const run_flags& flags, const timeline& seen)
    : placement_(dataset, programs, settings.digests || settings.names),
      threads_(threads),
      loops_(loops),
      posted_(posted),
      flags_(flags),
      expander_(dataset, programs, layout, settings.seed),
      decoder_(dataset, programs, layout, settings, budget,
               threads + (placement_.io_threads_write() ? loops.size() : 0)),
      turns_(loops.size()),
      tracks_(threads),
      decoders_({.thread_count = threads,
                 .name = "leat-decode",
                 .what = "decode thread",
                 .remedy = str_cat("or give fewer ", spelled(option_id::decode_threads)),
                 .cores = cores}) {
  for (std::size_t loop = 0; loop < turns_.size(); ++loop) {
    turns_[loop].loop = loop;
    turns_[loop].track = seen.io_thread(loop);
  }
  for (std::size_t thread = 0; thread < tracks_.size(); ++thread) tracks_[thread].track = seen.decode_thread(thread);
}

void decode_stage::ready(sample_in_flight& first, std::uint32_t rows, std::size_t loop) noexcept {
  turn_of_loop& turn = turns_[loop];
  turn.read.add(rows);
  if (first.held() != nullptr) turn.held.add(rows);
  batch_in_flight& batch = *first.owner;
  if (placement_.of(first) == row_placement::thread::io) {
    turn.on_loop.push_back({&batch, first.row, first.row + rows});
  } else {
    for (std::uint32_t row = first.row; row != first.row + rows; ++row) turn.jobs.push_back(batch.samples[row]);
  }
  if (turn.posted) return;
  // Once per turn of the loop: what else becomes ready in this turn goes along.
  turn.posted = true;
  posted_.post(loops_.executor(static_cast<std::uint32_t>(loop)), [this, &turn] { make_ready(turn); });
}

void decode_stage::ready(block_in_flight& block, std::size_t loop) noexcept {
  block.batch_loop = loop;
  block.posted_ns = now_ns();
  decoders_.post(block);
}

// Its rows may be ready then, which their loop finds out: it counts what each waits for, and says what is wrong.
void decode_stage::expand(block_in_flight& block, std::size_t thread) noexcept {
  // Others may wait for what becomes of a shared one.
  const bool is_wanted = block.expands_shared ? !flags_.stopping() : !is_unwanted(*block.owner);
  if (is_wanted && !block.damaged) {
    timeline_track* const track = tracks_[thread].track;
    batch_in_flight& batch = *block.owner;
    const bool is_noted = track != nullptr || batch.record != nullptr;
    const std::uint64_t begin_ns = is_noted ? now_ns() : 0;
    expander_.run(block, decoder_, static_cast<std::uint32_t>(thread), flags_.stopping_flag());
    const std::uint64_t end_ns = is_noted ? now_ns() : 0;
    batch.note(track, activity::expand, begin_ns, end_ns);
    if (batch.record != nullptr) batch.recorded.expand_ns.fetch_add(end_ns - begin_ns, std::memory_order_relaxed);
  }
  posted_.post(loops_.executor(static_cast<std::uint32_t>(block.batch_loop)),
               [&block] { block.stage->settle_block(block); });
}

void decode_stage::make_ready(turn_of_loop& turn) noexcept {
  turn.posted = false;
  if (!turn.jobs.empty()) decoders_.post(std::exchange(turn.jobs, {}));
  if (turn.on_loop.empty()) return;
  const std::uint64_t begin_ns = now_ns();
  std::uint64_t handed_over_ns = begin_ns;
  for (const ready_rows& rows : turn.on_loop) {
    make_on_loop(rows, turn);
    if (turn.loop == 0 || turn.made.empty()) continue;
    // Another thread hands over, while this one goes on.
    if (const std::uint64_t now = now_ns(); now - handed_over_ns > hand_over::untold_ns_max) {
      handed_over_ns = now;
      hand_over_made(turn);
    }
  }
  const std::uint64_t end_ns = now_ns();
  turn.on_loop_ns.add(end_ns - begin_ns);
  if (turn.track != nullptr) turn.track->add({.of = activity::write, .begin_ns = begin_ns, .end_ns = end_ns});
  turn.on_loop.clear();
  if (!turn.made.empty()) hand_over_made(turn);
}

void decode_stage::hand_over_made(turn_of_loop& turn) noexcept {
  hand_over& to = *turn.made.front()->ended_by;
  if (turn.loop == 0) {  // its thread
    to.rows_made(turn.made);
    return turn.made.clear();
  }
  posted_.post(loops_.executor(0), [&to, made = std::exchange(turn.made, {})] { to.rows_made(made); });
}

void decode_stage::decode(sample_in_flight& sample, std::size_t thread) noexcept {
  thread_track& seen = tracks_[thread];
  recorded_work* const recorded = sample.owner->record != nullptr ? &sample.owner->recorded : nullptr;
  if (recorded != nullptr) recorded->decoded.fetch_add(1, std::memory_order_relaxed);
  const bool is_noted = (seen.track != nullptr || recorded != nullptr) && seen.rows.is_due();
  const std::uint64_t begin_ns = is_noted ? now_ns() : 0;
  try {
    if (!is_unwanted(*sample.owner)) decoder_.run(sample, static_cast<std::uint32_t>(thread), flags_.stopping_flag());
  } catch (...) {
    // It ends the run in the batch's turn, and so at the same place with every number of threads.
    sample.in_trouble().failure = std::current_exception();
  }
  probe::sample_decoded(sample.owner->plan.epoch, sample.owner->plan.index, sample.row);
  if (is_noted) {
    const std::uint64_t end_ns = now_ns();
    seen.rows.took(end_ns - begin_ns);
    sample.owner->note(seen.track, activity::decode, begin_ns, end_ns, sample.row);
    if (seen.track != nullptr && seen.samples.is_due()) note_way(*seen.track, sample, begin_ns, end_ns);
    if (recorded != nullptr) recorded->took(end_ns - begin_ns);
  }
  batch_in_flight& batch = *sample.owner;
  if (made(sample)) posted_.post(loops_.executor(0), [&batch] { batch.ended_by->rows_made(batch); });
}

void decode_stage::note_way(timeline_track& where, const sample_in_flight& sample, std::uint64_t decode_begin_ns,
                            std::uint64_t decode_end_ns) noexcept {
  const batch_in_flight& batch = *sample.owner;
  std::uint64_t started_ns = ~std::uint64_t{0};
  std::uint64_t ended_ns = 0;
  for (const std::uint32_t index : sample.reads) {
    const read_in_flight& read = batch.reads[index];
    if (read.row_by_row) return;  // it may be under way again, for another sample
    started_ns = std::min(started_ns, read.started_ns);
    ended_ns = std::max(ended_ns, read.ended_ns);
  }
  if (started_ns > decode_begin_ns) return;  // it has none of its own
  batch.note(&where, activity::sample, started_ns, decode_end_ns, sample.row);
  if (ended_ns < started_ns) return;  // its source does not tell
  ended_ns = std::min(ended_ns, decode_begin_ns);
  batch.note(&where, activity::sample_read, started_ns, ended_ns, sample.row);
  batch.note(&where, activity::sample_wait, ended_ns, decode_begin_ns, sample.row);
}

// What turns out to be corrupt is a decode thread's task after all. What is done is counted once: for each row, that takes longer than to
// copy a short one.
void decode_stage::make_on_loop(const ready_rows& rows, turn_of_loop& turn) noexcept {
  const std::uint32_t thread = threads_ + static_cast<std::uint32_t>(turn.loop);
  batch_in_flight& batch = *rows.batch;
  const bool are_there = batch.samples[rows.first].read_into || is_unwanted(batch);
  std::uint32_t done = 0;
  std::uint32_t last = 0;  // of those that are done
  for (std::uint32_t row = rows.first; row != rows.end;) {
    const std::uint32_t end =
        are_there ? rows.end : decoder_.make_rows(batch, row, rows.end, thread, flags_.stopping_flag());
    if (end != row) {
      done += end - row;
      last = end - 1;
    }
    row = end;
    if (row != rows.end) decoders_.post(batch.samples[row++]);
  }
  if (done != 0 && made(batch.samples[last], done)) turn.made.push_back(&batch);
}

bool decode_stage::made(sample_in_flight& sample, std::uint32_t rows) noexcept {
  batch_in_flight& batch = *sample.owner;
  reader_stage::release(sample, rows);
  // Before the batch can be handed out: who has all batches sees all samples counted.
  samples_.fetch_add(rows, std::memory_order_relaxed);
  return batch.samples_missing.fetch_sub(rows, std::memory_order_acq_rel) == rows;
}

decode_stage::counters decode_stage::count() const noexcept {
  counters now{.read = 0,
               .held = 0,
               .samples = samples_.load(std::memory_order_relaxed),
               .pool = decoders_.count(),
               .on_loop_ns = 0,
               .bytes_copied = decoder_.bytes_copied(),
               .digest_ns = decoder_.digest_ns(),
               .expanded = expander_.count()};
  for (const turn_of_loop& each : turns_) {
    now.read += each.read.get();
    now.held += each.held.get();
    now.on_loop_ns += each.on_loop_ns.get();
  }
  return now;
}

void block_in_flight::run(async::worker_context& worker) noexcept { owner->rows_by->expand(*this, worker.index); }

void sample_in_flight::run(async::worker_context& worker) noexcept { owner->rows_by->decode(*this, worker.index); }

}  // namespace leat::stages

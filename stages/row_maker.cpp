#include "stages/row_maker.hpp"

#include "base/clock.hpp"
#include "stages/hand_over.hpp"
#include "stages/read.hpp"

#include <exception>
#include <utility>

namespace leat::stages {

row_maker::row_maker(const datasets::dataset_model& dataset, std::span<const std::unique_ptr<field_program>> programs,
                     const batch_layout& layout, const decode_settings& settings, pixels::scratch_budget& budget,
                     std::uint32_t threads, io::io_threads& loops, const run_flags& flags)
    : placement_(dataset, programs, settings.digests || settings.names),
      threads_(threads),
      loops_(loops),
      flags_(flags),
      expander_(dataset, programs, layout, settings.seed),
      decoder_(dataset, programs, layout, settings, budget,
               threads + (placement_.io_threads_write() ? loops.size() : 0)),
      turns_(loops.size()),
      decoders_({.thread_count = threads,
                 .name = "leat-decode",
                 .what = "decode thread",
                 .remedy = "or give fewer decode_threads"}) {
  for (std::size_t loop = 0; loop < turns_.size(); ++loop) {
    turns_[loop].owner = this;
    turns_[loop].loop = loop;
  }
}

void row_maker::ready(sample_slot& slot, std::size_t loop) noexcept {
  turn_of_loop& turn = turns_[loop];
  if (placement_.of(slot) == row_placement::thread::io) {
    turn.here.push_back(&slot);
  } else {
    turn.jobs.push_back(slot);
  }
  if (turn.posted) return;
  // Once per turn of the loop: what else becomes ready in this turn goes along.
  turn.posted = true;
  loops_.loop(static_cast<std::uint32_t>(loop))
      .post(
          [](void* argument) noexcept {
            auto& ended = *static_cast<turn_of_loop*>(argument);
            ended.owner->make_ready(ended);
          },
          &turn);
}

void row_maker::ready(block_slot& block, std::size_t loop) noexcept {
  block.batch_loop = loop;
  decoders_.post(block);
}

// Its rows may be ready then, which their loop finds out: it counts what each waits for, and says what is wrong.
void row_maker::expand(block_slot& block) noexcept {
  // Others may wait for what becomes of a shared one.
  const bool is_wanted = block.expands_shared ? !flags_.stopping() : !is_unwanted(*block.owner);
  if (is_wanted && !block.damaged) expander_.run(block);
  loops_.loop(static_cast<std::uint32_t>(block.batch_loop))
      .post(
          [](void* argument) noexcept {
            auto& ended = *static_cast<block_slot*>(argument);
            ended.stage->settle_block(ended);
          },
          &block);
}

void row_maker::make_ready(turn_of_loop& turn) noexcept {
  turn.posted = false;
  if (!turn.jobs.empty()) decoders_.post(std::exchange(turn.jobs, {}));
  if (turn.here.empty()) return;
  const std::uint64_t begin_ns = now_ns();
  for (sample_slot* const each : turn.here) make_here(*each, turn.loop);
  here_ns_.fetch_add(now_ns() - begin_ns, std::memory_order_relaxed);
  turn.here.clear();
}

void row_maker::decode(sample_slot& slot, std::size_t thread) noexcept {
  try {
    if (!is_unwanted(*slot.owner)) decoder_.run(slot, static_cast<std::uint32_t>(thread), flags_.stopping_flag());
  } catch (...) {
    // It ends the run in the batch's turn, and so at the same place with every number of threads.
    slot.in_trouble().failure = std::current_exception();
  }
  made(slot);
}

// What turns out to be corrupt is a decode thread's job after all.
void row_maker::make_here(sample_slot& slot, std::size_t loop) noexcept {
  try {
    if (!slot.read_into && !is_unwanted(*slot.owner) &&
        !decoder_.make_rows(slot, threads_ + static_cast<std::uint32_t>(loop), flags_.stopping_flag())) {
      return decoders_.post(slot);
    }
  } catch (...) {
    slot.in_trouble().failure = std::current_exception();
  }
  made(slot);
}

// The end of a sample's work, on the thread that made its row.
void row_maker::made(sample_slot& slot) noexcept {
  batch_in_flight& batch = *slot.owner;
  reader_stage::release(slot);
  // Before the batch can be handed out: who has all batches sees all samples counted.
  samples_.fetch_add(1, std::memory_order_relaxed);
  if (batch.samples_missing.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  loops_.loop(0).post(
      [](void* argument) noexcept {
        batch_in_flight& whole = *static_cast<batch_in_flight*>(argument);
        whole.ended_by->rows_made(whole);
      },
      &batch);
}

row_maker::counters row_maker::count() const noexcept {
  const async::thread_pool::counters threads = decoders_.count();
  return {.samples = samples_.load(std::memory_order_relaxed),
          .busy_ns = threads.busy_ns + here_ns_.load(std::memory_order_relaxed),
          .idle_ns = threads.idle_ns,
          .queued = threads.queued,
          .bytes_copied = decoder_.bytes_copied(),
          .digest_ns = decoder_.digest_ns(),
          .expanded = expander_.count()};
}

void block_slot::run(async::worker_context&) noexcept { owner->rows_by->expand(*this); }

void sample_slot::run(async::worker_context& worker) noexcept { owner->rows_by->decode(*this, worker.index); }

}  // namespace leat::stages

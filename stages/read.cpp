#include "stages/read.hpp"

#include "async/turn.hpp"
#include "base/clock.hpp"
#include "base/exception_text.hpp"
#include "base/mutex.hpp"
#include "base/text.hpp"
#include "stages/blame.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <cerrno>
#include <future>
#include <utility>

namespace leat::stages {
namespace {

// A call that another thread has a loop's thread make on its sources.
struct posted_reads {
  reader_stage::loop_state* loop = nullptr;
  std::vector<io::read_operation*> operations;

  void start() {
    for (io::read_operation* operation : operations) {
      auto* const read = static_cast<read_slot*>(operation);
      read->place_in_flight = static_cast<std::uint32_t>(loop->in_flight.size());
      loop->in_flight.push_back(read);
    }
    // Runs of one source are handed over together.
    std::size_t begin = 0;
    while (begin < operations.size()) {
      const std::uint32_t source = static_cast<read_slot*>(operations[begin])->source;
      std::size_t end = begin;
      while (end < operations.size() && static_cast<read_slot*>(operations[end])->source == source) ++end;
      loop->sources[source]->start(std::span(operations).subspan(begin, end - begin));
      begin = end;
    }
    // cancel() ran while these were posted to this thread and did not see them, so they are cancelled here.
    if (loop->cancelled) cancel(operations, *loop);
  }

  static void cancel(std::span<io::read_operation* const> operations, const reader_stage::loop_state& on) {
    for (io::read_operation* const operation : operations) {
      auto& read = static_cast<read_slot&>(*operation);
      if (read.place_in_flight != read_slot::not_in_flight) on.sources[read.source]->cancel(read);
    }
  }
};

void remove_from(std::vector<read_slot*>& in_flight, read_slot& ended) noexcept {
  in_flight.back()->place_in_flight = ended.place_in_flight;
  in_flight[ended.place_in_flight] = in_flight.back();
  in_flight.pop_back();
  ended.place_in_flight = read_slot::not_in_flight;
}

// Opens the first file of each source, on the first loop.
struct first_look : io::open_operation {
  io::source* at = nullptr;
  std::atomic<std::size_t>* left = nullptr;
  std::promise<void>* all_done = nullptr;
  std::optional<error> refusal;
};

// Lists the reads in flight. Each loop lists its own on its thread, where no read can end meanwhile.
struct reads_listing {
  struct held {
    std::uint64_t since_ns;
    std::string what;
  };
  struct row {
    reads_listing* all = nullptr;
    const reader_stage::loop_state* loop = nullptr;

    void answer() {
      for (const read_slot* const read : loop->in_flight) {
        const io::source_description& from = *all->dataset.sources()[read->source];
        std::string what = str_cat(from.file_name(read->file), " at offset ", read->offset);
        const mutex_lock lock(all->mutex);
        all->found.push_back({read->started_ns, std::move(what)});
      }
      if (all->left.fetch_sub(1, std::memory_order_acq_rel) == 1) all->answered.set_value();
    }
  };

  const datasets::dataset_model& dataset;
  std::vector<row> rows;
  std::atomic<std::size_t> left;
  std::promise<void> answered;
  leat::mutex mutex;
  std::vector<held> found ABSL_GUARDED_BY(mutex);
};

}  // namespace

reader_stage::reader_stage(const datasets::dataset_model& dataset,
                           std::span<const std::unique_ptr<field_program>> programs, std::vector<io::connector*> loops,
                           io::lease_pool& pool, line_events& events)
    : dataset_(dataset), programs_(programs), pool_(pool), events_(events) {
  for (io::connector* loop : loops) {
    loop_state state{.loop = loop, .sources = {}, .in_flight = {}, .cancelled = false};
    for (const auto& description : dataset_.sources()) state.sources.push_back(description->connect(*loop));
    loops_.push_back(std::move(state));
  }
  for (const auto& program : programs_) {
    for (const std::uint16_t field : program->reads()) {
      awaits_ = awaits_ || dataset_.origin(field) == datasets::field_origin::awaited;
    }
  }
}

reader_stage::~reader_stage() {
  for (loop_state& loop : loops_) {
    struct teardown {
      std::vector<std::unique_ptr<io::source>> sources;
      std::atomic<bool> done{false};
    } last{.sources = std::move(loop.sources)};
    loop.loop->post(
        [](void* argument) noexcept {
          auto& ending = *static_cast<teardown*>(argument);
          ending.sources.clear();
          ending.done.store(true, std::memory_order_release);
          ending.done.notify_one();
        },
        &last);
    last.done.wait(false, std::memory_order_acquire);
  }
}

void reader_stage::check_first_files() {
  std::deque<first_look> looks;
  std::atomic<std::size_t> left{1};
  std::promise<void> all_done;
  const auto& descriptions = dataset_.sources();
  for (std::size_t i = 0; i < descriptions.size(); ++i) {
    if (descriptions[i]->files() == 0) continue;
    first_look& look = looks.emplace_back();
    look.at = loops_.front().sources[i].get();
    look.left = &left;
    look.all_done = &all_done;
    look.done = [](io::open_operation& operation) noexcept {
      auto& opened = static_cast<first_look&>(operation);
      if (opened.failure == EOPNOTSUPP) opened.refusal.emplace(opened.at->explain(opened));
      if (opened.left->fetch_sub(1, std::memory_order_acq_rel) == 1) opened.all_done->set_value();
    };
  }
  if (looks.empty()) return;
  left.store(looks.size(), std::memory_order_relaxed);
  loops_.front().loop->post(
      [](void* argument) noexcept {
        for (first_look& look : *static_cast<std::deque<first_look>*>(argument)) look.at->start(look);
      },
      &looks);
  all_done.get_future().wait();
  for (const first_look& look : looks) {
    if (look.refusal) throw *look.refusal;
  }
}

asio::awaitable<void> reader_stage::issue(batch_in_flight& batch, std::span<const std::uint32_t> rows,
                                          async::scope& fetches) {
  std::vector<io::read_operation*> operations;
  operations.reserve(rows.size());
  for (const std::uint32_t row : rows) {
    sample_slot& slot = batch.samples[row];
    std::size_t bytes = 0;
    absl::InlinedVector<std::uint16_t, 4> fetched;  // programs
    for (std::size_t p = 0; awaits_ && p < programs_.size() && !slot.corrupt; ++p) {
      const std::uint16_t field = batch.plan.field_of(row, p);
      if (field == batch_plan::no_field || dataset_.origin(field) != datasets::field_origin::awaited) continue;
      const auto serves = [&](std::uint16_t before) { return batch.plan.field_of(row, before) == field; };
      if (std::any_of(fetched.begin(), fetched.end(), serves)) continue;
      fetched.push_back(static_cast<std::uint16_t>(p));
      bytes += io::aligned_bytes(0, dataset_.fields()[field].bytes_max);
    }
    slot.reads_missing = static_cast<std::uint16_t>(slot.reads_missing + fetched.size());
    if (slot.reads_missing == 0) {
      events_.ready(slot, 0);
      continue;
    }
    if (!fetched.empty()) slot.fetched = std::make_unique<fetched_field[]>(fetched.size());
    for (const std::uint32_t index : slot.reads) {
      const read_slot& read = batch.reads[index];
      if (!read.straight_to && read.first_row == row) bytes += read.lease_bytes;
    }
    // One lease for all that the sample needs.
    std::optional<io::lease> memory;
    if (bytes != 0) {
      memory = pool_.try_lease(bytes);
      if (!memory || pool_.populate_next(*memory)) {
        // Start the reads collected so far: the disk works while this waits.
        start(batch, operations);
        memory = co_await wait_for_memory(bytes, std::move(memory));
      }
    }
    place_reads(batch, slot, memory ? std::move(*memory) : io::lease(), operations);
    for (std::size_t i = 0; i < fetched.size(); ++i) {
      fetches.spawn(fetch(batch, slot, slot.fetched[i], fetched[i]));
    }
  }
  start(batch, operations);
}

// Takes a lease if there is none, and faults in its memory piece by piece. After each piece the loop has a turn, for completions,
// other batches and stop(). A lease that was passed in has had a piece faulted in just before.
asio::awaitable<io::lease> reader_stage::wait_for_memory(std::size_t bytes, std::optional<io::lease> memory) {
  if (memory) {
    co_await async::next_turn();
  } else {
    memory = co_await pool_.async_lease(bytes, asio::use_awaitable);
  }
  while (pool_.populate_next(*memory)) co_await async::next_turn();
  co_return std::move(*memory);
}

// The reads that this sample is the first of become ready to be started.
void reader_stage::place_reads(batch_in_flight& batch, sample_slot& slot, io::lease memory,
                               std::vector<io::read_operation*>& operations) {
  const auto space_in = [](std::span<std::byte> bytes, const io::lease& of) {
    return io::space{bytes, io::arena::piece_at(bytes.data(), of.data(), of.piece())};
  };
  std::span<std::byte> left = memory.bytes();
  io::lease* holder = slot.fetched == nullptr ? nullptr : &slot.fetched[0].charge;
  for (const std::uint32_t index : slot.reads) {
    read_slot& read = batch.reads[index];
    if (read.first_row != slot.row) continue;
    if (read.straight_to) {
      read.into = space_in(batch.memory.bytes().subspan(*read.straight_to, read.bytes), batch.memory);
    } else {
      read.into = space_in(left.first(read.lease_bytes), memory);
      left = left.subspan(read.lease_bytes);
      holder = &batch.reads[read.holder].memory;
    }
    read.stage = this;
    read.done = [](io::read_operation& operation) noexcept {
      auto& done = static_cast<read_slot&>(operation);
      done.stage->finished(done);
    };
    operations.push_back(&read);
  }
  if (memory) *holder = std::move(memory);
}

void reader_stage::start(batch_in_flight& batch, std::vector<io::read_operation*>& operations) {
  if (operations.empty()) return;
  reads_.fetch_add(operations.size(), std::memory_order_relaxed);
  in_flight_.fetch_add(operations.size(), std::memory_order_relaxed);
  const std::uint64_t now = now_ns();
  for (io::read_operation* operation : operations) operation->started_ns = now;
  const std::size_t loop = loop_of(batch);
  posted_reads task{.loop = &loops_[loop], .operations = operations};
  operations.clear();
  if (loop == 0) return task.start();
  loops_[loop].loop->post(
      [](void* argument) noexcept {
        const std::unique_ptr<posted_reads> posted(static_cast<posted_reads*>(argument));
        posted->start();
      },
      new posted_reads(std::move(task)));
}

void reader_stage::finished(read_slot& read) noexcept {
  flight_ns_.fetch_add(now_ns() - read.started_ns, std::memory_order_relaxed);
  if (read.failure == 0) bytes_.fetch_add(read.data.size(), std::memory_order_relaxed);
  if (read.rows > 1 && read_row_by_row(read)) return;
  remove_from(loops_[loop_of(*read.owner)].in_flight, read);
  settle(read, read.rows - read.rows_settled);
  // The last access: a thread that waits for zero may destroy this object.
  if (in_flight_.fetch_sub(1, std::memory_order_acq_rel) == 1) in_flight_.notify_all();
}

// A read that failed for several samples is tried again for each: one of them may be at fault, and the others not. False
// when there is nothing more to read.
bool reader_stage::read_row_by_row(read_slot& read) noexcept {
  if (!read.row_by_row) {
    if (blame_of(read.failure) == blame::environment) return false;
    read.row_by_row = true;
    read.left = read.into;
  } else {
    if (read.failure == ECANCELED) return false;
    settle(read, 1);
    if (read.rows_settled == read.rows) return false;
  }
  const std::uint32_t row = read.first_row + read.rows_settled;
  auto part =
      std::find_if(read.parts.begin(), read.parts.end(), [row](const read_part& each) { return each.row == row; });
  read.offset = part->offset;
  read.bytes = 0;
  for (; part != read.parts.end() && part->row == row; ++part) {
    read.bytes = std::max(read.bytes, part->offset + part->bytes - read.offset);
  }
  const std::size_t bytes = io::aligned_bytes(read.offset, read.bytes);
  read.into = {read.left.bytes.first(bytes), read.left.piece};
  const std::span<std::byte> left = read.left.bytes.subspan(bytes);
  read.left = {left, io::arena::piece_at(left.data(), read.into.bytes.data(), read.into.piece)};
  io::read_operation* const again = &read;
  loops_[loop_of(*read.owner)].sources[read.source]->start({&again, 1});
  return true;
}

// Passes the result of a completed read on to the next `rows` of its samples.
void reader_stage::settle(read_slot& read, std::uint32_t rows) noexcept {
  if (rows == 0) return;
  batch_in_flight& batch = *read.owner;
  std::string reason;
  if (read.failure != 0 && read.failure != ECANCELED) {  // ECANCELED: the run is over, and nobody reads the reason.
    const error why = loops_[loop_of(batch)].sources[read.source]->explain(read);
    if (blame_of(read.failure) != blame::environment) {
      reason = why.what();
    } else {
      events_.broken(std::make_exception_ptr(why));
    }
  }
  auto part = std::lower_bound(read.parts.begin(), read.parts.end(), read.first_row + read.rows_settled,
                               [](const read_part& each, std::uint32_t row) { return each.row < row; });
  for (; rows != 0; --rows, ++read.rows_settled) {
    const std::uint32_t row = read.first_row + read.rows_settled;
    sample_slot& slot = batch.samples[row];
    if (read.failure != 0) {
      slot.corrupt = true;
      slot.in_trouble().reason = reason;
      slot.trouble->read_failure = read.failure;
    } else {
      for (; part != read.parts.end() && part->row == row; ++part) {
        batch.encoded[row * programs_.size() + part->program] =
            read.data.subspan(part->offset - read.offset, part->bytes);
      }
    }
    if (--slot.reads_missing == 0) events_.ready(slot, loop_of(batch));
  }
}

asio::awaitable<void> reader_stage::fetch(batch_in_flight& batch, sample_slot& slot, fetched_field& fetched,
                                          std::uint16_t program) {
  const std::uint16_t field = batch.plan.field_of(slot.row, program);
  try {
    fetched.bytes = co_await dataset_.fetch(slot.pick().sample, field);
    if (fetched.bytes.size() > dataset_.fields()[field].bytes_max) {
      slot.corrupt = true;
      slot.in_trouble().reason = str_cat("fetched ", fetched.bytes.size(), " bytes where the dataset promised at most ",
                                         dataset_.fields()[field].bytes_max);
    }
    for (std::size_t p = 0; p < programs_.size(); ++p) {
      if (batch.plan.field_of(slot.row, p) == field) batch.encoded[slot.row * programs_.size() + p] = fetched.bytes;
    }
  } catch (const boost::system::system_error& stopped) {
    if (stopped.code() == asio::error::operation_aborted) throw;
    slot.corrupt = true;
    slot.in_trouble().reason = stopped.what();
  } catch (const std::exception& problem) {
    slot.corrupt = true;
    slot.in_trouble().reason = problem.what();
  } catch (...) {
    slot.corrupt = true;
    slot.in_trouble().reason = current_exception_text();
  }
  if (--slot.reads_missing == 0) events_.ready(slot, 0);
}

void reader_stage::release(sample_slot& slot) noexcept {
  for (const std::uint32_t index : slot.reads) {
    const read_slot& read = slot.owner->reads[index];
    if (read.straight_to) continue;
    read_slot& holder = slot.owner->reads[read.holder];
    if (holder.users.fetch_sub(1, std::memory_order_acq_rel) == 1) holder.memory = {};
  }
  // The last access to these reads: from here on the planner may reuse them.
  for (const std::uint32_t index : slot.reads) {
    if (slot.owner->reads[index].rows_left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      slot.owner->reads_idle.fetch_add(1, std::memory_order_release);
    }
  }
  slot.fetched.reset();
}

void reader_stage::cancel() {
  for (loop_state& each : loops_) {
    const auto end_all = [](void* argument) noexcept {
      auto& loop = *static_cast<loop_state*>(argument);
      loop.cancelled = true;
      const std::vector<io::read_operation*> all(loop.in_flight.begin(), loop.in_flight.end());
      posted_reads::cancel(all, loop);
    };
    if (&each == &loops_.front()) {
      end_all(&each);
    } else {
      each.loop->post(end_all, &each);
    }
  }
}

void reader_stage::drain() noexcept {
  for (std::uint64_t left = in_flight_.load(std::memory_order_acquire); left != 0;
       left = in_flight_.load(std::memory_order_acquire)) {
    in_flight_.wait(left, std::memory_order_acquire);
  }
}

std::vector<std::string> reader_stage::under_way() {
  reads_listing call{.dataset = dataset_,
                     .rows = std::vector<reads_listing::row>(loops_.size()),
                     .left = loops_.size(),
                     .answered = {},
                     .mutex = {},
                     .found = {}};
  for (std::size_t k = 0; k < loops_.size(); ++k) {
    call.rows[k].all = &call;
    call.rows[k].loop = &loops_[k];
    loops_[k].loop->post([](void* row) noexcept { static_cast<reads_listing::row*>(row)->answer(); }, &call.rows[k]);
  }
  call.answered.get_future().wait();

  const mutex_lock lock(call.mutex);
  std::sort(call.found.begin(), call.found.end(),
            [](const reads_listing::held& a, const reads_listing::held& b) { return a.since_ns < b.since_ns; });
  std::vector<std::string> names;
  for (reads_listing::held& held : call.found) names.push_back(std::move(held.what));
  return names;
}

reader_stage::counters reader_stage::count() const noexcept {
  return {.reads = reads_.load(std::memory_order_relaxed),
          .bytes = bytes_.load(std::memory_order_relaxed),
          .in_flight = in_flight_.load(std::memory_order_relaxed),
          .flight_ns = flight_ns_.load(std::memory_order_relaxed)};
}

}  // namespace leat::stages

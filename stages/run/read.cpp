#include "stages/run/read.hpp"

#include "async/turn.hpp"
#include "base/clock.hpp"
#include "base/exception_text.hpp"
#include "base/text.hpp"
#include "stages/observe/probes.hpp"
#include "stages/plan/lowering.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <iterator>
#include <utility>

namespace leat::stages {

namespace {

// The stored bytes, and those they become.
std::size_t lease_bytes(const block_in_flight& block) {
  return io::aligned_bytes(block.of.offset, block.of.bytes) +
         (block.to_row() ? 0 : io::aligned_bytes(0, block.of.decoded_bytes));
}

// Whether what has just ended is the last that the sample waited for.
bool is_last(sample_in_flight& sample) {
  // Only of samples with blocks do two threads count.
  if (!sample.owner->row_blocks.empty()) return sample.reads_missing.fetch_sub(1, std::memory_order_acq_rel) == 1;
  const auto left = static_cast<std::uint16_t>(sample.reads_missing.load(std::memory_order_relaxed) - 1);
  sample.reads_missing.store(left, std::memory_order_relaxed);
  return left == 0;
}

// Of what sources want beyond their least.
double share_of_wanted(const datasets::dataset_model& dataset, std::size_t loops, std::size_t source_bytes) {
  std::size_t least = 0;
  std::size_t wanted = 0;
  for (const auto& each : dataset.sources()) {
    const io::source_memory one = each->memory();
    least += one.bytes_least * loops;
    wanted += one.bytes_wanted * loops;
  }
  if (source_bytes >= wanted) return 1;
  return source_bytes <= least ? 0 : static_cast<double>(source_bytes - least) / static_cast<double>(wanted - least);
}

bool some_are_awaited(const datasets::dataset_model& dataset,
                      std::span<const std::unique_ptr<field_program>> programs) {
  return std::any_of(programs.begin(), programs.end(), [&](const auto& program) {
    const auto fields = program->reads();
    return std::any_of(fields.begin(), fields.end(),
                       [&](std::uint16_t field) { return lower(dataset, field).is_awaited; });
  });
}

}  // namespace

reader_stage::reader_stage(const datasets::dataset_model& dataset,
                           std::span<const std::unique_ptr<field_program>> programs,
                           std::span<io::connector* const> loops, io::lease_pool& pool, const memory& allowed,
                           line_events& events, const timeline& seen)
    : dataset_(dataset),
      programs_(programs),
      sources_(loops),
      pool_(pool),
      kept_(allowed.kept_bytes),
      events_(events),
      awaits_(some_are_awaited(dataset, programs)),
      schedule_(awaits_ ? 1 : loops.size()) {
  flight_times_.resize(sources_.loops());
  for (std::size_t loop = 0; loop < sources_.loops(); ++loop) tracks_.push_back(seen.reads(loop));
  const double share = share_of_wanted(dataset_, loops.size(), allowed.source_bytes);
  std::uint32_t files = 0;
  for (const auto& description : dataset_.sources()) {
    const io::source_memory wants = description->memory();
    const auto more = static_cast<std::size_t>(static_cast<double>(wants.bytes_wanted - wants.bytes_least) * share);
    sources_.add(*description, io::source_terms{.memory_bytes = wants.bytes_least + more,
                                                .passing_bytes = allowed.cache.passing_bytes});
    timed_here_.push_back(!description->is_read_by_the_loop());
    first_file_.push_back(files);
    files += description->files();
    const std::uint64_t ahead = description->in_flight().ahead_bytes;
    ahead_bytes_of_.push_back(ahead == 0 ? 0 : std::max(ahead * loops.size(), allowed.cache.ahead_bytes));
    ahead_bytes_ = std::max(ahead_bytes_, ahead_bytes_of_.back());
  }
  for (std::size_t loop = 0; loop < sources_.loops(); ++loop) {
    for (std::uint32_t source = 0; source < timed_here_.size(); ++source) {
      networked_.push_back(dynamic_cast<io::networked*>(&sources_.source_of(loop, source)));
      if (networked_.back() != nullptr && seen.blocks() != nullptr) networked_.back()->observe_blocks(*seen.blocks());
    }
  }
}

std::uint32_t reader_stage::connections_max() const noexcept {
  std::uint32_t most = 0;
  for (const io::networked* const each : networked_) {
    if (each != nullptr) most = std::max(most, each->connections_max());
  }
  return most;
}

void reader_stage::set_connections(std::uint32_t connections) {
  for (io::networked* const each : networked_) {
    if (each != nullptr) each->set_connections(std::min(connections, each->connections_max()));
  }
}

void reader_stage::check_first_files() {
  struct first_file : io::set_open {
    io::source_set* all = nullptr;
    std::optional<error> refusal;
  };
  std::deque<first_file> files;
  const auto& descriptions = dataset_.sources();
  for (std::uint32_t source = 0; source < descriptions.size(); ++source) {
    // Only files may be without O_DIRECT; of an object it would be a request.
    if (descriptions[source]->files() == 0 || timed_here_[source]) continue;
    first_file& first = files.emplace_back();
    first.source = source;
    first.all = &sources_;
    first.ended = [](io::set_open& operation) noexcept {
      auto& opened = static_cast<first_file&>(operation);
      if (opened.failure == EOPNOTSUPP) opened.refusal.emplace(opened.all->explain(opened));
    };
    sources_.start(0, first);
  }
  sources_.drain();
  for (const first_file& first : files) {
    if (first.refusal) throw *first.refusal;
  }
}

asio::awaitable<void> reader_stage::issue(batch_in_flight& batch, std::span<const std::uint32_t> rows,
                                          async::scope& fetches) {
  std::vector<io::read_operation*> operations;
  operations.reserve(rows.size());
  expect_blocks(batch, rows);
  // What is fetched of a row is asked for below, and its reads, which a row before it began, may end earlier: it waits for both.
  for (const std::uint32_t row : rows) {
    if (awaits_ && batch.blocks_of(row).programs == 0) batch.samples[row].wait_for_one_more();
  }
  for (const std::uint32_t row : rows) {
    sample_in_flight& sample = batch.samples[row];
    const blocks_of_row blocks = batch.blocks_of(row);
    const bool waits_for_this = awaits_ || blocks.programs != 0;
    // Asked for with the first rows of its reads, which may have ended.
    const auto is_first_of = [&](std::uint32_t index) { return batch.reads[index].first_row == row; };
    if (!waits_for_this && !sample.reads.empty() &&
        std::none_of(sample.reads.begin(), sample.reads.end(), is_first_of)) {
      continue;
    }
    for (std::uint32_t i = 0; i < blocks.count; ++i) {
      block_in_flight& block = batch.blocks[blocks.first + i];
      block.stage = this;
      const chunk_cache::state known = kept_.find(block);
      if (known == chunk_cache::state::there) events_.ready(block, batch.loop);
      if (known != chunk_cache::state::absent) continue;
      const std::size_t wanted = lease_bytes(block);
      std::optional<io::lease> memory;
      if (wanted != 0) {
        memory = try_lease(wanted);
        if (!memory || pool_.populate_next(*memory)) {
          start(batch, operations);
          memory = co_await wait_for_memory(wanted, std::move(memory));
        }
      }
      start_block(batch, block, memory ? std::move(*memory) : io::lease(), operations);
    }
    std::size_t bytes = 0;
    absl::InlinedVector<fetch_wanted, 4> fetched;
    std::uint16_t fetch_groups = 0;
    for (std::size_t p = 0; awaits_ && p < programs_.size() && !sample.corrupt; ++p) {
      const std::uint16_t field = batch.plan.field_of(row, p);
      if (batch.plan.step_of(row, p) != row_step::await) continue;
      const auto serves = [&](const fetch_wanted& before) { return before.field == field; };
      if (std::any_of(fetched.begin(), fetched.end(), serves)) continue;
      const std::uint16_t group = dataset_.fetch_group(sample.pick().sample, field);
      const auto is_with = [&](const fetch_wanted& before) { return before.group == group; };
      fetch_groups += std::none_of(fetched.begin(), fetched.end(), is_with) ? 1 : 0;
      fetched.push_back({.field = field, .group = group});
      bytes += io::aligned_bytes(0, dataset_.fields()[field].bytes_max);
    }
    if (fetch_groups != 0) sample.reads_missing.fetch_add(fetch_groups, std::memory_order_relaxed);
    if (!waits_for_this && sample.reads.empty()) {
      events_.ready(sample, 1, 0);
      continue;
    }
    if (!fetched.empty()) sample.fetched = std::make_unique<fetched_field[]>(fetched.size());
    for (const std::uint32_t index : sample.reads) {
      const read_in_flight& read = batch.reads[index];
      if (!read.direct_to_row && is_first_of(index)) bytes += read.lease_bytes;
    }
    // One lease for all that the sample needs.
    std::optional<io::lease> memory;
    if (bytes != 0) {
      memory = try_lease(bytes);
      if (!memory || pool_.populate_next(*memory)) {
        // Start the reads collected so far: the disk works while this waits.
        start(batch, operations);
        memory = co_await wait_for_memory(bytes, std::move(memory));
      }
    }
    place_reads(batch, sample, memory ? std::move(*memory) : io::lease(), operations);
    for (std::size_t i = 0; i < fetched.size(); ++i) fetched[i].into = &sample.fetched[i];
    start_fetches(batch, sample, {fetched.data(), fetched.size()}, fetches);
    if (waits_for_this && is_last(sample)) events_.ready(sample, 1, 0);
  }
  start(batch, operations);
}

void reader_stage::hint(std::uint64_t sequence, std::span<const extent> ahead) {
  for (std::size_t first = 0, end = 0; first < ahead.size(); first = end) {
    const std::uint32_t source = ahead[first].source;
    while (end < ahead.size() && ahead[end].source == source) ++end;
    if (ahead_bytes_of_[source] != 0)
      sources_.hint(schedule_.loop_of(sequence), source, ahead.subspan(first, end - first));
  }
}

void reader_stage::expect_blocks(batch_in_flight& batch, std::span<const std::uint32_t> rows) {
  next_blocks_.clear();
  for (const std::uint32_t row : rows) {
    const blocks_of_row blocks = batch.blocks_of(row);
    for (std::uint32_t i = 0; i < blocks.count; ++i) next_blocks_.push_back(&batch.blocks[blocks.first + i].of);
  }
  if (!next_blocks_.empty()) kept_.expect(next_blocks_);
}

std::optional<io::lease> reader_stage::try_lease(std::size_t bytes) {
  std::optional<io::lease> memory = pool_.try_lease(bytes);
  while (!memory && kept_.let_go_of_one()) memory = pool_.try_lease(bytes);
  return memory;
}

// Takes a lease if there is none, and faults in its memory piece by piece. After each piece the loop has a turn, for completions,
// other batches and stop(). A lease that was passed in has had a piece faulted in just before.
asio::awaitable<io::lease> reader_stage::wait_for_memory(std::size_t bytes, std::optional<io::lease> memory) {
  if (memory) {
    co_await async::next_turn();
  } else {
    const chunk_cache::starving waits(kept_);
    memory = try_lease(bytes);  // What has become ready since the last look is let go of, too.
    if (!memory) memory = co_await pool_.async_lease(bytes, asio::use_awaitable);
  }
  while (pool_.populate_next(*memory)) co_await async::next_turn();
  co_return std::move(*memory);
}

// The reads that this sample is the first of become ready to be started.
void reader_stage::place_reads(batch_in_flight& batch, sample_in_flight& sample, io::lease memory,
                               std::vector<io::read_operation*>& operations) {
  const auto space_in = [](std::span<std::byte> bytes, const io::lease& of) {
    return io::read_target{bytes, io::arena::piece_at(bytes.data(), of.data(), of.piece())};
  };
  std::span<std::byte> left = memory.bytes();
  io::lease* holder = sample.fetched == nullptr ? nullptr : &sample.fetched[0].charge;
  for (const std::uint32_t index : sample.reads) {
    read_in_flight& read = batch.reads[index];
    if (read.first_row != sample.row) continue;
    if (read.direct_to_row) {
      read.into = space_in(batch.memory.bytes().subspan(*read.direct_to_row, read.bytes), batch.memory);
    } else if (read.inside) {
      // A page later than in the file: wherever in its first page a source puts the first byte, decoder::join_pieces() finds room for the
      // head as far before it as it is in the file, and behind the place where it was read.
      const read_in_flight& first = batch.reads[*read.inside];
      const auto page_of = [](std::uint64_t offset) { return offset / io::alignment_max_bytes; };
      const std::uint64_t behind = (page_of(read.offset) - page_of(first.offset) + 1) * io::alignment_max_bytes;
      read.into = space_in({first.into.bytes.data() + behind, io::aligned_bytes(read.offset, read.bytes)}, memory);
    } else {
      read.into = space_in(left.first(read.lease_bytes), memory);
      left = left.subspan(read.lease_bytes);
      holder = &batch.reads[read.holder].memory;
    }
    read.stage = this;
    read.ended = [](io::set_read& operation) noexcept {
      auto& ended = static_cast<read_in_flight&>(operation);
      ended.stage->finished(ended);
    };
    operations.push_back(&read);
  }
  if (memory) *holder = std::move(memory);
}

void reader_stage::start(batch_in_flight& batch, std::vector<io::read_operation*>& operations) {
  if (operations.empty()) return;
  reads_.fetch_add(operations.size(), std::memory_order_relaxed);
  const std::uint64_t now = now_ns();
  for (io::read_operation* operation : operations) {
    operation->started_ns = now;
    operation->ended_ns = 0;
    probe::read_submitted(operation->file, operation->offset, operation->bytes);
  }
  sources_.start(batch.loop, operations);
  operations.clear();
}

void reader_stage::count(io::set_read& ended, const batch_in_flight& batch, bool is_leased) noexcept {
  probe::read_completed(ended.file, ended.offset, ended.bytes, static_cast<std::uint64_t>(ended.failure));
  const std::size_t loop = batch.loop;
  const bool timed_here = timed_here_[ended.source];
  const bool is_wanted = timed_here || tracks_[loop] != nullptr || batch.record != nullptr;
  const std::uint64_t end_ns = ended.ended_ns != 0 || !is_wanted ? ended.ended_ns : now_ns();
  if (timed_here) {
    flight_times_[loop].record_alone(end_ns - ended.started_ns);
    ended.ended_ns = end_ns;
  }
  if (tracks_[loop] != nullptr) note(ended, batch, end_ns);
  if (batch.record != nullptr) {
    batch.record->add(loop, ended.started_ns, end_ns, ended.offset, ended.bytes, batch.sending.number,
                      first_file_[ended.source] + ended.file, is_leased);
  }
  if (ended.failure == 0) bytes_.fetch_add(ended.data.size(), std::memory_order_relaxed);
}

void reader_stage::note(const io::set_read& ended, const batch_in_flight& batch, std::uint64_t end_ns) noexcept {
  const io::networked* const from = networked_[batch.loop * timed_here_.size() + ended.source];
  const activity of = !timed_here_[ended.source]                      ? activity::read
                      : from != nullptr && from->is_read_from_cache() ? activity::hit
                                                                      : activity::fetch;
  tracks_[batch.loop]->ended(of, ended.started_ns, end_ns, batch.plan.epoch, batch.plan.index,
                             from != nullptr ? from->request_of_read() : nullptr);
}

void reader_stage::finished(read_in_flight& read) noexcept {
  count(read, *read.owner, !read.direct_to_row);
  if (read.rows > 1 && read_row_by_row(read)) return;
  settle(read, read.rows - read.rows_settled);
}

// A read that failed for several samples is tried again for each: one of them may be at fault, and the others not. False
// when there is nothing more to read.
bool reader_stage::read_row_by_row(read_in_flight& read) noexcept {
  if (!read.row_by_row) {
    if (io::fault_of(read) == io::fault::environment) return false;
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
  sources_.start(read.owner->loop, {&again, 1});
  return true;
}

// Passes the result of a completed read on to the next `rows` of its samples.
void reader_stage::settle(read_in_flight& read, std::uint32_t rows) noexcept {
  if (rows == 0) return;
  batch_in_flight& batch = *read.owner;
  std::string reason;
  io::fault whose = io::fault::sample;
  if (read.failure != 0 && read.failure != ECANCELED) {  // ECANCELED: the run is over, and nobody reads the reason.
    const error why = sources_.explain(read);
    whose = io::fault_of(read);
    if (whose != io::fault::environment) {
      reason = why.what();
    } else {
      events_.broken(std::make_exception_ptr(why));
    }
  }
  auto part = std::lower_bound(read.parts.begin(), read.parts.end(), read.first_row + read.rows_settled,
                               [](const read_part& each, std::uint32_t row) { return each.row < row; });
  sample_in_flight* first = nullptr;  // of those that go on together
  std::uint32_t together = 0;
  const auto go_on = [&] {
    if (together != 0) events_.ready(*first, std::exchange(together, 0), batch.loop);
  };
  for (; rows != 0; --rows, ++read.rows_settled) {
    const std::uint32_t row = read.first_row + read.rows_settled;
    sample_in_flight& sample = batch.samples[row];
    if (read.failure != 0) {
      sample.corrupt = true;
      sample.in_trouble().reason = reason;
      sample.trouble->kind = corrupt_kinds::unreadable;
      sample.trouble->read_failure = read.failure;
      sample.trouble->unreadable = whose == io::fault::unreadable;
    } else {
      for (; part != read.parts.end() && part->row == row; ++part) {
        // Of a value perhaps not all was read: then `data` ends before it does.
        batch.encoded[row * programs_.size() + part->program] = {read.data.data() + (part->offset - read.offset),
                                                                 part->bytes};
      }
    }
    if (!is_last(sample)) {
      go_on();
    } else if (!sample.needs_one_read()) {
      go_on();
      events_.ready(sample, 1, batch.loop);
    } else if (together++ == 0) {
      first = &sample;
    }
  }
  go_on();
}

void reader_stage::start_block(batch_in_flight& batch, block_in_flight& block, io::lease memory,
                               std::vector<io::read_operation*>& operations) {
  const std::size_t stored = io::aligned_bytes(block.of.offset, block.of.bytes);
  if (memory) {
    block.into = {memory.bytes().first(stored), io::arena::piece_at(memory.data(), memory.data(), memory.piece())};
    if (!block.to_row()) block.decoded = memory.bytes().subspan(stored).first(block.of.decoded_bytes);
  }
  kept_.begin(block, memory ? memory.bytes().size() : 0);
  if (block.shared != nullptr) {
    block.shared->decoded = block.decoded;
    block.shared->memory = std::move(memory);
  } else {
    block.memory = std::move(memory);
  }
  if (block.of.bytes == 0) return events_.ready(block, batch.loop);
  block.ended = [](io::set_read& operation) noexcept {
    auto& ended = static_cast<block_in_flight&>(operation);
    ended.stage->finished(ended);
  };
  operations.push_back(&block);
}

void reader_stage::finished(block_in_flight& block) noexcept {
  count(block, *block.owner, true);
  if (block.failure != 0) return settle_block(block);
  events_.ready(block, block.owner->loop);
}

void reader_stage::settle_block(block_in_flight& block) noexcept {
  batch_in_flight& batch = *block.owner;
  if (block.failure != 0 && !block.damaged) {
    block.damaged = true;
    if (block.failure != ECANCELED) {  // as settle()
      const error why = sources_.explain(block);
      const io::fault whose = io::fault_of(block);
      if (whose == io::fault::environment) events_.broken(std::make_exception_ptr(why));
      block.reason = why.what();
      block.kind = corrupt_kinds::unreadable;
      block.unreadable = whose == io::fault::unreadable;
    }
  }
  block.memory = {};
  if (block.expands_shared) {
    for (block_in_flight* const waiter : kept_.finish(block)) {
      waiter->damaged = block.damaged;
      waiter->reason = block.reason;
      waiter->kind = block.kind;
      waiter->failure = block.failure;
      waiter->unreadable = block.unreadable;
      events_.ready(*waiter, waiter->owner->loop);
    }
  }
  block.shared.reset();
  for (block_fault& each : block.faults) {
    sample_in_flight& sample = batch.samples[each.row];
    if (sample.corrupt || sample.out_of_memory() || sample.threw()) continue;
    sample_trouble& trouble = sample.in_trouble();
    sample.corrupt = !each.out_of_memory && each.failure == nullptr;
    sample.read_into = false;  // a decode thread describes it
    trouble.out_of_memory = each.out_of_memory;
    trouble.bytes_needed = each.bytes_needed;
    trouble.failure = each.failure;
    trouble.reason = std::move(each.reason);
    trouble.kind = each.kind;
    trouble.field_at_fault = block.of.field;
  }
  for (const block_in_flight::use& each : block.uses) {
    sample_in_flight& sample = batch.samples[each.row];
    if (block.damaged && !sample.corrupt) {
      sample.corrupt = true;
      sample_trouble& trouble = sample.in_trouble();
      trouble.reason = block.reason;
      trouble.kind = block.kind;
      trouble.read_failure = block.failure;
      trouble.unreadable = block.unreadable;
      if (block.failure == 0) trouble.field_at_fault = block.of.field;
    }
    if (is_last(sample)) events_.ready(sample, 1, batch.loop);
  }
}

// One coroutine for each group of fields.
void reader_stage::start_fetches(batch_in_flight& batch, sample_in_flight& sample, std::span<const fetch_wanted> wanted,
                                 async::scope& fetches) {
  for (std::size_t first = 0; first < wanted.size(); ++first) {
    const auto is_with = [&](const fetch_wanted& each) { return each.group == wanted[first].group; };
    if (std::any_of(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(first), is_with)) continue;
    std::vector<fetch_wanted> group;
    std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(group), is_with);
    fetches.spawn(fetch(batch, sample, std::move(group)));
  }
}

asio::awaitable<void> reader_stage::fetch(batch_in_flight& batch, sample_in_flight& sample,
                                          std::vector<fetch_wanted> wanted) {
  try {
    std::vector<std::uint16_t> fields;
    for (const fetch_wanted& each : wanted) fields.push_back(each.field);
    std::vector<std::vector<std::byte>> values = co_await dataset_.fetch(sample.pick().sample, std::move(fields));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::uint16_t field = wanted[i].field;
      std::vector<std::byte>& bytes = wanted[i].into->bytes = std::move(values[i]);
      if (bytes.size() > dataset_.fields()[field].bytes_max) {
        sample.corrupt = true;
        sample.in_trouble().reason = str_cat("fetched ", bytes.size(), " bytes where the dataset promised at most ",
                                             dataset_.fields()[field].bytes_max);
      }
      for (std::size_t p = 0; p < programs_.size(); ++p) {
        if (batch.plan.field_of(sample.row, p) == field) batch.encoded[sample.row * programs_.size() + p] = bytes;
      }
    }
  } catch (const boost::system::system_error& stopped) {
    if (stopped.code() == asio::error::operation_aborted) throw;
    sample.corrupt = true;
    sample.in_trouble().reason = stopped.what();
  } catch (const std::exception& problem) {
    sample.corrupt = true;
    sample.in_trouble().reason = problem.what();
  } catch (...) {
    sample.corrupt = true;
    sample.in_trouble().reason = current_exception_text();
  }
  if (is_last(sample)) events_.ready(sample, 1, 0);
}

void reader_stage::release(sample_in_flight& sample, std::uint32_t rows) noexcept {
  for (const std::uint32_t index : sample.reads) {
    const read_in_flight& read = sample.owner->reads[index];
    if (read.direct_to_row) continue;
    read_in_flight& holder = sample.owner->reads[read.holder];
    if (holder.users.fetch_sub(rows, std::memory_order_acq_rel) == rows) holder.memory = {};
  }
  // The last access to these reads: from here on the planner may reuse them.
  for (const std::uint32_t index : sample.reads) {
    if (sample.owner->reads[index].rows_left.fetch_sub(rows, std::memory_order_acq_rel) == rows) {
      sample.owner->reads_idle.fetch_add(1, std::memory_order_release);
    }
  }
  sample.fetched.reset();
}

reader_stage::counters reader_stage::count() const noexcept {
  return {.reads = reads_.load(std::memory_order_relaxed),
          .bytes = bytes_.load(std::memory_order_relaxed),
          .in_flight = sources_.in_flight()};
}

}  // namespace leat::stages

#include "stages/plan/memory_plan.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"
#include "io/arena/budget_refusal.hpp"
#include "io/files/source.hpp"
#include "stages/pixels/scratch.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <bit>

namespace leat {

std::string loader_plan::to_string() const {
  std::string text;
  const auto add = [&](std::string_view holder, std::size_t bytes, const auto&... why) {
    str_append(text, to_left(holder, 16), " ", to_right(bytes_text(bytes), 10), "   ", why..., "\n");
  };
  for (const line& row : lines) add(row.holder, row.bytes, row.why);
  add("in all", bytes_total, "of ", bytes_text(host_bytes_max), " allowed (", spelled(option_id::host_bytes_max), "); ",
      bytes_text(host_bytes_least, rounding::up), " would do");
  for (const std::string& warning : warnings) str_append(text, "warning: ", warning, "\n");
  if (device.bytes != 0) add(device.holder, device.bytes, device.why);
  for (const std::string& note : notes) text += note + "\n";
  return text;
}

namespace stages {
namespace {

using pixels::scratch_budget;

// Pages are handed out by the huge page where there are any.
constexpr std::size_t page_bytes = std::size_t{2} << 20;

std::size_t whole_pages(std::size_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; }

// The least that each part takes. Each pool ends on a page and must hold its largest lease. The oldest unfinished batch can then
// always go on: all other leases are returned without waiting for it.
struct least_parts {
  std::size_t read = 0;
  std::size_t batch = 0;
  std::size_t bookkeeping = 0;  ///< of that batch
  std::size_t source = 0;
  std::size_t usual_scratch = 0;
  std::size_t scratch = 0;
  std::size_t all = 0;  ///< the budget that does
};

least_parts least_of(const memory_needs& needs, std::uint32_t threads) {
  least_parts least;
  least.read = whole_pages(std::max<std::size_t>(needs.read_bytes_max, 1));
  least.batch = batch_share(needs.batch_bytes);
  least.bookkeeping = needs.batch_bookkeeping_bytes;
  least.source = needs.source_bytes_least;
  // Decode scratch: what a usual sample takes, on every thread; or the largest accepted sample on one thread and almost nothing on
  // the others.
  least.usual_scratch = needs.scratch_bytes_per_thread * threads;
  const std::size_t others = least.read + least.batch + least.bookkeeping + least.source + needs.noted_bytes();
  least.all = least.usual_scratch + others;
  if (least.usual_scratch == 0) return least;
  const std::size_t little_scratch = least.usual_scratch / 16;
  least.scratch =
      std::max(least.usual_scratch, scratch_budget::sample_bytes_max(needs.host_bytes_max) + little_scratch);
  least.all = std::max(least.all, scratch_budget::host_bytes_least(little_scratch + others));
  return least;
}

// Batches that keep a trainer fed: one with it, one being filled and one ready.
constexpr std::size_t batches_usual = 3;

// The default number of batches. Small batches have few reads, and a drive needs many to be busy: so there are 1.5 times as many
// batches as the reads in flight fill, since complete batches wait for the oldest one. More than prefetch_default may take only a
// part of the budget, and a small part where reads come from the page cache: rows then stay in the processor's cache.
std::uint64_t batches_ahead(const memory_needs& needs, std::size_t share) {
  if (needs.prefetch_batches != 0) return needs.prefetch_batches;
  const std::uint64_t part = needs.direct ? prefetch_budget_share_direct : prefetch_budget_share_buffered;
  const std::uint64_t affordable = needs.host_bytes_max / part / share;
  return std::max<std::uint64_t>(prefetch_default, std::min(needs.batches_in_flight * 3 / 2, affordable));
}

// One thread for each core, as long as their scratch takes at most half of the budget and leaves what the usual batches need. The
// quarter of the budget that is reserved for one large picture counts as theirs.
std::uint32_t threads_that_fit(const memory_needs& needs) {
  if (needs.scratch_bytes_per_thread == 0) return needs.decode_threads;
  const least_parts one = least_of(needs, 1);
  const std::size_t others =
      needs.noted_bytes() + one.read + one.source + batches_usual * (one.batch + one.bookkeeping);
  const std::size_t left = needs.host_bytes_max - std::min(others, needs.host_bytes_max);
  const std::size_t share =
      std::max(scratch_budget::sample_bytes_max(needs.host_bytes_max), std::min(needs.host_bytes_max / 2, left));
  auto threads = static_cast<std::uint32_t>(
      std::clamp<std::size_t>(share / needs.scratch_bytes_per_thread, 1, needs.decode_threads));
  while (threads > 1 && least_of(needs, threads).all > needs.host_bytes_max) --threads;
  return threads;
}

// The smallest budget for which threads_that_fit() returns all threads.
std::size_t budget_for_all_threads(const memory_needs& needs) {
  const least_parts all = least_of(needs, needs.decode_threads);
  return std::max(
      {2 * all.usual_scratch,
       needs.noted_bytes() + all.usual_scratch + all.read + all.source + batches_usual * (all.batch + all.bookkeeping),
       all.all});
}

}  // namespace

std::size_t batch_share(std::size_t batch_bytes) {
  return batch_bytes > page_bytes / 2 ? whole_pages(batch_bytes)
                                      : std::bit_ceil(std::max(batch_bytes, io::alignment_max_bytes));
}

std::size_t read_bytes_wanted(const memory_needs& needs, std::uint32_t threads) {
  // One per read in flight, two per decode thread (in work and next in line), one being planned.
  const std::size_t reads = needs.queue_depth + 2 * std::size_t{threads} + 1;
  return whole_pages(std::max(needs.read_bytes_max, reads * needs.read_bytes_mean));
}

memory_plan divide_memory(const memory_needs& needs) {
  const std::uint32_t threads = needs.threads_automatic ? threads_that_fit(needs) : needs.decode_threads;
  const auto [read_least, batch_least, bookkeeping, source_least, usual_scratch, scratch_least, least] =
      least_of(needs, threads);
  if (least > needs.host_bytes_max) {
    throw io::budget_refusal(
        str_cat(spelled(option_id::host_bytes_max), " of ", bytes_text(needs.host_bytes_max),
                " is too small: one batch takes ", bytes_text(batch_least),
                needs.mosaic_bytes == 0 ? ""
                                        : str_cat(" (of it ", bytes_text(needs.mosaic_bytes),
                                                  " for boxes of mosaics, which boxes::bytes_max() bounds)"),
                ", what is known of its rows ", bytes_text(bookkeeping), ", the largest read ", bytes_text(read_least),
                ", the decoders of ", threads, threads == 1 ? " thread " : " threads ",
                bytes_text(least - read_least - batch_least - bookkeeping - source_least - needs.noted_bytes()),
                source_least == 0 ? "" : ", the network ", source_least == 0 ? "" : bytes_text(source_least),
                needs.timeline_bytes == 0 ? "" : str_cat(", the timeline ", bytes_text(needs.timeline_bytes)),
                needs.record_bytes == 0 ? "" : str_cat(", the record ", bytes_text(needs.record_bytes)),
                "; give at least ", bytes_text(least, rounding::up), " (", least, " bytes), or a smaller batch",
                threads > 1 && usual_scratch != 0 ? str_cat(", or fewer ", spelled(option_id::decode_threads)) : ""));
  }
  std::size_t left = needs.host_bytes_max - scratch_least - read_least - batch_least - bookkeeping - source_least -
                     needs.noted_bytes();

  memory_plan plan;
  const std::size_t read_wanted = read_bytes_wanted(needs, threads);
  // Decode scratch: twice what a usual sample takes, so that a large picture does not wait until all other threads are idle.
  const std::size_t scratch_wanted = std::max(2 * usual_scratch, scratch_least);

  // The usual batches first; then reads and scratch; then more batches.
  std::uint64_t batches_wanted = batches_ahead(needs, batch_least + bookkeeping) + 1;
  if (needs.batches_to_come != 0) batches_wanted = std::min(batches_wanted, needs.batches_to_come);
  batches_wanted = std::max<std::uint64_t>(batches_wanted, 1);
  std::uint64_t batches = 1;
  const auto add_batches = [&](std::uint64_t up_to) {
    while (batches < up_to && left >= batch_least + bookkeeping) {
      left -= batch_least + bookkeeping;
      ++batches;
    }
  };
  add_batches(std::min<std::uint64_t>(batches_wanted, batches_usual));
  const std::size_t read_more = std::min(left / page_bytes * page_bytes, read_wanted - read_least);
  left -= read_more;
  const std::size_t scratch_more = std::min(left, scratch_wanted - scratch_least);
  left -= scratch_more;
  plan.source_bytes = source_least + std::min(left, needs.source_bytes_wanted - source_least);
  left -= plan.source_bytes - source_least;
  const std::size_t kept_wanted = whole_pages(needs.blocks_kept * needs.block_bytes_max);
  plan.kept_bytes = std::min(left / page_bytes * page_bytes, kept_wanted);
  plan.kept_missing = kept_wanted - plan.kept_bytes;
  left -= plan.kept_bytes;
  add_batches(batches_wanted);
  // Reading is ahead of decoding: blocks of the next pool come while those of the one before are still used.
  if (needs.blocks_by_order) plan.kept_bytes += std::min(left / page_bytes * page_bytes, kept_wanted);

  plan.batches = static_cast<std::uint32_t>(batches);
  plan.batches_missing = batches < batches_wanted;
  plan.batch_bytes = batches * batch_least;
  plan.read_bytes = read_least + read_more;
  plan.scratch_bytes = scratch_least + scratch_more;
  plan.decode_threads = threads;

  std::string threads_text = str_cat(threads, threads == 1 ? " thread" : " threads");
  if (threads < needs.decode_threads) {
    str_append(threads_text, " (of ", needs.decode_threads, " cores; all with ", spelled(option_id::host_bytes_max),
               " of ", bytes_text(budget_for_all_threads(needs), rounding::up), ", or ",
               spelled(option_id::decode_threads), " given)");
  }
  loader_plan& shown = plan.shown;
  shown.lines = {
      {"batches", plan.batch_bytes,
       str_cat(batches, " x ", bytes_text(batch_least), ": 1 with the consumer, ", batches - 1, " ahead of it")},
      {"read buffers", plan.read_bytes,
       str_cat(needs.queue_depth, " in flight, ", 2 * threads, " at the decoders, 1 being planned; ",
               bytes_text(needs.read_bytes_mean), " each, the largest ", bytes_text(needs.read_bytes_max))},
      {"decode scratch", plan.scratch_bytes,
       str_cat(threads_text, " x ", bytes_text(needs.scratch_bytes_per_thread),
               " usually, a quarter of all that is allowed for one large picture",
               needs.expanded_bytes_per_thread == 0
                   ? std::string()
                   : str_cat("; of it ", bytes_text(needs.expanded_bytes_per_thread), " for expanded blocks"),
               needs.target_bytes_per_thread == 0 ? std::string()
                                                  : str_cat("; of it ", bytes_text(needs.target_bytes_per_thread),
                                                            " for masks, boxes and points and the numbers in them"))}};
  if (kept_wanted != 0) {
    shown.lines.push_back({"kept blocks", plan.kept_bytes,
                           str_cat(needs.blocks_kept, " x ", bytes_text(needs.block_bytes_max),
                                   plan.kept_bytes < kept_wanted   ? " wanted"
                                   : plan.kept_bytes > kept_wanted ? ", and of the pool before"
                                                                   : "",
                                   ": expanded, for the batches that follow, as long as no read lacks memory")});
  }
  if (plan.source_bytes != 0) {
    shown.lines.push_back(
        {"network", plan.source_bytes,
         plan.source_bytes == needs.source_bytes_wanted
             ? needs.source_what
             : str_cat(needs.source_what, "; for all of that ", bytes_text(needs.source_bytes_wanted))});
  }
  const std::size_t bookkeeping_bytes = batches * bookkeeping;
  if (bookkeeping != 0) {
    shown.lines.push_back({"bookkeeping", bookkeeping_bytes,
                           str_cat(batches, " x ", bytes_text(bookkeeping),
                                   ": of the rows of a batch that are under way, and their reads")});
  }
  if (needs.timeline_bytes != 0) shown.lines.push_back({"timeline", needs.timeline_bytes, "as asked for"});
  if (needs.record_bytes != 0)
    shown.lines.push_back({"record", needs.record_bytes, "a block of each I/O thread, and one"});
  shown.bytes_total = plan.batch_bytes + plan.read_bytes + plan.kept_bytes + plan.scratch_bytes + plan.source_bytes +
                      bookkeeping_bytes + needs.noted_bytes();
  shown.host_bytes_max = needs.host_bytes_max;
  shown.batches = plan.batches;
  shown.batch_bytes = needs.batch_bytes;
  shown.host_bytes_least = needs.threads_automatic ? least_of(needs, 1).all : least;
  shown.decode_threads = threads;
  return plan;
}

namespace {

// An error for those who asked for it: the batches are the same, and another machine that resumes the run may have less memory.
void check_pool(const memory_needs& needs, memory_plan& plan) {
  if (!needs.blocks_by_order || plan.kept_missing == 0) return;
  // More memory is also for more batches and reads, up to what these want.
  memory_needs enough = needs;
  for (std::size_t missing = plan.kept_missing; missing != 0; missing = divide_memory(enough).kept_missing) {
    enough.host_bytes_max += missing;
  }
  const std::string found =
      str_cat("the order goes through ", needs.blocks_kept, " blocks of up to ", bytes_text(needs.block_bytes_max),
              " at a time, and the budget of ", bytes_text(needs.host_bytes_max), " keeps ",
              bytes_text(plan.kept_bytes), " of them");
  const std::string remedy =
      str_cat(spelled(option_id::host_bytes_max), " of ", bytes_text(enough.host_bytes_max, rounding::up), " (",
              enough.host_bytes_max, " bytes) keeps all");
  if (needs.keeps_pool) {
    throw io::budget_refusal(
        str_cat(found, "; ", remedy, ", or lower ", spelled(option_id::shuffle_blocks), ", or give the order itself (",
                spelled(option_id::order_shuffled_blocks, "n"), "), which expands the others again"),
        option_id::shuffle_blocks);
  }
  plan.shown.warnings.push_back(
      str_cat(found, ", so that the others are expanded again; ", remedy, ", or take fewer blocks at a time"));
}

}  // namespace

memory_plan plan_memory(memory_needs needs, memory_available available, std::uint32_t local_ranks) {
  if (local_ranks > 1) {
    available.bytes /= local_ranks;
    str_append(available.said_by, ", divided by ", local_ranks, " local ranks");
  }
  const bool asked = needs.host_bytes_max != 0;
  if (!asked) {
    const std::uint64_t half = available.bytes / 2;
    const bool is_tight = available.bytes != 0 && half < host_bytes_usual;
    needs.host_bytes_max = is_tight ? static_cast<std::size_t>(half) : host_bytes_usual;
    // The smallest plan may take more than half, and no more than there is: the kernel kills who does.
    const std::size_t least = least_of(needs, needs.threads_automatic ? 1 : needs.decode_threads).all;
    if (is_tight && least > available.bytes) {
      throw io::budget_refusal(
          str_cat("one batch and what it takes to load it are ", bytes_text(least, rounding::up),
                  " of memory, where this process has ", bytes_text(available.bytes), " (", available.said_by,
                  "): lower ", spelled(option_id::batch_size), ", or allow the process more; ",
                  spelled(option_id::host_bytes_max), " of ", least, " tries it all the same"),
          option_id::batch_size);
    }
    if (is_tight) needs.host_bytes_max = std::max(needs.host_bytes_max, least);
  }
  memory_plan plan = divide_memory(needs);
  check_pool(needs, plan);
  if (available.bytes != 0 && plan.shown.bytes_total > available.bytes) {
    plan.shown.warnings.push_back(str_cat(
        "the loader may come to take ", bytes_text(plan.shown.bytes_total), " of memory, where this process has ",
        bytes_text(available.bytes), " (", available.said_by, "): the kernel kills who takes more; ",
        asked ? str_cat("lower ", spelled(option_id::host_bytes_max), ", or allow the process more")
              : "allow the process more, or load smaller batches"));
  }
  return plan;
}

}  // namespace stages
}  // namespace leat

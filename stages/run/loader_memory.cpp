#include "stages/run/loader_memory.hpp"

#include "base/cores_quota.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "io/arena/budget_refusal.hpp"
#include "io/files/direct_policy.hpp"
#include "io/files/queue_depth.hpp"
#include "io/files/source.hpp"
#include "stages/device/mix.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/plan/lowering.hpp"
#include "stages/plan/shared_members.hpp"
#include "stages/run/batch_in_flight.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

bool reads_in_pieces(const datasets::dataset_model& dataset, const field_program& program) {
  return std::any_of(program.reads().begin(), program.reads().end(),
                     [&](std::uint16_t field) { return datasets::reads_of_value_max(dataset.fields()[field]) > 1; });
}

// A sample counts what it waits for in 16 bits, and reads are among it.
constexpr std::uint64_t blocks_of_sample_max = 60'000;

// Rows are planned some at a time, and a read that waits for memory keeps those behind it from being planned: reads are no
// more than have memory, and one step's. Those that need none, and those of ragged rows, which are planned at once, are as
// many as there are.
bookkeeping bookkeeping_of(const run_spec& run, const loader_options& options, const memory_needs& needs) {
  const datasets::dataset_model& dataset = run.dataset();
  const batch_layout& layout = *run.layout();
  const planner& plan = run.planner();
  std::vector<bool> fetched(dataset.fields().size(), false);
  bool leased = plan.in_steps();
  std::size_t blocks = 0;
  std::uint64_t blocks_of_sample = 0;
  std::size_t picked = 0;  // values that programs pick, each another one
  std::size_t in_two = 0;  // values that may be read in two pieces
  for (const auto& program : run.programs()) {
    if (program->reads().empty()) continue;
    const std::uint16_t first = program->reads().front();
    if (program->facets().picking != nullptr) {
      ++picked;
    } else {
      fetched[first] = lower(dataset, first).is_fetched;
    }
    std::uint64_t in_row = 0;
    for (const std::uint16_t field : program->reads()) {
      in_row = std::max(in_row, blocks_wanted(dataset.fields()[field], *program));
    }
    blocks_of_sample += in_row;
    if (blocks_of_sample > blocks_of_sample_max) {
      throw error(errc::limit,
                  str_cat("a sample lies in ", blocks_of_sample, " chunks of its fields together; leat has up to ",
                          blocks_of_sample_max, ": take fewer fields or a crop, or write them anew in larger chunks"));
    }
    blocks += layout.rows_max() * in_row;
    leased = leased && !reads_into_rows(dataset, *program);
    if (reads_in_pieces(dataset, *program) && in_two < fetched.size()) ++in_two;
  }
  const auto reads = static_cast<std::size_t>(std::count(fetched.begin(), fetched.end(), true)) + picked + in_two;
  bookkeeping all{.rows = layout.rows_max(),
                  .reads = reads * layout.rows_max(),
                  .programs = run.programs().size(),
                  .ragged = layout.ragged_count(),
                  .blocks = blocks,
                  .pictures = layout.picture_count(),
                  .digests = options.digests,
                  .names = options.names,
                  .receipts = !options.receipts.empty(),
                  .packed = run.packing() != nullptr};
  all.planned = plan.in_steps() ? std::min<std::size_t>(all.reads, reads * planner::rows_at_once) : all.reads;
  if (leased) {
    const std::size_t with_memory = read_bytes_wanted(needs, needs.decode_threads) / io::alignment_max_bytes;
    all.reads = std::min(all.reads, with_memory + reads * planner::rows_at_once);
  }
  return all;
}

// Orders that take blocks one pool after the other say of how many the samples of neighbouring batches are. Any other order comes back to
// all of them, which are kept where they are few: a packed member of an archive is one.
//   each   blocks that hold one of the order's: of each chunked field, as many as a row lies in
void keep_blocks(const run_spec& run, std::uint64_t each, memory_needs& needs) {
  constexpr std::uint64_t share = 2;  // of the budget
  needs.blocks_kept = run.order().blocks_near() * run.nodes_of_rank() * each;
  needs.blocks_by_order = run.order().blocks_near() > 1;
  if (needs.blocks_kept != 0) return;
  const std::uint64_t budget = needs.host_bytes_max != 0 ? needs.host_bytes_max : host_bytes_usual;
  const std::uint64_t blocks = run.share_of_rank(run.dataset().blocks().size()) * each;
  if (blocks <= budget / share / needs.block_bytes_max) needs.blocks_kept = blocks;
}

// Of the dataset's sources, what keeps the one busy that takes most.
io::source_depth depth_of(const datasets::dataset_model& dataset) {
  io::source_depth most;
  for (const auto& each : dataset.sources()) {
    const io::source_depth one = each->in_flight();
    most.reads = std::max(most.reads, one.reads);
    most.bytes = std::max(most.bytes, one.bytes);
  }
  return most;
}

void count_sources(const datasets::dataset_model& dataset, std::uint32_t io_threads, memory_needs& needs) {
  std::size_t sources = 0;
  for (const auto& each : dataset.sources()) {
    const io::source_memory one = each->memory();
    if (one.bytes_wanted == 0) continue;
    needs.source_bytes_least += one.bytes_least * io_threads;
    needs.source_bytes_wanted += one.bytes_wanted * io_threads;
    if (sources++ == 0) needs.source_what = one.what;
  }
  if (sources * io_threads > 1) {
    needs.source_what = str_cat(io_threads, io_threads == 1 ? " I/O thread x " : " I/O threads x ", sources,
                                sources == 1 ? " source x (" : " sources x (", needs.source_what, ")");
  }
}

// Nothing where the budget is too small all the same.
template <class Plan>
std::optional<memory_plan> plan_without_largest(const Plan& plan) {
  try {
    return plan();
  } catch (const io::budget_refusal&) {
    return std::nullopt;
  }
}

// Whether a corrupt sample would have ended the run until then.
bool raised_before(const loader_state& state) {
  if (state.descriptions == nullptr) return false;
  const auto& entries = state.descriptions->of(state_descriptions::part::options).entries();
  return std::any_of(entries.begin(), entries.end(),
                     [](const description::entry& each) { return each.key == "on_corrupt" && each.value == "raise"; });
}

template <class Plan>
memory_plan plan_as_decided(run_spec& run, const decided_limits& decided, const Plan& plan) {
  const std::uint64_t value_bytes = decided.limits.value_bytes;
  if (value_bytes != sample_limits::none) run.leave_out_above(value_bytes);
  try {
    memory_plan made = plan();
    if (value_bytes != sample_limits::none) {
      made.shown.warnings.push_back(str_cat("samples with a value of more than ", bytes_text(value_bytes),
                                            " are corrupt, as in ",
                                            decided.said_by.empty() ? "the run" : decided.said_by));
    }
    return made;
  } catch (const io::budget_refusal& refused) {
    if (decided.said_by.empty()) throw;
    throw io::budget_refusal(
        str_cat(
            refused.what(), "; the run of ", decided.said_by, " has loaded ",
            value_bytes == sample_limits::none ? "all values" : str_cat("values of up to ", bytes_text(value_bytes)),
            ", so that a smaller budget would leave out other samples"),
        refused.option());
  }
}

// A contract: fewer threads are started, so that nobody can let more work.
void limit_cores(const loader_options& options, std::uint32_t io_threads, memory_needs& needs) {
  if (options.cores_max <= io_threads) {
    throw error(errc::usage,
                str_cat("a cores_max of ", options.cores_max, " leaves no decode thread beside ", io_threads,
                        io_threads == 1 ? " I/O thread" : " I/O threads", "; give at least ", io_threads + 1),
                option_id::decode_threads);
  }
  const std::uint32_t left = options.cores_max - io_threads;
  if (options.decode_threads > left) {
    throw error(errc::usage,
                str_cat(spelled(option_id::decode_threads), " is ", options.decode_threads, ", and a cores_max of ",
                        options.cores_max, " leaves ", left, " beside ", io_threads,
                        io_threads == 1 ? " I/O thread" : " I/O threads", "; raise cores_max, or give fewer"),
                option_id::decode_threads);
  }
  needs.decode_threads = std::min(needs.decode_threads, left);
}

// A network's sources take memory for each thread, and are not bound by copies from the page cache.
bool reads_files(const datasets::dataset_model& dataset) {
  const auto& sources = dataset.sources();
  return !sources.empty() && std::none_of(sources.begin(), sources.end(),
                                          [](const auto& source) { return source->memory().bytes_wanted != 0; });
}

}  // namespace

std::uint32_t io_threads_at_first(const run_spec& run, const loader_options& options) {
  if (options.reader.io_threads != 0) return options.reader.io_threads;
  const auto& programs = run.programs();
  const bool leaves_packs = std::any_of(programs.begin(), programs.end(), [&](const auto& program) {
    const std::optional<decodes_left> left = program->decodes_left_to_device();
    return left && left->packs && reads_in_pieces(run.dataset(), *program);
  });
  return leaves_packs && reads_files(run.dataset())
             ? io_threads_for_device(cores_of_local_rank(options.world.local_size))
             : 1;
}

std::uint32_t io_threads_of(const run_spec& run, const loader_options& options) {
  const std::uint32_t first = io_threads_at_first(run, options);
  // A cores_max is divided at the start: threads that may never read would be missed by the decoders.
  const bool may_grow = options.tune == tuning::on && options.reader.io_threads == 0 && options.cores_max == 0 &&
                        reads_files(run.dataset());
  return may_grow ? std::max(first, io_threads_to_try(cores_of_local_rank(options.world.local_size))) : first;
}

memory_needs needs_of(const run_spec& run, const loader_options& options, const memory_available& available,
                      std::uint64_t batches_to_come, std::uint32_t cores) {
  const datasets::dataset_model& dataset = run.dataset();
  const batch_layout& layout = *run.layout();
  memory_needs needs{.host_bytes_max = options.host_bytes_max,
                     .keeps_pool = options.shuffle_blocks != 0,
                     .decode_threads = options.decode_threads != 0 ? options.decode_threads
                                                                   : cores_of_local_rank(options.world.local_size),
                     .threads_automatic = options.decode_threads == 0,
                     .prefetch_batches = options.prefetch_batches};
  if (options.decode_threads == 0 && cores != 0) needs.decode_threads = std::min(needs.decode_threads, cores);
  if (options.cores_max != 0) limit_cores(options, io_threads_of(run, options), needs);
  const std::uint64_t value_bytes_max = run.planner().value_bytes_max();
  std::uint64_t read_bytes_max = 0;
  std::uint64_t expanded_bytes = 0;
  std::uint64_t blocks_of_rows = 0;
  std::uint64_t read_bytes_total = 0;
  std::vector<bool> counted(dataset.fields().size(), false);
  std::vector<bool> seen(dataset.fields().size(), false);
  for (const auto& program : run.programs()) {
    if (reads_into_rows(dataset, *program)) continue;
    // It reads any one of its fields, whatever the others read.
    const bool picks = program->facets().picking != nullptr;
    std::uint64_t largest = 0;
    for (const std::uint16_t f : program->reads()) {
      if (counted[f] && !picks) continue;
      counted[f] = counted[f] || !picks;
      const bool is_new = !seen[f];
      seen[f] = true;
      const field_info& info = dataset.fields()[f];
      // A block has a lease of its own, for what is read and what it becomes.
      const lowered_field how = lower(dataset, f);
      if (how.in_blocks && is_new) {
        blocks_of_rows += blocks_wanted(info, *program);
        needs.block_bytes_max = std::max<std::size_t>(
            needs.block_bytes_max, io::aligned_bytes(1, std::min(info.stored_block_bytes_max, value_bytes_max)) +
                                       io::aligned_bytes(0, std::min(info.decoded_block_bytes_max, value_bytes_max)));
      }
      // What is awaited takes a lease of bytes_max, whatever is left out.
      const std::uint64_t of_read = how.is_awaited ? how.read_bytes_max : std::min(how.read_bytes_max, value_bytes_max);
      largest = std::max(largest, of_read);
      if (is_new) read_bytes_total += info.bytes_total;
    }
    read_bytes_max += largest;
    expanded_bytes += expanded_bytes_of(dataset, *program, value_bytes_max);
  }
  if (needs.block_bytes_max != 0) keep_blocks(run, blocks_of_rows, needs);
  needs.scratch_bytes_per_thread = scratch_bytes_of(run.programs());
  needs.expanded_bytes_per_thread = expanded_bytes;
  for (const auto& program : run.programs()) {
    if (program->facets().following != nullptr) needs.target_bytes_per_thread += program->facts().scratch_bytes;
  }
  needs.scratch_bytes_per_thread += expanded_bytes;
  if (options.digests) needs.scratch_bytes_per_thread += layout.made_row_bytes();
  needs.scratch_bytes_per_thread += mixer::scratch_bytes(layout, run.programs(), options.mix, options.digests);
  const std::vector<std::size_t> ragged = run.planner().largest_ragged_batch();
  needs.batch_bytes = layout.bytes(ragged);
  needs.mosaic_bytes = run.planner().mosaic_bytes(ragged);
  // Unaligned at both ends, and neighbours read together with what lies between them.
  needs.read_bytes_max = io::aligned_bytes(1, read_bytes_max) + run.programs().size() * planner::gap_bytes_max;
  const std::uint64_t mean = read_bytes_total / std::max<std::uint64_t>(dataset.size(), 1);
  needs.read_bytes_mean = std::max(io::aligned_bytes(1, mean), needs.block_bytes_max);
  needs.read_bytes_max = std::max(needs.read_bytes_max, needs.block_bytes_max);
  if (run.order().in_order() && read_bytes_max != 0) {
    constexpr std::uint64_t joined = io::aligned_bytes(1, planner::joined_bytes_max);
    needs.read_bytes_max = std::max<std::uint64_t>(needs.read_bytes_max, joined);
    needs.read_bytes_mean = std::max<std::uint64_t>(needs.read_bytes_mean, joined);
  }
  const io::source_depth wanted = depth_of(dataset);
  const auto depth_at = [&](std::uint64_t read_bytes) {
    return options.reader.queue_depth != 0 ? options.reader.queue_depth
                                           : io::queue_depth::of(read_bytes, wanted.bytes, wanted.reads);
  };
  const std::uint32_t depth = depth_at(needs.read_bytes_mean);
  const std::uint32_t io_threads = io_threads_of(run, options);
  needs.queue_depth = depth * io_threads;
  // As sums hold it: a timeline larger than the budget is refused by them.
  needs.timeline_bytes = std::min(options.timeline.bytes, std::numeric_limits<std::size_t>::max() / 4);
  if (!options.record.empty()) needs.record_bytes = read_recorder::memory_bytes(io_threads);
  needs.batch_bookkeeping_bytes = bookkeeping_of(run, options, needs).bytes();
  const std::uint32_t rows_max = layout.rows_max();
  // In order, a batch's neighbours are few reads; at random each row is one.
  const std::uint64_t batch_read_bytes = run.epoch_bytes() / std::max<std::uint64_t>(dataset.size(), 1) * rows_max;
  const std::uint64_t reads = run.order().in_order()
                                  ? 1 + std::min<std::uint64_t>(batch_read_bytes / planner::joined_bytes_max, rows_max)
                                  : rows_max;
  const std::uint64_t reads_in_flight = depth_at(batch_read_bytes / reads);
  needs.batches_in_flight = (reads_in_flight * io_threads + reads - 1) / reads;
  io::direct_policy direct(options.reader.direct);
  direct.set_epoch_bytes(run.epoch_bytes(), available);
  // What comes over a network waits as for a drive, and no page cache has it.
  needs.direct = direct.wants_direct() || wanted.bytes > io::queue_depth::bytes;
  needs.batches_to_come = batches_to_come;
  count_sources(dataset, io_threads, needs);
  return needs;
}

std::optional<decided_limits> limits_resumed(const loader_options& options) {
  if (options.on_corrupt == corrupt_policy::raise || !options.resume || !options.resume->limits) return std::nullopt;
  return decided_limits{.limits = *options.resume->limits,
                        .at_least = raised_before(*options.resume),
                        .said_by = options.resume->file.empty() ? "the state" : options.resume->file};
}

// Under raise a part of a run may have a smaller budget than those before it: what they have delivered stays.
sample_limits limits_to_save(const loader_options& options, const sample_limits& own) {
  sample_limits all = own;
  if (options.on_corrupt == corrupt_policy::raise && options.resume && options.resume->limits) {
    all.scratch_bytes = std::max(all.scratch_bytes, options.resume->limits->scratch_bytes);
  }
  return all;
}

memory_plan memory_of(run_spec& run, const loader_options& options, const memory_available& available,
                      std::uint64_t batches_to_come, const std::optional<decided_limits>& decided,
                      std::uint32_t cores) {
  const auto with_limits = [&](memory_plan made) {
    if (!decided && options.on_corrupt != corrupt_policy::raise && options.resume) {
      made.shown.warnings.push_back(
          "the state does not say which samples were too large for the budget of its run: with another budget others "
          "may be corrupt");
    }
    made.limits = {.scratch_bytes = pixels::scratch_budget::sample_bytes_max(made.shown.host_bytes_max),
                   .value_bytes = run.planner().value_bytes_max()};
    if (decided && decided->at_least) {
      made.limits.scratch_bytes = std::max(made.limits.scratch_bytes, decided->limits.scratch_bytes);
    } else if (decided) {
      made.limits.scratch_bytes = decided->limits.scratch_bytes;
    }
    return made;
  };
  const auto plan = [&] {
    return with_limits(
        plan_memory(needs_of(run, options, available, batches_to_come, cores), available, options.world.local_size));
  };
  if (decided) return plan_as_decided(run, *decided, plan);
  if (options.on_corrupt == corrupt_policy::raise) return plan();
  try {
    return plan();
  } catch (const io::budget_refusal&) {
    const std::uint64_t budget = options.host_bytes_max != 0 ? options.host_bytes_max
                                 : available.bytes != 0 ? std::min<std::uint64_t>(host_bytes_usual, available.bytes / 2)
                                                        : host_bytes_usual;
    run.leave_out_above(pixels::scratch_budget::sample_bytes_max(budget));
    std::optional<memory_plan> without = plan_without_largest(plan);
    if (!without) throw;
    without->shown.warnings.push_back(
        str_cat("samples with a value of more than ", bytes_text(run.planner().value_bytes_max()),
                " are corrupt: a quarter of host_bytes_max, which would have to be larger "
                "for a batch of the largest ones"));
    return *std::move(without);
  }
}

}  // namespace leat::stages

// The ring's reads: cut into chunks, handed to the kernel as far as the depth allows, put together again.
#include "base/clock.hpp"
#include "base/errno_table.hpp"
#include "base/errno_words.hpp"
#include "base/text.hpp"
#include "io/files/read_error.hpp"
#include "io/ring/ring_loop.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <limits>
#include <utility>

namespace leat::io::ring {

namespace {

// memlock comes back asynchronously when another ring has gone: ENOMEM right after it, fine 300 ms later.
constexpr std::uint64_t register_again_ns = 300'000'000;
constexpr unsigned register_tries_max = 4;

}  // namespace

void ring_loop::start(file_set& set, std::span<read_operation* const> operations) {
  const std::uint64_t now = now_ns();
  for (read_operation* const operation : operations) {
    assert(operation->done != nullptr);
    assert(operation->bytes == 0 || operation->into.bytes.size() >= aligned_bytes(operation->offset, operation->bytes));
    assert(reinterpret_cast<std::uintptr_t>(operation->into.bytes.data()) % alignment_max_bytes == 0);
    pending_read& taken = reads_.take();
    taken.operation = operation;
    taken.set = &set;
    taken.slot = nullptr;
    taken.file_end = std::numeric_limits<std::uint64_t>::max();
    taken.chunks = 0;
    taken.tries = 0;
    taken.failure = 0;
    taken.ranged = taken.cancelled = taken.refused = taken.finished = false;
    operation->state = &taken;
    operation->started_ns = now;
    operation->failure = 0;
    operation->data = {};
    ++set.operations;
    count_.in_flight.add(1);
    if (failing_) {
      taken.failure = loop_failed;
      finish(taken);
    } else if (operation->bytes == 0) {
      finish(taken);
    } else if (!place(taken)) {
      enqueue(unplaced_, taken);
    }
  }
}

void ring_loop::make_ready(pending_read& ready) {
  const std::uint64_t unit = ready.slot->mode.alignment;
  assert(std::has_single_bit(unit));  // masks, since a division takes as long as the rest of this function
  const file_range range = range_of(*ready.set, *ready.operation, unit);
  ready.begin = ready.issued = range.begin;
  ready.end = range.end;
  ready.is_whole = range.is_whole;
  ready.ranged = true;
  enqueue(ready_, ready);
}

bool ring_loop::admits(std::uint64_t bytes) const noexcept {
  const std::size_t reads = in_kernel_.size();
  const unsigned depth = context_.queue_depth.load(std::memory_order_relaxed);
  return depth != 0 ? reads < depth : queue_depth::admits(reads, bytes_in_kernel_, bytes);
}

void ring_loop::pump() {
  while (!ready_.empty()) {
    pending_read& next = ready_.front();
    std::uint64_t bytes = std::min(next.end - next.issued, chunk_bytes_max);
    const read_target& into = next.operation->into;
    if (into.piece != read_target::no_piece) {
      // A read goes to one registered buffer. It is cut at the end of each, and its parts are read at the same time.
      const std::byte* const at = into.bytes.data() + (next.issued - next.begin);
      const std::size_t to_piece_end = arena::bytes_to_piece_end(at);
      if (bytes > to_piece_end) {
        const std::span<std::byte> buffer =
            context_.memory->buffer_of(arena::piece_at(at, into.bytes.data(), into.piece)).memory;
        const std::size_t to_end =
            buffer.empty() ? to_piece_end : static_cast<std::size_t>(buffer.data() + buffer.size() - at);
        bytes = std::min<std::uint64_t>(bytes, to_end);
      }
    }
    if (!admits(bytes)) return;
    if (insists_on_buffers_ && !may_issue(next)) {
      next.failure = ENOMEM;
      dequeue(next);
      if (next.chunks == 0) finish(next);
      continue;
    }
    issue(next, bytes);
  }
}

/// Where registered buffers are insisted on: whether the next bytes of a read go to one, or to what will be one once a device
/// has pinned it.
bool ring_loop::may_issue(const pending_read& asking) {
  const read_target& into = asking.operation->into;
  if (into.piece == read_target::no_piece) return false;
  const std::byte* const at = into.bytes.data() + (asking.issued - asking.begin);
  const std::uint32_t piece = arena::piece_at(at, into.bytes.data(), into.piece);
  return context_.memory->awaits_pinning(piece) || registered(piece).has_value();
}

void ring_loop::issue(pending_read& from, std::uint64_t bytes) {
  chunk& part = chunks_.take();
  part.owner = &from;
  part.offset = from.issued;
  part.bytes = bytes;
  part.got = 0;
  part.memory = from.operation->into.bytes.data() + (from.issued - from.begin);
  from.issued += bytes;
  ++from.chunks;
  if (from.issued == from.end) dequeue(from);
  ask(part);
}

void ring_loop::ask(chunk& part) {
  const pending_read& from = *part.owner;
  const read_target& into = from.operation->into;
  std::byte* const memory = part.memory + part.got;
  const auto bytes = static_cast<unsigned>(part.bytes - part.got);
  const std::uint64_t offset = part.offset + part.got;
  const std::uint32_t piece =
      into.piece == read_target::no_piece ? into.piece : arena::piece_at(memory, into.bytes.data(), into.piece);
  const std::optional<std::uint32_t> buffer = registered(piece);
  io_uring_sqe* const sqe = ring_->next_sqe();
  if (buffer) {
    io_uring_prep_read_fixed(sqe, from.slot->descriptor, memory, bytes, offset, static_cast<int>(*buffer));
  } else {
    io_uring_prep_read(sqe, from.slot->descriptor, memory, bytes, offset);
  }
  if (direct_descriptors_) io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
  io_uring_sqe_set_data64(sqe, reinterpret_cast<std::uintptr_t>(&part) | tag_chunk);
  part.asked_from = part.got;
  part.since_ns = now_;
  in_kernel_.push_back(part);
  bytes_in_kernel_ += bytes;
}

/// The number of the registered buffer that holds a piece of the arena; registers it first if necessary. Empty if that fails.
std::optional<std::uint32_t> ring_loop::registered(std::uint32_t piece) {
  if (piece >= buffer_of_.size()) return std::nullopt;
  if (buffer_of_[piece] != 0) return buffer_of_[piece] - 1;
  // Once refused, all wait for a while; what is refused again and again will not be had.
  if (register_refusals_ > register_tries_max || now_ < register_again_at_ns_) return std::nullopt;
  const auto [memory, first_piece] = context_.memory->buffer_of(piece);
  if (memory.empty()) return std::nullopt;  // not from this arena
  if (context_.memory->awaits_pinning(piece)) return std::nullopt;
  const int failure = ring_->register_buffer(first_piece, memory);
  const mutex_lock lock(report_mutex_);
  if (failure == 0) {
    const std::size_t pieces = (memory.size() + arena::piece_bytes - 1) / arena::piece_bytes;
    const std::size_t last = std::min(first_piece + pieces, buffer_of_.size());
    for (std::size_t i = first_piece; i < last; ++i) buffer_of_[i] = first_piece + 1;
    ++buffers_registered_;
    if (register_refusals_ != 0) {
      buffers_report_.use = "partly";
    }
    return first_piece;
  }
  ++register_refusals_;
  register_again_at_ns_ = now_ + register_again_ns;
  std::string why = str_cat(errno_name(failure), " for a buffer of ", memory.size() >> 20, " MiB");
  if (failure == ENOMEM) {
    rlimit limit{};
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    str_append(why, ": RLIMIT_MEMLOCK is ", limit.rlim_cur >> 10,
               " KiB; try `ulimit -l unlimited`, or give the process CAP_IPC_LOCK");
  }
  buffers_report_ = {buffers_registered_ == 0 ? "off" : "partly", why};
  return std::nullopt;
}

void ring_loop::on_chunk(chunk& part, int result) {
  pending_read& owner = *part.owner;
  kernel_times_.record_alone(now_ - part.since_ns);
  bytes_in_kernel_ -= part.bytes - part.asked_from;
  if (part.overdue) {
    late_chunks_.remove(part);
    end_overdue(part.overdue);
  } else {
    in_kernel_.remove(part);
  }

  const bool given_up = owner.failure != 0 || owner.cancelled || owner.refused;
  if (result > 0) {
    count_.bytes_read.add(static_cast<std::uint64_t>(result));
    part.got += static_cast<std::uint64_t>(result);
    const std::uint64_t reached = part.offset + part.got;
    if (owner.is_whole && reached > owner.wanted_end() && owner.failure == 0) owner.failure = EFBIG;
    if (part.got == part.bytes || reached >= owner.wanted_end()) return end_chunk(part);
    if (given_up || failing_) {
      if (owner.failure == 0) owner.failure = owner.cancelled ? ECANCELED : failing_ ? loop_failed : 0;
      return end_chunk(part);
    }
    // O_DIRECT goes on from a multiple of the alignment. An end in between is the file's own; reading on from before it
    // gives the same again, and no progress is the end.
    part.got -= reached % owner.slot->mode.alignment;
    if (part.got > part.asked_from) {
      count_.retries.add(1);
      return ask(part);
    }
    part.got += reached % owner.slot->mode.alignment;
    result = 0;
  }
  if (result == 0) {
    owner.file_end = std::min(owner.file_end, part.offset + part.got);
    if (owner.file_end < owner.wanted_end() && owner.failure == 0) owner.failure = ENODATA;
    return end_chunk(part);
  }

  const int failure = -result;
  if (failure == EAGAIN && owner.slot->nonblock && !given_up) {
    // This file system has no non-blocking reads (no FMODE_NOWAIT), and O_NONBLOCK forbids io_uring to use a thread that blocks.
    owner.slot->set->opens_without_nonblock = true;
    owner.refused = true;
    return end_chunk(part);
  }
  if (is_tried_again(failure) && !given_up && !failing_ && owner.tries < tries_max) {
    ++owner.tries;
    count_.retries.add(1);
    return ask(part);
  }
  if (owner.failure == 0) {
    if (owner.cancelled) {
      owner.failure = ECANCELED;
    } else if (refuses_direct(failure) && owner.slot->mode.direct &&
               owner.slot->set->modes.refused(owner.slot->set->files->directory(owner.slot->file), owner.slot->path,
                                              failure)) {
      owner.refused = true;
    } else if (!owner.refused) {
      owner.failure = failing_ ? loop_failed : failure;
    }
  }
  end_chunk(part);
}

void ring_loop::end_chunk(chunk& part) {
  pending_read& owner = *part.owner;
  chunks_.give_back(part);
  if (owner.failure != 0 || owner.refused) dequeue(owner);  // no more of it is issued
  if (--owner.chunks != 0) return;
  if (owner.failure == 0 && owner.issued != owner.end) {
    if (owner.cancelled) {
      owner.failure = ECANCELED;
    } else if (!owner.refused) {
      return;  // in ready_, the rest will be issued
    }
  }
  dequeue(owner);
  if (owner.refused && owner.failure == 0) {
    if (!owner.cancelled) return read_again_buffered(owner);
    owner.failure = ECANCELED;
  }
  finish(owner);
}

void ring_loop::read_again_buffered(pending_read& refused) {
  file_slot& slot = *refused.slot;
  if (!slot.stale) {
    slot.stale = true;
    slot_of_.erase(slot.set->key_of(slot.file));
  }
  refused.refused = false;
  refused.ranged = false;
  detach(refused);
  enqueue(unplaced_, refused);
  place_waiting();
}

void ring_loop::enqueue(intrusive_list<pending_read>& queue, pending_read& queued) {
  queue.push_back(queued);
  queued.queue = &queue;
}
void ring_loop::dequeue(pending_read& queued) {
  if (queued.queue != nullptr) std::exchange(queued.queue, nullptr)->remove(queued);
}

void ring_loop::finish(pending_read& ended) {
  assert(ended.chunks == 0 && !ended.finished);
  ended.finished = true;
  enqueue(finished_, ended);
}

void ring_loop::deliver(pending_read& ended) {
  read_operation& operation = *ended.operation;
  operation.failure = ended.failure;
  operation.ended_ns = now_;
  if (ended.ranged && (ended.failure == 0 || ended.failure == ENODATA)) {
    const std::uint64_t end = std::min(ended.wanted_end(), ended.file_end);
    const std::uint64_t bytes = end > operation.offset ? end - operation.offset : 0;
    operation.data = operation.into.bytes.subspan(operation.offset - ended.begin, bytes);
  }
  operation.state = nullptr;
  --ended.set->operations;
  count_.in_flight.subtract(1);
  count_.reads.add(1);
  detach(ended);
  reads_.give_back(ended);
  operation.done(operation);
}

void ring_loop::cancel(read_operation& operation) {
  auto* const asked = static_cast<pending_read*>(operation.state);
  if (asked == nullptr || asked->finished || asked->cancelled) return;
  asked->cancelled = true;
  dequeue(*asked);  // no more of it is issued
  if (asked->chunks == 0) {
    asked->failure = ECANCELED;
    detach(*asked);
    return finish(*asked);
  }
  for (chunk& part : in_kernel_) {
    if (part.owner == asked) cancel_in_kernel(part);
  }
}

}  // namespace leat::io::ring

// The ring's files: every read needs one that is open, few may be open at a time, and nothing here may block.
#include "base/clock.hpp"
#include "base/errno_table.hpp"
#include "io/ring/ring_loop.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

namespace leat::io::ring {

namespace {

// Descriptors of the whole process: somebody else's close() is not told to us.
constexpr std::uint64_t open_again_ns = 10'000'000;
constexpr unsigned open_again_max = 500;

}  // namespace

bool ring_loop::place(pending_read& placed) {
  if (failing_) return false;
  const std::uint32_t file = placed.operation->file;
  const std::uint64_t key = placed.set->key_of(file);
  file_slot* slot = nullptr;
  if (const auto found = slot_of_.find(key); found != slot_of_.end()) {
    slot = found->second;
  } else {
    // Those who came before go first.
    if (!unplaced_.empty() && &unplaced_.front() != &placed) return false;
    if (opening_.size() >= opens_max || open_again_at_ns_ != 0) return false;
    slot = take_slot();
    if (slot == nullptr) return false;
    slot->set = placed.set;
    slot->file = file;
    slot->stale = slot->type_checked = slot->held_by_lease = false;
    slot->tries = 0;
    slot_of_.emplace(key, slot);
    begin_open(*slot);
  }
  if (slot->users++ == 0 && slot->now == phase::open) dequeue(*slot);  // no longer idle
  dequeue(placed);
  placed.slot = slot;
  if (slot->now == phase::open) {
    make_ready(placed);
  } else {
    enqueue(slot->waiting, placed);
  }
  return true;
}

void ring_loop::place_waiting() {
  while (!unplaced_.empty() && place(unplaced_.front())) {
  }
}

file_slot* ring_loop::take_slot() {
  if (!free_slots_.empty()) {
    file_slot* const taken = free_slots_.back();
    free_slots_.pop_back();
    return taken;
  }
  if (idle_.empty()) return nullptr;
  file_slot& taken = idle_.front();
  dequeue(taken);
  // A direct descriptor is replaced by the one opened into its place; an ordinary one has to be closed.
  if (!direct_descriptors_) close_file(taken);
  slot_of_.erase(taken.set->key_of(taken.file));
  taken.now = phase::free;
  return &taken;
}

void ring_loop::begin_open(file_slot& slot) {
  slot.set->files->path(slot.file, slot.path);
  const std::uint32_t directory = slot.set->files->directory(slot.file);
  // Only what is known to be a file is opened without O_NONBLOCK, since that open may wait.
  if (slot.set->opens_without_nonblock) return ask_status(slot);
  if (const std::optional<file_mode> mode = slot.set->modes.known(directory)) return open_now(slot, *mode);
  if (slot.set->modes.each_file()) return ask_status(slot);
  // The first of a directory looks; the others wait for what it finds.
  for (const file_slot& other : opening_) {
    if (other.now == phase::waiting_for_status && other.set == slot.set &&
        slot.set->files->directory(other.file) == directory) {
      slot.now = phase::asking;
      return enqueue(asking_, slot);
    }
  }
  ask_status(slot);
}

void ring_loop::ask_status(file_slot& slot) {
  slot.now = phase::waiting_for_status;
  slot.since_ns = now_ns();
  io_uring_sqe* const sqe = ring_->next_sqe();
  io_uring_prep_statx(sqe, AT_FDCWD, slot.path.c_str(), AT_STATX_SYNC_AS_STAT,
                      file_status::mask_basic | file_status::mask_direct,
                      reinterpret_cast<struct statx*>(&slot.status));
  io_uring_sqe_set_data64(sqe, reinterpret_cast<std::uintptr_t>(&slot) | tag_slot);
  enqueue(opening_, slot);
}

void ring_loop::open_now(file_slot& slot, file_mode mode) {
  slot.now = phase::opening;
  slot.mode = mode;
  slot.since_ns = now_ns();
  // O_NONBLOCK: the path may have become a pipe, and opening a pipe waits for a writer.
  slot.nonblock = !slot.held_by_lease && !slot.set->opens_without_nonblock;
  const int flags = O_RDONLY | O_NOCTTY | (mode.direct ? O_DIRECT : 0) | (slot.nonblock ? O_NONBLOCK : 0);
  io_uring_sqe* const sqe = ring_->next_sqe();
  if (direct_descriptors_) {
    // Not in the process's table, so neither O_CLOEXEC nor RLIMIT_NOFILE concern it.
    io_uring_prep_openat_direct(sqe, AT_FDCWD, slot.path.c_str(), flags, 0, slot.index);
  } else {
    io_uring_prep_openat(sqe, AT_FDCWD, slot.path.c_str(), flags | O_CLOEXEC, 0);
  }
  io_uring_sqe_set_data64(sqe, reinterpret_cast<std::uintptr_t>(&slot) | tag_slot);
  enqueue(opening_, slot);
  count_.opens.add(1);
}

void ring_loop::on_slot(file_slot& slot, int result) {
  dequeue(slot);
  end_overdue(slot.overdue);
  if (slot.stale) {  // everybody has left
    if (slot.now == phase::opening && result >= 0) {
      slot.descriptor = result;
      close_file(slot);
    }
    slot.now = phase::free;
    slot.stale = false;
    free_slots_.push_back(&slot);
  } else if (slot.now == phase::waiting_for_status) {
    on_status(slot, result);
  } else {
    on_open(slot, result);
  }
  place_waiting();
}

void ring_loop::on_status(file_slot& slot, int result) {
  file_set& set = *slot.set;
  const std::uint32_t directory = set.files->directory(slot.file);
  slot.type_checked = result == 0;
  const int failure = failing_                                        ? loop_failed
                      : result == 0 && !has_offsets(slot.status.mode) ? ESPIPE
                      : result == 0 ? set.modes.learn(directory, slot.path, &slot.status)
                                    : 0;
  if (failure != 0) {
    fail_open(slot, failure);
  } else {
    // Where the file could not be looked at, opening it will say why.
    const file_mode own = result == 0 ? set.modes.mode_of(slot.status) : file_mode{true, alignment_max_bytes};
    open_now(slot, set.modes.known(directory).value_or(own));
  }
  ask_again(set, directory);
}

/// Who waited for somebody else to look at the directory goes on.
void ring_loop::ask_again(const file_set& set, std::uint32_t directory) {
  std::vector<file_slot*> others;
  for (file_slot& other : asking_) {
    if (other.set == &set && set.files->directory(other.file) == directory) others.push_back(&other);
  }
  for (file_slot* const other : others) {
    dequeue(*other);
    begin_open(*other);
  }
}

void ring_loop::on_open(file_slot& slot, int result) {
  const int failure = result < 0 ? -result : type_of_open(slot, result);
  if (failure == EAGAIN && slot.nonblock) {
    slot.held_by_lease = true;
    return open_now(slot, slot.mode);
  }
  if (refuses_direct(failure) && slot.mode.direct) {
    // A pipe in place of the file fails with EINVAL, too, which tells nothing about the file system.
    if (!slot.type_checked && !failing_) return ask_status(slot);
    if (slot.set->modes.refused(slot.set->files->directory(slot.file), slot.path, failure)) {
      return open_now(slot, {});
    }
    return fail_open(slot, EOPNOTSUPP);
  }
  if (lacks_descriptors(failure)) return wait_for_descriptors(slot, failure);
  if (is_tried_again(failure) && ++slot.tries < tries_max) {
    return open_now(slot, slot.mode);
  }
  if (failure != 0) return fail_open(slot, failure);

  opens_refused_ = 0;
  slot.descriptor = direct_descriptors_ ? static_cast<int>(slot.index) : result;
  slot.now = phase::open;
  while (!slot.waiting.empty()) {
    pending_read& next = slot.waiting.front();
    dequeue(next);
    make_ready(next);
  }
  if (slot.users == 0) enqueue(idle_, slot);  // all of them were cancelled
}

/// Whether what was opened can be read at an offset: ESPIPE, else 0. (A direct descriptor cannot be asked: see check_slow_reads().)
int ring_loop::type_of_open(file_slot& slot, int descriptor) {
  if (direct_descriptors_ || std::exchange(slot.type_checked, true)) return 0;
  struct statx found{};
  const int result = ::statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &found);
  if (result != 0 || has_offsets(found.stx_mode)) return 0;
  slot.descriptor = descriptor;
  close_file(slot);
  return ESPIPE;
}

void ring_loop::fail_open(file_slot& slot, int failure) {
  // The last one to leave takes the slot with it.
  slot.stale = true;
  slot_of_.erase(slot.set->key_of(slot.file));
  slot.now = phase::free;
  if (slot.users == 0) return forget(slot);
  while (!slot.waiting.empty()) {
    pending_read& failed = slot.waiting.front();
    dequeue(failed);
    failed.failure = failure;
    finish(failed);
  }
}

void ring_loop::wait_for_descriptors(file_slot& slot, int failure) {
  // Room is made by closing what nobody uses; else by waiting for somebody, here or elsewhere, to close something.
  if (++opens_refused_ > open_again_max) {
    opens_refused_ = 0;
    return fail_open(slot, failure);
  }
  if (!idle_.empty()) {
    file_slot& idle = idle_.front();
    dequeue(idle);
    close_file(idle);
    slot_of_.erase(idle.set->key_of(idle.file));
    forget(idle);
  }
  // Its reads queue up again, in front of all others.
  slot_of_.erase(slot.set->key_of(slot.file));
  intrusive_list<pending_read> again;
  while (!slot.waiting.empty()) {
    pending_read& next = slot.waiting.front();
    dequeue(next);
    next.slot = nullptr;
    --slot.users;
    enqueue(again, next);
  }
  while (!unplaced_.empty()) {
    pending_read& next = unplaced_.front();
    dequeue(next);
    enqueue(again, next);
  }
  while (!again.empty()) {
    pending_read& next = again.front();
    dequeue(next);
    enqueue(unplaced_, next);
  }
  forget(slot);
  open_again_at_ns_ = now_ns() + open_again_ns;
}

void ring_loop::detach(pending_read& leaving) {
  file_slot* const slot = std::exchange(leaving.slot, nullptr);
  if (slot == nullptr || --slot->users != 0) return;
  if (slot->now == phase::open && !slot->stale) {
    enqueue(idle_, *slot);
  } else if (slot->now == phase::open) {
    close_file(*slot);
    forget(*slot);
  } else if (slot->now == phase::free) {
    forget(*slot);
  }
  if (!unplaced_.empty()) place_waiting();
}

/// The slot is free again; its file was closed, or never opened.
void ring_loop::forget(file_slot& slot) {
  if (!slot.stale && slot.set != nullptr) slot_of_.erase(slot.set->key_of(slot.file));
  slot.now = phase::free;
  slot.set = nullptr;
  slot.stale = false;
  free_slots_.push_back(&slot);
}

void ring_loop::close_file(file_slot& slot) {
  if (failing_) {
    // The ring closes its direct descriptors.
    if (!direct_descriptors_) ::close(slot.descriptor);
    slot.descriptor = -1;
    return;
  }
  io_uring_sqe* const sqe = ring_->next_sqe();
  if (direct_descriptors_) {
    io_uring_prep_close_direct(sqe, slot.index);
  } else {
    io_uring_prep_close(sqe, slot.descriptor);
  }
  io_uring_sqe_set_data64(sqe, tag_none);
  ++closing_;
  slot.descriptor = -1;
}

void ring_loop::enqueue(intrusive_list<file_slot>& queue, file_slot& slot) {
  queue.push_back(slot);
  slot.queue = &queue;
}
void ring_loop::dequeue(file_slot& slot) {
  if (slot.queue != nullptr) std::exchange(slot.queue, nullptr)->remove(slot);
}

void ring_loop::close_files_of(const file_set& set) {
  // Nobody will ask for its files any more.
  for (const auto& slot : slots_) {
    if (slot->set != &set) continue;
    assert(slot->users == 0);
    if (slot->now == phase::open) {
      dequeue(*slot);
      close_file(*slot);
      forget(*slot);
    } else if (slot->now == phase::asking) {
      dequeue(*slot);
      forget(*slot);
    } else if (slot->now != phase::free) {
      slot->stale = true;  // still opening; what the kernel opens is closed
      slot_of_.erase(set.key_of(slot->file));
      slot->set = nullptr;
    }
  }
}

void ring_loop::start(file_set& set, open_operation& operation) {
  if (failing_) {
    operation.failure = loop_failed;
    operation.state = nullptr;
    queries_done_.push_back(&operation);
    return;
  }
  status_query& begun = queries_.take();
  begun.operation = &operation;
  begun.set = &set;
  begun.slow = nullptr;
  set.files->path(operation.file, begun.path);
  operation.failure = 0;
  operation.state = &begun;
  ++set.operations;
  ask(begun);
  querying_.push_back(begun);
}

void ring_loop::ask(status_query& begun) {
  begun.since_ns = now_ns();
  io_uring_sqe* const sqe = ring_->next_sqe();
  io_uring_prep_statx(sqe, AT_FDCWD, begun.path.c_str(), AT_STATX_SYNC_AS_STAT,
                      file_status::mask_basic | file_status::mask_direct,
                      reinterpret_cast<struct statx*>(&begun.status));
  io_uring_sqe_set_data64(sqe, reinterpret_cast<std::uintptr_t>(&begun) | tag_query);
}

void ring_loop::on_query(status_query& done, int result) {
  open_operation* const operation = std::exchange(done.operation, nullptr);
  file_slot* const slow = std::exchange(done.slow, nullptr);
  if (slow != nullptr) {
    own_queries_.remove(done);
  } else if (done.overdue) {
    late_queries_.remove(done);
    end_overdue(done.overdue);
  } else {
    querying_.remove(done);
  }
  if (operation != nullptr) {
    if (result == 0) {
      result = done.status.is_directory()       ? -EISDIR
               : !has_offsets(done.status.mode) ? -ESPIPE
                                                : -done.set->modes.failure_of(done.status);
    }
    operation->failure = result < 0 ? -result : 0;
    operation->state = nullptr;
    if (result == 0) {
      operation->size_bytes = done.status.size_bytes;
      operation->version = done.status.version();
      operation->alignment = done.set->modes.mode_of(done.status).alignment;
    }
    --done.set->operations;
    queries_done_.push_back(operation);
  } else if (slow != nullptr && result == 0 && !has_offsets(done.status.mode) && slow->path == done.path) {
    fail_reads_of(*slow, ESPIPE);
  }
  queries_.give_back(done);
}

/// A read of a pipe may take for ever. fstat(2) does not work on a direct descriptor, so the path is looked at.
void ring_loop::check_slow_reads() {
  for (const chunk& part : in_kernel_) {
    if (now_ < part.since_ns + slow_ns) return;
    file_slot& slot = *part.owner->slot;
    if (std::exchange(slot.type_checked, true)) continue;
    status_query& begun = queries_.take();
    begun.operation = nullptr;
    begun.set = slot.set;
    begun.slow = &slot;
    begun.path = slot.path;
    ask(begun);
    own_queries_.push_back(begun);
  }
}

void ring_loop::fail_reads_of(const file_slot& slot, int failure) {
  for (chunk& part : in_kernel_) {
    if (part.owner->slot != &slot) continue;
    if (part.owner->failure == 0) part.owner->failure = failure;
    dequeue(*part.owner);
    cancel_in_kernel(reinterpret_cast<std::uintptr_t>(&part) | tag_chunk);
  }
}

}  // namespace leat::io::ring

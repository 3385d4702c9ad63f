#include "stages/pixels/scratch.hpp"

#include "base/option_words.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#if LEAT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) (static_cast<void>(address), static_cast<void>(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) (static_cast<void>(address), static_cast<void>(size))
#endif

namespace leat::pixels {
namespace {

// The largest page that a system we run on has; steps of the arena are multiples of it.
constexpr std::size_t page_bytes = std::size_t{64} << 10;

std::string mebibytes(std::size_t bytes) {
  // Rounded up: the budget in a message must suffice.
  return std::to_string((bytes + (std::size_t{1} << 20) - 1) >> 20) + " MiB";
}

}  // namespace

scratch_budget::scratch_budget(std::size_t bytes_max, std::size_t host_bytes_max, std::uint64_t of_run)
    : bytes_max_(bytes_max / scratch_arena::step_bytes * scratch_arena::step_bytes),
      host_bytes_max_(host_bytes_max),
      of_run_(of_run) {}

scratch_budget::~scratch_budget() {
  const mutex_lock lock(mutex_);
  assert(arenas_.empty());
}

void scratch_budget::stop() {
  const mutex_lock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

std::size_t scratch_budget::used() const {
  const mutex_lock lock(mutex_);
  return used_;
}

std::size_t scratch_budget::peak() const {
  const mutex_lock lock(mutex_);
  return peak_;
}

std::uint64_t scratch_budget::waits() const {
  const mutex_lock lock(mutex_);
  return waits_;
}

void scratch_budget::join(scratch_arena& arena) {
  const mutex_lock lock(mutex_);
  if ((arenas_.size() + 1) * scratch_arena::base_bytes > bytes_max_) {
    throw error(errc::limit,
                "decode scratch: " + std::to_string(bytes_max_) + " bytes are not enough for " +
                    std::to_string(arenas_.size() + 1) + " decoders of at least " +
                    std::to_string(scratch_arena::base_bytes) + " bytes each; raise " +
                    spelled(option_id::host_bytes_max) + " or use fewer decode threads",
                option_id::host_bytes_max);
  }
  // The bases fit; what the others hold above theirs comes back at the end of their samples at the latest.
  waiting_.fetch_add(1);
  while (!stopped_ && !make_room(arena, scratch_arena::base_bytes)) changed_.wait(mutex_);
  waiting_.fetch_sub(1);
  if (stopped_) throw error(errc::cancelled, "decode scratch: stopped");
  arenas_.push_back(&arena);
  arena.held_ = scratch_arena::base_bytes;
  used_ += scratch_arena::base_bytes;
  peak_ = std::max(peak_, used_);
}

void scratch_budget::leave(scratch_arena& arena) {
  const mutex_lock lock(mutex_);
  arenas_.erase(std::find(arenas_.begin(), arenas_.end(), &arena));
  used_ -= arena.held_;
  changed_.notify_all();
}

std::size_t scratch_budget::can_give() const {
  std::size_t most = bytes_max_ - (arenas_.size() - 1) * scratch_arena::base_bytes;
  if (host_bytes_max_ != 0) most = std::min(most, sample_bytes_max(host_bytes_max_));
  return static_cast<std::size_t>(std::min<std::uint64_t>(most, of_run_));
}

std::uint64_t scratch_budget::given_in_run() const {
  return of_run_ == ~std::uint64_t{0} ? can_give() : std::max<std::uint64_t>(of_run_, can_give());
}

bool scratch_budget::can_ever_grow_to(std::size_t bytes) const { return bytes <= can_give(); }

stages::failure scratch_budget::refusal(std::size_t bytes) const {
  const std::size_t can_give = this->can_give();
  const std::string needed = "decoding needs " + mebibytes(bytes) + " of scratch memory and ";
  if (host_bytes_max_ != 0 && of_run_ < sample_bytes_max(host_bytes_max_)) {
    return stages::over_budget(needed + "the run was begun with " + mebibytes(of_run_) + " for a sample", bytes);
  }
  // A quarter of it is for the sample; the rest holds what it holds now.
  const std::string remedy = host_bytes_max_ == 0
                                 ? std::string()
                                 : "; " + spelled(option_id::host_bytes_max) + " of " +
                                       mebibytes(std::max(4 * bytes, host_bytes_max_ + bytes - can_give)) + " would do";
  if (bytes <= given_in_run()) {
    return stages::no_memory(needed + "this budget can give " + mebibytes(can_give) +
                             ", where the run was begun with " + mebibytes(of_run_) + remedy);
  }
  return stages::over_budget(needed + "the budget can give " + mebibytes(can_give) + remedy, bytes);
}

// Takes from idle or waiting arenas until `bytes` are free. Their owners are not disturbed: one that begins a sample
// meanwhile waits for the mutex.
bool scratch_budget::make_room(const scratch_arena& arena, std::size_t bytes) {
  for (scratch_arena* other : arenas_) {
    if (bytes_max_ - used_ >= bytes) return true;
    if (other != &arena) reclaim(*other);
  }
  return bytes_max_ - used_ >= bytes;
}

void scratch_budget::reclaim(scratch_arena& arena) {
  auto phase = scratch_arena::phase::idle;
  if (!arena.phase_.compare_exchange_strong(phase, scratch_arena::phase::reclaimed) &&
      phase != scratch_arena::phase::waiting) {
    return;
  }
  used_ -= arena.held_ - scratch_arena::base_bytes;
  arena.shrink();
  arena.phase_.store(phase);
}

stages::outcome<void> scratch_budget::grow(scratch_arena& arena, std::size_t bytes) {
  const mutex_lock lock(mutex_);
  const std::uint64_t ticket = next_ticket_++;
  arena.phase_.store(scratch_arena::phase::waiting);
  // Before the first look at the other arenas: an arena that ends a sample after it sees that we wait.
  if (waiting_.fetch_add(1) > 0) changed_.notify_all();  // Waiters before us may now take what we keep.
  bool waited = false;
  const auto wait = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    waits_ += waited ? 0 : 1;
    waited = true;
    changed_.wait(mutex_);
  };
  while (!stopped_ && serving_ != ticket) wait();
  // Looked at when it is our turn, and again: arenas may join meanwhile.
  bool fits = true;
  while (!stopped_ && (fits = can_ever_grow_to(bytes)) && !make_room(arena, bytes - arena.held_)) wait();
  waiting_.fetch_sub(1);
  arena.phase_.store(scratch_arena::phase::busy);
  if (stopped_) return stages::cancelled();  // All others in the queue are cancelled too; no turn has to be passed on.

  ++serving_;
  if (waiting_.load() > 0) changed_.notify_all();
  if (!fits) return refusal(bytes);
  const std::size_t more = bytes - arena.held_;
  if (!arena.commit(bytes)) {
    return stages::no_memory("decoding needs " + mebibytes(bytes) +
                             " of scratch memory and the system gives none: " + std::strerror(errno) + "; lower " +
                             spelled(option_id::host_bytes_max) + " or free memory");
  }
  used_ += more;
  peak_ = std::max(peak_, used_);
  return {};
}

scratch_arena::scratch_arena(scratch_budget& budget) : budget_(budget) {
  budget_.join(*this);
  // Addresses for the largest picture there may be, memory for a header only: growing never moves what libjpeg points to.
  void* memory = mmap(nullptr, budget_.bytes_max(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    const int why = errno;
    budget_.leave(*this);
    throw error(errc::limit,
                "decode scratch: no " + std::to_string(budget_.bytes_max()) + " bytes of address space (" +
                    std::strerror(why) + "); raise `ulimit -v` or lower " + spelled(option_id::host_bytes_max),
                option_id::host_bytes_max);
  }
  memory_ = static_cast<std::byte*>(memory);
  mapped_ = budget_.bytes_max();
  // Huge pages would hold more memory than is counted.
  madvise(memory_, mapped_, MADV_NOHUGEPAGE);
  if (mprotect(memory_, base_bytes, PROT_READ | PROT_WRITE) != 0) {
    const int why = errno;
    munmap(memory_, mapped_);
    budget_.leave(*this);
    throw error(errc::limit, std::string("decode scratch: mprotect: ") + std::strerror(why));
  }
  ASAN_POISON_MEMORY_REGION(memory_, held_);
}

scratch_arena::~scratch_arena() {
  budget_.leave(*this);  // After this no other arena takes from us.
  assert(phase_.load() == phase::idle);
  ASAN_UNPOISON_MEMORY_REGION(memory_, held_);
  munmap(memory_, mapped_);
}

void scratch_arena::begin() noexcept {
  phase expected = phase::idle;
  if (!phase_.compare_exchange_strong(expected, phase::busy)) {
    assert(expected == phase::reclaimed);
    // Others take from us only under the mutex, from begin to end.
    const mutex_lock lock(budget_.mutex_);
    phase_.store(phase::busy);
  }
  assert(used_ == 0);
}

stages::outcome<void> scratch_arena::reserve(std::size_t bytes) {
  assert(phase_.load() == phase::busy && used_ <= base_bytes);
  const std::size_t needed = (used_ + bytes + step_bytes - 1) / step_bytes * step_bytes;
  if (needed <= held_) return {};
  return budget_.grow(*this, needed);
}

std::size_t scratch_arena::most() const {
  const mutex_lock lock(budget_.mutex_);
  return budget_.can_give() / step_bytes * step_bytes - used_;
}

std::size_t scratch_arena::most_of_run() const {
  const mutex_lock lock(budget_.mutex_);
  return budget_.given_in_run() / step_bytes * step_bytes - used_;
}

stages::failure scratch_arena::less_than_run(std::size_t bytes) const {
  const mutex_lock lock(budget_.mutex_);
  return stages::no_memory(budget_.refusal(bytes).reason);
}

void* scratch_arena::take(std::size_t bytes) noexcept {
  if (bytes > held_ || rounded(bytes) > held_ - used_) return nullptr;
  std::byte* const begin = memory_ + used_;
  used_ += rounded(bytes);
  ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
#ifndef NDEBUG
  // What lies there from other samples must not matter.
  std::memset(begin, 0xA5, bytes);
#endif
  return begin;
}

bool scratch_arena::lend(std::size_t bytes) noexcept {
  if (bytes > held_ || rounded(bytes) > held_ - used_) return false;
  const auto round_up = [](std::size_t value) { return (value + page_bytes - 1) / page_bytes * page_bytes; };
  const std::size_t begin = round_up(used_);
  used_ += rounded(bytes);
  const std::size_t end = used_ / page_bytes * page_bytes;
  if (begin < end) madvise(memory_ + begin, end - begin, MADV_DONTNEED);
  return true;
}

void scratch_arena::end() noexcept {
  ASAN_POISON_MEMORY_REGION(memory_, used_);
  used_ = 0;
  phase_.store(phase::idle);
  if (budget_.waiting_.load() > 0) {
    const mutex_lock lock(budget_.mutex_);
    budget_.changed_.notify_all();
  }
}

bool scratch_arena::commit(std::size_t bytes) noexcept {
  assert(bytes > held_ && bytes <= mapped_);
  if (mprotect(memory_ + held_, bytes - held_, PROT_READ | PROT_WRITE) != 0) return false;
  ASAN_POISON_MEMORY_REGION(memory_ + held_, bytes - held_);
  held_ = bytes;
  return true;
}

void scratch_arena::shrink() noexcept {
  const std::size_t above = held_ - base_bytes;
  if (above == 0) return;
  ASAN_UNPOISON_MEMORY_REGION(memory_ + base_bytes, above);
  madvise(memory_ + base_bytes, above, MADV_DONTNEED);
  mprotect(memory_ + base_bytes, above, PROT_NONE);
  held_ = base_bytes;
}

}  // namespace leat::pixels

#include "io/ring/uring.hpp"

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/errno_table.hpp"
#include "base/errno_words.hpp"
#include "base/leak_on_purpose.hpp"
#include "base/text.hpp"
#include "io/files/read_error.hpp"

#include <sys/mman.h>

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

namespace leat::io {
namespace {

// Of the header's newer than 2.3, and the kernel's from 5.18, 5.19 and 6.0, 6.1.
struct flag_set {
  unsigned flags;
  const char* name;
};
constexpr unsigned sized = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
constexpr flag_set fallbacks[] = {
    {sized | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
     "SINGLE_ISSUER|DEFER_TASKRUN"},
    {sized | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN, "COOP_TASKRUN"},
    {sized, "no flags"},
};

/// What usually stands behind a refusal of io_uring_setup(2).
std::string hint_for(int code) {
  if (code == EPERM || code == EACCES) {
    std::ifstream setting("/proc/sys/kernel/io_uring_disabled");
    char value = '0';
    if (setting >> value && value != '0') {
      return str_cat("the sysctl kernel.io_uring_disabled is ", std::string(1, value), "; set it to 0");
    }
  }
  return meaning_of(code).ring.hint;
}

// A refused call is made again a few times at once, then after 0.1 ms, and after twice as long each time, up to 20 ms: some 110
// calls before the ring is given up.
constexpr unsigned refusals_at_once = 8;
constexpr std::uint64_t refused_max_ns = 2'000'000'000;
constexpr std::uint64_t refusal_forgotten_ns = 500'000'000;

void pause(unsigned refusals) noexcept {
  const timespec time{0, std::min(100'000L << std::min(refusals, 10U), 20'000'000L)};
  ::nanosleep(&time, nullptr);
}

bool comes_round_again(int failure) noexcept { return meaning_of(failure).ring.comes_round_again; }

/// Calls `attempt` until it succeeds or fails for good, so that a single EAGAIN does not fail the start.
template <class Attempt>
int insist(const Attempt& attempt) {
  constexpr unsigned attempts_max = 32;  // 0.4 s
  for (unsigned refusals = 0;; ++refusals) {
    const int result = attempt();
    if (result >= 0 || !comes_round_again(-result) || refusals == attempts_max) return result;
    if (refusals >= refusals_at_once) pause(refusals - refusals_at_once);
  }
}

}  // namespace

bool uring_refusal::means_absent() const noexcept { return meaning_of(code).ring.threads_help; }

uring::uring(unsigned entries, unsigned files, unsigned buffers) {
  set_up(entries);
  try {
    check_operations();
    check_reading();
    make_tables(files, buffers);
  } catch (...) {
    io_uring_queue_exit(&ring_);
    throw;
  }
  // Saves looking the ring's descriptor up at each call; not there before 5.18, and no loss then.
  static_cast<void>(io_uring_register_ring_fd(&ring_));
  static_cast<void>(io_uring_ring_dontfork(&ring_));
  // Opens that miss the caches, and buffered reads on file systems that cannot wait, go to the kernel's worker threads.
  // By default there may be four for each core, and they do nothing but get in each other's way (39 us a file with the
  // default against 27 us with two).
  unsigned workers[2] = {4, 4};
  static_cast<void>(io_uring_register_iowq_max_workers(&ring_, workers));
}

uring::~uring() { io_uring_queue_exit(&ring_); }

void uring::set_up(unsigned entries) {
  for (const flag_set& fallback : fallbacks) {
    io_uring_params params{};
    params.flags = fallback.flags;
    params.cq_entries = 4 * entries;
    const int result = insist([&] {
      ring_ = {};
      return io_uring_queue_init_params(entries, &ring_, &params);
    });
    if (result == 0) {
      flags_ = fallback.name;
      // Timeouts without an entry of their own, and arguments that need not outlive the submission: Linux 5.11.
      constexpr unsigned needed = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE;
      if ((params.features & needed) == needed) return;
      io_uring_queue_exit(&ring_);
      throw uring_refusal{ENOSYS, "io_uring_setup", "this kernel's io_uring is older than Linux 5.11"};
    }
    if (result != -EINVAL) throw uring_refusal{-result, "io_uring_setup", hint_for(-result)};
  }
  throw uring_refusal{EINVAL, "io_uring_setup", "this kernel or sandbox refuses even a ring without flags"};
}

void uring::check_operations() {
  // Setting a ring up may be allowed where registering is not.
  io_uring_probe* const probe = io_uring_get_probe_ring(&ring_);
  if (probe == nullptr) throw uring_refusal{EPERM, "io_uring_register(PROBE)", hint_for(EPERM)};
  const char* missing = nullptr;
  const auto need = [&](int operation, const char* name) {
    if (io_uring_opcode_supported(probe, operation) == 0) missing = name;
  };
  need(IORING_OP_READ, "READ");
  need(IORING_OP_READ_FIXED, "READ_FIXED");
  need(IORING_OP_OPENAT, "OPENAT");
  need(IORING_OP_CLOSE, "CLOSE");
  need(IORING_OP_STATX, "STATX");
  need(IORING_OP_ASYNC_CANCEL, "ASYNC_CANCEL");
  io_uring_free_probe(probe);
  if (missing != nullptr) throw uring_refusal{ENOSYS, str_cat("io_uring operation ", missing), hint_for(ENOSYS)};
}

void uring::check_reading() {
  // Some sandboxes let everything pass but the work itself. So read a page, and look at it.
  const descriptor file(::memfd_create("leat probe", MFD_CLOEXEC));
  if (file.get() < 0) return;  // Nothing to try it on; the first real read will tell.
  char written[64];
  std::memset(written, 0x5A, sizeof(written));
  if (::write(file.get(), written, sizeof(written)) != static_cast<ssize_t>(sizeof(written))) return;

  auto found = std::make_unique<std::array<char, sizeof(written)>>();
  io_uring_prep_read(next_sqe(), file.get(), found->data(), sizeof(written), 0);
  io_uring_cqe* completion = nullptr;
  const int submitted = insist([this] { return io_uring_submit_and_wait(&ring_, 1); });
  const int waited = submitted < 0 ? submitted : insist([&] { return io_uring_wait_cqe(&ring_, &completion); });
  if (waited < 0) {
    leak_on_purpose(std::move(found));  // The kernel may still write to it.
    throw uring_refusal{-waited, "io_uring_enter", hint_for(-waited)};
  }
  const int result = completion->res;
  io_uring_cqe_seen(&ring_, completion);
  if (result < 0) throw uring_refusal{-result, "a read through io_uring", hint_for(-result)};
  if (std::memcmp(written, found->data(), sizeof(written)) != 0) {
    throw uring_refusal{EOPNOTSUPP, "a read through io_uring", "it returned other bytes than the file has"};
  }
}

void uring::make_tables(unsigned files, unsigned buffers) {
  // The kernel counts the table against RLIMIT_NOFILE, though its files need no descriptors.
  if (files != 0 && io_uring_register_files_sparse(&ring_, files) == 0) files_ = files;
  if (buffers == 0) return;
  const int result = io_uring_register_buffers_sparse(&ring_, buffers);
  if (result == 0) {
    buffers_ = buffers;
  } else if (result == -EINVAL) {
    why_no_buffers_ = "needs Linux 5.19 (a sparse table of buffers)";
  } else {
    why_no_buffers_ = str_cat("io_uring_register: ", errno_name(-result));
  }
}

int uring::register_buffer(unsigned index, std::span<std::byte> memory) noexcept {
  assert(index < buffers_);
  const iovec range{memory.data(), memory.size()};
  const __u64 tag = 0;
  const int result = io_uring_register_buffers_update_tag(&ring_, index, &range, &tag, 1);
  // The number registered: fewer than asked for without an error has been seen.
  if (result == 1) return 0;
  return result < 0 ? -result : ENOMEM;
}

void uring::unregister_buffers() noexcept {
  if (buffers_ == 0) return;
  static_cast<void>(insist([this] { return io_uring_unregister_buffers(&ring_); }));
  buffers_ = 0;
}

io_uring_sqe* uring::next_sqe() {
  if (failure_ == 0 && submit_waiting()) {
    if (io_uring_sqe* const sqe = io_uring_get_sqe(&ring_)) return sqe;
    submit();
    if (io_uring_sqe* const sqe = io_uring_get_sqe(&ring_); sqe != nullptr && failure_ == 0) return sqe;
  }
  return &waiting_.emplace_back();
}

/// Moves waiting entries to the queue, in their order. False if there was not room for all.
bool uring::submit_waiting() {
  while (!waiting_.empty()) {
    io_uring_sqe* const sqe = io_uring_get_sqe(&ring_);
    if (sqe == nullptr) return false;
    *sqe = waiting_.front();
    waiting_.pop_front();
  }
  return true;
}

void uring::submit() {
  if (failure_ != 0) return;
  static_cast<void>(submit_waiting());
  note(io_uring_submit_and_get_events(&ring_));
}

void uring::submit_and_wait(unsigned count, std::uint64_t patience_ns, std::uint64_t deadline_ns) {
  if (failure_ != 0) return;
  if (!submit_waiting()) return submit();
  const auto wait = [this](unsigned wanted, std::uint64_t ns) {
    __kernel_timespec time{static_cast<std::int64_t>(ns / 1'000'000'000), static_cast<long long>(ns % 1'000'000'000)};
    io_uring_cqe* first = nullptr;
    note(io_uring_submit_and_wait_timeout(&ring_, &first, wanted, ns != 0 ? &time : nullptr, nullptr));
  };
  if (count > 1) {
    wait(count, deadline_ns != 0 ? std::min(patience_ns, deadline_ns) : patience_ns);
    if (refusals_ != 0 || failure_ != 0 || io_uring_cq_ready(&ring_) != 0) return;
    if (deadline_ns != 0 && deadline_ns <= patience_ns) return;
  }
  wait(1, deadline_ns);
}

// Handles the result of io_uring_enter(2). EBUSY: completions must be reaped first; EAGAIN: no memory at this moment; EINTR: a
// signal, a debugger, a profiler's timer. The caller tries again, after a pause if it is refused repeatedly.
void uring::note(int result) noexcept {
  if (result >= 0 || result == -ETIME || io_uring_cq_ready(&ring_) != 0) {
    refusals_ = 0;
    if (result >= 0 || result == -ETIME) return;
  }
  // A wait that a signal ended is no refusal, however many there are: the kernel has taken what there was to submit, and answers where
  // nothing is waited for.
  if (result == -EINTR && io_uring_sq_ready(&ring_) == 0 && fetch()) {
    refusals_ = 0;
    return;
  }
  if (!comes_round_again(-result)) {
    failure_ = -result;
    return;
  }
  const std::uint64_t now = now_ns();
  // A wait that completions end from time to time does not count as refused.
  if (refusals_ == 0 || now - last_refused_ns_ > refusal_forgotten_ns) {
    refusals_ = 0;
    first_refused_ns_ = now;
  }
  ++refusals_;
  if (refusals_ > refusals_at_once) {
    if (now - first_refused_ns_ > refused_max_ns) {
      failure_ = -result;
      return;
    }
    pause(refusals_ - refusals_at_once);
  }
  last_refused_ns_ = now_ns();
}

bool uring::fetch() noexcept { return io_uring_get_events(&ring_) >= 0; }

}  // namespace leat::io

#include "io/ring_loop.hpp"

#include "async/clock.hpp"
#include "async/intrusive_list.hpp"
#include "async/mutex.hpp"
#include "io/direct_policy.hpp"
#include "io/file_status.hpp"
#include "io/file_table.hpp"
#include "io/read_error.hpp"
#include "io/text.hpp"
#include "io/uring.hpp"

#include <absl/container/flat_hash_map.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

namespace leat::io {
namespace {

using async::intrusive_list;
using async::list_hook;
using async::now_ns;

// Bytes the kernel has at a time where no depth was asked for: 64 reads of 112 KiB, or 7 of 1 MiB (8, see below); an
// NVMe drive of 14 GB/s that answers in 100 us is busy with 1.4 MB. More than this only makes the reads wait there.
constexpr std::uint64_t automatic_bytes = std::uint64_t{7} << 20;
constexpr unsigned automatic_reads_min = 8;
constexpr unsigned automatic_reads_max = 128;
constexpr unsigned depth_max = 4096;
// A huge page: one segment for the device. A larger read is cut, and its parts are read at the same time.
constexpr std::uint64_t chunk_bytes_max = std::uint64_t{2} << 20;
// Opens under way. Each that misses the dentry cache holds one of the kernel's worker threads.
constexpr unsigned opens_max = 64;
// How long a turn may wait for more than one completion. What is posted to the loop meanwhile waits as long: a wake-up
// is one completion too. While the device has all it is meant to have, nothing posted is urgent, and a timer so late that
// another one comes first (the scheduler's tick) is never programmed: in a virtual machine that saves 20 us a turn.
constexpr std::uint64_t patience_ns = 50'000;
constexpr std::uint64_t patience_full_ns = 20'000'000;
constexpr unsigned tries_max = 16;
// memlock comes back asynchronously when another ring has gone: ENOMEM right after it, fine 300 ms later.
constexpr std::uint64_t register_again_ns = 300'000'000;
constexpr unsigned register_tries_max = 4;
// Descriptors of the whole process: somebody else's close() is not announced to us.
constexpr std::uint64_t open_again_ns = 10'000'000;
constexpr unsigned open_again_max = 500;

struct file_set;
struct file_slot;

/// A read that was taken and is not done.
struct job : list_hook {
  read_operation* operation = nullptr;
  file_set* set = nullptr;
  file_slot* slot = nullptr;
  intrusive_list<job>* queue = nullptr;  // the one list it is in
  std::uint64_t begin = 0;               // of the range that is read: the one asked for, widened to the alignment
  std::uint64_t end = 0;
  std::uint64_t issued = 0;                                            // up to here the kernel was asked
  std::uint64_t file_end = std::numeric_limits<std::uint64_t>::max();  // where a read found it
  unsigned chunks = 0;                                                 // the kernel has
  unsigned tries = 0;
  int failure = 0;
  bool ranged = false;     // begin and end are set
  bool cancelled = false;  // somebody asked
  bool refused = false;    // O_DIRECT was: to be read again, buffered
  bool finished = false;

  [[nodiscard]] std::uint64_t wanted_end() const noexcept { return operation->offset + operation->bytes; }
};

/// Part of a read that the kernel has. Its address is the user_data.
struct alignas(8) chunk : list_hook {
  job* owner = nullptr;
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
  std::uint64_t got = 0;
  std::uint64_t asked_from = 0;  // `got` when the kernel was last asked
  std::byte* memory = nullptr;
  std::uint64_t since_ns = 0;
  std::optional<overdue_list::entry> overdue;
};

/// What a slot is doing.
enum class phase : std::uint8_t { free, asking, waiting_for_status, opening, open };

/// A place for an open file. Its address + 1 is the user_data of its opening.
struct alignas(8) file_slot : list_hook {
  unsigned index = 0;
  phase now = phase::free;
  file_set* set = nullptr;
  std::uint32_t file = 0;
  file_mode mode;
  bool stale = false;  // not to be found by others any more
  int descriptor = -1;
  unsigned users = 0;  // jobs
  unsigned tries = 0;
  intrusive_list<job> waiting;  // for it to be open
  intrusive_list<file_slot>* queue = nullptr;
  std::uint64_t since_ns = 0;
  std::optional<overdue_list::entry> overdue;
  std::string path;
  file_status status;
};

/// open_operation with its place for the answer, which the kernel writes. Its address + 2 is the user_data.
struct alignas(8) look : list_hook {
  open_operation* operation = nullptr;  // nullptr once it was done without us
  file_set* set = nullptr;
  std::uint64_t since_ns = 0;
  std::optional<overdue_list::entry> overdue;
  std::string path;
  file_status status;
};

/// A connected source's part in the loop.
struct file_set {
  file_set(const file_table& table, direct_policy& policy, std::uint64_t number)
      : files(&table), modes(policy), id(number) {}
  const file_table* files;
  file_modes modes;
  std::uint64_t id;
  std::uint64_t operations = 0;  // taken and not done
};

enum tag : std::uint64_t { tag_chunk = 0, tag_slot = 1, tag_look = 2, tag_wake = 3, tag_none = 4, tag_mask = 7 };

/// Objects that are made once and used again.
template <class T>
class stock {
 public:
  [[nodiscard]] T& take() {
    if (spare_.empty()) {
      all_.emplace_back();
      spare_.reserve(all_.size());
      return all_.back();
    }
    T& taken = *spare_.back();
    spare_.pop_back();
    return taken;
  }
  void give_back(T& one) noexcept { spare_.push_back(&one); }
  [[nodiscard]] std::size_t out() const noexcept { return all_.size() - spare_.size(); }

 private:
  std::deque<T> all_;  // they never move
  std::vector<T*> spare_;
};

class ring_loop final : public async::loop, public io_loop {
 public:
  ring_loop(io_context& context, const ring_limits& limits);
  ~ring_loop() override {
    retire();
    ::close(wake_descriptor_);
  }

  // connector
  [[nodiscard]] std::unique_ptr<source> connect_files(const file_table& files) override;
  void post(void (*function)(void*) noexcept, void* argument) override {
    // Later, also from the loop's own thread.
    get_executor().require(async::asio::execution::blocking.never).execute(bound_function{function, argument});
  }

  // io_loop
  [[nodiscard]] async::loop& run_loop() noexcept override { return *this; }
  void run() override;
  void stop() noexcept override {
    const auto inside = visit();
    stopping_.store(true);
    interrupt();
  }
  [[nodiscard]] rung backend() const override { return backend_; }
  [[nodiscard]] rung registered_buffers() const override {
    const async::mutex_lock lock(report_mutex_);
    return buffers_report_;
  }
  void add_to(io_counters& sum) const noexcept override { count_.add_to(sum); }

  // For the sources. Loop thread.
  void start(file_set& set, std::span<read_operation* const> operations);
  void start(file_set& set, open_operation& operation);
  void cancel(read_operation& operation);
  void retire_set(std::unique_ptr<file_set> set);
  [[nodiscard]] io_context& context() noexcept { return context_; }

 private:
  struct bound_function {
    void (*function)(void*) noexcept;
    void* argument;
    void operator()() const noexcept { function(argument); }
  };

  void wake() noexcept override {
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_descriptor_, &one, sizeof(one)));
  }
  void set_up(const ring_limits& limits);
  void park_wake();
  void sleep(bool awake);
  [[nodiscard]] bool is_full() const noexcept;
  void on_completion(std::uint64_t user_data, int result);
  [[nodiscard]] std::uint64_t next_deadline_ns() const noexcept;

  // Placing: a job gets a slot, the slot its file.
  [[nodiscard]] bool place(job& placed);
  void place_waiting();
  [[nodiscard]] file_slot* take_slot();
  void begin_open(file_slot& slot);
  void ask_status(file_slot& slot);
  void ask_again(const file_set& set, std::uint32_t directory);
  void open_now(file_slot& slot, file_mode mode);
  void on_slot(file_slot& slot, int result);
  void on_status(file_slot& slot, int result);
  void on_open(file_slot& slot, int result);
  void fail_open(file_slot& slot, int failure);
  void wait_for_descriptors(file_slot& slot, int failure);
  void detach(job& leaving);
  void forget(file_slot& slot);
  void close_file(file_slot& slot);
  void enqueue(intrusive_list<file_slot>& queue, file_slot& slot);
  void dequeue(file_slot& slot);

  // Reading.
  void make_ready(job& ready);
  void pump();
  [[nodiscard]] bool admits(std::uint64_t bytes) const noexcept;
  [[nodiscard]] bool is_registered(const job& asking);
  void issue(job& from, std::uint64_t bytes);
  void ask(chunk& part);
  [[nodiscard]] bool use_registered(std::uint32_t piece);
  void on_chunk(chunk& part, int result);
  void end_chunk(chunk& part);
  void read_again_buffered(job& refused);

  // Ending.
  void enqueue(intrusive_list<job>& queue, job& queued);
  void dequeue(job& queued);
  void finish(job& ended);
  void finish_all();
  void deliver(job& ended);
  void on_look(look& done, int result);
  void expire();
  void cancel_in_kernel(std::uint64_t user_data);
  void end_overdue(std::optional<overdue_list::entry>& entry) {
    if (entry) context_.overdue.remove(*entry);
    entry.reset();
  }
  [[nodiscard]] std::uint64_t key_of(const file_set& set, std::uint32_t file) const noexcept {
    return set.id << 32 | file;
  }
  [[nodiscard]] double timeout_s() const noexcept { return static_cast<double>(timeout_ns_) * 1e-9; }

  io_context& context_;
  const std::uint64_t timeout_ns_;
  const unsigned depth_;  // 0: automatic
  const bool insists_on_buffers_;
  std::optional<uring> ring_;  // lives as long as run(): made and ended on its thread
  rung backend_;
  std::atomic<bool> stopping_{false};
  int wake_descriptor_ = -1;
  std::uint64_t wake_value_ = 0;
  bool wake_parked_ = false;
  std::uint64_t now_ = 0;  // of this turn

  bool direct_descriptors_ = false;
  std::vector<std::unique_ptr<file_slot>> slots_;
  std::vector<file_slot*> free_slots_;
  absl::flat_hash_map<std::uint64_t, file_slot*> slot_of_;
  intrusive_list<file_slot> idle_;     // open, without users; least recently used first
  intrusive_list<file_slot> opening_;  // the kernel looks at or opens them, oldest first
  intrusive_list<file_slot> asking_;   // another slot asks about their directory
  intrusive_list<file_slot> late_;     // as opening_, and older than the timeout
  unsigned closing_ = 0;               // closes, cancels: whatever the kernel has that nobody waits for
  std::uint64_t open_again_at_ns_ = 0;
  unsigned opens_refused_ = 0;  // in a row, for want of descriptors

  stock<job> jobs_;
  stock<chunk> chunks_;
  stock<look> looks_;
  intrusive_list<job> unplaced_;     // no slot yet
  intrusive_list<job> ready_;        // their file is open
  intrusive_list<job> finished_;     // to be told
  intrusive_list<chunk> in_kernel_;  // oldest first
  intrusive_list<chunk> late_chunks_;
  intrusive_list<look> looking_;
  intrusive_list<look> late_looks_;
  std::deque<open_operation*> looks_done_;  // to be told
  std::uint64_t bytes_in_kernel_ = 0;
  std::uint64_t sets_made_ = 0;

  std::vector<bool> registered_;  // of the arena's pieces
  unsigned register_refusals_ = 0;
  std::uint64_t register_again_at_ns_ = 0;
  std::uint32_t pieces_registered_ = 0;

  mutable async::mutex report_mutex_;
  rung buffers_report_ ABSL_GUARDED_BY(report_mutex_);
  loop_counters count_;
};

/// A source's handle on the loop.
class ring_source final : public source {
 public:
  ring_source(ring_loop& loop, std::unique_ptr<file_set> set) : loop_(loop), set_(std::move(set)) {}
  ~ring_source() override {
    assert(set_->operations == 0 && "a source is destroyed while operations are under way");
    if (loop_.running_in_this_thread()) {
      loop_.retire_set(std::move(set_));
    } else {
      loop_.get_executor().execute(
          [loop = &loop_, set = std::move(set_)]() mutable { loop->retire_set(std::move(set)); });
    }
  }

  void start(std::span<read_operation* const> operations) override { loop_.start(*set_, operations); }
  void start(open_operation& operation) override { loop_.start(*set_, operation); }
  void cancel(read_operation& operation) override { loop_.cancel(operation); }

  [[nodiscard]] error explain(const read_operation& failed) const override {
    const std::string path = set_->files->path(failed.file);
    return explain_read({.failure = failed.failure,
                         .path = path,
                         .offset = failed.offset,
                         .bytes = failed.bytes,
                         .data_bytes = failed.data.size(),
                         .timeout_s = std::chrono::duration<double>(loop_.context().options.read_timeout).count()});
  }
  [[nodiscard]] error explain(const open_operation& failed) const override {
    return explain_open(failed.failure, set_->files->path(failed.file));
  }

 private:
  ring_loop& loop_;
  std::unique_ptr<file_set> set_;
};

unsigned soft_limit_of_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  return static_cast<unsigned>(std::min<rlim_t>(limit.rlim_cur, 1U << 20));
}

}  // namespace

// ---- The loop -----------------------------------------------------------------------------------------------------

ring_loop::ring_loop(io_context& context, const ring_limits& limits)
    : context_(context),
      timeout_ns_(static_cast<std::uint64_t>(std::chrono::nanoseconds(context.options.read_timeout).count())),
      depth_(std::min(context.options.queue_depth, depth_max)),
      insists_on_buffers_(context.options.registered_buffers == choice::on) {
  try {
    set_up(limits);
  } catch (...) {
    retire();
    throw;
  }
}

void ring_loop::set_up(const ring_limits& limits) {
  const unsigned descriptors = soft_limit_of_files();
  const unsigned files = std::max(1U, std::min(limits.files_max, descriptors));
  const bool wants_buffers = context_.options.registered_buffers != choice::off;
  const unsigned buffers = wants_buffers ? std::min(context_.memory->pieces_max(), arena::registered_pieces_max) : 0;
  // Room for the reads and the opens of a turn; when it is full it is submitted early, which costs a call.
  const unsigned entries = std::max(256U, depth_ + opens_max);
  ring_.emplace(entries, limits.direct_descriptors ? files : 0, buffers);

  direct_descriptors_ = ring_->files() != 0;
  // Ordinary descriptors are the whole process's: half of what there is may be ours.
  const unsigned slots = direct_descriptors_ ? ring_->files() : std::max(1U, std::min(files, descriptors / 2));
  slots_.reserve(slots);
  free_slots_.reserve(slots);
  for (unsigned i = 0; i < slots; ++i) {
    slots_.push_back(std::make_unique<file_slot>());
    slots_.back()->index = i;
  }
  for (unsigned i = slots; i-- > 0;) free_slots_.push_back(slots_[i].get());

  backend_ = {"io_uring", str_cat(ring_->flags(), direct_descriptors_ ? ", direct descriptors" : "", ", ", slots,
                                  " files open at most")};
  const async::mutex_lock lock(report_mutex_);
  if (!wants_buffers) {
    buffers_report_ = {"off", "asked for"};
  } else if (ring_->buffers() == 0) {
    if (context_.options.registered_buffers == choice::on) {
      throw error(errc::unsupported, str_cat("registered_buffers = on: ", ring_->why_no_buffers()));
    }
    buffers_report_ = {"off", ring_->why_no_buffers()};
  } else {
    buffers_report_ = {"on", "each 4 MiB when first read into"};
  }
  registered_.resize(ring_->buffers());

  wake_descriptor_ = ::eventfd(0, EFD_CLOEXEC);
  if (wake_descriptor_ < 0) {
    throw error(errc::limit, str_cat("eventfd: ", std::strerror(errno), "; try `ulimit -n 65536`"));
  }
}

void ring_loop::park_wake() {
  // A blocking descriptor on purpose: the kernel then waits for it; with O_NONBLOCK the read would fail.
  io_uring_sqe* const sqe = ring_->next_sqe();
  io_uring_prep_read(sqe, wake_descriptor_, &wake_value_, sizeof(wake_value_), 0);
  io_uring_sqe_set_data64(sqe, tag_wake);
  wake_parked_ = true;
}

void ring_loop::run() {
  const auto bound = bind_to_this_thread();
  park_wake();
  for (;;) {
    now_ = now_ns();
    run_posted();
    expire();
    finish_all();
    pump();
    if (stopping_.load(std::memory_order_relaxed) && jobs_.out() == 0 && looking_.empty() && looks_done_.empty()) break;
    sleep(!finished_.empty() || !looks_done_.empty() || !wake_parked_);
  }

  // The kernel may still write into our slots (statx) and must not find them gone.
  for (const auto& slot : slots_) {
    if (slot->now == phase::opening || slot->now == phase::waiting_for_status) {
      cancel_in_kernel(reinterpret_cast<std::uintptr_t>(slot.get()) | tag_slot);
    }
  }
  cancel_in_kernel(tag_wake);
  const std::uint64_t give_up_at_ns = now_ns() + 5'000'000'000;
  const auto kernel_has_some = [this] {
    return wake_parked_ || !opening_.empty() || !late_.empty() || !late_looks_.empty() || closing_ != 0;
  };
  while (kernel_has_some() && now_ns() < give_up_at_ns) {
    ring_->submit_and_wait(1, 0, 100'000'000);
    ring_->reap([this](std::uint64_t user_data, int result) { on_completion(user_data, result); });
    finish_all();
  }
  if (!late_.empty() || !late_looks_.empty() || !opening_.empty()) {
    // A dead mount holds them. What the kernel may write into later is never freed.
    struct kept {
      std::vector<std::unique_ptr<file_slot>> slots;
      stock<look> looks;
      kept* before = nullptr;
    };
    static std::atomic<kept*> all{nullptr};
    auto* const keep = new kept{std::move(slots_), std::move(looks_), nullptr};
    keep->before = all.exchange(keep);
  } else {
    for (const auto& slot : slots_) dequeue(*slot);
  }
  ring_.reset();
}

void ring_loop::sleep(bool awake) {
  if (awake || !prepare_sleep()) {
    ring_->submit();
  } else if (stopping_.load() && jobs_.out() == 0 && looking_.empty() && looks_done_.empty()) {
    cancel_sleep();
    return;
  } else {
    const std::uint64_t slept_at_ns = now_ns();
    const std::uint64_t due_ns = next_deadline_ns();
    const std::uint64_t left_ns =
        due_ns == 0 ? 0 : std::max<std::uint64_t>(due_ns > slept_at_ns ? due_ns - slept_at_ns : 0, 1000);
    // A quarter of what the kernel has: fewer wake-ups, and the device never runs dry.
    const auto count = static_cast<unsigned>(std::max<std::size_t>(in_kernel_.size() / 4, 1));
    ring_->submit_and_wait(count, is_full() ? patience_full_ns : patience_ns, left_ns);
    cancel_sleep();
    count_.wait_ns.add(now_ns() - slept_at_ns);
  }
  count_.turns.add(1);
  // All of them before anybody resumes: who resumes starts more, and must find the books in order.
  ring_->reap([this](std::uint64_t user_data, int result) { on_completion(user_data, result); });
  now_ = now_ns();
  if (!wake_parked_) park_wake();
  finish_all();
}

bool ring_loop::is_full() const noexcept { return !ready_.empty() || !admits(automatic_bytes / 8); }

void ring_loop::on_completion(std::uint64_t user_data, int result) {
  const std::uint64_t address = user_data & ~std::uint64_t{tag_mask};
  switch (user_data & tag_mask) {
    case tag_chunk:
      return on_chunk(*reinterpret_cast<chunk*>(address), result);
    case tag_slot:
      return on_slot(*reinterpret_cast<file_slot*>(address), result);
    case tag_look:
      return on_look(*reinterpret_cast<look*>(address), result);
    case tag_wake:
      wake_parked_ = false;
      return;
    default:
      --closing_;
  }
}

std::uint64_t ring_loop::next_deadline_ns() const noexcept {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  if (!in_kernel_.empty()) first = std::min(first, in_kernel_.front().since_ns + timeout_ns_);
  if (!opening_.empty()) first = std::min(first, opening_.front().since_ns + timeout_ns_);
  if (!looking_.empty()) first = std::min(first, looking_.front().since_ns + timeout_ns_);
  if (open_again_at_ns_ != 0) first = std::min(first, open_again_at_ns_);
  return first == std::numeric_limits<std::uint64_t>::max() ? 0 : first;
}

std::unique_ptr<source> ring_loop::connect_files(const file_table& files) {
  static std::atomic<std::uint64_t> sets{0};
  const std::uint64_t id = sets.fetch_add(1) & 0xFFFFFFFFU;
  return std::make_unique<ring_source>(*this, std::make_unique<file_set>(files, context_.direct, id));
}

void ring_loop::retire_set(std::unique_ptr<file_set> set) {
  // Nobody will ask for its files any more.
  for (const auto& slot : slots_) {
    if (slot->set != set.get()) continue;
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
      slot_of_.erase(key_of(*set, slot->file));
      slot->set = nullptr;
    }
  }
}

// ---- Placing ------------------------------------------------------------------------------------------------------

void ring_loop::start(file_set& set, std::span<read_operation* const> operations) {
  const std::uint64_t now = now_ns();
  for (read_operation* const operation : operations) {
    assert(operation->done != nullptr);
    assert(operation->bytes == 0 || operation->into.bytes.size() >= aligned_bytes(operation->offset, operation->bytes));
    assert(reinterpret_cast<std::uintptr_t>(operation->into.bytes.data()) % alignment_max_bytes == 0);
    job& taken = jobs_.take();
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
    if (operation->bytes == 0) {
      finish(taken);
    } else if (!place(taken)) {
      enqueue(unplaced_, taken);
    }
  }
}

bool ring_loop::place(job& placed) {
  const std::uint32_t file = placed.operation->file;
  const std::uint64_t key = key_of(*placed.set, file);
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
    slot->stale = false;
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
  slot_of_.erase(key_of(*taken.set, taken.file));
  taken.now = phase::free;
  return &taken;
}

void ring_loop::begin_open(file_slot& slot) {
  slot.set->files->path(slot.file, slot.path);
  const std::uint32_t directory = slot.set->files->directory(slot.file);
  if (const std::optional<file_mode> mode = slot.set->modes.known(directory)) return open_now(slot, *mode);
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
  const int flags = O_RDONLY | O_NOCTTY | (mode.direct ? O_DIRECT : 0);
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
  const int failure = result == 0 ? set.modes.learn(directory, slot.path, &slot.status) : 0;
  if (failure != 0) {
    fail_open(slot, failure);
  } else {
    // Where the file could not be looked at, opening it will say why.
    open_now(slot, set.modes.known(directory).value_or(file_mode{true, alignment_max_bytes}));
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
  const int failure = result < 0 ? -result : 0;
  if ((failure == EINVAL || failure == EOPNOTSUPP) && slot.mode.direct) {
    if (slot.set->modes.refused(slot.set->files->directory(slot.file), slot.path, failure)) {
      return open_now(slot, {});
    }
    return fail_open(slot, EOPNOTSUPP);
  }
  if (failure == EMFILE || failure == ENFILE) return wait_for_descriptors(slot, failure);
  if ((failure == EINTR || failure == EAGAIN || failure == ECANCELED) && ++slot.tries < tries_max) {
    return open_now(slot, slot.mode);
  }
  if (failure != 0) return fail_open(slot, failure);

  opens_refused_ = 0;
  slot.descriptor = direct_descriptors_ ? static_cast<int>(slot.index) : result;
  slot.now = phase::open;
  while (!slot.waiting.empty()) {
    job& next = slot.waiting.front();
    dequeue(next);
    make_ready(next);
  }
  if (slot.users == 0) enqueue(idle_, slot);  // all of them were cancelled
}

void ring_loop::fail_open(file_slot& slot, int failure) {
  // The last one to leave takes the slot with it.
  slot.stale = true;
  slot_of_.erase(key_of(*slot.set, slot.file));
  slot.now = phase::free;
  if (slot.users == 0) return forget(slot);
  while (!slot.waiting.empty()) {
    job& failed = slot.waiting.front();
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
    slot_of_.erase(key_of(*idle.set, idle.file));
    forget(idle);
  }
  // Its jobs queue up again, in front of all others.
  slot_of_.erase(key_of(*slot.set, slot.file));
  intrusive_list<job> again;
  while (!slot.waiting.empty()) {
    job& next = slot.waiting.front();
    dequeue(next);
    next.slot = nullptr;
    --slot.users;
    enqueue(again, next);
  }
  while (!unplaced_.empty()) {
    job& next = unplaced_.front();
    dequeue(next);
    enqueue(again, next);
  }
  while (!again.empty()) {
    job& next = again.front();
    dequeue(next);
    enqueue(unplaced_, next);
  }
  forget(slot);
  open_again_at_ns_ = now_ns() + open_again_ns;
}

void ring_loop::detach(job& leaving) {
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
  if (!slot.stale && slot.set != nullptr) slot_of_.erase(key_of(*slot.set, slot.file));
  slot.now = phase::free;
  slot.set = nullptr;
  slot.stale = false;
  free_slots_.push_back(&slot);
}

void ring_loop::close_file(file_slot& slot) {
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

// ---- Reading ------------------------------------------------------------------------------------------------------

void ring_loop::make_ready(job& ready) {
  const read_operation& asked = *ready.operation;
  const std::uint64_t unit = ready.slot->mode.alignment;
  ready.begin = asked.offset / unit * unit;
  // Never a unit more than the bytes asked for take up: past the end of a file the kernel would clear our memory.
  ready.end = (ready.wanted_end() + unit - 1) / unit * unit;
  ready.issued = ready.begin;
  ready.ranged = true;
  enqueue(ready_, ready);
}

bool ring_loop::admits(std::uint64_t bytes) const noexcept {
  const std::size_t reads = in_kernel_.size();
  if (depth_ != 0) return reads < depth_;
  return reads < automatic_reads_min || (reads < automatic_reads_max && bytes_in_kernel_ + bytes <= automatic_bytes);
}

void ring_loop::pump() {
  while (!ready_.empty()) {
    job& next = ready_.front();
    std::uint64_t bytes = std::min(next.end - next.issued, chunk_bytes_max);
    if (next.operation->into.piece != space::no_piece) {
      const std::byte* const at = next.operation->into.bytes.data() + (next.issued - next.begin);
      bytes = std::min<std::uint64_t>(bytes, arena::bytes_to_piece_end(at));
    }
    if (!admits(bytes)) return;
    if (insists_on_buffers_ && !is_registered(next)) {
      next.failure = ENOMEM;
      dequeue(next);
      if (next.chunks == 0) finish(next);
      continue;
    }
    issue(next, bytes);
  }
}

/// Whether the next bytes of a read go to a registered buffer.
bool ring_loop::is_registered(const job& asking) {
  const space& into = asking.operation->into;
  if (into.piece == space::no_piece) return false;
  const std::byte* const at = into.bytes.data() + (asking.issued - asking.begin);
  return use_registered(arena::piece_at(at, into.bytes.data(), into.piece));
}

void ring_loop::issue(job& from, std::uint64_t bytes) {
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
  const job& from = *part.owner;
  const space& into = from.operation->into;
  std::byte* const memory = part.memory + part.got;
  const auto bytes = static_cast<unsigned>(part.bytes - part.got);
  const std::uint64_t offset = part.offset + part.got;
  const std::uint32_t piece =
      into.piece == space::no_piece ? into.piece : arena::piece_at(memory, into.bytes.data(), into.piece);
  const bool registered = use_registered(piece);
  io_uring_sqe* const sqe = ring_->next_sqe();
  if (registered) {
    io_uring_prep_read_fixed(sqe, from.slot->descriptor, memory, bytes, offset, static_cast<int>(piece));
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

bool ring_loop::use_registered(std::uint32_t piece) {
  if (piece >= registered_.size()) return false;
  if (registered_[piece]) return true;
  // Once refused, all wait for a while; what is refused again and again will not be had.
  if (register_refusals_ > register_tries_max || now_ < register_again_at_ns_) return false;
  const std::span<std::byte> memory = context_.memory->piece(piece);
  if (memory.empty()) return false;  // not from this arena
  const int failure = ring_->register_buffer(piece, memory);
  const async::mutex_lock lock(report_mutex_);
  if (failure == 0) {
    registered_[piece] = true;
    ++pieces_registered_;
    if (register_refusals_ != 0) {
      buffers_report_.use = "partly";
    }
    return true;
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
  buffers_report_ = {pieces_registered_ == 0 ? "off" : "partly", why};
  return false;
}

void ring_loop::on_chunk(chunk& part, int result) {
  job& owner = *part.owner;
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
    if (part.got == part.bytes || reached >= owner.wanted_end()) return end_chunk(part);
    if (given_up) {
      if (owner.failure == 0) owner.failure = owner.cancelled ? ECANCELED : 0;
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
  if ((failure == EINTR || failure == EAGAIN || failure == ECANCELED) && !given_up && owner.tries < tries_max) {
    ++owner.tries;
    count_.retries.add(1);
    return ask(part);
  }
  if (owner.failure == 0) {
    if (owner.cancelled) {
      owner.failure = ECANCELED;
    } else if ((failure == EINVAL || failure == EOPNOTSUPP) && owner.slot->mode.direct &&
               owner.slot->set->modes.refused(owner.slot->set->files->directory(owner.slot->file), owner.slot->path,
                                              failure)) {
      owner.refused = true;
    } else if (!owner.refused) {
      owner.failure = failure;
    }
  }
  end_chunk(part);
}

void ring_loop::end_chunk(chunk& part) {
  job& owner = *part.owner;
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

void ring_loop::read_again_buffered(job& refused) {
  file_slot& slot = *refused.slot;
  if (!slot.stale) {
    slot.stale = true;
    slot_of_.erase(key_of(*slot.set, slot.file));
  }
  refused.refused = false;
  refused.ranged = false;
  detach(refused);
  enqueue(unplaced_, refused);
  place_waiting();
}

// ---- Ending -------------------------------------------------------------------------------------------------------

void ring_loop::enqueue(intrusive_list<job>& queue, job& queued) {
  queue.push_back(queued);
  queued.queue = &queue;
}
void ring_loop::dequeue(job& queued) {
  if (queued.queue != nullptr) std::exchange(queued.queue, nullptr)->remove(queued);
}

void ring_loop::finish(job& ended) {
  assert(ended.chunks == 0 && !ended.finished);
  ended.finished = true;
  enqueue(finished_, ended);
}

void ring_loop::finish_all() {
  // Those that end while others are told have their turn in the next round: a chain of reads of nothing must not keep
  // the loop from its ring.
  for (std::size_t left = finished_.size(); left != 0; --left) {
    job& ended = finished_.front();
    dequeue(ended);
    deliver(ended);
  }
  for (std::size_t left = looks_done_.size(); left != 0; --left) {
    open_operation* const told = looks_done_.front();
    looks_done_.pop_front();
    told->done(*told);
  }
}

void ring_loop::deliver(job& ended) {
  read_operation& operation = *ended.operation;
  operation.failure = ended.failure;
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
  jobs_.give_back(ended);
  operation.done(operation);
}

void ring_loop::cancel(read_operation& operation) {
  auto* const asked = static_cast<job*>(operation.state);
  if (asked == nullptr || asked->finished || asked->cancelled) return;
  asked->cancelled = true;
  dequeue(*asked);  // no more of it is issued
  if (asked->chunks == 0) {
    asked->failure = ECANCELED;
    detach(*asked);
    return finish(*asked);
  }
  for (chunk& part : in_kernel_) {
    if (part.owner == asked) cancel_in_kernel(reinterpret_cast<std::uintptr_t>(&part) | tag_chunk);
  }
}

void ring_loop::cancel_in_kernel(std::uint64_t user_data) {
  io_uring_sqe* const sqe = ring_->next_sqe();
  io_uring_prep_cancel64(sqe, user_data, 0);
  io_uring_sqe_set_data64(sqe, tag_none);
  ++closing_;
}

void ring_loop::start(file_set& set, open_operation& operation) {
  look& begun = looks_.take();
  begun.operation = &operation;
  begun.set = &set;
  begun.since_ns = now_ns();
  set.files->path(operation.file, begun.path);
  operation.failure = 0;
  operation.state = &begun;
  ++set.operations;
  io_uring_sqe* const sqe = ring_->next_sqe();
  io_uring_prep_statx(sqe, AT_FDCWD, begun.path.c_str(), AT_STATX_SYNC_AS_STAT,
                      file_status::mask_basic | file_status::mask_direct,
                      reinterpret_cast<struct statx*>(&begun.status));
  io_uring_sqe_set_data64(sqe, reinterpret_cast<std::uintptr_t>(&begun) | tag_look);
  looking_.push_back(begun);
}

void ring_loop::on_look(look& done, int result) {
  open_operation* const operation = std::exchange(done.operation, nullptr);
  if (done.overdue) {
    late_looks_.remove(done);
    end_overdue(done.overdue);
  } else {
    looking_.remove(done);
  }
  if (operation != nullptr) {
    if (result == 0) result = done.status.is_directory() ? -EISDIR : -done.set->modes.failure_of(done.status);
    operation->failure = result < 0 ? -result : 0;
    operation->state = nullptr;
    if (result == 0) {
      operation->size_bytes = done.status.size_bytes;
      operation->version = done.status.version();
      operation->alignment = done.set->modes.mode_of(done.status).alignment;
    }
    --done.set->operations;
    looks_done_.push_back(operation);
  }
  looks_.give_back(done);
}

void ring_loop::expire() {
  const auto is_old = [this](std::uint64_t since_ns) { return now_ >= since_ns + timeout_ns_; };
  while (!in_kernel_.empty() && is_old(in_kernel_.front().since_ns)) {
    chunk& part = in_kernel_.front();
    job& owner = *part.owner;
    in_kernel_.remove(part);
    late_chunks_.push_back(part);
    const std::string path = owner.set->files->path(owner.operation->file);
    part.overdue =
        context_.overdue.add(str_cat(path, " at offset ", part.offset), explain_read({.failure = ETIMEDOUT,
                                                                                      .path = path,
                                                                                      .offset = owner.operation->offset,
                                                                                      .bytes = owner.operation->bytes,
                                                                                      .timeout_s = timeout_s()}));
    if (owner.failure == 0) owner.failure = ETIMEDOUT;
    dequeue(owner);
    cancel_in_kernel(reinterpret_cast<std::uintptr_t>(&part) | tag_chunk);
  }
  while (!opening_.empty() && is_old(opening_.front().since_ns)) {
    file_slot& slot = opening_.front();
    dequeue(slot);
    enqueue(late_, slot);
    slot.overdue = context_.overdue.add(str_cat(slot.path, " (opening)"), explain_open(ETIMEDOUT, slot.path));
    cancel_in_kernel(reinterpret_cast<std::uintptr_t>(&slot) | tag_slot);
    // The kernel has none of their memory: they need not wait for it.
    if (slot.stale) continue;
    slot.stale = true;
    slot_of_.erase(key_of(*slot.set, slot.file));
    while (!slot.waiting.empty()) {
      job& failed = slot.waiting.front();
      dequeue(failed);
      failed.failure = ETIMEDOUT;
      failed.slot = nullptr;
      --slot.users;
      finish(failed);
    }
    const file_set& set = *std::exchange(slot.set, nullptr);
    if (slot.now == phase::waiting_for_status) ask_again(set, set.files->directory(slot.file));
  }
  while (!looking_.empty() && is_old(looking_.front().since_ns)) {
    look& old = looking_.front();
    looking_.remove(old);
    late_looks_.push_back(old);
    old.overdue = context_.overdue.add(old.path, explain_open(ETIMEDOUT, old.path));
    cancel_in_kernel(reinterpret_cast<std::uintptr_t>(&old) | tag_look);
    open_operation* const operation = std::exchange(old.operation, nullptr);
    operation->failure = ETIMEDOUT;
    operation->state = nullptr;
    --old.set->operations;
    looks_done_.push_back(operation);
  }
  if (open_again_at_ns_ != 0 && now_ >= open_again_at_ns_) open_again_at_ns_ = 0;
  place_waiting();
}

std::unique_ptr<io_loop> make_ring_loop(io_context& context, const ring_limits& limits) {
  return std::make_unique<ring_loop>(context, limits);
}

}  // namespace leat::io

#include "tests/support/fake_disk.hpp"

#include "base/mutex.hpp"
#include "io/files/read_error.hpp"
#include "tests/support/seeded_random.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <limits>
#include <thread>
#include <utility>

namespace leat::testing {
namespace {

// What a draw is for: draws for different purposes must not be related.
enum purpose : std::uint64_t { contents_of, failure_of, schedule_of };

bool is_tried_again(int failure) { return failure == EAGAIN || failure == EINTR; }

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

}  // namespace

// The disk itself, which its sources keep alive.
class fake_disk::state {
 public:
  explicit state(fake_disk_options given) : options(std::move(given)) {
    if (options.alignment_bytes > io::alignment_max_bytes ||
        (options.alignment_bytes != 0 && !std::has_single_bit(options.alignment_bytes))) {
      throw error(errc::usage, "fake disk: an alignment of " + std::to_string(options.alignment_bytes) +
                                   " bytes; give a power of two up to 4096, or 0");
    }
    if (!options.watch) options.watch = std::make_shared<memory_watch>();
    const mutex_lock lock(mutex);
    read_faults = options.faults.reads;
    open_faults = options.faults.opens;
  }

  // Seeded files have no contents but a size.
  struct file {
    std::string name;
    std::uint64_t size_bytes = 0;
    std::uint64_t version = 1;
    std::shared_ptr<const std::vector<std::byte>> contents;
    std::uint64_t known_bytes = 0;  // when it was added
  };

  file look_at(std::uint32_t number) const {
    const mutex_lock lock(mutex);
    if (number >= all_files.size()) {
      fail_hard("fake disk: file " + std::to_string(number) + " was asked for; there are " +
                std::to_string(all_files.size()));
    }
    return all_files[number];
  }

  void fill(std::uint32_t number, const file& from, std::uint64_t offset, std::span<std::byte> out) const {
    if (from.contents) {
      std::copy_n(from.contents->begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    } else {
      fill_seeded(mix_bits(options.seed, contents_of, number), offset, out);
    }
  }

  // What the list of faults says to one attempt, and uses up: 0, an errno or never.
  int hit_by_list(std::uint32_t number, std::uint64_t offset, std::uint64_t bytes) {
    const mutex_lock lock(mutex);
    for (read_fault& fault : read_faults) {
      const bool touched = fault.file == number && fault.offset < offset + bytes && offset < fault.offset + fault.bytes;
      if (!touched || fault.times == 0) continue;
      if (fault.times != read_fault::always) --fault.times;
      return fault.failure;
    }
    return 0;
  }
  std::shared_ptr<const io::source_failure> said_by_list(std::uint32_t number, std::uint64_t offset,
                                                         std::uint64_t bytes) const {
    const mutex_lock lock(mutex);
    for (const read_fault& fault : read_faults) {
      const bool touched = fault.file == number && fault.offset < offset + bytes && offset < fault.offset + fault.bytes;
      if (touched && fault.said != nullptr) return fault.said;
    }
    return nullptr;
  }
  int hit_by_list(std::uint32_t number) {
    const mutex_lock lock(mutex);
    for (open_fault& fault : open_faults) {
      if (fault.file != number || fault.times == 0) continue;
      if (fault.times != read_fault::always) --fault.times;
      return fault.failure;
    }
    return 0;
  }

  int drawn_failure(std::uint32_t number, std::uint64_t offset) const {
    const fault_plan& plan = options.faults;
    const std::uint64_t seed = plan.damage_seed != 0 ? plan.damage_seed : options.seed;
    const std::uint64_t bits = mix_bits(seed, failure_of, number, offset);
    double below = plan.io_error;
    if (happens(bits, below)) return EIO;
    if (happens(bits, below += plan.not_found)) return ENOENT;
    if (happens(bits, below += plan.timed_out)) return ETIMEDOUT;
    if (happens(bits, below += plan.never)) return read_fault::never;
    return 0;
  }

  fake_disk_options options;
  mutable leat::mutex mutex;
  std::vector<file> all_files ABSL_GUARDED_BY(mutex);
  std::vector<read_fault> read_faults ABSL_GUARDED_BY(mutex);
  std::vector<open_fault> open_faults ABSL_GUARDED_BY(mutex);
  fake_disk_counters counters ABSL_GUARDED_BY(mutex);
};

namespace {

// An operation between start() and done().
struct flight {
  io::read_operation* read = nullptr;  // either this
  io::open_operation* open = nullptr;  // or that
  struct {
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    io::read_target into;
    void (*done)(io::read_operation&) noexcept = nullptr;
  } question;        // as it was asked
  std::string name;  // for complaints

  std::byte poison{0};
  std::uint64_t alignment_bytes = 1;
  std::uint64_t written_bytes = 0;  // from the start of `into`, by short reads
  unsigned tries = 0;               // that met EAGAIN or EINTR by the list of faults
  unsigned delays = 0;              // the same by chance
  bool never = false;
  bool held_back = false;
  bool cancelled = false;
  bool ended = false;  // its outcome is decided
  int failure = 0;
  std::uint64_t data_bytes = 0;
};

class fake_source final : public io::source {
 public:
  fake_source(std::shared_ptr<fake_disk::state> disk, io::connector& loop, std::uint64_t number)
      : disk_(std::move(disk)), loop_(loop), random_(mix_bits(disk_->options.seed, schedule_of, number)) {}
  ~fake_source() override;

  void start(std::span<io::read_operation* const> operations) override;
  void start(io::open_operation& operation) override;
  void cancel(io::read_operation& operation) override;
  [[nodiscard]] error explain(const io::read_operation& operation) const override;
  [[nodiscard]] error explain(const io::open_operation& operation) const override;

 private:
  // How a turn chooses. One mood lasts some turns.
  enum class mood : std::uint8_t { stalled, one_of_all, some, oldest, newest, everything };

  void take(io::read_operation& operation);
  void check_space(const flight& taken) const;
  void check_thread();
  void post_turn();
  void turn();
  void choose(std::vector<flight*>& chosen);
  void change_mood();
  [[nodiscard]] bool may_arrive(const flight& one) const;
  void attempt(flight& one);
  void attempt_read(flight& one);
  void let_go(flight& one);
  void write_until(flight& one, std::uint64_t end);
  void check_untouched(const flight& one) const;
  void deliver(std::unique_ptr<flight> one);
  void deliver_read(flight& one);
  [[nodiscard]] flight* find(const io::read_operation& operation);
  [[nodiscard]] std::string about(const io::read_operation& operation) const;

  const std::shared_ptr<fake_disk::state> disk_;
  io::connector& loop_;
  seeded_random random_;
  std::thread::id thread_;  // of the loop, once it is known

  std::vector<std::unique_ptr<flight>> pending_;  // in the order of start()
  std::deque<std::unique_ptr<flight>> ended_;     // in the order of delivery, within a turn
  mood mood_ = mood::everything;
  unsigned mood_turns_left_ = 0;
  unsigned idle_turns_left_ = 0;  // until an operation that was held back may come
  bool turn_posted_ = false;
  bool* destroyed_ = nullptr;  // set by the destructor where a turn is under way
};

fake_source::~fake_source() {
  if (pending_.empty() && ended_.empty()) {
    if (destroyed_ != nullptr) *destroyed_ = true;
    return;
  }
  std::string list = "fake disk: a source is destroyed with operations in flight:";
  for (const auto& each : pending_) list += "\n  " + each->name + (each->cancelled ? ", cancelled" : "");
  for (const auto& each : ended_) list += "\n  " + each->name + ", about to be delivered";
  fail_hard(list);
}

void fake_source::check_thread() {
  const std::thread::id here = std::this_thread::get_id();
  if (thread_ == std::thread::id()) thread_ = here;
  if (thread_ != here) fail_hard("fake disk: a source is used on another thread than its loop's");
}

std::string fake_source::about(const io::read_operation& operation) const {
  return "read of " + std::to_string(operation.bytes) + " bytes at " + std::to_string(operation.offset) + " of " +
         disk_->look_at(operation.file).name;
}

void fake_source::start(std::span<io::read_operation* const> operations) {
  check_thread();
  for (io::read_operation* const each : operations) take(*each);
  post_turn();
}

void fake_source::take(io::read_operation& operation) {
  auto taken = std::make_unique<flight>();
  taken->read = &operation;
  taken->question = {operation.file, operation.offset, operation.bytes, operation.into, operation.done};
  taken->name = about(operation);
  check_space(*taken);

  const fault_plan& plan = disk_->options.faults;
  taken->never = disk_->drawn_failure(operation.file, operation.offset) == read_fault::never;
  taken->held_back = random_.chance(plan.held_back);
  taken->alignment_bytes = disk_->options.alignment_bytes;
  if (taken->alignment_bytes == 0) {
    constexpr std::uint64_t found_in_life[] = {1, 512, io::alignment_max_bytes};
    taken->alignment_bytes = found_in_life[random_.below(std::size(found_in_life))];
  }
  taken->poison = static_cast<std::byte>(1 + random_.below(254));
  disk_->options.watch->claim(operation.into.bytes, taken->name);
  std::fill(operation.into.bytes.begin(), operation.into.bytes.end(), taken->poison);

  operation.state = this;
  operation.started_ns = now_ns();
  pending_.push_back(std::move(taken));

  const mutex_lock lock(disk_->mutex);
  fake_disk_counters& counters = disk_->counters;
  ++counters.reads;
  counters.read_bytes += operation.bytes;
  counters.reads_in_flight_max = std::max(counters.reads_in_flight_max, ++counters.reads_in_flight);
  counters.bytes_in_flight += operation.into.bytes.size();
  counters.bytes_in_flight_max = std::max(counters.bytes_in_flight_max, counters.bytes_in_flight);
}

void fake_source::check_space(const flight& taken) const {
  const auto& asked = taken.question;
  const std::string prefix = "fake disk: " + taken.name + ": ";
  for (const auto& each : pending_) {
    if (each->read == taken.read) fail_hard(prefix + "the operation is in flight already");
  }
  if (asked.done == nullptr) fail_hard(prefix + "done is not set");
  if (asked.bytes > std::numeric_limits<std::uint64_t>::max() - io::alignment_max_bytes - asked.offset) {
    fail_hard(prefix + "it ends beyond 2^64");
  }
  if (reinterpret_cast<std::uintptr_t>(asked.into.bytes.data()) % io::alignment_max_bytes != 0) {
    fail_hard(prefix + "its memory is not aligned to 4096 bytes");
  }
  const std::uint64_t needed = io::aligned_bytes(asked.offset, asked.bytes);
  if (asked.into.bytes.size() < needed) {
    fail_hard(prefix + "its memory has " + std::to_string(asked.into.bytes.size()) + " bytes, and " +
              std::to_string(needed) + " are needed: io::aligned_bytes()");
  }
}

void fake_source::start(io::open_operation& operation) {
  check_thread();
  auto taken = std::make_unique<flight>();
  taken->open = &operation;
  taken->name = "open of " + disk_->look_at(operation.file).name;
  taken->held_back = random_.chance(disk_->options.faults.held_back);
  operation.state = this;
  pending_.push_back(std::move(taken));
  {
    const mutex_lock lock(disk_->mutex);
    ++disk_->counters.opens;
  }
  post_turn();
}

flight* fake_source::find(const io::read_operation& operation) {
  for (const auto& each : pending_) {
    if (each->read == &operation) return each.get();
  }
  for (const auto& each : ended_) {
    if (each->read == &operation) return each.get();
  }
  return nullptr;
}

void fake_source::cancel(io::read_operation& operation) {
  check_thread();
  flight* const found = find(operation);
  // Its fields are not looked at: it may be gone.
  if (found == nullptr) fail_hard("fake disk: a read is cancelled that is not in flight: not started, or done already");
  if (found->ended || found->cancelled) return;
  found->cancelled = true;
  {
    const mutex_lock lock(disk_->mutex);
    ++disk_->counters.cancels;
  }
  post_turn();
}

void fake_source::post_turn() {
  if (turn_posted_) return;
  const bool anything =
      std::any_of(pending_.begin(), pending_.end(), [](const auto& each) { return !each->never || each->cancelled; });
  if (!anything) return;
  turn_posted_ = true;
  loop_.post([](void* self) noexcept { static_cast<fake_source*>(self)->turn(); }, this);
}

void fake_source::turn() {
  check_thread();
  turn_posted_ = false;
  std::vector<flight*> chosen;
  choose(chosen);
  for (flight* const each : chosen) attempt(*each);

  // Decided first and delivered after, as completions are reaped first and resumed after: a done() may start and cancel.
  for (flight* const each : chosen) {
    if (!each->ended) continue;
    const auto at =
        std::find_if(pending_.begin(), pending_.end(), [&](const auto& other) { return other.get() == each; });
    ended_.push_back(std::move(*at));
    pending_.erase(at);
  }
  bool destroyed = false;
  bool* const outer = std::exchange(destroyed_, &destroyed);
  while (!ended_.empty()) {
    std::unique_ptr<flight> next = std::move(ended_.front());
    ended_.pop_front();
    deliver(std::move(next));
    if (destroyed) {
      if (outer != nullptr) *outer = true;  // a done() ran the loop, and this turn is within another
      return;
    }
  }
  destroyed_ = outer;
  post_turn();
}

bool fake_source::may_arrive(const flight& one) const {
  if (one.cancelled) return true;
  return !one.never && !one.held_back;
}

void fake_source::choose(std::vector<flight*>& chosen) {
  std::vector<flight*> able;
  std::vector<flight*> held;
  for (const auto& each : pending_) {
    if (may_arrive(*each)) {
      able.push_back(each.get());
    } else if (!each->never) {
      held.push_back(each.get());
    }
  }
  if (able.empty()) {
    // Everything else has arrived. Those held back let the others' users act first, then come one at a time.
    if (held.empty()) return;
    if (idle_turns_left_ > 0) {
      --idle_turns_left_;
      return;
    }
    flight* const freed = held[random_.below(held.size())];
    freed->held_back = false;
    able.push_back(freed);
  }
  idle_turns_left_ = static_cast<unsigned>(random_.below(32));

  if (disk_->options.order == delivery::in_order) {
    chosen = std::move(able);
    return;
  }
  if (mood_turns_left_ == 0) change_mood();
  --mood_turns_left_;
  const auto count = static_cast<std::ptrdiff_t>(1 + random_.below(able.size()));
  switch (mood_) {
    case mood::stalled:
      return;
    case mood::one_of_all:
      chosen.push_back(able[random_.below(able.size())]);
      return;
    case mood::some:
      std::copy_if(able.begin(), able.end(), std::back_inserter(chosen), [&](flight*) { return random_.chance(0.5); });
      break;
    case mood::oldest:
      chosen.assign(able.begin(), able.begin() + count);
      return;
    case mood::newest:
      chosen.assign(able.rbegin(), able.rbegin() + count);
      return;
    case mood::everything:
      chosen = std::move(able);
      break;
  }
  for (std::size_t left = chosen.size(); left > 1; --left) std::swap(chosen[left - 1], chosen[random_.below(left)]);
}

void fake_source::change_mood() {
  mood_ = static_cast<mood>(random_.below(static_cast<std::uint64_t>(mood::everything) + 1));
  mood_turns_left_ = static_cast<unsigned>(1 + random_.below(mood_ == mood::stalled ? 6 : 12));
}

// One step of an operation: it ends, or it stays in flight.
void fake_source::attempt(flight& one) {
  if (one.read != nullptr) check_untouched(one);
  if (one.cancelled) {
    let_go(one);
  } else if (one.read != nullptr) {
    attempt_read(one);
  } else {
    ++one.tries;
    one.failure = disk_->hit_by_list(one.open->file);
    one.ended = !is_tried_again(one.failure) || one.tries >= fake_disk::tries_max;
  }
  if (!one.ended && is_tried_again(one.failure)) {
    const mutex_lock lock(disk_->mutex);
    ++disk_->counters.retries;
  }
}

void fake_source::attempt_read(flight& one) {
  const auto& asked = one.question;
  const fault_plan& plan = disk_->options.faults;
  one.failure = disk_->hit_by_list(asked.file, asked.offset, asked.bytes);
  if (one.failure == read_fault::never) {
    one.failure = 0;
    one.never = true;
    return;
  }
  if (is_tried_again(one.failure)) {
    one.ended = ++one.tries >= fake_disk::tries_max;
    return;
  }
  // Counted apart, and bounded: what comes by chance only delays.
  if (one.failure == 0 && one.delays + 1 < fake_disk::tries_max && random_.chance(plan.again)) {
    ++one.delays;
    one.failure = random_.chance(0.5) ? EAGAIN : EINTR;
    return;
  }
  one.ended = true;
  if (one.failure == 0) one.failure = disk_->drawn_failure(asked.file, asked.offset);
  if (one.failure == 0) {
    const fake_disk::state::file file = disk_->look_at(asked.file);
    const std::uint64_t size = file.size_bytes;
    const bool is_whole = asked.offset == 0 && asked.bytes == file.known_bytes;
    if (is_whole && size > asked.bytes && asked.into.bytes.size() > asked.bytes) one.failure = EFBIG;
    one.data_bytes = std::min(asked.bytes, size - std::min(size, asked.offset));
    if (one.data_bytes < asked.bytes) one.failure = ENODATA;
  }
  if (one.failure != 0) return;

  const std::uint64_t room = io::aligned_bytes(asked.offset, asked.bytes);
  if (one.written_bytes + 1 < room && random_.chance(plan.short_read)) {
    one.ended = false;
    write_until(one, one.written_bytes + 1 + random_.below(room - one.written_bytes - 1));
    const mutex_lock lock(disk_->mutex);
    ++disk_->counters.short_reads;
  }
}

// A cancelled read: the kernel lets go when it likes, writes meanwhile, and may have been faster than the request.
void fake_source::let_go(flight& one) {
  const std::uint64_t room = io::aligned_bytes(one.question.offset, one.question.bytes);
  if (one.written_bytes < room && random_.chance(0.5)) {
    write_until(one, one.written_bytes + random_.below(room - one.written_bytes + 1));
  }
  if (random_.chance(disk_->options.faults.linger)) return;
  if (!one.never && random_.chance(0.25)) {
    attempt_read(one);
    // Nothing is tried again for somebody who does not want it.
    if (one.ended && !is_tried_again(one.failure)) return;
  }
  one.ended = true;
  one.failure = ECANCELED;
}

// Writes the file's bytes up to `end`, counted from the start of `into`; what lies beyond the file's end stays poisoned.
void fake_source::write_until(flight& one, std::uint64_t end) {
  if (end <= one.written_bytes) return;
  const auto& asked = one.question;
  const fake_disk::state::file from = disk_->look_at(asked.file);
  const std::uint64_t first = asked.offset / one.alignment_bytes * one.alignment_bytes;
  const std::uint64_t offset = first + one.written_bytes;
  if (offset < from.size_bytes) {
    const std::uint64_t bytes = std::min(end - one.written_bytes, from.size_bytes - offset);
    disk_->fill(asked.file, from, offset, asked.into.bytes.subspan(one.written_bytes, bytes));
  }
  one.written_bytes = end;
}

void fake_source::check_untouched(const flight& one) const {
  const io::read_operation& now = *one.read;
  const auto& asked = one.question;
  if (now.file != asked.file || now.offset != asked.offset || now.bytes != asked.bytes || now.done != asked.done ||
      now.into.bytes.data() != asked.into.bytes.data() || now.into.bytes.size() != asked.into.bytes.size()) {
    fail_hard("fake disk: " + one.name + ": the operation was changed while it was in flight");
  }
  const std::span<const std::byte> rest = asked.into.bytes.subspan(one.written_bytes);
  const bool clean =
      rest.empty() || (rest[0] == one.poison && std::memcmp(rest.data(), rest.data() + 1, rest.size() - 1) == 0);
  if (!clean) fail_hard("fake disk: " + one.name + ": its memory was written by somebody else while it was in flight");
}

void fake_source::deliver(std::unique_ptr<flight> one) {
  if (one->failure != 0) {
    const mutex_lock lock(disk_->mutex);
    ++(one->failure == ECANCELED ? disk_->counters.cancelled : disk_->counters.failed);
  }
  if (one->read != nullptr) {
    deliver_read(*one);
    return;
  }
  io::open_operation& operation = *one->open;
  const fake_disk::state::file found = disk_->look_at(operation.file);
  const fake_disk_options& options = disk_->options;
  operation.failure = one->failure;
  operation.size_bytes = one->failure == 0 ? found.size_bytes : 0;
  operation.version = one->failure == 0 ? found.version : 0;
  operation.alignment =
      static_cast<std::uint32_t>(options.alignment_bytes != 0 ? options.alignment_bytes : io::alignment_max_bytes);
  operation.state = nullptr;
  operation.done(operation);
}

void fake_source::deliver_read(flight& one) {
  io::read_operation& operation = *one.read;
  check_untouched(one);  // once more: another done() of this turn may have done it
  operation.data = {};
  operation.failure = one.failure;
  if (one.failure != 0 && one.failure != ECANCELED) {
    const auto said = disk_->said_by_list(one.question.file, one.question.offset, one.question.bytes);
    if (said != nullptr) operation.said = std::make_unique<const io::source_failure>(*said);
  }
  if (one.failure == 0 || one.failure == ENODATA) {
    // All that a read with this alignment asks the kernel for; of a file that ends early, what there is.
    const std::uint64_t skipped = one.question.offset % one.alignment_bytes;
    const std::uint64_t end =
        (skipped + one.question.bytes + one.alignment_bytes - 1) / one.alignment_bytes * one.alignment_bytes;
    write_until(one, end);
    operation.data = operation.into.bytes.subspan(skipped, one.data_bytes);
  }
  disk_->options.watch->release(one.question.into.bytes);
  {
    const mutex_lock lock(disk_->mutex);
    --disk_->counters.reads_in_flight;
    disk_->counters.bytes_in_flight -= one.question.into.bytes.size();
  }
  operation.state = nullptr;
  operation.done(operation);
}

error fake_source::explain(const io::read_operation& operation) const {
  const std::string path = disk_->look_at(operation.file).name;
  return io::explain_read({.failure = operation.failure,
                           .path = path,
                           .offset = operation.offset,
                           .bytes = operation.bytes,
                           .data_bytes = operation.data.size(),
                           .timeout_s = 300});  // the reader's default: nothing here waits for so long
}

error fake_source::explain(const io::open_operation& operation) const {
  return io::explain_open(operation.failure, disk_->look_at(operation.file).name);
}

}  // namespace

fake_disk::fake_disk(fake_disk_options options) : state_(std::make_shared<state>(std::move(options))) {}
fake_disk::~fake_disk() = default;

std::uint32_t fake_disk::add_file(std::string name, std::vector<std::byte> contents) {
  const std::uint64_t size = contents.size();
  auto shared = std::make_shared<const std::vector<std::byte>>(std::move(contents));
  const mutex_lock lock(state_->mutex);
  state_->all_files.push_back({std::move(name), size, 1, std::move(shared), size});
  return static_cast<std::uint32_t>(state_->all_files.size() - 1);
}

std::uint32_t fake_disk::add_seeded_file(std::string name, std::uint64_t size_bytes) {
  const mutex_lock lock(state_->mutex);
  state_->all_files.push_back({std::move(name), size_bytes, 1, nullptr, size_bytes});
  return static_cast<std::uint32_t>(state_->all_files.size() - 1);
}

std::uint32_t fake_disk::add_missing_file(std::string name) {
  const std::uint32_t file = add_seeded_file(std::move(name), 0);
  constexpr std::uint64_t everything = std::numeric_limits<std::uint64_t>::max();
  add_fault(read_fault{.file = file, .offset = 0, .bytes = everything, .failure = ENOENT});
  add_fault(open_fault{.file = file, .failure = ENOENT});
  return file;
}

void fake_disk::replace_file(std::uint32_t file, std::vector<std::byte> contents) {
  const std::uint64_t size = contents.size();
  auto shared = std::make_shared<const std::vector<std::byte>>(std::move(contents));
  const mutex_lock lock(state_->mutex);
  state::file& replaced = state_->all_files.at(file);
  replaced = {std::move(replaced.name), size, replaced.version + 1, std::move(shared), replaced.known_bytes};
}

void fake_disk::add_fault(const read_fault& fault) {
  const mutex_lock lock(state_->mutex);
  state_->read_faults.push_back(fault);
}

void fake_disk::add_fault(const open_fault& fault) {
  const mutex_lock lock(state_->mutex);
  state_->open_faults.push_back(fault);
}

std::uint64_t fake_disk::size_bytes(std::uint32_t file) const { return state_->look_at(file).size_bytes; }

std::vector<std::byte> fake_disk::bytes(std::uint32_t file, std::uint64_t offset, std::uint64_t bytes) const {
  const state::file from = state_->look_at(file);
  if (offset > from.size_bytes || bytes > from.size_bytes - offset) {
    fail_hard("fake disk: a test asks for bytes beyond the end of " + from.name);
  }
  std::vector<std::byte> out(bytes);
  state_->fill(file, from, offset, out);
  return out;
}

int fake_disk::drawn_failure(std::uint32_t file, std::uint64_t offset) const {
  return state_->drawn_failure(file, offset);
}

fake_disk_counters fake_disk::count() const {
  const mutex_lock lock(state_->mutex);
  return state_->counters;
}

std::unique_ptr<io::source> fake_disk::connect(io::connector& loop) const {
  std::uint64_t number = 0;
  {
    const mutex_lock lock(state_->mutex);
    number = state_->counters.sources++;
  }
  return std::make_unique<fake_source>(state_, loop, number);
}

std::uint32_t fake_disk::files() const {
  const mutex_lock lock(state_->mutex);
  return static_cast<std::uint32_t>(state_->all_files.size());
}

std::string fake_disk::file_name(std::uint32_t file) const { return state_->look_at(file).name; }

}  // namespace leat::testing

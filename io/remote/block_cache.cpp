#include "io/remote/block_cache.hpp"

#include "base/clock.hpp"
#include "base/crc32c.hpp"
#include "base/descriptor.hpp"
#include "base/errno_words.hpp"
#include "base/file_at.hpp"
#include "base/per_process.hpp"
#include "base/text.hpp"
#include "io/remote/futex_waitv.hpp"

#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace leat::io {
namespace {

constexpr std::string_view header_name = "leat-cache";
constexpr std::string_view index_ending = ".index";
constexpr std::string_view data_ending = ".data";
constexpr std::array<char, 8> header_magic = {'l', 'e', 'a', 't', 'c', 'c', 'h', '\n'};
constexpr std::array<char, 8> index_magic = {'l', 'e', 'a', 't', 'b', 'l', 'k', '\n'};
// Incremented whenever the meaning of the files changes.
constexpr std::uint32_t version = 3;
constexpr std::uint32_t block_bytes_most = std::uint32_t{64} << 20;
constexpr std::uint64_t blocks_most = std::uint64_t{1} << 31;
// A server may say that an object has any size: its index takes a thousandth of that.
constexpr std::uint64_t index_bytes_granted = std::uint64_t{1} << 20;
constexpr std::uint64_t index_share = 64;

// States of a block. The lowest two bits say which; of one that is there the others count fills, of one that is being filled they say who
// does it. The highest bit is that of blocks which pass.
constexpr std::uint64_t absent = 0;
constexpr std::uint64_t present = 1;  // with the number of its fill
constexpr std::uint64_t loading = 2;  // with slot and generation
constexpr unsigned state_bits = 2;
constexpr std::uint64_t state_mask = (1U << state_bits) - 1;
constexpr std::uint64_t passing_mark = std::uint64_t{1} << 63;
constexpr unsigned slot_bits = 10;
constexpr std::uint32_t slots = 1U << slot_bits;

// Bytes of leat-cache that are locked: by who uses the folder, by who opens it, by who is at work under a slot.
constexpr off_t users_byte = 0;
constexpr off_t opening_byte = 1;
constexpr off_t first_slot_byte = 16;
// Of an index: by who holds the object.
constexpr off_t holders_byte = 0;

struct index_header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t block_bytes;
  std::uint64_t size_bytes;
  std::int64_t opened_unix_s;
  std::uint32_t name_bytes;
  std::array<char, 1024> name;
};
constexpr std::size_t index_header_bytes = 4096;
static_assert(sizeof(index_header) <= index_header_bytes);

bool says_present(std::uint64_t word) { return (word & state_mask) == present; }
bool says_passing(std::uint64_t word) { return (word & passing_mark) != 0; }
std::uint64_t number_of(std::uint64_t word) { return (word & ~passing_mark) >> state_bits; }

std::uint64_t rounded_up(std::uint64_t bytes) {
  return (bytes + cache_page_bytes - 1) / cache_page_bytes * cache_page_bytes;
}
std::uint64_t pages_in(std::uint64_t size_bytes) { return rounded_up(size_bytes) / cache_page_bytes; }
std::uint32_t blocks_in(std::uint64_t size_bytes, std::uint32_t block_bytes) {
  return static_cast<std::uint32_t>((size_bytes + block_bytes - 1) / block_bytes);
}
std::size_t index_bytes(std::uint64_t size_bytes, std::uint32_t block_bytes) {
  return index_header_bytes + blocks_in(size_bytes, block_bytes) * 2 * sizeof(std::uint64_t) +
         pages_in(size_bytes) * sizeof(std::uint32_t);
}

// The bits of pages in one word of them, from `page` on.
struct page_bits {
  std::uint64_t word;
  std::uint64_t bits;
  std::uint64_t end;  // the page behind them
};
page_bits bits_from(std::uint64_t page, std::uint64_t end_page) noexcept {
  const std::uint64_t end = std::min((page / 64 + 1) * 64, end_page);
  return {page / 64, (~std::uint64_t{0} >> (64 - (end - page))) << page % 64, end};
}

// Locks of an open file description: each opening of a file has its own, whichever process it is in.
//   waits     for who has it, a second at the most: a process that was stopped has it for ever
//   returns   0 or an errno
int lock(int file, short type, off_t byte, bool waits) {
  struct flock wanted{};
  wanted.l_type = type;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = byte;
  wanted.l_len = 1;
  constexpr auto look_again = std::chrono::milliseconds(2);
  const auto give_up_at = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (::fcntl(file, F_OFD_SETLK, &wanted) != 0) {
    if (errno == EINTR) continue;
    const bool is_held = errno == EAGAIN || errno == EACCES;
    if (!waits || !is_held) return errno;
    if (std::chrono::steady_clock::now() > give_up_at) return EBUSY;
    std::this_thread::sleep_for(look_again);
  }
  return 0;
}
bool is_locked_by_others(int file, off_t byte) {
  struct flock asked{};
  asked.l_type = F_WRLCK;
  asked.l_whence = SEEK_SET;
  asked.l_start = byte;
  asked.l_len = 1;
  return ::fcntl(file, F_OFD_GETLK, &asked) == 0 && asked.l_type != F_UNLCK;
}

int open_file(const std::string& path, int flags) {
  return ::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
}

// Gives the room of a block back. Where the file system has no holes the room stays taken until the object goes.
void punch(const std::string& path, std::uint64_t offset, std::uint64_t bytes) noexcept {
  const descriptor data(open_file(path, O_WRONLY));
  if (data.get() < 0) return;
  static_cast<void>(::fallocate(data.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                                static_cast<off_t>(bytes)));
}

}  // namespace

bool concerns_all_objects(int failure) noexcept {
  switch (failure) {
    case ENOSPC:
    case EDQUOT:
    case EROFS:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOLCK:
    case EBUSY:  // A stopped process, which is waited for: a second for each object would be too long.
      return true;
    default:
      return false;
  }
}

namespace {

std::string words_of(int failure) {
  return failure == EBUSY ? "another process has had it for a second; is it stopped?" : errno_words(failure);
}

std::int64_t unix_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Of whole pages.
//   take   called with each page's place in `pages` and its sum
template <class Take>
void for_each_sum(std::span<const std::byte> pages, const Take& take) {
  constexpr std::size_t at_once = 32;
  std::array<std::uint32_t, at_once> sums;
  for (std::uint64_t at = 0; at < pages.size(); at += at_once * cache_page_bytes) {
    const std::span<const std::byte> some =
        pages.subspan(at, std::min<std::uint64_t>(at_once * cache_page_bytes, pages.size() - at));
    const std::size_t count = some.size() / cache_page_bytes;
    crc32c_of_each(some, cache_page_bytes, std::span(sums).first(count));
    for (std::size_t i = 0; i < count; ++i) take(at + i * cache_page_bytes, sums[i]);
  }
}

bool is_sound(const index_header& found, std::uint64_t file_bytes) {
  return found.magic == index_magic && found.version == version && found.block_bytes > 0 &&
         found.block_bytes <= block_bytes_most && found.block_bytes % cache_page_bytes == 0 && found.size_bytes > 0 &&
         found.size_bytes / found.block_bytes < blocks_most && found.name_bytes <= found.name.size() &&
         file_bytes == index_bytes(found.size_bytes, found.block_bytes);
}

std::uint64_t bytes_of_block(std::uint64_t size_bytes, std::uint32_t block_bytes, std::uint32_t block) {
  const std::uint64_t begin = std::uint64_t{block} * block_bytes;
  return std::min<std::uint64_t>(block_bytes, size_bytes - begin);
}

// Whether the file of an object's bytes is there, whole and this folder's alone.
bool is_data_of(const std::string& path, std::uint64_t size_bytes) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
         static_cast<std::uint64_t>(status.st_size) == rounded_up(size_bytes);
}

// A folder is its user's, and nobody else writes there.
bool may_be_used(const struct stat& folder) {
  return (folder.st_mode & (S_IWGRP | S_IWOTH)) == 0 && folder.st_uid == ::geteuid();
}

// Of the files in a folder; what comes and goes meanwhile may be among them.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (std::filesystem::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

struct seen_index {
  index_header head;
  std::vector<std::uint64_t> words;

  // Of blocks that are there, or that a state says are being filled.
  [[nodiscard]] block_room room_bytes(bool with_loading) const {
    block_room sum;
    for (std::uint32_t i = 0; i < words.size(); ++i) {
      if (says_present(words[i]) || (with_loading && words[i] != absent)) {
        (says_passing(words[i]) ? sum.passing : sum.lasting) +=
            rounded_up(bytes_of_block(head.size_bytes, head.block_bytes, i));
      }
    }
    return sum;
  }
};
std::optional<seen_index> read_index(int file) {
  struct stat status{};
  seen_index seen;
  if (::fstat(file, &status) != 0 || ::pread(file, &seen.head, sizeof seen.head, 0) != sizeof seen.head ||
      !is_sound(seen.head, static_cast<std::uint64_t>(status.st_size))) {
    return std::nullopt;
  }
  seen.words.resize(blocks_in(seen.head.size_bytes, seen.head.block_bytes));
  const std::size_t bytes = seen.words.size() * sizeof(std::uint64_t);
  if (::pread(file, seen.words.data(), bytes, index_header_bytes) != static_cast<ssize_t>(bytes)) return std::nullopt;
  return seen;
}

}  // namespace

struct block_cache::shared_header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t changes;  // raised when a block is filled or given up
  std::uint64_t bytes;    // of blocks that last
  std::uint64_t passing_bytes;
  std::uint64_t fills;  // the number of the next one
  std::array<std::uint32_t, slots> generations;
};

// --- the folder -------------------------------------------------------------------------------------------------------

namespace {

// What sources of this process have open.
struct open_caches {
  mutex guard;
  std::vector<std::weak_ptr<block_cache>> all ABSL_GUARDED_BY(guard);
};
per_process<open_caches> caches_of_process;

}  // namespace

std::shared_ptr<block_cache> block_cache::share(const block_cache_options& options, std::string& refusal) {
  open_caches& open_here = caches_of_process.get([](const open_caches*) { return std::make_unique<open_caches>(); });
  const mutex_lock lock(open_here.guard);
  std::erase_if(open_here.all, [](const std::weak_ptr<block_cache>& each) { return each.expired(); });
  for (const std::weak_ptr<block_cache>& each : open_here.all) {
    std::shared_ptr<block_cache> there = each.lock();
    if (!there || !there->is_of(options)) continue;
    there->full_until_ns_.store(0, std::memory_order_relaxed);  // objects may have been let go since
    return there;
  }
  std::shared_ptr<block_cache> made = open(options, refusal);
  if (made) open_here.all.push_back(made);
  return made;
}

// The folder may have been moved, or made anew, and has to be fit to be opened, as it was.
bool block_cache::is_of(const block_cache_options& options) const {
  struct stat mine{};
  const auto has_mine = [&](const std::string& directory) {
    struct stat named{};
    return ::lstat(str_cat(directory, "/", header_name).c_str(), &named) == 0 && named.st_dev == mine.st_dev &&
           named.st_ino == mine.st_ino;
  };
  struct stat folder{};
  return options.bytes_max == options_.bytes_max && options.block_bytes == options_.block_bytes &&
         options.full_time == options_.full_time && !is_broken_.load(std::memory_order_relaxed) &&
         ::stat(options.directory.c_str(), &folder) == 0 && may_be_used(folder) && ::fstat(header_, &mine) == 0 &&
         has_mine(options.directory) && has_mine(options_.directory);
}

std::shared_ptr<block_cache> block_cache::open(const block_cache_options& options, std::string& refusal) {
  assert(options.block_bytes > 0 && options.block_bytes % cache_page_bytes == 0);
  block_cache_options absolute = options;
  std::error_code failure;
  absolute.directory = std::filesystem::absolute(options.directory, failure).lexically_normal().string();
  while (absolute.directory.size() > 1 && absolute.directory.ends_with('/')) absolute.directory.pop_back();
  const std::string& folder = absolute.directory;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), failure);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    refusal = str_cat(folder, ": it cannot be made: ", errno_words(errno));
    return nullptr;
  }
  struct stat status{};
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    refusal = str_cat(folder, ": this is no folder");
    return nullptr;
  }
  if (!may_be_used(status)) {
    refusal = str_cat(folder, ": others may write there, or it is another user's; a cache is for one user: `chmod 700 ",
                      folder, "`, or name another folder");
    return nullptr;
  }
  std::shared_ptr<block_cache> made(new block_cache(absolute));
  if (const int problem = made->open_header(); problem != 0) {
    refusal = problem == EPROTO
                  ? str_cat(folder, "/", header_name,
                            ": this is no cache of this version of leat; remove the folder, or name another one")
                  : str_cat(folder, "/", header_name, ": ", words_of(problem));
    return nullptr;
  }
  if (!made->take_slot()) {
    refusal = str_cat(folder, ": ", slots, " processes use it already, which is the most");
    return nullptr;
  }
  return made;
}

int block_cache::open_header() {
  header_ = open_file(path_of(header_name, ""), O_RDWR | O_CREAT);
  if (header_ < 0) return errno;
  // One at a time from here on.
  if (const int failure = lock(header_, F_WRLCK, opening_byte, true); failure != 0) return failure;
  const bool is_alone = lock(header_, F_WRLCK, users_byte, false) == 0;
  struct stat status{};
  if (::fstat(header_, &status) != 0) return errno;
  const bool is_new = status.st_size == 0;
  if (is_new) {
    // Room is taken now: a full drive would else be noticed by SIGBUS.
    if (const int failure = ::posix_fallocate(header_, 0, sizeof(shared_header)); failure != 0) return failure;
  } else if (status.st_size != sizeof(shared_header)) {
    return EPROTO;
  }
  if (const int failure = header_map_.open(header_, sizeof(shared_header)); failure != 0) return failure;
  shared_ = reinterpret_cast<shared_header*>(header_map_.data());
  if (is_new) {
    shared_->magic = header_magic;
    shared_->version = version;
  }
  if (shared_->magic != header_magic || shared_->version != version) return EPROTO;
  if (is_alone) {
    count_anew();
    if (const int failure = lock(header_, F_RDLCK, users_byte, false); failure != 0) return failure;
  } else if (const int failure = lock(header_, F_RDLCK, users_byte, true); failure != 0) {
    return failure;
  }
  return lock(header_, F_UNLCK, opening_byte, false);
}

// A process that was killed leaves blocks that nobody fills, and may have taken room without a block; a loss of power leaves data
// without a sound index. Nobody else uses the folder meanwhile.
void block_cache::count_anew() {
  block_room sum;
  std::uint64_t fills = std::atomic_ref(shared_->fills).load(std::memory_order_relaxed);
  for (const std::string& name : names_in(options_.directory)) {
    const bool is_data = name.ends_with(data_ending);
    if (!is_data && !name.ends_with(index_ending)) continue;
    const std::string file = name.substr(0, name.rfind('.'));
    const std::string data_path = path_of(file, data_ending);
    const descriptor index(open_file(path_of(file, index_ending), O_RDWR));
    if (index.get() < 0 && errno != ENOENT && errno != ELOOP) continue;
    const std::optional<seen_index> seen = index.get() < 0 ? std::nullopt : read_index(index.get());
    if (!seen || !is_data_of(data_path, seen->head.size_bytes)) {
      ::unlink(data_path.c_str());
      if (!is_data) ::unlink(path_of(name, "").c_str());
      continue;
    }
    if (is_data) continue;
    for (std::uint32_t i = 0; i < seen->words.size(); ++i) {
      if (says_present(seen->words[i])) fills = std::max(fills, number_of(seen->words[i]) + 1);
      if (seen->words[i] == absent || says_present(seen->words[i])) continue;
      punch(data_path, std::uint64_t{i} * seen->head.block_bytes,
            rounded_up(bytes_of_block(seen->head.size_bytes, seen->head.block_bytes, i)));
      static_cast<void>(::pwrite(index.get(), &absent, sizeof absent,
                                 static_cast<off_t>(index_header_bytes + i * sizeof(std::uint64_t))));
    }
    const block_room of_object = seen->room_bytes(false);
    sum.lasting += of_object.lasting;
    sum.passing += of_object.passing;
  }
  std::atomic_ref(shared_->bytes).store(sum.lasting, std::memory_order_relaxed);
  std::atomic_ref(shared_->passing_bytes).store(sum.passing, std::memory_order_relaxed);
  std::atomic_ref(shared_->fills).store(fills, std::memory_order_relaxed);
}

bool block_cache::take_slot() {
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    if (lock(header_, F_WRLCK, first_slot_byte + slot, false) != 0) continue;
    // Blocks of who had it before are no longer anybody's.
    const std::uint32_t generation =
        std::atomic_ref(shared_->generations[slot]).fetch_add(1, std::memory_order_acq_rel) + 1;
    mine_ = loading | std::uint64_t{slot} << state_bits | std::uint64_t{generation} << (state_bits + slot_bits);
    return true;
  }
  return false;
}

bool block_cache::is_alive(std::uint64_t word) const noexcept {
  word &= ~passing_mark;
  if (word == mine_) return true;
  if ((word & state_mask) != loading) return false;
  const auto slot = static_cast<std::uint32_t>(word >> state_bits) & (slots - 1);
  const auto generation = static_cast<std::uint32_t>(word >> (state_bits + slot_bits));
  return std::atomic_ref(shared_->generations[slot]).load(std::memory_order_acquire) == generation &&
         is_locked_by_others(header_, first_slot_byte + slot);
}

block_cache::~block_cache() {
  if (header_ >= 0) ::close(header_);
}

std::string block_cache::path_of(std::string_view file, std::string_view ending) const {
  return str_cat(options_.directory, "/", file, ending);
}

// Never below nothing: what others have left in a header is not to be believed.
void block_cache::release(const block_room& room) noexcept {
  const auto take = [](std::atomic_ref<std::uint64_t> used, std::uint64_t bytes) {
    std::uint64_t seen = used.load(std::memory_order_relaxed);
    while (!used.compare_exchange_weak(seen, seen - std::min(seen, bytes), std::memory_order_relaxed)) {
    }
  };
  if (room.lasting != 0) take(std::atomic_ref(shared_->bytes), room.lasting);
  if (room.passing != 0) take(std::atomic_ref(shared_->passing_bytes), room.passing);
}

std::uint64_t block_cache::passing_bytes() const noexcept {
  return std::atomic_ref(shared_->passing_bytes).load(std::memory_order_relaxed);
}
std::uint64_t block_cache::bytes_in_use() const noexcept {
  return std::atomic_ref(shared_->bytes).load(std::memory_order_relaxed) + passing_bytes();
}

std::uint32_t block_cache::changes() const noexcept {
  return std::atomic_ref(shared_->changes).load(std::memory_order_acquire);
}
void block_cache::wait_for_change(std::uint32_t seen, std::atomic<std::uint32_t>& mine, std::uint32_t mine_seen,
                                  std::chrono::milliseconds patience) noexcept {
  wait_for_either(mine, mine_seen, shared_->changes, seen, patience);
}

// Both kinds are added to before the other one is looked at, in one order for all: of two that take the last room at the same time at
// least one sees the other.
bool block_cache::reserve(std::uint64_t bytes, std::uint64_t passing_bytes) {
  const std::atomic_ref used(shared_->bytes);
  const auto fits = [&] {
    const std::uint64_t all = used.fetch_add(bytes) + bytes;
    if (all + std::max(std::atomic_ref(shared_->passing_bytes).load(), passing_bytes) <= options_.bytes_max)
      return true;
    used.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  };
  if (is_broken_.load(std::memory_order_relaxed)) return false;
  if (fits()) return true;
  const auto is_full = [&] { return now_ns() < full_until_ns_.load(std::memory_order_relaxed); };
  if (is_full()) return false;
  const mutex_lock lock(evicting_);
  if (is_full()) return false;  // another one has looked
  std::vector<cache_entry> others = entries();
  std::erase_if(others, [](const cache_entry& each) { return each.in_use; });
  std::sort(others.begin(), others.end(),
            [](const cache_entry& a, const cache_entry& b) { return a.opened_unix_s < b.opened_unix_s; });
  for (const cache_entry& each : others) {
    if (evict(each.file) && fits()) return true;
  }
  if (fits()) return true;
  full_until_ns_.store(now_ns() + static_cast<std::uint64_t>(std::chrono::nanoseconds(options_.full_time).count()),
                       std::memory_order_relaxed);
  return false;
}

bool block_cache::reserve_passing(std::uint64_t bytes, std::uint64_t passing_bytes) {
  if (is_broken_.load(std::memory_order_relaxed) || bytes > std::min(passing_bytes, options_.bytes_max)) return false;
  // Of several sources the widest windows say how much may pass: what they have fetched ahead is not for others to take.
  const std::uint64_t widest = [&] {
    const mutex_lock lock(held_mutex_);
    return widest_passing_ = std::max(widest_passing_, passing_bytes);
  }();
  const std::atomic_ref used(shared_->passing_bytes);
  for (;;) {
    const std::uint64_t all = used.fetch_add(bytes) + bytes;
    if (all <= widest && all + std::atomic_ref(shared_->bytes).load() <= options_.bytes_max) return true;
    used.fetch_sub(bytes, std::memory_order_relaxed);
    if (!make_way(passing_bytes)) return false;
  }
}

// Others may be about to take the same blocks out: each of them goes once.
bool block_cache::make_way(std::uint64_t passing_bytes) {
  const mutex_lock lock(held_mutex_);
  for (const bool is_new : {false, true}) {
    if (is_new) find_outgoing(passing_bytes);
    while (!outgoing_.empty()) {
      const outgoing next = outgoing_.back();
      outgoing_.pop_back();
      const bool is_wanted_since = next.object->wanted_at(next.block).load(std::memory_order_relaxed) != next.wanted_at;
      if (!is_wanted_since && next.object->drop(next.block, next.seen)) return true;
    }
  }
  return false;
}

// Those that pass, as they were wanted. Where those that last leave no room for them, as after a run that knew of none: these, and what was
// wanted last goes first.
void block_cache::find_outgoing(std::uint64_t passing_bytes) {
  constexpr std::size_t at_once = 64;
  const std::uint64_t lasting = std::atomic_ref(shared_->bytes).load(std::memory_order_relaxed);
  const std::uint64_t lasting_max = options_.bytes_max - std::min(options_.bytes_max, passing_bytes);
  for (const bool passing : {false, true}) {
    if (!passing && lasting <= lasting_max) continue;
    for (cached_object* const each : held_) {
      for (std::uint32_t block = 0; block < each->blocks_; ++block) {
        const std::uint64_t seen = each->word(block).load(std::memory_order_relaxed);
        if (says_present(seen) && says_passing(seen) == passing)
          outgoing_.push_back({each, block, seen, each->wanted_at(block).load(std::memory_order_relaxed)});
      }
    }
    std::sort(outgoing_.begin(), outgoing_.end(), [passing](const outgoing& a, const outgoing& b) {
      return passing ? a.wanted_at > b.wanted_at : a.wanted_at < b.wanted_at;
    });
    const std::size_t wanted =
        passing ? at_once : std::min<std::uint64_t>(at_once, (lasting - lasting_max) / options_.block_bytes + 1);
    if (outgoing_.size() > wanted)
      outgoing_.erase(outgoing_.begin(), outgoing_.end() - static_cast<std::ptrdiff_t>(wanted));
    if (!outgoing_.empty()) return;
  }
}

std::vector<cache_entry> block_cache::entries() const {
  std::vector<cache_entry> all;
  for (const std::string& name : names_in(options_.directory)) {
    if (!name.ends_with(index_ending)) continue;
    const descriptor file(open_file(path_of(name, ""), O_RDONLY));
    std::optional<seen_index> seen;
    if (file.get() >= 0) seen = read_index(file.get());
    if (!seen) continue;
    const block_room room = seen->room_bytes(false);
    all.push_back({.name = std::string(seen->head.name.data(), seen->head.name_bytes),
                   .file = name.substr(0, name.size() - index_ending.size()),
                   .size_bytes = seen->head.size_bytes,
                   .cached_bytes = room.lasting + room.passing,
                   .opened_unix_s = seen->head.opened_unix_s,
                   .in_use = is_locked_by_others(file.get(), holders_byte)});
  }
  std::sort(all.begin(), all.end(), [](const cache_entry& a, const cache_entry& b) {
    return std::pair(a.name, a.file) < std::pair(b.name, b.file);
  });
  return all;
}

bool block_cache::evict(const std::string& file) {
  const std::string path = path_of(file, index_ending);
  const descriptor index(open_file(path, O_RDWR));
  if (index.get() < 0 || lock(index.get(), F_WRLCK, holders_byte, false) != 0) return false;
  struct stat status{};
  if (::fstat(index.get(), &status) != 0 || status.st_nlink == 0) return false;
  const std::optional<seen_index> seen = read_index(index.get());
  ::unlink(path_of(file, data_ending).c_str());
  ::unlink(path.c_str());
  if (seen) release(seen->room_bytes(true));
  return true;
}

bool block_cache::may_hold(std::uint64_t size_bytes) const noexcept {
  return size_bytes / options_.block_bytes < blocks_most &&
         index_bytes(size_bytes, options_.block_bytes) <=
             std::max(index_bytes_granted, options_.bytes_max / index_share);
}

std::shared_ptr<cached_object> block_cache::object(const std::string& file, std::string_view name,
                                                   std::uint64_t size_bytes, std::string& refusal, int& failed_by) {
  failed_by = 0;
  assert(!file.empty() && file.find('/') == std::string::npos);
  if (size_bytes == 0) {
    refusal = "an empty object";
    return nullptr;
  }
  if (!may_hold(size_bytes)) {
    refusal = str_cat(name, ": with its ", bytes_text(size_bytes), " it is too large for a cache of ",
                      bytes_text(options_.bytes_max));
    return nullptr;
  }
  const std::string path = path_of(file, index_ending);
  std::shared_ptr<cached_object> made(new cached_object(shared_from_this()));
  made->data_path_ = path_of(file, data_ending);
  const auto fail = [&](int failure) {
    failed_by = failure;
    refusal = str_cat(path, ": ", words_of(failure));
    return nullptr;
  };
  // Each round that ends without a result has met somebody who was removing it, or who died while making it.
  for (int round = 0; round < 100; ++round) {
    descriptor index(open_file(path, O_RDWR | O_CREAT));
    if (index.get() < 0) return fail(errno);
    const bool is_alone = lock(index.get(), F_WRLCK, holders_byte, false) == 0;
    if (!is_alone) {
      if (const int failure = lock(index.get(), F_RDLCK, holders_byte, true); failure != 0) return fail(failure);
    }
    struct stat status{};
    if (::fstat(index.get(), &status) != 0) return fail(errno);
    if (status.st_nlink == 0) continue;
    std::optional<seen_index> seen = read_index(index.get());
    if (seen && seen->head.size_bytes != size_bytes) seen.reset();
    if (seen && !is_data_of(made->data_path_, size_bytes)) {
      if (!is_alone) return fail(ENODATA);
      release(seen->room_bytes(true));
      seen.reset();
    }
    if (!seen) {
      if (!is_alone) continue;
      if (status.st_size != 0) {  // damaged: what it took is counted when the folder is next opened by one alone
        ::unlink(path.c_str());
        ::unlink(made->data_path_.c_str());
        continue;
      }
      index_header head{};
      head.magic = index_magic;
      head.version = version;
      head.block_bytes = options_.block_bytes;
      head.size_bytes = size_bytes;
      head.name_bytes = static_cast<std::uint32_t>(std::min(name.size(), head.name.size()));
      std::memcpy(head.name.data(), name.data(), head.name_bytes);
      const descriptor data(open_file(made->data_path_, O_RDWR | O_CREAT | O_TRUNC));
      int failure = data.get() < 0 ? errno : 0;
      if (failure == 0 && ::ftruncate(data.get(), static_cast<off_t>(rounded_up(size_bytes))) != 0) failure = errno;
      if (failure == 0) {
        failure = ::posix_fallocate(index.get(), 0, static_cast<off_t>(index_bytes(size_bytes, head.block_bytes)));
      }
      if (failure == 0) failure = write_at(index.get(), 0, std::as_bytes(std::span(&head, 1)));
      if (failure != 0) {
        ::unlink(made->data_path_.c_str());
        ::unlink(path.c_str());
        return fail(failure);
      }
      seen = read_index(index.get());
      if (!seen) return fail(EIO);
    }
    if (is_alone) {
      if (const int failure = lock(index.get(), F_RDLCK, holders_byte, false); failure != 0) return fail(failure);
    }
    const std::uint64_t bytes = index_bytes(seen->head.size_bytes, seen->head.block_bytes);
    if (const int failure = made->index_map_.open(index.get(), bytes); failure != 0) return fail(failure);
    made->size_bytes_ = size_bytes;
    made->block_bytes_ = seen->head.block_bytes;
    made->blocks_ = blocks_in(size_bytes, seen->head.block_bytes);
    made->known_pages_ = std::vector<std::atomic<std::uint64_t>>((pages_in(size_bytes) + 63) / 64);
    made->known_words_ = std::vector<std::atomic<std::uint64_t>>(made->blocks_);
    made->index_ = index.release();
    {
      const mutex_lock lock(held_mutex_);
      held_.push_back(made.get());
    }
    std::atomic_ref(std::launder(reinterpret_cast<index_header*>(made->index_map_.data()))->opened_unix_s)
        .store(unix_now(), std::memory_order_relaxed);
    return made;
  }
  return fail(EAGAIN);
}

block_cache::verdict block_cache::verify(const cache_entry& entry) {
  std::string refusal;
  const std::shared_ptr<cached_object> object = this->object(entry.file, entry.name, entry.size_bytes, refusal);
  verdict found;
  if (!object) return found;
  const descriptor data(open_file(object->data_path(), O_RDONLY));
  std::vector<std::byte> pages(object->block_bytes());
  for (std::uint32_t block = 0; block < object->blocks(); ++block) {
    if (!object->is_present(block)) continue;
    ++found.blocks;
    const std::uint64_t offset = std::uint64_t{block} * object->block_bytes();
    const std::span<std::byte> whole = std::span(pages).first(object->room_of(block));
    const std::uint64_t before = object->fills();
    const std::size_t got = read_at(data.get(), offset, whole).bytes;
    std::fill(whole.begin() + static_cast<std::ptrdiff_t>(got), whole.end(), std::byte{});
    if (object->verify(offset, whole, before) == cached_object::read_verdict::damaged) ++found.damaged;
  }
  // It was looked at, and not used.
  std::atomic_ref(std::launder(reinterpret_cast<index_header*>(object->index_map_.data()))->opened_unix_s)
      .store(entry.opened_unix_s, std::memory_order_relaxed);
  return found;
}

// --- an object --------------------------------------------------------------------------------------------------------

cached_object::~cached_object() {
  {
    const mutex_lock lock(cache_->held_mutex_);
    std::erase(cache_->held_, this);
    std::erase_if(cache_->outgoing_, [this](const block_cache::outgoing& each) { return each.object == this; });
  }
  if (index_ >= 0) ::close(index_);
}

std::atomic_ref<std::uint64_t> cached_object::word(std::uint32_t block) const noexcept {
  assert(block < blocks_);
  return std::atomic_ref(reinterpret_cast<std::uint64_t*>(index_map_.data() + index_header_bytes)[block]);
}
std::atomic_ref<std::uint64_t> cached_object::wanted_at(std::uint32_t block) const noexcept {
  assert(block < blocks_);
  return std::atomic_ref(
      reinterpret_cast<std::uint64_t*>(index_map_.data() + index_header_bytes)[blocks_ + std::size_t{block}]);
}
std::atomic_ref<std::uint32_t> cached_object::sum(std::uint64_t page) const noexcept {
  std::byte* const sums = index_map_.data() + index_header_bytes + blocks_ * 2 * sizeof(std::uint64_t);
  return std::atomic_ref(reinterpret_cast<std::uint32_t*>(sums)[page]);
}
std::uint64_t cached_object::bytes_of(std::uint32_t block) const noexcept {
  return bytes_of_block(size_bytes_, block_bytes_, block);
}
std::uint64_t cached_object::room_of(std::uint32_t block) const noexcept { return rounded_up(bytes_of(block)); }
block_room cached_object::room_of(std::uint32_t block, std::uint64_t word) const noexcept {
  block_room room;
  (says_passing(word) ? room.passing : room.lasting) = room_of(block);
  return room;
}

bool cached_object::is_present(std::uint32_t block) const noexcept {
  return says_present(word(block).load(std::memory_order_acquire));
}

cached_object::state cached_object::claim(std::uint32_t block, std::uint64_t passing_bytes) {
  const std::atomic_ref<std::uint64_t> at = word(block);
  const std::uint64_t room = room_of(block);
  for (;;) {
    std::uint64_t seen = at.load(std::memory_order_acquire);
    if (says_present(seen)) return state::present;
    if (seen == absent) {
      const bool lasts = cache_->reserve(room, passing_bytes);
      if (!lasts && !cache_->reserve_passing(room, passing_bytes)) return state::refused;
      const std::uint64_t mine = cache_->mine_ | (lasts ? 0 : passing_mark);
      if (at.compare_exchange_strong(seen, mine, std::memory_order_acq_rel)) return state::claimed;
      cache_->release(room_of(block, mine));
      continue;
    }
    if (cache_->is_alive(seen)) return state::busy;
    // Its room is taken already.
    if (at.compare_exchange_strong(seen, cache_->mine_ | (seen & passing_mark), std::memory_order_acq_rel)) {
      return state::claimed;
    }
  }
}

int cached_object::fill(std::uint32_t block, std::span<const std::byte> bytes, bool wants_direct) {
  assert(bytes.size() == room_of(block));
  const std::uint64_t offset = std::uint64_t{block} * block_bytes_;
  for_each_sum(bytes, [&](std::uint64_t at, std::uint32_t found) {
    sum((offset + at) / cache_page_bytes).store(found, std::memory_order_relaxed);
  });
  const std::uint64_t mark = word(block).load(std::memory_order_relaxed) & passing_mark;
  // What lasts goes past the page cache where the file system can: reading it back so would else wait until it is written.
  const bool is_direct = wants_direct || mark == 0;
  int failure = EINVAL;
  for (const int how : {is_direct ? O_DIRECT : 0, 0}) {
    const descriptor data(open_file(data_path_, O_WRONLY | how));
    failure = data.get() < 0 ? errno : write_at(data.get(), offset, bytes);
    if (failure != EINVAL) break;
  }
  if (failure != 0) {
    if (concerns_all_objects(failure)) cache_->is_broken_.store(true, std::memory_order_relaxed);
    punch(data_path_, offset, bytes.size());
    give_up(block);
    return failure;
  }
  const std::uint64_t number = std::atomic_ref(cache_->shared_->fills).fetch_add(1, std::memory_order_acq_rel);
  wanted_at(block).store(number, std::memory_order_relaxed);
  word(block).store(present | number << state_bits | mark, std::memory_order_release);
  raise_shared(cache_->shared_->changes);
  return 0;
}

void cached_object::give_up(std::uint32_t block) noexcept {
  const std::uint64_t before = word(block).exchange(absent, std::memory_order_acq_rel);
  cache_->release(room_of(block, before));
  raise_shared(cache_->shared_->changes);
}

void cached_object::want(std::uint32_t block) noexcept {
  const std::uint64_t now = fills();
  if (wanted_at(block).load(std::memory_order_relaxed) != now) wanted_at(block).store(now, std::memory_order_relaxed);
}

std::uint64_t cached_object::fills() const noexcept {
  return std::atomic_ref(cache_->shared_->fills).load(std::memory_order_acquire);
}

// What was known of a block is forgotten first, and then said to be of the new word: who sees that sees no bit of before.
void cached_object::know(std::uint64_t first_page, std::uint64_t end_page, std::uint64_t before) noexcept {
  const std::uint64_t pages_of_block = block_bytes_ / cache_page_bytes;
  const mutex_lock lock(knowing_);
  for (std::uint64_t page = first_page; page < end_page;) {
    const std::uint64_t block = page / pages_of_block;
    const std::uint64_t end_of_block = std::min((block + 1) * pages_of_block, pages_in(size_bytes_));
    const std::uint64_t end = std::min(end_page, end_of_block);
    const std::uint64_t now = word(static_cast<std::uint32_t>(block)).load(std::memory_order_acquire);
    const bool is_what_was_read = says_present(now) && number_of(now) < before;
    std::atomic<std::uint64_t>& known = known_words_[block];
    if (is_what_was_read && known.load(std::memory_order_relaxed) != now) {
      for (std::uint64_t at = block * pages_of_block; at < end_of_block;) {
        const page_bits some = bits_from(at, end_of_block);
        known_pages_[some.word].fetch_and(~some.bits, std::memory_order_relaxed);
        at = some.end;
      }
      known.store(now, std::memory_order_release);
    }
    while (page < end) {
      const page_bits some = bits_from(page, end);
      if (is_what_was_read) known_pages_[some.word].fetch_or(some.bits, std::memory_order_release);
      page = some.end;
    }
  }
}

bool cached_object::knows(std::uint64_t offset, std::uint64_t bytes, std::uint64_t before) const noexcept {
  const std::uint64_t end_byte = offset + bytes;
  for (std::uint64_t block = offset / block_bytes_; block <= (end_byte - 1) / block_bytes_; ++block) {
    const std::uint64_t known = known_words_[block].load(std::memory_order_acquire);
    if (!says_present(known) || number_of(known) >= before ||
        known != word(static_cast<std::uint32_t>(block)).load(std::memory_order_acquire)) {
      return false;
    }
  }
  const std::uint64_t end_page = rounded_up(end_byte) / cache_page_bytes;
  for (std::uint64_t page = offset / cache_page_bytes; page < end_page;) {
    const page_bits some = bits_from(page, end_page);
    if ((known_pages_[some.word].load(std::memory_order_acquire) & some.bits) != some.bits) return false;
    page = some.end;
  }
  return true;
}

cached_object::read_verdict cached_object::verify(std::uint64_t offset, std::span<const std::byte> read,
                                                  std::uint64_t before) noexcept {
  read_verdict found = read_verdict::right;
  for_each_sum(read, [&](std::uint64_t at, std::uint32_t sum_of_page) {
    if (sum_of_page == sum((offset + at) / cache_page_bytes).load(std::memory_order_relaxed)) return;
    const auto block = static_cast<std::uint32_t>((offset + at) / block_bytes_);
    const std::uint64_t now = word(block).load(std::memory_order_acquire);
    if (says_present(now) && number_of(now) < before && drop(block, now)) {
      found = read_verdict::damaged;
    } else if (found == read_verdict::right) {
      found = read_verdict::given_up;
    }
  });
  if (found == read_verdict::right) know(offset / cache_page_bytes, (offset + read.size()) / cache_page_bytes, before);
  return found;
}
bool cached_object::drop(std::uint32_t block, std::uint64_t seen) noexcept {
  // Claimed until its room is free: nobody fills it meanwhile.
  const std::uint64_t mine = cache_->mine_ | (seen & passing_mark);
  if (!word(block).compare_exchange_strong(seen, mine, std::memory_order_acq_rel)) return false;
  punch(data_path_, std::uint64_t{block} * block_bytes_, room_of(block));
  give_up(block);
  return true;
}

}  // namespace leat::io

#include "io/remote/cached_reads.hpp"

#include "base/clock.hpp"
#include "base/errno_words.hpp"
#include "base/start_thread.hpp"
#include "base/text.hpp"
#include "io/remote/futex_waitv.hpp"
#include "io/remote/remote_source.hpp"

#include <pthread.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>

namespace leat::io {
namespace {

// How soon it is noticed that who was about to fill a block has died.
constexpr auto look_again = std::chrono::milliseconds(20);
// Of a drive that gives wrong bytes again and again, or a cache whose blocks go before they are read.
constexpr unsigned in_vain_max = 2;
// Blocks that were hinted and are not fetched yet. Of more, those that were hinted first are left to the reads.
constexpr std::size_t ahead_max = 1024;

std::uint64_t page_begin(std::uint64_t offset) { return offset / cache_page_bytes * cache_page_bytes; }
std::uint64_t page_end(std::uint64_t offset) { return page_begin(offset + cache_page_bytes - 1); }

// An answer may lack a tag, and a server may not look at If-Match: what is kept under a version has to be of it.
bool is_whole_of_version(const fetch& ended) {
  return ended.end == fetch_end::whole && ended.seen &&
         ended.seen->version(*ended.where) == ended.expected->version(*ended.where);
}

}  // namespace

struct cached_reads::memory {
  struct freed {
    void operator()(std::byte* taken) const noexcept { std::free(taken); }
  };
  explicit memory(std::size_t wanted)
      : at(static_cast<std::byte*>(std::aligned_alloc(cache_page_bytes, wanted))), bytes(wanted) {}
  std::unique_ptr<std::byte, freed> at;
  std::size_t bytes;
};

struct cached_reads::cached_read final : read_path {
  void cancel() override { owner->cancel(*this); }

  cached_reads* owner = nullptr;
  read_operation* asked = nullptr;
  const object_facts* facts = nullptr;
  cached_object* object = nullptr;  // null: to be opened
  outcome how = outcome::waits;
  std::atomic<bool> is_cancelled{false};
  std::shared_ptr<const fetch> failed;                                // outcome::failed
  unsigned in_vain = 0;                                               // reads of the drive
  std::uint64_t fills_before = 0;                                     // of the local one
  std::optional<std::chrono::steady_clock::time_point> others_since;  // when it began to wait for them
  struct : read_operation {
    cached_read* of = nullptr;
  } local;
  bool is_known = false;    // as it is asked for; else by whole pages
  bool is_local = false;    // under way
  bool has_waited = false;  // for the network, or for another process that fills
};

struct cached_reads::fill : fetch {
  cached_object* object = nullptr;
  std::uint32_t file = 0;  // of the source
  std::uint32_t block = 0;
  std::unique_ptr<memory> bytes;
};

cached_reads::cached_reads(const surroundings& around, const room& allowed) : around_(around), allowed_(allowed) {
  assert(allowed.fills_max != 0);
  thread_ = start_thread({.what = "cache thread"}, [this] {
    ::pthread_setname_np(::pthread_self(), "leat-cache");
    run();
  });
}

cached_reads::~cached_reads() {
  {
    const mutex_lock lock(mutex_);
    assert(arrived_.empty() && going_home_.empty());
    is_ending_ = true;
    wake();
  }
  thread_.join();
}

// --- the loop's thread ------------------------------------------------------------------------------------------------

bool cached_reads::is_whole(cached_object& object, std::uint64_t offset, std::uint64_t bytes) const noexcept {
  const std::uint64_t last = (offset + bytes - 1) / object.block_bytes();
  bool is_whole = true;
  for (std::uint64_t at = offset / object.block_bytes(); at <= last; ++at) {
    const auto block = static_cast<std::uint32_t>(at);
    if (allowed_.passing_bytes != 0) object.want(block);
    is_whole = is_whole && object.is_present(block);
  }
  return is_whole;
}

bool cached_reads::start(read_operation& read, const object_facts& facts) {
  if (around_.cache->is_left_out(read.file) || read.bytes == 0 || read.offset >= facts.size_bytes ||
      read.bytes > facts.size_bytes - read.offset)
    return false;
  if (read.into.bytes.size() < page_end(read.offset + read.bytes) - page_begin(read.offset)) return false;
  cached_object* const object = around_.cache->find(read.file);
  if (object == nullptr && around_.cache->is_off()) return false;
  auto made = std::make_unique<cached_read>();
  made->owner = this;
  made->asked = &read;
  made->facts = &facts;
  made->object = object;
  read.state = static_cast<read_path*>(made.get());
  cached_read& started = *made.release();  // until end() or go_remote()
  if (object != nullptr && is_whole(*object, read.offset, read.bytes)) {
    start_local(started);
  } else {
    send(started);
  }
  return true;
}

void cached_reads::hint(std::uint32_t file, const object_facts& facts, std::uint64_t offset, std::uint64_t bytes) {
  if (around_.cache->is_left_out(file) || around_.cache->is_off() || bytes == 0 || offset >= facts.size_bytes ||
      bytes > facts.size_bytes - offset)
    return;
  cached_object* const object = around_.cache->find(file);
  if (object != nullptr && is_whole(*object, offset, bytes)) return;
  const mutex_lock lock(mutex_);
  hinted_.push_back({.file = file, .facts = &facts, .offset = offset, .bytes = bytes});
  if (hinted_.size() == 1) wake();
}

// Whole pages, unless they are known: each can be verified, and the memory has room for them.
void cached_reads::start_local(cached_read& read) {
  std::unique_ptr<local_file>& file = files_[read.asked->file];
  if (!file) {
    file = std::make_unique<local_file>();
    file->table.add(read.object->data_path(), page_end(read.object->size_bytes()));
    file->table.finish();
    file->files = around_.loop->connect_files(file->table);
  }
  auto& local = read.local;
  local.of = &read;
  local.file = 0;
  read.fills_before = read.object->fills();
  read.is_known = read.object->knows(read.asked->offset, read.asked->bytes, read.fills_before);
  local.offset = read.is_known ? read.asked->offset : page_begin(read.asked->offset);
  const std::uint64_t end = read.asked->offset + read.asked->bytes;
  local.bytes = (read.is_known ? end : page_end(end)) - local.offset;
  local.into = read.asked->into;
  local.data = {};
  local.failure = 0;
  local.said.reset();
  local.done = [](read_operation& done) noexcept {
    cached_read& of = *static_cast<decltype(cached_read::local)&>(done).of;
    of.owner->have_read(of);
  };
  read.is_local = true;
  read_operation* const one[] = {&local};
  file->files->start(one);
}

void cached_reads::have_read(cached_read& read) noexcept {
  read.is_local = false;
  const auto& local = read.local;
  if (local.failure == ECANCELED && read.is_cancelled.load(std::memory_order_relaxed)) return go_remote(read);
  if (local.failure != 0) {
    around_.cache->have_failed(read.asked->file, str_cat(read.object->data_path(), ": ", errno_words(local.failure)),
                               local.failure);
    return go_remote(read);
  }
  if (read.is_known && !read.object->knows(local.offset, local.bytes, read.fills_before)) {
    return read_again(read);  // Somebody has taken it out meanwhile.
  }
  if (!read.is_known) {
    const cached_object::read_verdict found = read.object->verify(local.offset, local.data, read.fills_before);
    if (found == cached_object::read_verdict::damaged) transfer_counts::add(around_.counts->damaged_reads, 1);
    if (found != cached_object::read_verdict::right) return read_again(read);
  }
  read_operation& asked = *read.asked;
  transfer_counts::add(around_.counts->bytes_from_cache, asked.bytes);
  asked.failure = 0;
  asked.data = local.data.subspan(asked.offset - local.offset, asked.bytes);
  end(read, !read.has_waited);
}

void cached_reads::read_again(cached_read& read) {
  if (++read.in_vain > in_vain_max) return go_remote(read);
  send(read);
}

void cached_reads::have_received(cached_read& read) noexcept {
  read_operation& asked = *read.asked;
  asked.failure = 0;
  asked.data = asked.into.bytes.first(asked.bytes);
  end(read, false);
}

void cached_reads::end(cached_read& read, bool is_local) noexcept {
  read_operation& asked = *read.asked;
  delete &read;
  asked.state = nullptr;
  is_local_end_ = is_local;
  asked.done(asked);
  is_local_end_ = false;
}

void cached_reads::go_remote(cached_read& read) noexcept {
  read_operation& asked = *read.asked;
  const bool is_cancelled = read.is_cancelled.load(std::memory_order_relaxed);
  delete &read;
  asked.state = nullptr;
  around_.remotely(around_.owner, asked, is_cancelled);
}

void cached_reads::fail(cached_read& read) noexcept {
  read_operation& asked = *read.asked;
  const std::shared_ptr<const fetch> block = std::move(read.failed);
  delete &read;
  asked.state = nullptr;
  around_.failed(around_.owner, asked, *block);
}

void cached_reads::wake() {
  changed_.notify_one();
  if (waits_by_word_) raise_mine(events_);
}

void cached_reads::send(cached_read& read) {
  const mutex_lock lock(mutex_);
  arrived_.push_back(&read);
  wake();
}

void cached_reads::cancel(cached_read& read) {
  read.is_cancelled.store(true, std::memory_order_relaxed);
  if (read.is_local) return files_[read.asked->file]->files->cancel(read.local);
  const mutex_lock lock(mutex_);
  is_woken_ = true;
  wake();
}

void cached_reads::settle_home() noexcept {
  std::vector<cached_read*> all;
  {
    const mutex_lock lock(mutex_);
    all.swap(going_home_);
  }
  for (cached_read* const each : all) {
    if (each->how == outcome::received) {
      have_received(*each);
    } else if (each->how == outcome::local && !each->is_cancelled.load(std::memory_order_relaxed)) {
      start_local(*each);
    } else if (each->how == outcome::failed && !each->is_cancelled.load(std::memory_order_relaxed)) {
      fail(*each);
    } else {
      go_remote(*each);
    }
  }
}

// --- the thread of its own --------------------------------------------------------------------------------------------

void cached_reads::run() {
  bool waits_for_others = false;
  bool is_ending = false;
  std::uint32_t changes = 0;  // of the cache, before the blocks were looked at
  for (;;) {
    std::vector<std::shared_ptr<fill>> ended;
    std::vector<range> hinted;
    {
      mutex_lock lock(mutex_);
      while (arrived_.empty() && hinted_.empty() && filled_.empty() && !is_woken_ && is_ending_ == is_ending) {
        if (is_ending && fills_.empty()) return;
        if (!waits_for_others) {
          changed_.wait(mutex_);
          continue;
        }
        waits_by_word_ = true;
        const std::uint32_t seen = events_.load(std::memory_order_relaxed);
        lock.unlock();
        around_.cache->blocks()->wait_for_change(changes, events_, seen, look_again);
        lock.lock();
        waits_by_word_ = false;
        break;
      }
      is_woken_ = false;
      waiting_.insert(waiting_.end(), arrived_.begin(), arrived_.end());
      arrived_.clear();
      ended.swap(filled_);
      hinted.swap(hinted_);
      if (is_ending_ && !is_ending) {
        is_ending = true;
        ahead_.clear();
        ahead_names_.clear();
        for (const auto& [name, each] : fills_) around_.client->cancel(each);
      }
    }
    if (is_ending) hinted.clear();
    if (const block_cache* const blocks = around_.cache->blocks()) changes = blocks->changes();
    waits_for_others = turn(std::move(ended), hinted);
  }
}

bool cached_reads::turn(std::vector<std::shared_ptr<fill>> ended, const std::vector<range>& hinted) {
  failed_.clear();
  for (const std::shared_ptr<fill>& each : ended) hand_on(*each);
  for (const std::shared_ptr<fill>& each : ended) have_filled(each);
  bool waits_for_others = false;
  std::vector<cached_read*> settled;
  std::erase_if(waiting_, [&](cached_read* each) {
    each->how = settle(*each, waits_for_others);
    if (each->how == outcome::waits) {
      each->has_waited = true;
      return false;
    }
    settled.push_back(each);
    return true;
  });
  take_in(hinted);
  go_ahead();
  send_home(settled);
  return waits_for_others;
}

void cached_reads::send_home(const std::vector<cached_read*>& settled) {
  if (settled.empty()) return;
  bool is_first = false;
  {
    const mutex_lock lock(mutex_);
    is_first = going_home_.empty();
    going_home_.insert(going_home_.end(), settled.begin(), settled.end());
  }
  if (is_first) posted_.post(around_.loop->executor(), [this] { settle_home(); });
}

// What has come goes to the reads that wait for nothing else, before it is written.
void cached_reads::hand_on(const fill& ended) {
  if (!is_whole_of_version(ended)) return;
  std::vector<cached_read*> settled;
  std::erase_if(waiting_, [&](cached_read* each) {
    const read_operation& asked = *each->asked;
    if (each->object != ended.object || each->is_cancelled.load(std::memory_order_relaxed) ||
        asked.offset < ended.offset || asked.offset + asked.bytes > ended.offset + ended.into.size()) {
      return false;
    }
    std::memcpy(asked.into.bytes.data(), ended.into.data() + (asked.offset - ended.offset), asked.bytes);
    each->how = outcome::received;
    settled.push_back(each);
    return true;
  });
  send_home(settled);
}

void cached_reads::take_in(const std::vector<range>& hinted) {
  for (const range& each : hinted) {
    cached_object* const object = around_.cache->open(each.file, (*around_.objects)[each.file], *each.facts);
    if (object == nullptr || object->block_bytes() > allowed_.memory_bytes) continue;
    const std::uint64_t last = (each.offset + each.bytes - 1) / object->block_bytes();
    for (std::uint64_t at = each.offset / object->block_bytes(); at <= last; ++at) {
      const auto block = static_cast<std::uint32_t>(at);
      const block_name name(object, block);
      if (object->is_present(block) || fills_.contains(name) || !ahead_names_.insert(name).second) continue;
      ahead_.push_back({.file = each.file, .facts = each.facts, .object = object, .block = block});
      if (ahead_.size() <= ahead_max) continue;
      ahead_names_.erase(block_name(ahead_.front().object, ahead_.front().block));
      ahead_.pop_front();
    }
  }
}

// Reads that wait have begun what they need before.
void cached_reads::go_ahead() {
  while (!ahead_.empty()) {
    const block_ahead next = ahead_.front();
    const block_name name(next.object, next.block);
    const bool is_wanted = !around_.cache->is_off() && !around_.cache->is_left_out(next.file) &&
                           !next.object->is_present(next.block) && !fills_.contains(name);
    if (is_wanted) {
      if (fills_.size() >= allowed_.fills_max || !has_memory_for(*next.object)) return;
      // What another one fills, and what has no room, is the reads' to find out.
      if (next.object->claim(next.block, allowed_.passing_bytes) == cached_object::state::claimed &&
          !start_fill(next)) {
        next.object->give_up(next.block);
      }
    }
    ahead_.pop_front();
    ahead_names_.erase(name);
  }
}

cached_reads::outcome cached_reads::settle(cached_read& read, bool& waits_for_others) {
  if (read.is_cancelled.load(std::memory_order_relaxed)) return outcome::remote;
  const std::uint32_t number = read.asked->file;
  if (around_.cache->is_left_out(number)) return outcome::remote;
  if (read.object == nullptr) read.object = around_.cache->open(number, (*around_.objects)[number], *read.facts);
  if (read.object == nullptr) return outcome::remote;
  cached_object& object = *read.object;
  const std::uint64_t last = (read.asked->offset + read.asked->bytes - 1) / object.block_bytes();
  bool is_whole = true;
  for (std::uint64_t at = read.asked->offset / object.block_bytes(); at <= last; ++at) {
    const auto block = static_cast<std::uint32_t>(at);
    const block_name name(&object, block);
    if (const auto failed = failed_.find(name); failed != failed_.end()) {
      read.failed = failed->second;
      return read.failed == nullptr ? outcome::remote : outcome::failed;
    }
    if (object.is_present(block)) continue;
    is_whole = false;
    // An object may have been cached in larger blocks than this run wants.
    if (object.block_bytes() > allowed_.memory_bytes) {
      around_.cache->have_failed(
          number,
          str_cat((*around_.objects)[number].where.shown, ": its blocks of ", bytes_text(object.block_bytes()),
                  " have no room in the ", bytes_text(allowed_.memory_bytes), " of memory for them"),
          0);
      return outcome::remote;
    }
    if (fills_.contains(name) || fills_.size() >= allowed_.fills_max || !has_memory_for(object)) continue;
    switch (around_.cache->is_off() ? cached_object::state::refused : object.claim(block, allowed_.passing_bytes)) {
      case cached_object::state::present:
        waits_for_others = true;  // It is looked at once more.
        break;
      case cached_object::state::claimed:
        if (start_fill({.file = number, .facts = read.facts, .object = &object, .block = block})) break;
        object.give_up(block);
        return outcome::remote;
      case cached_object::state::busy: {
        const auto now = std::chrono::steady_clock::now();
        // Another process may have been stopped, and holds its blocks as long as it is there.
        if (now - read.others_since.value_or(now) > around_.others_patience) return outcome::remote;
        if (!read.others_since) read.others_since = now;
        waits_for_others = true;
        break;
      }
      case cached_object::state::refused:
        return outcome::remote;
    }
  }
  return is_whole ? outcome::local : outcome::waits;
}

bool cached_reads::has_memory_for(const cached_object& object) {
  const std::size_t wanted = object.block_bytes();
  const auto fits = [wanted](const auto& each) { return each->bytes == wanted; };
  if (std::any_of(spare_.begin(), spare_.end(), fits)) return true;
  while (memory_bytes_ + wanted > allowed_.memory_bytes && !spare_.empty()) {
    memory_bytes_ -= spare_.back()->bytes;
    spare_.pop_back();
  }
  return memory_bytes_ + wanted <= allowed_.memory_bytes;
}

bool cached_reads::start_fill(const block_ahead& wanted) {
  cached_object& object = *wanted.object;
  const remote_object& from = (*around_.objects)[wanted.file];
  auto made = std::make_shared<fill>();
  made->object = &object;
  made->file = wanted.file;
  made->block = wanted.block;
  const auto fits =
      std::find_if(spare_.begin(), spare_.end(), [&](const auto& each) { return each->bytes == object.block_bytes(); });
  if (fits != spare_.end()) {
    made->bytes = std::move(*fits);
    spare_.erase(fits);
  } else {
    made->bytes = std::make_unique<memory>(object.block_bytes());
    if (!made->bytes->at) return false;
    memory_bytes_ += object.block_bytes();
  }
  made->where = &from.where;
  made->is_signed = from.is_in_store;
  made->offset = std::uint64_t{wanted.block} * object.block_bytes();
  made->into = {made->bytes->at.get(), object.bytes_of(wanted.block)};
  made->expected = wanted.facts;
  made->owner = this;
  made->ended = [](fetch& ended) noexcept {
    auto& self = *static_cast<cached_reads*>(ended.owner);
    const mutex_lock lock(self.mutex_);
    self.filled_.push_back(std::static_pointer_cast<fill>(ended.shared_from_this()));
    self.wake();
  };
  fills_.emplace(block_name(&object, wanted.block), made);
  around_.client->start({made});
  return true;
}

void cached_reads::have_filled(const std::shared_ptr<fill>& ended) {
  cached_object& object = *ended->object;
  const block_name name(&object, ended->block);
  if (is_whole_of_version(*ended)) {
    const std::uint64_t room = page_end(ended->into.size());
    std::memset(ended->bytes->at.get() + ended->into.size(), 0, room - ended->into.size());
    const bool is_seen = observer_.load(std::memory_order_acquire) != nullptr;
    const std::uint64_t write_ns = is_seen ? now_ns() : 0;
    const int failure = object.fill(ended->block, {ended->bytes->at.get(), room}, around_.loop->wants_direct());
    if (is_seen) tell_of(*ended, write_ns, now_ns());
    if (failure == 0) {
      transfer_counts::add(around_.counts->cached_blocks, 1);
    } else {
      failed_.emplace(name, nullptr);
      around_.cache->have_failed(ended->file, str_cat(object.data_path(), ": ", errno_words(failure)), failure);
    }
  } else {
    tell_of(*ended, 0, 0);
    object.give_up(ended->block);
    if (ended->end == fetch_end::whole) {
      around_.cache->have_failed(
          ended->file, str_cat(ended->where->shown, ": some of the server's answers lack the tag that others have"), 0);
    }
    // All tries have been made, and who waits for it would make them once more. Else it reads over the network, and is told what is wrong.
    const bool is_told = ended->end == fetch_end::missing || ended->end == fetch_end::changed ||
                         ended->end == fetch_end::refused || ended->end == fetch_end::damaged ||
                         ended->end == fetch_end::failed;
    failed_.emplace(name, is_told ? ended : nullptr);
  }
  spare_.push_back(std::move(ended->bytes));
  fills_.erase(name);
}

void cached_reads::tell_of(const fill& ended, std::uint64_t write_ns, std::uint64_t written_ns) const noexcept {
  cached_block_observer* const told = observer_.load(std::memory_order_acquire);
  if (told == nullptr || ended.times.ended_ns == 0) return;
  told->have_fetched({.request = ended.times,
                      .write_ns = write_ns,
                      .written_ns = written_ns,
                      .bytes = ended.into.size(),
                      .block = ended.block});
}

}  // namespace leat::io

#include "io/reader/source_set.hpp"

#include "base/mutex.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace leat::io {
namespace {

void cancel_in_flight(set_loop& loop) {
  const std::vector<set_read*> all = loop.reads;  // A read that ends leaves the list.
  for (set_read* const read : all) {
    if (read->in_flight()) source_set::cancel(*read);
  }
}

}  // namespace

source_set::source_set(std::span<connector* const> loops) {
  for (connector* const loop : loops) {
    set_loop& added = loops_.emplace_back();
    added.owner = this;
    added.at = loop;
  }
}

source_set::~source_set() {
  posted_.wait();
  on_each([](set_loop& loop) {
    assert(loop.reads.empty() && "a source is ended while it is read from");
    loop.sources.clear();
  });
}

std::uint32_t source_set::add(const source_description& from, std::optional<source_terms> terms) {
  const std::uint32_t number = add_later(from, terms);
  for (set_loop& loop : loops_) static_cast<void>(source_of(loop, number));
  return number;
}

std::uint32_t source_set::add_later(const source_description& from, std::optional<source_terms> terms) {
  const mutex_lock lock(mutex_);
  descriptions_.push_back({&from, terms});
  return static_cast<std::uint32_t>(descriptions_.size() - 1);
}

source& source_set::connect(set_loop& loop, std::uint32_t number) {
  described which;
  {
    const mutex_lock lock(mutex_);
    which = descriptions_[number];
  }
  if (loop.sources.size() <= number) loop.sources.resize(number + std::size_t{1});
  loop.sources[number] =
      which.terms ? which.from->connect_within(*loop.at, *which.terms) : which.from->connect(*loop.at);
  return *loop.sources[number];
}

void source_set::start(std::size_t loop, std::span<read_operation* const> reads) {
  if (reads.empty()) return;
  set_loop& there = loops_[loop];
  there.operations.fetch_add(reads.size(), std::memory_order_relaxed);
  if (there.at->executor().running_in_this_thread()) return begin(there, reads);
  posted_.post(there.at->executor(),
               [&there, begun = std::vector<read_operation*>(reads.begin(), reads.end())] { begin(there, begun); });
}

void source_set::hint(std::size_t loop, std::uint32_t source, std::span<const extent> ahead) {
  set_loop& there = loops_[loop];
  if (there.at->executor().running_in_this_thread()) {
    if (!there.cancelled) source_of(there, source).hint(ahead);
    return;
  }
  posted_.post(there.at->executor(), [&there, source, told = std::vector<extent>(ahead.begin(), ahead.end())] {
    if (!there.cancelled) source_of(there, source).hint(told);
  });
}

void source_set::begin(set_loop& loop, std::span<read_operation* const> reads) {
  for (read_operation* const operation : reads) {
    auto& read = static_cast<set_read&>(*operation);
    read.loop = &loop;
    read.done = &end_read;
    read.said.reset();
    read.place = static_cast<std::uint32_t>(loop.reads.size());
    loop.reads.push_back(&read);
  }
  for (std::size_t begin = 0, end = 0; begin < reads.size(); begin = end) {
    const std::uint32_t number = static_cast<set_read*>(reads[begin])->source;
    while (end < reads.size() && static_cast<set_read*>(reads[end])->source == number) ++end;
    source_of(loop, number).start(reads.subspan(begin, end - begin));
  }
  if (!loop.cancelled) return;
  // cancel() was faster than these.
  for (read_operation* const operation : reads) {
    auto& read = static_cast<set_read&>(*operation);
    if (read.in_flight()) cancel(read);
  }
}

void source_set::start(std::size_t loop, set_open& file) {
  set_loop& there = loops_[loop];
  there.operations.fetch_add(1, std::memory_order_relaxed);
  file.loop = &there;
  file.said.reset();
  file.done = [](open_operation& operation) noexcept {
    auto& opened = static_cast<set_open&>(operation);
    set_loop& loop = *opened.loop;
    opened.ended(opened);  // It may be gone after this.
    count_down(loop);
  };
  if (there.at->executor().running_in_this_thread()) return source_of(there, file.source).start(file);
  posted_.post(there.at->executor(), [&there, &file] { source_of(there, file.source).start(file); });
}

void source_set::end_read(read_operation& operation) noexcept {
  auto& read = static_cast<set_read&>(operation);
  set_loop& loop = *read.loop;
  loop.reads.back()->place = read.place;
  loop.reads[read.place] = loop.reads.back();
  loop.reads.pop_back();
  read.place = set_read::not_in_flight;
  read.ended(read);  // The read may be gone after this.
  count_down(loop);
}

void source_set::count_down(set_loop& loop) noexcept {
  // The last access: a thread in drain() may go on, and end the set by a function that it posts to this loop.
  if (loop.operations.fetch_sub(1, std::memory_order_acq_rel) == 1) loop.operations.notify_all();
}

void source_set::cancel(set_read& read) { read.loop->sources[read.source]->cancel(read); }

void source_set::cancel_on_each(void (*cancel)(set_loop&)) {
  for (set_loop& loop : loops_) {
    if (loop.at->executor().running_in_this_thread()) {
      cancel(loop);
    } else {
      posted_.post(loop.at->executor(), [cancel, &loop] { cancel(loop); });
    }
  }
}

void source_set::cancel_reads() { cancel_on_each(&cancel_in_flight); }

void source_set::cancel() {
  cancel_on_each([](set_loop& loop) {
    loop.cancelled = true;
    cancel_in_flight(loop);
  });
}

void source_set::drain() const noexcept {
  for (const set_loop& loop : loops_) {
    for (std::size_t left = loop.operations.load(std::memory_order_acquire); left != 0;
         left = loop.operations.load(std::memory_order_acquire)) {
      loop.operations.wait(left, std::memory_order_acquire);
    }
  }
}

std::size_t source_set::in_flight() const noexcept {
  std::size_t sum = 0;
  for (const set_loop& loop : loops_) sum += loop.operations.load(std::memory_order_relaxed);
  return sum;
}

void source_set::on_each(const std::function<void(set_loop&)>& visit) {
  struct waiter {
    const std::function<void(set_loop&)>& visit;
    std::size_t left;
    leat::mutex mutex;
    condition_variable all_done;
  } waiting{visit, loops_.size(), {}, {}};
  struct call {
    waiter& from;
    set_loop& loop;
  };
  std::deque<call> calls;
  for (set_loop& loop : loops_) {
    loop.at->post(
        [](void* argument) noexcept {
          auto& made = *static_cast<call*>(argument);
          waiter& from = made.from;
          from.visit(made.loop);
          // Under the lock: the waiter is gone as soon as it may go on.
          const mutex_lock lock(from.mutex);
          if (--from.left == 0) from.all_done.notify_one();
        },
        &calls.emplace_back(call{waiting, loop}));
  }
  mutex_lock lock(waiting.mutex);
  while (waiting.left != 0) waiting.all_done.wait(waiting.mutex);
}

std::vector<std::string> source_set::under_way() {
  struct held {
    std::uint64_t since_ns;
    std::string what;
  };
  leat::mutex mutex;
  std::vector<held> found;
  on_each([&](set_loop& loop) {
    for (const set_read* const read : loop.reads) {
      const source_description* from = nullptr;
      {
        const mutex_lock lock(mutex_);
        from = descriptions_[read->source].from;
      }
      std::string what = str_cat(from->file_name(read->file), " at offset ", read->offset);
      const mutex_lock lock(mutex);
      found.push_back({read->started_ns, std::move(what)});
    }
  });
  std::sort(found.begin(), found.end(), [](const held& a, const held& b) { return a.since_ns < b.since_ns; });
  std::vector<std::string> names;
  for (held& each : found) names.push_back(std::move(each.what));
  return names;
}

}  // namespace leat::io

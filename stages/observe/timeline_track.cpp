#include "stages/observe/timeline_track.hpp"

#include <algorithm>
#include <utility>

namespace leat::stages {

std::string_view name(activity of) noexcept {
  switch (of) {
    case activity::rows:
      return "rows";
    case activity::collate:
      return "collate";
    case activity::finish:
      return "finish";
    case activity::transfer:
      return "transfer";
    case activity::plan:
      return "plan";
    case activity::write:
      return "write rows";
    case activity::decode:
      return "decode";
    case activity::expand:
      return "expand";
    case activity::wait:
      return "next()";
    case activity::step:
      return "step";
    case activity::mark:
      return "mark";
    case activity::read:
      return "read";
    case activity::fetch:
      return "fetch";
    case activity::copy:
      return "copy to the device";
    case activity::compute:
      return "compute on the device";
    case activity::queue:
      return "queue";
    case activity::hit:
      return "read of the cache";
    case activity::block:
      return "block into the cache";
    case activity::request:
      return "request";
    case activity::connect:
      return "connect";
    case activity::answer:
      return "wait for the answer";
    case activity::receive:
      return "receive";
    case activity::store:
      return "write to the cache";
    case activity::sample:
      return "sample";
    case activity::sample_read:
      return "read of the sample";
    case activity::sample_wait:
      return "wait for a decode thread";
  }
  return "";
}

timeline_track::timeline_track(std::string name, std::size_t spans)
    : name_(std::move(name)),
      capacity_(std::max<std::size_t>(spans, 1)),
      words_(std::make_unique<std::atomic<std::uint64_t>[]>(capacity_ * words)) {}

// Who reads one word of a later span in a place sees by `begun_` that the place was given to it: each word is released after `begun_`.
void timeline_track::add(const timeline_span& span) noexcept {
  const std::uint64_t number = added_.load(std::memory_order_relaxed);
  begun_.store(number + 1, std::memory_order_relaxed);
  std::atomic<std::uint64_t>* const to = words_.get() + number % capacity_ * words;
  const std::uint64_t row = std::min(span.row, timeline_span::no_row);
  to[0].store(span.begin_ns, std::memory_order_release);
  to[1].store(span.end_ns, std::memory_order_release);
  to[2].store(span.batch, std::memory_order_release);
  to[3].store(std::uint64_t{span.epoch} << 32U | row << 8U | static_cast<std::uint64_t>(span.of),
              std::memory_order_release);
  added_.store(number + 1, std::memory_order_release);
}

namespace {

// A part of a span that begins when its bytes were wanted, and lies in it.
void add_part(timeline_track& to, timeline_span whole, activity of, std::uint64_t from_ns, std::uint64_t to_ns) {
  if (from_ns == 0) return;
  const std::uint64_t end_ns = whole.end_ns;
  whole.of = of;
  whole.row = timeline_span::no_row;
  whole.begin_ns = std::clamp(from_ns, whole.begin_ns, end_ns);
  whole.end_ns = to_ns == 0 ? end_ns : std::clamp(to_ns, whole.begin_ns, end_ns);
  to.add(whole);
}

void add_parts(timeline_track& to, const timeline_span& whole, const io::request_times& times, std::uint64_t end_ns) {
  add_part(to, whole, activity::connect, times.opened_ns, times.asked_ns);
  add_part(to, whole, activity::answer, times.asked_ns, times.answered_ns);
  add_part(to, whole, activity::receive, times.answered_ns, end_ns);
}

}  // namespace

void read_track::add(const io::request_times& served, std::uint32_t epoch, std::uint64_t batch) noexcept {
  const timeline_span span{.of = activity::request,
                           .begin_ns = served.wanted_ns,
                           .end_ns = std::max(served.wanted_ns, served.ended_ns),
                           .epoch = epoch,
                           .batch = batch,
                           .row = reads_};
  track_.add(span);
  add_parts(track_, span, served, span.end_ns);
}

void block_track::have_fetched(const io::cached_block_times& of) noexcept {
  timeline_span span{.of = activity::block,
                     .begin_ns = of.request.wanted_ns,
                     .end_ns = std::max({of.request.wanted_ns, of.request.ended_ns, of.written_ns}),
                     .batch = of.bytes,
                     .row = of.block};
  const mutex_lock lock(mutex_);
  track_.add(span);
  span.batch = timeline_span::no_batch;
  add_parts(track_, span, of.request, std::max(of.request.ended_ns, span.begin_ns));
  add_part(track_, span, activity::store, of.write_ns, of.written_ns);
}

std::vector<timeline_span> timeline_track::spans() const {
  const std::uint64_t end = added_.load(std::memory_order_acquire);
  const std::uint64_t first = end - std::min<std::uint64_t>(end, capacity_);
  std::vector<timeline_span> all;
  all.reserve(end - first);
  for (std::uint64_t number = first; number < end; ++number) {
    const std::atomic<std::uint64_t>* const from = words_.get() + number % capacity_ * words;
    timeline_span span;
    span.begin_ns = from[0].load(std::memory_order_acquire);
    span.end_ns = from[1].load(std::memory_order_acquire);
    span.batch = from[2].load(std::memory_order_acquire);
    const std::uint64_t rest = from[3].load(std::memory_order_acquire);
    span.epoch = static_cast<std::uint32_t>(rest >> 32U);
    span.row = static_cast<std::uint32_t>(rest >> 8U) & timeline_span::no_row;
    span.of = static_cast<activity>(rest & 0xff);
    all.push_back(span);
  }
  // Of places that were given to later spans meanwhile nothing is told.
  const std::uint64_t begun = begun_.load(std::memory_order_relaxed);
  const std::uint64_t lost = begun - std::min<std::uint64_t>(begun, capacity_);
  if (lost > first) all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(lost, end) - first));
  return all;
}

}  // namespace leat::stages

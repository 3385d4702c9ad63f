#include "stages/run/readahead.hpp"

#include "async/turn.hpp"
#include "stages/device/device_cache.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace leat::stages {

namespace asio = boost::asio;

readahead::readahead(const run_spec& run, reader_stage& reads, transfer& to, std::uint32_t epochs,
                     std::uint64_t batches_max)
    : run_(run),
      reads_(reads),
      transfer_(to),
      epochs_(epochs),
      batches_left_(batches_max == 0 ? std::numeric_limits<std::uint64_t>::max() : batches_max),
      is_over_(reads.ahead_bytes() == 0) {}

asio::awaitable<void> readahead::go_on(place now) {
  while (!ahead_.empty() && ahead_.front().at.sequence < now.sequence) {
    ahead_bytes_ -= ahead_.front().bytes;
    ahead_rows_ -= ahead_.front().rows;
    ahead_.pop_front();
  }
  // At first, and where an epoch was skipped: what was hinted of it is nobody's.
  if ((ahead_.empty() ? next_ : ahead_.front().at) != now) start_from(now);
  while (!is_far_enough() && find_next(now)) {
    if (!ahead_.empty()) co_await async::next_turn();
    const hinted next = co_await hint_next();
    ahead_bytes_ += next.bytes;
    ahead_rows_ += next.rows;
    ahead_.push_back(next);
    --batches_left_;
    ++next_.batch;
    ++next_.sequence;
  }
}

void readahead::start_from(place now) {
  batches_left_ += ahead_.size();
  ahead_.clear();
  ahead_bytes_ = ahead_rows_ = 0;
  next_ = now;
}

bool readahead::is_far_enough() const noexcept {
  constexpr std::size_t batches_least = 2;
  // Of rows that read little or nothing: each is asked for its place, and each place is kept until its block is there.
  constexpr std::uint64_t rows_max = std::uint64_t{1} << 16;
  // The batch that is about to be started is one of them.
  return ahead_.size() > batches_least && (ahead_bytes_ >= reads_.ahead_bytes() || ahead_rows_ >= rows_max);
}

// A sampler of the user's may throw, which ends the run where the batch is started.
bool readahead::find_next(place now) {
  try {
    if (batches_left_ != 0 && next_.batch < run_.batches(next_.epoch)) return true;
    if (next_.epoch > now.epoch) return false;  // Orders keep some epochs that they have made, and no more.
    const bool is_last = batches_left_ == 0 || (epochs_ != 0 && next_.epoch + 1 >= epochs_);
    if (!is_last && run_.batches(next_.epoch + 1) != 0) {
      next_ = {
          .epoch = next_.epoch + 1, .batch = 0, .sequence = next_.sequence + 1};  // the end of an epoch is delivered
      return true;
    }
  } catch (...) {
    // As without a next one.
  }
  is_over_ = true;
  return false;
}

asio::awaitable<readahead::hinted> readahead::hint_next() {
  picks_.clear();
  try {
    run_.pick_rows(next_.epoch, next_.batch, picks_);
  } catch (...) {
    is_over_ = true;
    co_return hinted{.at = next_};
  }
  hinted made{.at = next_, .rows = picks_.size()};
  held_.assign(picks_.size(), nullptr);
  if (const device_cache* const cache = transfer_.cache(); cache != nullptr) cache->find(picks_, held_);
  for (std::size_t row = 0; row < picks_.size();) {
    if (row != 0) co_await async::next_turn();
    places_.clear();
    for (const std::size_t end = std::min<std::size_t>(row + planner::rows_at_once, picks_.size()); row < end; ++row) {
      if (held_[row] == nullptr) run_.planner().places(picks_[row], places_);
    }
    for (const extent& each : places_) made.bytes += each.stored_bytes;
    reads_.hint(next_.sequence, places_);
  }
  co_return made;
}

}  // namespace leat::stages

#include "stages/look_ahead.hpp"

#include "async/turn.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <tuple>

namespace leat::stages {

namespace asio = boost::asio;

look_ahead::look_ahead(const bound_run& run, reader_stage& reads, std::uint32_t epochs, std::uint64_t batches_max)
    : run_(run),
      reads_(reads),
      epochs_(epochs),
      batches_left_(batches_max == 0 ? std::numeric_limits<std::uint64_t>::max() : batches_max),
      is_over_(reads.ahead_bytes() == 0) {}

asio::awaitable<void> look_ahead::go_on(place now) {
  if (is_over_) co_return;
  while (!ahead_.empty() && ahead_.front().sequence < now.sequence) {
    ahead_bytes_ -= ahead_.front().bytes;
    ahead_.pop_front();
  }
  // At first, and where an epoch was skipped: what was announced of it is nobody's.
  if (std::tie(next_.epoch, next_.batch) <= std::tie(now.epoch, now.batch)) {
    next_ = now;
    ahead_.clear();
    ahead_bytes_ = 0;
  }
  while (!is_far_enough() && find_next()) {
    const std::uint64_t bytes = co_await announce_next();
    ahead_.push_back({.sequence = next_.sequence, .bytes = bytes});
    ahead_bytes_ += bytes;
    --batches_left_;
    ++next_.batch;
    ++next_.sequence;
  }
}

bool look_ahead::is_far_enough() const noexcept {
  constexpr std::size_t batches_least = 2;
  // The batch that is about to be started is one of them.
  return ahead_.size() > batches_least && ahead_bytes_ >= reads_.ahead_bytes();
}

// A sampler of the user's may throw, which ends the run where the batch is started.
bool look_ahead::find_next() {
  try {
    if (batches_left_ != 0 && next_.batch < run_.batches(next_.epoch)) return true;
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

asio::awaitable<std::uint64_t> look_ahead::announce_next() {
  picks_.clear();
  try {
    run_.pick_rows(next_.epoch, next_.batch, picks_);
  } catch (...) {
    is_over_ = true;
    co_return 0;
  }
  std::uint64_t bytes = 0;
  for (std::size_t row = 0; row < picks_.size();) {
    if (row != 0) co_await async::next_turn();
    places_.clear();
    for (const std::size_t end = std::min<std::size_t>(row + planner::rows_at_once, picks_.size()); row < end; ++row) {
      run_.planner().places(picks_[row], places_);
    }
    for (const extent& each : places_) bytes += each.stored_bytes;
    reads_.announce(next_.sequence, places_);
  }
  co_return bytes;
}

}  // namespace leat::stages

#include "stages/run/batch_table.hpp"

namespace leat::stages {

namespace asio = boost::asio;

batch_table::batch_table(std::uint32_t batches, decode_stage& rows, hand_over& ending, const timeline& seen,
                         read_recorder* record)
    : free_count_(batches) {
  for (std::uint32_t i = 0; i < batches; ++i) {
    batch_in_flight& added = batches_.emplace_back();
    added.rows_by = &rows;
    added.ended_by = &ending;
    added.track = seen.batch(i);
    added.record = record;
    added.sending.owner = &added;
    added.finishing.owner = &added;
    added.staleness.owner = &added;
    free_.push_back(&added);
  }
}

asio::awaitable<batch_in_flight*> batch_table::take() {
  co_await free_count_.acquire(1);
  co_return &pop();
}

batch_in_flight& batch_table::pop() noexcept {
  batch_in_flight& taken = *free_.back();
  free_.pop_back();
  return taken;
}

void batch_table::retire(batch_in_flight& batch) noexcept {
  free_.push_back(&batch);
  free_count_.release(1);
}

asio::awaitable<void> batch_table::all_retired() { co_await free_count_.acquire(free_count_.capacity()); }

void batch_table::clear() noexcept {
  const mutex_lock lock(mutex_);
  cleared_ = true;
  batches_.clear();
}

}  // namespace leat::stages

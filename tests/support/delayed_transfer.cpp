#include "tests/support/delayed_transfer.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace leat::testing {

delayed_transfer::~delayed_transfer() { release_all(); }

void delayed_transfer::send(stages::transfer_operation& operation) noexcept {
  {
    const mutex_lock lock(mutex_);
    if (!open_) {
      sends_.push_back(&operation);
      return;
    }
    ++firing_;
  }
  fire(operation);
}

void delayed_transfer::fire(stages::transfer_operation& operation) noexcept {
  operation.handed_over(operation);
  const mutex_lock lock(mutex_);
  --firing_;
  fired_.notify_all();
}

void delayed_transfer::give_back(io::lease memory, bool /*was_handed_out*/) noexcept {
  const mutex_lock lock(mutex_);
  if (!open_) returns_.push_back(std::move(memory));
}

// Also those that another thread is firing: what they tell goes away next.
void delayed_transfer::drain() noexcept {
  release_all();
  const mutex_lock lock(mutex_);
  while (firing_ != 0) fired_.wait(mutex_);
}

std::size_t delayed_transfer::sends_pending() const {
  const mutex_lock lock(mutex_);
  return sends_.size();
}

std::size_t delayed_transfer::returns_pending() const {
  const mutex_lock lock(mutex_);
  return returns_.size();
}

bool delayed_transfer::fire_send(std::size_t index) {
  stages::transfer_operation* fired = nullptr;
  {
    const mutex_lock lock(mutex_);
    if (index >= sends_.size()) return false;
    fired = sends_[index];
    sends_.erase(sends_.begin() + static_cast<std::ptrdiff_t>(index));
    ++firing_;
  }
  fire(*fired);
  return true;
}

bool delayed_transfer::fire_return(std::size_t index) {
  io::lease fired;  // Goes home outside the lock: somebody may be waiting for it.
  {
    const mutex_lock lock(mutex_);
    if (index >= returns_.size()) return false;
    fired = std::move(returns_[index]);
    returns_.erase(returns_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  return true;
}

void delayed_transfer::release_all() {
  std::vector<stages::transfer_operation*> sends;
  std::vector<io::lease> returns;
  {
    const mutex_lock lock(mutex_);
    open_ = true;
    sends.swap(sends_);
    returns.swap(returns_);
    firing_ += sends.size();
  }
  for (stages::transfer_operation* operation : sends) fire(*operation);
}

}  // namespace leat::testing

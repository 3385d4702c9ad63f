#include "stages/run/chunk_cache.hpp"

#include <utility>

namespace leat::stages {

void chunk_cache::expect(std::span<const batch_plan::block* const> next) {
  if (bytes_max_ == 0) return;
  const mutex_lock lock(mutex_);
  for (const key& each : expected_) blocks_.find(each)->second.is_expected = false;
  by_use_.splice(by_use_.end(), expected_);
  for (const batch_plan::block* const each : next) {
    const auto found = blocks_.find(key_of(*each));
    if (found == blocks_.end() || found->second.is_expected) continue;
    expected_.splice(expected_.end(), by_use_, found->second.used);
    found->second.is_expected = true;
  }
}

chunk_cache::state chunk_cache::find(block_in_flight& block) {
  if (bytes_max_ == 0 || block.to_row()) return state::absent;
  const mutex_lock lock(mutex_);
  const auto found = blocks_.find(key_of(block.of));
  if (found == blocks_.end()) return state::absent;
  move_to_front(found->second);
  block.shared = found->second.block;
  if (block.shared->ready) return state::there;
  block.shared->waiters.push_back(&block);
  return state::awaited;
}

void chunk_cache::begin(block_in_flight& block, std::size_t bytes) {
  if (bytes > bytes_max_ || block.to_row()) return;
  std::vector<std::shared_ptr<shared_block>> gone;  // Their memory is returned when nobody holds the mutex.
  const mutex_lock lock(mutex_);
  const key what = key_of(block.of);
  if (blocks_.contains(what)) return;  // begun while this one waited for its memory
  while (bytes_ + bytes > bytes_max_) {
    gone.push_back(take_oldest(by_use_));
    if (gone.back() == nullptr) break;
  }
  if (bytes_ + bytes > bytes_max_) return;
  block.shared = std::make_shared<shared_block>();
  block.expands_shared = true;
  by_use_.push_front(what);
  blocks_.emplace(what, entry{.block = block.shared, .bytes = bytes, .used = by_use_.begin()});
  bytes_ += bytes;
}

std::vector<block_in_flight*> chunk_cache::finish(block_in_flight& first) {
  std::shared_ptr<shared_block> gone;
  const mutex_lock lock(mutex_);
  first.shared->ready = true;
  std::vector<block_in_flight*> waiters = std::exchange(first.shared->waiters, {});
  if (first.damaged || starving_ != 0) gone = take(key_of(first.of));
  return waiters;
}

bool chunk_cache::let_go_of_one() {
  std::shared_ptr<shared_block> gone;
  const mutex_lock lock(mutex_);
  gone = take_oldest(by_use_);
  if (gone == nullptr) gone = take_oldest(expected_);
  return gone != nullptr;
}

void chunk_cache::add_starving(int waiters) {
  const mutex_lock lock(mutex_);
  starving_ += waiters;
}

void chunk_cache::move_to_front(entry& used) {
  by_use_.splice(by_use_.begin(), used.is_expected ? expected_ : by_use_, used.used);
  used.is_expected = false;
}

std::shared_ptr<shared_block> chunk_cache::take_oldest(const std::list<key>& from) {
  for (auto each = from.rbegin(); each != from.rend(); ++each) {
    if (blocks_.find(*each)->second.block->ready) return take(key(*each));
  }
  return nullptr;
}

std::shared_ptr<shared_block> chunk_cache::take(const key& what) {
  const auto found = blocks_.find(what);
  std::shared_ptr<shared_block> taken = std::move(found->second.block);
  bytes_ -= found->second.bytes;
  (found->second.is_expected ? expected_ : by_use_).erase(found->second.used);
  blocks_.erase(found);
  return taken;
}

}  // namespace leat::stages

#include "datasets/model/sample_blocks.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace leat::datasets {

sample_blocks::sample_blocks(std::uint64_t samples, std::uint64_t each) noexcept
    : samples_(samples), count_(samples / each + (samples % each != 0)), head_(std::min(samples, each)), each_(each) {}

void sample_blocks::begin_block(std::uint64_t first_sample) {
  assert(first_sample < samples_ && (count_ == 0 ? first_sample == 0 : first_sample > first(count_ - 1)));
  if (!firsts_.empty()) {
    firsts_.push_back(first_sample);
  } else if (count_ < 2) {
    head_ = count_ == 0 ? samples_ : first_sample;
    each_ = std::max(head_, samples_ - first_sample);  // until the next one begins
  } else if (count_ == 2) {
    each_ = first_sample - head_;
  } else if (first_sample != first(count_ - 1) + each_) {
    std::vector<std::uint64_t> firsts;  // first() reads firsts_
    firsts.reserve(2 * (count_ + 1));
    for (std::uint64_t block = 0; block < count_; ++block) firsts.push_back(first(block));
    firsts.push_back(first_sample);
    firsts_ = std::move(firsts);
  }
  ++count_;
}

std::uint64_t sample_blocks::first(std::uint64_t block) const noexcept {
  assert(block <= count_);
  if (block == count_) return samples_;
  if (!firsts_.empty()) return firsts_[block];
  return block == 0 ? 0 : head_ + (block - 1) * each_;
}

std::uint64_t sample_blocks::equal() const noexcept {
  const bool is_so = firsts_.empty() && head_ <= each_ && (empty() || samples_of(count_ - 1) <= each_);
  return is_so ? each_ : 0;
}

std::uint64_t sample_blocks::block_of(std::uint64_t sample) const noexcept {
  assert(sample < samples_ && count_ != 0);
  if (!firsts_.empty()) {
    const auto behind = std::upper_bound(firsts_.begin(), firsts_.end(), sample);
    return static_cast<std::uint64_t>(behind - firsts_.begin()) - 1;
  }
  return sample < head_ ? 0 : std::min(count_ - 1, 1 + (sample - head_) / each_);
}

}  // namespace leat::datasets

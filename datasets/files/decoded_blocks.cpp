#include "datasets/files/decoded_blocks.hpp"

#include <algorithm>
#include <utility>

namespace leat::datasets {

std::optional<std::span<const std::byte>> decoded_blocks::find(const block_key& wanted) {
  const auto found =
      std::find_if(blocks_.begin(), blocks_.end(), [&](const block& each) { return each.key == wanted; });
  if (found == blocks_.end()) return std::nullopt;
  blocks_.splice(blocks_.begin(), blocks_, found);
  return blocks_.front().bytes;
}

std::vector<std::byte> decoded_blocks::make_room(std::uint64_t bytes) {
  while (!blocks_.empty() && (bytes > bytes_max_ || bytes_ > bytes_max_ - bytes)) {
    bytes_ -= blocks_.back().bytes.size();
    blocks_.pop_back();
  }
  return std::vector<std::byte>(bytes);
}

std::span<const std::byte> decoded_blocks::add(const block_key& key, std::vector<std::byte> bytes) {
  bytes_ += bytes.size();
  return blocks_.emplace_front(block{key, std::move(bytes)}).bytes;
}

}  // namespace leat::datasets

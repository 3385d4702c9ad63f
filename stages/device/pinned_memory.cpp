#include "stages/device/pinned_memory.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <new>

namespace leat::stages {
namespace {

bool is_in(std::span<const std::span<std::byte>> all, std::span<std::byte> memory) noexcept {
  return std::any_of(all.begin(), all.end(), [&](std::span<std::byte> known) {
    return known.data() == memory.data() && known.size() == memory.size();
  });
}

}  // namespace

bool pinned_memory::pin(const io::lease& memory) {
  if (is_in(pinned_, memory.bytes())) return true;
  if (is_in(pageable_, memory.bytes())) return false;
  pinned_.reserve(pinned_.size() + 1);
  pageable_.reserve(pageable_.size() + 1);
  const device_status status = calls_.pin(memory.bytes());
  const bool is_pinned = status == device_ok;
  (is_pinned ? pinned_ : pageable_).push_back(memory.bytes());
  if (done_) done_(memory);
  const mutex_lock lock(mutex_);
  some_pinned_ = some_pinned_ || is_pinned;
  if (is_pinned || !why_pageable_.empty()) return is_pinned;
  why_pageable_ = str_cat("cudaHostRegister of ", memory.bytes().size(), " bytes: ", calls_.describe_pinning(status));
  return false;
}

void pinned_memory::unpin(std::span<std::byte> memory) noexcept {
  const auto at = std::find_if(pinned_.begin(), pinned_.end(), [&](std::span<std::byte> known) {
    return known.data() == memory.data() && known.size() == memory.size();
  });
  if (at == pinned_.end()) return;
  static_cast<void>(calls_.unpin(memory));
  pinned_.erase(at);
}

void pinned_memory::unpin_all() noexcept {
  for (const std::span<std::byte> memory : pinned_) static_cast<void>(calls_.unpin(memory));
  pinned_.clear();
}

fallback pinned_memory::report() const {
  const mutex_lock lock(mutex_);
  if (!why_pageable_.empty()) return {some_pinned_ ? "partly" : "off", why_pageable_};
  return {some_pinned_ ? "on" : "not yet", "by cudaHostRegister, as batches leave for the first time"};
}

}  // namespace leat::stages

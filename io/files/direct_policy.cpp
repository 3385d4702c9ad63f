#include "io/files/direct_policy.hpp"

#include "base/errno_words.hpp"
#include "base/text.hpp"
#include "io/files/read_error.hpp"
#include "io/files/source.hpp"

#include <bit>
#include <cerrno>

namespace leat::io {
namespace {

/// Whether files of this type lie in memory, or are unpacked into it. These accept O_DIRECT or not, depending on the
/// kernel, and copy from memory in any case.
bool is_in_memory(std::string_view type) {
  for (const std::string_view one : {"tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "squashfs", "rootfs"}) {
    if (type == one) return true;
  }
  return false;
}

}  // namespace

direct_policy::direct_policy(choice asked) : asked_(asked), wanted_(asked != choice::off) {
  why_ = asked != choice::automatic ? "asked for" : "wherever the file system has it";
}

void direct_policy::set_epoch_bytes(std::uint64_t bytes, const memory_available& memory) {
  if (asked_ != choice::automatic) return;
  const mutex_lock lock(mutex_);
  if (memory.bytes == 0) {
    why_ = "how much memory is available is not known";
    return;
  }
  wanted_ = bytes > memory.bytes / 2;
  why_ = str_cat("an epoch reads ", bytes_text(bytes), ", ", wanted_ ? "more than" : "which fits in", " half of the ",
                 bytes_text(memory.bytes), " available (", memory.said_by, ")");
}

bool direct_policy::wants_direct() const {
  const mutex_lock lock(mutex_);
  return wanted_;
}

void direct_policy::note_direct() {
  const mutex_lock lock(mutex_);
  ++directories_direct_;
}

void direct_policy::note_buffered(std::string_view path, const std::string& why) {
  const mutex_lock lock(mutex_);
  ++directories_buffered_;
  if (first_buffered_.empty()) first_buffered_ = str_cat(path, ": ", why);
}

fallback direct_policy::report() const {
  const mutex_lock lock(mutex_);
  if (!wanted_) return {"off", why_};
  if (directories_buffered_ == 0) return {"on", why_};
  return {directories_direct_ == 0 ? "off" : "partly", first_buffered_};
}

/// Why a file of this status is not read with O_DIRECT; empty if it is.
std::string file_modes::why_not_direct(const file_status& status) const {
  if ((status.mask & file_status::mask_direct) != 0) {
    if (status.direct_offset_alignment == 0) {
      return str_cat(file_system_of(status.device_major, status.device_minor), " has no O_DIRECT for it");
    }
    if (status.direct_offset_alignment > alignment_max_bytes || status.direct_memory_alignment > alignment_max_bytes) {
      return str_cat("O_DIRECT there wants an alignment of ", status.direct_offset_alignment, " bytes");
    }
    return {};
  }
  // Not said (before Linux 6.1, and where a file system does not tell).
  const std::uint64_t device = std::uint64_t{status.device_major} << 32 | status.device_minor;
  const mutex_lock lock(mutex_);
  if (device_ != device) {
    type_of_device_ = file_system_of(status.device_major, status.device_minor);
    device_ = device;
  }
  return is_in_memory(type_of_device_) ? str_cat(type_of_device_, " has no O_DIRECT") : std::string();
}

std::optional<file_mode> file_modes::known(std::uint32_t directory) const {
  if (!policy_.wants_direct()) return file_mode{};
  if (each_file()) return std::nullopt;
  const mutex_lock lock(mutex_);
  if (directory >= directories_.size()) return std::nullopt;
  const entry& found = directories_[directory];
  switch (found.now) {
    case state::unknown:
      return std::nullopt;
    case state::buffered:
      return file_mode{};
    case state::direct:
      break;
  }
  return file_mode{true, 1U << found.alignment_log2};
}

int file_modes::learn(std::uint32_t directory, std::string_view path, const file_status* status) {
  const std::string why_not = status != nullptr ? why_not_direct(*status) : std::string();
  if (!why_not.empty() && policy_.insists()) return EOPNOTSUPP;
  {
    const mutex_lock lock(mutex_);
    if (directory >= directories_.size()) directories_.resize(directory + std::size_t{1});
    entry& learned = directories_[directory];
    if (learned.now != state::unknown) return 0;
    if (why_not.empty()) {
      const bool known = status != nullptr && (status->mask & file_status::mask_direct) != 0;
      const std::uint32_t alignment =
          known ? status->direct_offset_alignment : static_cast<std::uint32_t>(alignment_max_bytes);
      learned = {state::direct, static_cast<std::uint8_t>(std::bit_width(std::bit_ceil(alignment)) - 1)};
    } else {
      learned = {state::buffered, 0};
    }
  }
  if (why_not.empty()) {
    policy_.note_direct();
  } else {
    policy_.note_buffered(path, why_not);
  }
  return 0;
}

bool file_modes::refused(std::uint32_t directory, std::string_view path, int failure) {
  if (policy_.insists()) return false;
  {
    const mutex_lock lock(mutex_);
    if (directory >= directories_.size()) directories_.resize(directory + std::size_t{1});
    if (directories_[directory].now == state::buffered) return true;
    directories_[directory] = {state::buffered, 0};
  }
  policy_.note_buffered(path, str_cat("O_DIRECT was refused (", errno_name(failure), ")"));
  return true;
}

int file_modes::failure_of(const file_status& status) const {
  return policy_.insists() && !why_not_direct(status).empty() ? EOPNOTSUPP : 0;
}

file_mode file_modes::mode_of(const file_status& status) const {
  if (!policy_.wants_direct() || !why_not_direct(status).empty()) return {};
  const bool known = (status.mask & file_status::mask_direct) != 0;
  const std::uint32_t own = known ? status.direct_offset_alignment : static_cast<std::uint32_t>(alignment_max_bytes);
  return {true, std::bit_ceil(own)};
}

}  // namespace leat::io

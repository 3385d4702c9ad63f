// What a device keeps for rows that are drawn anew in each epoch: the packs that they are decoded from. The host keeps their heads.
#pragma once

#include <cstddef>

namespace leat::stages {

/// Part of a row as decode() wrote it, or of what a device keeps of it.
struct row_part {
  std::size_t at = 0;
  std::size_t bytes = 0;
};

/// An operation whose rows may carry all of a pack, or lack what a device has of it.
class keeping_operation {
 public:
  /// Of a row that carries a pack: what a device keeps, and what the host does. Nothing of the first: the row carries none.
  ///   value_bytes   of the pack
  struct kept {
    row_part on_device;
    row_part on_host;
    std::size_t value_bytes = 0;
  };
  [[nodiscard]] virtual kept kept_of(const std::byte* row) const noexcept = 0;
  /// Of a row that decode_held() wrote: where it lacks bytes, and where these begin in what the device keeps.
  struct lacking {
    row_part in_row;
    std::size_t in_kept = 0;
  };
  [[nodiscard]] virtual lacking lacking_of(const std::byte* row) const noexcept = 0;

 protected:
  ~keeping_operation() = default;
};

}  // namespace leat::stages

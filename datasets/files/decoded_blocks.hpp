// Blocks that were expanded last, for who looks at samples one by one: neighbours share them.
#pragma once

#include <leat/extent.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <vector>

namespace leat::datasets {

/// Which block it is: of this model, as datasets::part says.
struct block_key {
  const void* model = nullptr;
  extent where;
  std::uint32_t codec = 0;
  std::uint64_t block = 0;

  friend bool operator==(const block_key&, const block_key&) = default;
};

/// Thread: one at a time.
class decoded_blocks {
 public:
  /// Of all that are kept, unless one alone has more.
  static constexpr std::uint64_t bytes_max_usual = std::uint64_t{64} << 20;

  explicit decoded_blocks(std::uint64_t bytes_max = bytes_max_usual) : bytes_max_(bytes_max) {}

  /// Its bytes, until the next call; nothing where it is not kept.
  [[nodiscard]] std::optional<std::span<const std::byte>> find(const block_key& wanted);
  /// Memory for one that is to be expanded, after others have left for it.
  [[nodiscard]] std::vector<std::byte> make_room(std::uint64_t bytes);
  /// Keeps it.
  ///   returns   its bytes, until the next call
  std::span<const std::byte> add(const block_key& key, std::vector<std::byte> bytes);

 private:
  struct block {
    block_key key;
    std::vector<std::byte> bytes;
  };

  const std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  std::list<block> blocks_;  // those used last in front
};

}  // namespace leat::datasets

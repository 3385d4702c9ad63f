// Which shards samples are packed into: their names, and when one is full.
#pragma once

#include "datasets/write/pack.hpp"

#include <leat/world.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// p-%06d.tar: what stands before and after the number, and how wide it is.
struct number_pattern {
  std::string before;
  std::string after;
  std::size_t width = 0;

  [[nodiscard]] std::string name(std::uint64_t number) const;
  /// The lowest of the shards from number `first` on that are there, or none. Numbers beyond those that a run needs count too: under a
  /// glob they would silently join it.
  [[nodiscard]] std::optional<std::string> existing(std::uint64_t first) const;
};

/// Names of the shards, and when one is full. Thread: const calls from any number of threads.
class shard_plan {
 public:
  ///   samples   that are packed, by all ranks together
  ///   throws    error{errc::usage}: names that are no names of shards, a name given twice, a size per shard that does not fit the
  ///             names, a shard that exists already and may neither be overwritten nor stay
  shard_plan(std::string_view out, std::uint64_t samples, const pack_options& options);

  /// Whether the number of shards is given by their names.
  [[nodiscard]] bool counted() const noexcept { return !pattern_.has_value(); }
  /// Shards, where they are known beforehand.
  [[nodiscard]] std::uint64_t shards() const noexcept;
  /// The shards that this process writes; without an end if only the bytes decide it.
  struct range {
    std::uint64_t begin = 0;
    std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
  };
  [[nodiscard]] const range& own() const noexcept { return own_; }
  /// The first of a shard's samples, of all that are packed.
  [[nodiscard]] std::uint64_t first_sample(std::uint64_t shard) const noexcept;
  [[nodiscard]] std::string name(std::uint64_t shard) const { return pattern_ ? pattern_->name(shard) : names_[shard]; }
  /// How many of them a shard gets; nothing where bytes decide it.
  [[nodiscard]] std::optional<std::uint64_t> samples_of(std::uint64_t shard) const noexcept {
    return bytes_max_ != 0 ? std::nullopt : std::optional(first_sample(shard + 1) - first_sample(shard));
  }
  /// Of this process' shards, those from `first` on.
  ///   throws    error{errc::usage} where one is there already
  void check_absent(std::uint64_t first) const;
  /// Whether a shard that holds these samples and bytes is full, if the next sample has `bytes_more`.
  [[nodiscard]] bool full(std::uint64_t shard, std::uint64_t samples, std::uint64_t bytes,
                          std::uint64_t bytes_more) const noexcept;

 private:
  [[nodiscard]] std::uint64_t share(std::uint64_t shard) const noexcept;
  void check_distinct(std::string_view out) const;
  [[nodiscard]] range own_of(const leat::world& here) const noexcept;

  std::uint64_t samples_;
  range own_;
  std::vector<std::string> names_;
  std::optional<number_pattern> pattern_;
  std::uint64_t samples_max_ = 0;
  std::uint64_t bytes_max_ = 0;
};

}  // namespace leat::datasets

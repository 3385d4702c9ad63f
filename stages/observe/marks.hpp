// Spans that the trainer names itself, beside those of the line.
#pragma once

#include "base/mutex.hpp"
#include "stages/observe/timeline_track.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat::stages {

/// Owns the names and their track. Thread: any.
class marks {
 public:
  /// Names beyond so many share one, and longer ones are cut: what a trainer makes of a loop's number takes no memory.
  static constexpr std::size_t names_max = 64;
  static constexpr std::size_t name_bytes_max = 63;
  static constexpr std::string_view other_names = "other marks";

  ///   spans   that are kept, the latest
  explicit marks(std::size_t spans) : track_("trainer's own", spans) {}

  /// The number of a name, which spans have for it.
  [[nodiscard]] std::uint32_t number_of(std::string_view name);
  void add(std::uint32_t name, std::uint64_t begin_ns, std::uint64_t end_ns) noexcept;

  [[nodiscard]] const timeline_track& track() const noexcept { return track_; }
  /// By their numbers.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  mutable mutex mutex_;
  std::vector<std::string> names_ ABSL_GUARDED_BY(mutex_);
  timeline_track track_;  // written with the lock, as its writers are to come one at a time
};

}  // namespace leat::stages

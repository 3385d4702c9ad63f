// Progressive JPEGs on their way into a pack (leat pack --transcode), and what they cost where they lie (leat inspect).
#pragma once

#include "tools/rewrite_tally.hpp"

#include <leat/samples.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace leat::tools {

/// Writes JPEGs anew as baseline and keeps count. Thread: any, several at once.
class transcoding : public rewrite_tally {
 public:
  /// The file to take a member's place; nothing where it stays as it is.
  std::optional<std::vector<std::byte>> rewrite(std::string_view member, std::span<const std::byte> content);
};

/// What some of a dataset's pictures are.
///   not_baseline  progressive, of several scans otherwise, or arithmetically coded: rewriting makes them faster
///   speed_up      CPU time of decoding one of those whole, before / after; of `measured` of them. 0: none was measured
///   packs         what photo packs would give (`leat pack --photos fast`), of some that are baseline
struct jpeg_survey {
  /// Of `measured` photographs: their bytes as packs / as JPEGs, and the CPU time of a training crop of 224 x 224, JPEG / pack.
  struct pack_gain {
    std::uint64_t measured = 0;
    double bytes = 0;
    double speed_up = 0;
  };

  std::uint64_t looked_at = 0;
  std::uint64_t not_baseline = 0;
  std::uint64_t measured = 0;
  double speed_up = 0;
  pack_gain packs;

  /// Of the CPU time of decoding all pictures, what rewriting would save, if those are as large as the others.
  [[nodiscard]] double saving() const noexcept;
};

/// Looks at so many JPEGs, evenly spread, reading each whole; measures with the first few progressive and baseline ones.
[[nodiscard]] jpeg_survey survey_jpegs(const dataset& samples, std::uint64_t looks_max = 200);

}  // namespace leat::tools

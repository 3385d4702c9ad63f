// What is wrong with a dataset, told from what its samples are compared by (leat check).
#pragma once

#include "tools/checked_samples.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace leat::tools {

/// Samples of one content, by number; at least two.
struct same_content {
  digest content;
  std::vector<std::uint64_t> samples;
};

/// A sample that resembles an earlier one, or one of another dataset.
///   bits     that differ between their keys
///   labels_differ   both have a class, and not the same
///   rest_differs    rows without a picture, whose other columns are not the same
struct similar_sample {
  std::uint64_t sample = 0;
  std::uint64_t of = 0;
  unsigned bits = 0;
  bool labels_differ = false;
  bool rest_differs = false;
};

/// How many numbers there are of each size: by the least of those that are counted together. From 8 on there are four sizes up to twice a
/// number, the same for all sets, so that two can be compared.
using size_histogram = std::map<std::uint64_t, std::uint64_t>;

/// Of some numbers. A percentile is the nearest rank's: one of the numbers.
struct spread_of {
  std::uint64_t least = 0;
  std::uint64_t p5 = 0;
  std::uint64_t median = 0;
  std::uint64_t p95 = 0;
  std::uint64_t p99 = 0;
  std::uint64_t largest = 0;
  size_histogram histogram = {};

  [[nodiscard]] static spread_of of(std::vector<std::uint64_t> numbers);
};

/// What this set shares with another, which it must not.
struct shared_samples {
  std::uint64_t looked_at = 0;       ///< of the other
  std::vector<similar_sample> same;  ///< the content; `of` is the first one of the other
  std::vector<similar_sample> near;  ///< and not the content
};

///   duplicates   equal in all fields and columns: no other sample is lost with one of them
///   two_labels   of several classes. Of rows without a picture their other columns are the same too
///   other_fields of one content, and different beside it: a picture with several captions, a text with several scores. The
///                first sample of each
///   near         among the first of each content
///   flat         pictures of one colour
struct check_findings {
  std::vector<same_content> duplicates;
  std::vector<same_content> two_labels;
  std::vector<same_content> other_fields;
  std::vector<similar_sample> near;
  std::vector<std::uint64_t> flat;
  std::map<std::int64_t, std::uint64_t> classes;
  spread_of bytes;
  std::uint64_t pictures = 0;
  spread_of widths;
  spread_of heights;
  std::optional<shared_samples> shared;
};

///   other      null, or a set that should have no sample in common
///   bits_max   at which pictures resemble one another
///   threads    change the time only
[[nodiscard]] check_findings find_in(const checked_samples& set, const checked_samples* other, unsigned bits_max,
                                     unsigned threads);

/// Samples to leave out, by number: those with a fault; all but the first of duplicates, and all of several classes; what is in the
/// other set too, rows without a picture as far as their other columns are the same. What only looks alike, or differs beside
/// its content, is somebody's to judge.
[[nodiscard]] std::vector<std::uint64_t> to_leave_out(const checked_samples& set, const check_findings& found);

/// Whether the set is wrong: a fault, a content under several classes, a content that the other set has too. That a sample is there
/// twice, or resembles another, may be meant.
[[nodiscard]] bool is_wrong(const checked_samples& set, const check_findings& found);

}  // namespace leat::tools

// How large pictures are, as they are stored: told by the beginnings of their files, which are read here.
#pragma once

#include "base/outcome.hpp"
#include "datasets/model/model.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// In pixels, before any EXIF orientation.
struct picture_size {
  std::uint32_t width = 0;
  std::uint32_t height = 0;

  friend bool operator==(const picture_size&, const picture_size&) = default;
};

/// Tells a size by the beginning of a file. Formats are known to the stages, which give this. Thread-safe.
///   returns   the size; `corrupt`: more bytes may tell more; otherwise the reason why it is told by none
using size_reader = stages::outcome<picture_size> (*)(std::span<const std::byte> begin);

struct asked_picture {
  std::uint64_t sample = 0;
  std::uint16_t field = 0;

  friend auto operator<=>(const asked_picture&, const asked_picture&) = default;
};

/// Sizes in the order in which they were asked for.
///   unreadable    how many are not known: their files are damaged or not there, or their format is not read. Their size is 0 x 0
///   first, why    the first of these by its place, and the reason
struct measured_pictures {
  std::vector<picture_size> sizes;
  std::uint64_t unreadable = 0;
  std::size_t first = 0;
  std::string why;
};

/// Reads 1 KiB of each, thousands together and on several threads; more of those that say their size later (JPEGs with large EXIF), and
/// all of a value that is stored packed. Blocks.
///   asked    pictures that the samples have
///   throws   error of a machine, a mount or a network that fails
[[nodiscard]] measured_pictures measure_pictures(const dataset_model& model, std::span<const asked_picture> asked,
                                                 size_reader tell);

}  // namespace leat::datasets

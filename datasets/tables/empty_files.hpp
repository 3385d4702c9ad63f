// Shards without a byte: no samples, and a note.
#pragma once

#include <leat/samples.hpp>

#include <span>
#include <string>
#include <string_view>

namespace leat::datasets {

/// Of a shard that has no byte, as Beam and Spark write them.
[[nodiscard]] std::string note_of_empty_file(std::string_view path);

/// A part of a concatenation that adds nothing but a note for each of them.
[[nodiscard]] dataset no_samples_of(std::span<const std::string> paths);

}  // namespace leat::datasets

// Paths as keys of shards and back, and names of fields as members' extensions. A key ends at the first dot of its last
// part, so dots there are written %2E; a percent sign is written %25 wherever it stands; of a folder that readers leave
// out as hidden the first letter is written so: %2Ecache/1. Two escapes more keep samples apart that would get the same
// key side by side: a lone % at the end is a name of nothing but an extension (".jpg"), and %~N counts equal neighbours
// ("a.jpg", "a.png").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leat::datasets {

/// A path without its extension as a key.
[[nodiscard]] std::string encode_key(std::string_view stem);

/// The key of the n-th neighbour in a row with the same one; n = 0 is the key itself.
[[nodiscard]] std::string number_key(std::string_view key, std::uint64_t n);

/// What encode_key was given; keys that hold none of its escapes come back as they are.
[[nodiscard]] std::string decode_key(std::string_view key);

/// A field's name as an extension. In an extension a slash would begin another key, and capitals would become small: these are written
/// %2F and %41 to %5A, as is a percent sign, and what is no character of a path.
[[nodiscard]] std::string encode_field_name(std::string_view name);

/// What encode_field_name() was given, of an extension with small letters; one that holds none of its escapes comes back as it is.
[[nodiscard]] std::string decode_field_name(std::string_view extension);

}  // namespace leat::datasets

// What Zstandard packed, by libzstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace leat::datasets {

/// One frame, or several that follow one another. Thread-safe.
///   decoded   becomes exactly full, or there is a reason
///   returns   the reason why not; nothing where it was done
///   source    RFC 8878
[[nodiscard]] std::optional<std::string> expand_zstd(std::span<const std::byte> stored, std::span<std::byte> decoded);

/// Some of the bytes that they become, without the memory of the others: up to 128 MiB, as the frame asks for. What lies behind is not
/// looked at. Thread-safe.
///   begin   of them
[[nodiscard]] std::optional<std::string> expand_zstd_part(std::span<const std::byte> stored, std::uint64_t begin,
                                                          std::span<std::byte> part);

/// What the frame that begins so becomes, in bytes, where its header says so.
[[nodiscard]] std::optional<std::uint64_t> zstd_frame_bytes(std::span<const std::byte> start) noexcept;

}  // namespace leat::datasets

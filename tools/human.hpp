// Numbers as people read and write them.
#pragma once

#include "base/text.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leat::tools {

/// Bytes in memory and of files, by powers of 1024 and three digits: "117 KiB", "1.21 GiB".

/// Bytes per second, by powers of 1000 as disks are sold: "3.12 GB/s".
[[nodiscard]] std::string rate_text(double bytes_per_s);

/// Three digits and a unit that fits: "12.0 us", "41.2 ms", "1.84 s", "3 min 12 s", "2 h 05 min".
[[nodiscard]] std::string seconds_text(double seconds);

/// A clock for what is left: "0:04", "12:31", "1:02:09".
[[nodiscard]] std::string clock_text(double seconds);

/// One and many: "1 sample", "2,000 samples".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view one, std::string_view many);

/// "512MiB", "2GiB", "1.5 GiB", "64K" (binary as well), "100MB" (decimal) or plain bytes. Nothing where it is no size, or
/// one that does not fit.
[[nodiscard]] std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// What would break a line, or a terminal, as \n, \t and \x1b: file names may hold anything.
[[nodiscard]] std::string one_line(std::string_view text);

/// Columns that UTF-8 text takes on a terminal, colour sequences taking none.
[[nodiscard]] std::size_t columns_of(std::string_view text) noexcept;

}  // namespace leat::tools

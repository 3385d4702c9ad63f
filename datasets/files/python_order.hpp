// Strings in the order Python sorts them: by code point, not by byte. The two orders differ only where bytes are no UTF-8:
// Python reads each of those as a code point U+DC80..U+DCFF (PEP 383), which sorts before U+E000.
#pragma once

#include <string_view>

namespace leat::datasets {

/// True where sorted() puts `a` before `b`.
[[nodiscard]] bool python_less(std::string_view a, std::string_view b) noexcept;

/// True where the bytes are UTF-8 from end to end.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace leat::datasets

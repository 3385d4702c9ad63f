// Bytes as text, RFC 4648 section 4.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace leat {

[[nodiscard]] std::string to_base64(std::string_view bytes);

/// White space between letters and a missing `=` are no mistake. Nothing where the text is no base64.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace leat

// What the pages of leat report and leat check are made of: styles, and text as HTML. A page needs nothing beside it, and says
// all without its script, where it has one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace leat::tools {

/// From the document's type to the heading. A page parses as XML too.
///   title   not escaped yet
///   style   rules of this page, beside those that all have
///   script  the only one that a browser runs here, whatever a name would make it do: by its hash. It has no < and no &
[[nodiscard]] std::string page_head(std::string_view title, std::string_view style, std::string_view script = {});
///   script  that of page_head()
[[nodiscard]] std::string page_end(std::string_view script = {});

/// Text as HTML, and not more than so many bytes of it: a page is bounded whatever a name is.
[[nodiscard]] std::string page_words(std::string_view text, std::size_t bytes_max = 400);

/// A file as an address.
[[nodiscard]] std::string data_address(std::string_view media_type, std::span<const std::byte> bytes);

}  // namespace leat::tools

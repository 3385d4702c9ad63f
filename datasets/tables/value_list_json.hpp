// Lists of texts and of bytes as tables give them: a list of JSON. Bytes are base64, as JSON of protobuf has them.
#pragma once

#include "base/base64.hpp"
#include "datasets/wire/json_value.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace leat::datasets {

/// Calls hold(piece) for the pieces of a value of a list.
///   first     of its list
///   value     none: a null
template <class Hold>
void for_each_piece_of_json(bool first, bool is_text, std::optional<std::span<const std::byte>> value,
                            const Hold& hold) {
  using namespace std::string_view_literals;
  if (!first) hold(","sv);
  if (!value) return hold("null"sv);
  const std::string_view bytes(reinterpret_cast<const char*>(value->data()), value->size());
  hold("\""sv);
  if (is_text) {
    for_each_escaped(bytes, hold);
  } else {
    hold(std::string_view(to_base64(bytes)));
  }
  hold("\""sv);
}

}  // namespace leat::datasets

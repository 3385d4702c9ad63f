// What `leat inspect` says of chunked arrays.
#pragma once

#include "tools/terminal.hpp"

#include <leat/samples.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace leat::tools {

/// Chunks that a row of a chunked array has elements in, of one row along the first axis; 0 of other fields.
[[nodiscard]] std::uint64_t chunks_of_sample(const field_info& field);

/// The chunks of the fields that have some, a line each, and what is to be done where samples share them; empty where none has.
[[nodiscard]] std::string chunks_text(const terminal& screen, std::span<const field_info> fields);

}  // namespace leat::tools

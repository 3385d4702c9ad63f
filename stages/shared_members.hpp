// Fields that read one member of a sample: which view of it each of them is, and which of them are decoded together.
#pragma once

#include "stages/field_model.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::stages {

/// Has the second random program of a member draw as its second view, and so on.
void number_views(std::span<const std::unique_ptr<field_program>> programs);

/// For each program the one whose decode makes its rows: itself, or one before it.
[[nodiscard]] std::vector<std::uint16_t> decode_leaders(std::span<const std::unique_ptr<field_program>> programs);

/// What decoding a usual sample takes of the scratch budget, per thread.
[[nodiscard]] std::size_t scratch_bytes_of(std::span<const std::unique_ptr<field_program>> programs);

/// For people: which outputs share a decode, and which pictures of one member do not.
[[nodiscard]] std::vector<std::string> describe_shared_decodes(
    std::span<const std::unique_ptr<field_program>> programs);

}  // namespace leat::stages

// Fields that read the same member of a sample: which view of it each field is, and which fields share one decode.
#pragma once

#include "stages/batch/field_model.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::stages {

/// Of its first output that a batch shows: members of a function are kept before.
[[nodiscard]] const std::string& shown_name(const field_program& program);

/// Numbers the random programs of each member, so that the second draws as the second view, and so on, without those that
/// draw by a name.
///   throws   error{errc::usage} for two of one name whose geometry differs
void number_views(std::span<const std::unique_ptr<field_program>> programs);

/// For each program the number of the program that decodes for it: its own, or an earlier one.
[[nodiscard]] std::vector<std::uint16_t> decode_leaders(std::span<const std::unique_ptr<field_program>> programs);

/// Tells each program that follows a picture which program makes it.
///   throws   error{errc::usage} for no such field, or none that makes pictures
void follow_pictures(std::span<const std::unique_ptr<field_program>> programs);

/// For each program the number of the one that it follows, or its own.
[[nodiscard]] std::vector<std::uint16_t> pictures_followed(std::span<const std::unique_ptr<field_program>> programs);

/// For each program the number of the one whose boxes its crops look at, or its own.
///   throws   error{errc::usage} where there are none, or more than one without a name
[[nodiscard]] std::vector<std::uint16_t> boxes_looked_at(std::span<const std::unique_ptr<field_program>> programs);

/// For each program the number of the program whose scratch it decodes with: of those that decode for themselves their own, or an
/// earlier one's.
[[nodiscard]] std::vector<std::uint16_t> scratch_owners(std::span<const std::unique_ptr<field_program>> programs);

/// The scratch memory that decoding a usual sample takes, per thread.
[[nodiscard]] std::size_t scratch_bytes_of(std::span<const std::unique_ptr<field_program>> programs);

/// Sentences for loader_plan::notes: which outputs share a decode, and which views of one member do not.
[[nodiscard]] std::vector<std::string> describe_shared_decodes(
    std::span<const std::unique_ptr<field_program>> programs);

}  // namespace leat::stages

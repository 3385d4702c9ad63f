// Chats of a Parquet file: a list of structs is a column of roles and one of contents, each a list, and is read as one value.
#pragma once

#include "datasets/files/file_bytes.hpp"
#include "datasets/formats/parquet/parquet_footer.hpp"
#include "datasets/model/value_blocks.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace leat::datasets {

/// The list that a column is the roles or the contents of; empty where it is neither, the other column is not there, or a message has
/// more that decides what it says: calls of tools.
///   leaf   its place among those of a file
[[nodiscard]] std::string chats_of(std::span<const parquet_leaf> leaves, std::size_t leaf);

/// Roles and contents as one: of each row `[{"role":"user","content":"Hello"},...]`. A row that lacks one of them has no value.
///   roles, contents   columns of one file, whose values are lists of JSON. The roles are read here
///   returns           nothing where a row group's are too many to be expanded, or lie too far apart to be read together
///   throws            error{errc::format}
[[nodiscard]] std::shared_ptr<const value_blocks> join_chats(const file_bytes& file,
                                                             std::shared_ptr<const value_blocks> roles,
                                                             std::shared_ptr<const value_blocks> contents);

}  // namespace leat::datasets

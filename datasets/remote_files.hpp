// Datasets whose files are objects at addresses.
#pragma once

#include <leat/open_tables.hpp>
#include <leat/open_tar.hpp>
#include <leat/samples.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::io {
class source_description;
struct named_object;
}  // namespace leat::io

namespace leat::datasets {

enum class source_format : std::uint8_t;
class input_files;
struct index_places;

/// Whether open() reads from there.
[[nodiscard]] bool is_remote(std::string_view source) noexcept;

/// Paths and addresses that say what a file holds, or lie where it is looked for. Where the path itself is among them, it need not be there.
///   path   or an address, without what signs it
using names_beside = std::function<std::vector<std::string>(const std::string& path)>;

/// Files of one format as a caller names them: paths or addresses, by brace lists and globs.
///   beside   at addresses these are looked for, together, with one request each
///   throws   error{errc::not_found} a pattern of paths without a file; error{errc::usage} paths and addresses in one call; as find_objects()
///            and io::describe_objects()
[[nodiscard]] std::unique_ptr<input_files> files_at(std::span<const std::string> patterns,
                                                    const remote_options& options, const names_beside& beside = {});

/// The files of files_at(), opened. Tables of paths at addresses are opened one by one, each with what it may name.
using table_opener = std::function<dataset(const input_files& files, const table_options& options)>;
[[nodiscard]] dataset open_tables_at(std::span<const std::string> patterns, const table_options& options,
                                     const table_opener& open);
/// A file at an address that may name others: those below its folder, and any by their whole addresses.
[[nodiscard]] std::unique_ptr<input_files> files_named_by(const io::named_object& object,
                                                          const remote_options& options);

/// Whether these are addresses, all of them.
///   throws   error{errc::usage} some are, and some are paths
[[nodiscard]] bool are_remote(std::span<const std::string> patterns);

/// Throws error{errc::usage} for the address of a folder, with what to name instead.
void refuse_folder(const std::string& address);
/// Throws it, of a folder that is not of s3://.
///   shown   without what signs it, with a slash at its end
[[noreturn]] void refuse_to_list(const std::string& shown);

/// open_tar() of addresses.
[[nodiscard]] dataset open_shards_at(std::span<const std::string> patterns, const tar_options& options);

/// The addresses that one with brace lists stands for, of s3:// with globs as well. What follows the first '?' of others is of each of them.
///   throws   error{errc::usage} a glob, for which a server cannot be asked; as expand_braces() and io::match_objects()
/// Of a folder of s3:// those below it, for who needs no more than their names.
///   ending   of folders only objects directly in them whose names end so; empty: all below them
///   throws   error{errc::not_found} a folder without one
[[nodiscard]] std::vector<std::string> expand_addresses(std::string_view pattern, const remote_options& options,
                                                        std::string_view ending = {});
/// The same, with what listings have told: of globs, and of s3:// by braces where one listing takes less than looking at each.
[[nodiscard]] std::vector<io::named_object> find_objects(std::string_view pattern, const remote_options& options);

/// A dataset of files of one kind, out of whatever source.
///   shards   the same files, where they are tar shards
///   beside   where indexes of them may lie
using kind_opener = std::function<dataset(source_format kind, const input_files& files)>;
using shard_opener = std::function<dataset(std::shared_ptr<const io::source_description> shards,
                                           const std::function<index_places()>& beside)>;

/// Opens objects: neighbours of one kind together, in their order.
///   throws   as io::describe_objects(), and what the openers throw
[[nodiscard]] std::vector<dataset> open_objects(std::span<const io::named_object> objects,
                                                const remote_options& options, const kind_opener& open_kind,
                                                const shard_opener& open_shards);

}  // namespace leat::datasets

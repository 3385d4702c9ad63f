// Datasets whose files are objects at addresses.
#pragma once

#include "io/remote/describe_objects.hpp"

#include <leat/remote.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

class input_files;

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

/// The objects that an address with brace lists stands for, of s3:// with globs as well. What follows the first '?' of others is of each of
/// them. With what listings have told: of globs, and of s3:// by braces where one listing takes less than looking at each.
///   throws   error{errc::usage} a glob, for which a server cannot be asked; as expand_braces() and io::match_objects()
[[nodiscard]] std::vector<io::named_object> find_objects(std::string_view pattern, const remote_options& options);
[[nodiscard]] std::vector<io::named_object> find_objects(std::span<const std::string> patterns,
                                                         const remote_options& options);

/// Their addresses. Of a folder of s3:// those below it, for who needs no more than their names.
///   ending   of folders only objects directly in them whose names end so; empty: all below them
///   throws   error{errc::not_found} a folder without one
[[nodiscard]] std::vector<std::string> expand_addresses(std::string_view pattern, const remote_options& options,
                                                        std::string_view ending = {});
/// An address in its parts: "https://h/set/", "a-000.tar", "?sig".
struct address_parts {
  std::string folder;
  std::string name;
  std::string query;
};
[[nodiscard]] address_parts parts_of(const std::string& address);

/// An object, and what was found beside it.
///   is_there   false: only what lies beside it
struct found_object {
  io::named_object named;
  std::vector<std::string> companions = {};
  bool is_there = true;
};
/// All that may lie beside them is looked for together.
[[nodiscard]] std::vector<found_object> with_companions(std::span<const io::named_object> objects,
                                                        const names_beside& beside, const remote_options& options);

/// The names of a source's first files.
[[nodiscard]] std::vector<std::string> first_names(const io::source_description& source, std::size_t count);

}  // namespace leat::datasets

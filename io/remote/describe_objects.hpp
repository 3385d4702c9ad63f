// The door to objects at addresses, which is there in every build.
#pragma once

#include "io/files/source.hpp"

#include <leat/remote.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::io {

/// An object, and what a listing has told of it.
///   etag   empty: nothing was told
struct named_object {
  std::string address;
  std::uint64_t size_bytes = 0;
  std::string etag = {};
};

/// Whether reads go by way of the cache that the options ask for.
enum class caching : std::uint8_t { as_asked, none };

/// What a listing has told is not asked for again, once the first of them that is opened was found to be as it says: some stores list other
/// tags than they answer with.
///   throws   error{errc::usage}: no address of an object, or one of http:// that was not allowed;
///            error{errc::unsupported} in a build without this part
[[nodiscard]] std::shared_ptr<const source_description> describe_objects(std::span<const named_object* const> objects,
                                                                         const remote_options& options,
                                                                         caching how = caching::as_asked);
[[nodiscard]] std::shared_ptr<const source_description> describe_objects(std::span<const named_object> objects,
                                                                         const remote_options& options);
[[nodiscard]] std::shared_ptr<const source_description> describe_objects(std::span<const std::string> addresses,
                                                                         const remote_options& options,
                                                                         caching how = caching::as_asked);

/// The objects that an address with * ? [ stands for: * and ? do not cross a slash. Sorted by byte.
///   throws   error{errc::not_found} there is none; error{errc::unsupported} in a build without this part; else as list_bucket() and find_s3_access()
[[nodiscard]] std::vector<named_object> match_objects(const std::string& pattern, const remote_options& options);

/// All objects below a folder of s3://, which may be a whole bucket. Sorted by byte; a name that ends with a slash stands for a folder.
///   folder   with or without a slash at its end
///   throws   as list_bucket() and find_s3_access(); error{errc::unsupported} in a build without this part
[[nodiscard]] std::vector<named_object> list_objects(const std::string& folder, const remote_options& options);

/// Asks for a listing of what names of s3:// in one bucket have in common, where that takes fewer answers than looking at each of them; else,
/// and where the store does not list them, they stay as they are.
///   throws   as find_s3_access()
void ask_for_facts(std::span<named_object> objects, const remote_options& options);

/// What was seen of an object when one source opened it holds for another source of it too: its reads ask for the same object, and a cache
/// keeps it, though nobody opens it there. Both are of describe_objects(); nothing where it was not opened.
void hand_on_facts(const source_description& from, std::uint32_t file, const source_description& to, std::uint32_t as);

}  // namespace leat::io

// The door to objects at addresses, which is there in every build.
#pragma once

#include "io/source.hpp"

#include <leat/remote.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::io {

///   throws   error{errc::usage}: no address of an object, or one of http:// that was not allowed;
///            error{errc::unsupported} in a build without this part
[[nodiscard]] std::shared_ptr<const source_description> describe_objects(std::span<const std::string> addresses,
                                                                         const remote_options& options);

/// The addresses that one with * ? [ stands for: * and ? do not cross a slash. Sorted by byte.
///   throws   error{errc::not_found} there is none; error{errc::unsupported} in a build without this part; else as list_bucket() and find_s3_access()
[[nodiscard]] std::vector<std::string> match_objects(const std::string& pattern, const remote_options& options);

}  // namespace leat::io

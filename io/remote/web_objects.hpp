// Objects at https:// and s3://; in a build without OpenSSL each of these says so.
#pragma once

#include "io/remote/describe_objects.hpp"

namespace leat::io {

/// As describe_objects(), match_objects() and list_objects(), of addresses that are of no registered store.
[[nodiscard]] std::shared_ptr<const source_description> describe_web_objects(
    std::span<const named_object* const> objects, const remote_options& options, caching how);
[[nodiscard]] std::vector<named_object> match_s3_objects(const std::string& pattern, const remote_options& options);
[[nodiscard]] std::vector<named_object> list_s3_objects(const std::string& folder, const remote_options& options);

}  // namespace leat::io

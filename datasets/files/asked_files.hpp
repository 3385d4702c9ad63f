// Files below an address whose server lists nothing: each is asked for by its name.
#pragma once

#include "datasets/files/input_files.hpp"

#include <leat/remote.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::io {
struct named_object;
}

namespace leat::datasets {

/// A file that was asked for once is known. It takes one request for each name, and those of an expect() are made together; of s3:// a
/// listing where that takes fewer. Of what may not be read has() is false. lists() is false.
///   folder   an address with or without a slash at its end; its query, which may be a signature, belongs to each file below it that
///            has none of its own. A file elsewhere is called by its whole address
///   names    what names() gives
///   listed   files whose addresses are known, with what a listing may have told of them
///   throws   error{errc::permission} from find() and open(), of a file that may not be read; error{errc::io} and others from each of these,
///            where the server gives no answer
[[nodiscard]] std::unique_ptr<input_files> files_asked_for(const std::string& folder, const remote_options& options,
                                                           std::vector<std::string> names = {},
                                                           std::span<const io::named_object> listed = {});

/// The address of a file below such a folder.
///   path   as it is called, without the folder's name: "/train/0.0"
[[nodiscard]] std::string address_below(const std::string& folder, std::string_view path);

/// What a file is called that a file in `folder` names by a relative path: "." and ".." are resolved, as far as the server or the bucket.
///   folder   the name of one, with or without a slash at its end
[[nodiscard]] std::string resolved_name(std::string_view folder, std::string_view path);

/// What such files are called: the address without its query, and without a slash at its end.
[[nodiscard]] std::string name_of_folder(const std::string& folder);

}  // namespace leat::datasets

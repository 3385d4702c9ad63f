// Which of a file's arrays become fields.
#pragma once

#include "datasets/tables/arrays_as_samples.hpp"
#include "datasets/tables/chunked_array.hpp"

#include <leat/open_arrays.hpp>

#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// The paths that a reader has to find, as array_options::fields names them; empty where the names may be parts of paths, or patterns.
[[nodiscard]] std::span<const std::string> wanted_by_path(const array_options& options) noexcept;

/// Whether `wanted`, one of array_options::fields, means the array `name`: by its path, that of a group or compound above it, or a pattern as
/// glob(7) has them ("train_*").
[[nodiscard]] bool is_named_by(const std::string& name, const std::string& wanted);
[[nodiscard]] bool is_pattern(const std::string& wanted) noexcept;

/// Keeps what becomes fields: what options.fields names, or the members of compounds that it names. If it names none, it is what has the
/// most common length of the first axis (of equally common ones, the first array's), and a note names the rest. Where arrays are
/// samples, they are joined: if it was asked for, or if find_sample_family() finds some. Windows have no values of variable length.
///   title     names the source in errors
///   objects   filled where arrays or groups are samples, unless it is null
///   throws   error{errc::not_found} a name that is not there, with those that are; error{errc::usage} arrays of different lengths,
///            an array without axes, or none at all; as arrays_as_samples()
void choose_arrays(std::vector<chunked_array>& arrays, std::vector<placed_values>& values, const array_options& options,
                   const std::string& title, std::vector<std::string>& notes, sample_objects* objects = nullptr);

}  // namespace leat::datasets

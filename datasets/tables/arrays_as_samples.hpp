// Files that keep each sample as an array of its own: img_000, img_001, … or sample_0/image, sample_0/mask, ….
#pragma once

#include "datasets/tables/chunked_array.hpp"
#include "datasets/tables/sample_families.hpp"

#include <string>
#include <utility>
#include <vector>

namespace leat::datasets {

/// Where samples lie that are arrays or groups of their own: what else is kept with them is found by these paths.
///   paths    of each sample its array, or its group
///   fields   by their names: of each sample the array
struct sample_objects {
  std::vector<std::string> paths;
  std::vector<std::pair<std::string, std::vector<std::string>>> fields;
};

/// Joins many arrays into one, each as a row. Arrays of one name in different groups ("0/image", "1/image") become the array of that
/// name ("image"); if no name occurs twice, all of them become "array". Rows are in the order of is_before().
///   title     names the source in errors
///   objects   filled, unless it is null
///   throws   error{errc::usage} arrays that differ in type, shape, chunks or filters, with both names, and groups that lack an array which
///            others have
[[nodiscard]] std::vector<chunked_array> arrays_as_samples(std::vector<chunked_array> arrays, const std::string& title,
                                                           sample_objects* objects = nullptr);

/// The arrays and values of a family, joined; those of unequal shapes, stored as they are, become values. What cannot be joined is left
/// out, with a note.
///   family   found among `arrays` and then `values`, by their numbers
///   throws   error{errc::usage} nothing can be joined
void keep_family(std::vector<chunked_array>& arrays, std::vector<placed_values>& values, const sample_family& family,
                 const std::string& title, std::vector<std::string>& notes);

}  // namespace leat::datasets

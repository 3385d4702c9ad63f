// Files that keep each sample under a name of its own, img_000, img_001, … or sample_0/image, sample_1/image, …: which of their arrays are such.
#pragma once

#include "datasets/tables/chunked_array.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

/// What is known of an array, or of values of variable length, by its path.
///   shape   empty for what is no array with rows: a single number, text or file
struct named_shape {
  std::string path;
  std::vector<std::uint64_t> shape;
};

/// One field: for each sample, in order, the number of its array among those that were given.
struct family_field {
  std::string name;
  std::vector<std::size_t> arrays;
};

///   fields     all with the same number of samples; none: no names of one form are samples
///   objects    of each sample the path of its array, or of its group
///   parallel   numbers of arrays beside them whose first axis counts the samples
///   rest       numbers of all others
///   form       of the names, as "images/#.jpg"
///   unsure     where nothing was found: so many arrays of two axes and of `form` are more than they have rows. They may be samples, or
///              fields
///   apart      groups whose names are not those of one another, "train", "test": nobody can say which are meant
struct sample_family {
  std::vector<family_field> fields;
  std::vector<std::string> objects;
  std::vector<std::size_t> parallel;
  std::vector<std::size_t> rest;
  std::string form;
  std::size_t unsure = 0;
  std::vector<std::string> apart;

  [[nodiscard]] bool found() const noexcept { return !fields.empty(); }
  [[nodiscard]] std::size_t samples() const noexcept { return fields.empty() ? 0 : fields.front().arrays.size(); }
};

/// Four or more groups with names of one form ("sample_#") are samples. So are four or more arrays, if they have different shapes, or have no
/// rows and nothing beside them has; or if they have two or more axes and an array beside them counts them. Thirty-two or more of three
/// or more axes are without that, unless an array beside them has as many rows. Samples are in the order of their names, numbers in these by their values.
[[nodiscard]] sample_family find_sample_family(std::span<const named_shape> all);

/// Whether a name comes before another: by bytes, but numbers by their values ("a9" before "a10").
[[nodiscard]] bool is_before(std::string_view a, std::string_view b) noexcept;

}  // namespace leat::datasets

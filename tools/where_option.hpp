// --where: the samples of a source that a condition holds of.
#pragma once

#include <leat/index_options.hpp>
#include <leat/samples.hpp>

#include <string>

namespace CLI {
class App;
}

namespace leat::tools {

/// Takes what parses. What its names mean is seen once there is a dataset.
void add_where(CLI::App& app, std::string& where);

/// With a column for each label in the condition that is a field: it is read once (cls of tar shards).
///   where    empty: the dataset as it is
///   throws   as read_column()
[[nodiscard]] dataset with_columns_for(const dataset& samples, const std::string& where);

/// Those of with_columns_for() that it holds of; all of the dataset, as it is, where there is none. A warning says of how many pictures
/// the size that it asks for could not be read.
///   index    where sizes of pictures are kept
///   throws   error{errc::usage} as dataset::where(), and where it holds of none; as with_columns_for()
[[nodiscard]] dataset samples_where(const dataset& samples, const std::string& where, const index_options& index);

}  // namespace leat::tools

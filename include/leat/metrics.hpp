// Metrics of a loader, for Prometheus and others that read its text format.
#pragma once

#include <leat/compiler.hpp>
#include <leat/stats.hpp>

#include <iosfwd>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

/// One more label of every line.
struct metric_label {
  std::string name;
  std::string value;
};

/// Writes the text exposition format, version 0.0.4. docs/reference/metrics.md has every name. Opens no port and no
/// file, and takes no lock of the loader.
///   labels   labels for every line: {{"job", "resnet"}, {"rank", "3"}}. Values may be any text
///   throws   error{errc::usage}: a name of a label that is not [a-zA-Z_][a-zA-Z0-9_]*, comes twice or is one of leat's
///            (stage, le, ...)
void write_metrics(std::ostream& out, const loader_stats& stats, const std::vector<metric_label>& labels = {});

}  // namespace leat
#pragma GCC visibility pop

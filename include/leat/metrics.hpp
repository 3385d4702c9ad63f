// What a loader has done, for Prometheus and whoever else scrapes its text format.
#pragma once

#include <leat/stats.hpp>

#include <iosfwd>
#include <string>
#include <vector>

namespace leat {

/// One more label of every line.
struct metric_label {
  std::string name;
  std::string value;
};

/// Writes the text exposition format, version 0.0.4: docs/metrics.md has every name. Opens no port and no file; nothing is locked
/// that a loader needs.
///   labels   of this process: {{"job", "resnet"}, {"rank", "3"}}. Values may hold anything
///   throws   error{errc::usage}: a label whose name is none ([a-zA-Z_][a-zA-Z0-9_]*), comes twice or is one of ours (stage, le, ...)
void write_metrics(std::ostream& out, const loader_stats& stats, const std::vector<metric_label>& labels = {});

}  // namespace leat

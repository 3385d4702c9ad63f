// A sweep as a picture, drawn by gnuplot.
#pragma once

#include "tools/bench_read.hpp"

#include <atomic>
#include <string>
#include <vector>

namespace leat::tools {

/// What gnuplot is told: GiB/s over depth, a curve for each block, and a mark where more depth is not worth its latency.
/// The figures are in it. The picture goes to its standard output.
///   knees   of rows, those that are marked
[[nodiscard]] std::string plot_script(const std::vector<read_row>& rows, const std::vector<const read_row*>& knees,
                                      const std::string& title);

/// Whether gnuplot is there, which is better known before a sweep than after it.
///   throws   error: not_found (how to get it)
void check_gnuplot(std::atomic<int>& running);

/// The picture, as SVG.
///   throws   error{errc::io}: gnuplot failed
[[nodiscard]] std::string draw_plot(const std::string& script, std::atomic<int>& running);

}  // namespace leat::tools

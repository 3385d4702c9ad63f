#include "tools/bench_plot.hpp"

#include "base/text.hpp"
#include "tools/child.hpp"
#include "tools/human.hpp"

#include <leat/error.hpp>

#include <absl/strings/str_format.h>

namespace leat::tools {
namespace {

// In double quotes gnuplot knows backslashes, and its titles know marks: `enhanced` is off, so those are letters.
std::string quoted(const std::string& text) {
  std::string made = "\"";
  for (const char letter : one_line(text)) {
    if (letter == '"' || letter == '\\') made += '\\';
    made += letter;
  }
  return made + "\"";
}

std::string point(const read_row& row) { return absl::StrFormat("%u %.6f\n", row.asked.depth, row.gib_per_s()); }

}  // namespace

std::string plot_script(const std::vector<read_row>& rows, const std::vector<const read_row*>& knees,
                        const std::string& title) {
  std::string text =
      "set terminal svg size 800,480 noenhanced background rgb 'white'\n"
      "set xlabel 'reads in flight'\n"
      "set ylabel 'GiB/s'\n"
      "set logscale x 2\n"
      "set yrange [0:*]\n"
      "set grid\n"
      "set key left top\n";
  str_append(text, "set title ", quoted(title), "\n");
  std::string plots;
  std::size_t curves = 0;
  std::uint64_t block = 0;  // of the curve begun
  for (const read_row& row : rows) {
    if (!row.off_label.empty()) continue;  // another backend's
    if (row.asked.block_bytes != block) {
      if (curves != 0) text += "EOD\n";
      block = row.asked.block_bytes;
      str_append(text, "$curve", ++curves, " << EOD\n");
      str_append(plots, curves == 1 ? "plot " : ", \\\n     ", "$curve", curves, " with linespoints linewidth 2 title ",
                 quoted(bytes_text(block)));
    }
    text += point(row);
  }
  text += "EOD\n$good << EOD\n";
  for (const read_row* each : knees) text += point(*each);
  text += "EOD\n";
  return text + plots +
         ", \\\n     $good with points pointtype 6 pointsize 2 linecolor 'black' title '95 % of the best'\n";
}

void check_gnuplot(std::atomic<int>& running) {
  try {
    static_cast<void>(run_program({"gnuplot", "--version"}, {}, running));
  } catch (const error& wrong) {
    if (wrong.code() != errc::not_found) throw;
    throw error(errc::not_found,
                "--plot: gnuplot is not installed; `apt install gnuplot-nox` or `dnf install gnuplot`, then again");
  }
}

std::string draw_plot(const std::string& script, std::atomic<int>& running) {
  try {
    return run_program({"gnuplot", "-"}, script, running);
  } catch (const error& wrong) {
    throw error(errc::io, str_cat("--plot: ", wrong.what(), "; the figures are in what was printed"));
  }
}

}  // namespace leat::tools

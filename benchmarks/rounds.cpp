#include "benchmarks/rounds.hpp"

#include "base/text.hpp"
#include "benchmarks/measure.hpp"

#include <cstdio>
#include <exception>

namespace leat::benchmarks {

void rounds::run(unsigned count, double seconds) {
  const double until_s = wall_s() + seconds;
  for (unsigned round = 1; round <= count; ++round) {
    for (part& each : parts_) {
      if (each.over) continue;
      if (round > 1 && wall_s() > until_s) {
        left_out_.push_back(str_cat("round ", round, " of ", count, " from \"", each.name,
                                    "\" on, and the rounds behind it: the time was up"));
        return write_(left_out_);
      }
      write(round, count, each);
      attempt(each);
    }
  }
  write_(left_out_);
}

void rounds::attempt(part& each) {
  each.begun = true;
  const double began_s = wall_s();
  try {
    each.work();
    std::fprintf(stderr, "  %6.2f s  %s\n", wall_s() - began_s, each.name.c_str());
    each.over = each.once;
  } catch (const nothing_to_measure& reason) {
    left_out_.push_back(str_cat(each.name, ": ", reason.what()));
    each.over = true;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "  failed    %s: %s\n", each.name.c_str(), problem.what());
    left_out_.push_back(str_cat("FAILED: ", each.name, ": ", problem.what()));
    any_failed_ = true;
    each.over = true;
  }
}

// Read by nobody but where the process ends before the next one is written.
void rounds::write(unsigned round, unsigned count, const part& next) const {
  std::vector<std::string> left_out = left_out_;
  left_out.push_back(str_cat("NOT FINISHED: ended in round ", round, " of ", count, ", during \"", next.name, "\""));
  for (const part& each : parts_) {
    if (!each.begun) left_out.push_back(str_cat(each.name, ": not done"));
  }
  write_(left_out);
}

}  // namespace leat::benchmarks

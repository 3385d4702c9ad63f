// What an epoch came to: for a person, and for a program.
#pragma once

#include "tools/terminal.hpp"

#include <leat/batch.hpp>
#include <leat/index_options.hpp>
#include <leat/loading.hpp>
#include <leat/rendezvous.hpp>
#include <leat/stats.hpp>
#include <leat/world.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leat::tools {

/// The run so far. What never came to be stays as it is here.
///   seconds           from the loader's construction to the last batch, or to where it ended
///   open_seconds      before that: finding out what the sources are
///   first_batch_ms    since the start of the process; unset when none was delivered
///   run_digest        the chain over the batches' digests; unset with --digest off
///   resumed           where a run that another process began was gone on with
///   failure           what ended the run before its time
///   notes             what is odd about the sources
struct epoch_report {
  loader_stats stats;
  verdict verdict_of_run;
  std::uint64_t planned_in_all = 0;  ///< samples, had it come to its end
  double seconds = 0;
  double open_seconds = 0;
  std::optional<double> first_batch_ms;
  std::optional<digest> run_digest;
  bool packs = false;        ///< rows hold several texts (--pack)
  bool is_trained = false;   ///< a trainer was stood for (--step-ms)
  bool is_tuned = false;     ///< --tune on
  std::optional<double> au;  ///< its steps' time over all time, the first step left out; none where there was no other
  struct place {
    std::uint32_t epoch = 0;
    std::uint64_t batch = 0;
  };
  std::optional<place> resumed;
  double cpu_s = 0;
  std::uint64_t rss_bytes_max = 0;
  std::uint64_t host_bytes_max = 0;
  std::optional<loader_plan> plan;
  bool interrupted = false;
  std::string failure;
  std::vector<std::string> notes;
  std::vector<index_report> indexes;  ///< of the sources that may have one
  found_world here;
  std::optional<leat::slowest_rank> slowest_rank;  ///< where the ranks have met at the end

  /// cpu_s and rss_bytes_max, as of now.
  void measure_process();

  [[nodiscard]] nlohmann::ordered_json as_json() const;
  [[nodiscard]] std::string as_text(const terminal& screen) const;
};

/// How many connections to give next time; 0: no other number was tried than the one it begins with.
[[nodiscard]] std::uint32_t tuned_connections(const tuning_stats& of);

/// A verdict as "verdict" of the report has it.
[[nodiscard]] nlohmann::ordered_json verdict_json(const verdict& of);
[[nodiscard]] nlohmann::ordered_json step_json(const tuning_step& of);

}  // namespace leat::tools

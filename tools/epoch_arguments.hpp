// What `leat epoch` is asked for, and as the loader's options. `leat replay` is asked for the same.
#pragma once

#include "tools/fields.hpp"
#include "tools/order_choice.hpp"
#include "tools/ranks.hpp"
#include "tools/run_record.hpp"
#include "tools/run_watch.hpp"
#include "tools/sources.hpp"
#include "tools/state_writer.hpp"

#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace leat::tools {

struct epoch_arguments {
  std::vector<std::string> sources;
  picture_options pictures;
  window_options windows;
  std::optional<npy_options> arrays;
  open_options opening;
  order_options order;
  std::uint32_t global_batch_size = 0;
  rank_options ranks;
  found_world here;  // once it is known
  std::uint32_t epochs = 1;
  std::uint64_t limit = 0;
  order_choice choice;
  std::optional<double> mixup;
  std::optional<double> cutmix;
  std::optional<double> mosaic;
  std::uint32_t threads = 0;
  std::uint32_t cores_max = 0;
  tuning tune = tuning::off;
  std::uint64_t host_bytes_max = 0;    // the loader's choice
  std::uint32_t prefetch_batches = 0;  // the same
  std::string device = "host";
  std::uint64_t device_cache = 0;
  leat::decode_on decode_on = leat::decode_on::host;
  leat::numa numa = leat::numa::automatic;
  reader_options reader;
  corrupt_policy on_corrupt = corrupt_policy::raise;
  corrupt_bound corrupt_max;
  std::uint64_t unreadable_max = loader_options().unreadable_max;
  std::string journal;
  std::string receipts;
  std::string exclude;
  std::string where;
  bool digests = true;
  std::string batches;
  bool rows = false;
  std::string npy;
  std::string trace;
  std::string record;
  std::string state;
  std::string state_name;  // as it was given
  resume_when resume = resume_when::never;
  std::uint64_t stop_after = 0;
  run_watch_options watch;
  std::optional<std::uint32_t> step_ms;
  bool plan = false;
  bool json = false;
  asked_for asked;
};

/// What to load, what a batch holds and how it is loaded.
void add_loading_options(CLI::App& app, epoch_arguments& arguments);

/// As the loader takes them.
///   throws   error{errc::usage}: a --device that is none
[[nodiscard]] loader_options loader_options_of(const epoch_arguments& arguments);

/// What it says of its sources, for open_sources().
[[nodiscard]] source_kind kind_of_sources(const epoch_arguments& arguments);

/// What a loader gets of the samples, as their order needs them: those of --where, without those of --exclude. A list is of all samples,
/// or, where it says so, of those of the same --where.
///   throws   error{errc::usage}: a list that cannot be read, has no such samples or was made of others; --on-corrupt raise, which replaces
///            none; as samples_where() and samples_for_order()
[[nodiscard]] dataset samples_of_run(const chosen_fields& fields, const epoch_arguments& arguments);

/// auto is the first GPU, and the host where there is none.
///   throws   error{errc::usage}
[[nodiscard]] device device_of(const std::string& text);

}  // namespace leat::tools

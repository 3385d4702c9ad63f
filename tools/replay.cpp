// leat replay: what any batch of a run holds, and where each row comes from.
#include "base/memory_available.hpp"
#include "base/text.hpp"
#include "stages/batch/batch_state.hpp"
#include "stages/device/mosaic.hpp"
#include "stages/plan/run_spec.hpp"
#include "stages/run/loader_memory.hpp"
#include "stages/run/loader_parts.hpp"
#include "tools/arguments.hpp"
#include "tools/epoch_arguments.hpp"
#include "tools/fields.hpp"
#include "tools/human.hpp"
#include "tools/output.hpp"
#include "tools/ranks.hpp"
#include "tools/run_record.hpp"
#include "tools/sources.hpp"
#include "tools/state_writer.hpp"
#include "tools/subcommand.hpp"
#include "tools/terminal.hpp"

#include <leat/error.hpp>
#include <leat/loader_state.hpp>
#include <leat/loading.hpp>

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::tools {
namespace {

using json = nlohmann::ordered_json;

struct replay_arguments {
  epoch_arguments run;
  bool has_epochs = false;  // given
  std::uint32_t epoch = 0;
  std::uint64_t batch = 0;
};

/// Bytes that a row is made of.
struct row_part {
  std::string field;
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// A row of the batch.
struct replayed_row {
  pick what;
  std::string name;
  std::string digest;
  std::vector<row_part> parts;
  std::vector<std::int32_t> tiles = {};   // rows of the batch whose pictures are its tiles, where rows become mosaics
  std::vector<std::int32_t> center = {};  // x and y
};

/// A batch, and what was planned for it and is corrupt.
struct replayed_batch {
  std::string digest;
  std::vector<replayed_row> rows;
  std::vector<replayed_row> left_out;
};

std::vector<row_part> parts_of(const stages::run_spec& run, const pick& what, std::uint64_t seed) {
  const datasets::dataset_model& dataset = run.dataset();
  std::vector<datasets::need> needs;
  for (const std::uint16_t field : run.planner().wanted()) {
    needs.push_back({.field = field, .seed = seed, .draw = what.draw, .epoch = what.epoch});
  }
  datasets::part_list found;
  dataset.parts(what.sample, needs, found);
  std::vector<row_part> parts;
  for (const datasets::part& each : found) {
    if (each.is_made()) continue;
    parts.push_back({dataset.fields()[each.field].name,
                     dataset.sources()[each.where.source]->file_name(each.where.file), each.where.offset,
                     each.where.stored_bytes});
  }
  return parts;
}

// Which samples the run leaves out, since they are too large for its budget: as its state says, or as the options do. The batch
// that is made here takes more memory for its digests and names, and could leave out others.
std::optional<sample_limits> limits_of_run(const dataset& samples, const std::vector<field>& fields,
                                           const loader_options& options) {
  if (options.on_corrupt == corrupt_policy::raise || options.resume) return std::nullopt;
  stages::run_spec run(samples, fields, options);
  return stages::memory_of(run, options, find_memory_available(), 0).limits;
}

std::vector<std::int32_t> numbers_of(const batch& found, std::string_view output, std::uint32_t row) {
  const std::span<const std::byte> bytes = found.bytes(output, row);
  std::vector<std::int32_t> numbers(bytes.size() / sizeof(std::int32_t));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

//   tiled   rows become mosaics
replayed_batch replay_batch(const stages::run_spec& run, const batch& found, std::uint64_t seed, bool tiled) {
  replayed_batch shown{.digest = found.content_digest()->hex(), .rows = {}, .left_out = {}};
  for (std::uint32_t row = 0; row < found.valid_rows(); ++row) {
    const pick& what = found.details().picks[row];
    shown.rows.push_back({what, found.names()[row], found.row_digests()[row].hex(), parts_of(run, what, seed)});
    if (!tiled) continue;
    shown.rows.back().tiles = numbers_of(found, "mix.tiles", row);
    shown.rows.back().center = numbers_of(found, "mix.center", row);
  }
  // Rows stand in the order of the plan; a substitute stands where the corrupt sample would.
  std::vector<pick> planned;
  run.pick_rows(found.epoch(), found.index(), planned);
  const bool all_rows = planned.size() == shown.rows.size();
  std::size_t row = 0;
  for (const pick& each : planned) {
    const bool there = row < shown.rows.size() && shown.rows[row].what == each;
    if (there || all_rows) ++row;
    if (!there) shown.left_out.push_back({each, run.samples().name(each.sample), "", parts_of(run, each, seed)});
  }
  return shown;
}

json json_of(const replayed_row& row) {
  json parts = json::array();
  for (const row_part& part : row.parts) {
    parts.push_back({{"field", part.field}, {"file", part.file}, {"offset", part.offset}, {"bytes", part.bytes}});
  }
  json made = {{"sample", row.what.sample}, {"name", row.name}, {"draw", row.what.draw}, {"epoch", row.what.epoch}};
  if (!row.digest.empty()) made["digest"] = row.digest;
  made["parts"] = std::move(parts);
  if (!row.tiles.empty()) {
    made["tiles"] = row.tiles;
    made["center"] = row.center;
  }
  return made;
}

json json_of(const std::vector<replayed_row>& rows) {
  json list = json::array();
  for (const replayed_row& row : rows) list.push_back(json_of(row));
  return list;
}

//   epoch   of the batch
std::string text_of(const std::vector<replayed_row>& rows, std::uint32_t epoch, const terminal& screen) {
  std::string text;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const replayed_row& row = rows[k];
    absl::StrAppendFormat(&text, "  %4d  sample %d  %s", k, row.what.sample, one_line(row.name));
    if (row.what.draw != row.what.sample) str_append(text, "  draw ", row.what.draw);
    if (row.what.epoch != epoch) str_append(text, "  drawn as in epoch ", row.what.epoch);
    if (!row.digest.empty()) str_append(text, "  ", screen.dim(row.digest));
    text += "\n";
    if (!row.tiles.empty()) {
      str_append(text, "        tiles of rows ", absl::StrJoin(row.tiles, ", "), " around ",
                 absl::StrJoin(row.center, ", "), "\n");
    }
    for (const row_part& part : row.parts) {
      str_append(text, "        ",
                 screen.dim(str_cat(part.field, ": ", one_line(part.file), " at offset ", part.offset, ", ",
                                    counted(part.bytes, "byte", "bytes"))),
                 "\n");
    }
  }
  return text;
}

int replay(const replay_arguments& arguments, interruption& stop) {
  if (arguments.run.pictures.decoder == jpeg_decoder::nvjpeg) {
    throw error(errc::unsupported, "a batch is made again on the host, which has no pixels of --jpeg-decoder nvjpeg");
  }
  const auto leave = [&] { complain("replay", str_cat("stopped by ", stop.name())); };
  const dataset opened =
      open_sources(arguments.run.sources, stop, leave, advise_loading, kind_of_sources(arguments.run));
  tell_notes("replay", opened);
  const chosen_fields fields = [&] {
    const leaving_at_once leaving(stop, leave);
    return fields_of(opened, arguments.run.pictures, arguments.run.windows);
  }();
  for (const std::string& each : fields.warnings) complain("replay", each);

  loader_options options = loader_options_of(arguments.run);
  const dataset samples = set_up([&] { return samples_of_run(fields, arguments.run); });
  options.world = world_of(arguments.run.ranks).world;
  if (!arguments.has_epochs) options.epochs = 0;  // Any of them.
  options.device = host;
  options.decode_on = decode_on::host;
  if (!arguments.run.state.empty()) {
    options.resume = loader_state::load(with_rank(arguments.run.state, options.world));
  }
  options = stages::checked(std::move(options));
  stages::loader_parts parts;
  parts.only = {arguments.epoch, arguments.batch};
  parts.limits = limits_of_run(samples, fields.all, options);
  options.digests = options.names = true;
  options.corrupt_max = {};
  options.unreadable_max = std::numeric_limits<std::uint64_t>::max();
  options.prefetch_batches = 1;
  loader alone = set_up([&] { return stages::make_loader(samples, options, fields.all, parts); });
  for (const std::string& each : alone.plan().warnings) complain("replay", str_cat("warning: ", each));
  const std::optional<batch> found = [&] {
    const leaving_at_once leaving(stop, leave);
    return alone.next_blocking();
  }();
  const stages::run_spec run(samples, fields.all, options);
  const replayed_batch shown = replay_batch(run, *found, options.seed, stages::is_mosaic(options.mix));
  if (arguments.run.json) {
    print(report_text({{"epoch", arguments.epoch},
                       {"batch", arguments.batch},
                       {"digest", shown.digest},
                       {"rows", json_of(shown.rows)},
                       {"corrupt", json_of(shown.left_out)}},
                      arguments.run.asked));
    return exit_done;
  }
  const terminal screen = terminal::of(stdout);
  std::string text = str_cat("\n  ", screen.bold(str_cat("batch ", arguments.batch, " of epoch ", arguments.epoch)),
                             ": ", counted(shown.rows.size(), "row", "rows"), ", digest ", shown.digest, "\n\n",
                             text_of(shown.rows, arguments.epoch, screen));
  if (!shown.left_out.empty()) str_append(text, "\n  corrupt\n", text_of(shown.left_out, arguments.epoch, screen));
  print(text + "\n");
  return exit_done;
}

}  // namespace

void add_replay(CLI::App& leat, chosen_command& chosen) {
  auto arguments = std::make_shared<replay_arguments>();  // Lives as long as the parser's callbacks do.
  CLI::App& app = *leat.add_subcommand("replay", "say what any batch of a run holds, and where each row comes from");
  add_loading_options(app, arguments->run);
  app.option_defaults()->group("Which batch");
  add_number(app, "--epoch", arguments->epoch, 0, "counted from 0 (0)");
  add_number(app, "--batch", arguments->batch, 0, "of that epoch, counted from 0 (0)");
  add_text(app, "--state", arguments->run.state, "FILE", "refuse sources and options that are not those of this run");
  app.add_flag("--json", arguments->run.json, "the batch as one JSON object");
  app.footer(
      "  # sources and options as the run was given\n"
      "  leat replay photos --seed 7 --epoch 3 --batch 417\n"
      "  leat replay photos --seed 7 --state run.state --batch 12 --json | jq '.rows[].name'");
  const CLI::Option* const epochs = app.get_option("--epochs");
  app.callback([arguments, epochs, &app, &chosen] {
    arguments->run.asked = asked_of(app);
    arguments->has_epochs = epochs->count() > 0;
    chosen = [arguments](interruption& stop) { return replay(*arguments, stop); };
  });
}

}  // namespace leat::tools
